//! `gateway check`: is the policy right, what does it say, and what would it do to a capture?

use std::collections::BTreeMap;
use std::io::Write as _;

use anyhow::Context;
use linkweir_gateway::policy::{Applications, Fail, Rule, ScanMode};

use linkweir_sink::human::scaled;

use super::args::CheckArgs;
use super::config::GatewayConfig;
use super::table::lines;
use super::try_out;
use crate::exit::Exit;

/// Runs the command.
pub(super) fn run(args: &CheckArgs) -> anyhow::Result<Exit> {
    let config = GatewayConfig::read(&args.file.config, &BTreeMap::new())?;
    if !args.read.is_empty() {
        return try_out::run(args, &config);
    }
    let mut out = std::io::stdout().lock();
    for line in describe(&config) {
        writeln!(out, "{line}").context("standard output")?;
    }
    Ok(Exit::Done)
}

/// The policy as a table.
fn describe(config: &GatewayConfig) -> Vec<String> {
    let policy = &config.policy;
    let rows: Vec<Vec<String>> = policy
        .rules
        .iter()
        .chain([&policy.default])
        .map(|rule| {
            let applications = match &rule.applications {
                Applications::Any => "any".to_owned(),
                Applications::Of(labels) => {
                    let names: Vec<&str> = labels.iter().map(|label| policy.name(*label)).collect();
                    names.join(" ")
                }
            };
            let names = rule.server_names.0.iter();
            let names: Vec<_> = names
                .map(|name| String::from_utf8_lossy(name.as_bytes()).into_owned())
                .collect();
            let applications = match names.as_slice() {
                [] => applications,
                names => format!("{applications} (sni {})", names.join(" ")),
            };
            let clients = match rule.clients.0.len() {
                0 => "any".to_owned(),
                1 | 2 => {
                    let clients = rule.clients.0.iter();
                    let clients: Vec<_> = clients.map(ToString::to_string).collect();
                    clients.join(" ")
                }
                many => format!("{many} networks"),
            };
            let shape = config
                .shapes
                .get(&rule.number)
                .map_or_else(String::new, |rate| scaled(*rate as f64, "bit/s"));
            vec![
                rule.name.clone(),
                applications,
                clients,
                rule.action.as_str().to_owned(),
                shape,
                looks_at(rule),
                if rule.fail == Fail::Closed {
                    "closed"
                } else {
                    "open"
                }
                .to_owned(),
            ]
        })
        .collect();
    let head = [
        "rule",
        "applications",
        "clients",
        "action",
        "shape",
        "looks at",
        "fail",
    ];
    let settings = &config.settings;
    let interfaces = match settings.interfaces.as_slice() {
        [] => "all".to_owned(),
        some => some.join(" "),
    };
    let mut all = vec![format!(
        "interfaces {interfaces}; queues {} to {}; without the gateway traffic {}{}",
        settings.queues().start(),
        settings.queues().end(),
        if settings.is_fail_open {
            "passes"
        } else {
            "stops"
        },
        config
            .scanner
            .as_ref()
            .map_or_else(String::new, |one| format!("; clamd at {}", one.address)),
    )];
    all.extend(lines(&head, &rows));
    all.extend(unreachable(config));
    all.push(format!(
        "{}: {} rules, {} signatures: right",
        config.path.display(),
        policy.rules.len(),
        policy.signatures.len(),
    ));
    all
}

fn looks_at(rule: &Rule) -> String {
    let inspect = &rule.inspect;
    let mut parts = Vec::new();
    if let Some(keywords) = &inspect.keywords {
        parts.push(format!("{} keywords", keywords.len()));
    }
    if !inspect.file_names.0.is_empty() {
        parts.push(format!("{} names", inspect.file_names.0.len()));
    }
    match inspect.scan.map(|scan| scan.mode) {
        Some(ScanMode::Window { bytes, .. }) => {
            parts.push(format!("viruses ({} KiB windows)", bytes.div_ceil(1024)));
        }
        Some(ScanMode::File) => parts.push("viruses (files)".to_owned()),
        None => {}
    }
    for (is_on, word) in [
        (inspect.audit, "audit"),
        (inspect.record, "record"),
        (inspect.quarantine, "quarantine"),
    ] {
        if is_on {
            parts.push(word.to_owned());
        }
    }
    parts.join(", ")
}

/// Rules that never decide, because an earlier one fits everything that they fit.
fn unreachable(config: &GatewayConfig) -> Vec<String> {
    let covers = |earlier: &Rule, later: &Rule| {
        let all_applications = match (&earlier.applications, &later.applications) {
            (Applications::Any, _) => true,
            (Applications::Of(_), Applications::Any) => false,
            (Applications::Of(first), Applications::Of(second)) => second
                .iter()
                .all(|label| first.iter().any(|one| label.includes(*one))),
        };
        let all_clients = earlier.clients.0.is_empty() || earlier.clients == later.clients;
        all_applications && all_clients && earlier.server_names.0.is_empty()
    };
    let rules = &config.policy.rules;
    let mut said = Vec::new();
    for (at, later) in rules.iter().enumerate() {
        if let Some(earlier) = rules.iter().take(at).find(|earlier| covers(earlier, later)) {
            said.push(format!(
                "warning: rule `{}` never decides: `{}` above it fits all that it fits",
                later.name, earlier.name
            ));
        }
    }
    said
}
