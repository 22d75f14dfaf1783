//! `gateway check`: is the policy right, what does it say, and what would it do to a capture?

use std::collections::BTreeMap;
use std::io::Write as _;

use anyhow::Context;
use linkweir_gateway::policy::{Applications, Fail, Rule, ScanMode};

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
            let clients = match rule.clients.0.len() {
                0 => "any".to_owned(),
                1 => "1 network".to_owned(),
                many => format!("{many} networks"),
            };
            let shape = config
                .shapes
                .get(&rule.number)
                .map_or_else(String::new, |rate| format!("{} kbit/s", rate / 1000));
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
    let mut all = lines(&head, &rows);
    all.push(format!(
        "{}: {} rules, {} signatures, queues {} to {}: right",
        config.path.display(),
        policy.rules.len(),
        policy.signatures.len(),
        config.settings.queues().start(),
        config.settings.queues().end(),
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
        Some(ScanMode::Window { bytes, .. }) => parts.push(format!("viruses ({bytes} B windows)")),
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
