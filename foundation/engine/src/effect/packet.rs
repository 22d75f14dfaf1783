//! Packets that wait for a verdict, and the verdict.

use std::net::SocketAddr;

use linkweir_wire::SeqNumber;

/// A packet that the kernel keeps until it is answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QueuedPacket<'a> {
    /// The kernel's number of it, unique within its queue.
    pub id: u32,
    /// The mark it carries.
    pub mark: u32,
    /// The IP packet, from its header on. With segmentation offload it is longer than any packet of a
    /// link: up to 64 KiB.
    pub bytes: &'a [u8],
    /// Its length in the kernel, at least that of `bytes`.
    pub wire_len: u32,
    /// Whether somebody has to look at its transport checksum: false where the hardware did, or
    /// where the sender is on this machine and leaves it to the hardware.
    pub is_checksum_open: bool,
}

/// What happens to a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// It goes on.
    Accept,
    /// It is gone.
    Drop,
    /// It passes the rules of its hook once more, now with the mark of the answer: the kernel's own
    /// rules drop or reset it, and the rest of its connection.
    Repeat,
}

/// The verdict for one packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Answer {
    /// [`QueuedPacket::id`].
    pub id: u32,
    /// What happens to it.
    pub verdict: Verdict,
    /// The mark it gets; `None` leaves it as it is.
    pub mark: Option<u32>,
}

/// A segment that the gateway sends itself, in the name of one end to the other.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OwnSegment {
    /// In whose name.
    pub from: SocketAddr,
    /// To whom.
    pub to: SocketAddr,
    /// Number of its first byte.
    pub seq: SeqNumber,
    /// What it acknowledges.
    pub ack: SeqNumber,
    /// Its window, not shifted.
    pub window: u16,
    /// Its timestamp and the one that it echoes (RFC 7323 sec. 3), where the ends use them.
    pub timestamps: Option<(u32, u32)>,
    /// Its bytes.
    pub payload: Vec<u8>,
    /// Whether the stream ends with it.
    pub is_fin: bool,
}

/// A TCP connection to be torn down: one RST to each end (RFC 9293 sec. 3.10.7), each with the
/// sequence number that end expects (RFC 5961 sec. 3.2 ignores others).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reset {
    /// Who opened the connection.
    pub client: SocketAddr,
    /// Who accepted it.
    pub server: SocketAddr,
    /// Next sequence number of the client's stream: what the server expects.
    pub client_next: SeqNumber,
    /// Next sequence number of the server's stream: what the client expects.
    pub server_next: SeqNumber,
}
