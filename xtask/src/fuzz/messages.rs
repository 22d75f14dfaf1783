//! Messages that fuzzing starts from and that are no frames of the bundled capture.

use super::conversations;
use crate::shell::root;
use anyhow::Result;

/// A recorded connection of TLS, as its target takes it: what it is and its length in front of each part.
fn recorded(text: &str) -> Vec<u8> {
    let mut all = Vec::new();
    for line in text.lines() {
        let Some((kind, rest)) = line.split_once(' ') else {
            continue;
        };
        let hex = |digits: &str| -> Vec<u8> {
            let pairs = digits.as_bytes().chunks(2);
            pairs
                .filter_map(|pair| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok())
                .collect()
        };
        let (kind, bytes) = match kind {
            "C" => (0, hex(rest)),
            "S" => (1, hex(rest)),
            "K" => (2, format!("{rest}\n").into_bytes()),
            _ => continue,
        };
        all.push(kind);
        all.extend(u16::try_from(bytes.len()).unwrap_or(u16::MAX).to_be_bytes());
        all.extend(bytes);
    }
    all
}

/// Lines of records as `linkweir http` and `flows` write them.
const STORED: [(&str, &str); 3] = [
    (
        "http",
        "{\"request_ts_ns\":1795227738898898000,\"client_ip\":\"10.80.0.12\",\"client_port\":38774,\"status_code\":200,\
         \"method\":\"GET\",\"host\":\"a.test\",\"uri\":\"/\\u00e9?q=\\\"1\\\"\",\"response_time_ns\":47000,\"state\":\"complete\"}",
    ),
    (
        "flow",
        "{\"protocol\":\"tcp\",\"c_ip\":\"fe80::1\",\"first\":1795227738.898898,\"c_bytes_all\":3780,\"has_syn\":true,\
         \"tcp_mss\":[1460,null],\"sni\":null}\n{}\n[1]\n{\"a\":{\"b\":[-1.5e3]}}",
    ),
    ("cut", "{\"host\":\"a.test\",\"status_code\":2"),
];

const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// A packet of RTP with an extension, and reports of RTCP of a sender and of a receiver.
const MEDIA: &[(&str, &[u8])] = &[
    (
        "media",
        b"\x90\x60\0\x01\0\0\0\x02\0\0\0\x03\xBE\xDE\0\x01\x10\0\0\0payload",
    ),
    (
        "sender",
        b"\x80\xC8\0\x06\0\0\0\x03\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x05\0\0\0\x06",
    ),
    (
        "receiver",
        b"\x81\xC9\0\x07\0\0\0\x03\0\0\0\x04\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0",
    ),
];

/// Frames with the requests of RFC 7541 appendix C.4, the last one padded and with a priority, and an entry under a
/// name that is older.
const HTTP2: [&[u8]; 4] = [
    b"\0\0\x11\x01\x05\0\0\0\x01\x82\x86\x84\x41\x8C\xF1\xE3\xC2\xE5\xF2\x3A\x6B\xA0\xAB\x90\xF4\xFF",
    b"\0\0\x0C\x01\x05\0\0\0\x03\x82\x86\x84\xBE\x58\x86\xA8\xEB\x10\x64\x9C\xBF",
    b"\0\0\x20\x01\x2D\0\0\0\x05\x02\0\0\0\0\x10\x82\x87\x85\xBF\x40\x88\x25\xA8\x49\xE9\x5B\xA9\x7D\x7F\
      \x89\x25\xA8\x49\xE9\x5B\xB8\xE8\xB4\xBF\0\0",
    b"\0\0\x05\x09\x04\0\0\0\x07\x7F\x05\x01\x61\xBE",
];

/// Datagrams of flows: this target takes flow and side, the time and the length in front of each.
fn flows(put: &impl Fn(&str, String, &[u8]) -> Result<()>, initial: &[u8]) -> Result<()> {
    let of = |which: u8, payload: &[u8]| {
        let [high, low] = u16::try_from(payload.len()).unwrap_or(0).to_be_bytes();
        [&[which, 0, 9, high, low], payload].concat()
    };
    let hello = [initial, &[0; 900]].concat();
    let versions = [0x80, 0, 0, 0, 0, 0, 1, 7, 0, 0, 0, 1];
    let retry = [0xF0, 0, 0, 0, 1, 0, 1, 9, 1, 2, 3, 4, 5, 6, 7, 8];
    let answer = b"\xC0\0\0\0\x01\0\x04idid\0\x04\x01\x02\x03\x04\xE0\0\0\0\x01\0\x04idid\x04\x01\x02\x03\x04";
    let data = |first: u8| [&[first], b"idid".as_slice(), &[0x55; 20]].concat();
    let begin = [of(0, &hello), of(4, answer), of(0, answer)].concat();
    let turns: Vec<u8> = [0x40, 0x60, 0x40, 0x60]
        .into_iter()
        .flat_map(|first| [of(0, &data(first)), of(4, &data(first))].concat())
        .collect();
    let again = [
        of(0, &hello),
        of(4, &versions),
        of(0, &hello),
        of(4, &retry),
    ]
    .concat();
    let moved = of(1, &data(0x40));
    put(
        "flows_udp",
        "turns".to_owned(),
        &[&begin[..], &turns.repeat(5)].concat(),
    )?;
    put(
        "flows_udp",
        "again".to_owned(),
        &[&again[..], &begin].concat(),
    )?;
    put(
        "flows_udp",
        "moved".to_owned(),
        &[&begin[..], &moved].concat(),
    )
}

/// Exchanges of TLS and QUIC for estimates: what a packet is, its size, the time since the one before.
fn exchanges(put: &impl Fn(&str, String, &[u8]) -> Result<()>) -> Result<()> {
    // Of QUIC: the server's handshake and the client's, a request, an acknowledgment, a response, all but the first twice.
    let quic = |change: u8| {
        let turn = [
            [0x80 | change, 1, 100, 90],
            [0x81, 0, 30, 80],
            [0x81, 4, 0, 80],
        ];
        let begin = [[0x91, 4, 0xd0, 80], [0x92 ^ 2, 4, 0xb2, 4]];
        [begin.as_flattened(), &turn.as_flattened().repeat(3)].concat()
    };
    // Of TLS: the server's flight, the client's `Finished`, a request, a response.
    let turn = [[0x82, 0, 150, 90], [0x83, 3, 0, 80], [0x83, 3, 0, 1]];
    let tls = [[0x83, 1, 0, 80], [0x82, 0, 53, 4]];
    put("estimates", "quic".to_owned(), &quic(0))?;
    put("estimates", "quic-twice".to_owned(), &quic(8))?;
    put("estimates", "quic-late".to_owned(), &quic(12))?;
    put(
        "estimates",
        "tls".to_owned(),
        &[tls.as_flattened(), &turn.as_flattened().repeat(3)].concat(),
    )
}

/// Writes them, each as a seed of its target.
pub(super) fn messages(put: &impl Fn(&str, String, &[u8]) -> Result<()>) -> Result<()> {
    let initial = bytes_of(INITIAL);
    put("tls", "client-hello".to_owned(), &bytes_of(CLIENT_HELLO))?;
    put("tls", "server-hello".to_owned(), &bytes_of(SERVER_HELLO))?;
    put("tls", "certificate".to_owned(), &bytes_of(CERTIFICATE))?;
    // This target takes datagrams, their lengths in front.
    let len = u16::try_from(initial.len()).unwrap_or(0).to_be_bytes();
    let datagram = [len.as_slice(), &initial].concat();
    put("quic", "initial".to_owned(), &datagram)?;
    put("quic", "initials".to_owned(), &datagram.repeat(3))?;
    put("quic", "google".to_owned(), GOOGLE_HELLO)?;
    flows(put, &initial)?;
    for (index, opening) in OPENINGS.iter().enumerate() {
        // This target takes the ports and the length of the client's part in front: all is the
        // client's, on ports that say nothing.
        let all = [&[0xFF, 0xFF, 0xFF], *opening].concat();
        put("application", format!("opening-{index}"), &all)?;
        let record = record_of(0, opening);
        put("http_inspector", format!("opening-{index}"), &record)?;
    }
    let conversation = CONVERSATION.map(|(side, bytes)| record_of(side, bytes));
    put(
        "http_inspector",
        "conversation".to_owned(),
        &conversation.concat(),
    )?;
    for (index, coded) in CODED.iter().enumerate() {
        put("decoder", format!("coded-{index}"), coded)?;
    }
    for (index, frame) in HTTP2.iter().enumerate() {
        put("http2", format!("frame-{index}"), frame)?;
        // This target takes how the direction begins, the length of a segment and that of the gap behind it in front.
        let segment = [
            &[1, u8::try_from(frame.len()).unwrap_or(u8::MAX), 0],
            *frame,
        ]
        .concat();
        put("http2_direction", format!("frame-{index}"), &segment)?;
    }
    put("http2", "frames".to_owned(), &HTTP2.concat())?;
    // The client's preface and frames, and then those of the server.
    for (name, frames) in [("none", 0), ("some", 3), ("all", HTTP2.len())] {
        let frames = HTTP2.get(..frames).unwrap_or_default().concat();
        let client = record_of(0, &[PREFACE, &frames].concat());
        let connection = [client, record_of(1, &frames)].concat();
        put("http2_inspector", name.to_owned(), &connection)?;
    }
    for (index, parts) in QPACK.iter().enumerate() {
        put("qpack", format!("section-{index}"), parts)?;
    }
    for (name, kinds) in [
        ("client", &[0_u8][..]),
        ("both", &[0, 1]),
        ("again", &[0, 0, 1]),
    ] {
        let len = u16::try_from(initial.len()).unwrap_or(0).to_be_bytes();
        let parts = kinds
            .iter()
            .map(|kind| [&[*kind], len.as_slice(), &initial].concat());
        put(
            "quic_keys",
            name.to_owned(),
            &parts.collect::<Vec<_>>().concat(),
        )?;
    }
    // A connection: the preface, then the frames of the client, then those of the server.
    let mut connection = vec![0];
    for side in [0, 1] {
        let preface: &[u8] = if side == 0 { PREFACE } else { &[] };
        let mut at = 0_u16;
        for part in std::iter::once(preface).chain(HTTP2.iter().copied()) {
            let len = u8::try_from(part.len()).unwrap_or_default();
            let [high, low] = at.to_be_bytes();
            connection.extend([side, high, low, len]);
            connection.extend(part.get(..usize::from(len)).unwrap_or_default());
            at += u16::from(len);
        }
    }
    put("http", "http2".to_owned(), &connection)?;
    for name in ["aes128-sha-etm", "aes128-sha256", "aes256-sha"] {
        let path = root().join("foundation/keys/tests/openssl").join(name);
        let text = std::fs::read_to_string(path.with_extension("txt"))?;
        put("tls_keys", name.to_owned(), &recorded(&text))?;
    }
    // Where a segment begins, its length, what was cut off, and what time passed, of three.
    for (name, segments) in [
        ("late", [0, 0, 9, 0, 1, 0, 20, 9, 3, 1, 0, 9, 11, 0, 1]),
        ("again", [0, 0, 9, 0, 1, 0, 4, 9, 0, 1, 0, 0, 20, 0, 1]),
        ("lost", [0, 0, 9, 0, 1, 0, 40, 9, 0, 40, 0, 49, 9, 9, 90]),
    ] {
        put("stream", name.to_owned(), &segments)?;
    }
    for (name, line) in STORED {
        put("stored", name.to_owned(), line.as_bytes())?;
    }
    exchanges(put)?;
    answers(put)
}

/// What servers and peers say, and scripts.
fn answers(put: &impl Fn(&str, String, &[u8]) -> Result<()>) -> Result<()> {
    put("dns", "answer".to_owned(), DNS_ANSWER)?;
    let len = u16::try_from(DNS_ANSWER.len()).unwrap_or(0).to_be_bytes();
    let framed = [len.as_slice(), DNS_ANSWER].concat();
    put("dns", "stream".to_owned(), &framed.repeat(2))?;
    put(
        "dns",
        "header".to_owned(),
        DNS_ANSWER.get(..12).unwrap_or(&[]),
    )?;
    for (name, packet) in MEDIA {
        put("rtp", (*name).to_owned(), packet)?;
    }
    for (index, response) in RESPONSES.iter().enumerate() {
        put("load_response", format!("response-{index}"), response)?;
    }
    for (index, script) in SCRIPTS.iter().enumerate() {
        put("load_script", format!("script-{index}"), script.as_bytes())?;
    }
    for (index, bytes) in conversations::all().iter().enumerate() {
        put("peer_inspectors", format!("conversation-{index}"), bytes)?;
    }
    Ok(())
}

/// Capacity, length of the insertions and where they are cut, insertions, section (RFC 9204 appendix B).
const QPACK: [&[u8]; 3] = [
    b"\x07\0\0\0\0\x51\x0b/index.html",
    b"\x07\x22\x05\x3f\xbd\x01\xc0\x0fwww.example.com\xc1\x0c/sample/path\x03\x81\x10\x11",
    b"\x07\x1a\x09\x3f\xbd\x01\x4acustom-key\x0ccustom-value\x02\0\x80\xc1",
];

/// First bytes of some applications, over TCP and UDP.
const OPENINGS: [&[u8]; 20] = [
    b"GET /.hash=0123456789abcdef0123456789abcdef01234567 HTTP/1.1\r\nX-Kazaa-Username: u\r\n\r\n",
    b"GET /uri-res/N2R?urn:sha1:PLSTHIPQGSSZTS5FJUPAKUZWUGYQYPFB HTTP/1.1\r\nX-Queue: 1\r\n\r\n",
    b"GET /announce?info_hash=%01%02&peer_id=x HTTP/1.1\r\nHost: t\r\n\r\n",
    b"GNUTELLA CONNECT/0.6\r\n\r\n",
    b"GIV 12:0123456789abcdef0123456789ABCDEF/a\n\n",
    b"GIVE 12345678\r\n\r\n",
    b"\x13BitTorrent protocol\0\0\0\0\0\0\0\0",
    b"\xE3\x22\0\0\0\x01\x10AAAAAAAAAAAAAAAA\x7F\0\0\x01\x36\x12\0\0\0\0\0\0",
    b"VER 1 MSNP8 CVR0\r\nUSR 1 a@example.test 1\r\n",
    b"VER MSNFTP\r\n",
    b"<?xml version='1.0'?><stream:stream xmlns='jabber:client'>",
    b"NICK joe\r\nUSER joe 0 * :Joe User\r\n",
    b"220 mail.example ESMTP\r\n",
    b"+OK ready <1896.697170952@example.test>\r\n",
    b"* OK IMAP4rev1\r\n",
    b"OPTIONS rtsp://example.test/a RTSP/1.0\r\n",
    b"\x03\0\0\x13\x0E\xE0\0\0\0\0\0\x01\0\x08\0\x03\0\0\0",
    b"\x80\x60\0\x01\0\0\0\0\0\0\xCA\xFEmedia",
    b"\x41\0\x02\xBC\0\0\x03\xE8\0\0\0\0\0\x10\0\0\0\x01\0\0",
    b"\0\x01\0\0\x21\x12\xA4\x42AAAAAAAAAAAA",
];

/// A client (0) and a server (1): a form, chunks, a push, messages of Gnutella.
const CONVERSATION: [(u8, &[u8]); 5] = [
    (0, b"POST /a HTTP/1.1\r\nHost: a\r\nContent-Type: multipart/form-data; boundary=b\r\nContent-Length: 60\r\n\r\n\
        --b\r\nContent-Disposition: form-data; filename=\"x\"\r\n\r\n\r\n--b--GIVE 12345678\r\n\r\n"),
    (1, b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n\
        Content-Disposition: attachment; filename*=UTF-8''%e2%82%ac\r\n\r\n3;x\r\nabc\r\n0\r\nA: b\r\n\r\n"),
    (1, b"GET /.hash=00ff HTTP/1.1\nX-Kazaa-Username: u\n\n"),
    (0, b"HTTP/1.1 206 OK\nX-KazaaTag: 4=t\nContent-Range: bytes 0-1/9\nContent-Length: 2\n\nab"),
    (0, b"GNUTELLA CONNECT/0.4\n\nAAAAAAAAAAAAAAAA\x81\x01\x01\x18\0\0\0\
        \x01AAAAAAAAAA\x01\0\0\0\x02\0\0\0xx\0\0z"),
];

/// Coding (0: gzip, 1: deflate), size of the pieces, and a stored block in each kind of frame.
const CODED: [&[u8]; 4] = [
    b"\0\x03\x1F\x8B\x08\0\0\0\0\0\0\x03\x01\x02\0\xFD\xFFhi\0\0\0\0\0\0\0\0",
    b"\0\xFF\x1F\x8B\x08\x1E\0\0\0\0\0\x03\x01\0xname\0comment\0cc\x01\x02\0\xFD\xFFhi\0\0\0\0\0\0\0\0",
    b"\x01\x01\x78\x01\x01\x02\0\xFD\xFFhi\x01\x3B\0\xD2",
    b"\x01\x10\x01\x02\0\xFD\xFFhi",
];

/// Whether the request was HEAD, and a response: pages, chunks, an interim one, one until the end.
const RESPONSES: [&[u8]; 3] = [
    b"\0HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\nHTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\
        Transfer-Encoding: chunked\r\n\r\n21;x\r\n<base href=/b/><img src=../c?d&amp;e>\r\n\
        17\r\n<script>'<img'</script>\r\n0\r\nA: b\r\n\r\n",
    b"\0HTTP/1.0 200 OK\nConnection: keep-alive\n\n<!-- <img src=x> --><link rel=icon href='/i#f'>",
    b"\x01HTTP/1.1 304 Not Modified\r\nContent-Length: 7\r\n\r\nrest",
];

/// A script of each format, and times.
const SCRIPTS: [&str; 3] = [
    "# comment\n/a method=POST think=1.5 contents='x\\n\\\n y'\n  /b.png\n\n/c\n",
    "order = \"weighted\"\n[defaults]\nthink = { distribution = \"pareto\", scale = 1, shape = 1.5, cap = \"9s\" }\n\
        [[session]]\nweight = 2\npage = [{ target = \"/\", objects = [\"/a\", { target = \"/b\", body = \"c\" }] }]\n",
    "start_s,client\n1.5,10.0.0.1\n2\n",
];

/// A record of the target that takes streams: side, length, bytes.
pub(super) fn record_of(side: u8, bytes: &[u8]) -> Vec<u8> {
    let length = u16::try_from(bytes.len()).unwrap_or(u16::MAX);
    [&[side], &length.to_le_bytes()[..], bytes].concat()
}

/// An answer with an alias and an address, both compressed.
const DNS_ANSWER: &[u8] = b"\x12\x34\x81\x80\0\x01\0\x02\0\0\0\0\x03www\x07example\x03com\0\0\x01\0\x01\
    \xC0\x0C\0\x05\0\x01\0\0\x01\x2C\0\x06\x03cdn\xC0\x10\xC0\x2D\0\x01\0\x01\0\0\0\x3C\0\x04\xC0\0\x02\x07";

/// A `ClientHello` of TLS 1.3: that of RFC 9001 appendix A.2.
const CLIENT_HELLO: &str = "010000ed0303ebf8fa56f12939b9584a3896472ec40bb863cfd3e86804fe3a47f06a2b69484c000004130113\
    02010000c000000010000e00000b6578616d706c652e636f6dff01000100000a00080006001d001700180010\
    0007000504616c706e000500050100000000003300260024001d00209370b2c9caa47fbabaf4559fedba753d\
    e171fa71f50f1ce15d43e994ec74d748002b0003020304000d0010000e040305030603020308040805080600\
    2d00020101001c00024001003900320408ffffffffffffffff05048000ffff07048000ffff08011001048000\
    75300901100f088394c8f03e51570806048000ffff";

/// A `ServerHello` of TLS 1.2 that chooses `h2`.
const SERVER_HELLO: &str = "020000310303000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f00c02f000009\
    001000050003026832";

/// A `Certificate` with one of a few bytes: its subject is the common name `a`.
const CERTIFICATE: &str = "0b00003400003100002e302c302aa0030201020201013000300c310a300806035504030c01613000300c310a\
    300806035504030c01613000";

/// The hello sealed in a QUIC Initial packet, with the keys of RFC 9001 appendix A.1.
const INITIAL: &str = "c800000001088394c8f03e51570800004109f3fba43546b4512b9b7ca3cac0a5a46d3cde86ea1ba948b493c6\
    5035757d070d55f5e8dc088bde29b4615c30345b27fb15e5e566eb0368d7f1e3ba76b4ddde8b3162714bcb3d\
    2b949c2dedd203be8c7cdb3cbe4bacbc32e89de18847650fdf5421a704078683498a02185422399dfd105e23\
    54c395ca25e5c6824be3183a75c14cfa0aa44decbf629e2e0a2abd22cf58a7abd84c145625469387953b12db\
    43290e859f0d59d97b2e406c59c0cccb770a1d0a2b717e95c60b8196559f760b21476c9a139930e243405520\
    fdfda15ff3d2fd5cf298bfac6f4dfec56d3302e85e2c99812ab4617193b09307e349a5fad81d0da65eaef52a\
    9f96a14cc7c7e930e8dd4ad348ad48cf68ee82";

/// A datagram of Google's version 43.
const GOOGLE_HELLO: &[u8] = b"\x09abcdefghQ043\x01\0\0\0\0\0\0\0\0\0\0\0\0\xa0\x01\0\x04\
    CHLO\x02\0\0\0SNI\0\x09\0\0\0UAID\x0f\0\0\0a.exampleChrome";

/// The bytes that a text of hexadecimal digits stands for.
fn bytes_of(digits: &str) -> Vec<u8> {
    let digits: Vec<u8> = digits
        .chars()
        .filter_map(|digit| u8::try_from(digit.to_digit(16)?).ok())
        .collect();
    let (pairs, _) = digits.as_chunks::<2>();
    pairs.iter().map(|[high, low]| high << 4 | low).collect()
}
