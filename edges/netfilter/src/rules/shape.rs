//! Classes that slow traffic down: one queueing discipline of ours at the root of each interface (HTB),
//! a class for each rule that has a rate.
//!
//! What no class is chosen for goes past them all. The class is chosen by the map of [`super::table`],
//! which sets the priority of a packet to the number of its class, and never by a filter of `tc`: a
//! kernel without `CONFIG_CLS_U32_MARK` takes `u32 match mark` without a word and then catches
//! everything.
//!
//! Packets are up to 64 KiB (segmentation offload). HTB takes such a packet whole and then waits until
//! it is paid for, so that
//! - `burst` (what may go at once after a pause) need not hold one: 10 ms of the rate make up for timers
//!   that fire late, and 16 KiB at least;
//! - `quantum` (whose turn it is among classes) is one such packet;
//! - the queue of a class counts bytes (`bfifo`): 200 ms of the rate, and two such packets at least. The
//!   default, 1000 packets, would hold a minute of a slow class.

use std::fmt::Write as _;

use serde_json::Value;

use super::host::Step;
use super::host::{CommandError, Host};
use super::plan::{Plan, ShapeClass};

/// The number of our queueing disciplines, hexadecimal.
pub(super) const HANDLE: &str = "4c57:";
const KIND: &str = "htb";
const MIN_BURST: u64 = 16 * 1024;
const LARGEST_PACKET: u64 = 64 * 1024;
const MIN_QUEUE: u64 = 2 * LARGEST_PACKET;

/// The queueing discipline at the root of an interface, and its leaves where it is ours.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Root {
    pub interface: String,
    pub kind: String,
    pub handle: String,
    /// Numbers of the rules whose classes are there; empty where it is not ours.
    pub classes: Vec<u16>,
}

impl Root {
    /// Whether we made it.
    pub(super) fn is_ours(&self) -> bool {
        self.handle == HANDLE && self.kind == KIND
    }

    /// Whether nobody made it: what the kernel puts there of its own accord has no number.
    pub(super) fn is_default(&self) -> bool {
        self.handle == "0:"
    }
}

/// The roots of all interfaces.
pub(super) fn roots(host: &Host) -> Result<Vec<Root>, CommandError> {
    parse(&host.run(&Step::new("tc", &["-json", "qdisc", "show"]))?)
}

fn parse(json: &str) -> Result<Vec<Root>, CommandError> {
    let list: Vec<Value> = serde_json::from_str(json).map_err(|error| CommandError::Output {
        program: "tc",
        what: error.to_string(),
    })?;
    let text = |one: &Value, key: &str| Some(one.get(key)?.as_str()?.to_owned());
    let mut roots: Vec<Root> = list
        .iter()
        .filter(|one| one.get("root").and_then(Value::as_bool) == Some(true))
        .filter_map(|one| {
            Some(Root {
                interface: text(one, "dev")?,
                kind: text(one, "kind")?,
                handle: text(one, "handle")?,
                classes: Vec::new(),
            })
        })
        .collect();
    for root in roots.iter_mut().filter(|root| root.is_ours()) {
        let class = |one: &Value| {
            let parent = text(one, "parent")?;
            let minor = parent.strip_prefix(HANDLE)?;
            let is_here = text(one, "dev")? == root.interface;
            u16::from_str_radix(minor, 16).ok().filter(|_| is_here)
        };
        root.classes = list.iter().filter_map(class).collect();
    }
    Ok(roots)
}

/// The number of the class of a rule, as `tc` and `nft` write it.
pub(super) fn class_id(rule: u16) -> String {
    format!("{HANDLE}{rule:x}")
}

/// Makes the root of an interface and its classes.
pub(super) fn make(plan: &Plan, interface: &str) -> Step {
    let mut text = format!("qdisc add dev {interface} root handle {HANDLE} {KIND}\n");
    for class in &plan.classes {
        write_class(&mut text, "add", interface, *class);
    }
    batch(text)
}

/// Makes the classes that are not there and gives the others their rates; packets in them stay.
pub(super) fn replace(plan: &Plan, interface: &str) -> Step {
    let mut text = String::new();
    for class in &plan.classes {
        write_class(&mut text, "replace", interface, *class);
    }
    batch(text)
}

/// Removes classes.
pub(super) fn remove_classes(interface: &str, rules: &[u16]) -> Step {
    let mut text = String::new();
    for &rule in rules {
        // Writing to a text cannot fail.
        writeln!(text, "class del dev {interface} classid {}", class_id(rule)).unwrap_or_default();
    }
    batch(text)
}

/// Removes the root with all classes.
pub(super) fn remove(interface: &str) -> Step {
    Step::new(
        "tc",
        &["qdisc", "del", "dev", interface, "root", "handle", HANDLE],
    )
}

fn batch(text: String) -> Step {
    Step::reading("tc", &["-batch", "-"], text)
}

fn write_class(text: &mut String, verb: &str, interface: &str, class: ShapeClass) {
    let id = class_id(class.rule);
    let rate = class.rate_bits;
    let bytes = rate / 8;
    let burst = (bytes / 100).max(MIN_BURST);
    let limit = (bytes / 5).max(MIN_QUEUE);
    let lines = format!(
        "class {verb} dev {interface} parent {HANDLE} classid {id} {KIND} rate {rate}bit \
         burst {burst} cburst {burst} quantum {LARGEST_PACKET}\n\
         qdisc {verb} dev {interface} parent {id} bfifo limit {limit}\n"
    );
    text.push_str(&lines);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::plan::tests::plan;

    #[test]
    fn a_class_is_two_lines() {
        let step = make(&plan(), "lan0");
        let expected = "tc -batch - <<'END'\n\
            qdisc add dev lan0 root handle 4c57: htb\n\
            class add dev lan0 parent 4c57: classid 4c57:2 htb rate 10000000bit burst 16384 cburst 16384 quantum 65536\n\
            qdisc add dev lan0 parent 4c57:2 bfifo limit 250000\n\
            class add dev lan0 parent 4c57: classid 4c57:11 htb rate 1000000000bit burst 1250000 cburst 1250000 quantum 65536\n\
            qdisc add dev lan0 parent 4c57:11 bfifo limit 25000000\n\
            END";
        assert_eq!(step.to_string(), expected);
        let gone = remove_classes("wan0", &[2, 17]).to_string();
        assert!(gone.contains("class del dev wan0 classid 4c57:11\n"));
    }

    #[test]
    fn ours_theirs_and_nobodys_are_told_apart() {
        let json = r#"[{"kind":"noqueue","handle":"0:","dev":"lo","root":true,"refcnt":2,"options":{}},
            {"kind":"htb","handle":"4c57:","dev":"a","root":true,"options":{}},
            {"kind":"bfifo","handle":"8001:","dev":"a","parent":"4c57:1ff","options":{"limit":262144}},
            {"kind":"fq_codel","handle":"8002:","dev":"b","root":true},
            {"kind":"pfifo","handle":"4c57:","dev":"c","root":true},
            {"kind":"mq","handle":"0:","dev":"d","root":true},
            {"kind":"fq_codel","handle":"0:","dev":"d","parent":":1"}]"#;
        let roots = parse(json).unwrap();
        let told: Vec<_> = roots
            .iter()
            .map(|root| (root.interface.as_str(), root.is_ours(), root.is_default()))
            .collect();
        let expected = [
            ("lo", false, true),
            ("a", true, false),
            ("b", false, false),
            ("c", false, false),
            ("d", false, true),
        ];
        assert_eq!(told, expected);
        assert_eq!(roots[1].classes, [511]);
        assert!(matches!(
            parse("no"),
            Err(CommandError::Output { program: "tc", .. })
        ));
    }
}
