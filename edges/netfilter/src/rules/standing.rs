//! What the kernel says of rules that are up, and of what they need.

use std::collections::BTreeMap;

use linkweir_engine::effect::MarkLayout;

use super::host::{CommandError, Host};
use super::plan::Plan;
use super::step::Step;
use super::table::{self, RuleCount};

/// What is up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Standing {
    /// Which bits of marks are ours.
    pub marks: MarkLayout,
    /// The rules' names and numbers: what [`super::assign_numbers`] goes on from.
    pub rules: BTreeMap<String, u16>,
    /// What decided connections have counted since `up`, by mark.
    pub counts: Vec<RuleCount>,
}

/// What is up; `None` where nothing is. Whether all of it is there, only [`super::up`] tells.
///
/// # Errors
/// `nft` is missing or fails.
pub fn standing(host: &Host) -> Result<Option<Standing>, CommandError> {
    let ours = table::look(host)?.ours;
    Ok(ours.and_then(|ours| {
        Some(Standing {
            marks: ours.sign?.marks,
            rules: ours.rules,
            counts: ours.counts,
        })
    }))
}

/// What keeps a plan from having any effect, one sentence each. Nothing of it is changed here: whether a
/// machine forwards packets is not ours to say.
#[must_use]
pub fn warnings(host: &Host, plan: &Plan) -> Vec<String> {
    let read = |path: &str| host.run(&Step::new("cat", &[path])).ok();
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
    said
}
