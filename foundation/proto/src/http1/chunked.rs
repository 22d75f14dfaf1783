//! Chunks joined, piece by piece (RFC 9112 sec. 7.1).

use memchr::memchr;

use super::{MAX_HEAD, SectionEnd};

/// Longest chunk, bytes.
const MAX_CHUNK: u64 = i32::MAX as u64;

/// What is next in a chunked body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChunkPiece<'a> {
    /// Data of a chunk.
    Data(&'a [u8]),
    /// Bytes of a chunk extension or of the trailer section, with the ends of their lines.
    Text(&'a [u8]),
    /// The body goes on in bytes that are not here yet.
    More,
    /// The body has ended.
    End,
}

/// What chunks must not be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChunkFault {
    /// No hexadecimal digit where a chunk size is due, or something behind it.
    Size,
    /// A chunk size of more than 31 bits: clients that count in 32 read another one.
    TooLarge,
    /// Data of a chunk that no line end follows.
    Unterminated,
    /// Extensions of a chunk, or trailers, beyond [`MAX_HEAD`].
    TooLong,
}

impl ChunkFault {
    /// A short phrase for records.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Size => "chunk size that is not a number",
            Self::TooLarge => "chunk size beyond 31 bits",
            Self::Unterminated => "chunk longer than its size",
            Self::TooLong => "chunk extension or trailers beyond 64 KiB",
        }
    }
}

/// Takes the framing off a chunked body, in pieces of any size; nothing is copied.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ChunkedDecoder {
    state: State,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Size {
        size: u64,
        has_digit: bool,
    },
    /// Behind the digits of a size: its line goes on for so many bytes already.
    Extension {
        size: u64,
        passed: u32,
    },
    /// Behind the CR of a line without extension.
    SizeLf {
        size: u64,
    },
    Data {
        left: u64,
    },
    DataEnd,
    DataLf,
    Trailer {
        end: SectionEnd,
        passed: u32,
    },
    End,
}

impl Default for ChunkedDecoder {
    fn default() -> Self {
        Self { state: SIZE }
    }
}

const SIZE: State = State::Size {
    size: 0,
    has_digit: false,
};

impl State {
    /// What follows the line of a chunk size: the last chunk has none.
    fn after_size(size: u64) -> Self {
        if size == 0 {
            Self::Trailer {
                end: SectionEnd::default(),
                passed: 0,
            }
        } else {
            Self::Data { left: size }
        }
    }
}

impl ChunkedDecoder {
    /// The next piece; `bytes` is moved behind it. After [`ChunkPiece::More`] it is empty; after
    /// [`ChunkPiece::End`] it belongs to the next message.
    ///
    /// # Errors
    /// The bytes are no chunks: `bytes` begins with those that are not. What is called afterwards is
    /// without meaning.
    pub fn next<'a>(&mut self, bytes: &mut &'a [u8]) -> Result<ChunkPiece<'a>, ChunkFault> {
        while let (state, Some((&first, rest))) = (&mut self.state, bytes.split_first()) {
            match state {
                State::Size { size, has_digit } => {
                    if let Some(digit) = char::from(first).to_digit(16) {
                        let more = (*size * 16) | u64::from(digit);
                        if more > MAX_CHUNK {
                            return Err(ChunkFault::TooLarge);
                        }
                        (*size, *has_digit) = (more, true);
                        *bytes = rest;
                        continue;
                    }
                    let size = has_digit.then_some(*size).ok_or(ChunkFault::Size)?;
                    *state = match first {
                        b'\n' => State::after_size(size),
                        b'\r' => State::SizeLf { size },
                        b';' | b' ' | b'\t' => {
                            *state = State::Extension { size, passed: 0 };
                            continue;
                        }
                        _ => return Err(ChunkFault::Size),
                    };
                    *bytes = rest;
                }
                State::SizeLf { size } => {
                    if first != b'\n' {
                        return Err(ChunkFault::Size);
                    }
                    *state = State::after_size(*size);
                    *bytes = rest;
                }
                State::Extension { size, passed } => {
                    let end = memchr(b'\n', bytes).map(|at| at + 1);
                    let (text, rest) = split(bytes, end.unwrap_or(bytes.len()));
                    *passed = within_bound(*passed, text.len())?;
                    if end.is_some() {
                        *state = State::after_size(*size);
                    }
                    *bytes = rest;
                    return Ok(ChunkPiece::Text(text));
                }
                State::Data { left } => {
                    let here = usize::try_from(*left).unwrap_or(usize::MAX);
                    let (data, rest) = split(bytes, here);
                    *left -= data.len() as u64;
                    if *left == 0 {
                        *state = State::DataEnd;
                    }
                    *bytes = rest;
                    return Ok(ChunkPiece::Data(data));
                }
                State::DataEnd | State::DataLf => {
                    *state = match first {
                        b'\n' => SIZE,
                        b'\r' if *state == State::DataEnd => State::DataLf,
                        _ => return Err(ChunkFault::Unterminated),
                    };
                    *bytes = rest;
                }
                State::Trailer { end, passed } => {
                    let found = end.find(bytes);
                    let (text, rest) = split(bytes, found.unwrap_or(bytes.len()));
                    *passed = within_bound(*passed, text.len())?;
                    if found.is_some() {
                        *state = State::End;
                    }
                    *bytes = rest;
                    return Ok(ChunkPiece::Text(text));
                }
                State::End => return Ok(ChunkPiece::End),
            }
        }
        let is_end = self.state == State::End;
        Ok(if is_end {
            ChunkPiece::End
        } else {
            ChunkPiece::More
        })
    }

    /// Passes over the data of a chunk that is still to come; says how many bytes that is.
    pub const fn pass_data(&mut self) -> u64 {
        let State::Data { left } = self.state else {
            return 0;
        };
        self.state = State::DataEnd;
        left
    }

    /// Passes over so many bytes that are missing; whether all of them are data of the chunk at hand. If not, it is not
    /// known where the next chunk begins.
    pub const fn pass_missing(&mut self, len: u64) -> bool {
        let State::Data { left } = self.state else {
            return len == 0;
        };
        let Some(rest) = left.checked_sub(len) else {
            return false;
        };
        self.state = match rest {
            0 => State::DataEnd,
            left => State::Data { left },
        };
        true
    }

    /// Whether the body has ended.
    #[must_use]
    pub fn is_at_end(&self) -> bool {
        self.state == State::End
    }
}

fn split(bytes: &[u8], at: usize) -> (&[u8], &[u8]) {
    bytes.split_at_checked(at).unwrap_or((bytes, &[]))
}

fn within_bound(passed: u32, more: usize) -> Result<u32, ChunkFault> {
    let bound = u32::try_from(MAX_HEAD).unwrap_or(u32::MAX);
    u32::try_from(more)
        .ok()
        .and_then(|more| passed.checked_add(more))
        .filter(|passed| *passed <= bound)
        .ok_or(ChunkFault::TooLong)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::chunked_length;
    use super::*;

    /// Data, text, bytes used, whether the end was there.
    type Decoded = (Vec<u8>, Vec<u8>, usize, bool);

    fn decode<'a>(pieces: impl IntoIterator<Item = &'a [u8]>) -> Result<Decoded, ChunkFault> {
        let mut decoder = ChunkedDecoder::default();
        let (mut data, mut text, mut used) = (Vec::new(), Vec::new(), 0);
        for piece in pieces {
            let mut rest = piece;
            loop {
                let before = rest.len();
                let next = decoder.next(&mut rest)?;
                used += before - rest.len();
                match next {
                    ChunkPiece::Data(bytes) => data.extend_from_slice(bytes),
                    ChunkPiece::Text(bytes) => text.extend_from_slice(bytes),
                    ChunkPiece::More => break,
                    ChunkPiece::End => return Ok((data, text, used, true)),
                }
            }
        }
        Ok((data, text, used, decoder.is_at_end()))
    }

    #[test]
    fn missing_data_is_passed_over_within_a_chunk() {
        let mut chunks = ChunkedDecoder::default();
        let mut rest: &[u8] = b"a\r\nabc";
        assert_eq!(chunks.next(&mut rest), Ok(ChunkPiece::Data(b"abc")));
        assert!(chunks.pass_missing(5));
        let mut rest: &[u8] = b"ij\r\n3\r\n";
        assert_eq!(chunks.next(&mut rest), Ok(ChunkPiece::Data(b"ij")));
        assert_eq!(chunks.next(&mut rest), Ok(ChunkPiece::More));
        assert!(!chunks.pass_missing(4), "more than the chunk");
        assert!(chunks.pass_missing(3) && !chunks.pass_missing(1));
        let mut rest: &[u8] = b"\r\n0\r\n\r\n";
        while chunks.next(&mut rest) != Ok(ChunkPiece::End) {}
    }

    #[test]
    fn chunks_extensions_and_trailers() {
        let body = b"3\r\nabc\r\n00A ;q=\"x\"\r\n0123456789\r\n0\r\nSum: 1\r\n\r\nHTTP/1.1";
        let (data, text, used, is_end) = decode([&body[..]]).expect("chunks");
        assert_eq!(data, b"abc0123456789");
        assert_eq!(text, b" ;q=\"x\"\r\nSum: 1\r\n\r\n");
        assert_eq!((&body[used..], is_end), (&b"HTTP/1.1"[..], true));
        let (data, _, _, is_end) = decode([&b"2\nab\n0\n\n"[..]]).expect("bare line feeds");
        assert_eq!((&data[..], is_end), (&b"ab"[..], true));
    }

    #[test]
    fn what_is_no_chunk() {
        for (body, fault) in [
            (&b"\r\n"[..], ChunkFault::Size),
            (b"x\r\n", ChunkFault::Size),
            (b"-1\r\n", ChunkFault::Size),
            (b"0x3\r\nabc", ChunkFault::Size),
            (b"3\rx", ChunkFault::Size),
            (b"3\r\nabcd\r\n", ChunkFault::Unterminated),
            (b"3\r\nabc\rx", ChunkFault::Unterminated),
            (b"10000000000000000\r\n", ChunkFault::TooLarge),
        ] {
            assert_eq!(decode([body]), Err(fault), "{}", body.escape_ascii());
        }
        let long = [&b"3;"[..], &[b'x'; MAX_HEAD]].concat();
        assert_eq!(decode([&long[..]]), Err(ChunkFault::TooLong));
        let long = [&b"0\r\n"[..], &[b'x'; MAX_HEAD + 1]].concat();
        assert_eq!(decode(long.chunks(1000)), Err(ChunkFault::TooLong));
    }

    proptest! {
        #[test]
        fn cuts_change_nothing(
            chunks in proptest::collection::vec((proptest::collection::vec(any::<u8>(), 1..40), "(;[a-z]{0,5})?", any::<bool>()), 0..6),
            cut in 1_usize..9,
        ) {
            let (mut body, mut want) = (Vec::new(), Vec::new());
            for (data, extension, is_bare) in &chunks {
                let end = if *is_bare { "\n" } else { "\r\n" };
                body.extend_from_slice(format!("{:X}{extension}{end}", data.len()).as_bytes());
                body.extend_from_slice(data);
                body.extend_from_slice(end.as_bytes());
                want.extend_from_slice(data);
            }
            body.extend_from_slice(b"0\r\nA: b\r\n\r\n");
            prop_assert_eq!(chunked_length(&body), Some(body.len()));
            let whole = decode([&body[..]]).expect("chunks");
            prop_assert_eq!(&whole.0, &want);
            prop_assert_eq!((whole.2, whole.3), (body.len(), true));
            prop_assert_eq!(decode(body.chunks(cut)).expect("chunks"), whole);
        }

        #[test]
        fn nothing_panics_and_all_is_passed(bytes in proptest::collection::vec(prop_oneof![Just(b'\r'), Just(b'\n'), Just(b'1'), Just(b'0'), Just(b';'), any::<u8>()], 0..300), cut in 1_usize..9) {
            let whole = decode([&bytes[..]]);
            prop_assert_eq!(&decode(bytes.chunks(cut)), &whole);
            if let Ok((data, text, used, is_end)) = whole {
                prop_assert!(data.len() + text.len() <= used);
                prop_assert!(is_end || used == bytes.len());
            }
        }
    }
}
