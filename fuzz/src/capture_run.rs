//! What the targets that read captures share.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::Cursor;

use linkweir_capture::{CaptureFiles, ReadOptions};
use linkweir_engine::{Drops, Fault, Source, SourceEvent};

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
