//! The chains of iptables and ip6tables, as text for `iptables-restore`.
//!
//! ```text
//! mangle FORWARD     ─► LINKWEIR-FORWARD   which traffic
//!                         └► LINKWEIR-DECIDE  mark: pass, drop, on to the filter table, or queue
//! filter FORWARD     ─► LINKWEIR-REJECT    decision reject: answer it (only this table can)
//! mangle POSTROUTING ─► LINKWEIR-SAVE      the mark of the verdict becomes that of the connection
//! ```
//! A packet of a connection that passes goes no further than the first rule, and does not get the mark, so that
//! it is not saved again behind: most packets of a gateway are such. Packets that the kernel does not track have
//! no connection that passes.
//!
//! Any other packet comes to `LINKWEIR-DECIDE` with no mark of ours and gets that of its connection. One that has
//! a mark already comes again (`NF_REPEAT`): its mark is the verdict, and becomes that of the connection.
//! A packet that is accepted with a mark goes on behind this table, so that mark is kept at the last hook.
//! There, "inspect" does not replace a decision that another packet of the connection brought meanwhile.

use std::fmt::Write as _;

use linkweir_engine::effect::{Decision, Mark, MarkLayout};
use linkweir_record::{IpNet, Prefix};

use super::host::Step;
use super::plan::Plan;
use super::sign::{Made, Sign, fingerprint};

const FORWARD: &str = "LINKWEIR-FORWARD";
/// The chain that sends packets to the queues, and its table.
pub(super) const DECIDE: &str = "LINKWEIR-DECIDE";
pub(super) const MANGLE: &str = "mangle";
const SAVE: &str = "LINKWEIR-SAVE";
const REJECT: &str = "LINKWEIR-REJECT";
/// The names of all our chains.
pub(super) const OURS: [&str; 4] = [FORWARD, DECIDE, SAVE, REJECT];

/// The version of IP.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Family {
    V4,
    V6,
}

impl Family {
    pub(super) const ALL: [Self; 2] = [Self::V4, Self::V6];

    /// The program that says what is there.
    pub(super) const fn save(self) -> &'static str {
        match self {
            Self::V4 => "iptables-save",
            Self::V6 => "ip6tables-save",
        }
    }

    /// The program that changes it.
    pub(super) const fn restore(self) -> &'static str {
        match self {
            Self::V4 => "iptables-restore",
            Self::V6 => "ip6tables-restore",
        }
    }

    /// The name of the family among the tables of nft.
    pub(super) const fn nft(self) -> &'static str {
        match self {
            Self::V4 => "ip",
            Self::V6 => "ip6",
        }
    }

    const fn has(self, network: &Prefix) -> bool {
        matches!(
            (self, network.0),
            (Self::V4, IpNet::V4(_)) | (Self::V6, IpNet::V6(_))
        )
    }

    const fn unreachable(self) -> &'static str {
        match self {
            Self::V4 => "icmp-port-unreachable",
            Self::V6 => "icmp6-port-unreachable",
        }
    }
}

/// A way into our chains.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Jump {
    /// The chain of the kernel.
    pub from: &'static str,
    /// Which packets, ending with a blank.
    condition: String,
    to: &'static str,
}

/// Our part of a table. The first rule of the first chain carries our sign.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Table {
    pub name: &'static str,
    pub jumps: Vec<Jump>,
    chains: Vec<(&'static str, Vec<String>)>,
}

impl Table {
    /// How many rules our chains have.
    pub(super) fn rules(&self) -> usize {
        self.chains.iter().map(|(_, rules)| rules.len()).sum()
    }
}

/// Our part of the tables of a family. The filter table comes first: packets are queued when all is there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Tables {
    pub family: Family,
    pub sign: Sign,
    pub tables: [Table; 2],
}

impl Tables {
    pub(super) fn new(plan: &Plan, family: Family) -> Self {
        let tables = [filter(plan, family), mangle(plan, family)];
        let mut it = Self {
            family,
            sign: Sign {
                marks: plan.marks,
                plan: 0,
            },
            tables,
        };
        it.sign.plan = fingerprint(&it.text(|_, _| Some(Made::Nothing)));
        it
    }

    /// Makes all of it; `made` says what is to be made for a jump out of a table and a chain.
    pub(super) fn make(&self, made: impl Fn(&str, &str) -> Made) -> Step {
        self.step(self.text(|table, from| Some(made(table, from))))
    }

    /// Makes the chains anew, without a moment in which they are not there.
    pub(super) fn swap(&self) -> Step {
        self.step(self.text(|_, _| None))
    }

    fn step(&self, text: String) -> Step {
        restore(self.family, text)
    }

    fn text(&self, made: impl Fn(&str, &str) -> Option<Made>) -> String {
        let mut text = String::new();
        for table in &self.tables {
            let mut sign = Some(self.sign.written());
            let mut line = |line: String| {
                // Writing to a text cannot fail.
                writeln!(text, "{line}").unwrap_or_default();
            };
            line(format!("*{}", table.name));
            for (chain, _) in &table.chains {
                line(format!(":{chain} - [0:0]"));
            }
            for (chain, rules) in &table.chains {
                for rule in rules {
                    let comment = sign
                        .take()
                        .map(|sign| format!(" -m comment --comment \"{sign}\""));
                    line(format!("-A {chain} {rule}{}", comment.unwrap_or_default()));
                }
            }
            for Jump {
                from,
                condition,
                to,
            } in &table.jumps
            {
                if let Some(made) = made(table.name, from) {
                    line(format!(
                        "-I {from} 1 {condition}-m comment --comment \"{}\" -j {to}",
                        made.written()
                    ));
                }
            }
            line("COMMIT".to_owned());
        }
        text
    }
}

/// Gives text to the program of a family. It waits for others who change the tables.
pub(super) fn restore(family: Family, text: String) -> Step {
    Step::reading(family.restore(), &["--wait", "10", "--noflush"], text)
}

fn filter(plan: &Plan, family: Family) -> Table {
    let reject = decision(plan.marks, Decision::Reject);
    Table {
        name: "filter",
        jumps: vec![Jump {
            from: "FORWARD",
            condition: format!("-m mark --mark {reject} "),
            to: REJECT,
        }],
        chains: vec![(
            REJECT,
            vec![
                // A reset is answered by nobody, and may go on.
                "-p tcp -m tcp ! --tcp-flags RST RST -j REJECT --reject-with tcp-reset".to_owned(),
                format!("-p udp -j REJECT --reject-with {}", family.unreachable()),
            ],
        )],
    }
}

fn mangle(plan: &Plan, family: Family) -> Table {
    let mask = format!("{:#x}", plan.marks.mask());
    Table {
        name: MANGLE,
        jumps: vec![
            Jump {
                from: "FORWARD",
                condition: String::new(),
                to: FORWARD,
            },
            Jump {
                from: "POSTROUTING",
                condition: format!("-m mark ! --mark 0x0/{mask} "),
                to: SAVE,
            },
        ],
        chains: vec![
            (DECIDE, decide(plan)),
            (FORWARD, choose_traffic(plan, family)),
            (SAVE, save(plan.marks)),
        ],
    }
}

fn choose_traffic(plan: &Plan, family: Family) -> Vec<String> {
    // A verdict on a packet that comes again stands above what was decided meanwhile.
    let mut rules = vec![format!(
        "-m mark --mark 0x0/{:#x} -m connmark --mark {} -j RETURN",
        plan.marks.mask(),
        decision(plan.marks, Decision::Pass)
    )];
    for network in plan.exclude.iter().filter(|network| family.has(network)) {
        rules.extend(["-s", "-d"].map(|which| format!("{which} {network} -j RETURN")));
    }
    let ways = plan
        .interfaces
        .iter()
        .flat_map(|name| [format!("-i {name} "), format!("-o {name} ")]);
    let ways: Vec<String> = if plan.interfaces.is_empty() {
        vec![String::new()]
    } else {
        ways.collect()
    };
    for way in ways {
        for (protocol, is_wanted) in [("tcp", plan.has_tcp), ("udp", plan.has_udp)] {
            if is_wanted {
                // Goes there and does not come back: no packet is looked at twice.
                rules.push(format!("{way}-p {protocol} -g {DECIDE}"));
            }
        }
    }
    rules
}

fn decide(plan: &Plan) -> Vec<String> {
    let is = |which| decision(plan.marks, which);
    let mask = format!("{:#x}", plan.marks.mask());
    let (first, last) = (plan.queues.start(), plan.queues.end());
    let queue = if first == last {
        format!("--queue-num {first}")
    } else {
        // By addresses: both directions of a connection go to the same queue. With
        // --queue-cpu-fanout they would go where they come in.
        format!("--queue-balance {first}:{last}")
    };
    let bypass = if plan.is_fail_open {
        " --queue-bypass"
    } else {
        ""
    };
    vec![
        format!("-m mark ! --mark 0x0/{mask} {}", keep(plan.marks)),
        format!(
            "-m mark --mark 0x0/{mask} -j CONNMARK --restore-mark --nfmask {mask} --ctmask {mask}"
        ),
        format!("-m mark --mark {} -j RETURN", is(Decision::Pass)),
        format!("-m mark --mark {} -j DROP", is(Decision::Drop)),
        format!("-m mark --mark {} -j RETURN", is(Decision::Reject)),
        format!("-j NFQUEUE {queue}{bypass}"),
    ]
}

fn save(marks: MarkLayout) -> Vec<String> {
    let decided = format!("0x0/{:#x}", decided_bits(marks));
    let reject = decision(marks, Decision::Reject);
    vec![
        format!("-m mark --mark {decided} -m connmark ! --mark {decided} -j RETURN"),
        keep(marks),
        // Where somebody accepts packets in the filter table before they come to us.
        format!("-m mark ! --mark {reject} -j RETURN"),
        "-p udp -j DROP".to_owned(),
        "-p tcp -m tcp ! --tcp-flags RST RST -j DROP".to_owned(),
    ]
}

fn keep(marks: MarkLayout) -> String {
    let mask = marks.mask();
    format!("-j CONNMARK --save-mark --nfmask {mask:#x} --ctmask {mask:#x}")
}

/// A match for a decision by any rule.
fn decision(marks: MarkLayout, decision: Decision) -> String {
    let bits = marks.bits(Mark { decision, rule: 0 });
    format!("{bits:#x}/{:#x}", marks.decision_mask())
}

/// The bits that are 0 in "undecided" and "inspect", and not all 0 in the others.
fn decided_bits(marks: MarkLayout) -> u32 {
    [Decision::Pass, Decision::Drop, Decision::Reject]
        .map(|decision| marks.bits(Mark { decision, rule: 0 }))
        .into_iter()
        .fold(0, |all, bits| all | bits)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::plan::tests::plan;

    fn text(plan: &Plan, family: Family) -> String {
        Tables::new(plan, family).make(|_, _| Made::Nothing).input
    }

    #[test]
    fn the_whole_text() {
        let plan = plan();
        let tables = Tables::new(&plan, Family::V4);
        let sign = tables.sign.written();
        let step = tables.make(|table, from| match (table, from) {
            ("filter", _) => Made::Table,
            (_, "POSTROUTING") => Made::Chain,
            _ => Made::Nothing,
        });
        let expected = format!(
            r#"iptables-restore --wait 10 --noflush <<'END'
*filter
:LINKWEIR-REJECT - [0:0]
-A LINKWEIR-REJECT -p tcp -m tcp ! --tcp-flags RST RST -j REJECT --reject-with tcp-reset -m comment --comment "{sign}"
-A LINKWEIR-REJECT -p udp -j REJECT --reject-with icmp-port-unreachable
-I FORWARD 1 -m mark --mark 0x30000/0x70000 -m comment --comment "linkweir gateway made chain table" -j LINKWEIR-REJECT
COMMIT
*mangle
:LINKWEIR-DECIDE - [0:0]
:LINKWEIR-FORWARD - [0:0]
:LINKWEIR-SAVE - [0:0]
-A LINKWEIR-DECIDE -m mark ! --mark 0x0/0xfff0000 -j CONNMARK --save-mark --nfmask 0xfff0000 --ctmask 0xfff0000 -m comment --comment "{sign}"
-A LINKWEIR-DECIDE -m mark --mark 0x0/0xfff0000 -j CONNMARK --restore-mark --nfmask 0xfff0000 --ctmask 0xfff0000
-A LINKWEIR-DECIDE -m mark --mark 0x10000/0x70000 -j RETURN
-A LINKWEIR-DECIDE -m mark --mark 0x20000/0x70000 -j DROP
-A LINKWEIR-DECIDE -m mark --mark 0x30000/0x70000 -j RETURN
-A LINKWEIR-DECIDE -j NFQUEUE --queue-balance 0:1 --queue-bypass
-A LINKWEIR-FORWARD -m mark --mark 0x0/0xfff0000 -m connmark --mark 0x10000/0x70000 -j RETURN
-A LINKWEIR-FORWARD -i lan0 -p tcp -g LINKWEIR-DECIDE
-A LINKWEIR-FORWARD -i lan0 -p udp -g LINKWEIR-DECIDE
-A LINKWEIR-FORWARD -o lan0 -p tcp -g LINKWEIR-DECIDE
-A LINKWEIR-FORWARD -o lan0 -p udp -g LINKWEIR-DECIDE
-A LINKWEIR-FORWARD -i wan0 -p tcp -g LINKWEIR-DECIDE
-A LINKWEIR-FORWARD -i wan0 -p udp -g LINKWEIR-DECIDE
-A LINKWEIR-FORWARD -o wan0 -p tcp -g LINKWEIR-DECIDE
-A LINKWEIR-FORWARD -o wan0 -p udp -g LINKWEIR-DECIDE
-A LINKWEIR-SAVE -m mark --mark 0x0/0x30000 -m connmark ! --mark 0x0/0x30000 -j RETURN
-A LINKWEIR-SAVE -j CONNMARK --save-mark --nfmask 0xfff0000 --ctmask 0xfff0000
-A LINKWEIR-SAVE -m mark ! --mark 0x30000/0x70000 -j RETURN
-A LINKWEIR-SAVE -p udp -j DROP
-A LINKWEIR-SAVE -p tcp -m tcp ! --tcp-flags RST RST -j DROP
-I FORWARD 1 -m comment --comment "linkweir gateway" -j LINKWEIR-FORWARD
-I POSTROUTING 1 -m mark ! --mark 0x0/0xfff0000 -m comment --comment "linkweir gateway made chain" -j LINKWEIR-SAVE
COMMIT
END"#
        );
        assert_eq!(step.to_string(), expected);
        let swap = tables.swap().input;
        assert!(!swap.contains("-I ") && swap.contains(":LINKWEIR-SAVE - "));
    }

    #[test]
    fn all_traffic_closed_and_one_queue() {
        let mut plan = plan();
        plan.interfaces.clear();
        plan.has_udp = false;
        plan.is_fail_open = false;
        plan.queues = 7..=7;
        plan.marks = MarkLayout::from_mask(0xfff).unwrap();
        plan.exclude = vec![
            "192.0.2.0/24".parse().unwrap(),
            "2001:db8::/32".parse().unwrap(),
        ];
        let text = text(&plan, Family::V6);
        assert!(text.contains("\n-A LINKWEIR-DECIDE -j NFQUEUE --queue-num 7\n"));
        assert!(text.contains("icmp6-port-unreachable"));
        let forward: Vec<&str> = text
            .lines()
            .filter_map(|line| line.strip_prefix("-A LINKWEIR-FORWARD "))
            .collect();
        let expected = [
            "-m mark --mark 0x0/0xfff -m connmark --mark 0x1/0x7 -j RETURN",
            "-s 2001:db8::/32 -j RETURN",
            "-d 2001:db8::/32 -j RETURN",
            "-p tcp -g LINKWEIR-DECIDE",
        ];
        assert_eq!(forward, expected);
        assert!(text.contains("--mark 0x2/0x7 -j DROP"));
    }

    #[test]
    fn the_sign_is_that_of_the_text() {
        let sign = |change: &dyn Fn(&mut Plan)| {
            let mut plan = plan();
            change(&mut plan);
            Tables::new(&plan, Family::V4).sign
        };
        let same = sign(&|_| {});
        assert_eq!(sign(&|p| p.classes.clear()), same);
        assert_ne!(sign(&|p| p.is_fail_open = false), same);
        assert_ne!(sign(&|p| p.queues = 0..=3), same);
    }

    #[test]
    fn inspect_and_undecided_have_no_bit_of_a_decision() {
        let marks = MarkLayout::default();
        let decided = decided_bits(marks);
        let bits = |decision| {
            marks.bits(Mark {
                decision,
                rule: 511,
            }) & decided
        };
        assert_eq!([Decision::Undecided, Decision::Inspect].map(bits), [0, 0]);
        for decision in [Decision::Pass, Decision::Drop, Decision::Reject] {
            assert_ne!(bits(decision), 0);
        }
    }
}
