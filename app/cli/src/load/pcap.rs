//! A capture of everything that is sent and received, written beside the run.

use anyhow::Context as _;
use linkweir_sink::Document;
use linkweir_wire::Timestamp;

use crate::chunks::{CHUNK_BYTES, Chunks};

/// Writes frames to a pcap file with nanoseconds (magic 0xa1b23c4d, Ethernet) on a thread of its own.
///
/// The schedule never waits for the disk: where it does not keep up, frames are left out and counted.
#[derive(Debug)]
pub(super) struct Pcap {
    chunk: Vec<u8>,
    frames_in_chunk: u64,
    out: Chunks,
}

impl Pcap {
    /// Begins a capture in `file`, which was opened to be written in pieces.
    pub(super) fn begin(file: Document) -> anyhow::Result<Self> {
        let mut header = Vec::with_capacity(CHUNK_BYTES);
        header.extend_from_slice(&0xa1b2_3c4d_u32.to_le_bytes());
        header.extend_from_slice(&2_u16.to_le_bytes());
        header.extend_from_slice(&4_u16.to_le_bytes());
        header.extend_from_slice(&[0; 8]);
        header.extend_from_slice(&(256_u32 << 10).to_le_bytes());
        header.extend_from_slice(&1_u32.to_le_bytes());
        Ok(Self {
            chunk: header,
            frames_in_chunk: 0,
            out: Chunks::begin(file, false)?,
        })
    }

    pub(super) fn frame(&mut self, at: Timestamp, bytes: &[u8]) {
        let nanos = at.as_nanos();
        let word = |value: u64| u32::try_from(value).unwrap_or(u32::MAX).to_le_bytes();
        let length = u32::try_from(bytes.len()).unwrap_or(u32::MAX).to_le_bytes();
        self.chunk.extend_from_slice(&word(nanos / 1_000_000_000));
        self.chunk.extend_from_slice(&word(nanos % 1_000_000_000));
        self.chunk.extend_from_slice(&length);
        self.chunk.extend_from_slice(&length);
        self.chunk.extend_from_slice(bytes);
        self.frames_in_chunk += 1;
        if self.chunk.len() >= CHUNK_BYTES {
            let chunk = std::mem::replace(&mut self.chunk, Vec::with_capacity(CHUNK_BYTES));
            self.out
                .push(chunk, std::mem::take(&mut self.frames_in_chunk));
        }
    }

    /// Writes what is left; how many frames are missing.
    pub(super) fn finish(self) -> anyhow::Result<u64> {
        let (lost, written) = self.out.finish(self.chunk, self.frames_in_chunk);
        written.context("--pcap")?;
        Ok(lost)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use linkweir_capture::{CaptureFiles, Input, ReadOptions};
    use linkweir_engine::{Source as _, SourceEvent};
    use linkweir_sink::Existing;

    #[test]
    fn frames_are_read_back() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("x.pcap");
        let file = Document::open_in_pieces(path.to_str().unwrap(), Existing::Keep, |_| {});
        let mut pcap = Pcap::begin(file.unwrap()).unwrap();
        let frames: Vec<Vec<u8>> = (0..3000_u32).map(|n| n.to_be_bytes().repeat(40)).collect();
        for (frame, at) in frames.iter().zip(1_700_000_000_000_000_001..) {
            pcap.frame(Timestamp::from_nanos(at), frame);
        }
        assert_eq!(pcap.finish().unwrap(), 0);
        let mut source = CaptureFiles::open(&[Input::Path(path)], ReadOptions::default()).unwrap();
        let mut read = Vec::new();
        loop {
            match source.next_event().unwrap() {
                SourceEvent::Batch(batch) => {
                    read.extend(
                        batch
                            .frames()
                            .map(|frame| (frame.timestamp, frame.bytes.to_vec())),
                    );
                }
                SourceEvent::Fault(fault) => panic!("{fault:?}"),
                SourceEvent::Idle => {}
                SourceEvent::End => break,
            }
        }
        assert_eq!(read.len(), frames.len());
        assert_eq!(read[2999].0.as_nanos(), 1_700_000_000_000_003_000);
        assert!(
            read.iter()
                .zip(&frames)
                .all(|((_, have), want)| have == want)
        );
    }
}
