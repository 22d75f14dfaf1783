use super::*;
use proptest::prelude::*;

/// A vector with a length of `N` bytes in front.
fn vector<const N: usize>(content: &[u8]) -> Vec<u8> {
    let len = u32::try_from(content.len()).unwrap().to_be_bytes();
    [&len[4 - N..], content].concat()
}

fn extension(kind: u16, content: &[u8]) -> Vec<u8> {
    [kind.to_be_bytes().as_slice(), &vector::<2>(content)].concat()
}

fn message(kind: u8, body: &[u8]) -> Vec<u8> {
    [&[kind], vector::<3>(body).as_slice()].concat()
}

fn server_name(name: &[u8]) -> Vec<u8> {
    let entry = [&[0], vector::<2>(name).as_slice()].concat();
    extension(0, &vector::<2>(&entry))
}

fn alpn(names: &[&[u8]]) -> Vec<u8> {
    let list: Vec<u8> = names.iter().flat_map(|name| vector::<1>(name)).collect();
    extension(16, &vector::<2>(&list))
}

fn client_hello(extensions: &[Vec<u8>]) -> Vec<u8> {
    let body = [
        [3, 3].as_slice(),
        &[7; 32],
        &vector::<1>(&[9; 32]),
        &vector::<2>(&[0x13, 0x01, 0xc0, 0x2f]),
        &vector::<1>(&[0]),
        &vector::<2>(&extensions.concat()),
    ];
    message(1, &body.concat())
}

fn server_hello(random: &[u8; 32], extensions: &[Vec<u8>]) -> Vec<u8> {
    let body = [
        [3, 3].as_slice(),
        random,
        &vector::<1>(&[]),
        &[0x13, 0x01, 0],
        &vector::<2>(&extensions.concat()),
    ];
    message(2, &body.concat())
}

#[test]
fn a_client_hello_of_tls_1_3() {
    let bytes = client_hello(&[
        extension(0x1a1a, &[]),
        server_name(b"www.example.org"),
        alpn(&[b"h2", b"http/1.1"]),
        extension(35, &[]),
        // GREASE, 1.3, 1.2
        extension(43, &[6, 0x3a, 0x3a, 3, 4, 3, 3]),
        extension(0xfe0d, &[0]),
        extension(57, &[1, 2, 3]),
    ]);
    let Parsed::Complete(hello) = parse_client_hello(&bytes) else {
        panic!("{:?}", parse_client_hello(&bytes));
    };
    assert_eq!(hello.version, 0x0304);
    assert_eq!(hello.session_id, [9; 32]);
    assert_eq!(hello.server_name, b"www.example.org");
    let offered: Vec<&[u8]> = hello.alpn.collect();
    assert_eq!(offered, [b"h2".as_slice(), b"http/1.1"]);
    assert!(!hello.has_ticket && !hello.has_pre_shared_key && hello.has_ech);
    assert_eq!(hello.quic_parameters, [1, 2, 3]);
}

#[test]
fn a_client_hello_without_extensions_or_with_a_ticket() {
    let mut bytes = client_hello(&[extension(35, &[1, 2]), extension(41, &[0])]);
    let hello = parse_client_hello(&bytes).seen().unwrap();
    assert!(hello.has_ticket && hello.has_pre_shared_key);
    assert_eq!((hello.version, hello.server_name), (0x0303, &[][..]));
    // TLS 1.0 with no extensions at all
    let len = 2 + 32 + 33 + 6 + 2;
    bytes.truncate(4 + len);
    bytes[3] = u8::try_from(len).unwrap();
    bytes[5] = 1;
    let hello = parse_client_hello(&bytes);
    assert!(matches!(hello, Parsed::Complete(hello) if hello.version == 0x0301));
}

#[test]
fn a_cut_client_hello_gives_what_is_there() {
    let bytes = client_hello(&[server_name(b"a.example"), alpn(&[b"h2", b"h3"])]);
    let cut = &bytes[..bytes.len() - 3];
    let Parsed::Partial(hello) = parse_client_hello(cut) else {
        panic!("whole");
    };
    assert_eq!(hello.server_name, b"a.example");
    assert_eq!(hello.alpn.collect::<Vec<_>>(), [b"h2"]);
    for len in 0..bytes.len() {
        assert!(!matches!(
            parse_client_hello(&bytes[..len]),
            Parsed::Complete(_)
        ));
    }
    assert_eq!(parse_client_hello(b"GET / HTTP/1.1"), Parsed::Not);
}

#[test]
fn server_hellos() {
    let bytes = server_hello(&[1; 32], &[alpn(&[b"h2"])]);
    let mut hello = parse_server_hello(&bytes).seen().unwrap();
    assert_eq!(hello.version, 0x0303);
    assert_eq!(hello.alpn.next(), Some(b"h2".as_slice()));
    assert!(!hello.is_retry && !hello.has_pre_shared_key);
    let chosen = extension(43, &[3, 4]);
    let bytes = server_hello(&[1; 32], &[chosen.clone(), extension(41, &[0, 0])]);
    let hello = parse_server_hello(&bytes).seen().unwrap();
    assert!(hello.version == 0x0304 && hello.has_pre_shared_key);
    let retry = [
        0xCF21_AD74_E59A_6111_u64,
        0xBE1D_8C02_1E65_B891,
        0xC2A2_1116_7ABB_8C5E,
        0x079E_09E2_C8A8_339C,
    ];
    let random: Vec<u8> = retry.iter().flat_map(|part| part.to_be_bytes()).collect();
    let bytes = server_hello(&random.try_into().unwrap(), &[chosen]);
    assert!(parse_server_hello(&bytes).seen().unwrap().is_retry);
}

fn der(tag: u8, content: &[u8]) -> Vec<u8> {
    let len = content.len();
    let mut bytes = vec![tag];
    match len {
        0..=0x7f => bytes.push(u8::try_from(len).unwrap()),
        _ => bytes.extend([
            0x82,
            u8::try_from(len >> 8).unwrap(),
            u8::try_from(len & 0xff).unwrap(),
        ]),
    }
    bytes.extend(content);
    bytes
}

fn name(parts: &[(u8, &[u8])]) -> Vec<u8> {
    let names: Vec<u8> = parts
        .iter()
        .flat_map(|(kind, text)| {
            let pair = [der(0x06, &[0x55, 4, *kind]), der(0x0c, text)].concat();
            der(0x31, &der(0x30, &pair))
        })
        .collect();
    der(0x30, &names)
}

fn certificate_message(with_version: bool) -> Vec<u8> {
    let version = der(0xa0, &der(2, &[2]));
    let tbs = [
        if with_version { version } else { Vec::new() },
        der(2, &[1; 16]),
        der(0x30, &der(6, &[0x2a, 3])),
        name(&[(6, b"XX"), (3, b"The issuer")]),
        der(0x30, &[0; 30]),
        name(&[(6, b"XX"), (10, b"Example"), (3, b"www.example.org")]),
        der(0x30, &[5; 290]),
    ];
    let certificate = der(0x30, &der(0x30, &tbs.concat()));
    let list = [vector::<3>(&certificate), vector::<3>(&certificate)].concat();
    message(11, &vector::<3>(&list))
}

#[test]
fn the_common_name_of_the_first_certificate() {
    for with_version in [true, false] {
        let bytes = certificate_message(with_version);
        let expected = Parsed::Complete(b"www.example.org".as_slice());
        assert_eq!(certificate_name(&bytes), expected);
        let end = bytes
            .windows(15)
            .position(|w| w == b"www.example.org")
            .unwrap()
            + 15;
        assert_eq!(certificate_name(&bytes[..end]), expected);
        for len in 0..end {
            assert_eq!(certificate_name(&bytes[..len]), Parsed::Partial(&[][..]));
        }
    }
    assert_eq!(
        certificate_name(&message(11, &[0, 0, 0])),
        Parsed::Complete(&[][..])
    );
    assert_eq!(certificate_name(&client_hello(&[])), Parsed::Not);
}

#[test]
fn the_dns_names_of_the_first_certificate() {
    let names = [
        der(0x82, b"www.example.org"),
        der(0x87, &[192, 0, 2, 1]),
        der(0x82, b"*.b.example"),
    ];
    let octets = der(4, &der(0x30, &names.concat()));
    let critical = der(1, &[0xff]);
    let other = der(0x30, &[der(6, &[0x55, 0x1d, 0x0f]), der(4, &[3])].concat());
    let wanted = [der(6, &[0x55, 0x1d, 0x11]), critical, octets].concat();
    let extensions = der(0xa3, &der(0x30, &[other, der(0x30, &wanted)].concat()));
    let tbs = [der(2, &[1]), der(0x30, &[5; 40]), extensions];
    let certificate = der(0x30, &der(0x30, &tbs.concat()));
    let bytes = message(11, &vector::<3>(&vector::<3>(&certificate)));
    let expected: [&[u8]; 2] = [b"www.example.org", b"*.b.example"];
    assert_eq!(certificate_dns_names(&bytes), expected);
    for len in 0..bytes.len() {
        assert!(certificate_dns_names(&bytes[..len]).is_empty());
    }
    assert!(certificate_dns_names(&certificate_message(true)).is_empty());
}

#[test]
fn headers_of_records() {
    let header = RecordHeader::parse([22, 3, 1, 2, 0]).unwrap();
    assert_eq!((header.content, header.len), (ContentType::Handshake, 512));
    for bytes in [[19, 3, 1, 0, 1], [22, 2, 1, 0, 1], [23, 3, 3, 0x50, 0]] {
        assert_eq!(RecordHeader::parse(bytes), None);
    }
    let old = Ssl2Hello::parse([0x80, 0x2e, 1, 3, 1]).unwrap();
    assert_eq!((old.version, old.len), (0x0301, 48));
    assert_eq!(Ssl2Hello::parse([0x80, 0x2e, 4, 0, 2]), None);
}

proptest! {
    #[test]
    fn nothing_panics(bytes in proptest::collection::vec(any::<u8>(), 0..300), kind in 0_u8..12) {
        let framed = message(kind, &bytes);
        for bytes in [&bytes, &framed] {
            std::hint::black_box((parse_client_hello(bytes), parse_server_hello(bytes)));
            std::hint::black_box(certificate_name(bytes));
        }
    }

    #[test]
    fn a_changed_byte_is_no_trouble(at in 0_usize..600, byte in any::<u8>(), len in 0_usize..900) {
        let hello = client_hello(&[server_name(b"a.example"), alpn(&[b"h2"]), extension(43, &[2, 3, 4])]);
        for mut bytes in [certificate_message(true), hello] {
            if let Some(place) = bytes.get_mut(at) {
                *place = byte;
            }
            bytes.truncate(len);
            if let Some(hello) = parse_client_hello(&bytes).seen() {
                prop_assert!(hello.alpn.count() <= bytes.len());
            }
            std::hint::black_box(certificate_name(&bytes));
        }
    }
}
