//! Driving a stage from memory: frames in batches of any size, without files.

use linkweir_engine::{Batch, FrameRef, Source, SourceError, SourceEvent, Stage};
use linkweir_record::RecordKind;
use linkweir_wire::{LinkType, Timestamp};

use crate::capture_writer::CapturedFrame;

/// Frames in memory as a [`Source`] that gives a fixed number of them at a time.
#[derive(Debug, Clone)]
pub struct MemorySource {
    buffer: Vec<u8>,
    index: Vec<FrameRef>,
    batch_frames: usize,
    at: usize,
}

impl MemorySource {
    /// A source of these frames, `batch_frames` a batch (at least one).
    #[must_use]
    pub fn new(frames: &[CapturedFrame], link: LinkType, batch_frames: usize) -> Self {
        let mut buffer = Vec::new();
        let index = frames
            .iter()
            .map(|frame| {
                let offset = u32::try_from(buffer.len()).unwrap_or(u32::MAX);
                buffer.extend_from_slice(&frame.bytes);
                FrameRef {
                    timestamp: Timestamp::from_nanos(frame.timestamp_ns),
                    offset,
                    captured_len: u32::try_from(frame.bytes.len()).unwrap_or(u32::MAX),
                    wire_len: frame.wire_len,
                    link,
                    interface: frame.interface,
                }
            })
            .collect();
        Self {
            buffer,
            index,
            batch_frames: batch_frames.max(1),
            at: 0,
        }
    }

    /// The next `count` frames at most; empty at the end.
    fn take(&mut self, count: usize) -> Batch<'_> {
        let rest = self.index.get(self.at..).unwrap_or_default();
        let frames = rest.get(..count).unwrap_or(rest);
        self.at += frames.len();
        Batch::new(&self.buffer, frames)
    }
}

impl Source for MemorySource {
    fn next_event(&mut self) -> Result<SourceEvent<'_>, SourceError> {
        let batch = self.take(self.batch_frames);
        Ok(if batch.is_empty() {
            SourceEvent::End
        } else {
            SourceEvent::Batch(batch)
        })
    }
}

/// Pushes all frames through a stage and finishes it; gives its records.
///
/// The sizes of the batches are taken from `sizes` in turn, again and again; zeros count as one,
/// and no size at all is one batch of everything.
pub fn drive<T: Stage>(
    stage: &mut T,
    frames: &[CapturedFrame],
    link: LinkType,
    sizes: &[usize],
) -> <T::Record as RecordKind>::Batch {
    let mut out = <T::Record as RecordKind>::Batch::default();
    let mut source = MemorySource::new(frames, link, 1);
    let mut sizes = sizes.iter().cycle();
    loop {
        let batch = source.take(sizes.next().map_or(usize::MAX, |size| (*size).max(1)));
        if batch.is_empty() {
            break;
        }
        stage.on_batch(&batch, &mut out);
    }
    while !stage.finish(&mut out) {}
    out
}
