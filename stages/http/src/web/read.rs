//! Which connections are followed, from where to where: what segments do to them.

use std::sync::Arc;

use linkweir_proto::http1::classify;
use linkweir_record::{HttpBatch, Web};
use linkweir_table::Id;
use linkweir_wire::{SeqNumber, Side, Tcp, TcpFlags};

use super::layers::To;
use super::{Beginning, Followed, Inside, Late, Layer, Tools};
use crate::halves::request_parts;
use crate::key::{Connection, ConnectionHash};
use crate::matcher::Matcher;
use crate::pending::Half;
use crate::segment::{Relevance, Segment};

/// How far the numbers of one connection may be apart; what is further away is of another with the same ports.
const FAR: u32 = 1 << 24;
/// How long a connection must have been silent before another one between the same ports takes its place without a SYN.
const SILENT_NS: u64 = 10_000_000_000;

impl Matcher {
    /// A segment that begins like one of a connection that is to be followed; whether it is followed from here on.
    #[cold]
    pub(crate) fn on_beginning(&mut self, segment: &Segment<'_>, out: &mut HttpBatch) -> bool {
        if !self.may_join {
            return false;
        }
        let has_keys = self.output.web.has_keys();
        let Some(how) = Beginning::of(segment.payload, has_keys).filter(|_| segment.has_ack) else {
            return false;
        };
        if self.is_no_beginning(how, segment) {
            return false;
        }
        let (from, to) = (segment.direction.client.1, segment.direction.server.1);
        let is_to_server = self.is_to_server(from, to);
        let is_from_client = how != Beginning::Late || is_to_server;
        self.advance(segment.ts_ns, out);
        let ends = [segment.seq, SeqNumber(segment.ack)];
        let (connection, ends) = match is_from_client {
            true => (segment.direction, ends),
            false => (segment.direction.reversed(), [ends[1], ends[0]]),
        };
        self.begin_web(how, connection, ends, segment.ts_ns, out);
        self.on_web(segment, out)
    }

    /// Whether a segment only looks like a beginning: it is the content of a request that waits for its response, a
    /// client's first words come from where servers are, or its connection is followed already.
    fn is_no_beginning(&self, how: Beginning, segment: &Segment<'_>) -> bool {
        let direction = &segment.direction;
        let hash = ConnectionHash::new(self.seed, direction);
        let waiting = self.pending.find_leader(direction, hash, segment.ack);
        waiting.is_some()
            || (how != Beginning::Late && self.server_ports.contains(direction.client.1))
            || self.output.web.find(direction).is_some()
    }

    /// Begins to follow a connection, whose client and server go on at these numbers.
    fn begin_web(
        &mut self,
        how: Beginning,
        connection: Connection,
        ends: [SeqNumber; 2],
        ts_ns: u64,
        out: &mut HttpBatch,
    ) {
        while let Some(id) = self.output.web.leaving(None) {
            self.output.records.stats.followed_evicted += 1;
            self.end_followed(id, out);
        }
        self.output.web.begin(how, connection, ends, ts_ns);
        self.output.records.stats.followed += 1;
        self.watch.note(&connection, true);
        self.watch.note(&connection.reversed(), true);
    }

    /// A response at `offset` of a segment, of so many bytes, that switches protocols; whether to HTTP/2 in clear, which
    /// is then followed from here on. What asked for it is the request of stream 1 (RFC 7540 sec. 3.2).
    #[cold]
    pub(crate) fn on_switch(
        &mut self,
        segment: &Segment<'_>,
        offset: usize,
        head: &[u8],
        out: &mut HttpBatch,
    ) -> bool {
        if !self.may_join || !segment.has_ack || !names_h2c(head) {
            return false;
        }
        let connection = segment.direction.reversed();
        let hash = ConnectionHash::new(self.seed, &connection);
        let seq = segment.seq_at(offset);
        let found = self.pending.find_leader(&connection, hash, seq.0);
        let request = found.and_then(|id| self.pending.get(id));
        let is_alone = request.is_some_and(|waiting| match &waiting.half {
            Half::Request(request) => request.is_alone(),
            Half::Response(_) => false,
        });
        let Some(id) = found.filter(|_| is_alone) else {
            return false;
        };
        self.advance(segment.ts_ns, out);
        let Some((waiting, _)) = self.pending.remove(id) else {
            return false;
        };
        let next = segment.seq_at(offset + head.len());
        let ends = [SeqNumber(segment.ack), next];
        self.begin_web(Beginning::Preface, connection, ends, segment.ts_ns, out);
        let stats = &mut self.output.records.stats;
        stats.responses += 1;
        stats.interim_responses += 1;
        stats.count_status(101);
        let mut text = std::mem::take(&mut self.head);
        text.clear();
        self.texts.copy_to(&waiting.text, &mut text);
        if let (Some((id, _)), Half::Request(request)) =
            (self.output.web.find(&connection), &waiting.half)
        {
            let parts = request_parts(&waiting, request, &text);
            self.with_followed(id, waiting.vlan, out, |ends, _, to| {
                if let Layer::Http2(http2) = &mut ends.layer {
                    let streams = &mut http2.streams;
                    let web = Web::default();
                    let (mut ear, _) = to.ear(streams, Side::Client, 0, &web);
                    ear.upgraded(&parts);
                }
            });
        }
        self.head = text;
        self.texts.release(waiting.text);
        self.on_web(segment, out)
    }

    /// A segment whose ports are those of a watched direction; whether its connection is followed.
    #[cold]
    pub(crate) fn on_web(&mut self, segment: &Segment<'_>, out: &mut HttpBatch) -> bool {
        let Some(mut found) = self.output.web.find(&segment.direction) else {
            return false;
        };
        let is_due = self.is_due(segment.ts_ns);
        self.advance(segment.ts_ns, out);
        if is_due {
            // What is due has left, perhaps this connection.
            match self.output.web.find(&segment.direction) {
                Some(still) => found = still,
                None => return false,
            }
        }
        let (id, side) = found;
        let web = &mut self.output.web;
        let Some(entry) = web.table.get_mut(id) else {
            return false;
        };
        let Some(followed) = &entry.state else {
            return false;
        };
        // What is too far away is of another connection between the same ports, or no more than a stray segment.
        let reader = match side {
            Side::Client => &followed.client,
            Side::Server => &followed.server,
        };
        if (segment.seq - reader.next()).unsigned_abs() > FAR {
            let is_silent = segment.ts_ns.saturating_sub(entry.changed_ns) > SILENT_NS;
            if is_silent && Beginning::of(segment.payload, true).is_some() {
                self.end_followed(id, out);
            }
            return false;
        }
        entry.changed_ns = entry.changed_ns.max(segment.ts_ns);
        web.table.refresh(id);
        let piece = linkweir_stream::Segment {
            seq: segment.seq,
            bytes: segment.payload,
            len: segment.payload_len,
            ts_ns: segment.ts_ns,
        };
        let ack = segment.has_ack.then_some(SeqNumber(segment.ack));
        self.with_followed(id, segment.vlan, out, |ends, late, to| {
            let (reader, other) = match side {
                Side::Client => (&mut ends.client, &mut ends.server),
                Side::Server => (&mut ends.server, &mut ends.client),
            };
            to.ack = ack;
            reader.take(&piece, &mut late.pool, &mut late.scratch, |piece| {
                to.piece(&mut ends.layer, side, piece);
            });
            if let Some(ack) = ack {
                let (pool, scratch) = (&mut late.pool, &mut late.scratch);
                other.acknowledged(ack, segment.ts_ns, pool, scratch, |piece| {
                    to.piece(&mut ends.layer, side.other(), piece);
                });
            }
        });
        true
    }

    /// A connection is accepted between ports that are watched: one that was followed between the same is over, unless
    /// it is the same.
    #[cold]
    pub(crate) fn on_accepted_again(
        &mut self,
        connection: &Connection,
        tcp: &Tcp<'_>,
        out: &mut HttpBatch,
    ) {
        let web = &self.output.web;
        let found = web.find(connection).map(|(id, _)| id);
        let state = found.and_then(|id| web.table.get(id)?.state.as_deref());
        let is_over = state.is_some_and(|followed| followed.first != tcp.ack());
        if let Some(id) = found.filter(|_| is_over) {
            self.end_followed(id, out);
        }
    }

    /// Lets `step` go on with a connection.
    fn read(
        &mut self,
        id: Id,
        followed: &mut Followed,
        vlan: Option<u16>,
        out: &mut HttpBatch,
        step: impl FnOnce(&mut Followed, &mut Late, &mut To<'_>),
    ) {
        let web = &mut self.output.web;
        let connection = web.table.get(id).map(|entry| entry.connection);
        let (Some(connection), Some(mut tools)) = (connection, web.tools.take()) else {
            return;
        };
        let is_sealed = matches!(followed.layer, Layer::Tls(..));
        let keys = web.keys.as_ref().filter(|_| is_sealed).map(Arc::clone);
        let Tools { late, reading } = &mut *tools;
        let mut to = To {
            matcher: self,
            out,
            id,
            connection,
            vlan,
            read_to: followed.read_to,
            ack: None,
            keys: keys.as_deref(),
            reading,
        };
        step(followed, late, &mut to);
        followed.read_to = to.read_to;
        let web = &mut self.output.web;
        web.tools = Some(tools);
        let held = followed.layer.held();
        web.held = (web.held + held).saturating_sub(followed.held);
        followed.held = held;
    }

    /// Nothing more of a connection is read: what waits of it counts.
    fn close_followed(&mut self, id: Id, out: &mut HttpBatch) {
        let entry = self.output.web.table.get_mut(id);
        let Some(mut followed) = entry.and_then(|entry| entry.state.take()) else {
            return;
        };
        self.read(id, &mut followed, None, out, |ends, late, to| {
            let (pool, scratch) = (&mut late.pool, &mut late.scratch);
            for (side, reader) in [
                (Side::Client, &mut ends.client),
                (Side::Server, &mut ends.server),
            ] {
                reader.finish(pool, scratch, |piece| {
                    to.piece(&mut ends.layer, side, piece);
                });
            }
            to.end_streams(&mut ends.layer, u64::MAX);
        });
        let web = &mut self.output.web;
        web.held = web.held.saturating_sub(followed.held);
        let stats = &mut self.output.records.stats;
        for reader in [&followed.client, &followed.server] {
            stats.followed_gaps += reader.counters().gaps;
        }
        if let Layer::Http2(http2) | Layer::Tls(_, Inside::Http2(http2)) = &followed.layer {
            stats.bad_frames += http2.bad_frames();
        }
        if let Layer::Tls(tls, _) = followed.layer {
            stats.count_secrets(tls.counters());
            if let (Some(keys), Some(tools)) = (&web.keys, &mut web.tools) {
                tls.end(&mut tools.reading.sealed.shared(keys));
            }
        }
    }

    /// A connection is forgotten.
    fn end_followed(&mut self, id: Id, out: &mut HttpBatch) {
        self.close_followed(id, out);
        if let Some(entry) = self.output.web.table.remove(id) {
            self.watch.note(&entry.connection, false);
            self.watch.note(&entry.connection.reversed(), false);
        }
    }

    /// Ends what has been silent: connections after twice the timeout, so that what their records say of them is known
    /// as long as any may come, and streams after once.
    pub(crate) fn expire_followed(&mut self, limit_ns: u64, timeout_ns: u64, out: &mut HttpBatch) {
        let silent_ns = limit_ns.checked_sub(timeout_ns);
        while let Some(id) = silent_ns.and_then(|silent| self.output.web.leaving(Some(silent))) {
            self.end_followed(id, out);
        }
        self.each_followed(
            |matcher, id, out| matcher.end_streams(id, limit_ns, out),
            out,
        );
        self.expire_quic(silent_ns, limit_ns, out);
    }

    /// The input has ended: nothing more is read.
    pub(crate) fn close_all_followed(&mut self, out: &mut HttpBatch) {
        self.each_followed(|matcher, id, out| matcher.close_followed(id, out), out);
        self.close_quic(out);
    }

    fn each_followed(
        &mut self,
        mut each: impl FnMut(&mut Self, Id, &mut HttpBatch),
        out: &mut HttpBatch,
    ) {
        // Once around: the order of age stays.
        for _ in 0..self.output.web.table.len() {
            let Some((id, _)) = self.output.web.table.oldest() else {
                break;
            };
            self.output.web.table.refresh(id);
            each(self, id, out);
        }
    }

    fn end_streams(&mut self, id: Id, limit_ns: u64, out: &mut HttpBatch) {
        self.with_followed(id, None, out, |ends, _, to| {
            to.end_streams(&mut ends.layer, limit_ns);
        });
    }

    /// Takes a step with a connection that is not being read, where it still is.
    fn with_followed(
        &mut self,
        id: Id,
        vlan: Option<u16>,
        out: &mut HttpBatch,
        step: impl FnOnce(&mut Followed, &mut Late, &mut To<'_>),
    ) {
        let entry = self.output.web.table.get_mut(id);
        let Some(mut followed) = entry.and_then(|entry| entry.state.take()) else {
            return;
        };
        self.read(id, &mut followed, vlan, out, step);
        if let Some(entry) = self.output.web.table.get_mut(id) {
            entry.state = Some(followed);
        }
    }

    /// Data of a connection that was opened: HTTP/1.x, as if it had come without TLS.
    pub(super) fn on_opened(&mut self, segment: &Segment<'_>, out: &mut HttpBatch) {
        if let Some(bodies) = &mut self.output.bodies {
            bodies.on_segment(
                &segment.direction.reversed(),
                segment.seq,
                segment.payload,
                segment.payload_len,
                TcpFlags::default(),
                segment.ts_ns,
            );
            self.release_bodies(out);
        }
        if self.watch.len() > 0 && self.on_watched(segment, &mut Relevance::Irrelevant, out) {
            return;
        }
        self.on_messages(segment, 0, classify(segment.payload), out);
    }
}

/// Whether a response head names HTTP/2 in clear as what the connection goes on with.
fn names_h2c(head: &[u8]) -> bool {
    head.split(|byte| *byte == b'\n').any(|line| {
        let (name, value) = line.split_at(line.len().min(8));
        name.eq_ignore_ascii_case(b"upgrade:") && value.trim_ascii().eq_ignore_ascii_case(b"h2c")
    })
}
