//! Sending frames, one way or the other.

mod packet;
mod xdp;

use crate::{PortError, PortOptions, SenderKind};
use packet::PacketSender;
use xdp::XdpSender;

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
    Xdp(XdpSender),
}

impl Sender {
    /// Opens what was asked for; a note where it is something else.
    pub(crate) fn open(
        options: &PortOptions,
        interface: u32,
    ) -> Result<(Self, Option<String>), PortError> {
        let name = &options.interface;
        let fault = |error| PortError::of(error, "opening a sender", name, None);
        let mut note = None;
        if options.sender != SenderKind::Packet {
            match XdpSender::open(name, interface) {
                Ok(sender) => return Ok((Self::Xdp(sender), None)),
                Err(error) if options.sender == SenderKind::Xdp => return Err(fault(error)),
                Err(error) => {
                    note = Some(format!(
                        "frames are sent by a packet socket, AF_XDP on {name:?}: {error}"
                    ));
                }
            }
        }
        let packet = PacketSender::open(interface).map_err(fault)?;
        Ok((Self::Packet(packet), note))
    }

    pub(crate) const fn kind(&self) -> SenderKind {
        match self {
            Self::Packet(_) => SenderKind::Packet,
            Self::Xdp(_) => SenderKind::Xdp,
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
            Self::Packet(sender) => {
                let sending = sender.send(frames, sent);
                sending.map_err(|error| {
                    PortError::of(error, "sending", interface, Some(sender.socket()))
                })
            }
            Self::Xdp(sender) => sender
                .send(frames, sent)
                .map_err(|error| PortError::of(error, "sending", interface, None)),
        }
    }
}
