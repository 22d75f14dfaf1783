use std::net::Ipv4Addr;

use linkweir_record::RecordBatch as _;
use linkweir_record::flow::{MessageKind, SpinVerdict};
use proptest::prelude::*;

use super::*;

const START: u64 = 1_000_000;

fn ends() -> Ends {
    Ends {
        client: (Ipv4Addr::new(10, 0, 0, 1).into(), 40_000),
        server: (Ipv4Addr::new(192, 0, 2, 1).into(), 443),
        start_ns: START,
    }
}

/// A datagram that was captured whole.
fn datagram(payload: &[u8], ts_ns: u64) -> Datagram<'_> {
    Datagram {
        payload,
        len: u32::try_from(payload.len()).unwrap(),
        ttl: 64,
        ts_ns,
    }
}

/// A flow that is fed segments.
struct Fed {
    layer7: Layer7,
    handle: Handle,
    out: FlowBatch,
    now: u64,
}

impl Fed {
    fn new(config: &FlowsConfig) -> Self {
        Self {
            layer7: Layer7::new(config),
            handle: Handle::default(),
            out: FlowBatch::default(),
            now: START,
        }
    }

    fn plain() -> Self {
        Self::new(&FlowsConfig::default())
    }

    fn with_messages() -> Self {
        Self::new(&FlowsConfig {
            with_messages: true,
            ..FlowsConfig::default()
        })
    }

    /// A segment, ten nanoseconds after the one before, of which only the beginning was captured.
    fn cut(&mut self, side: Side, payload: &[u8], missing: u32) -> &mut Self {
        self.now += 10;
        let len = u32::try_from(payload.len()).unwrap() + missing;
        let (handle, out) = (&mut self.handle, &mut self.out);
        self.layer7
            .on_tcp(handle, &ends(), side, payload, len, self.now, out);
        self
    }

    fn client(&mut self, payload: &[u8]) -> &mut Self {
        self.cut(Side::Client, payload, 0)
    }

    fn server(&mut self, payload: &[u8]) -> &mut Self {
        self.cut(Side::Server, payload, 0)
    }

    fn datagram(&mut self, side: Side, payload: &[u8]) -> &mut Self {
        self.now += 10;
        let (handle, out) = (&mut self.handle, &mut self.out);
        self.layer7
            .on_udp(handle, &ends(), side, &datagram(payload, self.now), out);
        self
    }

    fn row(&self) -> (FlowRow, FlowText<'_>) {
        let mut row = FlowRow::default();
        self.layer7.fill(self.handle, &mut row);
        (row, self.layer7.text(self.handle))
    }

    fn messages(&self) -> Vec<(MessageKind, u16, Vec<String>)> {
        let text = |text: &&[u8]| String::from_utf8(text.to_vec()).unwrap();
        self.out
            .messages()
            .map(|message| {
                let texts = message.texts.iter().map(text).collect();
                (message.row.kind, message.row.status, texts)
            })
            .collect()
    }
}

const REQUEST: &[u8] = b"GET /a HTTP/1.1\r\nHost: www.example.org\r\nUser-Agent: test\r\nReferer: /b\r\nCookie: c=1\r\nDNT: 1\r\n\r\n";
const RESPONSE: &[u8] = b"HTTP/1.1 404 Not Found\r\nContent-Length: 5\r\nContent-Type: text/plain\r\nServer: s\r\nLocation: /c\r\nSet-Cookie: d\r\n\r\nhello";

fn request_texts() -> Vec<String> {
    ["GET", "www.example.org", "/a", "/b", "test", "c=1", "1", ""]
        .map(str::to_owned)
        .to_vec()
}

#[test]
fn http_is_counted_and_named() {
    let mut fed = Fed::plain();
    fed.client(REQUEST).server(RESPONSE).client(REQUEST);
    fed.server(&RESPONSE[..60]).server(&RESPONSE[60..]);
    let (row, text) = fed.row();
    assert_eq!(row.application, "http");
    assert_eq!(row.con_t, 1);
    assert_eq!((row.http_requests, row.http_responses), (2, 2));
    assert_eq!(row.http_status, 404);
    assert_eq!(text.http_host, b"www.example.org");
    assert!(fed.layer7.wants(fed.handle, Side::Client));
    assert!(fed.out.is_empty());
    let handle = fed.handle;
    fed.layer7.release(handle);
    assert_eq!(fed.layer7.states(), 0);
}

#[test]
fn heads_of_http_messages_however_they_are_cut() {
    for at in 1..REQUEST.len() {
        let mut fed = Fed::with_messages();
        let (first, second) = REQUEST.split_at(at);
        fed.client(first).client(second).server(RESPONSE);
        let (row, text) = fed.row();
        assert_eq!((row.http_requests, row.http_responses), (1, 1), "{at}");
        assert_eq!(text.http_host, b"www.example.org");
        let messages = fed.messages();
        assert_eq!(messages.len(), 2, "{at}");
        assert_eq!(messages[0], (MessageKind::Request, 0, request_texts()));
        let response = ["5", "text/plain", "s", "", "/c", "d", "", ""].map(str::to_owned);
        assert_eq!(messages[1], (MessageKind::Response, 404, response.to_vec()));
        assert!(!fed.handle.waits(Side::Client) && !fed.handle.waits(Side::Server));
    }
}

/// The gateway waits for the end of a head before it says HTTP; a record says the same.
#[test]
fn a_head_over_segments_has_the_label_of_all_of_it() {
    let heads: [(&str, &[u8]); 4] = [
        (
            "gnutella",
            b"GET /get/7/a%20song.ogg HTTP/1.1\r\nHost: 10.0.0.2:6346\r\nUser-Agent: LimeWire/4.2.6\r\nX-Queue: 0.1\r\n\r\n",
        ),
        (
            "gnutella",
            b"GET /uri-res/N2R?urn:sha1:PLSTHIPQGSSZTS5FJUPAKUZWUGYQYPFB HTTP/1.1\r\nHost: a\r\n\r\n",
        ),
        (
            "fasttrack",
            b"GET /.hash=0123456789abcdef0123456789abcdef01234567 HTTP/1.1\r\nHost: a\r\n\r\n",
        ),
        (
            "fasttrack",
            b"GET /a HTTP/1.1\r\nHost: a\r\nX-Kazaa-Username: u\r\nX-Kazaa-Network: KaZaA\r\n\r\n",
        ),
    ];
    for (label, head) in heads {
        for at in 1..head.len() - 2 {
            let mut fed = Fed::plain();
            let (first, second) = head.split_at(at);
            fed.client(first).client(second).server(RESPONSE);
            let (row, _) = fed.row();
            let shown = first.escape_ascii();
            assert_eq!((row.application, row.http_requests), (label, 0), "{shown}");
            assert_eq!(fed.layer7.states(), 0, "{shown}");
            assert_eq!(fed.layer7.shared.pool.in_use(), 0, "{shown}");
        }
    }
}

/// A flow that ends, or has a gap, within its first head.
#[test]
fn a_head_without_its_end_is_http() {
    let half = &REQUEST[..50];
    let is_http = |fed: &Fed, requests| {
        let (row, text) = fed.row();
        assert_eq!((row.application, row.http_requests), ("http", requests));
        assert_eq!(text.http_host, b"www.example.org");
    };
    let mut fed = Fed::plain();
    is_http(fed.client(half), 1);
    fed.client(&REQUEST[50..]).client(REQUEST).server(RESPONSE);
    is_http(&fed, 2);
    assert_eq!(fed.layer7.shared.pool.in_use(), 0);

    let mut fed = Fed::plain();
    fed.client(half);
    fed.layer7.lost(fed.handle, Side::Client, 700);
    is_http(fed.client(b"of a cookie\r\n\r\n").server(RESPONSE), 1);
    let mut fed = Fed::plain();
    is_http(fed.cut(Side::Client, half, 100).server(RESPONSE), 1);
    // Not even a line: no request of HTTP 1.
    let mut fed = Fed::plain();
    fed.client(b"GET /a").client(b"\r\n");
    assert_eq!(fed.row().0.application, FlowRow::default().application);
}

#[test]
fn pipelined_requests_and_responses_in_one_segment() {
    let mut fed = Fed::with_messages();
    let requests = REQUEST.repeat(5);
    // The fifth is cut, and goes on in the next segment.
    let (first, second) = requests.split_at(requests.len() - 20);
    fed.client(first);
    assert_eq!(fed.row().0.http_requests, 5);
    assert_eq!(fed.messages().len(), 4);
    fed.client(second).server(&RESPONSE.repeat(3));
    let (row, _) = fed.row();
    assert_eq!((row.http_requests, row.http_responses), (5, 3));
    assert_eq!(fed.messages().len(), 8);
}

#[test]
fn what_follows_a_gap_does_not_end_a_head() {
    let mut fed = Fed::with_messages();
    fed.client(&REQUEST[..50]);
    fed.layer7.lost(fed.handle, Side::Client, 10);
    fed.client(REQUEST);
    assert_eq!(fed.row().0.http_requests, 2);
    let messages = fed.messages();
    assert_eq!(messages[0].2[1], "www.example.org");
    assert_eq!(messages[0].2[4], "");
    assert_eq!(messages[1].2, request_texts());
    // A gap in a body says nothing of a head that comes later.
    let mut fed = Fed::with_messages();
    fed.client(REQUEST).client(b"body");
    fed.layer7.lost(fed.handle, Side::Client, 10);
    fed.client(&REQUEST[..50]).client(&REQUEST[50..]);
    assert_eq!(fed.messages()[1].2, request_texts());
    // Cut by the snap length: nothing more comes of this one.
    let mut fed = Fed::with_messages();
    fed.cut(Side::Client, &REQUEST[..50], 48).client(REQUEST);
    assert_eq!(fed.messages().len(), 2);
}

#[test]
fn an_endless_head_ends() {
    let mut fed = Fed::with_messages();
    fed.client(b"GET / HTTP/1.1\r\nHost: a\r\n");
    for _ in 0..100 {
        fed.client(&[b'x'; 1000]);
    }
    assert_eq!(fed.row().0.http_requests, 1);
    assert_eq!(fed.messages().len(), 1);
    assert!(!fed.handle.waits(Side::Client));
}

#[test]
fn a_flow_seen_from_its_middle_and_the_wrong_way_round() {
    let mut fed = Fed::with_messages();
    fed.client(&[0xff; 1400])
        .client(&[0xfe; 1400])
        .client(RESPONSE);
    fed.server(REQUEST);
    let (row, _) = fed.row();
    assert_eq!((row.http_requests, row.http_responses), (1, 1));
    let of = |at: usize| *fed.out.messages().nth(at).unwrap().row;
    assert_eq!(of(0).client, ends().server);
    assert_eq!(of(1).client, ends().server);
}

/// As aria2 does by default: random bytes of both sides (MSE), then the handshake in clear, alone in its
/// segment or behind more random bytes.
#[test]
fn bittorrent_behind_an_exchange_of_keys() {
    let random = |len: u8| -> Vec<u8> { (0..len).map(|at| at.wrapping_mul(89) | 0x80).collect() };
    let handshake = [b"\x13BitTorrent protocol".as_slice(), &[0; 48]].concat();
    for before in [0, 40] {
        let mut fed = Fed::plain();
        fed.client(&random(200)).server(&random(180));
        fed.client(&random(130)).server(&random(90));
        assert_eq!(fed.row().0.application, "");
        fed.client(&[random(before), handshake.clone()].concat());
        let (row, _) = fed.row();
        assert_eq!((row.application, row.p2p_t), ("bittorrent", 9), "{before}");
        assert_eq!(fed.layer7.states(), 0);
    }
    // What comes later than the first packets does not name a flow.
    let mut fed = Fed::plain();
    for _ in 0..5 {
        fed.client(&random(200)).server(&random(180));
    }
    fed.client(&handshake);
    assert_eq!(fed.row().0.application, "");
}

#[test]
fn what_nobody_knows_costs_nothing() {
    let mut fed = Fed::plain();
    for _ in 0..8 {
        assert!(fed.layer7.wants(fed.handle, Side::Server));
        fed.server(&[0xee, 1, 2, 3].repeat(3));
    }
    assert!(!fed.layer7.wants(fed.handle, Side::Server));
    assert_eq!(fed.layer7.states(), 0);
    assert_eq!(fed.row().0, FlowRow::default());
}

#[test]
fn a_label_alone_needs_no_state() {
    let mut fed = Fed::plain();
    fed.server(b"SSH-2.0-OpenSSH_9.2\r\n")
        .client(b"SSH-2.0-OpenSSH_9.2\r\n");
    assert!(!fed.layer7.wants(fed.handle, Side::Server));
    assert_eq!(fed.layer7.states(), 0);
    let (row, _) = fed.row();
    assert_eq!((row.application, row.con_t), ("ssh", 32768));
    let handle = fed.handle;
    fed.layer7.release(handle);
    for application in Application::ALL {
        let mut handle = Handle::default();
        handle.set_label(Some(*application));
        assert_eq!((handle.label(), handle.index()), (Some(*application), None));
    }
}

#[test]
fn a_flow_that_begins_with_stun_is_what_it_goes_on_as_too() {
    let stun = [&[0, 1, 0, 0, 0x21, 0x12, 0xA4, 0x42][..], &[5; 12]].concat();
    let hello = [&[22, 0xFE, 0xFD][..], &[0; 9], &[20, 1], &[0; 19]].concat();
    let media = |sequence: u8| {
        let header = [0x80, 111, 0, sequence, 0, 0, 0, sequence, 0, 0, 0xCA, 0xFE];
        [&header[..], &[0xD5; 40]].concat()
    };
    let mut fed = Fed::plain();
    // More than an unknown flow is looked at.
    for _ in 0..20 {
        fed.datagram(Side::Client, &stun);
        assert_eq!(fed.row().0.application, "stun");
    }
    fed.datagram(Side::Server, &hello);
    assert_eq!(fed.row().0.application, "stun,dtls");
    for sequence in 1..3 {
        fed.datagram(Side::Client, &media(sequence));
        fed.datagram(Side::Server, &stun);
        assert!(fed.layer7.wants(fed.handle, Side::Client));
    }
    fed.datagram(Side::Client, &media(3));
    assert_eq!(fed.row().0.application, "stun,dtls,rtp");
    assert!(!fed.layer7.wants(fed.handle, Side::Client));
    assert_eq!(fed.layer7.states(), 0);

    // What has no place behind STUN does not take its place.
    let mut fed = Fed::plain();
    fed.datagram(Side::Client, &stun)
        .datagram(Side::Client, &initial());
    assert_eq!(fed.row().0.application, "stun");

    // Nothing but STUN is not looked at for ever.
    let mut fed = Fed::plain();
    for _ in 0..255 {
        assert!(fed.layer7.wants(fed.handle, Side::Client));
        fed.datagram(Side::Client, &stun);
    }
    assert!(!fed.layer7.wants(fed.handle, Side::Client));
    assert_eq!(fed.row().0.application, "stun");
}

#[test]
fn states_are_bounded_and_come_back() {
    let config = FlowsConfig {
        max_flows: 400,
        ..FlowsConfig::default()
    };
    let mut layer7 = Layer7::new(&config);
    let mut out = FlowBatch::default();
    let len = u32::try_from(REQUEST.len()).unwrap();
    for round in 1..=2 {
        let mut handles = vec![Handle::default(); 150];
        for handle in &mut handles {
            layer7.on_tcp(handle, &ends(), Side::Client, REQUEST, len, 0, &mut out);
        }
        assert_eq!(layer7.states(), 100);
        assert_eq!(layer7.counters().states_refused, 50 * round);
        assert!(!layer7.wants(handles[149], Side::Client));
        for handle in handles {
            layer7.release(handle);
        }
        assert_eq!(layer7.states(), 0);
    }
}

fn vector<const N: usize>(content: &[u8]) -> Vec<u8> {
    let len = u32::try_from(content.len()).unwrap().to_be_bytes();
    [&len[4 - N..], content].concat()
}

fn record(content: u8, body: &[u8]) -> Vec<u8> {
    [&[content, 3, 3], vector::<2>(body).as_slice()].concat()
}

fn message(kind: u8, body: &[u8]) -> Vec<u8> {
    [&[kind], vector::<3>(body).as_slice()].concat()
}

fn extension(kind: u16, content: &[u8]) -> Vec<u8> {
    [kind.to_be_bytes().as_slice(), &vector::<2>(content)].concat()
}

/// A `ClientHello` for `a.example` that offers `h2` and `http/1.1`, a ticket, TLS 1.2 and 1.3, and
/// a key share as long as those of today.
fn client_hello() -> Vec<u8> {
    let name = [&[0], vector::<2>(b"a.example").as_slice()].concat();
    let alpn = [vector::<1>(b"h2"), vector::<1>(b"http/1.1")].concat();
    let extensions = [
        extension(51, &[1; 1216]),
        extension(0, &vector::<2>(&name)),
        extension(16, &vector::<2>(&alpn)),
        extension(35, &[1; 200]),
        extension(43, &[4, 3, 4, 3, 3]),
    ];
    let body = [
        [3, 3].as_slice(),
        &[7; 32],
        &vector::<1>(&[9; 32]),
        &vector::<2>(&[0x13, 1]),
        &[1, 0],
        &vector::<2>(&extensions.concat()),
    ];
    message(1, &body.concat())
}

fn server_hello(extensions: &[Vec<u8>]) -> Vec<u8> {
    let body = [
        [3, 3].as_slice(),
        &[8; 32],
        &[0, 0x13, 1, 0],
        &vector::<2>(&extensions.concat()),
    ];
    message(2, &body.concat())
}

/// A certificate for `b.example`, with 900 bytes behind its subject.
fn certificate() -> Vec<u8> {
    let der = |tag: u8, content: &[u8]| [&[tag, 0x82], vector::<2>(content).as_slice()].concat();
    let name = [der(6, &[0x55, 4, 3]), der(12, b"b.example")].concat();
    let tbs = [
        der(2, &[1]),
        der(0x30, &[]),
        der(0x30, &[]),
        der(0x30, &[]),
        der(0x30, &der(0x31, &der(0x30, &name))),
        der(0x30, &[7; 900]),
    ];
    let certificate = der(0x30, &der(0x30, &tbs.concat()));
    let list = [vector::<3>(&certificate), vector::<3>(&[1; 3000])].concat();
    message(11, &vector::<3>(&list))
}

/// What client and server of a whole handshake of TLS 1.2 send, in records of `size` bytes.
fn full_handshake(size: usize) -> (Vec<u8>, Vec<u8>, Vec<u8>) {
    let alpn = extension(16, &vector::<2>(&vector::<1>(b"h2")));
    let messages = [
        server_hello(&[alpn]),
        certificate(),
        message(12, &[1; 300]),
        message(14, &[]),
    ];
    let records = |bytes: &[u8]| -> Vec<u8> {
        bytes
            .chunks(size)
            .flat_map(|part| record(22, part))
            .collect()
    };
    let finished = [record(22, &message(16, &[1; 65])), record(20, &[1])].concat();
    (
        records(&client_hello()),
        records(&messages.concat()),
        finished,
    )
}

#[test]
fn a_whole_handshake_of_tls_1_2() {
    for (size, mss) in [(16_000, 1460), (16_000, 1), (700, 1300), (3, 64), (1, 7)] {
        let (hello, answer, finished) = full_handshake(size);
        let mut fed = Fed::plain();
        for part in hello.chunks(mss) {
            fed.client(part);
        }
        for part in answer.chunks(mss) {
            fed.server(part);
        }
        fed.client(&finished);
        let client_handshake = fed.now - START;
        let change = [record(20, &[1]), record(22, &[0xaa; 40])].concat();
        fed.server(&change);
        let server_handshake = fed.now - START;
        let data = record(23, &[5; 5000]);
        let data_at = fed.now + 10 - START;
        for part in data.chunks(mss) {
            fed.client(part);
        }
        fed.server(&[record(23, &[5; 10]), record(21, &[2; 26])].concat());
        let (row, text) = fed.row();
        assert_eq!(row.application, "tls", "{size} {mss}");
        assert_eq!(text.sni, b"a.example");
        assert_eq!(text.client_alpn, b"h2,http/1.1");
        assert_eq!(text.server_alpn, b"h2");
        assert_eq!(text.certificate_name, b"b.example");
        assert_eq!(
            (row.client.tls_version, row.server.tls_version),
            (0x0304, 0x0303)
        );
        assert_eq!(row.tls_session, 0);
        assert_eq!(row.client.last_handshake_ns, Some(client_handshake));
        assert_eq!(row.server.last_handshake_ns, Some(server_handshake));
        let header_parts = 5_u64.div_ceil(mss as u64) - 1;
        assert_eq!(row.client.appdata_ns, Some(data_at + 10 * header_parts));
        assert_eq!(
            (row.client.appdata_bytes, row.server.appdata_bytes),
            (5000, 10)
        );
        assert!(fed.layer7.wants(fed.handle, Side::Server));
    }
}

#[test]
fn resumed_sessions() {
    let hello = record(22, &client_hello());
    let mut fed = Fed::plain();
    fed.client(&hello);
    fed.server(&[record(22, &server_hello(&[])), record(20, &[1])].concat());
    assert_eq!(fed.row().0.tls_session, 2);
    // Without a ticket: by id.
    let mut fed = Fed::plain();
    let body = [
        [3, 3].as_slice(),
        &[7; 32],
        &vector::<1>(&[9; 32]),
        &[0, 2, 0, 5, 1, 0],
    ]
    .concat();
    fed.client(&record(22, &message(1, &body)));
    fed.server(&[record(22, &server_hello(&[])), record(20, &[1])].concat());
    assert_eq!(fed.row().0.tls_session, 1);
    // TLS 1.3: with and without a key shared before.
    for (key, expected) in [(true, 2), (false, 0)] {
        let mut extensions = vec![extension(43, &[3, 4])];
        if key {
            extensions.push(extension(41, &[0, 0]));
        }
        let mut fed = Fed::plain();
        fed.client(&hello);
        fed.server(&[record(22, &server_hello(&extensions)), record(20, &[1])].concat());
        fed.server(&record(23, &[1; 900]));
        let (row, _) = fed.row();
        assert_eq!(
            (row.tls_session, row.server.tls_version),
            (expected, 0x0304)
        );
    }
}

#[test]
fn tls_goes_on_behind_a_gap() {
    let (hello, answer, _) = full_handshake(16_000);
    let mut fed = Fed::plain();
    fed.client(&hello);
    fed.server(&answer[..1000]);
    // Within the record of the handshake, then beyond it.
    fed.layer7.lost(fed.handle, Side::Server, 1000);
    fed.server(&answer[2000..2500]);
    fed.layer7.lost(fed.handle, Side::Server, 100_000);
    fed.server(&[9; 100]);
    fed.server(&record(23, &[1; 70]));
    let (row, text) = fed.row();
    assert_eq!(row.server.appdata_bytes, 70);
    assert_eq!(text.certificate_name, b"b.example");
    // A header-only capture: sizes of records are known, their content is not.
    let mut fed = Fed::plain();
    fed.client(&hello);
    let data = record(23, &[1; 3000]);
    fed.cut(Side::Server, &data[..40], 1420)
        .cut(Side::Server, &data[1460..1500], 1505);
    fed.server(&record(23, &[1; 30]));
    assert_eq!(fed.row().0.server.appdata_bytes, 3030);
}

#[test]
fn a_hello_that_is_cut_gives_its_name() {
    let hello = record(22, &client_hello());
    let mut fed = Fed::plain();
    fed.cut(Side::Client, &hello[..1400], 200);
    let (row, text) = fed.row();
    assert_eq!(
        (row.application, text.sni),
        ("tls", b"a.example".as_slice())
    );
    let mut fed = Fed::plain();
    fed.client(&hello[..1400]);
    fed.layer7.lost(fed.handle, Side::Client, 10);
    assert_eq!(fed.row().1.sni, b"a.example");
}

#[test]
fn messages_of_edonkey() {
    let packet = |protocol: u8, opcode: u8, len: usize| {
        let size = u32::try_from(len + 1).unwrap().to_le_bytes();
        [&[protocol], size.as_slice(), &[opcode], &vec![0; len]].concat()
    };
    let stream = [
        packet(0xe3, 0x01, 40),
        packet(0xc5, 0x01, 10),
        packet(0xe3, 0x46, 5000),
        packet(0xe3, 0x4e, 9),
        packet(0xe3, 0x16, 30),
        packet(0xd4, 0x40, 800),
    ]
    .concat();
    for mss in [1, 5, 1460, 100_000] {
        let mut layer7 = Layer7::new(&FlowsConfig::default());
        let mut handle = Handle::default();
        layer7.slab.take(&mut handle).unwrap();
        handle.set_stage(Stage::Ed2k);
        for part in stream.chunks(mss) {
            let segment = Segment {
                ends: &ends(),
                side: Side::Client,
                payload: part,
                missing: 0,
                ts_ns: 0,
            };
            layer7.on_ed2k(handle, &segment);
        }
        let mut row = FlowRow::default();
        layer7.fill(handle, &mut row);
        assert_eq!(row.ed2k, [2, 4, 1, 3, 1], "{mss}");
    }
}

/// An Initial packet of QUIC version 1 to `8394c8f03e515708` whose hello is that of RFC 9001
/// appendix A.2: sealed with the keys of appendix A.1 under packet number 0, without padding.
const INITIAL: &str = "c800000001088394c8f03e51570800004109f3fba43546b4512b9b7ca3cac0a5a46d3cde86ea1ba948b493c6\
    5035757d070d55f5e8dc088bde29b4615c30345b27fb15e5e566eb0368d7f1e3ba76b4ddde8b3162714bcb3d\
    2b949c2dedd203be8c7cdb3cbe4bacbc32e89de18847650fdf5421a704078683498a02185422399dfd105e23\
    54c395ca25e5c6824be3183a75c14cfa0aa44decbf629e2e0a2abd22cf58a7abd84c145625469387953b12db\
    43290e859f0d59d97b2e406c59c0cccb770a1d0a2b717e95c60b8196559f760b21476c9a139930e243405520\
    fdfda15ff3d2fd5cf298bfac6f4dfec56d3302e85e2c99812ab4617193b09307e349a5fad81d0da65eaef52a\
    9f96a14cc7c7e930e8dd4ad348ad48cf68ee82";

fn initial() -> Vec<u8> {
    let digits: Vec<u8> = INITIAL
        .chars()
        .map(|digit| u8::try_from(digit.to_digit(16).unwrap()).unwrap())
        .collect();
    digits
        .chunks(2)
        .map(|pair| pair[0] << 4 | pair[1])
        .collect()
}

#[test]
fn quic_until_it_is_settled() {
    let mut fed = Fed::plain();
    let zero_rtt = [0xd0, 0, 0, 0, 1, 1, 7, 0, 20];
    let first = [initial().as_slice(), &zero_rtt, &[0; 20]].concat();
    fed.datagram(Side::Client, &first);
    assert!(fed.layer7.wants(fed.handle, Side::Client));
    fed.datagram(Side::Server, &[0xe0, 0, 0, 0, 1, 0, 1, 7, 4, 1, 2, 3, 4]);
    fed.datagram(Side::Client, &[0x40; 30]);
    // From here on only the spin bit is watched.
    assert_eq!(fed.handle.stage(), Stage::Spin);
    let (row, text) = fed.row();
    assert_eq!(row.application, "quic");
    assert_eq!(text.sni, b"example.com");
    assert_eq!(text.client_alpn, b"alpn");
    assert_eq!((row.client.quic_version, row.server.quic_version), (1, 1));
    assert!(row.has_zero_rtt && !row.has_ech);
    assert_eq!(fed.layer7.shared.gathering.in_use(), 0);
}

#[test]
fn quic_round_trips_retries_and_the_spin_bit() {
    let versions = [0x80, 0, 0, 0, 0, 0, 1, 7, 0, 0, 0, 1];
    let retry = [0xf0, 0, 0, 0, 1, 0, 1, 9, 1, 2, 3, 4, 5, 6, 7, 8];
    let mut fed = Fed::plain();
    let hello = [initial().as_slice(), &[0; 900]].concat();
    fed.datagram(Side::Client, &hello);
    fed.datagram(Side::Server, &versions);
    fed.datagram(Side::Client, &hello);
    fed.datagram(Side::Server, &retry);
    fed.datagram(Side::Client, &hello);
    // Initial, Handshake and data of the server in one datagram.
    let answer = [0xc0, 0, 0, 0, 1, 0, 1, 7, 0, 4, 1, 2, 3, 4];
    let handshake = [0xe0, 0, 0, 0, 1, 0, 1, 7, 4, 1, 2, 3, 4];
    let data = [0x40; 30];
    let first = [answer.as_slice(), &handshake, &data].concat();
    fed.datagram(Side::Server, &first);
    fed.datagram(Side::Client, &[handshake.as_slice(), &[0; 40]].concat());
    let (row, _) = fed.row();
    let quic = row.quic.unwrap();
    assert_eq!((quic.retries, quic.version_negotiations), (1, 1));
    assert_eq!((quic.initial_ns, quic.handshake_ns), (Some(10), Some(10)));
    assert_eq!(quic.spin_verdict, None);
    // The bit goes round forty times: a side sends ten packets and waits for the other's.
    let mut value = 0x60;
    for _ in 0..40 {
        for first in [value, value ^ 0x20] {
            let client = [[first].as_slice(), &data].concat();
            for _ in 0..2 {
                fed.now -= 5;
                fed.datagram(Side::Client, &client);
            }
            for _ in 0..2 {
                fed.now -= 5;
                fed.datagram(Side::Server, &client);
            }
        }
        value = 0x60;
    }
    let (row, _) = fed.row();
    let quic = row.quic.unwrap();
    assert_eq!(quic.spin_verdict, Some(SpinVerdict::Ok));
    let spin = quic.spin.unwrap();
    assert_eq!((spin.server_ns, spin.client_ns), (10, 10));
    assert!(quic.spin_count > 70, "{quic:?}");
    assert_eq!(fed.layer7.shared.gathering.in_use(), 0);
    fed.layer7.release(fed.handle);
    assert_eq!(fed.layer7.states(), 0);
}

/// Only who has QUIC pays for it: Google's versions have no spin bit, and their flows are settled as before.
#[test]
fn quic_without_a_spin_bit_is_settled() {
    let mut fed = Fed::plain();
    let mut hello = [initial().as_slice(), &[0; 900]].concat();
    hello[1..5].copy_from_slice(b"Q050");
    for _ in 0..40 {
        fed.datagram(Side::Client, &hello);
        fed.datagram(Side::Server, &[0x40; 30]);
        fed.datagram(Side::Client, &[0x60; 30]);
    }
    assert!(!fed.layer7.wants(fed.handle, Side::Client));
    assert_eq!(fed.row().0.quic.unwrap().spin_verdict, None);
    // Nor is a capture of one direction watched.
    let mut fed = Fed::plain();
    let hello = [initial().as_slice(), &[0; 900]].concat();
    for _ in 0..40 {
        fed.datagram(Side::Client, &hello);
    }
    assert!(!fed.layer7.wants(fed.handle, Side::Client));
}

/// A client whose port changes on the path, without its knowledge: the server's id goes on.
#[test]
fn quic_from_another_port() {
    let mut fed = Fed::plain();
    let chosen = *b"abcdefgh";
    let hello = [initial().as_slice(), &[0; 900]].concat();
    fed.datagram(Side::Client, &hello);
    let mut handshake = vec![0xe0, 0, 0, 0, 1, 0, 8];
    handshake.extend(chosen);
    handshake.extend([4, 1, 2, 3, 4]);
    fed.datagram(Side::Server, &handshake);
    let data = [[0x40].as_slice(), &chosen, &[0x55; 40]].concat();
    fed.datagram(Side::Client, &data);
    assert!(!fed.row().0.quic.unwrap().is_migrated);
    let moved = Ends {
        client: (ends().client.0, 50_123),
        ..ends()
    };
    let row = |fed: &mut Fed, ends: &Ends, payload: &[u8]| {
        let mut handle = Handle::default();
        let datagram = datagram(payload, START + 99);
        let out = &mut fed.out;
        let layer7 = &mut fed.layer7;
        layer7.on_udp(&mut handle, ends, Side::Client, &datagram, out);
        let mut row = FlowRow::default();
        layer7.fill(handle, &mut row);
        layer7.release(handle);
        row
    };
    let found = row(&mut fed, &moved, &data);
    assert!(found.quic.unwrap().is_migrated);
    assert_eq!((found.application, found.server.quic_version), ("quic", 1));
    // Another id, or another server, is another connection.
    let mut other = data.clone();
    other[3] ^= 1;
    assert_eq!(row(&mut fed, &moved, &other).quic, None);
    let elsewhere = Ends {
        server: (moved.server.0, 8443),
        ..moved
    };
    assert_eq!(row(&mut fed, &elsewhere, &data).quic, None);
}

#[test]
fn hellos_that_never_end_are_bounded() {
    let mut layer7 = Layer7::new(&FlowsConfig::default());
    let mut out = FlowBatch::default();
    let mut hello = initial();
    // The tag is wrong: nothing is ever read.
    *hello.last_mut().unwrap() ^= 1;
    let mut handles = vec![Handle::default(); 1100];
    for handle in &mut handles {
        layer7.on_udp(
            handle,
            &ends(),
            Side::Client,
            &datagram(&hello, 0),
            &mut out,
        );
    }
    assert_eq!(layer7.shared.gathering.in_use(), 1024);
    assert_eq!(layer7.counters().gathers_refused, 76);
    for handle in handles {
        layer7.release(handle);
    }
    assert_eq!((layer7.shared.gathering.in_use(), layer7.states()), (0, 0));
}

/// A question for the address of `n.example`, or the answer 192.0.2.1.
fn dns(is_answer: bool) -> Vec<u8> {
    let flags: u16 = if is_answer { 0x8180 } else { 0x0100 };
    let mut message = vec![0x12, 0x34];
    message.extend(flags.to_be_bytes());
    message.extend([0, 1, 0, u8::from(is_answer), 0, 0, 0, 0]);
    let name = b"\x01n\x07example\0";
    message.extend(name);
    message.extend([0, 1, 0, 1]);
    if is_answer {
        message.extend([0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 60, 0, 4, 192, 0, 2, 1]);
    }
    message
}

#[test]
fn a_flow_is_named_by_what_its_client_asked() {
    let resolver = (Ipv4Addr::new(10, 0, 0, 53).into(), 53);
    for reversed in [false, true] {
        let mut fed = Fed::plain();
        let client = (ends().client.0, 3333);
        let mut ends_of_dns = Ends {
            client,
            server: resolver,
            start_ns: START,
        };
        let mut answer_from = Side::Server;
        let mut dns_handle = Handle::default();
        if reversed {
            std::mem::swap(&mut ends_of_dns.client, &mut ends_of_dns.server);
            answer_from = Side::Client;
        }
        let mut on_udp = |side: Side, payload: &[u8], now: u64| {
            let handle = &mut dns_handle;
            let out = &mut fed.out;
            fed.layer7
                .on_udp(handle, &ends_of_dns, side, &datagram(payload, now), out);
        };
        on_udp(answer_from.other(), &dns(false), 5_000);
        on_udp(answer_from, &dns(true), 6_000);
        let mut row = FlowRow::default();
        fed.layer7.fill(dns_handle, &mut row);
        assert_eq!(row.application, "dns");
        assert_eq!(fed.layer7.states(), 0);
        assert!(fed.layer7.wants(dns_handle, Side::Server));

        fed.layer7.opened(&mut fed.handle, &ends());
        for _ in 0..8 {
            fed.client(&[0xee; 20]);
        }
        let (row, text) = fed.row();
        assert_eq!(text.fqdn, b"n.example");
        assert_eq!(row.dns_resolver, Some(resolver.0));
        assert_eq!(row.dns_request_ns, Some(5_000));
        assert_eq!(row.dns_response_ns, Some(6_000));
        assert!(!fed.layer7.wants(fed.handle, Side::Client));
        assert_eq!(fed.layer7.dns_counters().answers, 1);
    }
}

#[test]
fn names_are_overheard_and_come_over_tcp() {
    let (client, resolver) = (ends().client.0, Ipv4Addr::new(10, 0, 0, 53).into());
    let mut fed = Fed::plain();
    // A question from the port of answers.
    fed.layer7
        .learn_names(client, 3, resolver, &dns(false), true, 1);
    fed.layer7
        .learn_names(client, 3, resolver, &dns(true), true, 2);
    fed.layer7.opened(&mut fed.handle, &ends());
    let (row, text) = fed.row();
    assert_eq!(
        (text.fqdn, row.dns_request_ns),
        (b"n.example".as_slice(), None)
    );

    let mut fed = Fed::plain();
    let mut handle = Handle::default();
    let ends_of_dns = Ends {
        server: (resolver, 53),
        ..ends()
    };
    for (side, message) in [(Side::Client, dns(false)), (Side::Server, dns(true))] {
        let framed = vector::<2>(&message);
        let len = u32::try_from(framed.len()).unwrap();
        let out = &mut fed.out;
        fed.layer7
            .on_tcp(&mut handle, &ends_of_dns, side, &framed, len, 9, out);
    }
    fed.layer7.opened(&mut fed.handle, &ends());
    assert_eq!(fed.row().1.fqdn, b"n.example");
}

proptest! {
    /// Whatever comes, however it is cut: no panic, counters that only grow, and everything given
    /// back at the end.
    #[test]
    fn anything_in_any_order(
        pieces in proptest::collection::vec(
            (0_usize..8, any::<bool>(), 0_usize..3000, 0_usize..1500, 0_u32..3),
            0..60,
        ),
        with_messages in any::<bool>(),
    ) {
        let (hello, answer, finished) = full_handshake(900);
        let data = [record(23, &[5; 2000]), record(22, &[1; 100])].concat();
        let sources = [
            REQUEST.repeat(40), RESPONSE.repeat(40), hello, answer, finished, data,
            vec![0xe3; 3000], (0..=255).cycle().take(3000).collect(),
        ];
        let mut fed = Fed::new(&FlowsConfig { with_messages, ..FlowsConfig::default() });
        let mut before = (0, 0, 0);
        for (source, is_client, from, len, missing) in pieces {
            let side = if is_client { Side::Client } else { Side::Server };
            let bytes = sources[source].get(from..).unwrap_or_default();
            let bytes = bytes.get(..len).unwrap_or(bytes);
            match missing {
                0 => fed.layer7.lost(fed.handle, side, u32::try_from(from).unwrap()),
                1 => {}
                _ => {
                    fed.cut(side, bytes, u32::try_from(from).unwrap());
                    continue;
                }
            }
            fed.cut(side, bytes, 0);
            let (row, _) = fed.row();
            let now = (row.http_responses, row.client.appdata_bytes, row.server.appdata_bytes);
            prop_assert!(now.1 >= before.1 && now.2 >= before.2);
            before = now;
        }
        let handle = fed.handle;
        fed.layer7.release(handle);
        prop_assert_eq!(fed.layer7.states(), 0);
        prop_assert_eq!(fed.layer7.shared.pool.in_use(), 0);
        prop_assert!(fed.layer7.shared.budget.is_whole());
    }

    #[test]
    fn any_datagrams(
        datagrams in proptest::collection::vec(
            (any::<bool>(), proptest::collection::vec(any::<u8>(), 0..200), 0_usize..300), 0..40),
    ) {
        let mut fed = Fed::plain();
        for (is_client, bytes, from) in datagrams {
            let side = if is_client { Side::Client } else { Side::Server };
            let datagram = [initial().get(from..).unwrap_or_default(), &bytes].concat();
            fed.datagram(side, &datagram);
        }
        let handle = fed.handle;
        fed.layer7.release(handle);
        prop_assert_eq!(fed.layer7.states(), 0);
        prop_assert_eq!(fed.layer7.shared.gathering.in_use(), 0);
    }
}
