use std::net::{Ipv4Addr, Ipv6Addr};

use proptest::prelude::*;

use super::*;

/// www.Example.com A -> CNAME cdn.example.net -> A 192.0.2.7, and an AAAA.
fn answer() -> Vec<u8> {
    let mut m = vec![0x12, 0x34, 0x81, 0x80, 0, 1, 0, 3, 0, 0, 0, 0];
    m.extend(b"\x03www\x07Example\x03com\x00\x00\x01\x00\x01"); // name at 12, "com" at 24
    m.extend(b"\xC0\x0C\x00\x05\x00\x01\x00\x00\x01\x2C\x00\x11"); // CNAME, ttl 300
    m.extend(b"\x03cdn\x07example\x03net\x00"); // at 45
    m.extend(b"\xC0\x2D\x00\x01\x00\x01\x00\x00\x00\x3C\x00\x04\xC0\x00\x02\x07");
    m.extend(b"\xC0\x2D\x00\x1C\x00\x01\x00\x00\x00\x3C\x00\x10");
    m.extend([0x20, 0x01, 0x0D, 0xB8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 9]);
    m
}

fn query() -> Vec<u8> {
    let mut m = vec![0x12, 0x34, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0];
    m.extend(b"\x03www\x07example\x03com\x00\x00\x01\x00\x01");
    m
}

#[test]
fn a_question_gives_its_name_in_lower_case() {
    let bytes = answer();
    let message = Message::parse(&bytes).unwrap();
    assert_eq!(message.id(), 0x1234);
    assert!(message.is_response() && !message.is_truncated());
    let mut name = Name::default();
    let question = message.question(&mut name).unwrap();
    assert_eq!(name.as_bytes(), b"www.example.com");
    assert_eq!((question.kind, question.class), (RecordType::A, 1));
}

#[test]
fn answers_follow_compression() {
    let bytes = answer();
    let message = Message::parse(&bytes).unwrap();
    let answers: Vec<Answer> = message.answers().collect();
    assert_eq!(answers.len(), 3);
    let mut name = Name::default();
    let Data::Cname(target) = answers[0].data else {
        panic!("{:?}", answers[0])
    };
    assert_eq!(answers[0].ttl, 300);
    assert!(message.read_name(target, &mut name));
    assert_eq!(name.as_bytes(), b"cdn.example.net");
    assert_eq!(answers[1].data, Data::A(Ipv4Addr::new(192, 0, 2, 7)));
    assert!(message.read_name(answers[1].owner, &mut name));
    assert_eq!(name.as_bytes(), b"cdn.example.net");
    let v6: Ipv6Addr = "2001:db8::9".parse().unwrap();
    assert_eq!(answers[2].data, Data::Aaaa(v6));
    assert_eq!(answers[2].ttl, 60);
}

#[test]
fn loops_and_forward_pointers_are_no_names() {
    for pointer in [[0xC0, 12], [0xC0, 14], [0xC0, 200], [0xFF, 0xFF]] {
        let mut bytes = vec![0, 1, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0];
        bytes.extend(pointer);
        bytes.extend([0, 1, 0, 1]);
        let message = Message::parse(&bytes).unwrap();
        let mut name = Name::default();
        assert_eq!(message.question(&mut name), None, "{pointer:?}");
        assert_eq!(name.as_bytes(), b"");
    }
    // a: "x" then a pointer to itself.
    let mut bytes = vec![0, 1, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0];
    bytes.extend(b"\x01x\xC0\x0C\x00\x01\x00\x01");
    let message = Message::parse(&bytes).unwrap();
    assert_eq!(message.question(&mut Name::default()), None);
}

#[test]
fn names_are_as_long_as_the_rfc_lets_them_be() {
    let name_of = |labels: &[usize]| {
        let mut bytes = vec![0, 1, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0];
        for label in labels {
            bytes.push(u8::try_from(*label).unwrap());
            bytes.extend(std::iter::repeat_n(b'a', *label));
        }
        bytes.extend([0, 0, 1, 0, 1]);
        let mut name = Name::default();
        let question = Message::parse(&bytes).unwrap().question(&mut name);
        question.map(|_| name.as_bytes().len())
    };
    assert_eq!(name_of(&[63, 63, 63, 61]), Some(253));
    assert_eq!(name_of(&[63, 63, 63, 62]), None);
    assert_eq!(name_of(&[63; 40]), None);
    assert_eq!(name_of(&[]), Some(0));
}

#[test]
fn a_cut_message_gives_what_is_there() {
    let bytes = answer();
    let cut = &bytes[..bytes.len() - 5];
    let message = Message::parse(cut).unwrap();
    assert_eq!(message.answers().count(), 2);
    assert_eq!(Message::parse(&bytes[..11]), None);
    assert_eq!(Message::parse(&bytes[..12]).unwrap().answers().count(), 0);
}

#[test]
fn a_stream_has_lengths_in_front() {
    let message = query();
    let mut stream = u16::try_from(message.len()).unwrap().to_be_bytes().to_vec();
    stream.extend(&message);
    stream.extend([0, 9, 1]);
    let (first, rest) = take_framed(&stream).unwrap();
    assert_eq!(first, message);
    assert_eq!(rest, [0, 9, 1]);
    assert_eq!(take_framed(rest), None);
    assert_eq!(take_framed(&[0]), None);
}

#[test]
fn certainty_wants_a_sane_question() {
    let certain = |bytes: &[u8]| Message::parse(bytes).is_some_and(|m| m.is_certain());
    assert!(certain(&query()));
    assert!(certain(&answer()));
    let with = |at: usize, value: u8| {
        let mut bytes = query();
        bytes[at] = value;
        bytes
    };
    assert!(!certain(&with(3, 0x40)), "Z bit");
    assert!(!certain(&with(5, 2)), "two questions");
    assert!(!certain(&with(7, 1)), "an answer in a question");
    assert!(!certain(&with(2, 0x19)), "an opcode that is none");
    assert!(!certain(&with(14, 0)), "not text");
    assert!(!certain(&with(31, 9)), "no class");
    let mut longer = query();
    longer.push(0);
    assert!(!certain(&longer), "more than announced");
}

proptest! {
    #[test]
    fn any_bytes_are_read_without_panic(bytes in proptest::collection::vec(any::<u8>(), 0..600)) {
        let mut name = Name::default();
        if let Some(message) = Message::parse(&bytes) {
            std::hint::black_box(message.is_certain());
            std::hint::black_box(message.question(&mut name));
            for answer in message.answers() {
                std::hint::black_box(message.read_name(answer.owner, &mut name));
                if let Data::Cname(at) = answer.data {
                    std::hint::black_box(message.read_name(at, &mut name));
                }
                prop_assert!(name.as_bytes().len() <= MAX_NAME);
            }
        }
        std::hint::black_box(take_framed(&bytes));
    }

    #[test]
    fn damaged_answers_are_read_without_panic(at in 0_usize..200, value: u8, cut in 0_usize..120) {
        let mut bytes = answer();
        let end = bytes.len();
        if let Some(byte) = bytes.get_mut(at) {
            *byte = value;
        }
        bytes.truncate(end.saturating_sub(cut));
        if let Some(message) = Message::parse(&bytes) {
            prop_assert!(message.answers().count() <= usize::from(message.counts()[1]));
            std::hint::black_box(message.question(&mut Name::default()));
        }
    }
}
