//! One direction of a connection, frame by frame, from bytes in order.

#[cfg(test)]
mod tests;

use super::PREFACE;
use super::frame::{DEFAULT_LENGTH, FrameHeader, HEADER, Kind, content, flag, number, promised};
use super::hpack::{Decoded, Decoder, Fault, Field, Strings};

/// The most that is kept of one header block, as of a head of HTTP/1.
pub const MAX_BLOCK: usize = 64 << 10;
/// Frames that one header block may come in: an endless row of CONTINUATION is an attack (RFC 9113 sec. 10.5).
pub const MAX_PARTS: u32 = 128;
/// Headers in a row that must be possible before bytes are taken for frames again.
const CHAIN: usize = 3;

/// A header block, when it is complete.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Headers {
    /// The stream it came on.
    pub stream: u32,
    /// The stream of which it is the request, where the server promises an answer without having been asked.
    pub promised: Option<u32>,
    /// Whether its sender says nothing more on the stream.
    pub ends_stream: bool,
    /// Bytes of the block on the wire.
    pub len: u32,
    /// When its first byte was seen, nanoseconds since the epoch.
    pub from_ns: u64,
    /// When its last byte was seen.
    pub to_ns: u64,
    /// What its fields came to.
    pub fields: Result<Decoded, Fault>,
}

/// What a direction says.
pub trait Listener {
    /// Which fields are of use, by their names; the value of another one may come empty.
    fn wants(&self) -> fn(&[u8]) -> bool {
        |_| true
    }
    /// A field of the block that [`Listener::headers`] completes.
    fn field(&mut self, field: Field<'_>);
    /// A header block.
    fn headers(&mut self, headers: &Headers);
    /// Content of a stream, as far as it was captured: `len` bytes on the wire without padding. More may follow of the
    /// same frame; `ends_stream` comes with the last.
    fn data(&mut self, stream: u32, bytes: &[u8], len: u32, ends_stream: bool, ts_ns: u64);
    /// A stream ends by an error (RFC 9113 sec. 7).
    fn reset(&mut self, stream: u32, error: u32, ts_ns: u64);
    /// The connection ends; streams above `last` were not looked at.
    fn goaway(&mut self, last: u32, ts_ns: u64);
}

/// What was not understood, by cause.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct DirectionCounters {
    /// Times at which bytes were missing that were not content: what the table holds is not known any more.
    pub lost: u64,
    /// Bytes passed over until frames were found again.
    pub skipped: u64,
    /// Header blocks that were too long, in too many parts, or not decodable.
    pub bad_blocks: u64,
    /// Frames that no receiver takes; their connection is over.
    pub bad_frames: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// Of the preface so many bytes were there.
    Preface(usize),
    /// Of the header of a frame so many bytes were there.
    Header(usize),
    /// A payload is due that is read as a whole.
    Whole(FrameHeader),
    /// The length of the padding of content is due.
    Padding(FrameHeader),
    /// So many bytes of content follow, and of padding behind them.
    Content {
        header: FrameHeader,
        left: u32,
        padding: u32,
    },
    /// So many bytes follow that nobody needs.
    Passed(u32),
    /// Where frames begin is not known.
    Lost,
}

/// The reader of one direction.
///
/// Shape: the dynamic table; of a frame or header block that is not complete up to [`MAX_BLOCK`] bytes each, and
/// no buffer else. Cost: what a segment holds as a whole is not copied.
#[derive(Debug, Clone)]
pub struct Direction {
    state: State,
    decoder: Decoder,
    /// The header of a frame that is not complete.
    header: [u8; HEADER],
    /// The payload of a frame that is not complete.
    payload: Vec<u8>,
    block: Option<Block>,
    /// When the first byte of the frame was seen.
    frame_ns: u64,
    counters: DirectionCounters,
}

/// A header block whose last part is still to come.
#[derive(Debug, Clone)]
struct Block {
    headers: Headers,
    bytes: Vec<u8>,
    parts: u32,
    is_long: bool,
}

impl Direction {
    /// Of a client, from the preface on.
    #[must_use]
    pub fn of_client() -> Self {
        Self::in_state(State::Preface(0), Decoder::new())
    }

    /// Of a server, from its first frame on.
    #[must_use]
    pub fn of_server() -> Self {
        Self::in_state(State::Header(0), Decoder::new())
    }

    /// Of either, in the middle of the connection.
    #[must_use]
    pub fn joined_late() -> Self {
        Self::in_state(State::Lost, Decoder::joined_late())
    }

    const fn in_state(state: State, decoder: Decoder) -> Self {
        Self {
            state,
            decoder,
            header: [0; HEADER],
            payload: Vec::new(),
            block: None,
            frame_ns: 0,
            counters: DirectionCounters {
                lost: 0,
                skipped: 0,
                bad_blocks: 0,
                bad_frames: 0,
            },
        }
    }

    /// What was not understood so far.
    #[must_use]
    pub const fn counters(&self) -> DirectionCounters {
        self.counters
    }

    /// Bytes that it keeps.
    #[must_use]
    pub fn held(&self) -> usize {
        let block = self
            .block
            .as_ref()
            .map_or(0, |block| block.bytes.capacity());
        self.decoder.held() + self.payload.capacity() + block
    }

    /// How many bytes come next whose content is of no use here, and the stream that they belong to; 0 is none.
    #[must_use]
    pub const fn passes(&self) -> Option<(u32, u32)> {
        match &self.state {
            State::Content { header, left, .. } => Some((*left, header.stream)),
            State::Passed(left) => Some((*left, 0)),
            _ => None,
        }
    }

    /// How many bytes come next that are looked at together; `None` where frames have to be found again.
    #[must_use]
    pub fn needs(&self) -> Option<usize> {
        match &self.state {
            State::Preface(had) => Some(PREFACE.len() - had),
            State::Header(had) => Some(HEADER - had),
            State::Whole(header) => {
                Some((header.length as usize).saturating_sub(self.payload.len()))
            }
            State::Padding(_) => Some(1),
            State::Content { .. } | State::Passed(_) | State::Lost => None,
        }
    }

    /// So many bytes are missing: lost, or not captured.
    pub fn gap(&mut self, bytes: u32, ts_ns: u64, listener: &mut impl Listener) {
        let mut missing = bytes;
        if let State::Content { left, .. } = &self.state {
            let of_content = missing.min(*left);
            missing -= of_content;
            self.content(&[], of_content, ts_ns, listener);
        }
        match &mut self.state {
            State::Passed(left) if missing <= *left => *left -= missing,
            _ if missing == 0 => {}
            _ => self.lose(),
        }
        self.settle();
    }

    /// Bytes are missing, nobody knows how many.
    pub fn lose(&mut self) {
        self.counters.lost += u64::from(self.state != State::Lost);
        self.decoder.forget();
        self.block = None;
        self.payload = Vec::new();
        self.state = State::Lost;
    }

    /// No receiver takes this frame: what follows is looked at anew.
    fn refuse(&mut self) {
        self.counters.bad_frames += 1;
        self.lose();
    }

    /// The next bytes, in order.
    pub fn push(
        &mut self,
        bytes: &[u8],
        ts_ns: u64,
        strings: &mut Strings,
        listener: &mut impl Listener,
    ) {
        let mut rest = bytes;
        if self.state == State::Lost {
            let at = first_chain(rest);
            self.counters.skipped += at.unwrap_or(rest.len()) as u64;
            let Some(behind) = at.and_then(|at| rest.get(at..)) else {
                return;
            };
            (self.state, rest) = (State::Header(0), behind);
        }
        while !rest.is_empty() && self.state != State::Lost {
            let taken = self.step(rest, ts_ns, strings, listener);
            rest = rest.get(taken..).unwrap_or_default();
            self.settle();
        }
        if self.state == State::Lost {
            self.counters.skipped += rest.len() as u64;
        }
    }

    /// What takes no more bytes is over.
    fn settle(&mut self) {
        if self.state == State::Passed(0) {
            self.state = State::Header(0);
        }
    }

    /// Takes some of the bytes, at least one where the state is not [`State::Lost`] afterwards.
    fn step(
        &mut self,
        rest: &[u8],
        ts_ns: u64,
        strings: &mut Strings,
        listener: &mut impl Listener,
    ) -> usize {
        match self.state {
            State::Preface(had) => {
                let due = PREFACE.get(had..).unwrap_or_default();
                let (taken, _) = rest.split_at(due.len().min(rest.len()));
                if !due.starts_with(taken) {
                    self.refuse();
                    return 0;
                }
                let have = had + taken.len();
                self.state = match have == PREFACE.len() {
                    true => State::Header(0),
                    false => State::Preface(have),
                };
                taken.len()
            }
            State::Header(had) => {
                if had == 0 {
                    self.frame_ns = ts_ns;
                }
                let due = self.header.get_mut(had..).unwrap_or_default();
                let taken = due.len().min(rest.len());
                for (to, from) in due.iter_mut().zip(rest) {
                    *to = *from;
                }
                self.state = State::Header(had + taken);
                if had + taken == HEADER {
                    self.begin(FrameHeader::parse(&self.header), ts_ns, strings, listener);
                }
                taken
            }
            State::Whole(header) => self.gather(&header, rest, ts_ns, strings, listener),
            State::Padding(header) => {
                let padding = rest.first().copied().map_or(0, u32::from);
                match header.length.checked_sub(1 + padding) {
                    Some(left) => self.begin_content(header, left, padding, ts_ns, listener),
                    None => self.refuse(),
                }
                1
            }
            State::Content { left, .. } => {
                let taken = rest.len().min(left as usize);
                let (content, _) = rest.split_at(taken);
                self.content(
                    content,
                    u32::try_from(taken).unwrap_or(left),
                    ts_ns,
                    listener,
                );
                taken
            }
            State::Passed(left) => {
                let taken = u32::try_from(rest.len()).unwrap_or(u32::MAX).min(left);
                self.state = State::Passed(left - taken);
                taken as usize
            }
            State::Lost => rest.len(),
        }
    }

    /// A frame begins.
    fn begin(
        &mut self,
        header: FrameHeader,
        ts_ns: u64,
        strings: &mut Strings,
        listener: &mut impl Listener,
    ) {
        // Between the parts of a header block nothing else comes (RFC 9113 sec. 4.3).
        let goes_on = self.block.as_ref().map(|block| block.headers.stream);
        let is_in_order = match header.kind {
            Kind::Continuation => goes_on == Some(header.stream),
            _ => goes_on.is_none(),
        };
        if !is_in_order || !header.is_valid(LONGEST) {
            self.refuse();
            return;
        }
        match header.kind {
            Kind::Data if header.has(flag::PADDED) && header.length > 0 => {
                self.state = State::Padding(header);
            }
            Kind::Data => self.begin_content(header, header.length, 0, ts_ns, listener),
            Kind::Headers
            | Kind::PushPromise
            | Kind::Continuation
            | Kind::RstStream
            | Kind::GoAway => {
                self.state = State::Whole(header);
                if header.length == 0 {
                    self.whole(&header, &[], ts_ns, strings, listener);
                } else if header.length as usize > MAX_BLOCK {
                    self.counters.bad_blocks += 1;
                    self.decoder.forget();
                    self.block = None;
                    self.state = State::Passed(header.length);
                }
            }
            _ => self.state = State::Passed(header.length),
        }
    }

    fn begin_content(
        &mut self,
        header: FrameHeader,
        left: u32,
        padding: u32,
        ts_ns: u64,
        listener: &mut impl Listener,
    ) {
        self.state = State::Content {
            header,
            left,
            padding,
        };
        if left == 0 {
            self.content(&[], 0, ts_ns, listener);
        }
    }

    /// So many bytes of the content that is due.
    fn content(&mut self, bytes: &[u8], len: u32, ts_ns: u64, listener: &mut impl Listener) {
        let State::Content {
            header,
            left,
            padding,
        } = &mut self.state
        else {
            return;
        };
        *left -= len;
        let ends = *left == 0 && header.has(flag::END_STREAM);
        listener.data(header.stream, bytes, len, ends, ts_ns);
        if *left == 0 {
            self.state = State::Passed(*padding);
        }
    }

    fn gather(
        &mut self,
        header: &FrameHeader,
        rest: &[u8],
        ts_ns: u64,
        strings: &mut Strings,
        listener: &mut impl Listener,
    ) -> usize {
        let due = header.length as usize - self.payload.len();
        let Some((taken, _)) = rest.split_at_checked(due) else {
            self.payload.extend_from_slice(rest);
            return rest.len();
        };
        if self.payload.is_empty() {
            self.whole(header, taken, ts_ns, strings, listener);
        } else {
            let mut payload = std::mem::take(&mut self.payload);
            payload.extend_from_slice(taken);
            self.whole(header, &payload, ts_ns, strings, listener);
        }
        due
    }

    /// A frame whose payload is complete.
    fn whole(
        &mut self,
        header: &FrameHeader,
        payload: &[u8],
        ts_ns: u64,
        strings: &mut Strings,
        listener: &mut impl Listener,
    ) {
        self.state = State::Header(0);
        let Some(part) = content(header, payload) else {
            self.refuse();
            return;
        };
        match header.kind {
            Kind::RstStream => {
                listener.reset(header.stream, number(payload).unwrap_or_default(), ts_ns);
                return;
            }
            Kind::GoAway => {
                let last = number(payload).unwrap_or_default() & 0x7FFF_FFFF;
                listener.goaway(last, ts_ns);
                return;
            }
            _ => {}
        }
        let mut block = self.block.take().unwrap_or_else(|| Block {
            headers: Headers {
                stream: header.stream,
                promised: (header.kind == Kind::PushPromise)
                    .then(|| promised(header, payload))
                    .flatten(),
                ends_stream: header.kind == Kind::Headers && header.has(flag::END_STREAM),
                len: 0,
                from_ns: self.frame_ns,
                to_ns: ts_ns,
                fields: Ok(Decoded::default()),
            },
            bytes: Vec::new(),
            parts: 0,
            is_long: false,
        });
        block.parts += 1;
        let len = u32::try_from(part.len()).unwrap_or(u32::MAX);
        block.headers.len = block.headers.len.saturating_add(len);
        block.is_long |= block.bytes.len() + part.len() > MAX_BLOCK || block.parts > MAX_PARTS;
        if !header.has(flag::END_HEADERS) {
            // Of one that is too long nothing more is kept, but its end is waited for.
            if block.is_long {
                block.bytes = Vec::new();
            } else {
                block.bytes.extend_from_slice(part);
            }
            self.block = Some(block);
            return;
        }
        let bytes = if block.bytes.is_empty() {
            part
        } else {
            block.bytes.extend_from_slice(part);
            &block.bytes
        };
        block.headers.fields = if block.is_long {
            self.decoder.forget();
            Err(Fault::Long)
        } else {
            let wants = listener.wants();
            self.decoder
                .decode(bytes, strings, wants, |field| listener.field(field))
        };
        block.headers.to_ns = ts_ns;
        self.counters.bad_blocks += u64::from(block.headers.fields.is_err());
        listener.headers(&block.headers);
    }
}

/// The longest payload of any frame: what SETTINGS can allow (RFC 9113 sec. 4.2).
const LONGEST: u32 = (1 << 24) - 1;

/// Where frames begin again: [`CHAIN`] possible headers one behind the other, or fewer whose last frame ends with the
/// bytes, as frames often do with segments.
#[must_use]
pub fn first_chain(bytes: &[u8]) -> Option<usize> {
    (0..bytes.len().saturating_sub(HEADER - 1)).find(|at| {
        let mut place = *at;
        for _ in 0..CHAIN {
            let header = bytes.get(place..).and_then(<[u8]>::first_chunk);
            let Some(header) = header.map(FrameHeader::parse) else {
                return place == bytes.len() && place > *at;
            };
            let is_known = !matches!(header.kind, Kind::Other(_));
            if !is_known || !header.is_valid(DEFAULT_LENGTH) {
                return false;
            }
            place += HEADER + header.length as usize;
        }
        true
    })
}
