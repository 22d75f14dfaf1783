//! What can be set, and what was counted.

use std::time::Duration;

/// How the emulated clients do TCP. The defaults name their source.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TcpSettings {
    /// Connections at a time; memory for them is reserved, and touched when it is used.
    pub max_connections: u32,
    /// Maximum segment size announced over IPv4; over IPv6 it is 20 less. 1460: Ethernet (RFC 9293
    /// sec. 3.7.1, RFC 6691).
    pub mss: u16,
    /// Bytes of the receive window, constant. At most 2^30. 256 KiB: ours.
    pub receive_window: u32,
    /// Whether timestamps are offered (RFC 7323).
    pub timestamps: bool,
    /// Whether selective acknowledgments are offered (RFC 2018).
    pub sack: bool,
    /// How long an acknowledgment may wait for a second segment or for data. 40 ms: Linux; RFC 9293
    /// sec. 3.8.6.3 allows 500 ms.
    pub delayed_ack: Duration,
    /// Whether the acknowledgment of the SYN ACK may wait like others. It saves a segment where the
    /// request follows at once; the server learns later that the connection is made. No: as other
    /// clients do.
    pub delay_handshake_ack: bool,
    /// Retransmission timeout before the first sample. 1 s: RFC 6298 (2.1).
    pub initial_rto: Duration,
    /// The least retransmission timeout, beyond the round trip. 200 ms: Linux; RFC 6298 (2.4) says
    /// that the sum should be 1 s at least.
    pub min_rto: Duration,
    /// The longest retransmission timeout. 60 s: the least that RFC 6298 (2.5) allows.
    pub max_rto: Duration,
    /// Retransmissions of a SYN. 6: Linux.
    pub syn_retries: u8,
    /// Retransmissions of data or FIN, and probes of a closed window that nobody answers. 15: Linux;
    /// RFC 9293 sec. 3.8.3 wants 100 s at least.
    pub retries: u8,
    /// How long a connection that we closed first stays in TIME-WAIT. 1 s: ours. RFC 9293 says
    /// 4 minutes, Linux has 1; a generator that waits so long holds millions of dead connections.
    /// What protects the next connection of the same ports instead: the ports of a client are used in
    /// turn, and initial sequence numbers and timestamps grow with time (RFC 6528, RFC 6191).
    pub time_wait: Duration,
    /// Connections in TIME-WAIT; when there are more, the oldest leaves early and is counted.
    pub max_time_wait: u32,
    /// How long a server may leave its side open after ours is closed and acknowledged
    /// (FIN-WAIT-2). 60 s: Linux; RFC 9293 has no limit.
    pub fin_wait_2: Duration,
    /// First port of each client. 1024: the first that is not a system port (RFC 6335).
    pub first_port: u16,
    /// Last port of each client.
    pub last_port: u16,
    /// Bytes that wait to be sent or acknowledged, of all connections.
    pub send_pool: u64,
    /// Bytes that arrived out of order, of all connections.
    pub receive_pool: u64,
    /// Bytes that arrived out of order, of one connection; at most the window counts.
    pub held_per_connection: u32,
    /// Acknowledgments a second that only answer what cannot be right (RFC 5961 sec. 7), of all
    /// connections.
    pub challenge_acks_per_second: u32,
}

impl Default for TcpSettings {
    fn default() -> Self {
        Self {
            max_connections: 262_144,
            mss: 1460,
            receive_window: 1 << 18,
            timestamps: true,
            sack: true,
            delayed_ack: Duration::from_millis(40),
            delay_handshake_ack: false,
            initial_rto: Duration::from_secs(1),
            min_rto: Duration::from_millis(200),
            max_rto: Duration::from_secs(60),
            syn_retries: 6,
            retries: 15,
            time_wait: Duration::from_secs(1),
            max_time_wait: 262_144,
            fin_wait_2: Duration::from_secs(60),
            first_port: 1024,
            last_port: u16::MAX,
            send_pool: 64 << 20,
            receive_pool: 64 << 20,
            held_per_connection: 1 << 18,
            challenge_acks_per_second: 10_000,
        }
    }
}

impl TcpSettings {
    /// The shift that lets the window be said in 16 bits (RFC 7323 sec. 2).
    pub(super) fn window_scale(&self) -> u8 {
        let window = self.receive_window.clamp(1, 1 << 30);
        // At most 14.
        (0..14)
            .find(|shift| window >> shift <= 0xffff)
            .unwrap_or(14)
    }
}

/// What was counted, over all connections since the beginning.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TcpCounts {
    /// Connections begun.
    pub connects: u64,
    /// Connections made.
    pub established: u64,
    /// Segments sent, all kinds.
    pub segments_out: u64,
    /// Segments heard, all kinds.
    pub segments_in: u64,
    /// Bytes of payload sent, those sent again too.
    pub payload_out: u64,
    /// Bytes of payload delivered in order, each once.
    pub payload_in: u64,
    /// SYNs sent again.
    pub syn_retransmissions: u64,
    /// Segments with data or FIN sent again.
    pub retransmissions: u64,
    /// Times that fast retransmit began (RFC 5681 sec. 3.2).
    pub fast_retransmits: u64,
    /// Times that the retransmission timer of data or FIN expired.
    pub timeouts: u64,
    /// Duplicate acknowledgments heard.
    pub duplicate_acks: u64,
    /// Segments that arrived ahead of a gap.
    pub out_of_order: u64,
    /// Segments ahead of a gap that found no room in the pool: the server sends them again.
    pub not_held: u64,
    /// Segments that brought nothing new.
    pub duplicates: u64,
    /// Segments whose payload was cut on the way to us (snap length): not acknowledged.
    pub cut: u64,
    /// RSTs that ended a connection.
    pub resets_in: u64,
    /// RSTs sent.
    pub resets_out: u64,
    /// Segments of no connection.
    pub strays: u64,
    /// Acknowledgments sent because of RFC 5961, or of a segment outside the window.
    pub challenge_acks: u64,
    /// Such acknowledgments that were not sent, by the limit.
    pub challenge_acks_limited: u64,
    /// Segments with an old timestamp (PAWS, RFC 7323 sec. 5).
    pub paws: u64,
    /// Segments without the timestamp that was agreed upon (RFC 7323 sec. 3.2).
    pub no_timestamp: u64,
    /// Acknowledgments of what was never sent.
    pub bad_acks: u64,
    /// SYNs without ACK: simultaneous open is not supported.
    pub simultaneous_opens: u64,
    /// Probes of a closed window sent.
    pub window_probes: u64,
    /// Segments that a connection in TIME-WAIT answered.
    pub time_wait_answers: u64,
    /// Connections that left TIME-WAIT early.
    pub time_wait_evicted: u64,
    /// Connections given up in FIN-WAIT-2.
    pub fin_wait_2_timeouts: u64,
    /// Times that [`send`](super::TcpClients::send) found no room in the pool.
    pub send_pool_full: u64,
    /// Samples of the round-trip time, of segments that were sent once.
    pub rtt_samples: u64,
    /// Their sum, nanoseconds.
    pub rtt_sum_ns: u64,
    /// The least, nanoseconds; 0 before the first.
    pub rtt_min_ns: u64,
    /// The greatest, nanoseconds.
    pub rtt_max_ns: u64,
}

impl TcpCounts {
    pub(super) fn round_trip(&mut self, ns: u64) {
        self.rtt_min_ns = if self.rtt_samples == 0 {
            ns
        } else {
            self.rtt_min_ns.min(ns)
        };
        self.rtt_max_ns = self.rtt_max_ns.max(ns);
        self.rtt_samples += 1;
        self.rtt_sum_ns = self.rtt_sum_ns.saturating_add(ns);
    }
}
