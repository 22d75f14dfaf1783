//! What a line did, counted by direction and by kind of frame.

use linkweir_wire::{LinkType, TcpFlags, Transport, decode};
use serde::Serialize;

/// What a frame is to those who count retransmissions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// SYN or SYN-ACK.
    Syn,
    /// With payload; a FIN may be with it.
    Data,
    /// FIN without payload.
    Fin,
    /// Nothing but an acknowledgment.
    Ack,
    /// RST.
    Rst,
    /// No TCP: never lost, never late.
    Other,
}

impl Kind {
    /// The kind of a frame, and its bytes of payload.
    #[must_use]
    pub fn of(frame: &[u8]) -> (Self, u64) {
        let wire_len = u32::try_from(frame.len()).unwrap_or(u32::MAX);
        let Ok(packet) = decode(LinkType::ETHERNET, frame, wire_len) else {
            return (Self::Other, 0);
        };
        let Transport::Tcp(tcp) = packet.transport else {
            return (Self::Other, 0);
        };
        let flags = tcp.flags();
        let kind = match tcp.payload_len {
            _ if flags.contains(TcpFlags::SYN) => Self::Syn,
            _ if flags.contains(TcpFlags::RST) => Self::Rst,
            0 if flags.contains(TcpFlags::FIN) => Self::Fin,
            0 => Self::Ack,
            _ => Self::Data,
        };
        (kind, tcp.payload_len.into())
    }
}

/// Segments by kind.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Segments {
    /// With SYN.
    pub syn: u64,
    /// With payload.
    pub data: u64,
    /// FIN without payload.
    pub fin: u64,
    /// Acknowledgments without anything else.
    pub ack: u64,
    /// With RST.
    pub rst: u64,
}

impl Segments {
    /// Counts one. What is no segment is not counted.
    pub(super) const fn add(&mut self, kind: Kind) {
        let count = match kind {
            Kind::Syn => &mut self.syn,
            Kind::Data => &mut self.data,
            Kind::Fin => &mut self.fin,
            Kind::Ack => &mut self.ack,
            Kind::Rst => &mut self.rst,
            Kind::Other => return,
        };
        *count += 1;
    }

    /// All of them.
    #[must_use]
    pub const fn all(&self) -> u64 {
        self.syn + self.data + self.fin + self.ack + self.rst
    }
}

/// What became of the frames of one direction.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Counts {
    /// Frames received, segments or not.
    pub frames: u64,
    /// Frames handed on.
    pub passed: u64,
    /// TCP segments received.
    pub segments: Segments,
    /// Those that were lost.
    pub lost: Segments,
    /// Those that came late. They were not lost.
    pub late: Segments,
    /// Payload received, bytes.
    pub payload_bytes: u64,
    /// Payload lost, bytes.
    pub lost_bytes: u64,
    /// Frames that were to come late and went at once: too many waited already.
    pub no_room: u64,
}
