//! Whether an ICAP service gives a body back as it was sent: its response in chunks (RFC 9112 sec. 7.1) is compared with
//! it, piece by piece.
//!
//! A service that has begun to answer before it has found a virus cannot take the head of its response back: all that it
//! can do is to leave out the rest of the body, as `virus_scan` of c-icap does.

use crate::icap::length_of;
use crate::link::{LinkError, read_block};
use crate::queue::Body;
use crate::session::Fault;

/// Longest line before a chunk, bytes.
const MAX_LINE: usize = 1024;
/// Bytes of the spool file that are read at once.
const BLOCK: usize = 16 << 10;

/// Where the next byte of the response is.
#[derive(Debug, Clone, Copy)]
enum At {
    /// In the line before a chunk.
    Size,
    /// In a chunk, with so many bytes of it to come, and the end of its line.
    Chunk(u64),
    /// In the empty line behind the last chunk.
    End,
}

/// A comparison that goes on.
#[derive(Debug)]
pub(crate) struct Comparison<'a> {
    body: &'a Body,
    length: u64,
    /// Bytes that came and were the same.
    same: u64,
    at: At,
}

impl<'a> Comparison<'a> {
    pub(crate) fn new(body: &'a Body) -> Self {
        Self {
            body,
            length: length_of(body),
            same: 0,
            at: At::Size,
        }
    }

    /// Takes what has come and removes it; whether the body was the same, once that is known.
    pub(crate) fn take(&mut self, came: &mut Vec<u8>) -> Result<Option<bool>, Fault> {
        let mut done = 0;
        let known = loop {
            let rest = came.get(done..).unwrap_or_default();
            match self.at {
                At::Size => {
                    let Some(end) = memchr::memmem::find(rest, b"\r\n") else {
                        if rest.len() > MAX_LINE {
                            return Err(LinkError::Garbage.into());
                        }
                        break None;
                    };
                    let size = size_of(rest.get(..end).unwrap_or_default());
                    done += end + 2;
                    match size.ok_or(LinkError::Garbage)? {
                        0 if self.same == self.length => self.at = At::End,
                        0 => break Some(false),
                        size => self.at = At::Chunk(size),
                    }
                }
                At::Chunk(0) | At::End => {
                    let Some(end) = rest.first_chunk::<2>() else {
                        break None;
                    };
                    if end != b"\r\n" {
                        return Err(LinkError::Garbage.into());
                    }
                    done += 2;
                    if matches!(self.at, At::End) {
                        break Some(true);
                    }
                    self.at = At::Size;
                }
                At::Chunk(left) => {
                    let there = usize::try_from(left).unwrap_or(usize::MAX).min(rest.len());
                    let bytes = rest.get(..there).unwrap_or_default();
                    if bytes.is_empty() {
                        break None;
                    }
                    if !is_at(self.body, self.same, bytes)? {
                        break Some(false);
                    }
                    self.same += bytes.len() as u64;
                    self.at = At::Chunk(left - bytes.len() as u64);
                    done += bytes.len();
                }
            }
        };
        came.drain(..done);
        Ok(known)
    }
}

/// The number before a chunk; extensions are not needed.
fn size_of(line: &[u8]) -> Option<u64> {
    let text = std::str::from_utf8(line).ok()?;
    let digits = text.split(';').next()?.trim();
    let is_plain = digits.bytes().all(|byte| byte.is_ascii_hexdigit());
    is_plain.then(|| u64::from_str_radix(digits, 16).ok())?
}

/// Whether a body has these bytes at this offset.
fn is_at(body: &Body, offset: u64, mut bytes: &[u8]) -> Result<bool, Fault> {
    let mut offset = offset;
    if let Some(spooled) = &body.spooled {
        let mut buffer = [0; BLOCK];
        while offset < spooled.length && !bytes.is_empty() {
            let left = usize::try_from(spooled.length - offset).unwrap_or(BLOCK);
            let count = left.min(BLOCK).min(bytes.len());
            let block = buffer.get_mut(..count).unwrap_or_default();
            read_block(&spooled.file, block, offset).map_err(Fault::Spool)?;
            let (these, rest) = bytes.split_at_checked(count).unwrap_or((bytes, &[]));
            if *these != *block {
                return Ok(false);
            }
            (bytes, offset) = (rest, offset + count as u64);
        }
        offset = offset.saturating_sub(spooled.length);
    }
    for part in &body.parts {
        if bytes.is_empty() {
            break;
        }
        let length = part.len() as u64;
        if offset >= length {
            offset -= length;
            continue;
        }
        let here = part.get(usize::try_from(offset).unwrap_or(usize::MAX)..);
        let here = here.unwrap_or_default();
        let count = here.len().min(bytes.len());
        let (these, rest) = bytes.split_at_checked(count).unwrap_or((bytes, &[]));
        if here.get(..count) != Some(these) {
            return Ok(false);
        }
        (bytes, offset) = (rest, 0);
    }
    Ok(bytes.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn body() -> Body {
        let mut body = Body::default();
        body.parts = vec![b"some ".to_vec(), b"bytes of a file".to_vec()];
        body
    }

    /// What is known after a response came in pieces of this length.
    fn known(response: &[u8], length: usize) -> Result<Option<bool>, Fault> {
        let body = body();
        let mut comparison = Comparison::new(&body);
        let mut came = Vec::new();
        for piece in response.chunks(length) {
            came.extend_from_slice(piece);
            if let Some(known) = comparison.take(&mut came)? {
                return Ok(Some(known));
            }
        }
        Ok(None)
    }

    #[test]
    fn a_body_that_is_cut_or_changed_is_another() {
        for (response, expected) in [
            (&b"14\r\nsome bytes of a file\r\n0\r\n\r\n"[..], Some(true)),
            (
                b"7;a=b\r\nsome by\r\nD\r\ntes of a file\r\n0\r\n\r\n",
                Some(true),
            ),
            (b"0\r\n\r\n", Some(false)),
            (b"7\r\nsome by\r\n0\r\n\r\n", Some(false)),
            (b"14\r\nsome bytes of a filE\r\n0\r\n\r\n", Some(false)),
            (b"15\r\nsome bytes of a file!\r\n0\r\n\r\n", Some(false)),
            (b"14\r\nsome bytes of a file\r\n", None),
            (b"14\r\nsome bytes of", None),
            (b"", None),
        ] {
            for length in [1, 2, 3, 7, 100] {
                let text = String::from_utf8_lossy(response);
                assert_eq!(
                    known(response, length).unwrap(),
                    expected,
                    "{text}, by {length}"
                );
            }
        }
        for garbage in [
            &b"x\r\n"[..],
            b"-1\r\n",
            b"\r\n",
            b"4\r\nsome!!",
            &[b'0'; 3000],
        ] {
            let text = String::from_utf8_lossy(garbage);
            assert!(known(garbage, 5000).is_err(), "{text}");
        }
    }

    #[test]
    fn the_beginning_may_be_in_a_file() {
        use std::io::Write as _;
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(b"of the file, ").unwrap();
        let mut body = Body::default();
        body.spooled = Some(crate::queue::Spooled { file, length: 13 });
        body.parts = vec![b"of memory".to_vec()];
        for (offset, bytes, expected) in [
            (0, &b"of the file, of memory"[..], true),
            (3, b"the file, of", true),
            (13, b"of memory", true),
            (20, b"ry", true),
            (20, b"ryx", false),
            (3, b"the file; of", false),
            (3, b"the file, ofx", false),
        ] {
            assert_eq!(is_at(&body, offset, bytes).unwrap(), expected, "{offset}");
        }
    }

    proptest! {
        #[test]
        fn no_response_breaks_it(response: Vec<u8>, length in 1_usize..40) {
            // Random bytes are never the body.
            let known = known(&response, length);
            prop_assert!(!matches!(known, Ok(Some(true))));
        }
    }
}
