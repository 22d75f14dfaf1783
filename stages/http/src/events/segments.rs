//! The events of a response of HTTP/1.x, found in the segments behind its head.

use linkweir_proto::http1::{BodyLength, ChunkPiece, ChunkedDecoder};
use linkweir_stream::{InOrder, Piece, Segment};
use linkweir_table::Chunks;
use linkweir_wire::SeqNumber;

use super::{Events, Format};

/// What is content of what follows the head.
#[derive(Debug)]
enum Framing {
    /// So many bytes.
    Length(u64),
    /// What is in chunks (RFC 9112 sec. 7.1).
    Chunked(ChunkedDecoder),
    /// Everything until the connection closes.
    Close,
    /// It is not known any more where chunks begin.
    Lost,
}

impl Framing {
    /// The next bytes: those that are content go to `events`.
    fn push(&mut self, bytes: &[u8], ts_ns: u64, events: &mut Events) {
        match self {
            Self::Length(left) => {
                let here = usize::try_from(*left).unwrap_or(usize::MAX);
                let content = bytes.get(..here).unwrap_or(bytes);
                *left -= content.len() as u64;
                events.content(content, ts_ns);
            }
            Self::Chunked(chunks) => {
                let mut rest = bytes;
                loop {
                    match chunks.next(&mut rest) {
                        Ok(ChunkPiece::Data(data)) => events.content(data, ts_ns),
                        Ok(ChunkPiece::Text(_)) => {}
                        Ok(ChunkPiece::More | ChunkPiece::End) => return,
                        Err(_) => {
                            *self = Self::Lost;
                            return events.miss(None);
                        }
                    }
                }
            }
            Self::Close => events.content(bytes, ts_ns),
            Self::Lost => {}
        }
    }

    /// So many bytes are missing.
    fn miss(&mut self, len: u32, events: &mut Events) {
        let is_known = match self {
            Self::Length(left) => {
                *left = left.saturating_sub(u64::from(len));
                true
            }
            Self::Chunked(chunks) => chunks.pass_missing(u64::from(len)),
            Self::Close => true,
            Self::Lost => false,
        };
        if is_known {
            return events.miss(Some(len));
        }
        *self = Self::Lost;
        events.miss(None);
    }
}

/// The content of a response that is a stream, as its segments come.
#[derive(Debug)]
pub(crate) struct Content {
    reader: InOrder,
    framing: Framing,
    pub(crate) events: Events,
}

impl Content {
    /// Content that begins at `begin`, and ends as the head says.
    pub(crate) fn new(format: Format, length: BodyLength, begin: SeqNumber) -> Self {
        let framing = match length {
            _ if format == Format::WebSocket => Framing::Close,
            BodyLength::Known(length) => Framing::Length(length),
            BodyLength::Chunked => Framing::Chunked(ChunkedDecoder::default()),
            BodyLength::UntilClose => Framing::Close,
        };
        Self {
            reader: InOrder::new(begin),
            framing,
            events: Events::new(format),
        }
    }

    /// A segment of the server; what comes too early lies in `pool`.
    pub(crate) fn take(&mut self, segment: &Segment<'_>, pool: &mut Chunks, scratch: &mut Vec<u8>) {
        let (framing, events) = (&mut self.framing, &mut self.events);
        let deliver = |piece: Piece<'_>| framing.piece(piece, events);
        self.reader.take(segment, pool, scratch, deliver);
    }

    /// The client has everything before `ack`.
    pub(crate) fn acknowledged(
        &mut self,
        ack: SeqNumber,
        now_ns: u64,
        pool: &mut Chunks,
        scratch: &mut Vec<u8>,
    ) {
        let (framing, events) = (&mut self.framing, &mut self.events);
        let deliver = |piece: Piece<'_>| framing.piece(piece, events);
        self.reader
            .acknowledged(ack, now_ns, pool, scratch, deliver);
    }

    /// Nothing more comes.
    pub(crate) fn finish(&mut self, pool: &mut Chunks, scratch: &mut Vec<u8>) {
        let (framing, events) = (&mut self.framing, &mut self.events);
        let deliver = |piece: Piece<'_>| framing.piece(piece, events);
        self.reader.finish(pool, scratch, deliver);
        self.events.end();
    }

    /// Whether the framing says that all of it was read; nothing where it says nothing.
    pub(crate) fn is_over(&self) -> Option<bool> {
        match &self.framing {
            Framing::Chunked(chunks) => Some(chunks.is_at_end()),
            Framing::Length(_) | Framing::Close | Framing::Lost => None,
        }
    }
}

impl Framing {
    fn piece(&mut self, piece: Piece<'_>, events: &mut Events) {
        match piece {
            Piece::Bytes(bytes, ts_ns) => self.push(bytes, ts_ns, events),
            Piece::Gap(len, _) => self.miss(len, events),
        }
    }
}
