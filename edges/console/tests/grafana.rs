//! The dashboards and alert rules of the package: they have the form that Grafana and Prometheus read, and name
//! metrics that exist. `promtool` is in Debian's package `prometheus`; without it the tests say so and check the rest.
//! Grafana is not in Debian: its form is that of its own `kinds/dashboard/dashboard_kind.cue`.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::print_stderr,
    reason = "a test fails by panicking"
)]

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use linkweir_live::{ALERT_RULES, Exposing, grafana_dashboard, metrics_markdown};
use serde_json::Value;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn dashboard(command: Exposing) -> Value {
    serde_json::from_str(&grafana_dashboard(command)).unwrap()
}

/// What is wrong, in the terms of Grafana's schema.
fn faults(dashboard: &Value) -> Vec<String> {
    let mut faults = Vec::new();
    let mut want = |holds: bool, what: String| {
        if !holds {
            faults.push(what);
        }
    };
    let is_text = |value: &Value| value.as_str().is_some_and(|text| !text.is_empty());
    for (member, holds) in [
        ("title", is_text(&dashboard["title"])),
        (
            "uid",
            dashboard["uid"]
                .as_str()
                .is_some_and(|uid| (8..=40).contains(&uid.len())),
        ),
        ("editable", dashboard["editable"].is_boolean()),
        (
            "graphTooltip",
            dashboard["graphTooltip"].as_u64().is_some_and(|n| n <= 2),
        ),
        (
            "schemaVersion",
            dashboard["schemaVersion"].as_u64().is_some_and(|n| n >= 36),
        ),
        ("tags", dashboard["tags"].is_array()),
        (
            "time",
            is_text(&dashboard["time"]["from"]) && is_text(&dashboard["time"]["to"]),
        ),
        ("annotations", dashboard["annotations"]["list"].is_array()),
    ] {
        want(holds, format!("member {member}"));
    }
    let variables = dashboard["templating"]["list"].as_array().unwrap();
    want(
        variables
            .iter()
            .any(|one| one["type"] == "datasource" && one["query"] == "prometheus"),
        "no variable for the data source".to_owned(),
    );
    for variable in variables {
        let holds = is_text(&variable["name"])
            && ["query", "datasource"].contains(&variable["type"].as_str().unwrap_or_default())
            && variable["hide"].as_u64().is_some_and(|hide| hide <= 2);
        want(holds, format!("variable {variable}"));
    }
    faults.extend(faults_of_panels(dashboard["panels"].as_array().unwrap()));
    faults
}

fn faults_of_panels(panels: &[Value]) -> Vec<String> {
    let mut faults = Vec::new();
    let mut want = |holds: bool, what: String| {
        if !holds {
            faults.push(what);
        }
    };
    let is_text = |value: &Value| value.as_str().is_some_and(|text| !text.is_empty());
    let mut ids = BTreeSet::new();
    let mut taken = BTreeSet::new();
    for panel in panels {
        let title = panel["title"].as_str().unwrap_or_default();
        want(
            !title.is_empty(),
            format!("a panel without a title: {panel}"),
        );
        want(
            panel["id"]
                .as_u64()
                .is_some_and(|id| id > 0 && ids.insert(id)),
            format!("{title}: its id"),
        );
        let place = |member: &str| panel["gridPos"][member].as_u64();
        let (Some(x), Some(y), Some(w), Some(h)) = (place("x"), place("y"), place("w"), place("h"))
        else {
            want(false, format!("{title}: no place"));
            continue;
        };
        want(w > 0 && h > 0 && x + w <= 24, format!("{title}: its place"));
        for cell in (x..x + w).flat_map(|x| (y..y + h).map(move |y| (x, y))) {
            want(taken.insert(cell), format!("{title}: overlaps at {cell:?}"));
        }
        let kind = panel["type"].as_str().unwrap_or_default();
        if kind == "row" {
            want(
                panel["collapsed"] == false
                    && panel["panels"].as_array().is_some_and(Vec::is_empty),
                format!("{title}: a row"),
            );
            continue;
        }
        want(
            ["timeseries", "stat", "table", "state-timeline"].contains(&kind),
            format!("{title}: panels of type {kind:?}"),
        );
        want(
            panel["datasource"]["uid"] == "${datasource}"
                && panel["options"].is_object()
                && is_text(&panel["fieldConfig"]["defaults"]["unit"])
                && panel["fieldConfig"]["overrides"].is_array(),
            format!("{title}: a panel"),
        );
        let mut names = BTreeSet::new();
        let targets = panel["targets"].as_array().unwrap();
        want(!targets.is_empty(), format!("{title}: no query"));
        for target in targets {
            want(
                is_text(&target["expr"])
                    && target["datasource"]["uid"] == "${datasource}"
                    && target["refId"].as_str().is_some_and(|id| names.insert(id)),
                format!("{title}: a query"),
            );
        }
    }
    faults
}

/// The expressions as Prometheus gets them, when Grafana has filled in its variables.
fn expressions(dashboard: &Value) -> Vec<String> {
    let panels = dashboard["panels"].as_array().unwrap();
    let targets = panels
        .iter()
        .filter_map(|panel| panel["targets"].as_array())
        .flatten();
    targets
        .map(|target| {
            let filled = target["expr"]
                .as_str()
                .unwrap()
                .replace("$__rate_interval", "1m")
                .replace("$__range", "1h")
                .replace("$instance", ".*");
            assert!(!filled.contains('$'), "{filled}");
            filled
        })
        .collect()
}

/// The names of metrics in a text, without the ends of the samples of histograms and summaries.
fn names(text: &str, declared: &BTreeSet<String>) -> BTreeSet<String> {
    let words = text.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_' || c == ':'));
    let words = words.filter(|word| word.starts_with("linkweir_"));
    words
        .map(|word| {
            let base = ["_bucket", "_sum", "_count"]
                .iter()
                .find_map(|end| word.strip_suffix(end))
                .filter(|base| declared.contains(*base));
            base.unwrap_or(word).to_owned()
        })
        .collect()
}

fn declared() -> BTreeSet<String> {
    let table = metrics_markdown();
    let rows = table.lines().skip(2);
    rows.map(|row| row.split('`').nth(1).unwrap().to_owned())
        .collect()
}

fn promtool(arguments: &[&str], directory: &Path) {
    let output = Command::new("promtool")
        .args(arguments)
        .current_dir(directory)
        .stdin(Stdio::null())
        .output();
    let Ok(output) = output else {
        eprintln!("SKIPPED: no `promtool` (Debian package `prometheus`)");
        return;
    };
    let said = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "promtool {arguments:?}: {said}");
}

#[test]
fn dashboards_have_the_form_that_grafana_reads() {
    for command in Exposing::ALL {
        let good = dashboard(command);
        assert_eq!(faults(&good), Vec::<String>::new(), "{command:?}");
        // The check itself sees what is wrong.
        let mut bad = good.clone();
        bad["panels"][2]["id"] = good["panels"][1]["id"].clone();
        bad["panels"][3]["gridPos"] = good["panels"][2]["gridPos"].clone();
        bad["panels"][4]["type"] = "graph".into();
        bad["uid"] = "x".into();
        let found = faults(&bad).join("\n");
        for part in ["its id", "overlaps", "of type \"graph\"", "member uid"] {
            assert!(found.contains(part), "{part}: {found}");
        }
    }
}

#[test]
fn every_metric_is_in_a_dashboard_and_no_other() {
    let declared = declared();
    let mut shown = BTreeSet::new();
    for command in Exposing::ALL {
        let used = expressions(&dashboard(command)).join("\n");
        let used = names(&used, &declared);
        let unknown: Vec<_> = used.difference(&declared).collect();
        assert!(unknown.is_empty(), "{command:?}: {unknown:?}");
        shown.extend(used);
    }
    let missing: Vec<_> = declared.difference(&shown).collect();
    assert!(missing.is_empty(), "in no dashboard: {missing:?}");
}

#[test]
fn promtool_reads_every_expression_of_the_dashboards() {
    let mut rules = String::from("groups:\n- name: expressions\n  rules:\n");
    for (number, expression) in Exposing::ALL
        .into_iter()
        .flat_map(|command| expressions(&dashboard(command)))
        .enumerate()
    {
        let quoted = serde_json::to_string(&expression).unwrap();
        writeln!(rules, "  - record: expression:{number}\n    expr: {quoted}").unwrap();
    }
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("expressions.yml"), &rules).unwrap();
    assert!(rules.lines().count() > 200, "{rules}");
    promtool(&["check", "rules", "expressions.yml"], directory.path());
}

#[test]
fn alert_rules_fire_as_they_should() {
    let rules = "packaging/prometheus/linkweir.rules.yml";
    let declared = declared();
    // Comments and names of groups are no expressions.
    let expressions: Vec<_> = ALERT_RULES
        .lines()
        .filter(|line| line.contains("expr: "))
        .collect();
    let used = names(&expressions.join("\n"), &declared);
    let unknown: Vec<_> = used.difference(&declared).collect();
    assert!(unknown.is_empty(), "{unknown:?}");
    assert!(used.len() > 25, "{used:?}");
    promtool(&["check", "rules", rules], &root());
    promtool(
        &[
            "test",
            "rules",
            "edges/console/tests/linkweir.rules.test.yml",
        ],
        &root(),
    );
}
