//! What is kept of TLS and QUIC in a flow.

use linkweir_proto::Cut;
use linkweir_proto::tls::{ContentType, RecordHeader};
use linkweir_record::flow::{FlowRow, FlowSide, QuicRow, SpinVerdict};

use super::handshake::Handshake;
use super::round_trips::RoundTrips;
use super::spin::Spin;

/// A time since the first packet of the flow, nanoseconds; eight bytes where `Option` has sixteen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct SinceStart(u64);

impl SinceStart {
    pub(super) const fn at(since_start_ns: u64) -> Self {
        Self(since_start_ns.saturating_add(1))
    }

    pub(super) const NEVER: Self = Self(0);

    pub(super) const fn get(self) -> Option<u64> {
        self.0.checked_sub(1)
    }

    /// Nanoseconds since an earlier time; zero where time runs backwards.
    pub(super) const fn since(self, earlier: Self) -> u64 {
        self.0.saturating_sub(earlier.0)
    }
}

/// Where the records of one direction stand.
#[derive(Debug, Default)]
pub(super) struct Records {
    /// Bytes left of the record.
    pub(super) left: u32,
    /// Bytes left of a handshake message that is not read.
    pub(super) skip: u32,
    pub(super) content: ContentType,
    pub(super) header: Cut<{ RecordHeader::LEN }>,
    /// Whether a record was seen.
    pub(super) has_begun: bool,
    /// Whether it is not known where the next record begins.
    pub(super) is_lost: bool,
    /// Whether handshake messages can no longer be read: they are encrypted, or bytes are missing.
    pub(super) is_closed: bool,
    /// Version offered or chosen.
    pub(super) version: u16,
    pub(super) last_handshake: SinceStart,
    pub(super) first_data: SinceStart,
    pub(super) data_bytes: u64,
    /// Of the client, where records of handshakes are asked for.
    pub(super) handshake: Option<Box<Handshake>>,
}

impl Records {
    /// Fills the columns of a side.
    pub(super) const fn fill(&self, side: &mut FlowSide) {
        side.tls_version = self.version;
        side.last_handshake_ns = self.last_handshake.get();
        side.appdata_ns = self.first_data.get();
        side.appdata_bytes = self.data_bytes;
    }

    /// Passes over bytes that were not seen; `were_sent` where they count all the same.
    pub(super) fn pass(&mut self, bytes: u32, were_sent: bool) {
        if bytes == 0 {
            return;
        }
        let within = self.left.min(bytes);
        if were_sent && self.content == ContentType::ApplicationData {
            self.data_bytes += u64::from(within);
        }
        self.left -= within;
        // Messages go on across records: what follows a hole is not known.
        self.is_closed |= within > 0 && self.content == ContentType::Handshake;
        self.is_lost |= within < bytes;
        self.header.clear();
    }
}

/// What the hellos said of the session.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct TlsSession {
    pub(super) has_ticket: bool,
    pub(super) has_ech: bool,
    /// Whether a `ServerHello` came.
    pub(super) is_answered: bool,
    /// Whether the server went through a whole handshake of TLS 1.2 or before.
    pub(super) is_full: bool,
    /// 1 by id, 2 by ticket or pre-shared key.
    pub(super) resumed: u8,
}

impl TlsSession {
    /// Fills the columns of the session.
    pub(super) const fn fill(&self, row: &mut FlowRow) {
        row.tls_session = self.resumed;
        row.has_ech |= self.has_ech;
    }
}

/// A `ClientInitials` of the pool; zero: none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct GatheringId(pub(super) u32);

/// What is known of the beginning of a QUIC flow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct QuicStart {
    pub(super) gathering: GatheringId,
    pub(super) datagrams: u8,
    /// Whether the hello was read, or will not be.
    pub(super) is_done: bool,
    /// Whether it was read.
    pub(super) is_read: bool,
    /// Whether the client sent a packet with a short header.
    pub(super) has_short: bool,
    pub(super) has_zero_rtt: bool,
}

/// What is kept of a flow of QUIC.
#[derive(Debug, Default)]
pub(super) struct Quic {
    pub(super) start: QuicStart,
    pub(super) trips: RoundTrips,
    pub(super) spin: Spin,
    /// Whether the id that the server chose was seen.
    pub(super) has_id: bool,
    /// Whether the connection began in another flow.
    pub(super) is_migrated: bool,
}

impl Quic {
    /// The columns; `may_spin` where the version has the spin bit.
    pub(super) fn row(&self, may_spin: bool) -> QuicRow {
        let trips = &self.trips;
        let verdict = self.spin.verdict(trips.rtt_ns()).filter(|_| may_spin);
        let shortest = self.spin.shortest();
        QuicRow {
            initial_ns: trips.initial_ns,
            handshake_ns: trips.handshake_ns,
            spin: shortest.filter(|_| verdict == Some(SpinVerdict::Ok)),
            spin_count: if may_spin { self.spin.count() } else { 0 },
            spin_verdict: verdict,
            retries: trips.retries,
            version_negotiations: trips.version_negotiations,
            is_migrated: self.is_migrated,
        }
    }
}
