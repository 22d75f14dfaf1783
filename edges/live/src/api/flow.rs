//! What the statistics say of flows.

use std::collections::BTreeMap;

use linkweir_proto::application::Application as Protocol;
use linkweir_record::flow::Anomaly;
use serde::ser::SerializeMap;
use serde::{Deserialize, Serialize};

use crate::figure::{Class, Classes, Columns, Derived, Entries, Figure, checked};
use crate::figures::{figures, rows};
use crate::sketch::wire::Cause;
use crate::words::words;

/// Applications with counters of their own; there are not as many.
const MAX_APPLICATIONS: usize = 256;

/// Flows that ended, by what became of them; each in one of the seven.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FlowEnds {
    /// Both sides had sent FIN.
    pub closed: u64,
    /// One side sent RST.
    pub reset: u64,
    /// Nothing came for the idle timeout.
    pub idle: u64,
    /// A SYN that was never answered.
    pub unanswered: u64,
    /// Had to leave because the table was full.
    pub evicted: u64,
    /// The same ports began a new connection.
    pub reused: u64,
    /// Still there when the input ended.
    pub open: u64,
}

impl FlowEnds {
    /// Adds those of another interval.
    pub const fn add(&mut self, other: &Self) {
        self.closed = self.closed.saturating_add(other.closed);
        self.reset = self.reset.saturating_add(other.reset);
        self.idle = self.idle.saturating_add(other.idle);
        self.unanswered = self.unanswered.saturating_add(other.unanswered);
        self.evicted = self.evicted.saturating_add(other.evicted);
        self.reused = self.reused.saturating_add(other.reused);
        self.open = self.open.saturating_add(other.open);
    }

    /// States and counts, by the names of the records.
    #[must_use]
    pub const fn by_state(&self) -> [(&'static str, u64); 7] {
        [
            ("closed", self.closed),
            ("reset", self.reset),
            ("idle", self.idle),
            ("unanswered", self.unanswered),
            ("evicted", self.evicted),
            ("reused", self.reused),
            ("open", self.open),
        ]
    }
}

/// What flows of one application came to.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Application {
    /// Flows that ended.
    pub flows: u64,
    /// Bytes of their IP packets, both directions.
    pub bytes: u64,
}

impl Application {
    fn add(&mut self, other: &Self) {
        self.flows = self.flows.saturating_add(other.flows);
        self.bytes = self.bytes.saturating_add(other.bytes);
    }
}

/// Counts by application protocol. Few, so that a walk is faster than a look-up.
#[derive(Debug, Default)]
pub struct Applications(Vec<(&'static str, Application)>);

impl Applications {
    /// The counts of an application; `None` where there are too many already.
    pub(crate) fn of(&mut self, name: &'static str) -> Option<&mut Application> {
        let known = self.0.iter().position(|(known, _)| *known == name);
        let at = known.unwrap_or(self.0.len());
        if at >= MAX_APPLICATIONS {
            return None;
        }
        if known.is_none() {
            self.0.push((name, Application::default()));
        }
        self.0.get_mut(at).map(|(_, counts)| counts)
    }
}

impl Figure for Applications {
    type Shown = BTreeMap<&'static str, Application>;

    fn merge(&mut self, other: &Self) {
        for (name, counts) in &other.0 {
            if let Some(sums) = self.of(name) {
                sums.add(counts);
            }
        }
    }

    fn shown(&self) -> Self::Shown {
        self.0.iter().copied().collect()
    }

    fn add(mine: &mut Self::Shown, theirs: Self::Shown) {
        for (name, counts) in theirs {
            mine.entry(name).or_default().add(&counts);
        }
    }

    fn columns(_name: &str, shown: &Self::Shown, columns: &mut Columns) {
        for (name, counts) in shown {
            columns.further.extend([
                (format!("flows_{name}"), counts.flows.into()),
                (format!("bytes_{name}"), counts.bytes.into()),
            ]);
        }
    }

    fn send<M: SerializeMap>(&self, name: &'static str, message: &mut M) -> Result<(), M::Error> {
        message.serialize_entry(name, &self.shown())
    }

    fn take(name: &'static str, message: &mut Entries) -> Result<Self, Cause> {
        let sent: BTreeMap<String, Application> = message.take(name)?;
        let counts = sent.values().flat_map(|one| [&one.flows, &one.bytes]);
        checked((), counts)?;
        if sent.len() > MAX_APPLICATIONS {
            return Err(Cause::Contradictory);
        }
        let mut all = Self::default();
        for (name, counts) in &sent {
            // A probe of a later version may have a name for what has none here.
            let name = Protocol::from_name(name).map_or("unknown", Protocol::as_str);
            if let Some(sums) = all.of(name) {
                sums.add(counts);
            }
        }
        Ok(all)
    }
}

/// How flows ended: a column and an entry for each state.
impl Figure for FlowEnds {
    type Shown = Self;

    fn merge(&mut self, other: &Self) {
        Self::add(self, other);
    }

    fn shown(&self) -> Self {
        *self
    }

    fn add(mine: &mut Self, theirs: Self) {
        Self::add(mine, &theirs);
    }

    fn columns(_name: &str, shown: &Self, columns: &mut Columns) {
        for (state, count) in shown.by_state() {
            u64::columns(state, &count, columns);
        }
    }

    fn send<M: SerializeMap>(&self, name: &'static str, message: &mut M) -> Result<(), M::Error> {
        message.serialize_entry(name, self)
    }

    fn take(name: &'static str, message: &mut Entries) -> Result<Self, Cause> {
        let ends: Self = message.take(name)?;
        checked(ends, ends.by_state().iter().map(|(_, count)| count))
    }
}

impl Class for Anomaly {
    const ALL: &'static [Self] = &Self::ALL;

    fn name(self) -> &'static str {
        self.as_str()
    }
}

figures! {
    /// What the flows of an interval, or of a run, came to.
    ///
    /// A flow counts in the interval in which its record came: when it ended; with partial records its
    /// packets, bytes and segments count in that of each partial record, and it ends but once. How many
    /// there are at the moment is [`Tick::table`](super::Tick::table).
    FlowCounts => FlowFigures {
        /// Flows that entered the table: those that left it, and by how much fuller it is.
        new_flows: u64,
        /// Flows that ended.
        ended: Derived,
        /// TCP flows that ended.
        ended_tcp: u64,
        /// UDP flows that ended.
        ended_udp: u64,
        /// TCP flows that ended and whose first packet was not seen.
        midstream: u64,
        /// How they ended.
        ends: FlowEnds,
        /// Packets in the records.
        flow_packets: u64 = "packets",
        /// Bytes of their IP packets.
        flow_bytes: u64 = "bytes",
        /// TCP segments with payload.
        data_segments: u64,
        /// TCP segments with payload that had been seen before.
        retransmissions: u64,
        /// TCP payload, each byte once.
        payload_bytes: u64,
        /// TCP payload that had been seen before.
        retransmitted_bytes: u64,
        /// TCP segments that came after later ones and had not been seen before.
        out_of_order: u64,
        /// Announcements of a window of zero.
        zero_windows: u64,
        /// Out-of-sequence segments by class, those that occurred.
        anomalies: Classes<Anomaly>,
        /// By application protocol.
        applications: Applications,
    }
    distributions {
        /// Round-trip times of flows, client to server and back: the sum of the means of both halves, of
        /// flows with samples of both. Nanoseconds.
        rtt_ns,
        /// Mean round-trip times of flows between the capture point and the server. Nanoseconds.
        server_rtt_ns,
        /// Mean round-trip times of flows between the capture point and the client. Nanoseconds.
        client_rtt_ns,
        /// From SYN to the ACK that completes the handshake. Nanoseconds.
        handshake_ns,
        /// Payload of both directions over the length of the flow, of flows that ended. Bits per second.
        throughput_bps,
        /// First to last packet of flows that ended. Nanoseconds.
        duration_ns,
    }
    derive |counts, figures| figures.ended = counts.ended_tcp.saturating_add(counts.ended_udp);
    is_sound |_| true;
}

words! {
    /// What flows are grouped by.
    FlowBy {
        /// Name of the server: of TLS or QUIC, else of HTTP, else the one the client resolved, else
        /// that of the certificate.
        Name = "name",
        /// Address and port of the server.
        Server = "server",
        /// Address of the client.
        Client = "client",
        /// Application protocol.
        Application = "application",
        /// Country of the client, where a database says where addresses are; its two letters.
        ClientCountry = "client_country",
        /// Country of the server.
        ServerCountry = "server_country",
        /// Autonomous system of the client.
        ClientAsn = "client_asn",
        /// Autonomous system of the server.
        ServerAsn = "server_asn",
    }
}

words! {
    /// What a table of flows is sorted by, largest first.
    FlowSort {
        /// Bytes of IP packets.
        Bytes = "bytes",
        /// Flows that ended.
        Flows = "flows",
        /// 95th percentile of the round-trip time.
        RttP95 = "rtt_p95",
        /// Share of retransmitted segments.
        Retransmissions = "retransmissions",
        /// Flows that were reset or never answered.
        Failed = "failed",
    }
}

words! {
    /// What there is a distribution of.
    FlowOf {
        /// Round-trip time, client to server and back.
        Rtt = "rtt",
        /// Half of it between the capture point and the server.
        ServerRtt = "server_rtt",
        /// Half of it between the capture point and the client.
        ClientRtt = "client_rtt",
        /// From SYN to the ACK that completes the handshake.
        Handshake = "handshake",
        /// Payload over the length of the flow, bits per second.
        Throughput = "throughput",
        /// First to last packet.
        Duration = "duration",
    }
}

rows! {
    /// One key of a table of flows.
    ///
    /// Units: nanoseconds for times, which are at most 12.5 % too large.
    FlowKeyed => FlowTopRow, FlowWireKeyed {
        /// The name, server, client or application.
        key,
        /// Bytes of IP packets of both directions; at most [`TopTable::floor`](super::TopTable::floor) too many.
        bytes,
        /// Flows that ended.
        flows: count,
        /// Of those, reset.
        reset: count,
        /// Of those, never answered.
        unanswered: count,
        /// TCP segments with payload.
        data_segments: count,
        /// Of those, sent again.
        retransmissions: count,
    }
    /// Round-trip times.
    histogram rtt {
        /// Median round-trip time.
        rtt_p50 = |times| times.quantile(500),
        /// 95th percentile of the round-trip time.
        rtt_p95 = |times| times.quantile(950),
    }
    about about;
}
