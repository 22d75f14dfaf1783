//! A batch: frames that borrow from one read buffer or ring block; nothing is copied per packet.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use linkweir_wire::{LinkType, Timestamp};

/// Where one frame stands in the buffer of its batch, and what the capture says of it.
///
/// Shape: 24 bytes, so that a batch of 512 KiB of full frames indexes within 9 KiB.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FrameRef {
    /// Capture time of the frame.
    pub timestamp: Timestamp,
    /// Offset of the first byte in the batch's buffer.
    pub offset: u32,
    /// Bytes present (`caplen`).
    pub captured_len: u32,
    /// Bytes the frame had on the wire; at least what was captured.
    pub wire_len: u32,
    /// What the first byte of the frame is.
    pub link: LinkType,
    /// Interface of the capture it came from (pcapng interface id; 0 elsewhere).
    pub interface: u16,
}

/// One frame as a stage sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Frame<'a> {
    /// Capture time of the frame.
    pub timestamp: Timestamp,
    /// The captured bytes.
    pub bytes: &'a [u8],
    /// Bytes the frame had on the wire.
    pub wire_len: u32,
    /// What the first byte of the frame is.
    pub link: LinkType,
    /// Interface of the capture it came from.
    pub interface: u16,
}

/// Frames in capture order over one buffer.
#[derive(Debug, Clone, Copy)]
pub struct Batch<'a> {
    buffer: &'a [u8],
    frames: &'a [FrameRef],
}

impl<'a> Batch<'a> {
    /// A batch over `buffer`. A reference that points outside the buffer yields an empty frame.
    #[must_use]
    pub const fn new(buffer: &'a [u8], frames: &'a [FrameRef]) -> Self {
        Self { buffer, frames }
    }

    /// Number of frames.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.frames.len()
    }

    /// Whether the batch has no frame.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.frames.is_empty()
    }

    /// The index of the frames.
    #[must_use]
    pub const fn index(&self) -> &'a [FrameRef] {
        self.frames
    }

    /// The frames in capture order.
    #[inline]
    pub fn frames(&self) -> impl ExactSizeIterator<Item = Frame<'a>> + use<'a> {
        let buffer = self.buffer;
        self.frames.iter().map(move |f| {
            let start = f.offset as usize;
            let end = start.saturating_add(f.captured_len as usize);
            Frame {
                timestamp: f.timestamp,
                bytes: buffer.get(start..end).unwrap_or_default(),
                wire_len: f.wire_len,
                link: f.link,
                interface: f.interface,
            }
        })
    }

    /// The first `count` frames.
    #[must_use]
    pub fn first(&self, count: usize) -> Self {
        Self {
            buffer: self.buffer,
            frames: self.frames.get(..count).unwrap_or(self.frames),
        }
    }

    /// The first `count` frames, and the others; all and none where there are no more.
    #[must_use]
    pub fn split_at(&self, count: usize) -> (Self, Self) {
        let (first, rest) = self
            .frames
            .split_at_checked(count)
            .unwrap_or((self.frames, &[]));
        let of = |frames| Self {
            buffer: self.buffer,
            frames,
        };
        (of(first), of(rest))
    }
}

// How many packets may be taken, by one worker or by several together.

/// A number of packets that several threads take from.
#[derive(Debug, Clone, Default)]
pub struct Limit(Option<Arc<AtomicU64>>);

impl Limit {
    /// At most `packets`, or any number.
    #[must_use]
    pub fn new(packets: Option<u64>) -> Self {
        Self(packets.map(|packets| Arc::new(AtomicU64::new(packets))))
    }

    /// Whether nothing more may be taken.
    #[must_use]
    pub fn is_used_up(&self) -> bool {
        self.0
            .as_ref()
            .is_some_and(|left| left.load(Ordering::Relaxed) == 0)
    }

    /// The part of `batch` that may still be taken; it then is.
    #[must_use]
    pub fn apply<'a>(&self, batch: Batch<'a>) -> Batch<'a> {
        let Some(left) = &self.0 else { return batch };
        let wanted = batch.len() as u64;
        let before = left
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| {
                Some(left.saturating_sub(wanted))
            })
            .unwrap_or_default();
        batch.first(usize::try_from(before).unwrap_or(usize::MAX))
    }
}
