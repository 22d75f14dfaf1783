//! Dashboards for Grafana, made of the families as they are declared: a new metric has its panel without another line.
//!
//! The form is the classic one (`schemaVersion` 39), which Grafana 10 and later import and provision. Data source and
//! instances are variables.

use serde_json::{Value, json};

use crate::metrics::{Declared, MANY_PROBES, sections};

/// The version of the JSON: that of Grafana 10.4.
const SCHEMA_VERSION: u32 = 39;
/// Columns of the grid.
const COLUMNS: u32 = 24;
/// Columns and rows of a panel of a family.
const PANEL: (u32, u32) = (8, 8);
/// Columns and rows of a figure at the top.
const FIGURE: (u32, u32) = (4, 4);
/// The series that are asked for.
const CHOSEN: &str = "instance=~\"$instance\"";

/// A figure at the top: title, unit, from where on it is red, and the expression. In it `{I}` (or `{I,`) are
/// the chosen instances, and `[R]` is the time that rates are of.
type Figure = (&'static str, &'static str, Option<f64>, &'static str);

const LOSS: Figure = (
    "Losses",
    "cps",
    Some(0.001),
    "sum(rate(linkweir_dropped_total{I}[R]))",
);
const TABLE: Figure = (
    "Table fill",
    "percentunit",
    Some(0.9),
    "max(linkweir_table_entries{I} / (linkweir_table_capacity{I} > 0))",
);

const HTTP: [Figure; 6] = [
    (
        "Requests",
        "reqps",
        None,
        "sum(rate(linkweir_http_requests_total{I}[R]))",
    ),
    (
        "Response time, p95",
        "s",
        None,
        "histogram_quantile(0.95, sum by (le) (rate(linkweir_http_response_time_seconds_bucket{I}[R])))",
    ),
    (
        "5xx",
        "percentunit",
        Some(0.02),
        "sum(rate(linkweir_http_responses_total{I,code=~\"5..\"}[R])) / sum(rate(linkweir_http_responses_total{I}[R]))",
    ),
    (
        "Unanswered",
        "percentunit",
        Some(0.05),
        "sum(rate(linkweir_http_transactions_total{I,state=\"unanswered\"}[R])) / sum(rate(linkweir_http_requests_total{I}[R]))",
    ),
    TABLE,
    LOSS,
];

const FLOWS: [Figure; 6] = [
    (
        "Traffic",
        "bps",
        None,
        "8 * sum(rate(linkweir_bytes_total{I}[R]))",
    ),
    (
        "New flows",
        "cps",
        None,
        "sum(rate(linkweir_flows_started_total{I}[R]))",
    ),
    (
        "Round-trip time, p95",
        "s",
        None,
        "histogram_quantile(0.95, sum by (le) (rate(linkweir_flows_rtt_seconds_bucket{I,path=\"all\"}[R])))",
    ),
    (
        "Retransmissions",
        "percentunit",
        Some(0.03),
        "sum(rate(linkweir_flows_retransmissions_total{I}[R])) / sum(rate(linkweir_flows_data_segments_total{I}[R]))",
    ),
    TABLE,
    LOSS,
];

const GATEWAY: [Figure; 6] = [
    (
        "Traffic in user space",
        "bps",
        None,
        "8 * sum(rate(linkweir_gateway_bytes_total{I}[R]))",
    ),
    (
        "Connections",
        "short",
        None,
        "sum(linkweir_gateway_connections{I})",
    ),
    (
        "Stopped connections",
        "cps",
        None,
        "sum(rate(linkweir_gateway_stopped_connections_total{I}[R]))",
    ),
    (
        "Scanner",
        "bool_on_off",
        None,
        "min(linkweir_gateway_scanner_up{I})",
    ),
    (
        "Infected files",
        "short",
        Some(1.0),
        "sum(increase(linkweir_gateway_events_total{I,event=\"infected\"}[$__range]))",
    ),
    (
        "Dropped by the kernel",
        "pps",
        Some(0.001),
        "sum(rate(linkweir_gateway_queue_dropped_packets_total{I}[R]))",
    ),
];

const LOAD: [Figure; 6] = [
    (
        "Sessions",
        "cps",
        None,
        "sum(rate(linkweir_load_sessions_started_total{I}[R]))",
    ),
    (
        "Open sessions",
        "short",
        None,
        "sum(linkweir_load_open_sessions{I})",
    ),
    (
        "Responses",
        "reqps",
        None,
        "sum(rate(linkweir_load_responses_total{I}[R]))",
    ),
    (
        "Response time, p99",
        "s",
        None,
        "histogram_quantile(0.99, sum by (le) (rate(linkweir_load_response_time_seconds_bucket{I}[R])))",
    ),
    (
        "Failed sessions",
        "percentunit",
        Some(0.01),
        "sum(rate(linkweir_load_sessions_failed_total{I}[R])) / sum(rate(linkweir_load_sessions_started_total{I}[R]))",
    ),
    (
        "Schedule lag, p99",
        "s",
        Some(0.01),
        "histogram_quantile(0.99, sum by (le) (rate(linkweir_load_schedule_lag_seconds_bucket{I}[R])))",
    ),
];

/// Alert and recording rules for Prometheus, as YAML.
pub const ALERT_RULES: &str = include_str!("../../../packaging/prometheus/linkweir.rules.yml");

/// The commands that expose metrics of their own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exposing {
    /// `linkweir http`.
    Http,
    /// `linkweir flows`.
    Flows,
    /// `linkweir gateway run`.
    Gateway,
    /// `linkweir load`.
    Load,
}

impl Exposing {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Http, Self::Flows, Self::Gateway, Self::Load];

    /// The name of the command.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Http => "http",
            Self::Flows => "flows",
            Self::Gateway => "gateway",
            Self::Load => "load",
        }
    }

    /// The command of this name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|command| command.name() == name)
    }
}

/// The dashboard of what a command exposes, as JSON.
#[must_use]
pub fn grafana_dashboard(command: Exposing) -> String {
    let subject = command.name();
    let (figures, rows): (_, &[&str]) = match command {
        Exposing::Http => (HTTP, &["http", "all", MANY_PROBES]),
        Exposing::Flows => (FLOWS, &["flows", "all", MANY_PROBES]),
        Exposing::Gateway => (GATEWAY, &["gateway", "all"]),
        Exposing::Load => (LOAD, &["load", "all"]),
    };
    let mut grid = Grid::default();
    grid.row("Overview");
    for figure in figures {
        grid.put(FIGURE, stat(&figure));
    }
    let all = sections();
    for of in rows {
        grid.row(match *of {
            "all" => "The run and its alerts",
            MANY_PROBES => "Probes of linkweir console",
            of => of,
        });
        for family in all.iter().filter(|section| section.of == *of) {
            for family in &family.families {
                panels(family, subject, &mut grid);
            }
        }
    }
    let dashboard = json!({
        "id": null,
        "uid": format!("linkweir-{subject}"),
        "title": format!("linkweir {subject}"),
        "description": format!("What linkweir {subject} exposes at /metrics."),
        "tags": ["linkweir", subject],
        "schemaVersion": SCHEMA_VERSION,
        "version": 1,
        "editable": true,
        "graphTooltip": 1,
        "fiscalYearStartMonth": 0,
        "timezone": "browser",
        "refresh": "10s",
        "time": { "from": "now-30m", "to": "now" },
        "timepicker": {},
        "weekStart": "",
        "liveNow": false,
        "annotations": { "list": [] },
        "links": [{
            "asDropdown": true, "icon": "external link", "includeVars": true, "keepTime": true,
            "tags": ["linkweir"], "targetBlank": false, "title": "linkweir", "tooltip": "", "type": "dashboards", "url": "",
        }],
        "templating": { "list": variables() },
        "panels": grid.panels,
    });
    // Numbers and texts of ours are JSON.
    let text = serde_json::to_string_pretty(&dashboard).unwrap_or_default();
    text + "\n"
}

fn variables() -> Value {
    json!([
        {
            "name": "datasource", "label": "Data source", "type": "datasource", "query": "prometheus",
            "current": {}, "hide": 0, "includeAll": false, "multi": false, "options": [], "refresh": 1, "regex": "",
            "skipUrlSync": false,
        },
        {
            "name": "instance", "label": "Instance", "type": "query", "datasource": source(),
            "definition": "label_values(linkweir_build_info, instance)",
            "query": { "query": "label_values(linkweir_build_info, instance)", "refId": "instance" },
            "allValue": ".*", "current": { "selected": true, "text": ["All"], "value": ["$__all"] }, "hide": 0,
            "includeAll": true, "multi": true, "options": [], "refresh": 2, "regex": "", "skipUrlSync": false, "sort": 1,
        },
    ])
}

fn source() -> Value {
    json!({ "type": "prometheus", "uid": "${datasource}" })
}

/// Panels, in rows from left to right.
#[derive(Debug, Default)]
struct Grid {
    panels: Vec<Value>,
    x: u32,
    y: u32,
    /// Rows that the panels at `y` take.
    height: u32,
}

impl Grid {
    fn row(&mut self, title: &str) {
        self.new_line();
        let panel = json!({ "type": "row", "title": title, "collapsed": false, "panels": [] });
        self.put((COLUMNS, 1), panel);
    }

    fn new_line(&mut self) {
        self.x = 0;
        self.y += self.height;
        self.height = 0;
    }

    fn put(&mut self, (w, h): (u32, u32), mut panel: Value) {
        if self.x + w > COLUMNS {
            self.new_line();
        }
        if let Some(object) = panel.as_object_mut() {
            object.insert("id".to_owned(), json!(self.panels.len() + 1));
            let place = json!({ "x": self.x, "y": self.y, "w": w, "h": h });
            object.insert("gridPos".to_owned(), place);
        }
        self.panels.push(panel);
        self.x += w;
        self.height = self.height.max(h);
    }
}

fn stat((title, unit, limit, expression): &Figure) -> Value {
    let expression = expression
        .replace("{I", &format!("{{{CHOSEN}"))
        .replace("[R]", "[$__rate_interval]");
    let mut steps = vec![json!({ "color": "green", "value": null })];
    steps.extend(limit.map(|limit| json!({ "color": "red", "value": limit })));
    let mut panel = panel("stat", title, "", unit, vec![target(0, &expression, title)]);
    set(
        &mut panel,
        "/fieldConfig/defaults/thresholds",
        json!({ "mode": "absolute", "steps": steps }),
    );
    set(
        &mut panel,
        "/options",
        json!({
            "colorMode": "value", "graphMode": "area", "justifyMode": "auto", "orientation": "auto", "textMode": "auto",
            "reduceOptions": { "calcs": ["lastNotNull"], "fields": "", "values": false },
        }),
    );
    panel
}

/// Sets what a panel has at a pointer to an object or a member of one.
fn set(panel: &mut Value, at: &str, value: Value) {
    let Some((parent, member)) = at.rsplit_once('/') else {
        return;
    };
    if let Some(object) = panel.pointer_mut(parent).and_then(Value::as_object_mut) {
        object.insert(member.to_owned(), value);
    }
}

fn panel(kind: &str, title: &str, help: &str, unit: &str, targets: Vec<Value>) -> Value {
    let mut panel = json!({
        "type": kind,
        "title": title,
        "description": help,
        "datasource": source(),
        "fieldConfig": { "defaults": { "unit": unit }, "overrides": [] },
        "options": {},
    });
    set(&mut panel, "/targets", Value::Array(targets));
    panel
}

fn target(at: u8, expression: &str, legend: &str) -> Value {
    json!({
        "refId": char::from(b'A' + at % 26).to_string(),
        "datasource": source(),
        "editorMode": "code",
        "expr": expression,
        "legendFormat": legend,
        "range": true,
    })
}

/// What the curves of a family are called: by its labels, else by the instance.
fn legend(labels: &[&str]) -> String {
    let names: Vec<String> = labels
        .iter()
        .map(|label| format!("{{{{{label}}}}}"))
        .collect();
    names.join(" ")
}

/// The name of a family without what all in the dashboard have in common.
fn title(family: &Declared, subject: &str) -> String {
    let name = family.name.strip_prefix("linkweir_").unwrap_or(family.name);
    let name = name
        .strip_prefix(subject)
        .and_then(|rest| rest.strip_prefix('_'))
        .unwrap_or(name);
    let name = name.strip_suffix("_total").unwrap_or(name);
    let name = name.strip_suffix("_seconds").unwrap_or(name);
    let name = name.replace('_', " ");
    let mut letters = name.chars();
    let name = letters.next().map_or_else(String::new, |first| {
        first.to_uppercase().chain(letters).collect()
    });
    match family.labels {
        [] => name,
        labels => format!("{name} by {}", labels.join(" and ")),
    }
}

/// The panels of a family.
fn panels(family: &Declared, subject: &str, grid: &mut Grid) {
    let Declared {
        name,
        kind,
        labels,
        help,
    } = *family;
    let title = title(family, subject);
    let by = if labels.is_empty() {
        &["instance"][..]
    } else {
        labels
    };
    let list = by.join(", ");
    let legend = legend(by);
    let rate = format!("rate({name}{{{CHOSEN}}}[$__rate_interval])");
    let one = |expression: String| vec![target(0, &expression, &legend)];
    let chart = |unit: &str, targets| chart(&title, help, unit, targets);
    if name.ends_with("_info") {
        return grid.put(PANEL, table(&title, help, name, by));
    }
    match (kind, family.unit()) {
        ("counter", unit) => {
            let unit = if unit == "bytes" { "Bps" } else { "cps" };
            grid.put(PANEL, chart(unit, one(format!("sum by ({list}) ({rate})"))));
        }
        ("histogram", unit) => {
            let rate = |by: &str| {
                format!("sum by ({by}) (rate({name}_bucket{{{CHOSEN}}}[$__rate_interval]))")
            };
            let quantiles = [("0.5", "p50"), ("0.95", "p95"), ("0.99", "p99")];
            let targets = (0..).zip(quantiles).map(|(at, (quantile, name))| {
                let expression = format!("histogram_quantile({quantile}, {})", rate("le"));
                target(at, &expression, name)
            });
            let unit = unit_of(unit);
            let plain = Declared {
                labels: &[],
                ..*family
            };
            let shown = self::title(&plain, subject);
            grid.put(PANEL, self::chart(&shown, help, unit, targets.collect()));
            if let [first, ..] = labels {
                let expression = format!(
                    "histogram_quantile(0.95, {})",
                    rate(&format!("le, {first}"))
                );
                let targets = vec![target(0, &expression, &self::legend(&[first]))];
                let shown = format!("{shown}, p95 by {first}");
                grid.put(PANEL, self::chart(&shown, help, unit, targets));
            }
        }
        _ if name.ends_with("_timestamp_seconds") => {
            let expression = format!("1000 * max by ({list}) ({name}{{{CHOSEN}}})");
            let panel = panel("stat", &title, help, "dateTimeFromNow", one(expression));
            grid.put(PANEL, panel);
        }
        _ if ["_up", "_firing", "_finished"]
            .iter()
            .any(|end| name.ends_with(end)) =>
        {
            let expression = format!("max by ({list}) ({name}{{{CHOSEN}}})");
            let mut panel = panel("state-timeline", &title, help, "short", one(expression));
            let states = json!({
                "0": { "text": "no", "index": 0 },
                "1": { "text": "yes", "index": 1 },
            });
            set(
                &mut panel,
                "/fieldConfig/defaults/mappings",
                json!([{ "type": "value", "options": states }]),
            );
            grid.put(PANEL, panel);
        }
        ("summary", unit) if !labels.contains(&"quantile") => {
            let sum = |end: &str| {
                format!("sum by ({list}) (rate({name}{end}{{{CHOSEN}}}[$__rate_interval]))")
            };
            let mean = format!("{} / {}", sum("_sum"), sum("_count"));
            grid.put(
                PANEL,
                self::chart(
                    &format!("Mean {}", title.to_lowercase()),
                    help,
                    unit_of(unit),
                    one(mean),
                ),
            );
        }
        (_, unit) => {
            let expression = format!("max by ({list}) ({name}{{{CHOSEN}}})");
            grid.put(PANEL, chart(unit_of(unit), one(expression)));
        }
    }
}

/// What Grafana calls a unit.
fn unit_of(unit: &str) -> &'static str {
    match unit {
        "seconds" => "s",
        "bytes" => "bytes",
        _ => "short",
    }
}

fn chart(title: &str, help: &str, unit: &str, targets: Vec<Value>) -> Value {
    let mut panel = panel("timeseries", title, help, unit, targets);
    set(
        &mut panel,
        "/options",
        json!({
            "legend": { "calcs": ["lastNotNull", "max"], "displayMode": "table", "placement": "bottom", "showLegend": true },
            "tooltip": { "mode": "multi", "sort": "desc" },
        }),
    );
    let look = json!({ "drawStyle": "line", "fillOpacity": 10, "lineWidth": 1, "showPoints": "never", "spanNulls": false });
    set(&mut panel, "/fieldConfig/defaults/custom", look);
    panel
}

/// The labels of a metric whose value is always 1.
fn table(title: &str, help: &str, name: &str, labels: &[&str]) -> Value {
    let list = labels.join(", ");
    let expression = format!("max by (instance, {list}) ({name}{{{CHOSEN}}})");
    let mut target = target(0, &expression, "");
    for (member, value) in [
        ("format", json!("table")),
        ("instant", json!(true)),
        ("range", json!(false)),
    ] {
        set(&mut target, &format!("/{member}"), value);
    }
    let mut panel = panel("table", title, help, "short", vec![target]);
    let hidden = json!([{
        "id": "organize",
        "options": { "excludeByName": { "Time": true, "Value": true }, "indexByName": {}, "renameByName": {} },
    }]);
    set(&mut panel, "/transformations", hidden);
    panel
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_family_has_a_panel() {
        let text: String = Exposing::ALL.map(grafana_dashboard).concat();
        for family in sections().iter().flat_map(|section| &section.families) {
            // Behind the name of a sample come its labels.
            let found = ["", "_bucket", "_sum"]
                .iter()
                .any(|end| text.contains(&format!("({}{end}{{", family.name)));
            assert!(found, "{}", family.name);
        }
        assert_eq!(Exposing::named("feed"), None);
        assert_eq!(Exposing::named("load"), Some(Exposing::Load));
    }

    #[test]
    fn titles_say_what_is_counted_by_what() {
        let dashboard: Value = serde_json::from_str(&grafana_dashboard(Exposing::Http)).unwrap();
        let titles: Vec<_> = dashboard["panels"]
            .as_array()
            .unwrap()
            .iter()
            .filter_map(|panel| panel["title"].as_str())
            .collect();
        for title in [
            "Requests by method",
            "Response time",
            "Response time, p95 by server",
            "Probe up by probe",
        ] {
            assert!(titles.contains(&title), "{title}: {titles:?}");
        }
    }
}
