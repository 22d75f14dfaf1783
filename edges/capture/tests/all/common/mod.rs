//! What the tests of this crate share.

use std::io::{Read, Write};

use linkweir_capture::{CaptureFiles, FilePiece, ReadOptions};
use linkweir_engine::{Drops, Fault, ReadAhead, Source, SourceEvent};
use linkweir_testkit::capture_writer::{
    ByteOrder, CapturedFrame, PacketBlock, PcapVariant, PcapngInterface, erf, pcap, pcapng, snoop,
};
use linkweir_wire::LinkType;

/// Everything a source gave.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Trace {
    pub(crate) frames: Vec<CapturedFrame>,
    pub(crate) links: Vec<LinkType>,
    pub(crate) faults: Vec<Fault>,
    pub(crate) drops: Drops,
}

impl Trace {
    /// Takes an event; false at the end.
    fn take(&mut self, event: SourceEvent<'_>) -> bool {
        match event {
            SourceEvent::Batch(batch) => {
                assert!(!batch.is_empty(), "a batch has at least one frame");
                for frame in batch.frames() {
                    self.links.push(frame.link);
                    self.frames.push(CapturedFrame {
                        timestamp_ns: frame.timestamp.as_nanos(),
                        interface: frame.interface,
                        bytes: frame.bytes.to_vec(),
                        wire_len: frame.wire_len,
                    });
                }
            }
            SourceEvent::Idle => {}
            SourceEvent::Fault(fault) => self.faults.push(fault),
            SourceEvent::End => return false,
        }
        true
    }
}

pub(crate) fn drain(mut files: CaptureFiles) -> Trace {
    let mut trace = Trace::default();
    while trace.take(files.next_event().unwrap()) {}
    assert!(matches!(files.next_event().unwrap(), SourceEvent::End));
    trace.drops = files.drops();
    trace
}

/// As [`drain`], by a crew that reads ahead as early as it may: each claims and reads before it is asked what came before.
/// `at_turn` is called with the number of each turn.
pub(crate) fn drain_ahead(
    mut files: CaptureFiles,
    crew: usize,
    mut at_turn: impl FnMut(usize),
) -> Trace {
    let mut trace = Trace::default();
    let mut pieces: Vec<_> = (0..crew).map(|_| (FilePiece::default(), false)).collect();
    for turn in 0.. {
        at_turn(turn);
        let (piece, is_claimed) = &mut pieces[turn % crew];
        let is_wanted = *is_claimed && files.supply(piece);
        if is_wanted || !files.is_ahead() {
            loop {
                if !trace.take(files.next_event().unwrap()) {
                    trace.drops = files.drops();
                    return trace;
                }
                if !files.is_supplied() {
                    break;
                }
            }
        }
        *is_claimed = files.claim(piece);
        if *is_claimed {
            CaptureFiles::read(piece);
        }
    }
    unreachable!("the loop has no end");
}

pub(crate) fn with_chunk(chunk_bytes: usize) -> ReadOptions {
    ReadOptions {
        chunk_bytes,
        ..ReadOptions::default()
    }
}

/// Reads a file that is in memory.
pub(crate) fn read(name: &str, bytes: &[u8], options: ReadOptions) -> Trace {
    let stream = std::io::Cursor::new(bytes.to_vec());
    drain(CaptureFiles::from_reader(name, stream, options).unwrap())
}

/// A reader that gives at most `step` bytes at once, as a pipe may.
pub(crate) struct Dribble<R> {
    pub(crate) inner: R,
    pub(crate) step: usize,
}

impl<R: Read> Read for Dribble<R> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let step = self.step.min(buffer.len());
        self.inner.read(&mut buffer[..step])
    }
}

/// Frames of several lengths; microsecond times, so that every format can say them.
pub(crate) fn sample(interfaces: u16) -> Vec<CapturedFrame> {
    (0..7_u16)
        .map(|i| CapturedFrame {
            timestamp_ns: 1_700_000_000_000_000_000 + u64::from(i) * 1_234_567_000,
            interface: i % interfaces,
            bytes: (0..(i * 37) % 101)
                .map(|b| b.to_le_bytes()[0] ^ 0x5a)
                .collect(),
            wire_len: u32::from((i * 37) % 101) + u32::from(i % 3) * 1000,
        })
        .collect()
}

/// What is written, and what must be read.
pub(crate) struct Case {
    pub(crate) name: String,
    pub(crate) file: Vec<u8>,
    pub(crate) frames: Vec<CapturedFrame>,
}

/// One file per format, byte order and resolution.
pub(crate) fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    let plain = sample(1);
    let mut add = |name: String, file, frames: &[CapturedFrame]| {
        cases.push(Case {
            name,
            file,
            frames: frames.to_vec(),
        });
    };
    for order in [ByteOrder::Little, ByteOrder::Big] {
        for (has_nanos, modified) in [(false, false), (true, false), (false, true)] {
            let variant = PcapVariant {
                order,
                has_nanos,
                modified,
                ..PcapVariant::usual(LinkType::ETHERNET)
            };
            add(format!("{variant:?}"), pcap(&plain, variant), &plain);
        }
        for (resolution, offset) in [
            (None, None),
            (Some(9), None),
            (Some(6), Some(-3600)),
            (Some(12), Some(1_690_000_000)),
            (Some(0x80 | 33), None),
        ] {
            for packing in [PacketBlock::Enhanced, PacketBlock::Obsolete] {
                let interfaces = [
                    PcapngInterface::usual(LinkType::ETHERNET),
                    PcapngInterface {
                        resolution,
                        offset_seconds: offset,
                        ..PcapngInterface::usual(LinkType::ETHERNET)
                    },
                ];
                let frames = sample(2);
                add(
                    format!("pcapng {order:?} {resolution:?} {offset:?} {packing:?}"),
                    pcapng(&frames, order, &interfaces, packing),
                    &frames,
                );
            }
        }
        let untimed: Vec<_> = plain
            .iter()
            .map(|frame| CapturedFrame {
                timestamp_ns: 0,
                wire_len: frame.bytes.len() as u32,
                ..frame.clone()
            })
            .collect();
        let interface = PcapngInterface::usual(LinkType::ETHERNET);
        add(
            format!("pcapng {order:?} simple"),
            pcapng(&untimed, order, &[interface], PacketBlock::Simple),
            &untimed,
        );
    }
    let mut sections = pcapng(
        &plain,
        ByteOrder::Big,
        &[PcapngInterface::usual(LinkType::ETHERNET)],
        PacketBlock::Enhanced,
    );
    sections.extend(pcapng(
        &plain,
        ByteOrder::Little,
        &[PcapngInterface {
            resolution: Some(9),
            ..PcapngInterface::usual(LinkType::ETHERNET)
        }],
        PacketBlock::Enhanced,
    ));
    add(
        "pcapng, two sections".to_owned(),
        sections,
        &[plain.clone(), plain.clone()].concat(),
    );
    // A cut frame comes back with the padding of its record: only the wire length ends a frame.
    let whole: Vec<_> = plain
        .iter()
        .map(|frame| CapturedFrame {
            wire_len: frame.bytes.len() as u32,
            ..frame.clone()
        })
        .collect();
    add("erf".to_owned(), erf(&whole, LinkType::ETHERNET), &whole);
    add("snoop".to_owned(), snoop(&plain), &plain);
    cases
}

pub(crate) const COMPRESSIONS: [&str; 4] = ["gzip", "zstd", "xz", "lz4"];

/// Compresses as one member or frame.
pub(crate) fn compress(how: &str, data: &[u8]) -> Vec<u8> {
    match how {
        "gzip" => {
            let mut encoder =
                flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
            encoder.write_all(data).unwrap();
            encoder.finish().unwrap()
        }
        "zstd" => {
            let mut encoder = zstd::Encoder::new(Vec::new(), 1).unwrap();
            encoder.include_checksum(true).unwrap();
            encoder.write_all(data).unwrap();
            encoder.finish().unwrap()
        }
        "xz" => {
            let mut writer =
                lzma_rust2::XzWriter::new(Vec::new(), lzma_rust2::XzOptions::with_preset(1))
                    .unwrap();
            writer.write_all(data).unwrap();
            writer.finish().unwrap()
        }
        "lz4" => {
            let info = lz4_flex::frame::FrameInfo::new()
                .block_checksums(true)
                .content_checksum(true)
                .block_size(lz4_flex::frame::BlockSize::Max64KB)
                .block_mode(lz4_flex::frame::BlockMode::Linked);
            let mut encoder = lz4_flex::frame::FrameEncoder::with_frame_info(info, Vec::new());
            encoder.write_all(data).unwrap();
            encoder.finish().unwrap()
        }
        other => panic!("no compression `{other}`"),
    }
}
