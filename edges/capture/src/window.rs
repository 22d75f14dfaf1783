//! The one read buffer: a chunk that is read into, and head room for what the last chunk left over.
//!
//! ```text
//! | head room ........ [rest] | chunk, page-aligned ........ |
//!                      ^start                          ^end
//! ```
//! An incomplete record at the end of a chunk is moved in front of the next one, so the large read
//! always lands on the same aligned addresses and nothing else is ever copied.

use std::io::{self, Read};
use std::ops::Range;

const PAGE: usize = 4096;

/// What is read first; then twice as much each time, so that the first records need not wait for a whole chunk.
const FIRST_READ: usize = 16 << 10;

/// A sliding view of a byte stream.
#[derive(Debug)]
pub(crate) struct Window {
    buffer: Vec<u8>,
    /// Where a chunk is read to.
    chunk_start: usize,
    chunk_bytes: usize,
    /// Of the next read.
    read_bytes: usize,
    held_bytes: usize,
    start: usize,
    end: usize,
    /// Stream offset of `start`.
    offset: u64,
    /// Bytes still to be dropped from the front, as they come.
    skip: u64,
}

impl Window {
    /// A window that reads up to `chunk_bytes` at once and can hold `held_bytes` of unfinished record.
    pub(crate) fn new(chunk_bytes: usize, held_bytes: usize) -> Self {
        let head = held_bytes.next_multiple_of(PAGE);
        // Zeroed memory comes from the kernel untouched: head room that is never used costs nothing.
        let buffer = vec![0; PAGE + head + chunk_bytes];
        let chunk_start = head + buffer.as_ptr().align_offset(PAGE).min(PAGE);
        Self {
            buffer,
            chunk_start,
            chunk_bytes,
            read_bytes: FIRST_READ.min(chunk_bytes),
            held_bytes,
            start: chunk_start,
            end: chunk_start,
            offset: 0,
            skip: 0,
        }
    }

    /// Gives a buffer the size of its own, and says where in it a chunk is to be.
    pub(crate) fn fit(&self, buffer: &mut Vec<u8>) -> Range<usize> {
        let len = self.buffer.len();
        if buffer.len() != len {
            *buffer = vec![0; len];
        }
        let room = len - PAGE - self.chunk_bytes;
        let start = room + buffer.as_ptr().align_offset(PAGE).min(PAGE);
        start..start + self.chunk_bytes
    }

    /// Goes on in a buffer that fits and has `got` bytes of a chunk, and gives its own for it. What was unread moves in front of the
    /// chunk.
    pub(crate) fn swap(&mut self, buffer: &mut Vec<u8>, got: usize) {
        let chunk_start = self.fit(buffer).start;
        let rest = self.buffer.get(self.start..self.end).unwrap_or_default();
        let front = chunk_start.saturating_sub(rest.len());
        if let Some(place) = buffer.get_mut(front..front + rest.len()) {
            place.copy_from_slice(rest);
        }
        self.end = front + rest.len();
        self.start = front;
        self.chunk_start = chunk_start;
        std::mem::swap(&mut self.buffer, buffer);
        self.arrived(got.min(self.chunk_bytes));
    }

    /// Gives the buffer away and goes on with `spare`, or with a new one where that has another size.
    pub(crate) fn detach(&mut self, mut spare: Vec<u8>) -> Vec<u8> {
        self.swap(&mut spare, 0);
        spare
    }

    /// Forgets everything: another stream begins.
    pub(crate) const fn reset(&mut self) {
        self.start = self.chunk_start;
        self.end = self.chunk_start;
        self.offset = 0;
        self.skip = 0;
    }

    /// The whole buffer, to which frame offsets refer.
    pub(crate) fn buffer(&self) -> &[u8] {
        &self.buffer
    }

    /// Offset of [`Window::unread`] in [`Window::buffer`].
    pub(crate) fn origin(&self) -> u32 {
        // Options are clamped so that a buffer stays far below 4 GiB.
        u32::try_from(self.start).unwrap_or(u32::MAX)
    }

    /// Bytes that have arrived and are not consumed.
    pub(crate) fn unread(&self) -> &[u8] {
        self.buffer.get(self.start..self.end).unwrap_or_default()
    }

    /// How many unread bytes may be carried over to the next fill.
    pub(crate) const fn held_bytes(&self) -> usize {
        self.held_bytes
    }

    /// Stream offset of the first unread byte.
    pub(crate) const fn offset(&self) -> u64 {
        self.offset
    }

    /// Bytes asked to be skipped that have not come yet.
    pub(crate) const fn skipping(&self) -> u64 {
        self.skip
    }

    /// Marks `count` unread bytes as used.
    pub(crate) fn consume(&mut self, count: usize) {
        let count = count.min(self.end - self.start);
        self.start += count;
        self.offset = self.offset.saturating_add(count as u64);
    }

    /// Drops the next `count` bytes of the stream, whether they have arrived or not.
    pub(crate) fn skip(&mut self, count: u64) {
        let here = usize::try_from(count)
            .unwrap_or(usize::MAX)
            .min(self.end - self.start);
        self.consume(here);
        self.skip = self.skip.saturating_add(count - here as u64);
    }

    /// Reads once; zero is the end of the stream. What was unread moves in front of the chunk.
    pub(crate) fn fill(&mut self, from: &mut impl Read) -> io::Result<usize> {
        let rest = self.end - self.start;
        let front = self.chunk_start.saturating_sub(rest);
        if rest > 0 {
            self.buffer.copy_within(self.start..self.end, front);
        }
        self.start = front;
        self.end = front + rest;
        let chunk = self
            .buffer
            .get_mut(self.end..self.end + self.read_bytes)
            .unwrap_or_default();
        let got = loop {
            match from.read(chunk) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                result => break result?,
            }
        };
        self.arrived(got.min(self.read_bytes));
        self.read_bytes = self.chunk_bytes.min(2 * self.read_bytes);
        Ok(got)
    }

    /// Behind what was unread `got` bytes have come.
    fn arrived(&mut self, got: usize) {
        self.end += got;
        if self.skip > 0 {
            let pending = std::mem::take(&mut self.skip);
            self.skip(pending);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rest_moves_in_front_of_an_aligned_chunk() {
        let data: Vec<u8> = (0..=255).collect();
        let mut stream = data.as_slice();
        let mut window = Window::new(10, 100);
        assert_eq!(window.fill(&mut stream).unwrap(), 10);
        assert_eq!(window.unread(), &data[..10]);
        window.consume(7);
        assert_eq!(window.fill(&mut stream).unwrap(), 10);
        assert_eq!(window.unread(), &data[7..20]);
        assert_eq!(window.offset(), 7);
        assert_eq!(
            (window.buffer().as_ptr() as usize + window.chunk_start) % PAGE,
            0
        );
    }

    #[test]
    fn reads_grow_to_the_chunk() {
        let mut stream = io::repeat(1);
        let mut window = Window::new(5 * FIRST_READ, 100);
        for times in [1, 2, 4, 5, 5] {
            assert_eq!(window.fill(&mut stream).unwrap(), times * FIRST_READ);
            window.consume(times * FIRST_READ);
        }
    }

    #[test]
    fn what_is_left_goes_on_in_another_buffer() {
        let data: Vec<u8> = (0..=255).collect();
        let mut stream = data.as_slice();
        let mut window = Window::new(10, 100);
        window.fill(&mut stream).unwrap();
        window.consume(7);
        let mut other = Vec::new();
        for (from, unread) in [(10, 7..15), (15, 9..20)] {
            let place = window.fit(&mut other);
            other[place.start..place.start + 5].copy_from_slice(&data[from..from + 5]);
            let address = other.as_ptr();
            window.swap(&mut other, 5);
            assert_eq!(window.buffer().as_ptr(), address);
            assert_eq!(window.unread(), &data[unread.clone()]);
            assert_eq!(window.offset(), unread.start as u64);
            window.consume(2);
        }
        let chunk = window.buffer().as_ptr() as usize + window.chunk_start;
        assert_eq!(chunk % PAGE, 0);
        let given = window.detach(other);
        assert!(given.windows(11).any(|bytes| bytes == &data[9..20]));
        let mut stream = &data[20..];
        window.fill(&mut stream).unwrap();
        assert_eq!((window.unread(), window.offset()), (&data[11..30], 11));
    }

    #[test]
    fn skipping_reaches_into_later_chunks() {
        let data: Vec<u8> = (0..=255).collect();
        let mut stream = data.as_slice();
        let mut window = Window::new(10, 100);
        window.fill(&mut stream).unwrap();
        window.skip(25);
        assert_eq!((window.skipping(), window.offset()), (15, 10));
        window.fill(&mut stream).unwrap();
        window.fill(&mut stream).unwrap();
        assert_eq!(window.unread(), &data[25..30]);
        assert_eq!(window.offset(), 25);
    }
}
