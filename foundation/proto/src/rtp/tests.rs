use proptest::prelude::*;

use super::*;

fn report(kind: u8, count: u8, words: &[u32]) -> Vec<u8> {
    let mut bytes = vec![0x80 | count, kind];
    bytes.extend(u16::try_from(words.len()).unwrap().to_be_bytes());
    bytes.extend(words.iter().flat_map(|word| word.to_be_bytes()));
    bytes
}

#[test]
fn a_header_with_sources_and_extension() {
    // RFC 3550 sec. 5.1: padding no, extension yes, two sources; marker, type 96.
    let mut bytes = vec![0x92, 0xE0, 0x12, 0x34];
    bytes.extend([0, 0, 1, 0, 0xAA, 0xBB, 0xCC, 0xDD]);
    bytes.extend([1; 8]);
    bytes.extend([0xBE, 0xDE, 0, 1, 9, 9, 9, 9]);
    bytes.extend([7; 20]);
    let packet = MediaPacket::parse(&bytes).unwrap();
    let expected = MediaPacket {
        kind: 96,
        sequence: 0x1234,
        timestamp: 256,
        source: 0xAABB_CCDD,
        header_len: 28,
    };
    assert_eq!(packet, expected);
    assert_eq!(packet.payload_len(48), 20);
    assert_eq!(packet.payload_len(3), 0);
    assert_eq!(MediaPacket::parse(&bytes[..11]), None);
    bytes[0] = 0x52;
    assert_eq!(MediaPacket::parse(&bytes), None);
    assert_eq!(
        (clock_rate(0), clock_rate(34), clock_rate(96)),
        (Some(8_000), Some(90_000), None)
    );
}

#[test]
fn reports_of_a_sender_with_a_description_behind() {
    let mut bytes = report(
        200,
        1,
        &[
            0x11,
            0xAAAA_1234,
            0x5678_BBBB,
            3_000,
            50,
            8_000, // sender
            0x22,
            0x40FF_FFFE,
            0x0001_0005,
            77,
            0x1234_5678,
            0x0001_8000,
        ],
    );
    bytes.extend(report(202, 1, &[0x11, 0x0100_0000]));
    let compound = Compound::parse(&bytes).unwrap();
    let packets = compound.packets().collect::<Vec<_>>();
    assert_eq!(
        packets.iter().map(|one| one.kind).collect::<Vec<_>>(),
        [200, 202]
    );
    let first = packets[0];
    assert_eq!(first.source, 0x11);
    let sender = SenderInfo {
        ntp_middle: 0x1234_5678,
        timestamp: 3_000,
        packets: 50,
        bytes: 8_000,
    };
    assert_eq!(first.sender, Some(sender));
    let blocks = first.blocks.collect::<Vec<_>>();
    let expected = Block {
        source: 0x22,
        fraction_lost: 64,
        lost: -2,
        jitter: 77,
        last_report: 0x1234_5678,
        delay: 0x0001_8000,
    };
    assert_eq!(blocks, [expected]);
    // Cut, or with the index and tag of encrypted reports behind it.
    assert_eq!(Compound::parse(&bytes[..bytes.len() - 1]), None);
    bytes.extend([0x80, 0, 0, 1, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10]);
    assert_eq!(Compound::parse(&bytes), None);
    assert!(is_control(&bytes) && !is_control(&[0x80, 96]));
    // More reports announced than there are.
    let short = report(201, 31, &[0x11, 0x22]);
    let packet = Compound::parse(&short).unwrap().packets().next().unwrap();
    assert_eq!((packet.sender, packet.blocks.count()), (None, 0));
}

proptest! {
    #[test]
    fn any_bytes_are_read_within_their_bounds(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        if let Some(packet) = MediaPacket::parse(&bytes) {
            let len = u32::try_from(bytes.len()).unwrap();
            prop_assert!(packet.payload_len(len) <= len);
        }
        if let Some(compound) = Compound::parse(&bytes) {
            for packet in compound.packets() {
                prop_assert!(packet.blocks.count() <= 31);
            }
        }
    }
}
