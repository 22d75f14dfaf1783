//! What a run of the stage counted.

use linkweir_record::flow::{Anomaly, Extent, FlowRow, Protocol};

/// Totals. Those of several workers add up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct FlowsStats {
    /// TCP flows that Tstat's logs count as complete.
    pub tcp_complete: u64,
    /// Other TCP flows.
    pub tcp_incomplete: u64,
    /// Of those, flows whose first SYN was not seen.
    pub tcp_midstream: u64,
    /// UDP flows.
    pub udp: u64,
    /// Partial records.
    pub partial: u64,
    /// Most flows in the table at once; of several workers the sum of theirs.
    pub peak_flows: u64,
    /// Flows that had to leave because the table was full.
    pub evicted: u64,
    /// Out-of-sequence segments by [`Anomaly`].
    pub anomalies: [u64; Anomaly::COUNT],
    /// Payload bytes seen again.
    pub bytes_retx: u64,
    /// Bytes of the IP packets of all flows.
    pub bytes: u64,
    /// Packets of all flows.
    pub packets: u64,
    /// Fragments without a transport header, which belong to no flow.
    pub fragments: u64,
    /// Packets of other protocols, and frames without IP.
    pub other: u64,
    /// Segments whose numbers cannot be of their connection.
    pub impossible_sequences: u64,
    /// Segments in flight that were forgotten because too many were.
    pub forgotten_segments: u64,
    /// Flows whose payload was not looked at, for want of room.
    pub layer7_refused: u64,
    /// Queries of DNS that left before their response, because too many waited.
    pub queries_evicted: u64,
}

impl FlowsStats {
    /// Adds what another worker counted.
    pub fn merge(&mut self, other: &Self) {
        for (mine, theirs) in [
            (&mut self.tcp_complete, other.tcp_complete),
            (&mut self.tcp_incomplete, other.tcp_incomplete),
            (&mut self.tcp_midstream, other.tcp_midstream),
            (&mut self.udp, other.udp),
            (&mut self.partial, other.partial),
            (&mut self.peak_flows, other.peak_flows),
            (&mut self.evicted, other.evicted),
            (&mut self.bytes_retx, other.bytes_retx),
            (&mut self.bytes, other.bytes),
            (&mut self.packets, other.packets),
            (&mut self.fragments, other.fragments),
            (&mut self.other, other.other),
            (&mut self.impossible_sequences, other.impossible_sequences),
            (&mut self.forgotten_segments, other.forgotten_segments),
            (&mut self.layer7_refused, other.layer7_refused),
            (&mut self.queries_evicted, other.queries_evicted),
        ] {
            *mine = mine.saturating_add(theirs);
        }
        for (mine, theirs) in self.anomalies.iter_mut().zip(other.anomalies) {
            *mine = mine.saturating_add(theirs);
        }
    }

    /// Counts a record.
    pub(crate) fn record(&mut self, row: &FlowRow) {
        if row.extent == Extent::Partial {
            self.partial += 1;
            return;
        }
        match row.protocol {
            Protocol::Udp => self.udp += 1,
            Protocol::Tcp if row.is_complete() => self.tcp_complete += 1,
            Protocol::Tcp => {
                self.tcp_incomplete += 1;
                self.tcp_midstream += u64::from(!row.has_syn);
            }
        }
        for side in [&row.client, &row.server] {
            self.bytes = self.bytes.saturating_add(side.ip_bytes);
            self.packets = self.packets.saturating_add(side.pkts_all);
            self.bytes_retx = self.bytes_retx.saturating_add(side.bytes_retx);
            for (mine, theirs) in self.anomalies.iter_mut().zip(side.anomalies) {
                *mine = mine.saturating_add(theirs);
            }
        }
    }
}
