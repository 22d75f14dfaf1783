use super::*;
use crate::tls::parse_client_hello;
use aes::Aes128;
use aes::cipher::{BlockCipherEncrypt, KeyInit};
use aes_gcm::Aes128Gcm;
use aes_gcm::aead::AeadInOut;
use proptest::prelude::*;

/// The connection id of all examples of RFC 9001 and RFC 9369.
const ID: &str = "8394c8f03e515708";

/// The CRYPTO frame of RFC 9001 appendix A.2.
const CRYPTO: &str = "060040f1010000ed0303ebf8fa56f12939b9584a3896472ec40bb863cfd3e868\
    04fe3a47f06a2b69484c00000413011302010000c000000010000e00000b6578\
    616d706c652e636f6dff01000100000a00080006001d00170018001000070005\
    04616c706e000500050100000000003300260024001d00209370b2c9caa47fba\
    baf4559fedba753de171fa71f50f1ce15d43e994ec74d748002b000302030400\
    0d0010000e0403050306030203080408050806002d00020101001c0002400100\
    3900320408ffffffffffffffff05048000ffff07048000ffff08011001048000\
    75300901100f088394c8f03e51570806048000ffff";

fn hex(text: &str) -> Vec<u8> {
    let digits: Vec<u8> = text
        .chars()
        .map(|digit| u8::try_from(digit.to_digit(16).unwrap()).unwrap())
        .collect();
    digits
        .chunks(2)
        .map(|pair| pair[0] << 4 | pair[1])
        .collect()
}

/// The reverse of [`InitialKeys::open`]: `header` ends with a packet number of four bytes.
fn seal(keys: &InitialKeys, header: &[u8], frames: &[u8]) -> Vec<u8> {
    let (key, mut iv, protection) = keys.parts();
    let at = header.len() - 4;
    for (byte, number) in iv[8..].iter_mut().zip(&header[at..]) {
        *byte ^= number;
    }
    let mut body = frames.to_vec();
    let tag = Aes128Gcm::new(&key.into())
        .encrypt_inout_detached(&iv.into(), header, body.as_mut_slice().into())
        .unwrap();
    body.extend(tag);
    let sample: [u8; 16] = body[..16].try_into().unwrap();
    let mut mask = sample.into();
    Aes128::new(&protection.into()).encrypt_block(&mut mask);
    let mut packet = [header, &body].concat();
    packet[0] ^= mask[0] & 0x0f;
    for (byte, mask) in packet[at..].iter_mut().zip(&mask[1..5]) {
        *byte ^= mask;
    }
    packet
}

/// An Initial packet of version 1 with these frames, padded to what a client pads it to.
fn initial(id: &[u8], keys_of: &[u8], number: u8, frames: &[u8]) -> Vec<u8> {
    let mut frames = frames.to_vec();
    frames.resize(1162, 0);
    let header = [
        &[0xc3, 0, 0, 0, 1, u8::try_from(id.len()).unwrap()],
        id,
        &[0, 0, 0x44, 0x9e, 0, 0, 0, number],
    ];
    let keys = InitialKeys::client(Version::One, keys_of).unwrap();
    seal(&keys, &header.concat(), &frames)
}

fn crypto(offset: u16, piece: &[u8]) -> Vec<u8> {
    let len = u16::try_from(piece.len()).unwrap();
    [
        &[6],
        (offset | 0x4000).to_be_bytes().as_slice(),
        &(len | 0x4000).to_be_bytes(),
        piece,
    ]
    .concat()
}

#[test]
fn keys_of_the_appendices() {
    let cases = [
        // RFC 9001 appendix A.1
        (
            InitialKeys::client(Version::One, &hex(ID)),
            "1f369613dd76d5467730efcbe3b1a22d",
            "fa044b2f42a3fd3b46fb255c",
            "9f50449e04a0e810283a1e9933adedd2",
        ),
        (
            InitialKeys::server(Version::One, &hex(ID)),
            "cf3a5331653c364c88f0f379b6067e37",
            "0ac1493ca1905853b0bba03e",
            "c206b8d9b9f0f37644430b490eeaa314",
        ),
        // RFC 9369 appendix A.1
        (
            InitialKeys::client(Version::Two, &hex(ID)),
            "8b1a0bc121284290a29e0971b5cd045d",
            "91f73e2351d8fa91660e909f",
            "45b95e15235d6f45a6b19cbcb0294ba9",
        ),
        (
            InitialKeys::server(Version::Two, &hex(ID)),
            "82db637861d55e1d011f19ea71d5d2a7",
            "dd13c276499c0249d3310652",
            "edf6d05c83121201b436e16877593c3a",
        ),
    ];
    for (keys, key, iv, header) in cases {
        let (own_key, own_iv, own_header) = keys.unwrap().parts();
        assert_eq!(own_key.as_slice(), hex(key));
        assert_eq!(own_iv.as_slice(), hex(iv));
        assert_eq!(own_header.as_slice(), hex(header));
    }
}

/// RFC 9001 appendix A.2 and RFC 9369 appendix A.2: the same frames under both versions; what is
/// sealed here is what stands there, header, first and last bytes.
#[test]
fn the_client_initials_of_the_appendices() {
    let cases = [
        (
            Version::One,
            "c300000001088394c8f03e5157080000449e00000002",
            "c000000001088394c8f03e5157080000449e7b9aec34d1b1c98dd7689fb8ec11d242b123dc9b",
            "e221af44860018ab0856972e194cd934",
        ),
        (
            Version::Two,
            "d36b3343cf088394c8f03e5157080000449e00000002",
            "d76b3343cf088394c8f03e5157080000449ea0c95e82ffe67b6abcdb4298b485dd04de806071",
            "a18b2faa745b6fe189cf772a9f84cbfc",
        ),
    ];
    let mut frames = hex(CRYPTO);
    frames.resize(1162, 0);
    for (version, header, first, last) in cases {
        let keys = InitialKeys::client(version, &hex(ID)).unwrap();
        let packet = seal(&keys, &hex(header), &frames);
        assert_eq!(packet.len(), 1200);
        assert_eq!(packet[..38], hex(first));
        assert_eq!(packet[1184..], hex(last));

        let header = LongHeader::parse(&packet).unwrap();
        assert_eq!((header.kind, header.len), (Kind::Initial, 1200));
        assert_eq!(header.destination_id, hex(ID));
        let opened = keys.open(&packet, &header, <[u8]>::to_vec);
        assert_eq!(opened.as_deref(), Some(frames.as_slice()));

        let mut client = ClientInitials::new();
        assert_eq!(client.on_packet(&packet, &header), Progress::Whole);
        let hello = parse_client_hello(client.hello()).seen().unwrap();
        assert_eq!(hello.server_name, b"example.com");
        assert_eq!(hello.version, 0x0304);
        assert_eq!(hello.alpn.collect::<Vec<_>>(), [b"alpn"]);
        assert_eq!(hello.quic_parameters.len(), 50);
        assert_eq!(user_agent(hello.quic_parameters), None);
        // One byte changed: not these keys.
        let mut forged = packet.clone();
        forged[600] ^= 1;
        assert_eq!(keys.open(&forged, &header, |_| ()), None);
    }
}

#[test]
fn a_hello_in_pieces_over_several_packets() {
    let hello = &hex(CRYPTO)[4..];
    let id = hex(ID);
    // The second half first, cut in two, with a PING and an ACK between.
    let second = [
        crypto(200, &hello[200..]),
        vec![1, 0, 0, 2, 1, 0, 0, 0],
        crypto(120, &hello[120..200]),
    ];
    let first = [crypto(60, &hello[60..125]), crypto(0, &hello[..60])];
    let mut client = ClientInitials::new();
    let packet = initial(&id, &id, 0, &second.concat());
    let header = LongHeader::parse(&packet).unwrap();
    assert_eq!(client.on_packet(&packet, &header), Progress::More);
    // Then to the id that the server chose, with the keys of the first.
    let packet = initial(&[5; 9], &id, 1, &first.concat());
    let header = LongHeader::parse(&packet).unwrap();
    assert_eq!(client.on_packet(&packet, &header), Progress::Whole);
    assert_eq!(client.hello(), hello);
    client.clear();
    assert!(client.hello().is_empty());
}

#[test]
fn after_a_retry_the_keys_are_new_and_packets_are_counted() {
    let hello = &hex(CRYPTO)[4..];
    let mut client = ClientInitials::new();
    for (id, progress) in [
        ([1; 8], Progress::More),
        ([2; 8], Progress::More),
        ([3; 8], Progress::More),
        ([4; 8], Progress::Over),
        ([5; 8], Progress::Over),
    ] {
        let packet = initial(&id, &id, 0, &crypto(5, &hello[5..]));
        let header = LongHeader::parse(&packet).unwrap();
        assert_eq!(client.on_packet(&packet, &header), progress);
    }
    assert!(client.hello().is_empty());
}

#[test]
fn a_reserved_version_and_the_frames_of_google() {
    let hello = &hex(CRYPTO)[4..];
    let mut piece = crypto(0, hello);
    piece[0] = 8;
    piece.resize(1162, 0);
    let id = hex(ID);
    let header = [
        &[0xc3, 0x0a, 0x1a, 0x2a, 0x3a, 8],
        id.as_slice(),
        &[0, 0, 0x44, 0x9e, 0, 0, 0, 1],
    ];
    for version in [Version::One, Version::Draft29] {
        let keys = InitialKeys::client(version, &hex(ID)).unwrap();
        let packet = seal(&keys, &header.concat(), &piece);
        let header = LongHeader::parse(&packet).unwrap();
        let mut client = ClientInitials::new();
        assert_eq!(client.on_packet(&packet, &header), Progress::Whole);
        assert_eq!(client.hello(), hello);
    }
}

#[test]
fn long_headers() {
    // What is behind the packet is another one.
    let id = hex(ID);
    let packet = initial(&id, &id, 0, &[1]);
    let zero_rtt = [
        0xd0, 0, 0, 0, 1, 2, 7, 7, 1, 9, 0x14, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
    ];
    let datagram = [packet.as_slice(), &zero_rtt, &[0; 40]].concat();
    let first = LongHeader::parse(&datagram).unwrap();
    let next = LongHeader::parse(&datagram[first.len..]).unwrap();
    assert_eq!(next.kind, Kind::ZeroRtt);
    assert_eq!(
        (next.destination_id, next.source_id),
        (&[7, 7][..], &[9][..])
    );
    assert_eq!((next.number_at, next.len), (11, 31));
    let mut second_version = zero_rtt;
    second_version[0] = 0xe0;
    second_version[1..5].copy_from_slice(&0x6b33_43cf_u32.to_be_bytes());
    let header = LongHeader::parse(&second_version).unwrap();
    assert_eq!(header.kind, Kind::ZeroRtt);

    let negotiation = [0x80, 0, 0, 0, 0, 0, 1, 7, 0, 0, 0, 1];
    let header = LongHeader::parse(&negotiation).unwrap();
    assert_eq!(header.kind, Kind::VersionNegotiation);
    // The second bit may be either (RFC 9287 sec. 3).
    let greased = [0x80, 0, 0, 0, 1, 0, 0, 0, 0];
    assert_eq!(LongHeader::parse(&greased).unwrap().kind, Kind::Initial);
    let unknown = [0xc0, 0x1a, 0x2a, 0x3a, 0x4b, 0, 0];
    assert_eq!(LongHeader::parse(&unknown).unwrap().kind, Kind::Unknown);
    for none in [
        [0x40, 0, 0, 0, 1, 0, 0, 0, 0],
        [0xc0, 0, 0, 0, 1, 9, 0, 0, 0],
    ] {
        assert_eq!(LongHeader::parse(&none), None);
    }
}

#[test]
fn the_user_agent_among_the_parameters() {
    let parameters = [
        &[4, 4, 0x80, 0, 0xff, 0xff, 0x71, 0x29, 6],
        b"Chrome".as_slice(),
        &[1, 0],
    ];
    assert_eq!(user_agent(&parameters.concat()), Some(b"Chrome".as_slice()));
    assert_eq!(user_agent(&[4, 4, 0x80]), None);
}

#[test]
fn the_hello_of_google() {
    let tags: [(&[u8; 4], &[u8]); 4] = [
        (b"PAD\0", &[b'-'; 40]),
        (b"SNI\0", b"www.example.org"),
        (b"VER\0", b"Q043"),
        (b"UAID", b"Chrome/60"),
    ];
    let mut datagram = b"\x09abcdefghQ043\x01".to_vec();
    datagram.extend([0; 16]);
    datagram.extend(b"CHLO\x04\0\0\0");
    let mut end = 0_u32;
    for (tag, value) in tags {
        end += u32::try_from(value.len()).unwrap();
        datagram.extend(tag);
        datagram.extend(end.to_le_bytes());
    }
    datagram.extend(tags.iter().flat_map(|(_, value)| value.iter()));
    assert_eq!(public_version(&datagram), Some(0x5130_3433));
    let hello = parse_google_hello(&datagram).unwrap();
    assert_eq!(hello.server_name, b"www.example.org");
    assert_eq!(hello.user_agent, b"Chrome/60");
    assert_eq!(parse_google_hello(b"CHLO\xff\xff\0\0"), None);
    assert_eq!(public_version(b"\x09abcdefghQx43\x01"), None);
}

proptest! {
    #[test]
    fn nothing_panics(bytes in proptest::collection::vec(any::<u8>(), 0..200), version in 0_usize..4) {
        let number: u32 = [1, 0x6b33_43cf, 0xff00_001d, 0x5130_3530][version];
        let mut framed = vec![0xc0];
        framed.extend(number.to_be_bytes());
        framed.extend(&bytes);
        for bytes in [&bytes, &framed] {
            if let Some(header) = LongHeader::parse(bytes) {
                let mut client = ClientInitials::new();
                client.on_packet(bytes, &header);
            }
            std::hint::black_box((parse_google_hello(bytes), public_version(bytes)));
            std::hint::black_box(user_agent(bytes));
        }
    }

    #[test]
    fn any_frames_within_a_packet(frames in proptest::collection::vec(any::<u8>(), 0..1162)) {
        let packet = initial(&[8; 8], &[8; 8], 0, &frames);
        let header = LongHeader::parse(&packet).unwrap();
        let mut client = ClientInitials::new();
        client.on_packet(&packet, &header);
        prop_assert!(client.hello().len() <= 8192);
    }
}
