//! Connections that are read in order: HTTP/2, and TLS and QUIC that the secrets of a key log open.
//!
//! Everything else is read from single segments. A connection gets here by how one of its segments begins, and then
//! all of its segments come here, because their ports are noted where those of watched heads are. What TLS holds of
//! HTTP/1.x goes back to the matcher, as segments of a connection without TLS.
//!
//! Memory is bounded by connections, by streams and by bytes; who was quiet for longest leaves, and is counted.

mod grpc;
mod head;
mod http2;
mod http3;
mod layers;
mod quic;
mod read;
mod streams;

pub(crate) use quic::{LEAST_FIRST, is_first};

use std::sync::Arc;

use linkweir_keys::{About, LiveLog, Shared};
use linkweir_proto::http2::PREFACE;
use linkweir_proto::http2::direction::first_chain;
use linkweir_proto::http2::hpack::Strings;
use linkweir_proto::tls::{ContentType, RecordHeader, message_type};
use linkweir_record::{HeaderNames, HttpRow, Source, Web};
use linkweir_stream::InOrder;
use linkweir_table::{Chunks, Id, Table};
use linkweir_wire::{SeqNumber, Side};

use crate::config::HttpConfig;
use crate::key::Connection;
use http2::Http2;
use streams::Common;

/// Connections that are followed at once.
const MAX_CONNECTIONS: usize = 16_384;
/// Bytes that they may keep, of tables and of frames that are not complete.
const MAX_BYTES: usize = 160 << 20;
/// Bytes of segments behind gaps, of all connections.
const LATE_BYTES: usize = 32 << 20;
/// Bytes of TLS records that are not complete, of all connections.
const SEALED_BYTES: usize = 64 << 20;

/// What a connection is.
#[derive(Debug)]
enum Layer {
    Http2(Box<Http2>),
    Tls(Box<linkweir_keys::Connection>, Inside),
}

/// What is inside of TLS.
#[derive(Debug)]
enum Inside {
    /// Nothing was said yet; whether data of client and server was lost, and where they are if it is HTTP/1.x.
    Unknown {
        is_lost: [bool; 2],
        next: [u32; 2],
    },
    Http2(Box<Http2>),
    /// HTTP/1.x of client and server.
    Http1(Box<[Plain; 2]>),
}

/// Where the data of a side has come, in numbers of a connection without TLS.
#[derive(Debug, Clone, Copy, Default)]
struct Plain {
    next: u32,
    /// Numbers of the connection with TLS, and where the data was before them; the oldest is replaced.
    marks: [(u32, u32); 8],
    count: usize,
}

impl Plain {
    const fn new(next: u32) -> Self {
        Self {
            next,
            marks: [(0, 0); 8],
            count: 0,
        }
    }

    /// All data before `number` is before [`Plain::next`].
    fn mark(&mut self, number: u32) {
        // Several pieces of data may end with one segment: the last of them counts.
        if let Some(last) = self.count.checked_sub(1)
            && let Some(mark) = self.marks.get_mut(last % 8)
            && mark.0 == number
        {
            mark.1 = self.next;
            return;
        }
        if let Some(mark) = self.marks.get_mut(self.count % 8) {
            *mark = (number, self.next);
        }
        self.count += 1;
    }

    /// Where the data before `number` ends; nothing where that is not remembered.
    fn before(&self, number: SeqNumber) -> Option<u32> {
        let marks = self.marks.iter().take(self.count);
        let before = marks.filter(|(at, _)| !number.before(SeqNumber(*at)));
        let last = before.min_by_key(|(at, _)| (number - SeqNumber(*at)).unsigned_abs());
        last.map(|(_, plain)| *plain)
    }
}

impl Layer {
    /// Bytes that it keeps; those of TLS records are counted by themselves.
    fn held(&self) -> usize {
        match self {
            Self::Http2(http2) | Self::Tls(_, Inside::Http2(http2)) => http2.held(),
            Self::Tls(..) => 0,
        }
    }
}

/// A connection that is followed.
#[derive(Debug)]
struct Followed {
    client: InOrder,
    server: InOrder,
    /// Number of the first byte of the client.
    first: SeqNumber,
    /// Up to where client and server were read.
    read_to: [SeqNumber; 2],
    layer: Layer,
    /// Bytes of it that are counted.
    held: usize,
}

/// What the table has of a connection: also while it is being read.
#[derive(Debug)]
struct Entry {
    /// Client first.
    connection: Connection,
    changed_ns: u64,
    state: Option<Box<Followed>>,
    /// Of TLS with HTTP/1.x inside: what its records say of it.
    label: Option<Box<About>>,
}

/// Segments that wait for one before them.
#[derive(Debug)]
struct Late {
    pool: Chunks,
    scratch: Vec<u8>,
}

/// TLS records that are not complete.
#[derive(Debug, Default)]
struct Sealed {
    /// Bytes of them.
    held: usize,
    scratch: Vec<u8>,
}

impl Sealed {
    fn shared<'a>(&'a mut self, log: &'a LiveLog) -> Shared<'a> {
        Shared {
            log,
            held: &mut self.held,
            max_held: SEALED_BYTES,
            scratch: &mut self.scratch,
        }
    }
}

/// What is needed to read one, whichever it is.
#[derive(Debug)]
struct Reading {
    sealed: Sealed,
    strings: Strings,
    common: Common,
}

#[derive(Debug)]
struct Tools {
    late: Late,
    reading: Reading,
}

/// All connections that are followed.
#[derive(Debug)]
pub(crate) struct Connections {
    seed: u64,
    keys: Option<Arc<LiveLog>>,
    awaits_keys: bool,
    table: Table<Entry>,
    /// Of QUIC.
    quic: Table<quic::Entry>,
    tools: Option<Box<Tools>>,
    /// Streams that may wait, of all connections.
    max_streams: usize,
    headers: HeaderNames,
    held: usize,
}

/// How a connection begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Beginning {
    /// With a client's preface of HTTP/2.
    Preface,
    /// With the first message of a TLS client.
    Hello,
    /// It has begun before: these are frames of HTTP/2.
    Late,
}

impl Beginning {
    /// How a segment that is not of HTTP/1.x looks.
    #[cold]
    pub(crate) fn of(payload: &[u8], has_keys: bool) -> Option<Self> {
        if payload.starts_with(PREFACE) {
            return Some(Self::Preface);
        }
        let header = RecordHeader::parse(*payload.first_chunk()?);
        if let Some(header) = header.filter(|_| has_keys)
            && header.content == ContentType::Handshake
            && payload.get(RecordHeader::LEN) == Some(&message_type::CLIENT_HELLO)
        {
            return Some(Self::Hello);
        }
        // The length, of three bytes, is at most 16,384 before anybody allows more.
        (payload.first() == Some(&0) && first_chain(payload) == Some(0)).then_some(Self::Late)
    }
}

impl Connections {
    pub(crate) fn new(config: &HttpConfig) -> Self {
        Self {
            seed: config.hash_seed,
            keys: config.keys.clone(),
            awaits_keys: config.awaits_keys,
            // Memory is reserved, not touched.
            table: Table::with_capacity(MAX_CONNECTIONS),
            quic: quic::table(),
            tools: None,
            max_streams: config.max_pending,
            headers: config.headers.clone(),
            held: 0,
        }
    }

    /// Whether no connection is followed.
    #[inline]
    pub(crate) const fn is_empty(&self) -> bool {
        self.table.is_empty()
    }

    /// Whether no connection of QUIC is followed either.
    pub(crate) const fn follows_none(&self) -> bool {
        self.table.is_empty() && self.quic.is_empty()
    }

    /// Whether connections of TLS are of interest.
    pub(crate) fn has_keys(&self) -> bool {
        let keys = self.keys.as_ref();
        keys.is_some_and(|keys| self.awaits_keys || keys.grown() > 0)
    }

    /// The connection of a segment's direction, and who sent it.
    pub(crate) fn find(&self, direction: &Connection) -> Option<(Id, Side)> {
        let is_it = |entry: &Entry| entry.connection.sender(direction).is_some();
        let id = self.table.find(direction.file_under(self.seed), is_it)?;
        let side = self.table.get(id)?.connection.sender(direction)?;
        Some((id, side))
    }

    /// Whether secrets have opened a connection.
    pub(crate) fn has_opened(&self, direction: &Connection) -> bool {
        if self.table.is_empty() {
            return false;
        }
        let found = self.find(direction);
        let state = found.and_then(|(id, _)| self.table.get(id)?.state.as_deref());
        state.is_some_and(|followed| match &followed.layer {
            Layer::Http2(_) => true,
            Layer::Tls(tls, _) => tls.counters().opened > 0,
        })
    }

    /// What the records of a connection say of it, where it is one of TLS with HTTP/1.x inside.
    pub(crate) fn label(&self, row: &HttpRow) -> Option<Web<'_>> {
        if self.table.is_empty() {
            return None;
        }
        let (id, _) = self.find(&Connection::of_row(row))?;
        self.table.get(id)?.label.as_deref().map(columns)
    }

    /// Begins to follow a connection, whose client and server go on at these numbers; the caller has seen to it that
    /// there is room.
    fn begin(
        &mut self,
        how: Beginning,
        connection: Connection,
        [client, server]: [SeqNumber; 2],
        ts_ns: u64,
    ) {
        let layer = match how {
            Beginning::Preface => Layer::Http2(Box::new(Http2::new())),
            Beginning::Late => Layer::Http2(Box::new(Http2::joined_late())),
            Beginning::Hello => Layer::Tls(
                Box::default(),
                Inside::Unknown {
                    is_lost: [false; 2],
                    // Numbers that no earlier connection between these ports has had.
                    next: [client.0, server.0],
                },
            ),
        };
        let entry = Entry {
            connection,
            changed_ns: ts_ns,
            state: Some(Box::new(Followed {
                client: InOrder::new(client),
                server: InOrder::new(server),
                first: client,
                read_to: [client, server],
                layer,
                held: 0,
            })),
            label: None,
        };
        self.ensure_tools();
        let hash = connection.file_under(self.seed);
        // There is room.
        drop(self.table.insert(hash, entry));
    }

    /// Makes what is needed to read connections, with the first one.
    fn ensure_tools(&mut self) {
        let max_streams = self.max_streams;
        self.tools.get_or_insert_with(|| {
            Box::new(Tools {
                late: Late {
                    pool: Chunks::with_capacity(LATE_BYTES / 256),
                    scratch: Vec::new(),
                },
                reading: Reading {
                    sealed: Sealed::default(),
                    strings: Strings::default(),
                    common: Common::new(max_streams, &self.headers),
                },
            })
        });
    }

    /// The connection without a segment for longest, where one has to go, or where it was silent since `limit_ns`.
    fn leaving(&self, limit_ns: Option<u64>) -> Option<Id> {
        let (id, entry) = self.table.oldest()?;
        match limit_ns {
            Some(limit_ns) => (entry.changed_ns <= limit_ns).then_some(id),
            None => (self.table.is_full() || self.held > MAX_BYTES).then_some(id),
        }
    }
}

/// What all records of a TLS connection have in common.
fn columns(about: &About) -> Web<'_> {
    Web {
        source: Source::Keys,
        tls_version: about.version,
        sni: &about.server_name,
        ja4: about.ja4.map(|ja4| *ja4.as_bytes()),
        alpn: &about.alpn,
        ..Web::default()
    }
}
