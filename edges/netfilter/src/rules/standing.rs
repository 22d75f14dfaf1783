//! What the kernel says of rules that are up, and of what they need.

use std::collections::BTreeMap;

use linkweir_engine::effect::MarkLayout;

use super::host::{CommandError, Host};
use super::plan::Plan;
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
