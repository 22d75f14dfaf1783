//! What the kernel says of rules that are up, and of what they need.

use std::collections::BTreeMap;

use linkweir_engine::effect::{Mark, MarkLayout};
use linkweir_sys::netlink::NetfilterSocket;

use super::elements::{Element, StandingError, elements, queued};
use super::host::Host;

use super::plan::Plan;
use super::sign::{Sign, read_name};
use super::{rate, table, xtables};

/// What a rule has done since `up`, in the kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RuleCount {
    /// The decision, and the number of the rule.
    pub mark: Mark,
    /// Packets of connections that carried this mark when they came; all of them where the decision is
    /// to reject. With segmentation offload one of them is several of the link.
    pub packets: u64,
    /// Their bytes, from the IP header on.
    pub bytes: u64,
}

/// What is up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Standing {
    /// Which bits of marks are ours.
    pub marks: MarkLayout,
    /// The rules' names and numbers: what [`super::assign_numbers`] goes on from.
    pub rules: BTreeMap<String, u16>,
    /// The fingerprint of the plan that they were made of.
    plan: u64,
    /// What decided connections have counted since `up`, by mark.
    pub counts: Vec<RuleCount>,
    /// What was dropped because a client exceeded its rate, by mark.
    pub over_rate: Vec<RuleCount>,
    /// What passed without a rate because a table of clients was full, by mark.
    pub without_rate: Vec<RuleCount>,
    /// Packets that were sent to the queues, also those for which these had no room, since the rules were last
    /// made or changed; `None` where iptables does not keep its rules in `nf_tables`.
    pub queued: Option<u64>,
}

impl Standing {
    /// Whether they were made of this plan.
    #[must_use]
    pub fn is_of(&self, plan: &Plan) -> bool {
        self.plan == table::sign(plan).plan
    }
}

/// What is up; `None` where nothing is. Whether all of it is there, only [`super::up`] tells.
///
/// Asks the kernel itself, in the network namespace of the calling thread; starts no program.
///
/// # Errors
/// [`StandingError`].
pub fn standing() -> Result<Option<Standing>, StandingError> {
    let socket = NetfilterSocket::open()?;
    let Some(kept) = elements(&socket, table::OURS, table::RULES)? else {
        return Ok(None);
    };
    let first = kept.iter().find(|one| one.key == 0);
    let sign = first.and_then(|one| Sign::read(one.comment.as_deref()?));
    let Some(Sign { marks, plan }) = sign else {
        return Ok(None);
    };
    let rule = |one: &Element| {
        let number = marks.read(one.key).rule;
        (number > 0).then_some((read_name(one.comment.as_deref()?)?, number))
    };
    let count = |one: Element| {
        let (packets, bytes) = one.count?;
        Some(RuleCount {
            mark: marks.read(one.key),
            packets,
            bytes,
        })
    };
    let counts = |set: &str| {
        let counted = elements(&socket, table::OURS, set)?.into_iter().flatten();
        Ok::<_, StandingError>(counted.filter_map(count).collect())
    };
    Ok(Some(Standing {
        marks,
        rules: kept.iter().filter_map(rule).collect(),
        plan,
        counts: counts(table::TRAFFIC)?,
        over_rate: counts(rate::OVER)?,
        without_rate: counts(rate::WITHOUT)?,
        queued: queued(&socket, xtables::MANGLE, xtables::DECIDE)?,
    }))
}

/// What keeps a plan from having any effect, one sentence each. Nothing of it is changed here: whether a
/// machine forwards packets is not ours to say.
#[must_use]
pub fn warnings(host: &Host, plan: &Plan) -> Vec<String> {
    let read = |path: &str| host.read(path).ok();
    let is_off = |path: &str| read(path).is_some_and(|text| text.trim() == "0");
    let mut said = Vec::new();
    if is_off("/proc/sys/net/ipv4/ip_forward") {
        said.push("IPv4 is not forwarded: net.ipv4.ip_forward is 0".to_owned());
    }
    if plan.has_ipv6 && is_off("/proc/sys/net/ipv6/conf/all/forwarding") {
        said.push("IPv6 is not forwarded: net.ipv6.conf.all.forwarding is 0".to_owned());
    }
    if read("/proc/sys/net/netfilter/nf_conntrack_max").is_none() {
        let why = "connections are not tracked, so every packet is queued: nf_conntrack is missing";
        said.push(why.to_owned());
    }
    let missing = missing_interfaces(host, plan).into_iter();
    said.extend(missing.map(|name| format!("interface {name} is not there (yet)")));
    said
}

/// Interfaces of a plan that are not there; none where that cannot be known.
pub(super) fn missing_interfaces<'a>(host: &Host, plan: &'a Plan) -> Vec<&'a str> {
    let Ok(text) = host.read("/proc/net/dev") else {
        return Vec::new();
    };
    // A name may have a colon in it; what is counted has none.
    let names: Vec<&str> = (text.lines())
        .filter_map(|line| Some(line.rsplit_once(':')?.0.trim()))
        .collect();
    let wanted = plan.interfaces.iter().map(String::as_str);
    wanted.filter(|name| !names.contains(name)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::plan::tests::plan;

    #[test]
    fn an_interface_that_is_missing_is_said() {
        let mut plan = plan();
        plan.interfaces = vec!["lo".to_owned(), "nosuch0".to_owned()];
        let host = Host::here();
        assert_eq!(missing_interfaces(&host, &plan), ["nosuch0"]);
        let said = warnings(&host, &plan);
        let line = "interface nosuch0 is not there (yet)";
        assert!(said.iter().any(|one| one == line), "{said:?}");
    }
}
