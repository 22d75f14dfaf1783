//! Bounds of what the gateway keeps, and what happens at them.

use serde::Deserialize;

/// What happens to a packet that would have to be held at a bound.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum AtLimit {
    /// It is dropped; its sender sends it again.
    #[default]
    Drop,
    /// It passes, and so does the rest of its connection, unseen.
    Pass,
}

/// Bounds. Each is for one worker (one kernel queue).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Connections that are being classified or inspected; beyond, the one that was silent longest is
    /// forgotten: its packets pass or not as its rule's `fail` says.
    pub connections: usize,
    /// Connections of which only the handshake was seen.
    pub half_open: usize,
    /// Packets with payload after which a connection is unknown (paper sec. 3.2: eight).
    pub classify_packets: u8,
    /// Bytes of one direction after which a connection is unknown.
    pub classify_bytes: usize,
    /// Packets held of one direction of a connection.
    pub held_packets: usize,
    /// Payload bytes kept of one direction of a connection: of packets that wait, of what has passed ahead
    /// of a gap, and of what its receiver has not acknowledged.
    pub held_bytes: usize,
    /// Packets held of all connections; one address may have as many as are free.
    pub total_held_packets: usize,
    /// Payload bytes kept of all connections; one address may have as many as are free.
    pub total_held_bytes: usize,
    /// How long an inspected connection may be silent, nanoseconds.
    pub idle_timeout_ns: u64,
    /// What happens at a bound of held packets.
    pub at_limit: AtLimit,
    /// Bytes of memory for scan windows and decoders of all files that pass; a file beyond is one that
    /// cannot be inspected.
    pub inspect_bytes: usize,
    /// Bytes that a coded body (gzip, deflate) may decode to.
    pub decoded_bytes: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connections: 65_536,
            half_open: 65_536,
            classify_packets: 8,
            classify_bytes: 2048,
            held_packets: 256,
            held_bytes: 8 << 20,
            total_held_packets: 8192,
            total_held_bytes: 64 << 20,
            idle_timeout_ns: 300_000_000_000,
            at_limit: AtLimit::Drop,
            inspect_bytes: 256 << 20,
            decoded_bytes: 256 << 20,
        }
    }
}
