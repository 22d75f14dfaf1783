//! gzip members, xz streams and zstd frames, each one after another.
//!
//! gzip is ours, over the inflater of `flate2`: that crate's own reader drops what it inflated in the call
//! that found the damage, which is up to a whole chunk of good packets. xz is decoded by `lzma-rust2`,
//! which does the same, so that calls are kept small: what is lost is less than two frames, and the same
//! whatever the caller asks for. zstd frames are decoded by `ruzstd`, which leaves checksums and what is
//! between frames to its caller.
//!
//! Source: RFC 1952; the .xz file format, version 1.2; RFC 8878.

use std::error::Error;
use std::io::{self, BufRead, Read};

use flate2::{Decompress, FlushDecompress, Status};
use lzma_rust2::XzReader;
use ruzstd::decoding::errors::{FrameDecoderError, ReadFrameHeaderError};
use ruzstd::decoding::{BlockDecodingStrategy, FrameDecoder};

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

/// Decodes all frames of an input.
pub(super) struct Frames<R> {
    input: R,
    decoder: FrameDecoder,
    in_frame: bool,
    /// What to say once everything decoded before it has been read.
    broken: Option<io::Error>,
}

impl<R: BufRead> Frames<R> {
    pub(super) fn new(input: R) -> Self {
        let mut decoder = FrameDecoder::new();
        decoder.set_max_window_size(u64::from(super::MAX_WINDOW_BYTES));
        Self {
            input,
            decoder,
            in_frame: false,
            broken: None,
        }
    }

    /// Ends a frame that cannot be decoded further, so that the window, which the decoder keeps
    /// back for references to it, can be read.
    fn give_up(&mut self, error: &FrameDecoderError) -> io::Result<()> {
        /// A last block without content (RFC 8878 sec. 3.1.1.2), and a checksum, should one follow.
        const LAST_BLOCK: [u8; 7] = [1, 0, 0, 0, 0, 0, 0];
        let one = BlockDecodingStrategy::UptoBlocks(1);
        match self.decoder.decode_blocks(LAST_BLOCK.as_slice(), one) {
            Ok(_) => {
                self.broken = Some(invalid(error));
                Ok(())
            }
            Err(_) => Err(invalid(error)),
        }
    }

    /// Starts the next frame; false at the end of the input.
    fn next_frame(&mut self) -> io::Result<bool> {
        loop {
            if self.input.fill_buf()?.is_empty() {
                return Ok(false);
            }
            match self.decoder.reset(&mut self.input) {
                Ok(()) => {
                    self.in_frame = true;
                    return Ok(true);
                }
                Err(FrameDecoderError::ReadFrameHeaderError(ReadFrameHeaderError::SkipFrame {
                    length,
                    ..
                })) => super::skip(&mut self.input, u64::from(length))?,
                Err(error) => return Err(invalid(&error)),
            }
        }
    }
}

impl<R: BufRead> Read for Frames<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if buffer.is_empty() {
            return Ok(0);
        }
        loop {
            if !self.in_frame && !self.next_frame()? {
                return Ok(0);
            }
            while self.decoder.can_collect() == 0 && !self.decoder.is_finished() {
                let one = BlockDecodingStrategy::UptoBlocks(1);
                if let Err(error) = self.decoder.decode_blocks(&mut self.input, one) {
                    self.give_up(&error)?;
                }
            }
            let got = self.decoder.read(buffer)?;
            if got > 0 {
                return Ok(got);
            }
            self.in_frame = false;
            if let Some(error) = self.broken.take() {
                return Err(error);
            }
            if let Some(expected) = self.decoder.get_checksum_from_data()
                && self.decoder.get_calculated_checksum() != Some(expected)
            {
                return Err(io::Error::new(
                    io::ErrorKind::InvalidData,
                    "checksum differs",
                ));
            }
        }
    }
}

/// Keeps the one distinction that matters to the user: an input that ends early.
fn invalid(error: &FrameDecoderError) -> io::Error {
    let mut cause: Option<&(dyn Error + 'static)> = Some(error);
    while let Some(link) = cause {
        if let Some(io) = link.downcast_ref::<io::Error>() {
            return io.kind().into();
        }
        cause = link.source();
    }
    io::Error::new(io::ErrorKind::InvalidData, error.to_string())
}
