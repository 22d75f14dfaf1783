//! What the kernel is to do: the part of a policy that rules, classes and maps can carry out.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::RangeInclusive;

use linkweir_engine::effect::MarkLayout;
use linkweir_record::Prefix;
use thiserror::Error;

use super::rate;

/// Longest name of a rule in the kernel, bytes, as written there (see `names`).
const LONGEST_NAME: usize = 100;
/// Longest name of an interface, bytes (`IFNAMSIZ` without its NUL).
const LONGEST_INTERFACE: usize = 15;
/// Slowest and fastest class, bit/s: below, one packet takes seconds; above, no clock is exact enough.
const RATES: RangeInclusive<u64> = 8_000..=100_000_000_000;

/// What the kernel is to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    /// Which bits of marks are ours.
    pub marks: MarkLayout,
    /// The queues that packets of undecided and inspected connections go to. Both directions of a
    /// connection go to the same one.
    pub queues: RangeInclusive<u16>,
    /// Whether TCP is looked at.
    pub has_tcp: bool,
    /// Whether UDP is looked at.
    pub has_udp: bool,
    /// Whether IPv6 is looked at.
    pub has_ipv6: bool,
    /// Whether packets pass while no program serves the queue.
    pub is_fail_open: bool,
    /// Forwarded traffic that comes in or goes out here is looked at; all of it where this is empty.
    /// Classes are made on each of them.
    pub interfaces: Vec<String>,
    /// Traffic from or to these is not looked at.
    pub exclude: Vec<Prefix>,
    /// Rules whose traffic is slowed down.
    pub classes: Vec<ShapeClass>,
    /// Rules that lead connections to a local proxy.
    pub redirects: Vec<Redirect>,
    /// Rules under which each client has a rate of its own.
    pub rates: Vec<ClientRate>,
    /// The rules' names and numbers, so that they can be read back (see [`super::Standing::rules`]).
    pub rules: BTreeMap<String, u16>,
}

/// The traffic of a rule is given a rate, on the way out of each interface: so each direction of a
/// connection has that rate of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ShapeClass {
    /// Number of the rule.
    pub rule: u16,
    /// Bits per second on the link, link-layer headers included.
    pub rate_bits: u64,
}

/// Each client of a rule has a rate, for all its connections under the rule together, in each direction. An IPv6 client
/// is its /64.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClientRate {
    /// Number of the rule.
    pub rule: u16,
    /// IP bytes per second.
    pub rate_bytes: u64,
    /// IP bytes that a client may have at once after a pause, beside those of one second of the rate.
    pub burst_bytes: u64,
}

/// Connections like those that a rule rejects go to a proxy of this machine, by its port: those of the
/// same client to the same address and port, from the next one on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Redirect {
    /// Number of the rule.
    pub rule: u16,
    /// Where the proxy listens, for addresses that are not its own (`IP_TRANSPARENT`).
    pub port: u16,
}

/// Why a plan cannot be carried out.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum PlanError {
    /// The range of queues is empty.
    #[error("no queue: {0}..={1}")]
    NoQueue(u16, u16),
    /// Neither TCP nor UDP.
    #[error("neither TCP nor UDP is to be looked at")]
    NoProtocol,
    /// Not the name of an interface.
    #[error("{0:?} cannot be the name of an interface")]
    Interface(String),
    /// Classes live on interfaces.
    #[error("shaping needs interfaces to be named")]
    NoInterface,
    /// A number that no mark can hold.
    #[error("{0} is not a valid rule number: 1 to {max}", max = MarkLayout::MAX_RULE)]
    RuleNumber(u16),
    /// Two names of one number, or two classes of one rule.
    #[error("rule {0} is there twice")]
    Twice(u16),
    /// A name that the kernel cannot keep.
    #[error("the name of rule {0} is empty or longer than {LONGEST_NAME} bytes")]
    Name(u16),
    /// More rates of clients than there may be.
    #[error("more than {} rules have a rate for each client", rate::MAX_RATES)]
    TooManyRates,
    /// A rate of clients that the kernel cannot keep.
    #[error(
        "rule {rule}: {rate_bytes} bytes per second with a burst of {burst_bytes} bytes are not a valid rate: {} to {} bytes per second, and a burst of at most {} seconds of that and at most {} bytes",
        rate::RATES.start(), rate::RATES.end(), rate::LONGEST_FILL, rate::BURSTS.end()
    )]
    ClientRate {
        /// Number of the rule.
        rule: u16,
        /// The rate.
        rate_bytes: u64,
        /// The burst.
        burst_bytes: u64,
    },
    /// A rate that no class can have.
    #[error(
        "rule {rule}: {rate_bits} bit/s is not a valid rate: {slowest} to {fastest}",
        slowest = RATES.start(),
        fastest = RATES.end()
    )]
    Rate {
        /// Number of the rule.
        rule: u16,
        /// The rate, bit/s.
        rate_bits: u64,
    },
}

impl Plan {
    /// Whether the plan can be carried out.
    ///
    /// # Errors
    /// The first thing that is wrong with it.
    pub fn check(&self) -> Result<(), PlanError> {
        if self.queues.is_empty() {
            return Err(PlanError::NoQueue(*self.queues.start(), *self.queues.end()));
        }
        if !self.has_tcp && !self.has_udp {
            return Err(PlanError::NoProtocol);
        }
        if let Some(name) = self.interfaces.iter().find(|name| !is_interface(name)) {
            return Err(PlanError::Interface(name.clone()));
        }
        if self.interfaces.is_empty() && !self.classes.is_empty() {
            return Err(PlanError::NoInterface);
        }
        self.check_rules()?;
        self.check_rates()?;
        self.check_classes()
    }

    fn check_rates(&self) -> Result<(), PlanError> {
        if self.rates.len() > rate::MAX_RATES {
            return Err(PlanError::TooManyRates);
        }
        let mut seen = BTreeSet::new();
        for &ClientRate {
            rule,
            rate_bytes,
            burst_bytes,
        } in &self.rates
        {
            number_of_a_rule(rule)?;
            if !seen.insert(rule) {
                return Err(PlanError::Twice(rule));
            }
            let is_kept = burst_bytes <= rate_bytes.saturating_mul(rate::LONGEST_FILL);
            if !rate::RATES.contains(&rate_bytes)
                || !rate::BURSTS.contains(&burst_bytes)
                || !is_kept
            {
                return Err(PlanError::ClientRate {
                    rule,
                    rate_bytes,
                    burst_bytes,
                });
            }
        }
        Ok(())
    }

    fn check_rules(&self) -> Result<(), PlanError> {
        let mut seen = BTreeSet::new();
        for (name, &number) in &self.rules {
            number_of_a_rule(number)?;
            if !seen.insert(number) {
                return Err(PlanError::Twice(number));
            }
            if name.is_empty() || super::sign::written_name(name).len() > LONGEST_NAME {
                return Err(PlanError::Name(number));
            }
        }
        Ok(())
    }

    fn check_classes(&self) -> Result<(), PlanError> {
        let mut seen = BTreeSet::new();
        for redirect in &self.redirects {
            number_of_a_rule(redirect.rule)?;
        }
        for &ShapeClass { rule, rate_bits } in &self.classes {
            number_of_a_rule(rule)?;
            if !seen.insert(rule) {
                return Err(PlanError::Twice(rule));
            }
            if !RATES.contains(&rate_bits) {
                return Err(PlanError::Rate { rule, rate_bits });
            }
        }
        Ok(())
    }
}

fn number_of_a_rule(number: u16) -> Result<(), PlanError> {
    if (1..=MarkLayout::MAX_RULE).contains(&number) {
        Ok(())
    } else {
        Err(PlanError::RuleNumber(number))
    }
}

/// Stricter than the kernel: a name that is also a word of `iptables` and `tc`, with no wildcard (`+`)
/// and no option (`-`) in it.
fn is_interface(name: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._@:-".contains(&byte);
    (1..=LONGEST_INTERFACE).contains(&name.len())
        && name.bytes().all(plain)
        && !name.starts_with(['-', '.'])
}

/// More rules than a mark can tell apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("{0} rules are more than a mark can tell apart: {max}", max = MarkLayout::MAX_RULE)]
pub struct TooManyRules(pub usize);

/// Gives each name a number, from 1 on. A name that had one keeps it. A number that another name had
/// before is given again only when no other is left: connections may still carry it.
///
/// # Errors
/// There are more names than numbers.
pub fn assign_numbers<'a>(
    previous: &BTreeMap<String, u16>,
    names: impl IntoIterator<Item = &'a str>,
) -> Result<BTreeMap<String, u16>, TooManyRules> {
    let all = 1..=MarkLayout::MAX_RULE;
    let names: BTreeSet<&str> = names.into_iter().collect();
    let mut numbers: BTreeMap<String, u16> = BTreeMap::new();
    let mut taken = BTreeSet::new();
    for &name in &names {
        if let Some(&number) = previous.get(name)
            && all.contains(&number)
            && taken.insert(number)
        {
            numbers.insert(name.to_owned(), number);
        }
    }
    let once: BTreeSet<u16> = previous.values().copied().collect();
    let fresh = all.clone().filter(|number| !once.contains(number));
    let freed = all.filter(|number| once.contains(number) && !taken.contains(number));
    let mut left = fresh.chain(freed);
    for &name in &names {
        if !numbers.contains_key(name) {
            let number = left.next().ok_or(TooManyRules(names.len()))?;
            numbers.insert(name.to_owned(), number);
        }
    }
    Ok(numbers)
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// Two interfaces, both protocols, two classes.
    pub(in super::super) fn plan() -> Plan {
        Plan {
            marks: MarkLayout::default(),
            queues: 0..=1,
            has_tcp: true,
            has_udp: true,
            has_ipv6: true,
            is_fail_open: true,
            interfaces: vec!["lan0".to_owned(), "wan0".to_owned()],
            exclude: Vec::new(),
            classes: vec![
                ShapeClass {
                    rule: 2,
                    rate_bits: 10_000_000,
                },
                ShapeClass {
                    rule: 17,
                    rate_bits: 1_000_000_000,
                },
            ],
            redirects: Vec::new(),
            rates: Vec::new(),
            rules: [("http", 1), ("bittorrent", 2), ("edonkey", 17)]
                .map(|(name, number)| (name.to_owned(), number))
                .into(),
        }
    }

    fn with(change: impl FnOnce(&mut Plan)) -> Result<(), PlanError> {
        let mut plan = plan();
        change(&mut plan);
        plan.check()
    }

    #[test]
    fn a_plan_is_checked() {
        assert_eq!(plan().check(), Ok(()));
        #[expect(clippy::reversed_empty_ranges, reason = "an empty one is the point")]
        let none = 3..=2;
        assert_eq!(with(|p| p.queues = none), Err(PlanError::NoQueue(3, 2)));
        let neither = |p: &mut Plan| (p.has_tcp, p.has_udp) = (false, false);
        assert_eq!(with(neither), Err(PlanError::NoProtocol));
        assert_eq!(with(|p| p.interfaces.clear()), Err(PlanError::NoInterface));
    }

    #[test]
    fn rules_have_numbers_of_their_own() {
        let add = |name: &str, number| {
            let name = name.to_owned();
            with(move |p| p.rules.extend([(name, number)]))
        };
        assert_eq!(add("msn", 3), Ok(()));
        assert_eq!(add("msn", 2), Err(PlanError::Twice(2)));
        assert_eq!(add("msn", 0), Err(PlanError::RuleNumber(0)));
        assert_eq!(add("msn", 512), Err(PlanError::RuleNumber(512)));
        assert_eq!(add("", 3), Err(PlanError::Name(3)));
        assert_eq!(add(&"ü".repeat(20), 3), Err(PlanError::Name(3)));
        let class = |rule, rate_bits| ShapeClass { rule, rate_bits };
        assert_eq!(
            with(|p| p.classes.push(class(2, 8_000))),
            Err(PlanError::Twice(2))
        );
        let slow = PlanError::Rate {
            rule: 3,
            rate_bits: 0,
        };
        assert_eq!(with(|p| p.classes.push(class(3, 0))), Err(slow));
        let client = |rule, rate_bytes, burst_bytes| ClientRate {
            rule,
            rate_bytes,
            burst_bytes,
        };
        for (rates, expected) in [
            (
                vec![client(2, 1_000, 120_000), client(1, 12_500_000_000, 1)],
                Ok(()),
            ),
            (
                vec![client(2, 1_000, 1), client(2, 1_000, 1)],
                Err(PlanError::Twice(2)),
            ),
            (vec![client(0, 1_000, 1)], Err(PlanError::RuleNumber(0))),
            (
                (1..66).map(|rule| client(rule, 1_000, 1)).collect(),
                Err(PlanError::TooManyRates),
            ),
        ] {
            assert_eq!(with(|p| p.rates = rates), expected);
        }
        for (rate, burst) in [(999, 1), (1_000, 0), (1_000, 120_001), (1 << 40, 1 << 32)] {
            let checked = with(|p| p.rates.push(client(2, rate, burst)));
            assert!(
                matches!(checked, Err(PlanError::ClientRate { .. })),
                "{rate} {burst}"
            );
        }
    }

    #[test]
    fn names_of_interfaces_are_no_words_of_a_command() {
        for name in ["eth0", "br-lan", "ppp0", "eth0.100", "wg_0"] {
            assert!(is_interface(name), "{name}");
        }
        for name in [
            "",
            "-j",
            "eth+",
            "a b",
            "a/b",
            "sixteen-letters!",
            "a\n",
            "..",
            "abcdefghijklmnop",
        ] {
            assert!(!is_interface(name), "{name}");
        }
    }

    fn numbers(of: &[(&str, u16)]) -> BTreeMap<String, u16> {
        of.iter()
            .map(|&(name, number)| (name.to_owned(), number))
            .collect()
    }

    #[test]
    fn names_keep_their_numbers() {
        let first = assign_numbers(&BTreeMap::new(), ["http", "msn", "edonkey"]).unwrap();
        assert_eq!(first, numbers(&[("edonkey", 1), ("http", 2), ("msn", 3)]));
        let second = assign_numbers(&first, ["msn", "bittorrent", "http"]).unwrap();
        // 1 was that of edonkey: connections may carry it.
        assert_eq!(
            second,
            numbers(&[("bittorrent", 4), ("http", 2), ("msn", 3)])
        );
    }

    #[test]
    fn numbers_end() {
        let many: Vec<String> = (0..u32::from(MarkLayout::MAX_RULE))
            .map(|number| format!("rule {number}"))
            .collect();
        let full = assign_numbers(&BTreeMap::new(), many.iter().map(String::as_str)).unwrap();
        assert_eq!(full.len(), 511);
        assert_eq!(full.values().max(), Some(&511));
        let last = full.get("rule 7").copied();
        let others = many
            .iter()
            .map(String::as_str)
            .filter(|name| *name != "rule 7");
        let again = assign_numbers(&full, others.chain(["new"])).unwrap();
        assert_eq!(again.get("new").copied(), last);
        let one_more = many.iter().map(String::as_str).chain(["one more"]);
        assert_eq!(assign_numbers(&full, one_more), Err(TooManyRules(512)));
    }
}
