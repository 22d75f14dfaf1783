//! A batch: frames that borrow from one read buffer or ring block; nothing is copied per packet.

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
}
