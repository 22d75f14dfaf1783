//! Transactions of TLS and QUIC without keys. Of TLS: estimated from the lengths and the order of records in both directions.
//!
//! A connection gets here with its client's hello, or late by a record of application data to a port of HTTPS; then all
//! of its segments come here, because their ports are noted where those of watched heads are. `walk` finds the records,
//! `connection` reads what is in clear of the handshake, `turn` tells requests from responses by `lengths`, `tickets`
//! remembers what servers send before them, `trickle` finds the responses that are most likely streams. Of QUIC, see
//! `quic`; both share the bound on connections.
//!
//! Source: Lopez, Morato, Magaña, Izal 2019, "Effective Analysis of Secure Web Response Time", for the idea.

mod connection;
mod lengths;
mod quic;
mod tickets;
mod trickle;
mod turn;
mod walk;

use linkweir_proto::tls::{ContentType, RecordHeader, message_type};
use linkweir_record::{Confidence, HttpBatch, HttpState, RecordBatch as _, Source, Text, Web};
use linkweir_table::{Id, Table};
use linkweir_wire::{Network, SeqNumber, Side, Tcp, TcpFlags};

use crate::config::{HttpConfig, PortSet};
use crate::key::Connection;
use crate::matcher::Matcher;
use crate::records::{Records, row_of};
use crate::segment::Segment;
use connection::{Common, Estimated, Names, TLS_1_3, Texts};
use quic::{Hellos, Quic};
use tickets::Servers;
use trickle::Pool;
use turn::Estimate;

/// Connections of TLS and QUIC at once: memory is reserved, not touched.
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
    /// Of QUIC.
    quic: Table<Quic>,
    /// Connections of which only the client is seen.
    one_way: u32,
    /// Connections of both at once.
    most: usize,
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
            quic: quic::table(if is_on { MAX_CONNECTIONS } else { 1 }),
            one_way: 0,
            most: MAX_CONNECTIONS,
            common: None,
        }
    }

    /// Whether there is no connection of TLS.
    #[inline]
    pub(crate) const fn is_empty(&self) -> bool {
        self.table.is_empty()
    }

    /// Whether there is no connection at all.
    pub(crate) const fn follows_none(&self) -> bool {
        self.table.is_empty() && self.quic.is_empty()
    }

    /// What all connections share, made with the first one.
    fn common(&mut self) -> &mut Common {
        let seed = self.seed;
        self.common.get_or_insert_with(|| {
            Box::new(Common {
                texts: Texts::with_capacity(TEXT_PIECES),
                scratch: Vec::new(),
                servers: Servers::new(seed),
                streams: Pool::default(),
                hellos: Hellos::default(),
            })
        })
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
        self.make_room_for_estimates(out);
        let seed = self.estimates.seed;
        self.estimates.common();
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

    /// Sees to it that one more connection has room.
    fn make_room_for_estimates(&mut self, out: &mut HttpBatch) {
        while self.estimates.table.len() + self.estimates.quic.len() >= self.estimates.most {
            if !self.end_oldest(None, out) {
                break;
            }
            self.output.records.stats.estimates_evicted += 1;
        }
    }

    /// Ends the connection that was silent for longest, if it was since `limit_ns`; whether there was one.
    fn end_oldest(&mut self, limit_ns: Option<u64>, out: &mut HttpBatch) -> bool {
        let estimates = &self.estimates;
        let tls = estimates.table.oldest();
        let quic = estimates.quic.oldest();
        let is_quic = match (&tls, &quic) {
            (Some((_, tls)), Some((_, quic))) => quic.is_older_than(tls.changed()),
            (None, Some(_)) => true,
            _ => false,
        };
        match (tls, quic) {
            (_, Some((id, entry))) if is_quic => {
                let is_due = limit_ns.is_none_or(|limit_ns| entry.is_silent_since(limit_ns));
                if is_due {
                    self.end_quic_estimates(id, out);
                }
                is_due
            }
            (Some((id, entry)), _) => {
                let is_due = limit_ns.is_none_or(|limit_ns| entry.is_silent_since(limit_ns));
                if is_due {
                    self.end_estimates(id, out);
                }
                is_due
            }
            _ => false,
        }
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
            let names = entry.names(&common.texts, &mut common.scratch);
            let records = &mut self.output.records;
            done.write(&what(entry), names, segment.vlan, records, out);
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
            let names = entry.names(&common.texts, &mut common.scratch);
            done.write(&what(&entry), names, None, &mut self.output.records, out);
        }
        entry.release(&mut common.texts);
        self.watch.note(&entry.connection, false);
        self.watch.note(&entry.connection.reversed(), false);
    }

    /// Ends the connections that have been silent since `limit_ns`.
    pub(crate) fn expire_estimates(&mut self, limit_ns: u64, out: &mut HttpBatch) {
        while self.end_oldest(Some(limit_ns), out) {}
    }

    /// The input has ended: connections end until there are `full` records; whether that was all.
    pub(crate) fn close_estimates(&mut self, full: usize, out: &mut HttpBatch) -> bool {
        while out.len() < full {
            if !self.end_oldest(None, out) {
                return true;
            }
        }
        false
    }
}

/// What all records of a connection have in common.
#[derive(Debug, Clone, Copy)]
struct What {
    connection: Connection,
    /// Of HTTP: major and minor.
    version: (u8, u8),
    tls_version: u16,
    /// Of a handshake that is not TCP's, nanoseconds.
    rtt_ns: Option<u32>,
}

fn what(entry: &Estimated) -> What {
    What {
        connection: entry.connection,
        version: entry.http_version(),
        tls_version: entry.state.version,
        rtt_ns: None,
    }
}

/// Transactions that have ended with one segment or datagram: not more than these.
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
        what: &What,
        Names { ja4, name }: Names<'_>,
        vlan: Option<u16>,
        records: &mut Records,
        out: &mut HttpBatch,
    ) {
        for estimate in self.0.iter().flatten() {
            let mut row = row_of(&what.connection);
            row.request_ts_ns = Some(estimate.request_ns);
            row.response_ts_ns = estimate.response_ns;
            row.ttlb_ns = estimate
                .last_ns
                .map(|last_ns| last_ns.saturating_sub(estimate.request_ns));
            row.request_bytes = Some(estimate.request_bytes);
            row.response_bytes = estimate.last_ns.map(|_| estimate.response_bytes);
            row.interim_responses = estimate.interim_responses;
            row.retransmissions = estimate.retransmissions;
            row.version = what.version;
            row.rtt_ns = what.rtt_ns;
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
                tls_version: what.tls_version,
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
    let most = if size_of::<Estimated>() > size_of::<Quic>() {
        size_of::<Estimated>()
    } else {
        size_of::<Quic>()
    };
    most - size_of::<Connection>()
}
