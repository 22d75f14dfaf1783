//! Readers of captures on arbitrary files.

use linkweir_capture::{CaptureFiles, ReadOptions};
use linkweir_engine::{Drops, Fault, Source, SourceEvent};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::Cursor;

/// Reads a file with one chunk size and with the default one; both must tell the same.
pub(crate) fn compare(file: Vec<u8>, chunk_bytes: usize) {
    let small = ReadOptions {
        chunk_bytes,
        ..ReadOptions::default()
    };
    let one = run(file.clone(), small);
    let other = run(file, ReadOptions::default());
    assert_eq!(one, other, "the chunk size changed what was read");
    assert!(one.1.len() <= 1, "one file, one fault");
}

/// A hash of all frames, the faults and the losses.
fn run(file: Vec<u8>, options: ReadOptions) -> (u64, Vec<Fault>, Drops) {
    let mut hasher = DefaultHasher::new();
    let mut faults = Vec::new();
    // Small inputs may be bombs: enough has been seen of one that gives this much.
    let mut left = 64_u64 << 20;
    let mut source = CaptureFiles::from_reader("fuzz.erf", Cursor::new(file), options).unwrap();
    loop {
        match source.next_event().unwrap() {
            SourceEvent::Batch(batch) => {
                assert!(!batch.is_empty());
                for (frame, index) in batch.frames().zip(batch.index()) {
                    assert_eq!(frame.bytes.len(), index.captured_len as usize);
                    assert!(frame.wire_len >= index.captured_len);
                    frame.bytes.hash(&mut hasher);
                    frame.timestamp.hash(&mut hasher);
                    (frame.wire_len, frame.link, frame.interface).hash(&mut hasher);
                    left = left.saturating_sub(u64::from(index.captured_len) + 16);
                    if left == 0 {
                        return (hasher.finish(), faults, Drops::default());
                    }
                }
            }
            SourceEvent::Idle => {}
            SourceEvent::Fault(fault) => faults.push(fault),
            SourceEvent::End => return (hasher.finish(), faults, source.drops()),
        }
    }
}

/// Reads arbitrary bytes as a capture of any format and compression, in chunks of any size.
///
/// Input: two bytes that give the chunk size (big endian), then the file. Whatever the chunk size,
/// the frames, the fault and the counters must be the same, and no frame may leave the buffer.
pub(crate) fn pcap(data: &[u8]) {
    let Some((&[high, low], file)) = data.split_first_chunk::<2>() else {
        return;
    };
    let chunk = usize::from(u16::from_be_bytes([high, low])) + 1;
    compare(file.to_vec(), chunk);
}

const LITTLE: &[u8] = &[
    0x0a, 0x0d, 0x0d, 0x0a, 28, 0, 0, 0, 0x4d, 0x3c, 0x2b, 0x1a, 1, 0, 0, 0, 255, 255, 255, 255,
    255, 255, 255, 255, 28, 0, 0, 0, // section header
    1, 0, 0, 0, 20, 0, 0, 0, 1, 0, 0, 0, 0, 0, 4, 0, 20, 0, 0, 0, // interface
];
const BIG: &[u8] = &[
    0x0a, 0x0d, 0x0d, 0x0a, 0, 0, 0, 28, 0x1a, 0x2b, 0x3c, 0x4d, 0, 1, 0, 0, 255, 255, 255, 255,
    255, 255, 255, 255, 0, 0, 0, 28, // section header
    0, 0, 0, 1, 0, 0, 0, 20, 0, 1, 0, 0, 0, 4, 0, 0, 0, 0, 0, 20, // interface
];

/// Reads arbitrary blocks behind a sound pcapng section header, in chunks of any size.
///
/// Input: two bytes that give the chunk size (big endian), whose lowest bit also gives the byte
/// order; then the blocks behind the section header and one interface description.
pub(crate) fn pcapng(data: &[u8]) {
    let Some((&[high, low], blocks)) = data.split_first_chunk::<2>() else {
        return;
    };
    let chunk = usize::from(u16::from_be_bytes([high, low])) + 1;
    let head = if low & 1 == 0 { LITTLE } else { BIG };
    compare([head, blocks].concat(), chunk);
}
