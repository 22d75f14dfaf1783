//! Transactions of TLS without keys: from records of known lengths and orders.

use std::net::SocketAddr;
use std::time::Duration;

use linkweir_record::{Confidence, Events, HttpBatch, HttpState, RecordBatch as _, Source};
use linkweir_testkit::conversation::{Conversation, Side};
use linkweir_testkit::memory::drive;
use linkweir_wire::{LinkType, SeqNumber};

use super::support::together;
use crate::{HttpConfig, HttpStage, HttpStats};

const DATA: u8 = 23;
const HANDSHAKE: u8 = 22;
/// What a record of TLS 1.3 adds to its content.
const ADDED: usize = 17;
const TICKET: usize = 250;

fn record(kind: u8, len: usize) -> Vec<u8> {
    let len16 = u16::try_from(len).unwrap().to_be_bytes();
    // What nobody can read has no meaning: but it must not look like HTTP in clear.
    [&[kind, 3, 3], &len16[..], &vec![0xee; len]].concat()
}

/// A record of application data with so many bytes inside.
fn data(content: usize) -> Vec<u8> {
    record(DATA, content + ADDED)
}

fn extension(kind: u16, content: &[u8]) -> Vec<u8> {
    let len = u16::try_from(content.len()).unwrap();
    [&kind.to_be_bytes()[..], &len.to_be_bytes(), content].concat()
}

/// A message in a record of its own.
fn message(kind: u8, body: &[u8]) -> Vec<u8> {
    let [_, len @ ..] = u32::try_from(body.len()).unwrap().to_be_bytes();
    let message = [&[kind], &len[..], body].concat();
    let len = u16::try_from(message.len()).unwrap();
    [&[HANDSHAKE, 3, 1], &len.to_be_bytes()[..], &message].concat()
}

fn protocols(names: &[&str]) -> Vec<u8> {
    let list: Vec<u8> = names
        .iter()
        .flat_map(|name| [&[u8::try_from(name.len()).unwrap()], name.as_bytes()].concat())
        .collect();
    let len = u16::try_from(list.len()).unwrap();
    extension(16, &[&len.to_be_bytes()[..], &list].concat())
}

fn client_hello(alpn: &[&str]) -> Vec<u8> {
    let name = b"shop.example.test";
    let len = |add: usize| u16::try_from(name.len() + add).unwrap().to_be_bytes();
    let name = [&len(3)[..], &[0], &len(0), name].concat();
    let mut extensions = [extension(0, &name), extension(43, &[2, 3, 4])].concat();
    if !alpn.is_empty() {
        extensions.extend(protocols(alpn));
    }
    let len = u16::try_from(extensions.len()).unwrap().to_be_bytes();
    let body = [
        &[3, 3][..],
        &[7; 32],
        &[0, 0, 2, 0x13, 0x01, 1, 0],
        &len,
        &extensions,
    ];
    message(1, &body.concat())
}

fn server_hello(version: u16, alpn: &[&str]) -> Vec<u8> {
    let mut extensions = Vec::new();
    if version == 0x0304 {
        extensions.extend(extension(43, &version.to_be_bytes()));
    }
    if !alpn.is_empty() {
        extensions.extend(protocols(alpn));
    }
    let len = u16::try_from(extensions.len()).unwrap().to_be_bytes();
    let suite: [u8; 2] = if version == 0x0304 {
        [0x13, 0x01]
    } else {
        [0xc0, 0x2f]
    };
    let body = [&[3, 3][..], &[9; 32], &[0], &suite, &[0], &len, &extensions];
    message(2, &body.concat())
}

fn talk_to(port: u16, server_port: u16) -> Conversation {
    let end = |last: u8, port: u16| SocketAddr::from(([10, 0, 0, last], port));
    Conversation::between(end(1, port), end(2, server_port)).spaced(1_000_000)
}

/// A connection up to the client's `Finished`; the server chose the protocol of this length.
fn opened(mut talk: Conversation, alpn: &[&str], extensions: usize) -> Conversation {
    talk.handshake().client_sends(client_hello(alpn));
    let flight = [server_hello(0x0304, &[]), data(extensions), data(800)].concat();
    talk.server_sends([flight, data(36)].concat())
        .client_sends(record(DATA, 53));
    talk
}

const ONE: usize = 25;
const TWO: usize = 19;

fn of_one(port: u16) -> Conversation {
    opened(talk_to(port, 443), &["h2", "http/1.1"], ONE)
}

fn of_two(port: u16) -> Conversation {
    let mut talk = opened(talk_to(port, 443), &["h2", "http/1.1"], TWO);
    talk.client_sends(data(24 + 9 + 18 + 13))
        .server_sends([record(DATA, TICKET), record(DATA, TICKET)].concat())
        .server_sends(data(40))
        .client_sends(data(9));
    talk
}

/// Version, confidence, response time in ms, bytes of request and response, state.
type Told = (
    &'static str,
    Option<Confidence>,
    Option<u64>,
    u64,
    u64,
    HttpState,
);

fn run(config: &HttpConfig, talks: &[Conversation]) -> (Vec<Told>, HttpStats) {
    let frames = together(talks);
    let mut stage = HttpStage::new(config);
    let batch: HttpBatch = drive(&mut stage, &frames, LinkType::ETHERNET, &[]);
    let told = batch.views().map(|view| {
        let web = view.web().unwrap();
        assert_eq!(web.source, Source::Estimate);
        assert!(web.sni.is_empty() || web.sni == b"shop.example.test");
        assert_eq!(view.text.host, web.sni);
        assert_eq!(web.ja4.is_some(), !web.sni.is_empty());
        let row = view.row;
        let took = row.response_time_ns().map(|ns| ns / 1_000_000);
        let bytes = |bytes: Option<u64>| bytes.unwrap_or_default();
        (
            row.version_name(),
            web.confidence,
            took,
            bytes(row.request_bytes),
            bytes(row.response_bytes),
            row.state,
        )
    });
    let told: Vec<Told> = told.collect();
    let stats = stage.stats().clone();
    assert_eq!(stats.of_estimate, told.len() as u64);
    let by_class = stats.estimated_exact + stats.estimated_likely + stats.estimated_cannot_tell;
    assert_eq!(by_class, told.len() as u64);
    (told, stats)
}

fn look(talk: &Conversation) -> Vec<Told> {
    run(&HttpConfig::default(), std::slice::from_ref(talk)).0
}

const EXACT: Option<Confidence> = Some(Confidence::Exact);
const LIKELY: Option<Confidence> = Some(Confidence::Likely);
const CANNOT_TELL: Option<Confidence> = Some(Confidence::CannotTell);
use HttpState::{Complete, Unanswered};

#[test]
fn tickets_are_no_response() {
    let mut talk = of_one(40_000);
    talk.client_sends(data(120))
        .server_sends([record(DATA, TICKET), record(DATA, TICKET)].concat())
        .wait(Duration::from_millis(30))
        .server_sends(data(400))
        .server_sends(data(5000))
        .client_sends(data(90))
        .wait(Duration::from_millis(10))
        // As long as a ticket, but they have come.
        .server_sends(record(DATA, TICKET))
        .client_sends(data(2));
    talk.fin(Side::Client).fin(Side::Server);
    assert_eq!(
        look(&talk),
        [
            ("1.1", EXACT, Some(32), 120, 5400, Complete),
            ("1.1", EXACT, Some(11), 90, 233, Complete),
        ]
    );
    // Without the handshake of TCP there is no round trip; here it took 1 ms.
    let mut stage = HttpStage::new(&HttpConfig::default());
    let batch = drive(&mut stage, &talk.frames(), LinkType::ETHERNET, &[]);
    let row = batch.get(0).unwrap().row;
    assert_eq!(
        (row.rtt_ns, row.server_time_ns()),
        (Some(1_000_000), Some(31_000_000))
    );
    assert_eq!(row.ttlb_ns, Some(36_000_000), "the last of four segments");
}

#[test]
fn what_may_be_a_ticket_is_believed_when_the_server_is_known() {
    // One record that may be a ticket, and another right behind it: a head and what follows, or a ticket.
    let talk = |port: u16, gap_ms: u64| {
        let mut talk = of_one(port);
        talk.client_sends(data(120))
            .wait(Duration::from_millis(5))
            .server_sends(data(300));
        if gap_ms > 0 {
            talk.wait(Duration::from_millis(gap_ms))
                .server_sends(data(700));
        } else {
            let last = talk.segments_mut().last_mut().unwrap();
            last.payload.extend(data(700));
        }
        talk.fin(Side::Client);
        talk
    };
    assert_eq!(
        look(&talk(40_000, 0)),
        [(
            "1.1",
            LIKELY,
            Some(6),
            120,
            300 + ADDED as u64 + 700,
            Complete
        )]
    );
    assert_eq!(look(&talk(40_000, 20))[0].1, CANNOT_TELL);
    // Two long responses, at once: this server sends no tickets.
    let long = |port: u16, offset: u64| {
        let mut talk = of_one(port).starting_at(Conversation::START_NS);
        talk.wait(Duration::from_secs(offset));
        talk.client_sends(data(120)).server_sends(data(3000));
        talk.fin(Side::Client);
        talk
    };
    let mut last = of_one(40_003);
    last.wait(Duration::from_secs(20));
    last.client_sends(data(120)).server_sends(data(300));
    let told = run(
        &HttpConfig::default(),
        &[long(40_001, 1), long(40_002, 4), last],
    )
    .0;
    let classes: Vec<_> = told.iter().map(|told| told.1).collect();
    assert_eq!(classes, [LIKELY, LIKELY, EXACT]);
}

#[test]
fn a_body_and_an_interim_response() {
    let mut talk = of_one(40_000);
    talk.server_sends([record(DATA, TICKET), record(DATA, TICKET)].concat())
        .client_sends(data(150))
        .wait(Duration::from_millis(3))
        .server_sends(data(25))
        .client_sends(data(1000))
        .client_sends(data(200))
        .wait(Duration::from_millis(7))
        .server_sends(data(180));
    talk.fin(Side::Client).fin(Side::Server);
    let mut stage = HttpStage::new(&HttpConfig::default());
    let batch = drive(&mut stage, &talk.frames(), LinkType::ETHERNET, &[]);
    let row = batch.get(0).unwrap().row;
    assert_eq!((batch.len(), row.interim_responses), (1, 1));
    assert_eq!(
        (row.request_bytes, row.response_bytes),
        (Some(1350), Some(180))
    );
    assert_eq!(look(&talk)[0].1, EXACT);
}

#[test]
fn requests_that_do_not_wait_are_not_told_apart() {
    let mut talk = of_one(40_000);
    talk.client_sends(data(120)).server_sends(data(5000));
    let before = talk.segments().last().unwrap().seq;
    talk.client_sends(data(120)).server_sends(data(5000));
    talk.client_sends(data(120)).server_sends(data(5000));
    // The second request was sent before the first response had come.
    let mut at = talk.segments().len();
    at = (0..at)
        .find(|at| talk.segments()[*at].seq == before)
        .map_or(at, |at| at + 1);
    talk.segments_mut()[at].ack = before;
    let classes: Vec<_> = look(&talk).iter().map(|told| told.1).collect();
    assert_eq!(classes, [CANNOT_TELL, CANNOT_TELL, CANNOT_TELL]);
}

#[test]
fn a_version_that_the_handshake_does_not_say_is_a_guess() {
    // The choice of the server stands in one record with other messages.
    let mut talk = opened(talk_to(40_000, 443), &["h2", "http/1.1"], 900);
    talk.server_sends([record(DATA, TICKET), record(DATA, TICKET)].concat())
        .client_sends(data(120))
        .server_sends(data(3000));
    assert_eq!(look(&talk), [("1.1", LIKELY, Some(1), 120, 3000, Complete)]);
}

#[test]
fn streams_one_by_one_and_at_the_same_time() {
    let mut talk = of_two(40_000);
    for _ in 0..3 {
        talk.client_sends(data(60))
            .wait(Duration::from_millis(9))
            .server_sends(data(90))
            .server_sends(data(4000))
            .client_sends(data(13));
    }
    // A record that may be a WINDOW_UPDATE is a block of fields where data follows it.
    talk.client_sends(data(60))
        .server_sends([data(13), data(800)].concat());
    let told = look(&talk);
    assert_eq!(told.len(), 4);
    for one in &told[..3] {
        assert_eq!(*one, ("2", LIKELY, Some(10), 60, 4090, Complete));
    }
    assert_eq!((told[3].1, told[3].2), (LIKELY, Some(1)));

    talk.client_sends(data(60))
        .client_sends(data(70))
        .server_sends(data(900));
    assert_eq!(look(&talk)[4].1, CANNOT_TELL);
}

/// A client that knows how long a response is does not wait for the empty frame behind it.
#[test]
fn the_empty_end_of_a_response_need_not_have_come() {
    for comes_later in [false, true] {
        let mut talk = of_two(40_000);
        talk.client_sends(data(60));
        for _ in 0..4 {
            talk.wait(Duration::from_millis(9))
                .server_sends(data(4000))
                .server_sends(data(9));
            let end = talk.segments().len() - 1;
            talk.client_sends(data(60));
            let seq = talk.segments()[end].seq;
            talk.segments_mut()[end + 1].ack = seq;
            if comes_later {
                talk.exchange(end, end + 1);
            }
        }
        talk.wait(Duration::from_millis(9)).server_sends(data(4000));
        let told = look(&talk);
        assert_eq!(told.len(), 5);
        assert!(told.iter().all(|told| told.1 == LIKELY), "{told:?}");
        // What is no empty frame is a sign of two requests at a time.
        let mut talk = of_two(40_000);
        talk.client_sends(data(60))
            .server_sends(data(4000))
            .server_sends(data(200));
        let end = talk.segments().len() - 1;
        talk.client_sends(data(60));
        let seq = talk.segments()[end].seq;
        talk.segments_mut()[end + 1].ack = seq;
        talk.server_sends(data(4000));
        assert_eq!(look(&talk)[1].1, CANNOT_TELL);
    }
}

#[test]
fn a_server_updates_windows_while_a_client_uploads() {
    let mut talk = of_two(40_000);
    talk.client_sends(data(60)).client_sends(data(5000));
    talk.wait(Duration::from_millis(9)).server_sends(data(13));
    talk.client_sends(data(5000));
    talk.wait(Duration::from_millis(9));
    // An update, and then the response.
    talk.server_sends(data(13)).server_sends(data(150));
    talk.client_sends(data(60)).server_sends(data(900));
    let told = look(&talk);
    assert_eq!(told.len(), 2, "{told:?}");
    assert_eq!((told[0].1, told[0].3, told[0].4), (LIKELY, 10_060, 150));
    assert_eq!(told[1].1, LIKELY);
}

#[test]
fn requests_in_the_record_of_the_preface_are_not_counted() {
    let mut talk = opened(talk_to(40_000, 443), &["h2", "http/1.1"], TWO);
    talk.client_sends(data(24 + 9 + 18 + 13 + 180))
        .server_sends([record(DATA, TICKET), record(DATA, TICKET)].concat())
        .server_sends(data(40))
        .client_sends(data(9))
        .server_sends(data(900));
    for _ in 0..2 {
        talk.client_sends(data(60)).server_sends(data(900));
    }
    talk.wait(Duration::from_millis(2100));
    talk.client_sends(data(60)).server_sends(data(900));
    let classes: Vec<_> = look(&talk).iter().map(|told| told.1).collect();
    assert_eq!(classes, [CANNOT_TELL, CANNOT_TELL, CANNOT_TELL, LIKELY]);
}

/// Several requests at once are answered one by one, and each answer is followed by the next request: on a fast network
/// nothing but the first records tells them from one at a time.
#[test]
fn requests_at_once_are_not_believed_afterwards() {
    let mut talk = of_two(40_000);
    talk.client_sends([data(60), data(40), data(40)].concat());
    for _ in 0..4 {
        talk.wait(Duration::from_millis(9)).server_sends(data(900));
        talk.client_sends(data(40));
    }
    talk.server_sends(data(900));
    assert!(look(&talk).iter().all(|told| told.1 == CANNOT_TELL));

    // Requests that have the same number of records each, as with content, may be one at a time.
    let mut talk = of_two(40_000);
    for _ in 0..3 {
        talk.client_sends([data(60), data(40)].concat());
        talk.wait(Duration::from_millis(9)).server_sends(data(900));
    }
    let classes: Vec<_> = look(&talk).iter().map(|told| told.1).collect();
    assert_eq!(classes, [CANNOT_TELL, LIKELY, LIKELY]);
}

#[test]
fn streams_of_a_connection_that_was_joined_late_may_be_open() {
    let mut talk = talk_to(40_000, 443);
    for _ in 0..3 {
        talk.client_sends(data(40));
        talk.wait(Duration::from_millis(9)).server_sends(data(900));
    }
    assert!(look(&talk).iter().all(|told| told.1 == CANNOT_TELL));
}

#[test]
fn tls_1_2_says_more() {
    let gcm = |content: usize| record(DATA, content + 24);
    let mut talk = talk_to(40_000, 8443);
    talk.handshake()
        .client_sends(client_hello(&["h2", "http/1.1"]));
    talk.server_sends(server_hello(0x0303, &["http/1.1"]))
        .client_sends([record(20, 1), record(HANDSHAKE, 40)].concat())
        .server_sends([record(HANDSHAKE, 200), record(20, 1), record(HANDSHAKE, 40)].concat());
    talk.client_sends(gcm(100))
        .wait(Duration::from_millis(4))
        .server_sends(gcm(250))
        .server_sends(record(21, 26));
    talk.fin(Side::Server).fin(Side::Client);
    let told = look(&talk);
    assert_eq!(told, [("1.1", EXACT, Some(5), 100, 250, Complete)]);
}

#[test]
fn joined_late_and_other_protocols() {
    let mut talk = talk_to(40_000, 443);
    for _ in 0..2 {
        talk.client_sends(data(100))
            .wait(Duration::from_millis(19))
            .server_sends(data(3000));
    }
    let late = ("", LIKELY, Some(20), 100, 3000, Complete);
    assert_eq!(look(&talk), [late, late]);
    // Ports where nothing says that it is HTTP, and protocols that are not.
    let mut elsewhere = talk_to(40_000, 993);
    elsewhere.client_sends(data(100)).server_sends(data(3000));
    assert_eq!(look(&elsewhere), []);
    for (alpn, port, count) in [
        (&["imap"][..], 443, 0),
        (&[], 993, 0),
        (&[], 443, 1),
        (&["http/1.1"], 993, 1),
    ] {
        let mut talk = talk_to(40_000, port);
        talk.handshake().client_sends(client_hello(alpn));
        let flight = [server_hello(0x0304, &[]), data(10), data(800), data(36)].concat();
        talk.server_sends(flight).client_sends(record(DATA, 53));
        talk.client_sends(data(100)).server_sends(data(3000));
        talk.client_sends(data(100)).server_sends(data(3000));
        let told = look(&talk);
        assert_eq!(told.len(), 2 * count, "{alpn:?} {port}");
        let is_named = !alpn.is_empty();
        let best = if is_named { EXACT } else { LIKELY };
        assert!(told.last().is_none_or(|told| told.1 == best), "{alpn:?}");
    }
    let off = HttpConfig {
        estimates: false,
        ..HttpConfig::default()
    };
    assert_eq!(run(&off, &[talk]).0, []);
}

#[test]
fn short_turns_are_no_http() {
    let mut talk = of_one(40_000);
    talk.client_sends(data(300)).server_sends(data(2000));
    for _ in 0..20 {
        talk.client_sends(data(40)).server_sends(data(40));
    }
    let told = look(&talk);
    assert_eq!((told.len(), told[0].1), (21, LIKELY));
    assert!(told[12..].iter().all(|told| told.1 == CANNOT_TELL));
}

#[test]
fn loss_and_order_leave_nothing_wrong() {
    let mut whole = of_one(40_000);
    whole
        .server_sends([record(DATA, TICKET), record(DATA, TICKET)].concat())
        .client_sends(data(3000));
    for _ in 0..4 {
        whole
            .wait(Duration::from_millis(20))
            .server_sends(data(300))
            .server_sends(data(9000))
            .wait(Duration::from_millis(20))
            .client_sends(data(150));
    }
    whole.fin(Side::Client).fin(Side::Server);
    let truth = |talk: &Conversation| {
        let mut stage = HttpStage::new(&HttpConfig::default());
        let batch = drive(
            &mut stage,
            &talk.frames_as_listed(),
            LinkType::ETHERNET,
            &[],
        );
        let told = batch.views().map(|view| {
            let confidence = view.web().unwrap().confidence.unwrap();
            (view.row.request_ts_ns, view.row.response_ts_ns, confidence)
        });
        told.collect::<Vec<_>>()
    };
    let all = truth(&whole);
    assert_eq!(all.len(), 5);
    let is_true = |told: &(Option<u64>, Option<u64>, Confidence)| {
        told.1.is_none()
            || all
                .iter()
                .any(|truth| truth.0 == told.0 && truth.1 == told.1)
    };
    let mut exact = 0;
    for at in 0..whole.segments().len() {
        let mut part = whole.clone();
        part.lose(at);
        let told = truth(&part);
        let others: Vec<_> = told.iter().filter(|told| !is_true(told)).collect();
        // A response whose first segment is missing begins with its second for all who see it; nobody calls it exact.
        assert!(
            others.iter().all(|told| told.2 != Confidence::Exact),
            "without {at}: {others:?}"
        );
        exact += told
            .iter()
            .filter(|told| told.2 == Confidence::Exact)
            .count();
        let mut part = whole.clone();
        let copy = part.segments()[at].clone();
        part.segments_mut().insert(at + 1, copy);
        assert_eq!(
            truth(&part).iter().filter(|told| is_true(told)).count(),
            5,
            "{at} twice"
        );
        if at > 0 {
            let mut part = whole.clone();
            part.segments_mut().swap(at - 1, at);
            assert!(truth(&part).iter().all(is_true), "{at} earlier");
        }
    }
    assert!(exact > 3 * whole.segments().len(), "{exact}");
}

#[test]
fn connections_end_and_begin_between_the_same_ports() {
    let mut first = of_one(40_000);
    first.client_sends(data(120)).wait(Duration::from_millis(3));
    let numbered = talk_to(40_000, 443).numbered(77_777, 99_999);
    let mut second = opened(numbered, &["http/1.1"], ONE);
    second.client_sends(data(130)).server_sends(data(2000));
    for segment in second.segments_mut() {
        segment.at_ns += 5_000_000_000;
    }
    let (told, stats) = run(&HttpConfig::default(), &[first, second]);
    assert_eq!(told.len(), 2, "{told:?}");
    assert_eq!(told[0], ("1.1", EXACT, None, 120, 0, Unanswered));
    assert_eq!((told[1].0, told[1].5), ("1.1", Complete));
    assert_eq!(stats.estimated_connections, 2);
}

#[test]
fn numbers_may_wrap() {
    let mut talk = talk_to(40_000, 443).numbered(u32::MAX - 100, u32::MAX - 200);
    talk.handshake().client_sends(client_hello(&["http/1.1"]));
    let flight = [server_hello(0x0304, &[]), data(ONE), data(800), data(36)].concat();
    talk.server_sends(flight).client_sends(record(DATA, 53));
    talk.client_sends(data(100)).server_sends(data(3000));
    assert!(talk.segments().last().unwrap().seq.before(SeqNumber(5000)));
    assert_eq!(look(&talk).len(), 1);
}

#[test]
fn the_client_alone_is_believed_where_its_acknowledgments_are_slow_enough() {
    let mut talk = of_one(40_000);
    talk.client_sends(data(120))
        .server_sends(data(5000))
        .acknowledges(Side::Client);
    for wait in [80, 5, 60] {
        talk.client_sends(data(100))
            .wait(Duration::from_millis(wait))
            .server_sends(data(3000))
            .acknowledges(Side::Client)
            .wait(Duration::from_millis(10));
    }
    // The next request is what acknowledges the response.
    talk.client_sends(data(100))
        .wait(Duration::from_millis(70))
        .server_sends(data(400))
        .client_sends(data(100));
    talk.segments_mut()
        .retain(|segment| segment.from == Side::Client);
    let told = look(&talk);
    let times: Vec<_> = told.iter().map(|told| (told.1, told.2)).collect();
    assert_eq!(
        times,
        [
            (CANNOT_TELL, None),
            (LIKELY, Some(84)),
            (CANNOT_TELL, None),
            (LIKELY, Some(64)),
            (CANNOT_TELL, None),
            (LIKELY, None),
        ]
    );
    assert_eq!(told[5].5, Unanswered);
    // The server alone does not say when it was asked.
    let mut other = of_one(40_000);
    other.client_sends(data(120)).server_sends(data(5000));
    other
        .segments_mut()
        .retain(|segment| segment.from == Side::Server);
    assert_eq!(look(&other), []);
}

#[test]
fn a_client_alone_whose_records_shrink_has_sent_several_requests_at_once() {
    let mut talk = opened(talk_to(40_000, 443), &["h2", "http/1.1"], TWO);
    // The preface and three requests in one record, then the acknowledgment of SETTINGS, then three at a time.
    talk.client_sends(data(24 + 9 + 18 + 13 + 120))
        .server_sends(data(40))
        .acknowledges(Side::Client)
        .client_sends(data(9));
    for _ in 0..4 {
        talk.wait(Duration::from_millis(60))
            .server_sends(data(3000))
            .acknowledges(Side::Client)
            .wait(Duration::from_millis(10))
            .client_sends(data(81));
    }
    talk.segments_mut()
        .retain(|segment| segment.from == Side::Client);
    let told = look(&talk);
    assert_eq!(told.len(), 5);
    for one in told {
        assert_eq!((one.0, one.1, one.2), ("2", CANNOT_TELL, None));
    }
}

/// A response whose head comes after 20 ms, and records of these lengths so many ms behind one another.
fn trickles(mut talk: Conversation, records: &[(u64, usize)]) -> Vec<Option<(u64, u32, u32)>> {
    talk.client_sends(data(300))
        .wait(Duration::from_millis(19))
        .server_sends(data(420));
    for (pause_ms, content) in records {
        talk.wait(Duration::from_millis(*pause_ms))
            .server_sends(data(*content));
    }
    talk.client_sends(data(120))
        .wait(Duration::from_millis(10))
        .server_sends(data(900));
    let mut stage = HttpStage::new(&HttpConfig::default());
    let batch: HttpBatch = drive(&mut stage, &talk.frames(), LinkType::ETHERNET, &[]);
    let webs: Vec<_> = batch.views().map(|view| view.web().unwrap()).collect();
    for web in &webs {
        let has_events = web.events.is_some();
        assert!(!has_events || web.confidence == LIKELY, "{web:?}");
    }
    let streams = webs.iter().filter(|web| web.events.is_some()).count();
    let stats = &stage.stats().streams;
    assert_eq!(
        (stats.streams, stats.estimated),
        (streams as u64, streams as u64)
    );
    let of = |events: Events| {
        assert_eq!(events.is_buffered, None, "nobody can say it");
        let first_ms = events.first_ns.unwrap() / 1_000_000;
        (first_ms, events.count, events.coalesced)
    };
    webs.iter().map(|web| web.events.map(of)).collect()
}

#[test]
fn small_records_with_pauses_are_a_stream() {
    let events = |count: usize, pause_ms: u64| vec![(pause_ms, 120); count];
    // The spacing of 1 ms comes on top.
    assert_eq!(
        trickles(of_two(40_000), &events(10, 29)),
        [Some((50, 10, 0)), None]
    );
    let with_end = [events(10, 29), vec![(0, 9)]].concat();
    assert_eq!(
        trickles(of_two(40_001), &with_end),
        [Some((50, 10, 0)), None]
    );
    let in_one = [events(10, 29), vec![(0, 5)]].concat();
    let mut one = of_one(40_002);
    one.server_sends([record(DATA, TICKET), record(DATA, TICKET)].concat());
    assert_eq!(trickles(one, &in_one), [Some((50, 10, 0)), None]);
    // Few, short, one after the other, or long records, are any other response.
    let at_once = [vec![(0, 120); 6], events(9, 29)].concat();
    let large = [events(9, 29), vec![(29, 9000)]].concat();
    for records in [
        events(4, 100),
        events(40, 1),
        vec![(0, 1400); 30],
        at_once,
        large,
    ] {
        assert_eq!(
            trickles(of_two(40_003), &records),
            [None, None],
            "{records:?}"
        );
    }
}

#[test]
fn a_connection_takes_160_bytes_besides_its_ends() {
    let size = crate::estimate::connection_bytes();
    assert!(size <= 160, "{size}");
}
