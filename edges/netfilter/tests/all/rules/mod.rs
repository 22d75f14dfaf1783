//! Rules in namespaces: what is made, changed and removed, and what the kernel then does.
//!
//! As root, with iptables, nftables and iproute2; otherwise each test says that it was skipped.
#![expect(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::print_stderr,
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "test support: what fails ends the test, and what is skipped or measured is said"
)]

mod net;
mod service;
mod traffic;

use linkweir_engine::effect::MarkLayout;
use linkweir_netfilter::rules::{
    self, ClientRate, Host, Plan, Redirect, RulesError, ShapeClass, Step, Up,
};
use net::Net;

/// Everything that rules can be asked for.
pub(crate) fn plan() -> Plan {
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
                rule: 300,
                rate_bits: 1_000_000_000,
            },
        ],
        redirects: vec![Redirect {
            rule: 1,
            port: 3129,
        }],
        rates: vec![ClientRate {
            rule: 300,
            rate_bytes: 2_000_000,
            burst_bytes: 100_000,
        }],
        rules: [("http", 1), ("bit \"torrent\"; %", 2), ("edonkey", 300)]
            .map(|(name, number)| (name.to_owned(), number))
            .into(),
    }
}

/// What an administrator may have: rules of his own in every place where ours go.
const FOREIGN: &str = "
    iptables -A FORWARD -p icmp -m comment --comment 'mine, not linkweir' -j ACCEPT
    iptables -t mangle -N MINE
    iptables -t mangle -A MINE -j MARK --set-xmark 0x1/0xff
    iptables -t mangle -A FORWARD -j MINE
    iptables -t nat -A POSTROUTING -s 10.99.0.0/16 -j MASQUERADE
    ip6tables -P FORWARD DROP
    ip6tables -A FORWARD -j ACCEPT
    nft add table inet mine
    nft 'add chain inet mine forward { type filter hook forward priority 5; }'
    nft add rule inet mine forward ct mark set 0x7
    tc qdisc add dev lo root tbf rate 1gbit burst 64kb latency 50ms";

#[test]
fn down_leaves_what_was_there_before_up() {
    let Some(net) = Net::new() else { return };
    let host = net.gateway();
    let mut small = plan();
    small.classes.clear();
    small.interfaces.clear();
    small.has_ipv6 = false;
    small.is_fail_open = false;
    for foreign in ["true", FOREIGN] {
        net.must("g", foreign);
        for plan in [plan(), small.clone()] {
            let before = net.snapshot();
            assert_eq!(rules::up(&host, &plan).expect("up"), Up::Made);
            assert_eq!(rules::up(&host, &plan).expect("again"), Up::Already);
            let up = net.snapshot();
            assert!(up.contains("LINKWEIR-DECIDE"), "{up}");
            let removed = rules::down(&host).expect("down");
            assert_eq!(removed.marks, Some(plan.marks));
            let things = if plan.has_ipv6 { 7 } else { 3 };
            assert_eq!(removed.things.len(), things, "{:?}", removed.things);
            assert_eq!(net.snapshot(), before);
            let again = rules::down(&host).expect("down again");
            assert_eq!(again, rules::Removed::default());
        }
    }
}

#[test]
fn a_dry_run_prints_what_up_runs() {
    let Some(net) = Net::new() else { return };
    let host = net.gateway();
    let before = net.snapshot();
    let steps = rules::dry_run(&host, &plan()).expect("dry run");
    assert_eq!(net.snapshot(), before);
    let text: Vec<String> = steps.iter().map(Step::to_string).collect();
    net.must("g", &format!("set -e\n{}", text.join("\n")));
    assert_eq!(rules::up(&host, &plan()).expect("up"), Up::Already);
    rules::down(&host).expect("down");
    assert_eq!(net.snapshot(), before);
}

/// Steps that can be interrupted between any two of their lines, one by one.
fn single(steps: Vec<Step>) -> Vec<Step> {
    let lines = |step: Step| {
        if !["tc", "ip"].contains(&step.program) || step.input.is_empty() {
            return vec![step];
        }
        let line = |line: &str| Step {
            input: format!("{line}\n"),
            ..step.clone()
        };
        step.input.lines().map(line).collect()
    };
    steps.into_iter().flat_map(lines).collect()
}

#[test]
fn down_removes_every_part_of_up() {
    let Some(net) = Net::new() else { return };
    let host = net.gateway();
    let before = net.snapshot();
    let steps = single(rules::dry_run(&host, &plan()).expect("dry run"));
    assert_eq!(steps.len(), 17);
    for crash_after in 0..=steps.len() {
        for step in &steps[..crash_after] {
            host.run(step).expect("a step");
        }
        if (1..steps.len()).contains(&crash_after) {
            let error = rules::up(&host, &plan()).expect_err("a part is not all");
            assert!(matches!(error, RulesError::Other(_)), "{error}");
        }
        rules::down(&host).expect("down");
        assert_eq!(net.snapshot(), before, "after {crash_after} steps");
    }
}

#[test]
fn a_step_that_fails_takes_back_the_others() {
    let Some(net) = Net::new() else { return };
    let host = net.gateway();
    let before = net.snapshot();
    let mut plan = plan();
    // The kernel counts queues in 16 bits.
    plan.queues = 0..=u16::MAX;
    let error = rules::up(&host, &plan).expect_err("too many queues");
    let RulesError::RolledBack { left: None, .. } = &error else {
        panic!("{error}")
    };
    assert!(error.to_string().contains("tables-restore"), "{error}");
    assert!(!error.to_string().contains('\n'), "{error}");
    assert_eq!(net.snapshot(), before);
}

#[test]
fn classes_need_their_interface() {
    let Some(net) = Net::new() else { return };
    let host = net.gateway();
    let before = net.snapshot();
    let mut plan = plan();
    plan.interfaces.push("none0".to_owned());
    let said = rules::warnings(&host, &plan);
    assert_eq!(said, ["interface none0 is not there (yet)"]);
    let error = rules::up(&host, &plan).expect_err("no such interface");
    assert!(
        matches!(&error, RulesError::NoInterface(name) if name == "none0"),
        "{error}"
    );
    assert_eq!(net.snapshot(), before);
    plan.classes.clear();
    assert_eq!(rules::up(&host, &plan).expect("it may come"), Up::Made);
}

#[test]
fn a_flush_does_not_outlive_us() {
    let Some(net) = Net::new() else { return };
    let host = net.gateway();
    let flushes = [
        "iptables -t mangle -F",
        "iptables -t mangle -F; iptables -F; ip6tables -t mangle -F; ip6tables -F",
        "iptables -t mangle -F LINKWEIR-DECIDE",
        "iptables -t mangle -F; nft delete table inet linkweir",
    ];
    for flush in flushes {
        // It is made again.
        rules::up(&host, &plan()).expect("up");
        net.must("g", flush);
        let error = rules::up(&host, &plan()).expect_err("a part is not all");
        assert!(matches!(error, RulesError::Other(_)), "{flush}: {error}");
        assert_eq!(rules::change(&host, &plan()).expect(flush), Up::Made);
        assert_eq!(rules::up(&host, &plan()).expect(flush), Up::Already);
        // And it is removed.
        net.must("g", flush);
        let removed = rules::down(&host).expect("down");
        assert!(!removed.things.is_empty() && removed.left.is_empty());
        let after = net.snapshot().to_lowercase();
        assert!(!after.contains("linkweir"), "{flush}: {after}");
        let again = rules::down(&host).expect("down again");
        assert_eq!(again, rules::Removed::default());
    }
    // Empty chains that nobody leads to are in nobody's way.
    net.must("g", "iptables -t mangle -N LINKWEIR-DECIDE");
    assert_eq!(rules::up(&host, &plan()).expect("up"), Up::Made);
    rules::down(&host).expect("down");
    assert!(!net.snapshot().contains("LINKWEIR"));
}

#[test]
fn what_others_made_is_not_touched() {
    let Some(net) = Net::new() else { return };
    let host = net.gateway();
    let refused = |script: &str, says: &str, undo: &str| {
        net.must("g", script);
        let before = net.snapshot();
        let error = rules::up(&host, &plan()).expect_err("refused").to_string();
        assert!(error.contains(says), "{error}");
        let removed = rules::down(&host).expect("down");
        assert_eq!(net.snapshot(), before);
        for left in &removed.left {
            assert!(error.contains(&left.to_string()), "{error}");
            assert!(undo.contains(&left.undo), "{}", left.undo);
        }
        net.must("g", undo);
    };
    refused(
        "tc qdisc add dev wan0 root pfifo",
        "wan0 has a queueing discipline that somebody set (pfifo",
        "tc qdisc del dev wan0 root",
    );
    refused(
        "ip6tables -t mangle -N LINKWEIR-SAVE; ip6tables -t mangle -A LINKWEIR-SAVE -j ACCEPT",
        "not made by linkweir, or changed since: chain LINKWEIR-SAVE in table mangle of ip6tables \
         (to remove: ip6tables -t mangle -F LINKWEIR-SAVE; ip6tables -t mangle -X LINKWEIR-SAVE)",
        "ip6tables -t mangle -F LINKWEIR-SAVE; ip6tables -t mangle -X LINKWEIR-SAVE",
    );
    refused(
        "nft add table inet linkweir; nft add set inet linkweir rules '{ type mark; elements = { 0 comment \"mine\" }; }'",
        "changed since: table inet linkweir of nft (to remove: nft delete table inet linkweir)",
        "nft delete table inet linkweir",
    );
    // What is added while we are up stays when we go.
    rules::up(&host, &plan()).expect("up");
    net.must("g", FOREIGN);
    rules::down(&host).expect("down");
    let after = net.snapshot();
    assert!(!after.to_lowercase().contains("linkweir-"), "{after}");
    for mine in [
        "mine, not linkweir",
        "-A FORWARD -j MINE",
        "table inet mine",
        "tbf",
    ] {
        assert!(after.contains(mine), "{mine}: {after}");
    }
}

#[test]
fn a_reload_changes_what_differs() {
    let Some(net) = Net::inside("rules::a_reload_changes_what_differs") else {
        return;
    };
    let host = Host::here();
    assert_eq!(rules::standing().expect("standing"), None);
    let error = rules::change(&host, &plan()).expect_err("nothing is up");
    assert!(matches!(error, RulesError::NotUp), "{error}");
    let before = net.snapshot();
    rules::up(&host, &plan()).expect("up");
    assert_eq!(
        rules::change(&host, &plan()).expect("the same"),
        Up::Already
    );

    let mut next = plan();
    next.classes = vec![
        ShapeClass {
            rule: 2,
            rate_bits: 20_000_000,
        },
        ShapeClass {
            rule: 5,
            rate_bits: 3_000_000,
        },
    ];
    next.rules.remove("edonkey");
    next.rules.insert("msn".to_owned(), 5);
    // As if an earlier version had made the table.
    net.must(
        "g",
        "nft 'flush chain inet linkweir rejected; delete chain inet linkweir rejected'",
    );
    let chains = |net: &Net| net.must("g", "iptables-save -c -t mangle | grep LINKWEIR");
    let kept = chains(&net);
    assert_eq!(
        rules::change(&host, &next).expect("other classes"),
        Up::Made
    );
    assert_eq!(chains(&net), kept);
    let table = net.must("g", "nft list table inet linkweir");
    for (rules, what) in [
        // Those that count, and one of each family that redirects.
        (4, "update @traffic"),
        (1, "map @classes"),
        (1, "chain rejected"),
    ] {
        assert_eq!(table.matches(what).count(), rules, "{what}: {table}");
    }
    assert_eq!(rules::up(&host, &next).expect("the same"), Up::Already);
    let classes = net.must("g", "tc class show dev wan0");
    assert!(
        classes.contains("4c57:2 ") && classes.contains("rate 20Mbit"),
        "{classes}"
    );
    assert!(
        classes.contains("4c57:5 ") && !classes.contains("4c57:12c"),
        "{classes}"
    );
    let standing = rules::standing().expect("standing").expect("up");
    assert_eq!(standing.rules, next.rules);
    assert_eq!(standing.marks, next.marks);

    // Other queues, one interface less, no IPv6; and what somebody removed comes back.
    next.queues = 0..=3;
    next.interfaces.pop();
    next.has_ipv6 = false;
    net.must("g", "nft delete table inet linkweir; iptables -F FORWARD");
    assert_eq!(rules::change(&host, &next).expect("other chains"), Up::Made);
    assert_eq!(rules::up(&host, &next).expect("the same"), Up::Already);
    assert!(
        net.snapshot()
            .contains("--queue-balance 0:3 --queue-bypass")
    );

    // No classes: the chain stays, and no packet that waits is lost.
    next.classes.clear();
    assert_eq!(rules::change(&host, &next).expect("no classes"), Up::Made);
    assert_eq!(rules::up(&host, &next).expect("the same"), Up::Already);
    assert!(!net.snapshot().contains("htb"));

    let mut other = next.clone();
    other.marks = MarkLayout::from_mask(0xfff).expect("12 bits");
    let error = rules::change(&host, &other).expect_err("other marks");
    assert!(matches!(error, RulesError::OtherMarks { .. }), "{error}");
    rules::down(&host).expect("down");
    let after = net.snapshot();
    // Chains of the kernel that were lost sight of above may stay, empty.
    assert!(
        !after.contains("LINKWEIR") && !after.contains("linkweir"),
        "{after}"
    );
    assert!(before.lines().all(|line| after.contains(line)), "{after}");
}

#[test]
fn what_is_missing_is_said() {
    let Some(net) = Net::new() else { return };
    let host = net.gateway();
    assert_eq!(rules::warnings(&host, &plan()), Vec::<String>::new());
    net.must(
        "g",
        "sysctl -qw net.ipv4.ip_forward=0 net.ipv6.conf.all.forwarding=0",
    );
    let said = rules::warnings(&host, &plan());
    assert_eq!(said.len(), 2, "{said:?}");
    assert!(said[0].contains("net.ipv4.ip_forward is 0"), "{said:?}");
}

#[test]
fn the_older_iptables_works_too() {
    let legacy = "/usr/sbin/xtables-legacy-multi";
    if !std::path::Path::new(legacy).exists() {
        eprintln!("SKIPPED: no {legacy}");
        return;
    }
    let directory = std::env::temp_dir().join(format!("linkweir-legacy-{}", std::process::id()));
    let is_outside = !net::is_inside();
    if is_outside {
        std::fs::create_dir_all(&directory).expect("a directory");
        for tool in ["iptables", "ip6tables"] {
            for of in ["", "-save", "-restore"] {
                let name = directory.join(format!("{tool}{of}"));
                std::os::unix::fs::symlink(legacy, name).expect("a link");
            }
        }
    }
    let path = format!("{}:{}", directory.display(), net::path());
    let net = Net::inside_with("rules::the_older_iptables_works_too", &path);
    if is_outside {
        std::fs::remove_dir_all(&directory).expect("a directory");
    }
    if net.is_none() {
        return;
    }
    let host = Host::here();
    let run = |program, words: &[&str]| {
        let step = Step {
            program,
            words: words.iter().map(|&word| word.to_owned()).collect(),
            input: String::new(),
        };
        host.run(&step).expect("a command")
    };
    assert!(run("iptables", &["--version"]).contains("legacy"));
    run("iptables", &["-A", "FORWARD", "-p", "icmp", "-j", "ACCEPT"]);
    assert_eq!(rules::up(&host, &plan()).expect("up"), Up::Made);
    assert_eq!(rules::up(&host, &plan()).expect("again"), Up::Already);
    let saves = ["iptables-save", "ip6tables-save"];
    for save in saves {
        let saved = run(save, &[]);
        assert!(
            saved.contains("--queue-balance 0:1 --queue-bypass"),
            "{saved}"
        );
        assert!(
            saved.contains("plan ") && saved.contains("-j LINKWEIR-SAVE"),
            "{saved}"
        );
    }
    let mut next = plan();
    next.is_fail_open = false;
    assert_eq!(rules::change(&host, &next).expect("change"), Up::Made);
    assert!(!run("ip6tables-save", &[]).contains("bypass"));
    assert_eq!(rules::down(&host).expect("down").things.len(), 7);
    for save in saves {
        let saved = run(save, &[]);
        assert!(!saved.contains("LINKWEIR"), "{saved}");
    }
    assert!(run("iptables-save", &[]).contains("-A FORWARD -p icmp -j ACCEPT"));
}
