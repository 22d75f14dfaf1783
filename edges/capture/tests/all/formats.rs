//! Every format, byte order, resolution and compression gives the same frames, however it is read.

use std::io::Cursor;

use crate::common::{
    COMPRESSIONS, Dribble, Trace, cases, compress, drain, read, sample, with_chunk,
};
use linkweir_capture::{CaptureFiles, ReadOptions};
use linkweir_testkit::capture_writer::{
    ByteOrder, CapturedFrame, PacketBlock, PcapVariant, PcapngInterface, erf, pcap, pcapng,
    pcapng_block,
};
use linkweir_wire::LinkType;
use proptest::prelude::*;

fn assert_clean(trace: &Trace, frames: &[CapturedFrame], name: &str) {
    assert_eq!(trace.faults, [], "{name}");
    assert_eq!(trace.frames, frames, "{name}");
    assert_eq!(trace.drops.unusable_records, 0, "{name}");
}

#[test]
fn all_formats_give_what_was_written() {
    for case in cases() {
        let trace = read("test", &case.file, ReadOptions::default());
        assert_clean(&trace, &case.frames, &case.name);
        assert!(trace.links.iter().all(|link| *link == LinkType::ETHERNET));
    }
}

#[test]
fn compression_changes_nothing() {
    for case in cases() {
        for how in COMPRESSIONS {
            let name = format!("{} {how}", case.name);
            let file = compress(how, &case.file);
            assert_clean(&read("test", &file, with_chunk(64)), &case.frames, &name);
        }
    }
}

#[test]
fn members_follow_each_other() {
    let case = cases().swap_remove(0);
    for how in COMPRESSIONS {
        for at in [0, 1, 24, 100, case.file.len()] {
            let (first, second) = case.file.split_at(at);
            let file = [compress(how, first), compress(how, second)].concat();
            assert_clean(&read("test", &file, with_chunk(4096)), &case.frames, how);
        }
    }
}

#[test]
fn skippable_frames_are_skipped() {
    let case = cases().swap_remove(0);
    let skippable = [&[0x53, 0x2a, 0x4d, 0x18, 5, 0, 0, 0][..], b"12345"].concat();
    for how in ["zstd", "lz4"] {
        let (first, second) = case.file.split_at(70);
        let file = [
            skippable.clone(),
            compress(how, first),
            skippable.clone(),
            compress(how, second),
            skippable.clone(),
        ]
        .concat();
        assert_clean(&read("test", &file, with_chunk(4096)), &case.frames, how);
    }
}

#[test]
fn long_streams_decompress() {
    // More than every window and block, so that references reach across blocks.
    let mut state = 1_u32;
    let frames: Vec<_> = (0..4000_u32)
        .map(|i| CapturedFrame {
            timestamp_ns: 1_700_000_000_000_000_000 + u64::from(i) * 1000,
            interface: 0,
            bytes: (0..1200_u32)
                .map(|b| {
                    state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                    if b % 8 == 0 {
                        state.to_be_bytes()[0]
                    } else {
                        b.to_le_bytes()[0]
                    }
                })
                .collect::<Vec<u8>>(),
            wire_len: 1200,
        })
        .collect();
    let file = pcap(&frames, PcapVariant::usual(LinkType::ETHERNET));
    for how in COMPRESSIONS {
        let trace = read("test", &compress(how, &file), ReadOptions::default());
        assert!(trace.faults.is_empty() && trace.frames == frames, "{how}");
    }
}

#[test]
fn interfaces_keep_their_link_types() {
    let frames = sample(3);
    let interfaces =
        [LinkType::ETHERNET, LinkType::RAW, LinkType::LINUX_SLL2].map(PcapngInterface::usual);
    let file = pcapng(
        &frames,
        ByteOrder::Little,
        &interfaces,
        PacketBlock::Enhanced,
    );
    let trace = read("test", &file, ReadOptions::default());
    assert_clean(&trace, &frames, "pcapng");
    for (frame, link) in frames.iter().zip(trace.links) {
        assert_eq!(link, interfaces[usize::from(frame.interface)].link);
    }
}

#[test]
fn upper_bits_of_the_link_type_are_no_link_type() {
    let variant = PcapVariant {
        // Frame check sequence of 4 bytes, flag set.
        network: 0x4400_0071,
        ..PcapVariant::usual(LinkType::ETHERNET)
    };
    let trace = read("test", &pcap(&sample(1), variant), ReadOptions::default());
    assert!(trace.links.iter().all(|link| *link == LinkType::LINUX_SLL));
}

#[test]
fn erf_types_have_their_link_types() {
    let mut frames = sample(1);
    frames.retain(|frame| !frame.bytes.is_empty());
    for frame in &mut frames {
        frame.bytes[0] = 0xff;
        frame.wire_len = frame.bytes.len() as u32;
    }
    for link in [
        LinkType::IPV4,
        LinkType::IPV6,
        LinkType::PPP_HDLC,
        LinkType::ETHERNET,
    ] {
        let trace = read("test", &erf(&frames, link), ReadOptions::default());
        assert_clean(&trace, &frames, "erf");
        assert!(trace.links.iter().all(|found| *found == link));
    }
}

#[test]
fn erf_extension_headers_are_skipped_and_other_types_counted() {
    let mut frames = sample(1);
    for frame in &mut frames {
        frame.wire_len = frame.bytes.len() as u32;
    }
    let mut file = erf(&frames[..1], LinkType::ETHERNET);
    let record = erf(&frames[1..2], LinkType::ETHERNET);
    let mut extended = record[..16].to_vec();
    extended[8] |= 0x80;
    extended[10..12].copy_from_slice(&(record.len() as u16 + 16).to_be_bytes());
    extended.extend([0x83, 0, 0, 0, 0, 0, 0, 0, 0x03, 0, 0, 0, 0, 0, 0, 0]);
    extended.extend(&record[16..]);
    file.extend(extended);
    let mut atm = record.clone();
    atm[8] = 3;
    file.extend(&atm);
    atm[8] = 27;
    file.extend(atm);
    let trace = read("test", &file, ReadOptions::default());
    assert_eq!(trace.faults, []);
    assert_eq!(trace.frames, frames[..2]);
    assert_eq!(
        trace.drops.unusable_records, 1,
        "ATM is counted, metadata is not"
    );
}

#[test]
fn unknown_and_huge_blocks_are_stepped_over() {
    let frames = sample(1);
    let order = ByteOrder::Little;
    let one = |frames: &[CapturedFrame]| {
        let interface = PcapngInterface::usual(LinkType::ETHERNET);
        pcapng(frames, order, &[interface], PacketBlock::Enhanced)
    };
    let head = one(&[]);
    let (head, statistics) = head.split_at(head.len() - 24);
    let packets = one(&frames);
    let packets = &packets[head.len()..];
    let huge = pcapng_block(order, 0x0bad, &vec![7; 3 << 20]);
    let file = [head, &huge, packets, &huge, statistics].concat();
    for chunk in [100, 4096, 1 << 20] {
        assert_clean(&read("test", &file, with_chunk(chunk)), &frames, "huge");
    }
}

#[test]
fn long_options_behind_a_frame_are_not_held() {
    let order = ByteOrder::Big;
    let frame = sample(1).swap_remove(5);
    let mut body = Vec::new();
    for word in [0, 0, 77, frame.bytes.len() as u32, frame.wire_len] {
        body.extend(word.to_be_bytes());
    }
    body.extend(&frame.bytes);
    body.resize(body.len().next_multiple_of(4), 0);
    for _ in 0..20 {
        body.extend([0, 1, 0xff, 0xfc]);
        body.extend(vec![b'x'; 0xfffc]);
    }
    let interface = PcapngInterface::usual(LinkType::ETHERNET);
    let mut file = pcapng(&[], order, &[interface], PacketBlock::Enhanced);
    file.extend(pcapng_block(order, 6, &body));
    file.extend(pcapng_block(order, 6, &body));
    for chunk in [999, 1 << 18, 1 << 22] {
        let trace = read("test", &file, with_chunk(chunk));
        assert_eq!(trace.faults, []);
        assert_eq!(trace.frames.len(), 2);
        assert!(trace.frames.iter().all(|found| found.bytes == frame.bytes));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn any_chunk_size_gives_the_same_frames(chunk in 1_usize..600, step in 1_usize..600) {
        for case in cases() {
            let trace = read("test", &case.file, with_chunk(chunk));
            prop_assert_eq!(&trace.frames, &case.frames, "{}", &case.name);
            prop_assert_eq!(&trace.faults, &[]);
            let stream = Dribble { inner: Cursor::new(case.file), step };
            let files = CaptureFiles::from_reader("test", stream, with_chunk(chunk)).unwrap();
            prop_assert_eq!(drain(files).frames, case.frames, "{}", &case.name);
        }
    }

    #[test]
    fn any_frames_survive(
        lengths in proptest::collection::vec((0_usize..3000, 0_u32..3000, any::<u32>()), 0..40),
        chunk in 1_usize..5000,
    ) {
        let frames: Vec<_> = lengths.iter().map(|&(captured, cut, micros)| CapturedFrame {
            timestamp_ns: u64::from(micros) * 1_000_000,
            interface: 0,
            bytes: vec![7; captured],
            wire_len: captured as u32 + cut,
        }).collect();
        let interface = PcapngInterface::usual(LinkType::ETHERNET);
        for file in [
            pcap(&frames, PcapVariant::usual(LinkType::ETHERNET)),
            pcapng(&frames, ByteOrder::Big, &[interface], PacketBlock::Obsolete),
        ] {
            let trace = read("test", &file, with_chunk(chunk));
            prop_assert_eq!(&trace.frames, &frames);
            prop_assert_eq!(&trace.faults, &[]);
        }
    }
}
