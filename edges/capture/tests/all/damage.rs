//! Damaged files: what was readable is given, then one fault with the right offset.

use crate::common::{COMPRESSIONS, Case, cases, compress, read, sample, with_chunk};
use linkweir_capture::ReadOptions;
use linkweir_engine::{Fault, FaultKind};
use linkweir_testkit::capture_writer::{
    ByteOrder, CapturedFrame, PacketBlock, PcapVariant, PcapngInterface, pcap, pcapng, pcapng_block,
};
use linkweir_wire::LinkType;
use proptest::prelude::*;

/// Start of each record or block, and whether it is a packet; then the length of the file.
fn units(case: &Case) -> (Vec<(usize, bool)>, usize) {
    let file = &case.file;
    let be = |at: usize| u32::from_be_bytes(file[at..at + 4].try_into().unwrap());
    let le = |at: usize| u32::from_le_bytes(file[at..at + 4].try_into().unwrap());
    let mut units = Vec::new();
    let mut at = match &case.name {
        name if name.starts_with("pcapng") || name == "erf" => 0,
        name if name == "snoop" => 16,
        _ => 24,
    };
    let mut is_big = false;
    while at < file.len() {
        let (length, is_packet) = match &case.name {
            name if name.starts_with("pcapng") => {
                if le(at) == 0x0a0d_0d0a {
                    is_big = file[at + 8] == 0x1a;
                }
                let (kind, length) = if is_big {
                    (be(at), be(at + 4))
                } else {
                    (le(at), le(at + 4))
                };
                (length as usize, matches!(kind, 2 | 3 | 6))
            }
            name if name == "erf" => (
                usize::from(file[at + 10]) << 8 | usize::from(file[at + 11]),
                true,
            ),
            name if name == "snoop" => (be(at + 8) as usize, true),
            name => {
                let header = if name.contains("modified: true") {
                    24
                } else {
                    16
                };
                let captured = if name.contains("Big") {
                    be(at + 8)
                } else {
                    le(at + 8)
                };
                (header + captured as usize, true)
            }
        };
        units.push((at, is_packet));
        at += length;
    }
    (units, file.len())
}

#[test]
fn every_truncation_gives_what_is_whole_and_one_fault() {
    for case in cases() {
        let (units, length) = units(&case);
        let header = units[0].0.max(if case.name.starts_with("pcapng") {
            12
        } else {
            16
        });
        let ends: Vec<usize> = units
            .iter()
            .skip(1)
            .map(|unit| unit.0)
            .chain([length])
            .collect();
        for cut in 0..=length {
            for chunk in [13, 1 << 18] {
                let name = format!("{} cut at {cut}, chunk {chunk}", case.name);
                let trace = read("cut.erf", &case.file[..cut], with_chunk(chunk));
                let whole = units
                    .iter()
                    .zip(&ends)
                    .filter(|((_, is_packet), end)| *is_packet && **end <= cut)
                    .count();
                assert_eq!(trace.frames, case.frames[..whole], "{name}");
                if cut < header {
                    assert_eq!(trace.faults.len(), 1, "{name}");
                    assert_eq!(trace.faults[0].kind, FaultKind::Unusable, "{name}");
                } else if cut == units[0].0 || ends.contains(&cut) {
                    assert_eq!(trace.faults, [], "{name}");
                } else {
                    let start = units.iter().rfind(|unit| unit.0 < cut).unwrap().0;
                    assert_eq!(trace.faults.len(), 1, "{name}");
                    assert_eq!(trace.faults[0].kind, FaultKind::Damaged, "{name}");
                    assert_eq!(trace.faults[0].offset, Some(start as u64), "{name}");
                    assert!(trace.faults[0].message.contains("cut"), "{name}");
                }
            }
        }
    }
}

#[test]
fn compressed_files_that_end_early_say_so() {
    let case = cases().swap_remove(0);
    for how in COMPRESSIONS {
        let file = compress(how, &case.file);
        for cut in 6..file.len() {
            let trace = read("test", &file[..cut], ReadOptions::default());
            assert_eq!(
                trace.faults.len(),
                1,
                "{how} cut at {cut}: {:?}",
                trace.faults
            );
            let message = &trace.faults[0].message;
            assert!(message.contains(how), "{how} cut at {cut}: {message}");
            assert!(
                message.contains("ends early"),
                "{how} cut at {cut}: {message}"
            );
            assert!(case.frames.starts_with(&trace.frames));
        }
    }
}

#[test]
fn what_was_decompressed_before_the_damage_is_given() {
    let mut state = 1_u32;
    let frames: Vec<_> = (0..4000_u32)
        .map(|i| CapturedFrame {
            timestamp_ns: u64::from(i) * 1000,
            interface: 0,
            bytes: (0..300_u32)
                .flat_map(|_| {
                    state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                    [state.to_be_bytes()[0], b'x', b'y', b'z']
                })
                .collect(),
            wire_len: 1200,
        })
        .collect();
    let file = pcap(&frames, PcapVariant::usual(LinkType::ETHERNET));
    for how in COMPRESSIONS {
        let compressed = compress(how, &file);
        let at = compressed.len() / 10 * 7;
        let mut flipped = compressed.clone();
        flipped[at..at + 64].fill(0x77);
        for bad in [&compressed[..at], &flipped] {
            let trace = read("bad", bad, ReadOptions::default());
            assert_eq!(trace, read("bad", bad, with_chunk(1000)), "{how}");
            assert_eq!(trace.faults.len(), 1, "{how}");
            let whole = trace
                .frames
                .iter()
                .zip(&frames)
                .take_while(|(a, b)| a == b)
                .count();
            // All but the block that is damaged, which here has 64 KiB at most.
            assert!(whole > 2600, "{how}: {whole} {:?}", trace.faults);
        }
    }
}

#[test]
fn damaged_compression_is_found() {
    let case = cases().swap_remove(0);
    for how in COMPRESSIONS {
        let file = compress(how, &case.file);
        let mut found = 0;
        for at in 6..file.len() {
            let mut bad = file.clone();
            bad[at] ^= 0x10;
            let trace = read("test", &bad, ReadOptions::default());
            assert!(trace.faults.len() <= 1, "{how} at {at}");
            found += trace.faults.len();
        }
        // A few header bits are without meaning (time stamps, names, reserved sizes).
        assert!(
            found * 10 >= (file.len() - 6) * 8,
            "{how}: {found} of {}",
            file.len() - 6
        );
    }
}

fn only_fault(bytes: &[u8]) -> Fault {
    let one = read("bad", bytes, with_chunk(7));
    let mut other = read("bad", bytes, ReadOptions::default());
    assert_eq!(one, other, "chunk size matters");
    assert_eq!(other.faults.len(), 1);
    other.faults.swap_remove(0)
}

#[test]
fn what_is_no_capture_is_unusable() {
    for (bytes, said) in [
        (&b""[..], "empty"),
        (b"abc", "only 3 bytes"),
        (b"this is a text file, not a capture", "74 68 69 73"),
        (&[0; 4096], "00 00 00 00"),
        (
            &[0xd4, 0xc3, 0xb2, 0xa1, 2, 0, 4, 0],
            "file header cut: 8 of 24",
        ),
        (b"snoop\0\0\0\0\0\0\x03\0\0\0\x04", "version 3"),
        (
            &[0x0a, 0x0d, 0x0d, 0x0a, 28, 0, 0, 0, 1, 2, 3, 4],
            "byte-order magic",
        ),
    ] {
        let fault = only_fault(bytes);
        assert_eq!(fault.kind, FaultKind::Unusable);
        assert_eq!(fault.input, "bad");
        assert!(fault.message.contains(said), "{}", fault.message);
    }
    let fault = only_fault(&compress("gzip", b""));
    assert!(fault.message.contains("empty"), "{}", fault.message);
}

#[test]
fn absurd_record_lengths_are_named() {
    let frames = sample(1);
    let variant = PcapVariant::usual(LinkType::ETHERNET);
    let good = pcap(&frames, variant);
    let mut file = good.clone();
    for word in [1, 2, 0x7fff_0000, 0x7fff_0000_u32] {
        file.extend(word.to_le_bytes());
    }
    file.extend(vec![0; 100_000]);
    let fault = only_fault(&file);
    assert_eq!(fault.kind, FaultKind::Damaged);
    assert_eq!(fault.offset, Some(good.len() as u64));
    assert!(fault.message.contains("2147418112"), "{}", fault.message);
    assert_eq!(read("bad", &file, ReadOptions::default()).frames, frames);
}

#[test]
fn frames_longer_than_held_are_counted_where_the_header_announces_them() {
    let mut frames = sample(1);
    let big = frames[3].clone();
    frames[3].bytes = vec![9; 400_000];
    frames[3].wire_len = 400_000;
    let variant = PcapVariant {
        snaplen: 1 << 20,
        ..PcapVariant::usual(LinkType::ETHERNET)
    };
    let trace = read("test", &pcap(&frames, variant), with_chunk(1000));
    assert_eq!(trace.faults, []);
    assert_eq!(trace.drops.unusable_records, 1);
    frames[3] = big;
    frames.remove(3);
    assert_eq!(trace.frames, frames);
}

#[test]
fn corrupt_pcapng_blocks_are_named() {
    let order = ByteOrder::Little;
    let frames = sample(1);
    let interface = PcapngInterface::usual(LinkType::ETHERNET);
    let good = pcapng(&frames, order, &[interface], PacketBlock::Enhanced);
    let packet = {
        let mut body = Vec::new();
        for word in [0_u32, 0, 0, 60, 60] {
            body.extend(word.to_le_bytes());
        }
        body.resize(20 + 60, 0);
        pcapng_block(order, 6, &body)
    };
    let word = |block: &[u8], at: usize, value: u32| {
        let mut block = block.to_vec();
        block[at..at + 4].copy_from_slice(&value.to_le_bytes());
        block
    };
    let end = packet.len() - 4;
    let other = pcapng_block(order, 5, &[0; 40]);
    let description = pcapng_block(
        order,
        1,
        &[1, 0, 0, 0, 0, 0, 0, 0, 2, 0, 200, 0, 1, 2, 3, 4],
    );
    for (block, said) in [
        (word(&packet, 4, 93), "multiple of 4"),
        (word(&packet, 4, 8), "12 is the least"),
        (word(&packet, 4, 0x7fff_fff0), "is the most"),
        (word(&packet, end, 96), "92 in front and 96 behind"),
        (word(&packet, 20, 61), "61 captured bytes"),
        (word(&packet, 20, 0xffff_ffff), "4294967295 captured bytes"),
        (word(&other, 48, 7), "52 in front and 7 behind"),
        (pcapng_block(order, 6, &[0; 8]), "too short"),
        (pcapng_block(order, 2, &[0; 8]), "too short"),
        (pcapng_block(order, 3, &[]), "too short"),
        (pcapng_block(order, 1, &[0; 4]), "too short"),
        (
            pcapng_block(order, 0x0a0d_0d0a, &[0; 16]),
            "byte-order magic",
        ),
        (description, "option of 200 bytes"),
    ] {
        let file = [&good[..], &block, &good].concat();
        let fault = only_fault(&file);
        assert_eq!(fault.kind, FaultKind::Damaged);
        assert!(fault.message.contains(said), "{said}: {}", fault.message);
        assert_eq!(fault.offset, Some(good.len() as u64), "{said}");
        assert_eq!(
            read("bad", &file, ReadOptions::default()).frames,
            frames,
            "{said}"
        );
    }
}

#[test]
fn packets_of_no_known_interface_are_counted() {
    let order = ByteOrder::Big;
    let interface = PcapngInterface::usual(LinkType::ETHERNET);
    let frames = sample(2);
    let file = pcapng(&frames, order, &[interface], PacketBlock::Enhanced);
    let trace = read("test", &file, ReadOptions::default());
    assert_eq!(trace.faults, []);
    assert_eq!(trace.drops.unusable_records, 3);
    assert_eq!(trace.frames.len(), 4);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn arbitrary_bytes_end(
        head in 0_usize..10,
        tail in proptest::collection::vec(any::<u8>(), 0..2000),
        chunk in 1_usize..3000,
    ) {
        let heads: [&[u8]; 10] = [
            b"",
            &[0xd4, 0xc3, 0xb2, 0xa1],
            &[0xa1, 0xb2, 0xcd, 0x34],
            &[0x0a, 0x0d, 0x0d, 0x0a, 28, 0, 0, 0, 0x4d, 0x3c, 0x2b, 0x1a, 1, 0, 0, 0, 255, 255, 255,
              255, 255, 255, 255, 255, 28, 0, 0, 0],
            b"snoop\0\0\0\0\0\0\x02\0\0\0\x04",
            &[0x1f, 0x8b, 8, 0],
            &[0x28, 0xb5, 0x2f, 0xfd],
            &[0xfd, b'7', b'z', b'X', b'Z', 0, 0, 4, 0xe6, 0xd6, 0xb4, 0x46],
            &[0x04, 0x22, 0x4d, 0x18, 0x60, 0x40, 0x82],
            &[0x50, 0x2a, 0x4d, 0x18, 0, 0, 0, 0],
        ];
        let file = [heads[head], &tail].concat();
        let trace = read("any.erf", &file, with_chunk(chunk));
        prop_assert!(trace.faults.len() <= 1);
        prop_assert_eq!(trace, read("any.erf", &file, ReadOptions::default()));
    }

    #[test]
    fn flipped_bytes_never_depend_on_the_chunk(
        which in 0_usize..40,
        flips in proptest::collection::vec((any::<proptest::sample::Index>(), any::<u8>()), 1..6),
        chunk in 1_usize..3000,
    ) {
        let cases = cases();
        let mut file = cases[which % cases.len()].file.clone();
        for (at, value) in flips {
            let at = at.index(file.len());
            file[at] = value;
        }
        let trace = read("flip.erf", &file, with_chunk(chunk));
        prop_assert!(trace.faults.len() <= 1);
        prop_assert_eq!(trace, read("flip.erf", &file, ReadOptions::default()));
    }
}
