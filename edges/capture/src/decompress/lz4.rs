//! LZ4 frames, one after another.
//!
//! Ours, over the block decoder of `lz4_flex`: that crate's own frame reader takes a file that ends
//! between two blocks for complete.
//! Source: LZ4 frame format description, version 1.6.4.

use std::hash::Hasher;
use std::io::{self, Read};

use lz4_flex::block::{decompress_into, decompress_into_with_dict};
use twox_hash::XxHash32;

const MAGIC: [u8; 4] = [0x04, 0x22, 0x4d, 0x18];
/// How far back a block may refer.
const HISTORY: usize = 64 << 10;

/// Decodes all frames of an input.
///
/// Memory: twice the largest block (4 MiB) and 64 KiB.
pub(super) struct Frames<R> {
    input: R,
    frame: Option<Frame>,
    compressed: Vec<u8>,
    /// History, then the block decoded last.
    decoded: Vec<u8>,
    /// Bytes at the end of the first [`HISTORY`] that are history.
    history: usize,
    /// What of the block is not read yet.
    start: usize,
    end: usize,
}

/// The descriptor of the frame being read.
struct Frame {
    max_block: usize,
    is_linked: bool,
    has_block_checksums: bool,
    content_hash: Option<XxHash32>,
    content_left: Option<u64>,
}

impl<R: Read> Frames<R> {
    pub(super) const fn new(input: R) -> Self {
        Self {
            input,
            frame: None,
            compressed: Vec::new(),
            decoded: Vec::new(),
            history: 0,
            start: HISTORY,
            end: HISTORY,
        }
    }

    /// Starts the next frame; false at the end of the input.
    fn next_frame(&mut self) -> io::Result<bool> {
        let mut magic = [0; 4];
        loop {
            if !super::read_magic(&mut self.input, &mut magic)? {
                return Ok(false);
            }
            match magic {
                MAGIC => break,
                [0x50..=0x5f, 0x2a, 0x4d, 0x18] => super::skip_frame(&mut self.input)?,
                _ => return Err(invalid("bytes between frames that begin none")),
            }
        }
        let frame = descriptor(&mut self.input)?;
        self.decoded.resize(HISTORY + frame.max_block, 0);
        self.compressed.resize(frame.max_block, 0);
        self.history = 0;
        self.frame = Some(frame);
        Ok(true)
    }

    /// Decodes the next block of the frame; false where it has ended.
    fn next_block(&mut self) -> io::Result<bool> {
        let Some(frame) = &mut self.frame else {
            return Ok(false);
        };
        let header = read_u32(&mut self.input)?;
        if header == 0 {
            if frame.content_left.is_some_and(|left| left > 0) {
                return Err(invalid("content is shorter than announced"));
            }
            if let Some(hash) = &frame.content_hash
                && u64::from(read_u32(&mut self.input)?) != hash.finish()
            {
                return Err(invalid("content checksum differs"));
            }
            self.frame = None;
            return Ok(false);
        }
        let length = (header & 0x7fff_ffff) as usize;
        let Some(block) = self.compressed.get_mut(..length) else {
            return Err(invalid("block is longer than announced"));
        };
        self.input.read_exact(block)?;
        if frame.has_block_checksums && read_u32(&mut self.input)? != XxHash32::oneshot(0, block) {
            return Err(invalid("block checksum differs"));
        }
        keep_history(&mut self.decoded, &mut self.history, frame, self.end);
        let (before, room) = self
            .decoded
            .split_at_mut_checked(HISTORY)
            .unwrap_or_default();
        let got = if header >> 31 == 1 {
            let Some(target) = room.get_mut(..length) else {
                return Err(invalid("block is longer than announced"));
            };
            target.copy_from_slice(block);
            length
        } else {
            let history = before.get(HISTORY - self.history..).unwrap_or_default();
            let decoded = if history.is_empty() {
                decompress_into(block, room)
            } else {
                decompress_into_with_dict(block, room, history)
            };
            decoded
                .map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error.to_string()))?
        };
        let content = room.get(..got).unwrap_or_default();
        if let Some(hash) = &mut frame.content_hash {
            hash.write(content);
        }
        if let Some(left) = &mut frame.content_left {
            *left = left
                .checked_sub(got as u64)
                .ok_or_else(|| invalid("content is longer than announced"))?;
        }
        self.start = HISTORY;
        self.end = HISTORY + got;
        Ok(true)
    }
}

/// Moves the last 64 KiB of what was decoded to where the next block can refer to them.
fn keep_history(decoded: &mut [u8], history: &mut usize, frame: &Frame, end: usize) {
    if !frame.is_linked {
        return;
    }
    // The first block of a frame finds the last frame's bytes behind the history: not its own.
    let block = end - HISTORY;
    let kept = (*history + block).min(HISTORY);
    decoded.copy_within(end - kept..end, HISTORY - kept);
    *history = kept;
}

impl<R: Read> Read for Frames<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if buffer.is_empty() {
            return Ok(0);
        }
        while self.start == self.end {
            if self.frame.is_none() {
                self.start = HISTORY;
                self.end = HISTORY;
                if !self.next_frame()? {
                    return Ok(0);
                }
            }
            self.next_block()?;
        }
        let ready = self.decoded.get(self.start..self.end).unwrap_or_default();
        let got = ready.len().min(buffer.len());
        if let (Some(target), Some(source)) = (buffer.get_mut(..got), ready.get(..got)) {
            target.copy_from_slice(source);
        }
        self.start += got;
        Ok(got)
    }
}

/// Reads a frame descriptor, behind the magic number.
fn descriptor(input: &mut impl Read) -> io::Result<Frame> {
    let mut bytes = [0; 10];
    let (fixed, size) = bytes.split_at_mut_checked(2).unwrap_or_default();
    input.read_exact(fixed)?;
    let &mut [flags, block] = fixed else {
        return Err(invalid("descriptor cut"));
    };
    if flags >> 6 != 1 {
        return Err(invalid("unknown version"));
    }
    if flags & 0x01 != 0 {
        return Err(invalid("needs a dictionary"));
    }
    let mut content_left = None;
    let mut described = 2;
    if flags & 0x08 != 0 {
        input.read_exact(size)?;
        described = 10;
        content_left = size.first_chunk().map(|size| u64::from_le_bytes(*size));
    }
    let [.., check] = XxHash32::oneshot(0, bytes.get(..described).unwrap_or_default())
        .to_be_bytes()
        .first_chunk::<3>()
        .copied()
        .unwrap_or_default();
    let mut found = [0];
    input.read_exact(&mut found)?;
    if found != [check] {
        return Err(invalid("header checksum differs"));
    }
    Ok(Frame {
        max_block: match block >> 4 & 7 {
            4 => 64 << 10,
            5 => 256 << 10,
            6 => 1 << 20,
            7 => 4 << 20,
            _ => return Err(invalid("unknown block size")),
        },
        is_linked: flags & 0x20 == 0,
        has_block_checksums: flags & 0x10 != 0,
        content_hash: (flags & 0x04 != 0).then(|| XxHash32::with_seed(0)),
        content_left,
    })
}

fn read_u32(input: &mut impl Read) -> io::Result<u32> {
    let mut bytes = [0; 4];
    input.read_exact(&mut bytes)?;
    Ok(u32::from_le_bytes(bytes))
}

fn invalid(message: &'static str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, message)
}
