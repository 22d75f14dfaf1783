//! The rules of the kernel: up, reload, down, and what passed without a decision.

use std::collections::BTreeMap;
use std::io::Write as _;

use anyhow::{Context, anyhow};
use linkweir_live::gateway::KernelCount;
use linkweir_netfilter::conntrack;
use linkweir_netfilter::rules::{self, Host, RuleCount, Standing, Up};
use linkweir_record::human::counted;

use super::args::{ConfigArgs, DownArgs, UpArgs};
use super::config::GatewayConfig;
use super::control::{self, Offer};
use crate::exit::{Exit, Wrong, say, warn};

/// The numbers that rules have in the kernel, where something is up; empty where it cannot be asked.
pub(super) fn standing_numbers() -> Option<BTreeMap<String, u16>> {
    match rules::standing() {
        Ok(Some(standing)) => Some(standing.rules),
        Ok(None) => None,
        Err(_) => Some(BTreeMap::new()),
    }
}

/// Whether what is up was made of another policy: the kernel then decides otherwise than the gateway says, also
/// about what passes without it. No where it cannot be asked.
pub(super) fn is_of_another_policy(config: &GatewayConfig) -> bool {
    matches!(rules::standing(), Ok(Some(standing)) if !standing.is_of(&config.plan()))
}

/// What the kernel has counted since `up`, by rule, also rules that had nothing.
pub(super) fn counts_by_rule(standing: &Standing) -> BTreeMap<String, KernelCount> {
    let names: BTreeMap<u16, &str> = (standing.rules.iter())
        .map(|(name, number)| (*number, name.as_str()))
        .collect();
    let mut counts: BTreeMap<String, KernelCount> = (standing.rules.keys())
        .map(|name| (name.clone(), KernelCount::default()))
        .collect();
    let name = |count: &RuleCount| *names.get(&count.mark.rule).unwrap_or(&"default");
    for count in &standing.counts {
        let sum = counts.entry(name(count).to_owned()).or_default();
        sum.packets += count.packets;
        sum.bytes += count.bytes;
    }
    for count in &standing.over_rate {
        let sum = counts.entry(name(count).to_owned()).or_default();
        sum.over_rate_packets += count.packets;
        sum.over_rate_bytes += count.bytes;
    }
    counts
}

/// How many connections the kernel knows that nobody has decided about. Where the rules fail open they
/// passed while no gateway ran, so this is all that is known of them; 0 where they fail closed.
pub(super) fn undecided(config: &GatewayConfig) -> u64 {
    if !config.settings.is_fail_open() {
        return 0;
    }
    let marks = match conntrack::count_marks(config.policy.marks.mask()) {
        Ok(marks) => marks,
        Err(error) => {
            warn(&format!(
                "packets that passed without a gateway are unknown: {error}"
            ));
            return 0;
        }
    };
    let count = marks.get(&0).copied().unwrap_or(0);
    if count > 0 {
        warn(&format!(
            "{} of the kernel's table without a decision: what was sent before now was not looked at",
            counted(count, "connection")
        ));
    }
    count
}

/// Makes the rules.
pub(super) fn up(args: &UpArgs) -> anyhow::Result<Exit> {
    let host = Host::here();
    let config = GatewayConfig::read(&args.file.config, &standing_numbers().unwrap_or_default())?;
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

/// Loads the policy again: the running gateway is asked first, then the kernel changes, then the
/// gateway.
pub(super) fn reload(args: &ConfigArgs) -> anyhow::Result<Exit> {
    let host = Host::here();
    let path = &args.file.config;
    let Some(standing) = rules::standing()? else {
        return Err(anyhow!(
            "no rules are up here: run `linkweir gateway up` (SIGHUP to the running gateway loads its policy without them)"
        ));
    };
    let config = GatewayConfig::read(path, &standing.rules)?;
    if standing.marks != config.policy.marks {
        return Err(anyhow!(Wrong(
            "`mark-mask` cannot change while the rules are up: run `down` and `up`".to_owned()
        )));
    }
    let plan = config.plan();
    let socket = &config.settings.control;
    control::offer(socket, &Offer::of(path, plan.rules.clone()))?;
    rules::change(&host, &plan)?;
    control::reload(socket, &plan.rules)?;
    say("linkweir: policy reloaded");
    Ok(Exit::Done)
}

/// Removes the rules, and the marks that connections still carry.
pub(super) fn down(_args: &DownArgs) -> anyhow::Result<Exit> {
    let host = Host::here();
    let removed = rules::down(&host)?;
    for thing in &removed.things {
        say(&format!("linkweir: removed {thing}"));
    }
    for left in &removed.left {
        warn(&format!("not created by linkweir, kept: {left}"));
    }
    if let Some(marks) = removed.marks {
        match conntrack::clear_marks(marks.mask()) {
            Ok(0) => {}
            Ok(count) => say(&format!(
                "linkweir: removed the marks of {}",
                counted(count, "connection")
            )),
            Err(error) => {
                warn(&format!("connections keep their marks: {error}"));
                return Ok(Exit::Failed);
            }
        }
    }
    if removed.things.is_empty() {
        say("linkweir: no rules to remove");
    }
    Ok(Exit::Done)
}
