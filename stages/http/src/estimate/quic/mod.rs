//! Transactions of HTTP/3 without keys: estimated from the sizes and the order of datagrams in both directions.
//!
//! A connection gets here with its client's Initial, which anybody can open; all datagrams between the same addresses and
//! ports are its. `hellos` gathers what the client says, `connection` reads headers, `turn` tells requests from
//! responses.

mod connection;
mod hellos;
mod turn;

use linkweir_proto::quic::{Kind, LongHeader};
use linkweir_record::HttpBatch;
use linkweir_table::{Id, Table};
use linkweir_wire::{Side, Udp};

use super::{Common, Done, Estimates, TLS_1_3, What};
use crate::key::Connection;
use crate::matcher::Matcher;
use crate::web::{LEAST_FIRST, is_first};

pub(super) use connection::Quic;
pub(super) use hellos::Hellos;

impl Estimates {
    fn find_quic(&self, direction: &Connection) -> Option<(Id, Side)> {
        let is_it = |entry: &Quic| entry.connection.sender(direction).is_some();
        let id = self.quic.find(direction.file_under(self.seed), is_it)?;
        let side = self.quic.get(id)?.connection.sender(direction)?;
        Some((id, side))
    }
}

/// A table for them; memory is reserved, not touched.
pub(super) fn table(connections: usize) -> Table<Quic> {
    Table::with_capacity(connections)
}

impl Matcher {
    /// Whether a datagram may be of use to estimates.
    #[inline]
    pub(crate) fn estimates_from(&self, udp: &Udp<'_>) -> bool {
        let begins = |first: &u8| first & 0xc0 == 0xc0 && udp.payload.len() >= LEAST_FIRST;
        self.estimates.is_on
            && (udp.payload.first().is_some_and(begins)
                || !self.estimates.quic.is_empty()
                    && self.watch.watches(udp.src_port(), udp.dst_port()))
    }

    /// A datagram whose sender stands first in `direction`.
    #[cold]
    pub(crate) fn on_estimated_datagram(
        &mut self,
        direction: Connection,
        udp: &Udp<'_>,
        ts_ns: u64,
        vlan: Option<u16>,
        out: &mut HttpBatch,
    ) {
        self.advance(ts_ns, out);
        let kind = LongHeader::parse(udp.payload).map(|header| header.kind);
        let mut found = self.estimates.find_quic(&direction);
        if let Some((id, side)) = found
            && let Some(entry) = self.estimates.quic.get(id)
            && entry.is_over_with(kind, side)
        {
            self.end_quic_estimates(id, out);
            found = None;
        }
        let found = match found {
            Some(found) => Some(found),
            None if kind == Some(Kind::Initial) && is_first(udp.payload) => {
                self.begin_quic_estimates(direction, out)
            }
            None => None,
        };
        let Some((id, side)) = found else {
            return;
        };
        let Estimates {
            quic,
            common,
            checks,
            ..
        } = &mut self.estimates;
        let (Some(entry), Some(common)) = (quic.get_mut(id), common) else {
            return;
        };
        entry.heard(ts_ns);
        entry.is_opened |= self.output.web.has_opened_quic(&direction);
        let mut done = Done::default();
        let at = (udp.payload_len, ts_ns);
        let Common { hellos, texts, .. } = &mut **common;
        entry.on_datagram(side, udp.payload, at, (hellos, texts), |estimate| {
            done.add(estimate);
        });
        quic.refresh(id);
        if let Some(entry) = quic.get(id)
            && (!entry.is_opened || *checks)
        {
            done.write(
                &what(entry),
                entry.names(&common.texts, &mut common.scratch),
                vlan,
                &mut self.output.records,
                out,
            );
        }
    }

    fn begin_quic_estimates(
        &mut self,
        connection: Connection,
        out: &mut HttpBatch,
    ) -> Option<(Id, Side)> {
        self.make_room_for_estimates(out);
        let seed = self.estimates.seed;
        let common = self.estimates.common();
        let hello = common.hellos.take(connection);
        let entry = Quic::new(connection, hello);
        let hash = connection.file_under(seed);
        let id = self.estimates.quic.insert(hash, entry).ok()?;
        self.output.records.stats.estimated_connections += 1;
        self.watch.note(&connection, true);
        self.watch.note(&connection.reversed(), true);
        Some((id, Side::Client))
    }

    /// A connection is forgotten; its transaction at hand is over.
    pub(super) fn end_quic_estimates(&mut self, id: Id, out: &mut HttpBatch) {
        let Estimates {
            quic,
            common,
            checks,
            ..
        } = &mut self.estimates;
        let (Some(mut entry), Some(common)) = (quic.remove(id), common) else {
            return;
        };
        let mut done = Done::default();
        entry.finish(|estimate| done.add(estimate));
        // Who reads it may have ended before.
        if !entry.is_opened || *checks {
            done.write(
                &what(&entry),
                entry.names(&common.texts, &mut common.scratch),
                None,
                &mut self.output.records,
                out,
            );
        }
        entry.release(&mut common.hellos, &mut common.texts);
        self.watch.note(&entry.connection, false);
        self.watch.note(&entry.connection.reversed(), false);
    }
}

/// What all records of a connection have in common.
fn what(entry: &Quic) -> What {
    What {
        connection: entry.connection,
        version: (3, 0),
        tls_version: TLS_1_3,
        rtt_ns: entry.rtt_ns(),
    }
}
