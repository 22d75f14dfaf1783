//! Reads the response to one request, in pieces of any size (RFC 9112).
//!
//! Heads of responses that came in pieces.

use crate::outcome::Failure;
use linkweir_proto::http1::{
    BodyLength, ChunkPiece, ChunkedDecoder, Fields, Framing, Outcome, SectionEnd, parse_response,
};

/// How every response begins.
const VERSION: &[u8] = b"HTTP/1.";

/// What a piece brought.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Progress {
    /// All bytes were taken, the response goes on.
    More,
    /// An interim response has ended (1xx); the next one follows.
    Interim,
    /// The head of the final response has ended, a body follows.
    Head,
    /// The response has ended.
    Done,
}

/// Where a response stands. Bodies are passed on, not kept.
#[derive(Debug)]
pub struct ResponseReader {
    state: State,
    /// Bytes of the response so far.
    received: u64,
    /// Of a head that came in pieces.
    head: Handle,
    status: u16,
    is_to_head: bool,
    keeps_alive: bool,
    is_html: bool,
}

#[derive(Debug)]
enum State {
    Head { end: SectionEnd, passed: u32 },
    Known(u64),
    Chunked(ChunkedDecoder),
    UntilClose,
    Done,
}

impl State {
    fn head() -> Self {
        Self::Head {
            end: SectionEnd::default(),
            passed: 0,
        }
    }
}

impl ResponseReader {
    /// The response to a request; `is_to_head` where that was `HEAD`.
    #[must_use]
    pub fn new(is_to_head: bool) -> Self {
        Self {
            state: State::head(),
            received: 0,
            head: Handle::default(),
            status: 0,
            is_to_head,
            keeps_alive: false,
            is_html: false,
        }
    }

    /// Takes bytes and moves `bytes` behind what was taken; `on_body` gets those of the body, without the
    /// framing of chunks. After [`Progress::More`] nothing is left; what is left after [`Progress::Done`]
    /// belongs to no response.
    ///
    /// # Errors
    /// [`Failure::Malformed`]: no HTTP response, or a framing that contradicts itself.
    /// [`Failure::NoRoom`]: `heads` is full. What is read afterwards is without meaning.
    pub fn read(
        &mut self,
        bytes: &mut &[u8],
        heads: &mut Heads,
        mut on_body: impl FnMut(&[u8]),
    ) -> Result<Progress, Failure> {
        let before = bytes.len();
        let result = match &mut self.state {
            State::Head { .. } => self.read_head(bytes, heads),
            State::Known(left) => {
                let here = usize::try_from(*left).unwrap_or(usize::MAX);
                let (data, rest) = bytes.split_at_checked(here).unwrap_or((bytes, &[]));
                *left -= data.len() as u64;
                *bytes = rest;
                let is_done = *left == 0;
                on_body(data);
                Ok(self.done_where(is_done))
            }
            State::Chunked(decoder) => loop {
                match decoder.next(bytes) {
                    Ok(ChunkPiece::Data(data)) => on_body(data),
                    Ok(ChunkPiece::Text(_)) => {}
                    Ok(ChunkPiece::More) => break Ok(Progress::More),
                    Ok(ChunkPiece::End) => break Ok(self.done_where(true)),
                    Err(_) => break Err(Failure::Malformed),
                }
            },
            State::UntilClose => {
                on_body(bytes);
                *bytes = &[];
                Ok(Progress::More)
            }
            State::Done => Ok(Progress::Done),
        };
        self.received += (before - bytes.len()) as u64;
        result
    }

    fn done_where(&mut self, is_done: bool) -> Progress {
        if !is_done {
            return Progress::More;
        }
        self.state = State::Done;
        Progress::Done
    }

    fn read_head(&mut self, bytes: &mut &[u8], heads: &mut Heads) -> Result<Progress, Failure> {
        let State::Head { end, passed } = &mut self.state else {
            return Err(Failure::Malformed);
        };
        let before = *passed as usize;
        let due = VERSION.get(before..).unwrap_or_default();
        // Garbage is reported by its first byte; it is not gathered.
        if due.iter().zip(*bytes).any(|(due, byte)| due != byte) {
            return Err(Failure::Malformed);
        }
        let found = end.find(bytes);
        let (piece, rest) = bytes
            .split_at_checked(found.unwrap_or(bytes.len()))
            .unwrap_or((bytes, &[]));
        *bytes = rest;
        let all = before.saturating_add(piece.len());
        if all > heads.max_head() {
            return Err(Failure::Malformed);
        }
        *passed = u32::try_from(all).unwrap_or(u32::MAX);
        if found.is_some() && before == 0 {
            return self.whole_head(piece);
        }
        heads
            .append(&mut self.head, piece)
            .map_err(|refused| match refused {
                Refused::TooLong => Failure::Malformed,
                Refused::NoRoom => Failure::NoRoom,
            })?;
        if found.is_none() {
            return Ok(Progress::More);
        }
        let mut handle = std::mem::take(&mut self.head);
        let result = self.whole_head(heads.get(&handle));
        heads.release(&mut handle);
        result
    }

    fn whole_head(&mut self, bytes: &[u8]) -> Result<Progress, Failure> {
        let Outcome::Complete(head, _) = parse_response(bytes) else {
            return Err(Failure::Malformed);
        };
        if head.is_interim() {
            self.state = State::head();
            return Ok(Progress::Interim);
        }
        // Nobody asked for another protocol (RFC 9110 sec. 15.2.2).
        if head.status_code == 101 {
            return Err(Failure::Malformed);
        }
        self.status = head.status_code;
        let mut framing = Framing::default();
        // The default of each version (RFC 9112 sec. 9.3).
        let mut keeps_alive = head.minor > 0;
        let mut is_coded = false;
        for field in Fields::of_head(bytes) {
            if framing.add(&field) {
                continue;
            }
            match field.name.len() {
                10 if field.is(b"connection") => {
                    for option in field.value.split(|byte| *byte == b',') {
                        let option = option.trim_ascii();
                        if option.eq_ignore_ascii_case(b"close") {
                            keeps_alive = false;
                        } else if option.eq_ignore_ascii_case(b"keep-alive") && head.minor == 0 {
                            keeps_alive = true;
                        }
                    }
                }
                16 if field.is(b"content-encoding") => {
                    is_coded = !field.value.eq_ignore_ascii_case(b"identity");
                }
                _ => {}
            }
        }
        self.is_html = !is_coded && is_html(head.content_type);
        // No body, whatever the fields say (RFC 9112 sec. 6.3 rule 1).
        let has_body = !self.is_to_head && !matches!(self.status, 204 | 304);
        let length = if has_body {
            framing
                .response(head.minor)
                .map_err(|_| Failure::Malformed)?
        } else {
            BodyLength::Known(0)
        };
        self.keeps_alive = keeps_alive && length != BodyLength::UntilClose;
        self.state = match length {
            BodyLength::Known(0) => State::Done,
            BodyLength::Known(length) => State::Known(length),
            BodyLength::Chunked => State::Chunked(ChunkedDecoder::default()),
            BodyLength::UntilClose => State::UntilClose,
        };
        let is_done = matches!(self.state, State::Done);
        Ok(if is_done {
            Progress::Done
        } else {
            Progress::Head
        })
    }

    /// The server has ended its stream: whether that was the end of the response.
    #[must_use]
    pub const fn ends_with_stream(&self) -> bool {
        matches!(self.state, State::UntilClose)
    }

    /// Whether the next byte is the first of a head.
    #[must_use]
    pub const fn is_at_start(&self) -> bool {
        matches!(self.state, State::Head { passed: 0, .. })
    }

    /// Bytes of the response so far, interim ones included.
    #[must_use]
    pub const fn received(&self) -> u64 {
        self.received
    }

    /// Status code of the final response; 0 before its head is whole.
    #[must_use]
    pub const fn status(&self) -> u16 {
        self.status
    }

    /// Whether the connection can be used again after this response.
    #[must_use]
    pub const fn keeps_alive(&self) -> bool {
        self.keeps_alive
    }

    /// Whether the body is HTML that can be read as it is.
    #[must_use]
    pub const fn is_html(&self) -> bool {
        self.is_html
    }

    /// Gives back what it holds of a head.
    pub fn release(&mut self, heads: &mut Heads) {
        heads.release(&mut self.head);
    }
}

fn is_html(content_type: &[u8]) -> bool {
    let end = content_type.iter().position(|byte| *byte == b';');
    let kind = end
        .and_then(|end| content_type.get(..end))
        .unwrap_or(content_type);
    let kind = kind.trim_ascii();
    kind.eq_ignore_ascii_case(b"text/html") || kind.eq_ignore_ascii_case(b"application/xhtml+xml")
}

/// Beginnings of heads of bounded size, one by one and all together.
///
/// Most heads come whole and never touch this.
#[derive(Debug)]
pub struct Heads {
    buffers: Vec<Vec<u8>>,
    free: Vec<u32>,
    max_head: usize,
    max_bytes: usize,
    bytes: usize,
}

/// Capacity that a buffer may keep when its head is whole.
const KEPT_BYTES: usize = 2048;

/// The buffer of a head; none at first.
#[derive(Debug, Default)]
pub(super) struct Handle(Option<u32>);

/// Why a piece was not taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Refused {
    /// The head is longer than one may be.
    TooLong,
    /// All heads together are.
    NoRoom,
}

impl Heads {
    /// Heads of at most `max_head` bytes, at most `max_bytes` of them at a time. Memory is up to twice that,
    /// for buffers grow by doubling, and 2 KiB for each buffer that waits.
    #[must_use]
    pub const fn new(max_head: usize, max_bytes: usize) -> Self {
        Self {
            buffers: Vec::new(),
            free: Vec::new(),
            max_head,
            max_bytes,
            bytes: 0,
        }
    }

    /// The longest head that is taken, bytes.
    pub(super) const fn max_head(&self) -> usize {
        self.max_head
    }

    pub(super) fn append(&mut self, handle: &mut Handle, piece: &[u8]) -> Result<(), Refused> {
        if self.get(handle).len() + piece.len() > self.max_head {
            return Err(Refused::TooLong);
        }
        if self.bytes + piece.len() > self.max_bytes {
            return Err(Refused::NoRoom);
        }
        let number = match handle.0 {
            Some(number) => number,
            None => self.take().ok_or(Refused::NoRoom)?,
        };
        handle.0 = Some(number);
        let buffer = self.buffers.get_mut(number as usize);
        buffer.ok_or(Refused::NoRoom)?.extend_from_slice(piece);
        self.bytes += piece.len();
        Ok(())
    }

    fn take(&mut self) -> Option<u32> {
        if let Some(number) = self.free.pop() {
            return Some(number);
        }
        let number = u32::try_from(self.buffers.len()).ok()?;
        self.buffers.push(Vec::new());
        Some(number)
    }

    pub(super) fn get(&self, handle: &Handle) -> &[u8] {
        handle
            .0
            .and_then(|number| self.buffers.get(number as usize))
            .map_or(&[], Vec::as_slice)
    }

    pub(super) fn release(&mut self, handle: &mut Handle) {
        let Some(number) = handle.0.take() else {
            return;
        };
        if let Some(buffer) = self.buffers.get_mut(number as usize) {
            self.bytes -= buffer.len();
            buffer.clear();
            buffer.shrink_to(KEPT_BYTES);
            self.free.push(number);
        }
    }

    /// Bytes of heads that are held.
    #[must_use]
    pub const fn held_bytes(&self) -> usize {
        self.bytes
    }

    pub(super) fn memory_bytes(&self) -> usize {
        let buffers: usize = self.buffers.iter().map(Vec::capacity).sum();
        buffers
            + self.buffers.capacity() * size_of::<Vec<u8>>()
            + self.free.capacity() * size_of::<u32>()
    }
}
