//! The rules of the kernel: up, reload, down.

use std::collections::BTreeMap;
use std::io::Write as _;

use anyhow::{Context, anyhow};
use linkweir_netfilter::conntrack;
use linkweir_netfilter::rules::{self, Host, Up};

use super::args::{ConfigArgs, DownArgs, UpArgs};
use super::config::GatewayConfig;
use super::control;
use crate::exit::{Exit, Wrong, say, warn};

/// The numbers that rules have in the kernel; empty where nothing is up or it cannot be asked.
pub(super) fn standing_numbers(host: &Host) -> BTreeMap<String, u16> {
    match rules::standing(host) {
        Ok(Some(standing)) => standing.rules,
        Ok(None) | Err(_) => BTreeMap::new(),
    }
}

/// Makes the rules.
pub(super) fn up(args: &UpArgs) -> anyhow::Result<Exit> {
    let host = Host::here();
    let config = GatewayConfig::read(&args.file.config, &standing_numbers(&host))?;
    let plan = config.plan();
    if args.dry_run {
        let steps = rules::dry_run(&host, &plan)?;
        let mut out = std::io::stdout().lock();
        for step in steps {
            writeln!(out, "{step}").context("standard output")?;
        }
        return Ok(Exit::Done);
    }
    for warning in rules::warnings(&host, &plan) {
        warn(&warning);
    }
    match rules::up(&host, &plan)? {
        Up::Made => say("linkweir: the rules are up"),
        Up::Already => say("linkweir: the rules were up already"),
    }
    Ok(Exit::Done)
}

/// Loads the policy again.
pub(super) fn reload(args: &ConfigArgs) -> anyhow::Result<Exit> {
    let host = Host::here();
    let standing = rules::standing(&host)?;
    let numbers = standing.as_ref().map(|standing| standing.rules.clone());
    let config = GatewayConfig::read(&args.file.config, &numbers.unwrap_or_default())?;
    if let Some(standing) = standing {
        if standing.marks != config.policy.marks {
            return Err(anyhow!(Wrong(
                "`mark-mask` cannot change while the rules are up: run `down` and `up`".to_owned()
            )));
        }
        let plan = config.plan();
        rules::change(&host, &plan)?;
        control::reload(&config, &plan.rules)?;
    } else {
        control::reload(&config, &BTreeMap::new())?;
    }
    say("linkweir: the policy was loaded again");
    Ok(Exit::Done)
}

/// Removes the rules, and the marks that connections still carry.
pub(super) fn down(_args: &DownArgs) -> anyhow::Result<Exit> {
    let host = Host::here();
    let removed = rules::down(&host)?;
    for thing in &removed.things {
        say(&format!("linkweir: removed {thing}"));
    }
    if let Some(marks) = removed.marks {
        match conntrack::clear_marks(marks.mask()) {
            Ok(0) => {}
            Ok(count) => say(&format!(
                "linkweir: removed the marks of {count} connections"
            )),
            Err(error) => {
                warn(&format!("connections keep their marks: {error}"));
                return Ok(Exit::Failed);
            }
        }
    }
    if removed.things.is_empty() {
        say("linkweir: nothing was up");
    }
    Ok(Exit::Done)
}
