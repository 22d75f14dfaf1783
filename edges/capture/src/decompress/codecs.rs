//! gzip members, xz streams and zstd frames, each one after another.
//!
//! gzip is ours, over the inflater of `flate2`: that crate's own reader drops what it inflated in the call
//! that found the damage, which is up to a whole chunk of good packets. xz is decoded by `lzma-rust2`,
//! which does the same, so that calls are kept small: what is lost is less than two frames, and the same
//! whatever the caller asks for. zstd frames are decoded by the library of C, which gives what it has
//! decoded block by block.
//!
//! Source: RFC 1952; the .xz file format, version 1.2; RFC 8878.

use std::io::{self, BufRead, Read};

use flate2::{Decompress, FlushDecompress, Status};
use lzma_rust2::XzReader;
use zstd::stream::raw::{DParameter, InBuffer, Operation, OutBuffer};

/// Decodes all members of an input.
pub(super) struct Members<R> {
    input: R,
    member: Option<Decompress>,
    is_broken: bool,
}

impl<R: BufRead> Members<R> {
    pub(super) const fn new(input: R) -> Self {
        Self {
            input,
            member: None,
            is_broken: false,
        }
    }

    /// Starts the next member; false at the end of the input. Zeros pad files to whole blocks of
    /// tapes and disks.
    fn next_member(&mut self) -> io::Result<bool> {
        loop {
            let data = self.input.fill_buf()?;
            if data.is_empty() {
                return Ok(false);
            }
            let zeros = data.iter().take_while(|byte| **byte == 0).count();
            if zeros < data.len() {
                self.input.consume(zeros);
                /// The largest window, which RFC 1951 fixes.
                const WINDOW_BITS: u8 = 15;
                self.member = Some(Decompress::new_gzip(WINDOW_BITS));
                return Ok(true);
            }
            self.input.consume(zeros);
        }
    }
}

impl<R: BufRead> Read for Members<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if buffer.is_empty() {
            return Ok(0);
        }
        loop {
            if self.is_broken {
                return Err(io::Error::new(
                    io::ErrorKind::InvalidData,
                    "header, data or checksum is not valid",
                ));
            }
            if self.member.is_none() && !self.next_member()? {
                return Ok(0);
            }
            let Some(member) = &mut self.member else {
                return Ok(0);
            };
            let data = self.input.fill_buf()?;
            let is_last = data.is_empty();
            let (in_before, out_before) = (member.total_in(), member.total_out());
            let status = member.decompress(data, buffer, FlushDecompress::None);
            let count = |total: u64, before: u64| usize::try_from(total - before).unwrap_or(0);
            let used = count(member.total_in(), in_before);
            let got = count(member.total_out(), out_before);
            self.input.consume(used);
            match status {
                Ok(Status::StreamEnd) => self.member = None,
                Ok(Status::Ok | Status::BufError) if is_last && got == 0 => {
                    return Err(io::ErrorKind::UnexpectedEof.into());
                }
                Ok(Status::Ok | Status::BufError) => {}
                Err(_) => self.is_broken = true,
            }
            if got > 0 {
                return Ok(got);
            }
        }
    }
}

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

/// Decodes all frames of an input, and passes over skippable ones.
pub(super) struct Frames<R> {
    input: R,
    decoder: zstd::stream::raw::Decoder<'static>,
    /// Bytes that the decoder asks for, up to the end of a block; none between two frames.
    wanted: usize,
    is_broken: bool,
}

impl<R: BufRead> Frames<R> {
    /// # Errors
    /// The decoder cannot be allocated.
    pub(super) fn new(input: R) -> io::Result<Self> {
        let mut decoder = zstd::stream::raw::Decoder::new()?;
        decoder.set_parameter(DParameter::WindowLogMax(super::MAX_WINDOW_BYTES.ilog2()))?;
        Ok(Self {
            input,
            decoder,
            wanted: 0,
            is_broken: false,
        })
    }
}

impl<R: BufRead> Read for Frames<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        /// What a frame begins with, and less than any has: one that the decoder sees whole is decoded
        /// in one step, and damage at its end takes all of it.
        const BEGINNING: usize = 6;
        if buffer.is_empty() {
            return Ok(0);
        }
        if self.is_broken {
            return Err(io::ErrorKind::InvalidData.into());
        }
        loop {
            let data = self.input.fill_buf()?;
            let is_last = data.is_empty();
            if is_last && self.wanted == 0 {
                return Ok(0);
            }
            // A block a call, no more: a call that finds damage gives nothing of what it decoded before.
            let most = if self.wanted == 0 {
                BEGINNING
            } else {
                self.wanted
            };
            let mut from = InBuffer::around(data.get(..most).unwrap_or(data));
            let mut to = OutBuffer::around(&mut *buffer);
            let wanted = self.decoder.run(&mut from, &mut to);
            let (used, got) = (from.pos(), to.pos());
            self.input.consume(used);
            self.is_broken = wanted.is_err();
            self.wanted = wanted?;
            if got > 0 {
                return Ok(got);
            }
            if is_last && self.wanted > 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
    }
}
