//! Time to last byte: finished transactions that wait for the end of their response's body.
//!
//! One entry a connection, only with `--ttlb`: then every data segment is looked up here. Where
//! the head declares a length, the last byte has a known sequence number; a chunked body ends with
//! a segment that ends with the last chunk, and a body without a length ends with the connection.

use linkweir_record::{HttpBatch, HttpRow, HttpState, RecordBatch, Text};
use linkweir_table::{Chain, Chunks, Id, Table};
use linkweir_wire::{SeqNumber, TcpFlags};

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
    lens: [u16; 5],
}

/// The records that wait.
#[derive(Debug)]
pub(crate) struct Bodies {
    seed: u64,
    table: Table<Body>,
    texts: Chunks,
    scratch: Vec<u8>,
    /// Records that left while another was put in.
    spilled: HttpBatch,
}

fn file_under(seed: u64, connection: &Connection) -> u32 {
    let hash = ConnectionHash::new(seed, connection).with(Meaning::Direction, 0);
    u32::try_from(hash >> 32).unwrap_or_default()
}

fn connection_of(row: &HttpRow) -> Connection {
    Connection {
        client: (row.client_ip, row.client_port),
        server: (row.server_ip, row.server_port),
    }
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
        }
    }

    /// Holds a record until its body ends; gives it back where that has happened already.
    ///
    /// A record of the same connection that still waits is over, unless its response is a later one:
    /// see [`Bodies::take_spilled`].
    pub(crate) fn hold(
        &mut self,
        mut row: HttpRow,
        text: &Text<'_>,
        end: BodyEnd,
    ) -> Option<HttpRow> {
        let connection = connection_of(&row);
        let later = self.find_where(&connection, |body| end.match_seq.before(body.match_seq));
        let until = later
            .and_then(|id| self.table.get(id))
            .map(|body| body.match_seq);
        if until.is_none() {
            self.end_at(&connection, end.match_seq);
        }
        if end.rule == EndRule::After(0) {
            row.ttlb_ns = span(&row, end.seen_ns);
            return Some(row);
        }
        let mut chain = Chain::default();
        let parts = [
            text.method,
            text.uri,
            text.host,
            text.user_agent,
            text.reason_phrase,
        ];
        while self.table.is_full()
            || !self
                .texts
                .has_room(parts.iter().map(|p| p.len()).sum::<usize>() + text.content_type.len())
        {
            let Some((oldest, _)) = self.table.oldest() else {
                break;
            };
            self.spill(oldest, None);
        }
        for part in parts.iter().chain([&text.content_type]) {
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
        };
        match self.table.insert(file_under(self.seed, &connection), body) {
            Ok(_) => None,
            Err(body) => {
                self.texts.release(body.text);
                Some(body.row)
            }
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
        if body.rule == EndRule::LastChunk && payload.starts_with(b"HTTP/1.") {
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
            EndRule::LastChunk => payload.ends_with(b"0\r\n\r\n") || flags.contains(TcpFlags::FIN),
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

    /// The records set free, oldest first; the caller gives the batch back for reuse.
    pub(crate) fn take_spilled(&mut self) -> HttpBatch {
        std::mem::take(&mut self.spilled)
    }

    /// Takes an emptied batch back.
    pub(crate) fn give_back(&mut self, batch: HttpBatch) {
        self.spilled = batch;
    }

    fn find_where(&self, connection: &Connection, holds: impl Fn(&Body) -> bool) -> Option<Id> {
        self.table.find(file_under(self.seed, connection), |body| {
            body.connection == *connection && holds(body)
        })
    }

    fn spill(&mut self, id: Id, ttlb_ns: Option<u64>) {
        let Some(body) = self.table.remove(id) else {
            return;
        };
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
        let [method, uri, host, user_agent, reason_phrase] = body.lens.map(&mut take);
        self.spilled.push(
            row,
            &Text {
                method,
                uri,
                host,
                user_agent,
                reason_phrase,
                content_type: rest,
            },
        );
        self.texts.release(body.text);
    }
}

fn span(row: &HttpRow, last_ns: u64) -> Option<u64> {
    Some(last_ns.saturating_sub(row.request_ts_ns?))
}
