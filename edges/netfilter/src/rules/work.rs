//! Making, changing and removing the rules.

use linkweir_engine::effect::MarkLayout;

use super::found::Found;
use super::host::Step;
use super::host::{CommandError, Host};
use super::host::{Foreign, RulesError};
use super::plan::Plan;
use super::route;
use super::shape;
use super::standing::missing_interfaces;
use super::table;
use super::xtables::{Family, Tables};

/// What came of [`up`] and [`change`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Up {
    /// It was done.
    Made,
    /// All of it was there already.
    Already,
}

/// What [`down`] removed.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Removed {
    /// One line for each thing, for a person; empty where nothing was there.
    pub things: Vec<String>,
    /// Which bits were ours: connections still carry them.
    pub marks: Option<MarkLayout>,
    /// What has our names and stays.
    pub left: Vec<Foreign>,
}

/// The steps of [`up`], in their order. They depend on what is there: a jump's comment says whether its
/// chain had to be made. Who may not look, or has not the programs, gets those of a machine where all
/// chains of the kernel are there.
///
/// # Errors
/// The plan is wrong.
pub fn dry_run(host: &Host, plan: &Plan) -> Result<Vec<Step>, RulesError> {
    plan.check()?;
    let found = Found::look(host).unwrap_or_else(|_| Found::unknown());
    Ok(steps(&found, plan))
}

/// Makes all rules of a plan. What was made is removed again where a step fails.
///
/// # Errors
/// The plan is wrong, a program is missing, something else is there, or a step failed.
pub fn up(host: &Host, plan: &Plan) -> Result<Up, RulesError> {
    let found = look(host, plan)?;
    found.refuse_foreign(plan)?;
    if found.has_ours() {
        return match found.difference(plan) {
            None => Ok(Up::Already),
            Some(what) => Err(RulesError::Other(what)),
        };
    }
    for step in steps(&found, plan) {
        if let Err(error) = host.run(&step) {
            // Nothing of ours was there before: all that is there now is of this attempt.
            let left = down(host).err().map(Box::new);
            return Err(RulesError::RolledBack { error, left });
        }
    }
    Ok(Up::Made)
}

fn look(host: &Host, plan: &Plan) -> Result<Found, RulesError> {
    plan.check()?;
    if !plan.redirects.is_empty() {
        host.needs("ip")?;
    }
    if !plan.classes.is_empty() {
        host.needs("tc")?;
        if let Some(name) = missing_interfaces(host, plan).first() {
            return Err(RulesError::NoInterface((*name).to_owned()));
        }
    }
    Ok(Found::look(host)?)
}

/// The queue rules come last: traffic is queued when everything else is there.
fn steps(found: &Found, plan: &Plan) -> Vec<Step> {
    let mut steps = Vec::new();
    if !plan.classes.is_empty() {
        steps.extend(plan.interfaces.iter().map(|name| shape::make(plan, name)));
    }
    steps.push(table::make(plan));
    for family in families(plan) {
        if route::is_wanted(plan, family) {
            steps.push(route::make(plan.marks, family, false));
        }
        let tables = Tables::new(plan, family);
        steps.push(tables.make(|table, chain| found.made(family, table, chain)));
    }
    steps
}

/// IPv4 is what every plan has.
fn families(plan: &Plan) -> impl Iterator<Item = Family> {
    let has_ipv6 = plan.has_ipv6;
    let is_wanted = move |family: &Family| *family == Family::V4 || has_ipv6;
    Family::ALL.into_iter().rev().filter(is_wanted)
}

/// Gives what is up the shape of another plan; no packet and no connection is lost. What a crash or
/// somebody's hand took away is made again.
///
/// Where a step fails, the steps before it stay, and the next change goes on from there.
///
/// # Errors
/// The plan is wrong or has other marks, nothing is up, or a step failed.
pub fn change(host: &Host, plan: &Plan) -> Result<Up, RulesError> {
    let found = look(host, plan)?;
    found.refuse_foreign(plan)?;
    let there = found.marks().ok_or(RulesError::NotUp)?;
    if there != plan.marks {
        return Err(RulesError::OtherMarks {
            there: there.mask(),
            wanted: plan.marks.mask(),
        });
    }
    if found.difference(plan).is_none() {
        return Ok(Up::Already);
    }
    for step in steps_of_change(&found, plan) {
        host.run(&step)?;
    }
    Ok(Up::Made)
}

/// A class is there before packets are given to it, and goes after the last that was.
fn steps_of_change(found: &Found, plan: &Plan) -> Vec<Step> {
    let mut steps = Vec::new();
    let is_shaped =
        |interface: &String| !plan.classes.is_empty() && plan.interfaces.contains(interface);
    for name in plan.interfaces.iter().filter(|name| is_shaped(name)) {
        let is_there = found.our_roots().any(|root| root.interface == *name);
        let step = if is_there {
            shape::replace
        } else {
            shape::make
        };
        steps.push(step(plan, name));
    }
    steps.push(if found.tables.ours.is_some() {
        table::change(plan)
    } else {
        table::make(plan)
    });
    for root in found.our_roots() {
        if is_shaped(&root.interface) {
            let is_kept = |rule: &u16| plan.classes.iter().any(|class| class.rule == *rule);
            let gone: Vec<u16> = (root.classes.iter().copied())
                .filter(|rule| !is_kept(rule))
                .collect();
            if !gone.is_empty() {
                steps.push(shape::remove_classes(&root.interface, &gone));
            }
        } else {
            steps.push(shape::remove(&root.interface));
        }
    }
    for family in Family::ALL {
        let has_rule = found.routed.contains(&family);
        if route::is_wanted(plan, family) {
            steps.push(route::make(plan.marks, family, has_rule));
        } else if has_rule {
            steps.push(route::remove(family));
        }
        let is_wanted = families(plan).any(|one| one == family);
        steps.extend(step_of_family(found, plan, family, is_wanted));
    }
    steps
}

fn step_of_family(found: &Found, plan: &Plan, family: Family, is_wanted: bool) -> Vec<Step> {
    let saved = found.saved(family);
    let tables = Tables::new(plan, family);
    if !is_wanted {
        return saved.remove().into_iter().collect();
    }
    if saved.is(&tables) {
        return Vec::new();
    }
    if saved.has_all_jumps(&tables) {
        return vec![tables.swap()];
    }
    let make = tables.make(|table, chain| found.made(family, table, chain));
    saved.remove().into_iter().chain([make]).collect()
}

/// Removes everything that [`up`] and [`change`] made, also a part of it, and empty chains of our names
/// (a flush leaves them); nothing else. Does nothing, and says so, where nothing is there.
///
/// The marks of connections stay: [`Removed::marks`] says which they are. Packets that wait in a queue may
/// be lost: the kernel drops them when a chain that it leads packets to goes.
///
/// # Errors
/// A program is missing, or a step failed; the others were done.
pub fn down(host: &Host) -> Result<Removed, RulesError> {
    let found = Found::look(host)?;
    let mut removed = Removed {
        things: Vec::new(),
        marks: found.marks(),
        left: found.foreign(),
    };
    let mut failed = None;
    let mut run = |step: Step, what: String, things: &mut Vec<String>| match host.run(&step) {
        Ok(_) => things.push(what),
        Err(error) => failed = failed.take().or(Some(error)),
    };
    for saved in found.all_saved() {
        if let Some(step) = saved.remove() {
            let what = saved.family.restore().trim_end_matches("-restore");
            run(step, format!("chains of {what}"), &mut removed.things);
        }
    }
    if found
        .tables
        .ours
        .as_ref()
        .is_some_and(|it| it.sign.is_some())
    {
        let what = "table inet linkweir of nft".to_owned();
        run(table::remove(), what, &mut removed.things);
    }
    for &family in &found.routed {
        let what = format!("rule and table of routing ({})", family.nft());
        run(route::remove(family), what, &mut removed.things);
    }
    for root in found.our_roots() {
        let what = format!("classes of {}", root.interface);
        run(shape::remove(&root.interface), what, &mut removed.things);
    }
    for saved in found.all_saved() {
        for name in saved.made() {
            if let Err(error) = remove_empty(host, saved.family, name) {
                failed = failed.or(Some(error));
            }
        }
    }
    failed.map_or(Ok(removed), |error| Err(error.into()))
}

/// Removes a table of iptables that we made and that nobody used since.
fn remove_empty(host: &Host, family: Family, name: &str) -> Result<(), CommandError> {
    if table::is_empty(host, family.nft(), name)? {
        host.run(&Step::new("nft", &["delete", "table", family.nft(), name]))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::plan::tests::plan;

    #[test]
    fn who_may_not_look_can_read_the_steps() {
        let nowhere = Host::namespace("no such namespace");
        let programs = |plan: &Plan| -> Vec<&str> {
            let steps = dry_run(&nowhere, plan).unwrap();
            steps.iter().map(|step| step.program).collect()
        };
        let mut plan = plan();
        let all = ["tc", "tc", "nft", "ip6tables-restore", "iptables-restore"];
        assert_eq!(programs(&plan), all);
        plan.classes.clear();
        plan.has_ipv6 = false;
        assert_eq!(programs(&plan), ["nft", "iptables-restore"]);
        plan.has_tcp = false;
        plan.has_udp = false;
        assert!(matches!(dry_run(&nowhere, &plan), Err(RulesError::Plan(_))));
        assert!(matches!(up(&nowhere, &plan), Err(RulesError::Plan(_))));
        assert!(matches!(down(&nowhere), Err(RulesError::Command(_))));
    }
}
