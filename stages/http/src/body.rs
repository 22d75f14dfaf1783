//! Time to last byte: finished transactions that wait for the end of their response's body.
//!
//! One entry a connection, with `--ttlb`: then every data segment is looked up here; without it only those whose ports
//! are those of a stream (`events`). Where the head declares a length, the last byte has a known sequence number; a
//! chunked body ends with a segment that ends with the last chunk, and a body without a length ends with the connection.

use linkweir_record::{HttpBatch, HttpRow, HttpState, RecordBatch, Text, Web};
use linkweir_stream::Segment;
use linkweir_table::{Chain, Chunks, Id, Table};
use linkweir_wire::{SeqNumber, TcpFlags};

use crate::events::{Content, MAX_STREAMS};
use crate::key::{Connection, ConnectionHash, Meaning};

/// Where a body ends, with what the segment of the head already told.
#[derive(Debug, Clone, Copy)]
pub(crate) struct BodyEnd {
    /// The rule.
    pub(crate) rule: EndRule,
    /// Sequence number of the response's first byte.
    pub(crate) match_seq: SeqNumber,
    /// Sequence number after the payload of the segment that held the head.
    pub(crate) seen_to: SeqNumber,
    /// Time of that segment, nanoseconds.
    pub(crate) seen_ns: u64,
}

/// What ends a body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum EndRule {
    /// So many bytes after what was seen.
    After(u64),
    /// The last chunk.
    LastChunk,
    /// The end of the connection.
    Close,
}

#[derive(Debug)]
struct Body {
    connection: Connection,
    rule: EndRule,
    /// Where the response begins.
    match_seq: SeqNumber,
    /// Where a later one begins that was seen before this one.
    until: Option<SeqNumber>,
    seen_to: SeqNumber,
    last_ns: u64,
    row: HttpRow,
    text: Chain,
    /// Lengths of its texts up to the header fields of the request; those of the response are the rest.
    lens: [u16; 7],
    /// Of a stream: what follows its head.
    content: Option<Box<Content>>,
}

/// The records that wait.
#[derive(Debug)]
pub(crate) struct Bodies {
    seed: u64,
    table: Table<Body>,
    texts: Chunks,
    scratch: Vec<u8>,
    /// Records that left while another was put in, and the events of each that is a stream.
    spilled: HttpBatch,
    spilled_events: Vec<Option<Box<Content>>>,
    /// Streams that wait.
    streams: usize,
}

fn file_under(seed: u64, connection: &Connection) -> u32 {
    let hash = ConnectionHash::new(seed, connection).with(Meaning::Direction, 0);
    u32::try_from(hash >> 32).unwrap_or_default()
}

impl Body {
    /// Whether what the server sends at `seq` may belong to this response, not to one before or
    /// after it.
    fn reaches(&self, seq: SeqNumber) -> bool {
        !seq.before(self.match_seq) && self.until.is_none_or(|until| seq.before(until))
    }
}

impl Bodies {
    /// Room for `capacity` records; `seed` is that of the hash.
    pub(crate) fn new(capacity: usize, seed: u64) -> Self {
        Self {
            seed,
            table: Table::with_capacity(capacity),
            texts: Chunks::with_capacity(capacity.saturating_mul(2)),
            scratch: Vec::new(),
            spilled: HttpBatch::default(),
            spilled_events: Vec::new(),
            streams: 0,
        }
    }

    /// Whether any stream waits.
    #[inline]
    pub(crate) const fn has_streams(&self) -> bool {
        self.streams > 0
    }

    /// Whether another stream may wait.
    pub(crate) const fn has_room_for_stream(&self) -> bool {
        self.streams < MAX_STREAMS
    }

    /// Begins to find the events of a stream, of which `begun` is with the head.
    pub(crate) fn begin_content(&mut self, content: &mut Content, begun: &Segment<'_>) {
        content.take(begun, &mut self.texts, &mut self.scratch);
    }

    /// Holds a record until its body ends; gives it back where that has happened already.
    ///
    /// A record of the same connection that still waits is over, unless its response is a later one:
    /// see [`Bodies::take_spilled`].
    pub(crate) fn hold(
        &mut self,
        mut row: HttpRow,
        text: &Text<'_>,
        fields: [&[u8]; 2],
        end: BodyEnd,
        mut content: Option<Box<Content>>,
    ) -> Option<(HttpRow, Option<Box<Content>>)> {
        let connection = Connection::of_row(&row);
        let later = self.find_where(&connection, |body| end.match_seq.before(body.match_seq));
        let until = later
            .and_then(|id| self.table.get(id))
            .map(|body| body.match_seq);
        if until.is_none() {
            self.end_at(&connection, end.match_seq);
        }
        if end.rule == EndRule::After(0) {
            row.ttlb_ns = span(&row, end.seen_ns);
            if let Some(content) = &mut content {
                content.finish(&mut self.texts, &mut self.scratch);
            }
            return Some((row, content));
        }
        let mut chain = Chain::default();
        let parts = [
            text.method,
            text.uri,
            text.host,
            text.user_agent,
            text.reason_phrase,
            text.content_type,
            fields[0],
        ];
        while self.table.is_full()
            || !self
                .texts
                .has_room(parts.iter().map(|p| p.len()).sum::<usize>() + fields[1].len())
        {
            let Some((oldest, _)) = self.table.oldest() else {
                break;
            };
            self.spill(oldest, None);
        }
        for part in parts.iter().chain([&fields[1]]) {
            self.texts.append(&mut chain, part);
        }
        let lens = parts.map(|part| u16::try_from(part.len()).unwrap_or(u16::MAX));
        let body = Body {
            connection,
            rule: end.rule,
            match_seq: end.match_seq,
            until,
            seen_to: end.seen_to,
            last_ns: end.seen_ns,
            row,
            text: chain,
            lens,
            content,
        };
        let is_stream = body.content.is_some();
        match self.table.insert(file_under(self.seed, &connection), body) {
            Ok(_) => {
                self.streams += usize::from(is_stream);
                None
            }
            Err(mut body) => {
                self.texts.release(body.text);
                if let Some(content) = &mut body.content {
                    content.finish(&mut self.texts, &mut self.scratch);
                }
                Some((body.row, body.content))
            }
        }
    }

    /// A client has everything before `ack` of what the server of its connection has sent.
    pub(crate) fn on_acknowledged(&mut self, connection: &Connection, ack: SeqNumber, ts_ns: u64) {
        let Some(id) = self.find_where(connection, |body| body.content.is_some()) else {
            return;
        };
        let body = self.table.get_mut(id);
        if let Some(content) = body.and_then(|body| body.content.as_deref_mut()) {
            content.acknowledged(ack, ts_ns, &mut self.texts, &mut self.scratch);
        }
    }

    /// A segment from server to client: `connection` has the client first.
    pub(crate) fn on_segment(
        &mut self,
        connection: &Connection,
        seq: SeqNumber,
        payload: &[u8],
        payload_len: u32,
        flags: TcpFlags,
        ts_ns: u64,
    ) {
        let Some(id) = self.find_where(connection, |body| {
            body.reaches(seq) || (payload_len == 0 && body.until.is_none())
        }) else {
            return;
        };
        let Some(body) = self.table.get_mut(id) else {
            return;
        };
        if let Some(content) = body.content.as_deref_mut().filter(|_| payload_len > 0) {
            let segment = Segment {
                seq,
                bytes: payload,
                len: payload_len,
                ts_ns,
            };
            content.take(&segment, &mut self.texts, &mut self.scratch);
        }
        let framed_over = body.content.as_ref().and_then(|content| content.is_over());
        let begins_next = payload.starts_with(b"HTTP/1.") && framed_over.is_none();
        if body.rule == EndRule::LastChunk && begins_next {
            return self.end_at(connection, seq);
        }
        if payload_len > 0 {
            body.last_ns = body.last_ns.max(ts_ns);
        }
        let start = i64::from(seq - body.seen_to);
        let end = start + i64::from(payload_len);
        let over = match &mut body.rule {
            EndRule::After(missing) => {
                let last = i64::try_from(*missing).unwrap_or(i64::MAX);
                let is_last = start < last && last <= end;
                if !is_last && (0..last).contains(&end) {
                    *missing -= u64::try_from(end).unwrap_or(0);
                    body.seen_to = SeqNumber(seq.0.wrapping_add(payload_len));
                }
                is_last
            }
            // A last chunk with trailer fields, or in two segments, shows when the server closes.
            EndRule::LastChunk => {
                framed_over.unwrap_or_else(|| payload.ends_with(b"0\r\n\r\n"))
                    || flags.contains(TcpFlags::FIN)
            }
            EndRule::Close => flags.intersects(TcpFlags::FIN | TcpFlags::RST),
        };
        if over || flags.intersects(TcpFlags::FIN | TcpFlags::RST) {
            let ttlb = over.then(|| span(&body.row, body.last_ns)).flatten();
            self.spill(id, ttlb);
        } else {
            self.table.refresh(id);
        }
    }

    /// Nothing more comes for what the server sends at `seq` of this connection, or another message
    /// begins there.
    fn end_at(&mut self, connection: &Connection, seq: SeqNumber) {
        if let Some(id) = self.find_where(connection, |body| body.reaches(seq)) {
            let ttlb = self.table.get(id).and_then(|body| match body.rule {
                EndRule::After(_) => None,
                // What follows on the connection shows that it was all.
                EndRule::LastChunk | EndRule::Close => span(&body.row, body.last_ns),
            });
            self.spill(id, ttlb);
        }
    }

    /// Gives up on the bodies of which nothing came since `limit_ns`.
    pub(crate) fn expire(&mut self, limit_ns: u64) {
        while let Some((id, body)) = self
            .table
            .oldest()
            .filter(|(_, body)| body.last_ns <= limit_ns)
        {
            let ttlb = if body.rule == EndRule::Close {
                span(&body.row, body.last_ns)
            } else {
                None
            };
            self.spill(id, ttlb);
        }
    }

    /// Whether a record was set free since the last [`Bodies::take_spilled`].
    pub(crate) fn has_spilled(&self) -> bool {
        !self.spilled.is_empty()
    }

    /// The records set free, oldest first, each with its events if it is a stream; the caller gives the batch back for
    /// reuse.
    pub(crate) fn take_spilled(&mut self) -> (HttpBatch, Vec<Option<Box<Content>>>) {
        (
            std::mem::take(&mut self.spilled),
            std::mem::take(&mut self.spilled_events),
        )
    }

    /// Takes an emptied batch back.
    pub(crate) fn give_back(&mut self, batch: HttpBatch, mut events: Vec<Option<Box<Content>>>) {
        events.clear();
        (self.spilled, self.spilled_events) = (batch, events);
    }

    fn find_where(&self, connection: &Connection, holds: impl Fn(&Body) -> bool) -> Option<Id> {
        self.table.find(file_under(self.seed, connection), |body| {
            body.connection == *connection && holds(body)
        })
    }

    fn spill(&mut self, id: Id, ttlb_ns: Option<u64>) {
        let Some(mut body) = self.table.remove(id) else {
            return;
        };
        if let Some(content) = &mut body.content {
            self.streams = self.streams.saturating_sub(1);
            content.finish(&mut self.texts, &mut self.scratch);
        }
        self.spilled_events.push(body.content);
        let row = HttpRow {
            ttlb_ns,
            state: HttpState::Complete,
            ..body.row
        };
        let mut rest = self.texts.read(&body.text, &mut self.scratch);
        let mut take = |len: u16| {
            let (part, after) = rest.split_at(usize::from(len).min(rest.len()));
            rest = after;
            part
        };
        let [
            method,
            uri,
            host,
            user_agent,
            reason_phrase,
            content_type,
            fields,
        ] = body.lens.map(&mut take);
        let text = Text {
            method,
            uri,
            host,
            user_agent,
            reason_phrase,
            content_type,
        };
        let web = Web {
            fields: [fields, rest],
            ..Web::default()
        };
        if fields.is_empty() && rest.is_empty() {
            self.spilled.push(row, &text);
        } else {
            self.spilled.push_web(row, &text, &web);
        }
        self.texts.release(body.text);
    }
}

fn span(row: &HttpRow, last_ns: u64) -> Option<u64> {
    Some(last_ns.saturating_sub(row.request_ts_ns?))
}
