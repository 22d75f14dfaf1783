//! What is let through to the output, and how: filters, ports, order, anonymised addresses.

use std::cell::RefCell;
use std::net::IpAddr;
use std::rc::Rc;
use std::time::Duration;

use linkweir_engine::hash::flow_hash;
use linkweir_engine::{
    Directive, Limit, Outputs, Run, Sink, SinkError, Sorter, Source, SourceEvent, Stage,
};
use linkweir_record::{Anonymizer, HttpBatch, HttpKind, RecordBatch};
use linkweir_testkit::conversation::Conversation;
use linkweir_testkit::memory::MemorySource;
use linkweir_wire::LinkType;

use super::support::{Outcome, answer, get, look_with, observe, records_of, together};
use crate::{HttpConfig, HttpStage, PortSet};

/// Keeps what was written.
struct Collect(Rc<RefCell<HttpBatch>>);

impl Sink<HttpKind> for Collect {
    fn write(&mut self, batch: &HttpBatch) -> Result<(), SinkError> {
        for view in batch.views() {
            self.0.borrow_mut().push_view(&view);
        }
        Ok(())
    }

    fn flush(&mut self) -> Result<(), SinkError> {
        Ok(())
    }

    fn finish(&mut self) -> Result<(), SinkError> {
        Ok(())
    }
}

fn shop() -> Conversation {
    let mut talk = Conversation::v4(40_000);
    for (host, target) in [
        ("shop.test", "/buy"),
        ("www.test", "/shop"),
        ("www.test", "/"),
    ] {
        talk.client_sends(format!("GET {target} HTTP/1.1\r\nHost: {host}\r\n\r\n"))
            .server_sends(answer(200, 0));
    }
    talk.client_sends("GET /none HTTP/1.1\r\nHost: shop.test\r\n\r\n");
    talk.skips(linkweir_testkit::conversation::Side::Server, 9)
        .server_sends(answer(500, 0));
    talk
}

fn filtered(host: &str, url: &str) -> Outcome {
    let config = HttpConfig {
        host_contains: host.into(),
        url_contains: url.into(),
        ..HttpConfig::default()
    };
    let outcome = look_with(&config, &shop());
    let stats = &outcome.stats;
    assert_eq!(
        (stats.requests, stats.transactions, stats.orphans),
        (4, 3, 1),
        "not filtered"
    );
    assert_eq!(stats.filtered, 5 - outcome.records.len() as u64);
    outcome
}

#[test]
fn filters_by_host_and_url() {
    let lines = |host, url| {
        let mut short = filtered(host, url).short();
        short.sort();
        short
    };
    assert_eq!(lines("", "").len(), 5);
    assert_eq!(lines("shop", ""), ["complete /buy 200", "unanswered /none"]);
    assert_eq!(
        lines("", "shop"),
        [
            "complete /buy 200",
            "complete /shop 200",
            "unanswered /none"
        ],
        "host and target together"
    );
    assert_eq!(lines("", "shop.test/buy"), ["complete /buy 200"]);
    assert_eq!(lines("www", "shop"), ["complete /shop 200"]);
    assert_eq!(lines("nothing", ""), [""; 0]);
    assert_eq!(
        lines("WWW", ""),
        lines("www", ""),
        "host names have no case"
    );
    assert_eq!(lines("", "SHOP"), [""; 0], "paths have");
}

#[test]
fn filters_apply_to_records_that_wait_for_their_body() {
    let config = HttpConfig {
        ttlb: true,
        url_contains: b"/b".to_vec(),
        ..HttpConfig::default()
    };
    let mut talk = Conversation::v4(40_000);
    for target in ["/a", "/b"] {
        talk.client_sends(get(target))
            .server_sends(answer(200, 5000));
    }
    let outcome = look_with(&config, &talk);
    assert_eq!(outcome.short(), ["complete /b 200"]);
    assert_eq!(outcome.stats.filtered, 1);
}

#[test]
fn only_some_ports() {
    let talk = |port: u16| {
        let server = format!("198.51.100.2:{port}").parse().unwrap();
        let mut talk = Conversation::between("192.0.2.1:40000".parse().unwrap(), server);
        talk.client_sends(get(&format!("/{port}")))
            .server_sends(answer(200, 0));
        talk
    };
    let frames = together(&[talk(80), talk(8080), talk(8081), talk(65_535)]);
    let run = |ports: &[u16]| {
        let set: PortSet = ports.iter().copied().collect();
        let config = HttpConfig {
            ports: Some(set),
            ..HttpConfig::default()
        };
        let mut short = observe(&config, &frames, LinkType::ETHERNET).short();
        short.sort();
        short
    };
    assert_eq!(
        run(&[80, 65_535]),
        ["complete /65535 200", "complete /80 200"]
    );
    assert_eq!(run(&[8081]), ["complete /8081 200"]);
    assert_eq!(run(&[]), [""; 0]);
    assert_eq!(run(&[40_000]).len(), 4, "of either side");
}

#[test]
fn sorted_by_the_time_of_the_request() {
    let talks: Vec<_> = (0..50_u64)
        .map(|n| {
            let at = Conversation::START_NS + n * 1_000_000;
            let mut talk = Conversation::v4(40_000 + u16::try_from(n).unwrap()).starting_at(at);
            talk.client_sends(get(&format!("/{n}")));
            // The later the request, the sooner the answer; some never come.
            talk.wait(Duration::from_millis(3000 - n * 50));
            if n % 7 != 3 {
                talk.server_sends(answer(200, 0));
            }
            talk
        })
        .collect();
    let frames = together(&talks);
    let unsorted = observe(&HttpConfig::default(), &frames, LinkType::ETHERNET);
    for size in [1, 3, 1000] {
        let mut stage = HttpStage::new(&HttpConfig::default());
        let source = MemorySource::new(&frames, LinkType::ETHERNET, size);
        let written = Rc::new(RefCell::new(HttpBatch::default()));
        let mut outputs = Outputs::default();
        outputs.add("it", Box::new(Collect(Rc::clone(&written))));
        let (report, outcome) = Run::new(&mut stage, &mut outputs, Limit::default())
            .sorted(true)
            .drive(source, |_, _| Directive::Continue);
        outcome.unwrap();
        let records = records_of(&written.borrow());
        let order: Vec<String> = records.iter().map(|r| r.uri.clone()).collect();
        let expected: Vec<String> = (0..50).map(|n| format!("/{n}")).collect();
        assert_eq!(order, expected);
        assert_eq!(report.unsorted, 0);
        assert_eq!(stage.stats().transactions, unsorted.stats.transactions);
    }
    assert_ne!(unsorted.records[0].uri, "/0", "there was something to sort");
}

#[test]
fn sorted_records_leave_a_timeout_behind_the_capture() {
    let mut talk = Conversation::v4(40_000);
    for n in 0..400 {
        talk.client_sends(get(&format!("/{n}")))
            .server_sends(answer(200, 0));
        talk.wait(Duration::from_secs(1));
    }
    let frames = talk.frames();
    let mut stage = HttpStage::new(&HttpConfig::default());
    let mut sorter = Sorter::<HttpKind>::default();
    let mut fresh = HttpBatch::default();
    let mut source = MemorySource::new(&frames, talk.link(), 800);
    if let Ok(SourceEvent::Batch(batch)) = source.next_event() {
        stage.on_batch(&batch, &mut fresh);
    }
    sorter.take_in(&mut fresh);
    assert!(sorter.release(stage.watermark().as_nanos(), &mut fresh));
    let left = records_of(&fresh).len();
    assert!(
        (330..=342).contains(&left),
        "400 s of records, 60 s of them held: {left}"
    );
}

#[test]
fn anonymised_addresses_keep_prefixes_and_give_nothing_away() {
    let talks: Vec<_> = [
        ("192.0.2.1", "198.51.100.2"),
        ("192.0.2.77", "198.51.100.200"),
    ]
    .iter()
    .map(|(client, server)| {
        let mut talk = Conversation::between(
            format!("{client}:40000").parse().unwrap(),
            format!("{server}:80").parse().unwrap(),
        );
        talk.client_sends(get("/a")).server_sends(answer(200, 0));
        talk
    })
    .chain([{
        let mut talk = Conversation::v6(40_000);
        talk.client_sends(get("/six"));
        talk
    }])
    .collect();
    let frames = together(&talks);
    let plain = observe(&HttpConfig::default(), &frames, LinkType::ETHERNET);
    let config = HttpConfig {
        anonymizer: Some(Anonymizer::new(&[7; 32])),
        ..HttpConfig::default()
    };
    let hidden = observe(&config, &frames, LinkType::ETHERNET);
    assert_eq!(hidden.short(), plain.short());
    let v4 = |ip: IpAddr| match ip {
        IpAddr::V4(ip) => ip.to_bits(),
        IpAddr::V6(ip) => panic!("{ip}"),
    };
    for (real, hidden) in plain.records.iter().zip(&hidden.records) {
        let (real, hidden) = (&real.row, &hidden.row);
        assert_ne!(hidden.client_ip, real.client_ip);
        assert_ne!(hidden.server_ip, real.server_ip);
        assert_eq!(hidden.client_ip.is_ipv4(), real.client_ip.is_ipv4());
        assert_eq!(
            (hidden.client_port, hidden.server_port),
            (real.client_port, real.server_port)
        );
        assert_ne!(hidden.flow_hash, real.flow_hash);
        assert_eq!(
            hidden.flow_hash,
            flow_hash(
                (hidden.client_ip, hidden.client_port),
                (hidden.server_ip, hidden.server_port)
            ),
            "made of what is written"
        );
    }
    let rows = |outcome: &Outcome, n: usize| outcome.records[n].row;
    let shared = |outcome: &Outcome| {
        let (one, other) = (rows(outcome, 0), rows(outcome, 1));
        (
            (v4(one.client_ip) ^ v4(other.client_ip)).leading_zeros(),
            (v4(one.server_ip) ^ v4(other.server_ip)).leading_zeros(),
        )
    };
    assert_eq!(shared(&hidden), shared(&plain), "prefixes stay prefixes");
}
