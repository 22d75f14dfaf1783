//! Rules that ask for what requests and responses say, and what the client gets in place of a response.

use linkweir_engine::effect::Decision;
use linkweir_record::RecordBatch as _;
use linkweir_record::gateway::GatewayEventKind;
use linkweir_wire::Timestamp;
use std::sync::Arc;

use super::bed::{Bed, policy, response};
use crate::inspect::Side;
use crate::policy::{Action, Inspect, NamePattern, NamePatterns, Policy, Quota, Reply, Rule};

const GOOD: &[u8] = b"GET /a HTTP/1.1\r\nHost: good.test\r\n\r\n";
const BAD: &[u8] = b"GET /x HTTP/1.1\r\nHost: www.bad.test\r\n\r\n";

/// A rule for a host before one that allows HTTP.
fn blocking(change: impl FnOnce(&mut Rule)) -> Policy {
    let mut all = policy(Action::Allow, Inspect::default());
    let mut rule = Rule::any("bad", 2, Action::Reject);
    rule.conditions.request.hosts = NamePatterns(vec![NamePattern::new("*.bad.test")]);
    rule.reply = Some(Reply::Page("Not here".to_owned()));
    change(&mut rule);
    all.rules.insert(0, Arc::new(rule));
    all
}

/// Event, rule and reason of what was decided.
fn decided(bed: &Bed) -> Vec<(String, String)> {
    let events = (0..bed.events.len()).filter_map(|at| bed.events.get(at));
    let decided = events.filter(|event| event.row.event == GatewayEventKind::Decided);
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    decided
        .map(|event| (text(event.text.rule), text(event.text.why)))
        .collect()
}

#[test]
fn a_request_gets_a_page_and_its_server_a_reset() {
    for cut in [BAD.len(), 30] {
        let mut bed = Bed::new(blocking(|_| {}));
        bed.open();
        let (first, second) = BAD.split_at(cut);
        bed.send(Side::Client, 0, first);
        if !second.is_empty() {
            bed.send(Side::Client, cut, second);
        }
        let page = String::from_utf8(bed.at_client.stream()).expect("text");
        assert!(page.starts_with("HTTP/1.1 403 Forbidden\r\n"), "{page}");
        assert!(page.contains("Not here") && bed.at_client.has_fin);
        let why = "hosts=www.bad.test (*.bad.test)".to_owned();
        assert_eq!(decided(&bed), [("bad".to_owned(), why)]);
        assert!(bed.at_server.stream().len() < BAD.len());
        // The client ends the connection; it hears that this came.
        let has = page.len() + 1;
        bed.ack(Side::Client, BAD.len(), has);
        bed.fin(Side::Client, BAD.len());
        assert_eq!(bed.unanswered(), 0);
        assert_eq!(bed.acknowledged[0] as usize, BAD.len() + 1);
        // What the server still says does not come.
        bed.send(Side::Server, 0, b"HTTP/1.1 200 OK\r\n\r\n");
        assert_eq!(bed.at_client.stream().len(), page.len());
    }
}

#[test]
fn each_request_of_a_connection_is_decided() {
    let mut bed = Bed::new(blocking(|_| {}));
    bed.open();
    bed.send(Side::Client, 0, GOOD);
    let answer = response(b"fine");
    bed.send(Side::Server, 0, &answer);
    assert_eq!(bed.at_client.stream(), answer);
    assert_eq!(bed.decision(), Decision::Inspect);
    bed.send(Side::Client, GOOD.len(), BAD);
    let all = bed.at_client.stream();
    assert!(all[answer.len()..].starts_with(b"HTTP/1.1 403 "));
    assert_eq!(bed.at_server.stream(), GOOD);
    let rules: Vec<_> = decided(&bed).into_iter().map(|(rule, _)| rule).collect();
    assert_eq!(rules, ["web", "bad"]);
    let stats = bed.stage.stats();
    let http = stats.applications.iter().find(|(name, _)| *name == "http");
    assert_eq!(
        http.map(|(_, one)| (one.connections, one.blocked)),
        Some((1, 1))
    );
}

#[test]
fn behind_a_request_that_waits_there_is_no_page() {
    let mut bed = Bed::new(blocking(|_| {}));
    bed.open();
    // Pipelined: the client would take the page for the answer to the first.
    bed.send(Side::Client, 0, &[GOOD, BAD].concat());
    assert!(bed.at_client.stream().is_empty());
    assert_eq!((bed.decision(), bed.resets.len()), (Decision::Reject, 1));
}

#[test]
fn a_response_is_decided_by_its_type_and_length() {
    let conditions = |rule: &mut Rule| {
        rule.conditions.response.mime_types = NamePatterns(vec![NamePattern::new("video/*")]);
        rule.conditions.response.min_body = Some(10);
    };
    let head = |kind: &str, length: &str| {
        format!("HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\n{length}\r\n").into_bytes()
    };
    for (kind, length, body, blocked) in [
        (
            "video/mp4; a=b",
            "Content-Length: 12\r\n",
            "123456789012",
            Some(true),
        ),
        ("video/mp4", "Content-Length: 4\r\n", "1234", None),
        ("text/html", "Content-Length: 12\r\n", "123456789012", None),
        // Its length is known when so much has come: too late for a page.
        (
            "video/mp4",
            "Transfer-Encoding: chunked\r\n",
            "c\r\n123456789012\r\n0\r\n\r\n",
            Some(false),
        ),
        (
            "video/mp4",
            "Transfer-Encoding: chunked\r\n",
            "4\r\n1234\r\n0\r\n\r\n",
            None,
        ),
    ] {
        let mut bed = Bed::new(blocking(conditions));
        bed.open();
        bed.send(Side::Client, 0, BAD);
        assert_eq!(bed.at_server.stream(), BAD);
        let head = head(kind, length);
        let parts: &[&[u8]] = if blocked == Some(true) {
            &[&[&head[..], body.as_bytes()].concat()]
        } else {
            &[&head[..], body.as_bytes()]
        };
        let mut at = 0;
        for part in parts {
            bed.send(Side::Server, at, part);
            at += part.len();
        }
        let came = bed.at_client.stream();
        match blocked {
            Some(true) => assert!(came.starts_with(b"HTTP/1.1 403 "), "{kind} {length}"),
            Some(false) => assert_eq!(came, head, "{kind} {length}"),
            None => assert_eq!(came.len(), at, "{kind} {length}"),
        }
        assert_eq!(bed.decision() == Decision::Reject, blocked == Some(false));
        let rules: Vec<_> = decided(&bed).into_iter().map(|(rule, _)| rule).collect();
        let last = if blocked.is_some() { "bad" } else { "web" };
        assert_eq!(
            rules.last().map(String::as_str),
            Some(last),
            "{kind} {length}"
        );
    }
}

#[test]
fn a_rule_for_all_of_http_has_a_page_too() {
    let mut all = policy(Action::Reject, Inspect::default());
    let mut rule = Rule::clone(&all.rules[0]);
    rule.reply = Some(Reply::Location("http://portal.test/".to_owned()));
    all.rules = vec![Arc::new(rule)];
    let mut bed = Bed::new(all);
    bed.open();
    bed.send(Side::Client, 0, b"HEAD / HTTP/1.1\r\nHost: a\r\n\r\n");
    let response = String::from_utf8(bed.at_client.stream()).expect("text");
    assert!(
        response.contains("\r\nLocation: http://portal.test/\r\n"),
        "{response}"
    );
    assert!(response.ends_with("\r\n\r\n") && bed.at_client.has_fin);
}

#[test]
fn a_response_that_does_not_arrive_is_sent_again() {
    let mut bed = Bed::new(blocking(|_| {}));
    bed.loses = |number| number == 0;
    bed.open();
    bed.send(Side::Client, 0, BAD);
    assert!(bed.at_client.stream().is_empty());
    bed.send(Side::Client, 0, BAD);
    assert!(bed.at_client.stream().starts_with(b"HTTP/1.1 403 "));
}

#[test]
fn a_client_with_a_quota_goes_to_the_next_rule_when_it_is_used_up() {
    let mut all = policy(Action::Allow, Inspect::default());
    let mut first = Rule::clone(&all.rules[0]);
    first.quota = Some(Quota {
        index: 0,
        bytes: Some((4000, 3_600_000_000_000)),
        connections: None,
    });
    let second = Rule::any("beyond", 2, Action::Drop);
    all.rules = vec![Arc::new(first), Arc::new(second)];
    all.quotas = Some(Arc::default());
    let table = all.quotas.clone().expect("a table");
    let mut bed = Bed::new(all);
    bed.open();
    bed.send(Side::Client, 0, GOOD);
    assert_eq!(bed.decision(), Decision::Inspect);
    let body = [b'x'; 1000];
    let mut at = 0;
    for _ in 0..8 {
        bed.send(Side::Server, at, &body);
        at += body.len();
    }
    // A sixteenth of it goes beyond at most, and the packet that does.
    let came = bed.at_client.stream().len();
    assert!((2000..5000).contains(&came), "{came}");
    assert_eq!((bed.decision(), bed.resets.len()), (Decision::Reject, 1));
    assert_eq!(bed.events_of(GatewayEventKind::Blocked), 1);
    assert_eq!((table.counts().clients, table.counts().used_up), (1, 1));
    // The next connection is another rule's, an hour later it is the first one's again.
    for (seconds, rule) in [(0, "beyond"), (3600, "web")] {
        bed.now = Timestamp::from_nanos(bed.now.as_nanos() + seconds * 1_000_000_000);
        bed.anew();
        bed.open();
        bed.send(Side::Client, 0, GOOD);
        let last = decided(&bed).pop();
        assert_eq!(last.map(|(rule, _)| rule).as_deref(), Some(rule));
    }
}

#[test]
fn connections_beyond_the_rate_of_a_client_are_the_next_rules() {
    let mut all = policy(Action::Allow, Inspect::default());
    let mut first = Rule::any("slow", 1, Action::Allow);
    first.quota = Some(Quota {
        index: 0,
        bytes: None,
        connections: Some(2),
    });
    all.rules = vec![
        Arc::new(first),
        Arc::new(Rule::any("fast", 2, Action::Drop)),
    ];
    all.quotas = Some(Arc::default());
    let mut bed = Bed::new(all);
    for _ in 0..3 {
        bed.anew();
        bed.open();
    }
    bed.now = Timestamp::from_nanos(bed.now.as_nanos() + 1_000_000_000);
    bed.anew();
    bed.open();
    let rules: Vec<_> = decided(&bed).into_iter().map(|(rule, _)| rule).collect();
    assert_eq!(rules, ["slow", "slow", "fast", "slow"]);
}

#[test]
fn what_is_no_request_gets_the_rule_for_all_else() {
    const CONNECT: &[u8] = b"GNUTELLA CONNECT/0.6\r\nUser-Agent: a/1\r\n\r\n";
    for (action, passes) in [(Action::Allow, true), (Action::Drop, false)] {
        let mut all = blocking(|_| {});
        all.default = Arc::new(Rule::any("default", 0, action));
        let mut bed = Bed::new(all);
        bed.open();
        bed.send(Side::Client, 0, CONNECT);
        let why = ("default".to_owned(), "no rule matches".to_owned());
        assert_eq!(decided(&bed), [why]);
        assert_eq!(!bed.at_server.stream().is_empty(), passes, "{action:?}");
        if passes {
            // It is still read: a request behind it hides nothing.
            bed.send(Side::Client, CONNECT.len(), BAD);
            assert_eq!(decided(&bed).len(), 2);
            assert_eq!(bed.at_server.stream(), CONNECT);
        } else {
            assert_eq!(bed.decision(), Decision::Drop);
        }
    }
}
