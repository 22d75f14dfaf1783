//! Transactions of TLS without keys: estimated from the lengths and the order of records in both directions.
//!
//! A connection gets here with its client's hello, or late by a record of application data to a port of HTTPS; then all
//! of its segments come here, because their ports are noted where those of watched heads are. `walk` finds the records,
//! `connection` reads what is in clear of the handshake, `turn` tells requests from responses by `lengths`, `tickets`
//! remembers what servers send before them, `trickle` finds the responses that are most likely streams.
//!
//! Source: Lopez, Morato, Magaña, Izal 2019, "Effective Analysis of Secure Web Response Time", for the idea.

mod connection;
mod lengths;
mod tickets;
mod trickle;
mod turn;
mod walk;

use linkweir_proto::tls::{ContentType, RecordHeader, message_type};
use linkweir_record::{Confidence, HttpBatch, HttpState, Source, Text, Web};
use linkweir_table::{Id, Table};
use linkweir_wire::{Network, SeqNumber, Side, Tcp, TcpFlags};

use crate::config::{HttpConfig, PortSet};
use crate::key::Connection;
use crate::matcher::Matcher;
use crate::records::{Records, row_of};
use crate::segment::Segment;
use connection::{Common, Estimated, Texts};
use tickets::Servers;
use trickle::Pool;
use turn::Estimate;

/// Connections at once: memory is reserved, not touched.
const MAX_CONNECTIONS: usize = 1 << 20;
/// Texts of all connections, in pieces of 32 bytes.
const TEXT_PIECES: usize = 1 << 21;
/// How far the numbers of one connection may be apart; what is further away is of another with the same ports.
const FAR: u32 = 1 << 24;
/// Ports of HTTPS, where nothing else says what is inside.
const HTTPS: [u16; 2] = [443, 8443];

/// All connections of which transactions are estimated.
#[derive(Debug)]
pub(crate) struct Estimates {
    seed: u64,
    is_on: bool,
    /// Whether estimates are written though keys have opened the connection too.
    checks: bool,
    ports: PortSet,
    table: Table<Estimated>,
    /// Connections of which only the client is seen.
    one_way: u32,
    common: Option<Box<Common>>,
}

impl Estimates {
    pub(crate) fn new(config: &HttpConfig) -> Self {
        let is_alone = config.shard.is_none_or(|shard| shard.count < 2);
        let is_on = config.estimates && config.may_join && is_alone;
        Self {
            seed: config.hash_seed,
            is_on,
            checks: config.checks_estimates,
            ports: config
                .ports
                .clone()
                .unwrap_or_else(|| HTTPS.into_iter().collect()),
            table: Table::with_capacity(if is_on { MAX_CONNECTIONS } else { 1 }),
            one_way: 0,
            common: None,
        }
    }

    /// Whether there is no connection.
    #[inline]
    pub(crate) const fn is_empty(&self) -> bool {
        self.table.is_empty()
    }

    fn find(&self, direction: &Connection) -> Option<(Id, Side)> {
        let is_it = |entry: &Estimated| entry.connection.sender(direction).is_some();
        let id = self.table.find(direction.file_under(self.seed), is_it)?;
        let side = self.table.get(id)?.connection.sender(direction)?;
        Some((id, side))
    }
}

/// How a segment begins a connection: whether with a hello, or late.
fn beginning(payload: &[u8]) -> Option<bool> {
    let header = RecordHeader::parse(*payload.first_chunk()?)?;
    match header.content {
        ContentType::Handshake => {
            let is_hello = payload.get(RecordHeader::LEN) == Some(&message_type::CLIENT_HELLO);
            is_hello.then_some(false)
        }
        ContentType::ApplicationData => walk::begins_record(payload).then_some(true),
        _ => None,
    }
}

impl Matcher {
    /// Whether a segment without payload may be of use to a connection of which transactions are estimated.
    #[inline]
    pub(crate) fn estimates_any(&self, tcp: &Tcp<'_>) -> bool {
        let is_of_use =
            self.estimates.one_way > 0 || tcp.flags().intersects(TcpFlags::FIN | TcpFlags::RST);
        !self.estimates.is_empty()
            && is_of_use
            && self.watch.watches(tcp.src_port(), tcp.dst_port())
    }

    /// A segment that begins like one of TLS; whether its connection is estimated from here on.
    #[cold]
    pub(crate) fn begin_estimates(&mut self, segment: &Segment<'_>, out: &mut HttpBatch) -> bool {
        if !self.estimates.is_on || !segment.has_ack {
            return false;
        }
        let Some(is_late) = beginning(segment.payload) else {
            return false;
        };
        let ports = &self.estimates.ports;
        let is_web_port = ports.contains(segment.direction.server.1);
        let is_first = !is_late || is_web_port && !ports.contains(segment.direction.client.1);
        if !is_first || self.estimates.find(&segment.direction).is_some() {
            return false;
        }
        self.advance(segment.ts_ns, out);
        while self.estimates.table.is_full()
            && let Some((oldest, _)) = self.estimates.table.oldest()
        {
            self.output.records.stats.estimates_evicted += 1;
            self.end_estimates(oldest, out);
        }
        let seed = self.estimates.seed;
        self.estimates.common.get_or_insert_with(|| {
            Box::new(Common {
                texts: Texts::with_capacity(TEXT_PIECES),
                scratch: Vec::new(),
                servers: Servers::new(seed),
                streams: Pool::default(),
            })
        });
        let connection = segment.direction;
        let ends = [segment.seq, SeqNumber(segment.ack)];
        let entry = Estimated::new(connection, ends, is_late, is_web_port);
        // There is room.
        drop(
            self.estimates
                .table
                .insert(connection.file_under(seed), entry),
        );
        self.output.records.stats.estimated_connections += 1;
        self.watch.note(&connection, true);
        self.watch.note(&connection.reversed(), true);
        self.on_estimated(segment, TcpFlags::ACK, out)
    }

    /// A segment with payload whose ports are those of a watched direction; whether it is of a connection of which
    /// transactions are estimated.
    #[cold]
    pub(crate) fn on_estimated(
        &mut self,
        segment: &Segment<'_>,
        flags: TcpFlags,
        out: &mut HttpBatch,
    ) -> bool {
        self.advance(segment.ts_ns, out);
        let Some((id, side)) = self.estimates.find(&segment.direction) else {
            return false;
        };
        let Estimates {
            table,
            one_way,
            common,
            checks,
            ..
        } = &mut self.estimates;
        let (Some(entry), Some(common)) = (table.get_mut(id), common) else {
            return false;
        };
        if (segment.seq - entry.walk(side).seen_to()).unsigned_abs() > FAR {
            return false;
        }
        entry.heard(segment.ts_ns);
        let was_one_way = entry.is_one_way();
        let mut done = Done::default();
        entry.on_segment(side, segment, common, |estimate| done.add(estimate));
        let mut is_over = false;
        if flags.intersects(TcpFlags::FIN | TcpFlags::RST) {
            is_over = entry.on_end(side, flags, common, |estimate| done.add(estimate));
        }
        match (was_one_way, entry.is_one_way()) {
            (false, true) => *one_way += 1,
            (true, false) => *one_way = one_way.saturating_sub(1),
            _ => {}
        }
        table.refresh(id);
        let is_opened = self.output.web.has_opened(&segment.direction) && !*checks;
        if !is_opened && let Some(entry) = table.get(id) {
            done.write(entry, segment.vlan, common, &mut self.output.records, out);
        }
        if is_over {
            self.end_estimates(id, out);
        }
        true
    }

    /// A segment without payload, of a connection whose ports are watched.
    #[cold]
    pub(crate) fn on_bare(
        &mut self,
        network: &Network<'_>,
        tcp: &Tcp<'_>,
        ts_ns: u64,
        vlan: Option<u16>,
        out: &mut HttpBatch,
    ) {
        let segment = Segment::new(network, tcp, ts_ns, vlan);
        if tcp.flags().intersects(TcpFlags::FIN | TcpFlags::RST) {
            self.on_estimated(&segment, tcp.flags(), out);
        } else if let Some((id, side)) = self.estimates.find(&segment.direction)
            && let Some(entry) = self.estimates.table.get_mut(id)
        {
            entry.on_acknowledged(side, SeqNumber(segment.ack), ts_ns);
        }
    }

    /// A connection is accepted whose client begins at `first`: another one between the same ports is over.
    #[cold]
    pub(crate) fn end_estimates_of(
        &mut self,
        connection: &Connection,
        first: SeqNumber,
        out: &mut HttpBatch,
    ) {
        if let Some((id, _)) = self.estimates.find(connection)
            && let Some(entry) = self.estimates.table.get(id)
            && entry.first != first
        {
            self.end_estimates(id, out);
        }
    }

    /// A connection is forgotten; its transaction at hand is over.
    fn end_estimates(&mut self, id: Id, out: &mut HttpBatch) {
        let Estimates {
            table,
            one_way,
            common,
            checks,
            ..
        } = &mut self.estimates;
        let (Some(mut entry), Some(common)) = (table.remove(id), common) else {
            return;
        };
        *one_way = one_way.saturating_sub(u32::from(entry.is_one_way()));
        let mut done = Done::default();
        entry.finish(common, |estimate| done.add(estimate));
        if !self.output.web.has_opened(&entry.connection) || *checks {
            done.write(&entry, None, common, &mut self.output.records, out);
        }
        entry.release(&mut common.texts);
        self.watch.note(&entry.connection, false);
        self.watch.note(&entry.connection.reversed(), false);
    }

    /// Ends the connections that have been silent since `limit_ns`.
    pub(crate) fn expire_estimates(&mut self, limit_ns: u64, out: &mut HttpBatch) {
        while let Some((id, entry)) = self.estimates.table.oldest()
            && entry.is_silent_since(limit_ns)
        {
            self.end_estimates(id, out);
        }
    }

    /// The input has ended.
    pub(crate) fn close_estimates(&mut self, out: &mut HttpBatch) {
        while let Some((id, _)) = self.estimates.table.oldest() {
            self.end_estimates(id, out);
        }
    }
}

/// Transactions that have ended with one segment: not more than these.
#[derive(Debug, Default)]
struct Done([Option<Estimate>; 4]);

impl Done {
    fn add(&mut self, estimate: Estimate) {
        if let Some(place) = self.0.iter_mut().find(|place| place.is_none()) {
            *place = Some(estimate);
        }
    }

    /// Writes their records.
    fn write(
        &self,
        entry: &Estimated,
        vlan: Option<u16>,
        common: &mut Common,
        records: &mut Records,
        out: &mut HttpBatch,
    ) {
        let (ja4, name) = match self.0.first() {
            Some(Some(_)) => entry.names(&common.texts, &mut common.scratch),
            _ => return,
        };
        for estimate in self.0.iter().flatten() {
            let mut row = row_of(&entry.connection);
            row.request_ts_ns = Some(estimate.request_ns);
            row.response_ts_ns = estimate.response_ns;
            row.ttlb_ns = estimate
                .last_ns
                .map(|last_ns| last_ns.saturating_sub(estimate.request_ns));
            row.request_bytes = Some(estimate.request_bytes);
            row.response_bytes = estimate.last_ns.map(|_| estimate.response_bytes);
            row.interim_responses = estimate.interim_responses;
            row.retransmissions = estimate.retransmissions;
            row.version = entry.http_version();
            row.vlan = vlan;
            row.state = match estimate.last_ns {
                Some(_) => HttpState::Complete,
                None => HttpState::Unanswered,
            };
            let stats = &mut records.stats;
            match estimate.confidence {
                Confidence::Exact => stats.estimated_exact += 1,
                Confidence::Likely => stats.estimated_likely += 1,
                Confidence::CannotTell => stats.estimated_cannot_tell += 1,
            }
            if let Some(events) = &estimate.events {
                stats.streams.count_estimated(events);
            }
            if let Some(took_ns) = row.response_time_ns() {
                stats.estimated_time.record(took_ns);
            }
            let web = Web {
                source: Source::Estimate,
                confidence: Some(estimate.confidence),
                events: estimate.events,
                is_partial: true,
                tls_version: entry.state.version,
                sni: name,
                ja4,
                ..Web::default()
            };
            let text = Text {
                host: name,
                ..Text::default()
            };
            records.record_web(row, &text, Some(web), out);
        }
    }
}

/// Bytes of a connection besides its addresses and ports.
#[cfg(test)]
pub(crate) const fn connection_bytes() -> usize {
    size_of::<Estimated>() - size_of::<Connection>()
}
