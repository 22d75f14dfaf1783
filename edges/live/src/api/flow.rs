//! What the statistics say of flows.

use std::collections::BTreeMap;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::{Percentiles, UnknownWord, Word};

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

/// What the flows of an interval, or of a run, came to.
///
/// A flow counts in the interval in which its record came: when it ended; with partial records its
/// packets, bytes and segments count in that of each partial record, and it ends but once. How many
/// there are at the moment is [`Tick::table`](super::Tick::table).
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct FlowFigures {
    /// Flows that entered the table: what left it and how much fuller it is.
    pub new_flows: u64,
    /// Flows that ended.
    pub ended: u64,
    /// TCP flows that ended.
    pub ended_tcp: u64,
    /// UDP flows that ended.
    pub ended_udp: u64,
    /// TCP flows that ended and whose first packet was not seen.
    pub midstream: u64,
    /// What became of those that ended.
    pub ends: FlowEnds,
    /// Packets in the records.
    pub flow_packets: u64,
    /// Bytes of their IP packets.
    pub flow_bytes: u64,
    /// TCP segments with payload.
    pub data_segments: u64,
    /// TCP segments with payload that had been seen before.
    pub retransmissions: u64,
    /// TCP payload, each byte once.
    pub payload_bytes: u64,
    /// TCP payload that had been seen before.
    pub retransmitted_bytes: u64,
    /// TCP segments that came after later ones and had not been seen before.
    pub out_of_order: u64,
    /// Announcements of a window of zero.
    pub zero_windows: u64,
    /// Out-of-sequence segments by class, those that occurred.
    pub anomalies: BTreeMap<&'static str, u64>,
    /// By application protocol.
    pub applications: BTreeMap<&'static str, Application>,
    /// Round-trip times of flows, client to server and back: the sum of the means of both halves, of
    /// flows with samples of both. Nanoseconds.
    pub rtt_ns: Option<Percentiles>,
    /// Mean round-trip times of flows between the capture point and the server. Nanoseconds.
    pub server_rtt_ns: Option<Percentiles>,
    /// Mean round-trip times of flows between the capture point and the client. Nanoseconds.
    pub client_rtt_ns: Option<Percentiles>,
    /// From SYN to the ACK that completes the handshake. Nanoseconds.
    pub handshake_ns: Option<Percentiles>,
    /// Payload of both directions over the length of the flow, of flows that ended. Bits per second.
    pub throughput_bps: Option<Percentiles>,
    /// First to last packet of flows that ended. Nanoseconds.
    pub duration_ns: Option<Percentiles>,
}

impl FlowFigures {
    /// The distribution of `of`.
    #[must_use]
    pub const fn percentiles(&self, of: FlowOf) -> Option<&Percentiles> {
        match of {
            FlowOf::Rtt => self.rtt_ns.as_ref(),
            FlowOf::ServerRtt => self.server_rtt_ns.as_ref(),
            FlowOf::ClientRtt => self.client_rtt_ns.as_ref(),
            FlowOf::Handshake => self.handshake_ns.as_ref(),
            FlowOf::Throughput => self.throughput_bps.as_ref(),
            FlowOf::Duration => self.duration_ns.as_ref(),
        }
    }

    pub(crate) const fn percentiles_mut(&mut self, of: FlowOf) -> &mut Option<Percentiles> {
        match of {
            FlowOf::Rtt => &mut self.rtt_ns,
            FlowOf::ServerRtt => &mut self.server_rtt_ns,
            FlowOf::ClientRtt => &mut self.client_rtt_ns,
            FlowOf::Handshake => &mut self.handshake_ns,
            FlowOf::Throughput => &mut self.throughput_bps,
            FlowOf::Duration => &mut self.duration_ns,
        }
    }
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

/// One key of a table of flows.
///
/// Units: nanoseconds for times, which are at most 12.5 % too large.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FlowTopRow {
    /// The name, server, client or application.
    pub key: String,
    /// Bytes of IP packets of both directions; at most
    /// [`TopTable::floor`](super::TopTable::floor) too many.
    pub bytes: u64,
    /// Flows that ended.
    pub flows: u64,
    /// Of those, reset.
    pub reset: u64,
    /// Of those, never answered.
    pub unanswered: u64,
    /// TCP segments with payload.
    pub data_segments: u64,
    /// Of those, sent again.
    pub retransmissions: u64,
    /// Median round-trip time.
    pub rtt_p50: Option<u64>,
    /// 95th percentile of the round-trip time.
    pub rtt_p95: Option<u64>,
}
