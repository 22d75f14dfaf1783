//! Openings written by hand from the specifications, and what must not be taken for them.

mod areas;
mod chance;
mod hosts;
mod streams;

use proptest::prelude::*;

use super::*;
use Application as A;

fn tcp_on(client: &[u8], server: &[u8], server_port: u16) -> Verdict {
    classify_tcp(&Opening {
        client,
        server,
        client_port: 50_123,
        server_port,
    })
}

/// On ports that say nothing.
fn tcp(client: &[u8], server: &[u8]) -> Verdict {
    tcp_on(client, server, 40_321)
}

fn udp_on(datagram: &[u8], port: u16) -> Verdict {
    classify_udp(datagram, true, 50_123, port, &mut UdpMemory::default())
}

fn udp(datagram: &[u8]) -> Verdict {
    udp_on(datagram, 40_321)
}

fn framed(protocol: u8, opcode: u8, body: &[u8]) -> Vec<u8> {
    let length = u32::try_from(body.len() + 1).unwrap().to_le_bytes();
    [&[protocol][..], &length, &[opcode], body].concat()
}

fn edonkey_hello() -> Vec<u8> {
    let mut body = vec![16];
    body.extend([0x11; 16]);
    body.extend([0x7F, 0, 0, 1, 0x36, 0x12]);
    body.extend([0; 10]);
    framed(0xE3, 0x01, &body)
}

fn client_hello() -> Vec<u8> {
    let mut hello = vec![0x16, 3, 1, 0, 200, 1, 0, 0, 196, 3, 3];
    hello.resize(205, 7);
    hello
}

fn dns_query() -> Vec<u8> {
    let mut m = vec![0x12, 0x34, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0];
    m.extend(b"\x03www\x07example\x03com\x00\x00\x01\x00\x01");
    m
}

/// The preface, SETTINGS, and the fields of a request that is not indexed.
fn http2_request(content_type: &str) -> Vec<u8> {
    let mut block = vec![0x82, 0x0F, 0x10, u8::try_from(content_type.len()).unwrap()];
    block.extend(content_type.bytes());
    let mut bytes = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec();
    bytes.extend([0, 0, 0, 4, 0, 0, 0, 0, 0]);
    bytes.extend([0, 0, u8::try_from(block.len()).unwrap(), 1, 4, 0, 0, 0, 1]);
    bytes.extend(block);
    bytes
}

#[test]
fn http2_and_what_it_carries() {
    let http2 = http2_request("text/plain");
    assert_eq!(tcp(&http2, b""), Verdict::Is(A::Http2));
    let grpc = http2_request("application/grpc+proto");
    assert_eq!(tcp(&grpc, b""), Verdict::Is(A::Grpc));
    for len in 16..grpc.len() {
        assert_eq!(tcp(&grpc[..len], b""), Verdict::Likely(A::Http2), "{len}");
    }
    assert_eq!(tcp(&grpc[..15], b""), Verdict::More);
    assert!(A::Grpc.includes(A::Http) && A::Http2.includes(A::Http));
    assert!(!A::Http.includes(A::Http2) && !A::Http2.includes(A::Grpc));
}

#[test]
fn openings_of_tcp_are_known_from_the_client() {
    let rdp = b"\x03\x00\x00\x13\x0e\xe0\x00\x00\x00\x00\x00\x01\x00\x08\x00\x03\x00\x00\x00";
    let postgres = b"\x00\x00\x00\x22\x00\x03\x00\x00user\0joe\0database\0stock\0\0";
    let cases: &[(A, &[u8])] = &[
        (A::Http, b"GET / HTTP/1.1\r\nHost: example.test\r\n\r\n"),
        (A::Http, b"POST /x HTTP/1.0\r\n\r\n"),
        (A::Http, b"CONNECT example.test:443 HTTP/1.1\r\n\r\n"),
        (A::Tls, &client_hello()),
        (A::BitTorrent, b"\x13BitTorrent protocol\0\0\0\0\0\0\0\0"),
        (
            A::BitTorrent,
            b"GET /announce?info_hash=%01%02&peer_id=x HTTP/1.1\r\nHost: t\r\n\r\n",
        ),
        (
            A::BitTorrent,
            b"GET /abc/scrape?info_hash=%01%02 HTTP/1.1\r\nHost: t\r\n\r\n",
        ),
        (A::EDonkey, &edonkey_hello()),
        (A::Gnutella, b"GNUTELLA CONNECT/0.6\r\nUser-Agent: x\r\n"),
        (A::Gnutella, b"GIV 12:0123456789abcdef0123456789ABCDEF/\n\n"),
        (
            A::Gnutella,
            b"GET /uri-res/N2R?urn:sha1:PLSTHIPQGSSZTS5FJUPAKUZWUGYQYPFB HTTP/1.1\r\n\r\n",
        ),
        (
            A::Gnutella,
            b"GET /get/3/a.ogg HTTP/1.1\r\nX-Queue: 0.1\r\n\r\n",
        ),
        (
            A::FastTrack,
            b"GET /.hash=0123456789abcdef0123456789abcdef01234567 HTTP/1.1\r\n\r\n",
        ),
        (
            A::FastTrack,
            b"GET /a HTTP/1.1\r\nHost: h\r\nX-Kazaa-Username: u\r\nX-Kazaa-Network: KaZaA\r\n\r\n",
        ),
        (
            A::FastTrack,
            b"GET /a HTTP/1.1\r\nUserAgent: KazaaClient Nov  3 2002\r\nX-Kazaa-IP: 10.0.0.1:1214\r\n\r\n",
        ),
        (A::FastTrack, b"GIVE 12345678\r\n\r\n"),
        (A::Msn, b"VER 1 MSNP8 CVR0\r\n"),
        (
            A::Msn,
            b"USR 1 a@example.test 17262740.1050826919.32308\r\n",
        ),
        (
            A::Msn,
            b"ANS 1 a@example.test 849102291.520491113 11752013\r\n",
        ),
        (A::MsnFtp, b"VER MSNFTP\r\n"),
        (A::Ymsg, b"YMSG\0\x0c\0\0\0\0\0\x4c\0\0\0\0"),
        (A::DirectConnect, b"$MyNick joe|$Lock EXTENDEDPROTOCOL"),
        (
            A::Xmpp,
            b"<?xml version='1.0'?><stream:stream to='example.test' xmlns='jabber:client'>",
        ),
        (A::Xmpp, b"<stream:stream xmlns=\"jabber:client\">"),
        (A::Irc, b"NICK joe\r\nUSER joe 0 * :Joe User\r\n"),
        (A::Irc, b"CAP LS 302\r\nNICK joe\r\n"),
        (A::Irc, b"PASS x\r\nNICK joe\r\nUSER joe 0 * :Joe\r\n"),
        (A::Ssh, b"SSH-2.0-OpenSSH_9.2\r\n"),
        (A::Ssh, b"SSH-1.99-x\r\n"),
        (A::Telnet, b"\xff\xfd\x03\xff\xfb\x18\xff\xfb\x1f"),
        (A::Smtp, b"EHLO client.example\r\n"),
        (A::Pop3, b"CAPA\r\n"),
        (A::Imap, b"a001 CAPABILITY\r\n"),
        (A::Imap, b"1 LOGIN joe secret\r\n"),
        (
            A::Rtsp,
            b"DESCRIBE rtsp://example.test/a RTSP/1.0\r\nCSeq: 1\r\n\r\n",
        ),
        (A::Rtsp, b"OPTIONS rtsp://example.test/a RTSP/1.0\r\n"),
        (A::Sip, b"REGISTER sip:example.test SIP/2.0\r\n"),
        (A::Sip, b"OPTIONS sip:example.test SIP/2.0\r\n"),
        (A::Smb, b"\0\0\0\x85\xffSMBr\0\0\0\0"),
        (A::Smb, b"\0\0\0\xb2\xfeSMB\x40\0"),
        (A::Rdp, rdp),
        (
            A::Rdp,
            b"\x03\x00\x00\x27\x22\xe0\0\0\0\0\0Cookie: mstshash=joe\r\n",
        ),
        (A::Postgres, postgres),
        (A::Postgres, b"\0\0\0\x08\x04\xd2\x16\x2f"),
        (
            A::Mqtt,
            b"\x10\x13\x00\x04MQTT\x04\x02\x00\x3c\x00\x07abcdefg",
        ),
        (
            A::Bgp,
            b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\0\x1d\x01\x04",
        ),
    ];
    for (application, opening) in cases {
        let shown = opening.escape_ascii();
        assert_eq!(tcp(opening, b""), Verdict::Is(*application), "{shown}");
        // The sides exchanged: a flow whose beginning was not seen.
        assert_eq!(tcp(b"", opening), Verdict::Is(*application), "{shown}");
    }
}

#[test]
fn openings_of_tcp_are_known_from_the_server() {
    let mut mysql = b"\x4a\0\0\0\x0a8.0.36-log\0".to_vec();
    mysql.resize(78, 1);
    let mut server_hello = vec![0x16, 3, 3, 0, 80, 2, 0, 0, 76, 3, 3];
    server_hello.resize(85, 9);
    let cases: &[(A, &[u8])] = &[
        (A::Http, b"HTTP/1.1 200 OK\r\nServer: x\r\n\r\n"),
        (A::Tls, &server_hello),
        (A::Ssh, b"SSH-2.0-dropbear\r\n"),
        (A::Smtp, b"220 mail.example ESMTP Postfix\r\n"),
        (A::Smtp, b"220-mail.example ESMTP\r\n220 welcome\r\n"),
        (A::Ftp, b"220 (vsFTPd 3.0.3)\r\n"),
        (A::Ftp, b"220 ProFTPD Server ready\r\n"),
        (A::Pop3, b"+OK POP3 server ready\r\n"),
        (A::Pop3, b"+OK ready <1896.697170952@dbc.example>\r\n"),
        (A::Imap, b"* OK IMAP4rev1 Service Ready\r\n"),
        (A::Imap, b"* OK [CAPABILITY STARTTLS] ready\r\n"),
        (
            A::Irc,
            b":irc.example NOTICE AUTH :*** Looking up your hostname\r\n",
        ),
        (A::Irc, b":irc.example 001 joe :Welcome\r\n"),
        (A::Irc, b"NOTICE AUTH :*** Looking up\r\n"),
        (A::Icy, b"ICY 200 OK\r\nicy-name: x\r\n"),
        (A::Rtsp, b"RTSP/1.0 200 OK\r\n"),
        (A::Sip, b"SIP/2.0 200 OK\r\n"),
        (
            A::FastTrack,
            b"HTTP/1.1 206 Partial\r\nServer: KazaaClient Nov  3 2002\r\nX-KazaaTag: 4=song\r\n\r\n",
        ),
        (
            A::FastTrack,
            b"HTTP/1.1 206 Partial\r\nX-KazaaTag: 4=song\r\nX-Kazaa-Username: u\r\n\r\n",
        ),
        (
            A::Gnutella,
            b"HTTP/1.1 200 OK\r\nServer: BearShare\r\nContent-Type: application/x-gnutella-packets\r\n\r\n",
        ),
        (A::Gnutella, b"GNUTELLA/0.6 200 OK\r\n"),
        (A::Vnc, b"RFB 003.008\n"),
        (A::MySql, &mysql),
    ];
    for (application, opening) in cases {
        let shown = opening.escape_ascii();
        assert_eq!(tcp(b"", opening), Verdict::Is(*application), "{shown}");
    }
}

#[test]
fn greetings_that_say_little_are_decided_by_the_other_side_and_then_by_the_port() {
    let greeting = b"220 server ready\r\n";
    assert_eq!(tcp(b"", greeting), Verdict::More);
    assert_eq!(tcp(b"EHLO x\r\n", greeting), Verdict::Is(A::Smtp));
    assert_eq!(tcp(b"USER joe\r\n", greeting), Verdict::Is(A::Ftp));
    assert_eq!(tcp(b"AUTH TLS\r\n", greeting), Verdict::Is(A::Ftp));
    assert_eq!(tcp_on(b"", greeting, 25), Verdict::Is(A::Smtp));
    assert_eq!(tcp_on(b"", greeting, 21), Verdict::Is(A::Ftp));

    assert_eq!(tcp(b"", b"+OK\r\n"), Verdict::More);
    assert_eq!(tcp(b"USER joe\r\n", b"+OK hello\r\n"), Verdict::Is(A::Pop3));
    assert_eq!(tcp_on(b"", b"+OK\r\n", 110), Verdict::Is(A::Pop3));
    // Redis and others answer so.
    assert_eq!(
        tcp(b"*1\r\n$4\r\nPING\r\n", b"+OK\r\n"),
        Verdict::Is(A::Redis)
    );

    assert_eq!(tcp(b"", b"* OK hello\r\n"), Verdict::More);
    assert_eq!(
        tcp(b"a1 LOGIN joe x\r\n", b"* OK hello\r\n"),
        Verdict::Is(A::Imap)
    );
    assert_eq!(tcp_on(b"", b"* OK hello\r\n", 143), Verdict::Is(A::Imap));

    // Only the client was captured.
    assert_eq!(tcp(b"USER joe\r\n", b""), Verdict::More);
    assert_eq!(tcp_on(b"USER joe\r\n", b"", 21), Verdict::Is(A::Ftp));
    assert_eq!(tcp_on(b"USER joe\r\n", b"", 110), Verdict::Is(A::Pop3));
    assert_eq!(
        tcp_on(b"USER joe 0 * :Joe\r\n", b"", 6667),
        Verdict::Is(A::Irc)
    );
}

#[test]
fn what_is_too_short_waits() {
    let prefixes: [&[u8]; 14] = [
        b"G",
        b"GET",
        b"GI",
        b"GNUT",
        b"VER",
        b"VER 1 MS",
        b"SSH-",
        b"\x13Bit",
        b"\x16",
        b"\x16\x03",
        b"RTSP",
        b"\xe3\x05",
        b"HTTP/1",
        b"<?xml version='1.0'?>",
    ];
    for opening in prefixes {
        assert_eq!(
            tcp(opening, b""),
            Verdict::More,
            "{}",
            opening.escape_ascii()
        );
    }
    assert_eq!(tcp(b"", b""), Verdict::More);
}

#[test]
fn what_is_cut_anywhere_is_never_something_else() {
    let openings: [(A, &[u8]); 11] = [
        (
            A::FastTrack,
            b"GET /a HTTP/1.1\r\nX-Kazaa-Network: KaZaA\r\nX-Kazaa-IP: 10.0.0.1:1214\r\n\r\n",
        ),
        (
            A::DirectConnect,
            b"$MyNick joe|$Lock EXTENDEDPROTOCOL Pk=x|",
        ),
        (
            A::FastTrack,
            b"GET /.hash=0123456789abcdef0123456789abcdef01234567 HTTP/1.1\r\n\r\n",
        ),
        (
            A::Gnutella,
            b"GET /uri-res/N2R?urn:sha1:PLSTHIPQGSSZTS5FJUPAKUZWUGYQYPFB HTTP/1.1\r\n\r\n",
        ),
        (A::Gnutella, b"GIV 12:0123456789abcdef0123456789ABCDEF/\n\n"),
        (A::FastTrack, b"GIVE 12345678\r\n\r\n"),
        (A::Rtsp, b"OPTIONS rtsp://example.test/a RTSP/1.0\r\n"),
        (A::Sip, b"OPTIONS sip:example.test SIP/2.0\r\n"),
        (A::Irc, b"NICK joe\r\nUSER joe 0 * :Joe User\r\n"),
        (A::MsnFtp, b"VER MSNFTP\r\n"),
        (A::Imap, b"a001 CAPABILITY\r\n"),
    ];
    for (application, opening) in openings {
        for end in 0..=opening.len() {
            let verdict = tcp(&opening[..end], b"");
            let shown = opening[..end].escape_ascii();
            // `GET /u` is HTTP as far as anyone can tell.
            let is_open = matches!(verdict, Verdict::More | Verdict::Likely(A::Http));
            assert!(
                is_open || verdict == Verdict::Is(application),
                "{shown}: {verdict:?}"
            );
        }
    }
}

#[test]
fn http_that_mentions_others_stays_http() {
    let openings: [&[u8]; 8] = [
        b"GET /?q=GNUTELLA+CONNECT HTTP/1.1\r\nHost: a\r\n\r\n",
        b"GET /a HTTP/1.1\r\nHost: kazaa.example\r\nUser-Agent: Mozilla/5.0 (kazaa)\r\n\r\n",
        b"GET /search?info_hash=1 HTTP/1.1\r\nHost: a\r\n\r\n",
        b"GET /get/1/x HTTP/1.1\r\nHost: a\r\n\r\n",
        b"GET /.hash=zz HTTP/1.1\r\nHost: a\r\n\r\n",
        b"GET /.status HTTP/1.1\r\nHost: a\r\n\r\n",
        b"POST /a HTTP/1.1\r\nHost: a\r\n\r\nX-Kazaa-Username: in the body\r\n",
        b"HTTP/1.1 200 OK\r\nServer: a\r\n\r\n\x13BitTorrent protocol",
    ];
    for opening in openings {
        assert_eq!(
            tcp(opening, b""),
            Verdict::Is(A::Http),
            "{}",
            opening.escape_ascii()
        );
    }
}

#[test]
fn words_that_are_no_commands_are_nothing() {
    let openings: [&[u8]; 14] = [
        b"GETTING STARTED\r\n",
        b"VERSION 1.2\r\n",
        b"220V is the voltage\r\n",
        b"<html><body>\r\n",
        b"hello world\r\n",
        b"USER-DEFINED\r\n",
        b"$1 is a dollar\r\n",
        b"*3\r\n$3 a piece\r\n",
        b"SSH is a protocol\r\n",
        b"GIVE me five\r\n",
        b"GIV up\r\n",
        b"{\"jsonrpc\":\"2.0\"}\n",
        b"OPTIONS are many\r\n",
        b":) smile\r\n",
    ];
    for opening in openings {
        assert_eq!(
            tcp(opening, b"\x01\x02\x03\x04\x05\x06"),
            Verdict::No,
            "{}",
            opening.escape_ascii()
        );
    }
}

#[test]
fn frames_that_do_not_fit_are_not_edonkey() {
    // A known opcode, but a body that is none.
    assert_eq!(
        tcp(
            &framed(0xE3, 0x01, &[9; 40]),
            b"\x01\x02\x03\x04\x05\x06\x07"
        ),
        Verdict::No
    );
    assert_eq!(tcp(&framed(0xE3, 0x99, &[9; 40]), b"abcdefgh"), Verdict::No);
    // Both sides speak in frames.
    let request = framed(0xE3, 0x58, &[0x22; 16]);
    let answer = framed(0xC5, 0x92, &[0; 24]);
    assert_eq!(tcp(&request, b""), Verdict::More);
    assert_eq!(tcp(&request, &answer), Verdict::Is(A::EDonkey));
}

#[test]
fn tls_without_its_hello_is_known_by_its_records() {
    let mut records = vec![0x17, 3, 3, 0, 20];
    records.resize(25, 0xAA);
    assert_eq!(tcp(&records, b""), Verdict::More);
    let both = records.repeat(2);
    assert_eq!(tcp(&both, b""), Verdict::Is(A::Tls));
    assert_eq!(tcp(&records, &records), Verdict::Is(A::Tls));
    assert_eq!(
        tcp(b"\x17\x03\x09\x00\x20aaaaaaaa", b"aaaaaaa"),
        Verdict::No
    );
    let ssl2 = [
        &b"\x80\x2e\x01\x03\x01\x00\x15\x00\x00\x00\x10"[..],
        &[1; 37],
    ]
    .concat();
    assert_eq!(tcp(&ssl2, b""), Verdict::Is(A::Tls));
}

#[test]
fn dns_over_tcp_has_its_length_in_front() {
    let query = dns_query();
    let stream = [
        &u16::try_from(query.len()).unwrap().to_be_bytes()[..],
        &query,
    ]
    .concat();
    assert_eq!(tcp_on(&stream, b"", 53), Verdict::Is(A::Dns));
    assert_eq!(tcp_on(&stream[..20], b"", 53), Verdict::More);
}

#[test]
fn rtmp_waits_for_its_handshake_unless_on_its_port() {
    let mut handshake = vec![3, 0x00, 0x12, 0x34, 0x56, 0, 0, 0, 0];
    handshake.resize(600, 0xEE);
    assert_eq!(tcp(&handshake, b""), Verdict::More);
    assert_eq!(tcp_on(&handshake, b"", 1935), Verdict::Is(A::Rtmp));
    handshake.resize(1537, 0xEE);
    assert_eq!(tcp(&handshake, b""), Verdict::Is(A::Rtmp));
}

#[test]
fn datagrams_with_a_mark_are_known_at_once() {
    let quic = [
        &[0xC3, 0, 0, 0, 1, 8][..],
        &[7; 8],
        &[0, 0, 0x44],
        &[9; 1180],
    ]
    .concat();
    let quic2 = [
        &[0xD3, 0x6B, 0x33, 0x43, 0xCF, 8][..],
        &[7; 8],
        &[0],
        &[9; 1180],
    ]
    .concat();
    let gquic = [&[0x0D][..], &[7; 8], b"Q043", &[1; 40]].concat();
    let dtls = [
        &[22, 0xFE, 0xFF, 0, 0, 0, 0, 0, 0, 0, 0, 0, 20, 1][..],
        &[0; 19],
    ]
    .concat();
    let mut dhcp = vec![0; 244];
    dhcp[0] = 1;
    dhcp[236..240].copy_from_slice(&[0x63, 0x82, 0x53, 0x63]);
    let snmp = b"\x30\x26\x02\x01\x01\x04\x06public\xa0\x19\x02\x01\x01\x02\x01\x00\x02\x01\x00";
    let tracker = b"\x00\x00\x04\x17\x27\x10\x19\x80\x00\x00\x00\x00\x12\x34\x56\x78";
    let mut message = b"an identifier it".to_vec();
    message.extend([0x80, 3, 0, 6, 0, 0, 0]);
    message.extend(b"\0\0abc\0");
    let mut wireguard = vec![1, 0, 0, 0];
    wireguard.resize(148, 3);
    // Identifier, port, version and one contact.
    let mut kad = vec![0xE4, 0x09];
    kad.extend([0x41; 18]);
    kad.extend([8, 1, 0]);
    kad.extend([0x42; 24]);
    kad.push(8);
    let report = [
        &[0x80, 201, 0, 1, 1, 2, 3, 4][..],
        &[0x81, 202, 0, 2, 1, 2, 3, 4, 1, 0, 0, 0],
    ]
    .concat();
    let cases: &[(A, &[u8])] = &[
        (A::Quic, &quic),
        (A::Quic, &quic2),
        (A::Quic, &gquic),
        (A::Dtls, &dtls),
        (A::Dhcp, &dhcp),
        (A::Snmp, snmp),
        (A::Dns, &dns_query()),
        (
            A::BitTorrent,
            b"d1:ad2:id20:abcdefghij0123456789e1:q4:ping1:t2:aa1:y1:qe",
        ),
        (
            A::BitTorrent,
            b"d1:rd2:id20:mnopqrstuvwxyz123456e1:t2:aa1:y1:re",
        ),
        (
            A::BitTorrent,
            b"BT-SEARCH * HTTP/1.1\r\nHost: 239.192.152.143:6771\r\n",
        ),
        (A::BitTorrent, tracker),
        (A::Gnutella, &message),
        (A::FastTrack, b"\x27\0\0\0\xA9\x80KaZaA\0"),
        (A::Kad, &kad),
        (A::Sip, b"INVITE sip:joe@example.test SIP/2.0\r\n"),
        (A::Sip, b"SIP/2.0 180 Ringing\r\n"),
        (
            A::Ssdp,
            b"M-SEARCH * HTTP/1.1\r\nHOST: 239.255.255.250:1900\r\n",
        ),
        (A::WireGuard, &wireguard),
        (A::Rtcp, &report),
    ];
    for (application, datagram) in cases {
        assert_eq!(
            udp(datagram),
            Verdict::Is(*application),
            "{}",
            datagram.escape_ascii()
        );
    }
}

#[test]
fn datagrams_without_a_mark_need_their_port() {
    let mut ntp = vec![0x23, 2, 6, 0xEC];
    ntp.resize(48, 0);
    assert_eq!(udp_on(&ntp, 123), Verdict::Is(A::Ntp));
    assert_ne!(udp(&ntp), Verdict::Is(A::Ntp));
    assert_eq!(
        udp_on(b"<34>Oct 11 22:14:15 host su: failed", 514),
        Verdict::Is(A::Syslog)
    );
    assert_eq!(udp_on(b"\0\x01boot.img\0octet\0", 69), Verdict::Is(A::Tftp));
    let mut mdns = dns_query();
    mdns[2] = 0;
    assert_eq!(udp_on(&mdns, 5353), Verdict::Is(A::Mdns));
    assert_eq!(udp_on(&mdns, 5355), Verdict::Is(A::Llmnr));
    let mut names = vec![0x80, 1, 1, 0x10, 0, 1, 0, 0, 0, 0, 0, 0, 32];
    names.extend([b'A'; 32]);
    names.extend([0, 0, 0x20, 0, 1]);
    assert_eq!(udp_on(&names, 137), Verdict::Is(A::NetBios));
}

fn rtp_packet(sequence: u16, source: u32, kind: u8) -> Vec<u8> {
    let mut packet = vec![0x80, kind];
    packet.extend(sequence.to_be_bytes());
    packet.extend((u32::from(sequence) * 160).to_be_bytes());
    packet.extend(source.to_be_bytes());
    packet.resize(172, 0xD5);
    packet
}

#[test]
fn rtp_takes_three_packets_that_agree() {
    let mut memory = UdpMemory::default();
    let mut say = |packet: &[u8], client| classify_udp(packet, client, 20_000, 30_000, &mut memory);
    assert_eq!(say(&rtp_packet(65_534, 0xCAFE, 0), true), Verdict::More);
    assert_eq!(say(&rtp_packet(9, 0xBEEF, 0), false), Verdict::More);
    assert_eq!(say(&rtp_packet(65_535, 0xCAFE, 0x80), true), Verdict::More);
    assert_eq!(say(&rtp_packet(10, 0xBEEF, 0), false), Verdict::More);
    assert_eq!(say(&rtp_packet(0, 0xCAFE, 0), true), Verdict::Is(A::Rtp));

    let mut memory = UdpMemory::default();
    let mut verdict = Verdict::More;
    for sequence in 1..40 {
        // Another source every time.
        let packet = rtp_packet(sequence, 0x1000 + u32::from(sequence), 0);
        verdict = classify_udp(&packet, true, 20_000, 30_000, &mut memory);
        assert_ne!(verdict, Verdict::Is(A::Rtp));
    }
    assert_eq!(verdict, Verdict::No);
}

fn utp_packet(
    kind: u8,
    connection: u16,
    time: u32,
    sequence: u16,
    ack: u16,
    payload: &[u8],
) -> Vec<u8> {
    let mut packet = vec![kind << 4 | 1, 0];
    packet.extend(connection.to_be_bytes());
    packet.extend(time.to_be_bytes());
    packet.extend([0; 4]);
    packet.extend(0x0010_0000_u32.to_be_bytes());
    packet.extend(sequence.to_be_bytes());
    packet.extend(ack.to_be_bytes());
    packet.extend(payload);
    packet
}

#[test]
fn utp_shows_by_its_opening_or_by_packets_that_agree() {
    let mut memory = UdpMemory::default();
    let mut say = |packet: &[u8], client| classify_udp(packet, client, 20_000, 30_000, &mut memory);
    assert_eq!(
        say(&utp_packet(4, 700, 1000, 1, 0, b""), true),
        Verdict::More
    );
    assert_eq!(
        say(&utp_packet(2, 700, 9000, 50, 1, b""), false),
        Verdict::Is(A::Utp)
    );

    let mut memory = UdpMemory::default();
    let mut say = |packet: &[u8], client| classify_udp(packet, client, 20_000, 30_000, &mut memory);
    assert_eq!(
        say(&utp_packet(0, 701, 1000, 7, 3, b"abc"), true),
        Verdict::More
    );
    assert_eq!(
        say(&utp_packet(2, 700, 9000, 3, 7, b""), false),
        Verdict::More
    );
    assert_eq!(
        say(&utp_packet(0, 701, 3000, 8, 3, b"abc"), true),
        Verdict::Is(A::Utp)
    );
}

#[test]
fn edonkey_datagrams_of_any_length_need_two_of_different_kinds() {
    let mut memory = UdpMemory::default();
    let mut say = |datagram: &[u8], client| classify_udp(datagram, client, 4672, 4665, &mut memory);
    let search = b"\xe3\x98\x01\x05hello";
    assert_eq!(say(search, true), Verdict::More);
    // The same again says nothing new.
    assert_eq!(say(search, true), Verdict::More);
    let found = b"\xe3\x99sixteen bytes it\x0a\x58\x01\x0b\x36\x12";
    assert_eq!(say(found, false), Verdict::Is(A::EDonkey));

    // Half of the challenge is the same in all clients.
    assert_eq!(udp(b"\xe3\x96\x01\x02\x03\x04"), Verdict::More);
    assert_eq!(udp(b"\xe3\x96\x01\x02\xaa\x55"), Verdict::Is(A::EDonkey));
    assert_eq!(udp(b"\xe3\xa2\xff\xf0\x01\x02"), Verdict::Is(A::EDonkey));
}

#[test]
fn kad_is_known_by_its_answers() {
    let mut request = vec![0xE4, 0x21, 0x0B];
    request.resize(35, 0x41);
    let mut answer = vec![0xE4, 0x29];
    answer.extend([0x41; 16]);
    answer.push(0);
    let mut memory = UdpMemory::default();
    let mut say = |datagram: &[u8], client| classify_udp(datagram, client, 4672, 4672, &mut memory);
    assert_eq!(say(&request, true), Verdict::More);
    assert_eq!(say(&answer, false), Verdict::Is(A::Kad));

    // Contacts say their version.
    answer[18] = 2;
    let mut contact = [0x42; 25];
    contact[24] = 8;
    answer.extend(contact);
    answer.extend(contact);
    assert_eq!(udp(&answer), Verdict::Is(A::Kad));
    *answer.last_mut().unwrap() = 0x80;
    assert_ne!(udp(&answer), Verdict::Is(A::Kad));
}

#[test]
fn gnutella_pings_need_an_answer() {
    let id = b"\x01\x23\x45\x67\x89\xab\xcd\xef\xff\x23\x45\x67\x89\xab\xcd\x00";
    let ping = [&id[..], &[0x00, 1, 0, 0, 0, 0, 0]].concat();
    let pong = [
        &id[..],
        &[0x01, 1, 0, 14, 0, 0, 0],
        &[0xCA, 0x18, 10, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0],
    ]
    .concat();
    let mut memory = UdpMemory::default();
    let mut say = |datagram: &[u8], client| classify_udp(datagram, client, 6346, 6346, &mut memory);
    assert_eq!(say(&ping, true), Verdict::More);
    assert_eq!(say(&pong, false), Verdict::Is(A::Gnutella));
    // With its extensions a ping says itself.
    let extended = [&id[..], b"\0\x01\0\x05\0\0\0\xc3\x82QK\x40"].concat();
    assert_eq!(udp(&extended), Verdict::Is(A::Gnutella));
    // Gnutella2: flags that may be ignored, and packets with and without a length.
    let parts: [&[u8]; 2] = [
        b"GND\x00\x12\x34\x01\x01\x08PI",
        b"GND\x10\x12\x34\x01\x01\x54\x0bQKR\x52\x06RNA\x0a\0\0\x01\x09\x70",
    ];
    for part in parts {
        assert_eq!(udp(part), Verdict::Is(A::Gnutella));
    }
    assert_eq!(udp(b"GND\x04\x12\x34\x01\x01\x08PI"), Verdict::More);
}

#[test]
fn datagrams_that_fit_nothing_end_the_wait() {
    let mut memory = UdpMemory::default();
    let mut verdicts = (0..8).map(|_| classify_udp(b"zzzzzzzzzz", true, 1, 2, &mut memory));
    assert_eq!(verdicts.next(), Some(Verdict::More));
    assert_eq!(verdicts.last(), Some(Verdict::No));
}

proptest! {
    #[test]
    fn any_bytes_are_classified_without_panic(
        client in proptest::collection::vec(any::<u8>(), 0..300),
        server in proptest::collection::vec(any::<u8>(), 0..300),
        ports in proptest::array::uniform2(prop_oneof![Just(0_u16), Just(53), Just(443), Just(1935), Just(3389), any::<u16>()]),
    ) {
        let [client_port, server_port] = ports;
        std::hint::black_box(classify_tcp(&Opening { client: &client, server: &server, client_port, server_port }));
        let mut memory = UdpMemory::default();
        for (datagram, is_from_client) in [(&client, true), (&server, false), (&client, true)] {
            std::hint::black_box(classify_udp(datagram, is_from_client, client_port, server_port, &mut memory));
        }
    }

    #[test]
    fn openings_with_one_byte_changed_are_classified_without_panic(
        at in 0_usize..80, value: u8, cut in 0_usize..200, which in 0_usize..5,
    ) {
        let openings = [
            edonkey_hello(),
            client_hello(),
            b"GET /uri-res/N2R?urn:sha1:PLSTHIPQGSSZTS5 HTTP/1.1\r\nX-Queue: 1\r\n\r\n".to_vec(),
            b"NICK joe\r\nUSER joe 0 * :Joe User\r\n".to_vec(),
            dns_query(),
        ];
        let mut bytes = openings[which].clone();
        if let Some(byte) = bytes.get_mut(at) {
            *byte = value;
        }
        bytes.truncate(bytes.len().saturating_sub(cut).max(1));
        std::hint::black_box(tcp(&bytes, b""));
        std::hint::black_box(tcp(&bytes, &bytes));
        std::hint::black_box(udp(&bytes));
    }
}

#[test]
fn rarer_openings() {
    let (mut client, mut server) = (
        vec![3, 0, 0, 0, 0, 9, 0, 0x7C, 2],
        vec![3, 0x63, 0x50, 0x5F, 0xEA, 1, 0, 5, 4],
    );
    assert_eq!(tcp(&client, b""), Verdict::More);
    client.resize(1537, 0xEE);
    assert_eq!(tcp(&client, b"\x05nothing alike"), Verdict::No);
    server.resize(1600, 0xEE);
    assert_eq!(tcp(&client, &server), Verdict::Is(A::Rtmp));

    assert_eq!(tcp(b"</stream:stream>", b""), Verdict::Is(A::Xmpp));
    let alert = [&[0x15, 3, 3, 0, 0x1A][..], &[0xAB; 26]].concat();
    assert_eq!(tcp_on(&alert, b"", 443), Verdict::Is(A::Tls));
    assert_eq!(tcp(&alert, b""), Verdict::More);

    // A version that is not a version, in a datagram of full size.
    let mut reserved = vec![0xC3, 0x0A, 0x1A, 0x2A, 0x3A, 8];
    reserved.extend([7; 100]);
    assert_ne!(udp(&reserved), Verdict::Is(A::Quic));
    reserved.resize(1252, 7);
    assert_eq!(udp(&reserved), Verdict::Is(A::Quic));

    // The hash table of Gnutella: operation, vendor, version, identifier of a node.
    let mut message = b"an identifier it".to_vec();
    message.extend([0x44, 0, 0, 27, 0, 0, 0, 5]);
    message.extend(b"GTKG\0\0");
    message.extend([0x31; 20]);
    assert_eq!(udp(&message), Verdict::Is(A::Gnutella));
    message.push(0);
    assert_ne!(udp(&message), Verdict::Is(A::Gnutella));
}

#[test]
fn two_sides_that_never_agree_are_nothing_in_the_end() {
    // As a fuzzer found them: likely eDonkey from one side, likely Kad from the other.
    let client = [
        0xc5, 0x91, 0x32, 0xff, 0x00, 0xff, 0x0f, 0x0f, 0x0f, 0x0f, 0xff, 0x19, 0x01, 0x00, 0x28,
        0x03, 0x00, 0x40, 0x01, 0x0b, 0x0a, 0xc7, 0x0a, 0x0a, 0x4d, 0x00, 0x00, 0x04, 0x00, 0xff,
        0x0f, 0x0f, 0x0f,
    ];
    let server = [&[0xe4, 0x35][..], &[0x89; 24]].concat();
    let mut memory = UdpMemory::default();
    let decided = (0..20).position(|round| {
        let is_from_client = round % 2 == 0;
        let datagram = if is_from_client { &client[..] } else { &server };
        classify_udp(datagram, is_from_client, 0, 0, &mut memory) != Verdict::More
    });
    assert_eq!(decided, Some(15));
}
