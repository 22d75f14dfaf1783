use std::sync::Arc;

use linkweir_engine::effect::{Decision, Verdict};
use linkweir_proto::application::Application;
use linkweir_record::gateway::GatewayEventKind;
use linkweir_wire::emit::UdpFrame;

use super::bed::{Bed, REQUEST, policy};
use crate::inspect::Side;
use crate::policy::{
    Action, Applications, Inspect, Label, NamePattern, NamePatterns, Policy, Quota, QuotaTable,
    Rule,
};

/// Bytes of a frame before its IP header.
const ETHERNET: usize = 14;
const QUERY: &[u8] = b"\x12\x34\x01\0\0\x01\0\0\0\0\0\0\x01a\x04test\0\0\x01\0\x01";
const TORRENT: &[u8] =
    b"d1:ad2:id20:abcdefghij01234567899:info_hash20:mnopqrstuvwxyz123456e1:q9:get_peers1:t2:aa1:y1:qe";

fn of(name: &str, number: u16, action: Action, application: Application) -> Rule {
    let mut rule = Rule::any(name, number, action);
    rule.applications = Applications::Of(vec![Label::Known(application)]);
    rule
}

fn names_and_torrents() -> Policy {
    let rules = [
        of("names", 1, Action::Allow, Application::Dns),
        of("torrents", 2, Action::Drop, Application::BitTorrent),
    ];
    Policy {
        rules: rules.map(Arc::new).to_vec(),
        ..policy(Action::Allow, Inspect::default())
    }
}

fn datagram(port: u16, payload: &[u8]) -> Vec<u8> {
    let client = ([10, 0, 0, 1], port).into();
    let frame = UdpFrame {
        payload,
        ..UdpFrame::new(client, "192.0.2.1:53".parse().expect("an address"))
    };
    frame.to_vec().split_off(ETHERNET)
}

#[test]
fn what_is_allowed_is_decided_at_once_and_still_looked_at() {
    let mut bed = Bed::new(names_and_torrents());
    for _ in 0..3 {
        let answer = bed.raw(&datagram(40_000, QUERY)).expect("an answer");
        assert_eq!((answer.verdict, answer.mark), (Verdict::Accept, None));
    }
    assert_eq!(bed.events_of(GatewayEventKind::Decided), 1);
    let dns = bed.stage.stats().applications["dns"];
    assert_eq!((dns.connections, dns.allowed, dns.blocked), (1, 1, 0));
    // What comes first disguises nothing.
    let answer = bed.raw(&datagram(40_000, TORRENT)).expect("an answer");
    assert_eq!(answer.verdict, Verdict::Repeat);
    assert_eq!(bed.decision(), Decision::Drop);
    assert_eq!(bed.events_of(GatewayEventKind::Decided), 2);
    let dns = bed.stage.stats().applications["dns"];
    assert_eq!((dns.connections, dns.allowed, dns.blocked), (1, 1, 1));
    // Two datagrams are all that most of them are: they count when they are forgotten.
    bed.anew();
    bed.raw(&datagram(40_001, QUERY));
    bed.raw(&datagram(40_001, QUERY));
    bed.finish();
    let stats = bed.stage.stats();
    let dns = stats.applications["dns"];
    assert_eq!((dns.connections, dns.packets, stats.undecided), (2, 2, 0));
    assert_eq!(bed.events_of(GatewayEventKind::Decided), 3);
}

#[test]
fn after_sixteen_datagrams_the_kernel_has_it_and_nothing_is_told_twice() {
    let mut bed = Bed::new(names_and_torrents());
    for number in 1..=16 {
        assert_eq!(bed.decision(), Decision::Undecided, "before {number}");
        bed.raw(&datagram(40_000, QUERY));
    }
    assert_eq!(bed.decision(), Decision::Pass);
    assert_eq!(bed.events_of(GatewayEventKind::Decided), 1);
    let dns = bed.stage.stats().applications["dns"];
    assert_eq!((dns.connections, dns.packets), (1, 16));
}

#[test]
fn what_passes_while_it_is_looked_at_counts_for_the_quota() {
    const HOUR_NS: u64 = 3_600_000_000_000;
    let mut policy = names_and_torrents();
    let mut names = Rule::clone(&policy.rules[0]);
    names.quota = Some(Quota {
        index: 0,
        bytes: Some((100, HOUR_NS)),
        connections: None,
    });
    policy.rules[0] = Arc::new(names);
    policy.default = Arc::new(Rule::any("default", 0, Action::Drop));
    policy.quotas = Some(Arc::new(QuotaTable::default()));
    let mut bed = Bed::new(policy);
    // Two flows of 52 bytes.
    for port in [40_000, 40_001] {
        bed.raw(&datagram(port, QUERY));
        assert_eq!(bed.decision(), Decision::Undecided);
    }
    bed.finish();
    bed.raw(&datagram(40_002, QUERY));
    assert_eq!(bed.decision(), Decision::Drop);
}

#[test]
fn what_is_missing_is_said() {
    let asks = |rule: &mut Rule| {
        let names = || NamePatterns(vec![NamePattern::new("*.ads.test")]);
        rule.conditions.request.hosts = names();
        rule.conditions.tls.server_names = names();
    };
    let mut ads = Rule::any("ads", 1, Action::Reject);
    asks(&mut ads);
    let mut types = of("videos", 2, Action::Reject, Application::Http);
    types.conditions.response.mime_types = NamePatterns(vec![NamePattern::new("video/*")]);
    let policy = || Policy {
        rules: vec![Arc::new(ads.clone()), Arc::new(types.clone())],
        ..policy(Action::Allow, Inspect::default())
    };
    let hello = [&[22, 3, 1, 1, 0, 1, 0, 0, 252, 3, 3][..], &[7; 20]].concat();
    let whole = REQUEST;
    let part = REQUEST.split_at(20).0;
    let ads = "more packets needed: rule `ads` is still possible";
    for (bytes, application, rule, why) in [
        (
            &b"GE"[..],
            None,
            None,
            "more packets needed: its application is not known",
        ),
        (part, Some("http"), Some("default"), ads),
        (
            whole,
            Some("http"),
            Some("default"),
            "more packets needed: rule `videos` is still possible",
        ),
        (&hello, Some("tls"), Some("default"), ads),
    ] {
        let mut bed = Bed::new(policy());
        bed.stage.keep_undecided();
        bed.open();
        bed.send(Side::Client, 0, bytes);
        assert_eq!(bed.stage.take_undecided(), []);
        bed.finish();
        let undecided = bed.stage.take_undecided();
        let said = undecided.first().map(|one| {
            let (application, rule) = (one.application.as_deref(), one.rule.as_deref());
            (application, rule, one.why.as_str())
        });
        assert_eq!(said, Some((application, rule, why)), "{undecided:?}");
        assert_eq!(undecided.len(), 1);
    }
    // Of what was decided, and where nobody asks, there is nothing to say.
    let mut bed = Bed::new(names_and_torrents());
    bed.stage.keep_undecided();
    bed.raw(&datagram(40_000, QUERY));
    bed.finish();
    assert_eq!(bed.stage.take_undecided(), []);
    let mut bed = Bed::new(policy());
    bed.open();
    bed.send(Side::Client, 0, part);
    bed.finish();
    assert_eq!(bed.stage.take_undecided(), []);
    assert_eq!(bed.stage.stats().undecided, 1);
}
