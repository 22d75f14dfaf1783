//! Encoding against RFC 7011's own examples and by hand.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use linkweir_record::RecordBatch;
use linkweir_record::flow::{FlowBatch, FlowRow, FlowSide, FlowText, Protocol};
use proptest::prelude::*;

use super::message::{MAX_MESSAGE, MAX_RECORD, Message};
use super::template::{FlowTemplate, number, text};

fn hex(text: &str) -> Vec<u8> {
    let digits: Vec<u8> = text.bytes().filter(u8::is_ascii_hexdigit).collect();
    digits
        .chunks(2)
        .map(|pair| u8::from_str_radix(str::from_utf8(pair).unwrap(), 16).unwrap())
        .collect()
}

/// RFC 7011 appendix A.2.1 (a template) and A.3 (three records), in a message.
#[test]
fn sets_are_those_of_the_examples_of_the_rfc() {
    let template = hex("0100 0005 0008 0004 000c 0004 000f 0004 0002 0004 0001 0004");
    let mut message = Message::default();
    assert!(message.add(2, &template, false));
    let records = [
        "c0000201 c6336401 c0000202 00000391 000000fb",
        "c0000202 c6336402 c0000203 000000a2 00000190",
        "c0000203 c6336403 c0000204 00000011 0000007b",
    ];
    for record in records {
        assert!(message.add(256, &hex(record), true));
    }
    assert_eq!((message.flows(), message.records()), (3, 3));
    let expected = format!(
        "000a 006c 5a000000 00000007 00000001 \
         0002 001c 0100 0005 0008 0004 000c 0004 000f 0004 0002 0004 0001 0004 \
         0100 0040 {}",
        records.join(" ")
    );
    assert_eq!(message.complete(0x5a00_0000, 7, 1), hex(&expected));
}

#[test]
fn numbers_are_short_and_never_wrap() {
    let encoded = |value, length| {
        let mut out = Vec::new();
        number(&mut out, value, length);
        out
    };
    assert_eq!(encoded(0x0102, 4), [0, 0, 1, 2]);
    assert_eq!(encoded(0x0102, 1), [0xff]);
    assert_eq!(encoded(u64::MAX, 4), [0xff; 4]);
    assert_eq!(encoded(u64::MAX, 8), [0xff; 8]);
}

#[test]
fn texts_are_utf8_whatever_came() {
    let encoded = |bytes: &[u8]| {
        let mut out = Vec::new();
        text(&mut out, bytes);
        out
    };
    assert_eq!(encoded(b""), [0]);
    assert_eq!(encoded(b"ab"), b"\x02ab");
    assert_eq!(encoded(b"a\xff\x1bb"), "\x08a\u{fffd}\u{fffd}b".as_bytes());
    let long = encoded("ü".repeat(200).as_bytes());
    assert_eq!((long.len(), long[0]), (255, 254));
    assert!(str::from_utf8(&long[1..]).is_ok());
}

/// Fields of a template record: id, length, enterprise.
fn fields(mut record: &[u8]) -> Vec<(u16, u16, Option<u32>)> {
    let mut take = |count: usize| {
        let (head, rest) = record.split_at(count);
        record = rest;
        head.iter()
            .fold(0_u32, |n, byte| (n << 8) | u32::from(*byte))
    };
    take(2);
    let count = take(2);
    let list = (0..count)
        .map(|_| {
            let (id, length) = (take(2), take(2));
            let pen = (id & 0x8000 != 0).then(|| take(4));
            let short = |value: u32| u16::try_from(value).unwrap();
            (short(id & 0x7fff), short(length), pen)
        })
        .collect();
    assert!(record.is_empty());
    list
}

#[test]
fn templates_carry_both_directions() {
    for template in FlowTemplate::ALL {
        let mut record = Vec::new();
        template.describe(&mut record);
        let fields = fields(&record);
        assert!(fields.len() <= 60);
        let has = |field| fields.contains(&field);
        assert!(has((2, 8, None)) && has((2, 8, Some(29_305))));
        assert!(has((1, 8, None)) && has((1, 8, Some(29_305))));
        assert_eq!(has((8, 4, None)), !template.is_v6);
        assert_eq!(has((28, 16, None)), template.is_v6);
        assert_eq!(has((6, 2, Some(29_305))), template.is_tcp);
        assert_eq!(has((3, 4, Some(32_473))), template.is_tcp);
        assert_eq!(has((0x4003, 4, Some(32_473))), template.is_tcp);
        let mut unique = fields.clone();
        unique.sort_unstable();
        unique.dedup();
        assert_eq!(unique.len(), fields.len());
        // Forward and reverse stand in the order of the record: source first.
        let at = |field| fields.iter().position(|f| *f == field).unwrap();
        assert_eq!(at((1, 8, None)) + 1, at((1, 8, Some(29_305))));
    }
}

fn batch(row: FlowRow, text: &FlowText<'_>) -> FlowBatch {
    let mut batch = FlowBatch::default();
    batch.push(row, text);
    batch
}

#[test]
fn a_udp_record_by_hand() {
    let side = |last, port| FlowSide {
        ip: IpAddr::V4(Ipv4Addr::new(192, 0, 2, last)),
        port,
        pkts_all: u64::from(last),
        ip_bytes: 0x1000 + u64::from(last),
        ttl_min: 60,
        ttl_max: 64,
        ..FlowSide::default()
    };
    let row = FlowRow {
        protocol: Protocol::Udp,
        flow_id: 0x0102_0304_0506_0708,
        first_ns: 0x5a_0000_0000 * 1_000_000,
        last_ns: 0x5a_0000_0001 * 1_000_000,
        client: side(1, 40_000),
        server: side(2, 53),
        application: "dns",
        vlan: Some(7),
        ..FlowRow::default()
    };
    let sni = FlowText {
        sni: b"a.example",
        ..FlowText::default()
    };
    let batch = batch(row, &sni);
    let flow = batch.get(0).unwrap();
    let template = FlowTemplate::of(&flow);
    assert_eq!(template.id(), 258);
    let mut record = Vec::new();
    template.record(&flow, &mut record);
    let expected = "c0000201 c0000202 9c40 0035 11 04 01 3c 3c 40 40 \
         0000000000000001 0000000000000002 0000000000001001 0000000000001002 \
         0000005a00000000 0000005a00000001 0102030405060708 0007 \
         03 646e73 09 612e6578616d706c65 00";
    assert_eq!(record, hex(expected));
}

proptest! {
    /// Whatever the network sends, a record fits a message, and its length is that of the template.
    #[test]
    fn every_record_fits(
        is_tcp: bool, is_v6: bool, count: u64,
        sni in prop::collection::vec(any::<u8>(), 0..600),
        host in prop::collection::vec(any::<u8>(), 0..600),
        fqdn in "[a-zä\u{1f980}]{0,300}",
    ) {
        let ip: IpAddr = if is_v6 {
            Ipv6Addr::LOCALHOST.into()
        } else {
            Ipv4Addr::LOCALHOST.into()
        };
        let side = FlowSide { ip, pkts_all: count, ip_bytes: count, pkts_retx: count, ..FlowSide::default() };
        let row = FlowRow {
            protocol: if is_tcp { Protocol::Tcp } else { Protocol::Udp },
            client: side,
            server: side,
            ..FlowRow::default()
        };
        let texts = FlowText { sni: &sni, http_host: &host, fqdn: fqdn.as_bytes(), ..FlowText::default() };
        let batch = batch(row, &texts);
        let flow = batch.get(0).unwrap();
        let template = FlowTemplate::of(&flow);
        let (mut described, mut record) = (Vec::new(), Vec::new());
        template.describe(&mut described);
        template.record(&flow, &mut record);
        prop_assert!(record.len() <= MAX_RECORD);
        let mut left = record.as_slice();
        for (_, length, _) in fields(&described) {
            let length = if length == u16::MAX {
                let (own, rest) = left.split_first().unwrap();
                left = rest;
                usize::from(*own)
            } else {
                usize::from(length)
            };
            left = &left[length..];
        }
        prop_assert!(left.is_empty());
        let mut message = Message::default();
        while message.add(template.id(), &record, true) {}
        prop_assert!(message.flows() > 0);
        prop_assert!(message.complete(0, 0, 1).len() <= MAX_MESSAGE);
    }
}
