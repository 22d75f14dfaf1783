//! Sending frames, one way or the other.

mod packet;

use crate::{PortError, PortOptions, SenderKind};
use packet::PacketSender;

/// What became of frames that were to be sent.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Sent {
    /// Frames that the kernel took.
    pub frames: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Times that a queue was full, and was waited for.
    pub stalls: u64,
    /// Frames that were not sent: a queue stayed full, or the frame is longer than the interface
    /// takes. The run has lost them itself.
    pub refused: u64,
}

impl Sent {
    pub(crate) const fn add(&mut self, other: Self) {
        self.frames += other.frames;
        self.bytes += other.bytes;
        self.stalls += other.stalls;
        self.refused += other.refused;
    }
}

/// Frames handed over at a time.
pub(crate) const BATCH: usize = linkweir_sys::packet_socket::BATCH;

/// How long a full queue is waited for before its frames are given up.
const PATIENCE_NS: u64 = 100_000_000;

/// The sending side of a port.
#[derive(Debug)]
pub(crate) enum Sender {
    Packet(PacketSender),
}

impl Sender {
    /// Opens what was asked for; a note where it is something else.
    pub(crate) fn open(
        options: &PortOptions,
        interface: u32,
    ) -> Result<(Self, Option<String>), PortError> {
        let packet = PacketSender::open(interface)
            .map_err(|error| PortError::of(error, "opening a sender", &options.interface, None))?;
        Ok((Self::Packet(packet), None))
    }

    pub(crate) const fn kind(&self) -> SenderKind {
        match self {
            Self::Packet(_) => SenderKind::Packet,
        }
    }

    /// Sends up to [`BATCH`] frames.
    pub(crate) fn send(
        &mut self,
        frames: &[&[u8]],
        sent: &mut Sent,
        interface: &str,
    ) -> Result<(), PortError> {
        match self {
            Self::Packet(sender) => sender
                .send(frames, sent)
                .map_err(|error| PortError::of(error, "sending", interface, Some(sender.socket()))),
        }
    }
}
