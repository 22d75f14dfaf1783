//! xz streams, one after another, decoded by `lzma-rust2` in small pieces.
//!
//! The decoder drops what it decoded in the call that finds damage, so calls are kept small: what
//! is lost is less than two frames, and the same whatever the caller asks for.
//! Source: the .xz file format, version 1.2.

use std::io::{self, Read};

use lzma_rust2::XzReader;

const PIECE: usize = 2048;

/// Decodes all streams of an input.
pub(super) struct Streams<R: Read> {
    decoder: XzReader<R>,
    piece: [u8; PIECE],
    start: usize,
    end: usize,
}

impl<R: Read> Streams<R> {
    pub(super) fn new(input: R) -> Self {
        Self {
            decoder: XzReader::new_mem_limit(input, true, super::MAX_WINDOW_BYTES >> 10),
            piece: [0; PIECE],
            start: 0,
            end: 0,
        }
    }
}

impl<R: Read> Read for Streams<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.start == self.end {
            self.end = 0;
            self.start = 0;
            self.end = self.decoder.read(&mut self.piece)?;
        }
        let mut ready = self.piece.get(self.start..self.end).unwrap_or_default();
        let got = ready.read(buffer)?;
        self.start += got;
        Ok(got)
    }
}
