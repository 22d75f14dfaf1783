//! Rates of single clients: token buckets of the kernel, one for each client, rule and direction.
//!
//! A connection that is decided goes past user space, so its bytes can be counted in the kernel only: sets that packets
//! fill (`flags dynamic`), each element of which has a `limit` of its own. Packets come here before they are counted and
//! queued, by the mark of their connection; what exceeds the rate is dropped, counted by mark in the set `over-rate`.
//! Who sends too fast by TCP slows down for it. Packets of other connections meet one lookup of their mark, and none
//! where no rule has a rate.
//!
//! A bucket holds what `burst` says and one second of the rate more: so `nft_limit` counts bytes. A packet is up to 64
//! KiB long (segmentation offload), and passes whole or not at all.
//!
//! A bucket that is untouched for as long as it takes to fill is as good as a new one, so nothing is lost when the kernel
//! forgets it after [`FORGOTTEN`]. Clients beyond [`CLIENTS`] in that time have none, and are not limited: their packets
//! are counted in the set `without-rate`.

use std::fmt::Write as _;
use std::ops::RangeInclusive;

use linkweir_engine::effect::{Decision, Mark};

use super::plan::{ClientRate, Plan};

/// Rules that may have one: each has four sets.
pub(super) const MAX_RATES: usize = 64;
/// Bytes per second.
pub(super) const RATES: RangeInclusive<u64> = 1_000..=12_500_000_000;
/// Bytes: the kernel has 32 bits for it.
pub(super) const BURSTS: RangeInclusive<u64> = 1..=u32::MAX as u64;
/// Longest time in which a bucket is full again, seconds.
pub(super) const LONGEST_FILL: u64 = 120;
/// The sets of what was dropped, and of what passed because a table of clients was full.
pub(super) const OVER: &str = "over-rate";
pub(super) const WITHOUT: &str = "without-rate";

/// Clients of a rule, in a family and direction, that have a bucket at the same time.
const CLIENTS: u32 = 65_536;
/// After [`LONGEST_FILL`], and the second of the rate that comes to it.
const FORGOTTEN: &str = "121s";

/// The chains, sets and rules; nothing where no rule has a rate. What there was in buckets is forgotten: an element of a
/// set keeps the rate that it was made with.
pub(super) fn make(plan: &Plan, table: &str, priority: i32) -> String {
    if plan.rates.is_empty() {
        return String::new();
    }
    let mask = plan.marks.mask();
    let mut text = format!(
        "add chain {table} rate {{ type filter hook forward priority {priority}; policy accept; }}\n"
    );
    for set in [OVER, WITHOUT] {
        // Writing to a text cannot fail.
        writeln!(
            text,
            "add set {table} {set} {{ type mark; size 4096; flags dynamic; }}"
        )
        .unwrap_or_default();
    }
    let mut ways = Vec::new();
    for rate in &plan.rates {
        let chain = format!("rate_{}", rate.rule);
        writeln!(text, "add chain {table} {chain}").unwrap_or_default();
        text.push_str(&buckets(plan, table, *rate));
        ways.extend([Decision::Pass, Decision::Inspect].map(|decision| {
            let rule = rate.rule;
            let bits = plan.marks.bits(Mark { decision, rule });
            format!("{bits:#010x} : jump {chain}")
        }));
    }
    writeln!(
        text,
        "add rule {table} rate ct mark and {mask:#010x} vmap {{ {} }}",
        ways.join(", ")
    )
    .unwrap_or_default();
    text
}

/// The sets and rules of one rule. An IPv6 client is its /64.
fn buckets(plan: &Plan, table: &str, rate: ClientRate) -> String {
    let mask = plan.marks.mask();
    let ClientRate {
        rule,
        rate_bytes,
        burst_bytes,
    } = rate;
    let families = [
        (4, "ipv4_addr", "ct original ip saddr"),
        (
            6,
            "ipv6_addr",
            "ct original ip6 saddr and ffff:ffff:ffff:ffff::",
        ),
    ];
    let families = families
        .into_iter()
        .filter(|(version, ..)| *version == 4 || plan.has_ipv6);
    let mut text = String::new();
    for (version, kind, client) in families {
        for (way, direction) in [("up", "original"), ("down", "reply")] {
            let set = format!("rate{version}_{way}_{rule}");
            let of = format!("add rule {table} rate_{rule} ct direction {direction}");
            let count = |set: &str| format!("update @{set} {{ ct mark and {mask:#010x} counter }}");
            // As above.
            write!(
                text,
                "add set {table} {set} {{ type {kind}; size {CLIENTS}; flags dynamic,timeout; timeout {FORGOTTEN}; }}\n\
                 flush set {table} {set}\n\
                 {of} update @{set} {{ {client} limit rate over {rate_bytes} bytes/second burst {burst_bytes} bytes }} \
                 {} drop\n\
                 {of} {client} != @{set} {}\n",
                count(OVER),
                count(WITHOUT)
            )
            .unwrap_or_default();
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::super::plan::tests::plan;
    use super::*;

    #[test]
    fn the_whole_text() {
        let mut plan = plan();
        assert_eq!(make(&plan, "inet t", -152), "");
        plan.has_ipv6 = false;
        plan.rates = vec![ClientRate {
            rule: 2,
            rate_bytes: 1_000_000,
            burst_bytes: 65_536,
        }];
        let expected = "\
            add chain inet t rate { type filter hook forward priority -152; policy accept; }\n\
            add set inet t over-rate { type mark; size 4096; flags dynamic; }\n\
            add set inet t without-rate { type mark; size 4096; flags dynamic; }\n\
            add chain inet t rate_2\n\
            add set inet t rate4_up_2 { type ipv4_addr; size 65536; flags dynamic,timeout; timeout 121s; }\n\
            flush set inet t rate4_up_2\n\
            add rule inet t rate_2 ct direction original update @rate4_up_2 { ct original ip saddr limit rate over 1000000 bytes/second burst 65536 bytes } update @over-rate { ct mark and 0x0fff0000 counter } drop\n\
            add rule inet t rate_2 ct direction original ct original ip saddr != @rate4_up_2 update @without-rate { ct mark and 0x0fff0000 counter }\n\
            add set inet t rate4_down_2 { type ipv4_addr; size 65536; flags dynamic,timeout; timeout 121s; }\n\
            flush set inet t rate4_down_2\n\
            add rule inet t rate_2 ct direction reply update @rate4_down_2 { ct original ip saddr limit rate over 1000000 bytes/second burst 65536 bytes } update @over-rate { ct mark and 0x0fff0000 counter } drop\n\
            add rule inet t rate_2 ct direction reply ct original ip saddr != @rate4_down_2 update @without-rate { ct mark and 0x0fff0000 counter }\n\
            add rule inet t rate ct mark and 0x0fff0000 vmap { 0x00110000 : jump rate_2, 0x00140000 : jump rate_2 }\n";
        assert_eq!(make(&plan, "inet t", -152), expected);
        plan.has_ipv6 = true;
        let text = make(&plan, "inet t", -152);
        let six = "update @rate6_down_2 { ct original ip6 saddr and ffff:ffff:ffff:ffff:: limit rate over 1000000 bytes/second burst 65536 bytes }";
        assert!(text.contains(six), "{text}");
    }
}
