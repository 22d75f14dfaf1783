//! gzip members, one after another.
//!
//! Ours, over the inflater of `flate2`: that crate's own reader drops what it inflated in the call
//! that found the damage, which is up to a whole chunk of good packets.
//! Source: RFC 1952.

use std::io::{self, BufRead, Read};

use flate2::{Decompress, FlushDecompress, Status};

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
