//! Openings of databases, brokers, plants, networks and programs, as their specifications have them.

use super::*;

/// What a server may say that is nothing.
const NOTHING: &[u8] = b"\x01\x02\x03\x04\x05\x06";

/// A length and a body, the highest byte first.
fn be(length: usize, body: &[u8]) -> Vec<u8> {
    [&u32::try_from(length).unwrap().to_be_bytes()[..], body].concat()
}

/// Known from the client on any port; nothing else before it is whole, and nothing where it is cut after its first byte.
#[track_caller]
fn opens(application: A, client: &[u8]) {
    assert_eq!(
        tcp(client, b""),
        Verdict::Is(application),
        "{}",
        client.escape_ascii()
    );
    for len in 1..client.len() {
        let verdict = tcp(&client[..len], b"");
        let is_fine =
            matches!(verdict, Verdict::More | Verdict::No) || verdict == Verdict::Is(application);
        assert!(is_fine, "{len} of {}: {verdict:?}", client.escape_ascii());
    }
}

/// Known from one datagram; with a byte more or less it is no longer.
#[track_caller]
fn says(application: A, datagram: &[u8], port: u16) {
    let shown = datagram.escape_ascii();
    assert_eq!(udp_on(datagram, port), Verdict::Is(application), "{shown}");
}

/// The same, of what has its own length in it.
#[track_caller]
fn says_at_its_length(application: A, datagram: &[u8], port: u16) {
    says(application, datagram, port);
    let longer = [datagram, &[0xEE]].concat();
    for other in [&longer[..], &datagram[..datagram.len() - 1]] {
        let shown = other.escape_ascii();
        assert_ne!(udp_on(other, port), Verdict::Is(application), "{shown}");
    }
}

/// Nothing without its port.
#[track_caller]
fn needs_its_port(application: A, datagram: &[u8], port: u16) {
    says(application, datagram, port);
    let shown = datagram.escape_ascii();
    assert_ne!(udp(datagram), Verdict::Is(application), "{shown}");
}

#[test]
fn databases() {
    // OP_MSG with a document, and OP_QUERY of commands.
    let message = |operation: u32, body: &[u8]| {
        let length = u32::try_from(16 + body.len()).unwrap();
        let header = [length, 1, 0, operation].map(u32::to_le_bytes).concat();
        [&header[..], body].concat()
    };
    let document = b"\x15\0\0\0\x01hello\0\0\0\0\0\0\0\xf0?\0";
    opens(
        A::MongoDb,
        &message(2013, &[&[0; 5][..], document].concat()),
    );
    opens(
        A::MongoDb,
        &message(
            2004,
            &[
                b"\0\0\0\0admin.$cmd\0\0\0\0\0\xff\xff\xff\xff",
                &document[..],
            ]
            .concat(),
        ),
    );
    assert_eq!(tcp(&message(2013, &[0xFF; 40]), b""), Verdict::More);
    opens(A::Redis, b"*1\r\n$4\r\nPING\r\n");
    opens(A::Redis, b"*2\r\n$3\r\nGET\r\n$3\r\nkey\r\n");
    assert_eq!(tcp(b"", b"* OK IMAP4rev1 ready\r\n"), Verdict::Is(A::Imap));
    opens(A::Memcached, b"set key 0 900 5\r\nvalue\r\n");
    assert_eq!(tcp(b"get key\r\n", b"END\r\n"), Verdict::Is(A::Memcached));
    assert_eq!(tcp(b"get key\r\n", b"what?\r\n"), Verdict::No);
    assert_eq!(
        tcp(b"set course north by north\r\n", b"aye\r\n"),
        Verdict::No
    );
    opens(
        A::Cassandra,
        b"\x04\0\0\x01\x01\0\0\0\x16\0\x01\0\x0bCQL_VERSION\0\x053.0.0",
    );
    assert_eq!(
        tcp_on(b"\x04\0\0\0\x05\0\0\0\0", b"", 9042),
        Verdict::Is(A::Cassandra)
    );
    assert_eq!(tcp(b"\x04\0\0\0\x05\0\0\0\0", b""), Verdict::More);
    // PRELOGIN with version and encryption.
    opens(
        A::Tds,
        b"\x12\x01\0\x1a\0\0\x01\0\0\0\x0b\0\x06\x01\0\x11\0\x01\xff\x09\0\0\0\0\0\x01",
    );
    let text = b"(DESCRIPTION=(CONNECT_DATA=(SERVICE_NAME=x)))";
    let mut connect = vec![0, 0, 0, 0, 1, 0, 0, 0];
    connect.extend([1, 57, 1, 44, 0, 0, 32, 0, 127, 255, 127, 8, 0, 0, 1, 0]);
    connect.extend([
        0,
        u8::try_from(text.len()).unwrap(),
        0,
        34,
        0,
        0,
        0,
        0,
        1,
        1,
    ]);
    connect.extend(text);
    connect[1] = u8::try_from(connect.len()).unwrap();
    opens(A::Tns, &connect);
    opens(A::ClickHouse, b"\0\x11ClickHouse client\x15\x08");
    let mut login = vec![0x43, 0x87, 0, 0, 0, 0, 0, 30];
    login.resize(48, 0);
    login.extend(b"InitiatorName=iqn.1993-08.org:01\0");
    opens(A::Iscsi, &login);
    assert_eq!(tcp(b"", b"NBDMAGICIHAVEOPT\0\x03"), Verdict::Is(A::Nbd));
    opens(A::Ceph, b"ceph v2\n\x10\0");
}

#[test]
fn messages_and_calls() {
    opens(A::Amqp, b"AMQP\0\0\x09\x01");
    opens(A::Amqp, b"AMQP\x03\x01\0\0");
    assert_eq!(tcp(b"AMQP\x07\x07\x07\x07", NOTHING), Verdict::No);
    opens(
        A::Stomp,
        b"CONNECT\naccept-version:1.2\nhost:stomp.example\n\n\0",
    );
    opens(A::Stomp, b"STOMP\r\nhost:a\r\n\r\n\0");
    assert_eq!(
        tcp(b"", b"CONNECTED\nversion:1.2\n\n\0"),
        Verdict::Is(A::Stomp)
    );
    assert_eq!(
        tcp(b"", b"INFO {\"server_id\":\"a\"}\r\n"),
        Verdict::Is(A::Nats)
    );
    opens(A::Nats, b"CONNECT {\"verbose\":false}\r\n");
    assert_eq!(tcp(b"INFO sip:a@b SIP/2.0\r\n", b""), Verdict::Is(A::Sip));
    // ApiVersions, version 3.
    let request = b"\0\x12\0\x03\0\0\0\x01\0\x07rdkafka\0\x08library\x062.0.0\0";
    opens(A::Kafka, &be(request.len(), request));
    let mut greeting = vec![0xFF, 0, 0, 0, 0, 0, 0, 0, 1, 0x7F, 3, 1];
    opens(A::ZeroMq, &[&greeting[..], b"NULL\0\0\0\0"].concat());
    greeting.extend(b"WHAT");
    assert_eq!(tcp(&greeting, NOTHING), Verdict::No);
    let bind = [2_u32, 0, 1].map(u32::to_be_bytes).concat();
    let bind = [&bind[..], b"SMPP3TEST\0secret08\0SUBMIT1\0\x50\x01\x01\0"].concat();
    opens(A::Smpp, &be(bind.len() + 4, &bind));
    // Capabilities-Exchange-Request with Origin-Host.
    let mut request = vec![
        1, 0, 0, 36, 0x80, 0, 1, 1, 0, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8,
    ];
    request.extend([0, 0, 1, 8, 0x40, 0, 0, 16]);
    request.extend(b"a.exampl");
    opens(A::Diameter, &request);
    opens(A::Hl7, b"\x0bMSH|^~\\&|ADT1|MCM|\r");
    let mut associate = vec![1, 0, 0, 0, 0, 0xCD, 0, 1, 0, 0];
    associate.extend(*b"ANY-SCP         ECHOSCU         ");
    associate.extend([0; 32]);
    associate.extend(b"\x10\0\0\x151.2.840.10008.3.1.1.1");
    opens(A::Dicom, &associate);
    opens(
        A::FastCgi,
        b"\x01\x01\0\x01\0\x08\0\0\0\x01\0\0\0\0\0\0\x01\x04",
    );
    opens(A::Ajp, b"\x12\x34\0\x60\x02\x02\0\x08HTTP/1.1\0\0\x01/\0");
    opens(A::Zabbix, b"ZBXD\x01\x09\0\0\0\0\0\0\0agent.ping");
}

#[test]
fn plants_and_vehicles() {
    let read = b"\0\x01\0\0\0\x06\x11\x03\0\x6b\0\x03";
    assert_eq!(tcp_on(read, b"", 502), Verdict::Is(A::Modbus));
    assert_ne!(tcp(read, b""), Verdict::Is(A::Modbus));
    // The example of a link frame that resets the link, with its check sum.
    opens(A::Dnp3, b"\x05\x64\x05\xc0\x01\0\0\x04\xe9\x21");
    assert_eq!(
        tcp(b"\x05\x64\x05\xc0\x01\0\0\x04\xe9\x22", NOTHING),
        Verdict::No
    );
    let connection = b"\x03\0\0\x16\x11\xe0\0\0\0\x01\0\xc1\x02\x01\0\xc2\x02\x01\x02\xc0\x01\x0a";
    assert_eq!(tcp(connection, b""), Verdict::More);
    let setup = b"\x03\0\0\x19\x02\xf0\x80\x32\x01\0\0\x02\0\0\x08\0\0\xf0\0\0\x01\0\x01\x01\xe0";
    opens(A::S7, &[&connection[..], setup].concat());
    opens(A::S7, setup);
    opens(A::Iec104, &[0x68, 4, 0x07, 0, 0, 0]);
    assert_eq!(tcp(b"h\x04\x05\0\0\0", NOTHING), Verdict::No);
    let mut register = vec![0x65, 0, 4, 0];
    register.resize(24, 0);
    register.extend([1, 0, 0, 0]);
    opens(A::Enip, &register);
    opens(
        A::OpcUa,
        b"HELF\x37\0\0\0\0\0\0\0\0\0\x01\0\0\0\x01\0\0\0\0\0\0\0\0\0\x17\0\0\0opc.tcp://example.com:48",
    );
    assert_eq!(tcp(b"", b"ACKF\x1c\0\0\0\0\0\0\0"), Verdict::Is(A::OpcUa));
    opens(A::Fins, b"FINS\0\0\0\x0c\0\0\0\0\0\0\0\0\0\0\0\0");
    // Who-Is to all networks.
    says_at_its_length(
        A::Bacnet,
        b"\x81\x0b\0\x0c\x01\x20\xff\xff\0\xff\x10\x08",
        47_808,
    );
    says_at_its_length(
        A::Knx,
        b"\x06\x10\x02\x01\0\x0e\x08\x01\xc0\xa8\0\x01\x0e\x57",
        40_321,
    );
    needs_its_port(A::HartIp, b"\x01\0\0\0\0\x01\0\x0d\x01\0\0\x75\x30", 5094);
    let mut frame = vec![0xAA, 0x41, 0, 18, 0, 7, 0x65, 0, 0, 0, 0, 0, 0, 0, 0, 2];
    let crc = frame.iter().fold(0xFFFF_u16, |crc, byte| {
        let quick = (crc >> 8) ^ u16::from(*byte);
        let quick = quick ^ quick >> 4;
        crc << 8 ^ quick << 12 ^ quick << 5 ^ quick
    });
    frame.extend(crc.to_be_bytes());
    says(A::C37118, &frame, 4712);
    opens(A::C37118, &frame);
    opens(
        A::Knx,
        b"\x06\x10\x02\x01\0\x0e\x08\x01\xc0\xa8\0\x01\x0e\x57",
    );
    frame[5] ^= 1;
    assert_ne!(udp_on(&frame, 4712), Verdict::Is(A::C37118));
    says(
        A::Rtps,
        b"RTPS\x02\x01\x01\x0fan identifie\x09\x01\x08\0",
        7400,
    );
    // GET coap://.../temperature, with a token.
    let get = b"\x41\x01\x7d\x35\x20\xbbtemperature";
    needs_its_port(A::Coap, get, 5683);
    assert_ne!(udp_on(&get[..get.len() - 1], 5683), Verdict::Is(A::Coap));
    says_at_its_length(
        A::SomeIp,
        b"\x12\x34\x04\x21\0\0\0\x0c\0\x01\0\x05\x01\x01\0\0data",
        30_501,
    );
}

#[test]
fn tunnels_keys_and_accounts() {
    let mut init = b"initiate\0\0\0\0\0\0\0\0\x21\x20\x22\x08\0\0\0\0\0\0\0\x24".to_vec();
    init.extend([0, 0, 0, 8, 1, 2, 3, 4]);
    says_at_its_length(A::Ike, &init, 40_321);
    says(A::Ike, &[&[0; 4][..], &init].concat(), 4500);
    needs_its_port(
        A::Radius,
        b"\x01\x07\0\x19sixteen random b\x01\x05joe",
        1812,
    );
    assert_ne!(
        udp_on(b"\x01\x07\0\x19sixteen random b\x01\x06joe", 1812),
        Verdict::Is(A::Radius)
    );
    needs_its_port(
        A::Bfd,
        b"\x20\x40\x03\x18\0\0\0\x01\0\0\0\0\0\x0f\x42\x40\0\x0f\x42\x40\0\0\0\0",
        3784,
    );
    needs_its_port(
        A::Gtp,
        b"\x48\x01\0\x0d\0\0\x01\0\x03\0\x01\0\x05\0\0\0\0",
        2123,
    );
    needs_its_port(A::Gtp, b"\x2e\x01\0\0\0\x01", 3386);
    needs_its_port(A::Gtp, b"\x32\x01\0\x04\0\0\0\0\0\x01\0\0", 2123);
    says_at_its_length(
        A::L2tp,
        b"\xc8\x02\0\x14\0\0\0\0\0\0\0\0\x80\x08\0\0\0\0\0\x01",
        1701,
    );
    let reset = b"\x38session!\0\0\0\0\0";
    says_at_its_length(A::OpenVpn, reset, 40_321);
    opens(A::OpenVpn, &[&[0, 14][..], reset].concat());
    let signed = [
        &b"\x38session!"[..],
        &[0xA5; 20],
        b"\0\0\0\x01\x65\0\0\0\0\0\0\0\0",
    ]
    .concat();
    says(A::OpenVpn, &signed, 1194);
    opens(
        A::Pptp,
        &[
            &b"\0\x9c\0\x01\x1a\x2b\x3c\x4d\0\x01\0\0\x01\0\0\0"[..],
            &[0; 140],
        ]
        .concat(),
    );
    let tacacs = b"\xc0\x01\x01\0\0\0\0\x07\0\0\0\x04body";
    assert_eq!(tcp_on(tacacs, b"", 49), Verdict::Is(A::Tacacs));
    assert_ne!(tcp(tacacs, b""), Verdict::Is(A::Tacacs));
    let (client, server) = (
        b"\x05\x01\0\x05\x01\0\x01\x0a\0\0\x01\0\x50",
        b"\x05\0\x05\0\0\x01\0\0\0\0\0\0",
    );
    assert_eq!(tcp(client, server), Verdict::Is(A::Socks));
    assert_ne!(tcp(client, b""), Verdict::Is(A::Socks));
    assert_eq!(tcp(&client[..3], &server[..2]), Verdict::More);
    assert_eq!(tcp(&client[..3], NOTHING), Verdict::No);
    assert_eq!(
        tcp(b"\x04\x01\0\x50\x0a\0\0\x01joe\0", b"\0\x5a\0\0\0\0\0\0"),
        Verdict::Is(A::Socks)
    );
    opens(A::Tinc, b"0 alpha 17.7\n");
    says(A::Tailscale, b"TS\xf0\x9f\x92\xac and a key", 41_641);
    says(A::Dlep, b"DLEP\0\x01\0\0", 854);
}

#[test]
fn routes_times_and_exports() {
    let mut sflow = [5_u32, 1, 0x0A00_0001, 0, 1, 1000, 1]
        .map(u32::to_be_bytes)
        .concat();
    sflow.extend([0; 40]);
    says(A::Sflow, &sflow, 40_321);
    says_at_its_length(
        A::Ipfix,
        b"\0\x0a\0\x1c\x65\0\0\0\0\0\0\x01\0\0\0\x01\0\x02\0\x0c\x01\0\0\x01\0\x08\0\x04",
        40_321,
    );
    let mut export = vec![0, 5, 0, 1];
    export.resize(24 + 48, 0);
    says_at_its_length(A::Netflow, &export, 40_321);
    let hello = b"\0\x01\0\x1e\x0a\0\0\x01\0\0\x01\0\0\x14\0\0\0\0\x04\0\0\x04\0\x0f\0\0\x04\x01\0\x04\x0a\0\0\x01";
    needs_its_port(A::Ldp, hello, 646);
    needs_its_port(A::Xdmcp, b"\0\x01\0\x02\0\x01\0", 177);
    let mut rip = vec![1, 2, 0, 0];
    rip.resize(24, 0);
    needs_its_port(A::Rip, &rip, 520);
    needs_its_port(
        A::Hsrp,
        b"\0\0\x10\x03\x0a\x78\x01\0cisco\0\0\0\x0a\0\0\x01",
        1985,
    );
    needs_its_port(
        A::Slp,
        b"\x02\x01\0\0\x1e\0\0\0\0\0\x12\x34\0\x02en\0\0\0\x04test\0\0\0\0\0\0",
        427,
    );
    needs_its_port(A::NatPmp, &[0, 0], 5351);
    needs_its_port(A::NatPmp, b"\0\x80\0\0\0\0\0\x05\xc0\0\x02\x01", 5351);
    needs_its_port(A::Rmcp, b"\x06\0\xff\x06\0\0\x11\xbe\x80\0\0\0", 623);
    let mut sync = vec![0, 2, 0, 44];
    sync.resize(44, 0);
    needs_its_port(A::Ptp, &sync, 319);
    // NULL of NFS 3, and GETPORT of the mapper.
    let call = |program: u32, version: u32, procedure: u32| {
        [7, 0, 2, program, version, procedure, 0, 0, 0, 0]
            .map(u32::to_be_bytes)
            .concat()
    };
    says(A::Nfs, &call(100_003, 3, 0), 2049);
    says(A::Rpc, &call(100_000, 2, 3), 111);
    assert_ne!(udp(&call(7, 2, 3)), Verdict::Is(A::Rpc));
    opens(
        A::Nfs,
        &[&[0x80, 0, 0, 40][..], &call(100_003, 4, 1)].concat(),
    );
    let hello = b"\x04\0\0\x08\0\0\0\x01";
    assert_eq!(tcp_on(hello, b"", 6653), Verdict::Is(A::OpenFlow));
    assert_ne!(tcp(hello, b""), Verdict::Is(A::OpenFlow));
    let login = b"\0joe\0root\0vt100/9600\0";
    assert_eq!(tcp_on(login, b"", 513), Verdict::Is(A::Rlogin));
    assert_ne!(tcp(login, b""), Verdict::Is(A::Rlogin));
    assert_eq!(
        tcp(b"", b"# munin node at a.example\n"),
        Verdict::Is(A::Munin)
    );
}

#[test]
fn programs_and_players() {
    opens(
        A::Git,
        b"0033git-upload-pack /project.git\0host=example.com\0",
    );
    opens(A::Rsync, b"@RSYNCD: 31.0\n");
    assert_eq!(
        tcp(b"", b"( success ( 2 2 ( ) ( edit-pipeline ) ) ) "),
        Verdict::Is(A::Svn)
    );
    opens(A::X11, b"l\0\x0b\0\0\0\x12\0\x10\0\0\0MIT-MAGIC-COOKIE-1");
    opens(A::X11, b"B\0\0\x0b\0\0\0\0\0\0\0\0");
    opens(A::DceRpc, b"\x05\0\x0b\x03\x10\0\0\0\x48\0\0\0\x01\0\0\0");
    let mut ping = vec![4, 2, 8, 0, 0x10, 0, 0, 0];
    ping.resize(80, 0x11);
    ping[74..76].copy_from_slice(&4_u16.to_le_bytes());
    ping.extend([0; 4]);
    says_at_its_length(A::DceRpc, &ping, 40_321);
    opens(A::Bitcoin, b"\xf9\xbe\xb4\xd9version\0\0\0\0\0\x64\0\0\0");
    let half = |length: u16| {
        let mut half = length.to_be_bytes().to_vec();
        half.push(4);
        half.resize(2 + usize::from(length), 0xA7);
        half
    };
    assert_eq!(tcp(&half(0x180), &half(0x162)), Verdict::Is(A::Ethereum));
    assert_ne!(tcp(&half(0x180), b""), Verdict::Is(A::Ethereum));
    // Findnode: a key, and when it expires.
    let mut find = vec![0x5A; 96];
    find.extend([1, 3, 0xF8, 71, 0xB8, 64]);
    find.extend([0x77; 64]);
    find.extend([0x84, 0x65, 0, 0, 0]);
    says_at_its_length(A::Ethereum, &find, 30_303);
    opens(A::Nntp, b"MODE READER\r\n");
    says(
        A::Mgcp,
        b"RSIP 1204 aaln/1@gw.example MGCP 1.0\r\nRM: restart\r\n",
        2427,
    );
    says(
        A::Megaco,
        b"MEGACO/1 [192.0.2.1]:2944 Transaction=1{}",
        2944,
    );
    let setup = b"\x03\0\0\x14\x08\x02\x12\x34\x05\x04\x03\x88\x93\xa5\x7e\0\x03\x05\x20\x80";
    opens(A::H323, setup);
    let mut packets = vec![0xFF; 2 * 188];
    for at in [0, 188] {
        packets[at..at + 4].copy_from_slice(&[0x47, 0x1F, 0xFF, 0x10]);
    }
    says_at_its_length(A::MpegTs, &packets, 1234);
    says(
        A::SourceEngine,
        b"\xff\xff\xff\xffTSource Engine Query\0",
        27_015,
    );
    let mark = b"\0\xff\xff\0\xfe\xfe\xfe\xfe\xfd\xfd\xfd\xfd\x12\x34\x56\x78";
    says(
        A::RakNet,
        &[b"\x01\0\0\0\0\0\0\0\x07", &mark[..], b"a client"].concat(),
        19_132,
    );
    let probe = b"<?xml version=\"1.0\"?><e:Envelope xmlns:d=\"http://schemas.xmlsoap.org/ws/2005/04/discovery\">";
    needs_its_port(A::WsDiscovery, probe, 3702);
}
