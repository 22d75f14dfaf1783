//! Sending frames: by a packet socket or by an `AF_XDP` socket.

use std::io;
use std::time::Duration;

use linkweir_sys::interface;
use linkweir_sys::packet_socket::{Framing, Outbox, PacketSocket};
use linkweir_sys::wait::{monotonic_ns, pause, writable};
use linkweir_sys::xdp::{Kick, XdpSender as Socket};

use crate::{PortError, PortOptions, SenderKind};

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

/// Memory for frames that the driver has not sent yet.
const SEND_BUFFER: usize = 16 << 20;

/// `ENOBUFS`: the driver's queue is full. Nothing tells when it is not.
const NO_BUFFERS: i32 = 105;
/// `EMSGSIZE`.
const TOO_LONG: i32 = 90;

/// A packet socket that only sends.
#[derive(Debug)]
pub(crate) struct PacketSender {
    socket: PacketSocket,
    outbox: Outbox,
}

impl PacketSender {
    pub(crate) fn open(interface: u32) -> io::Result<Self> {
        let socket = PacketSocket::open(Framing::Link)?;
        socket.bypass_queueing()?;
        socket.set_send_buffer(SEND_BUFFER)?;
        socket.bind_to_send(interface)?;
        Ok(Self {
            socket,
            outbox: Outbox::new(),
        })
    }

    pub(crate) const fn socket(&self) -> &PacketSocket {
        &self.socket
    }

    /// Sends all of them, or says what became of the rest.
    pub(crate) fn send(&mut self, mut frames: &[&[u8]], sent: &mut Sent) -> io::Result<()> {
        let mut since = None;
        while let Some((first, behind)) = frames.split_first() {
            match self.outbox.send(&self.socket, frames) {
                // Not even one, and no reason: as if its queue were full.
                Ok(0) => {}
                Ok(count) => {
                    let (gone, left) = frames.split_at_checked(count).unwrap_or((frames, &[]));
                    sent.frames += gone.len() as u64;
                    sent.bytes += gone.iter().map(|frame| frame.len() as u64).sum::<u64>();
                    frames = left;
                    since = None;
                    continue;
                }
                Err(error) if error.raw_os_error() == Some(TOO_LONG) || first.is_empty() => {
                    sent.refused += 1;
                    frames = behind;
                    continue;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    writable(&self.socket, Duration::from_millis(1))?;
                }
                Err(error) if error.raw_os_error() == Some(NO_BUFFERS) => {
                    pause(Duration::from_micros(20));
                }
                Err(error) => return Err(error),
            }
            sent.stalls += 1;
            let now = monotonic_ns();
            if now.saturating_sub(*since.get_or_insert(now)) > PATIENCE_NS {
                sent.refused += frames.len() as u64;
                return Ok(());
            }
        }
        Ok(())
    }
}

/// Frames that the kernel may hold before the driver has sent them: 4 MiB for an MTU of 1500, half of
/// the memory that an ordinary user may lock.
const CHUNKS: u32 = 2048;

/// An Ethernet header and two VLAN tags.
const LINK_BYTES: usize = 22;

/// After a socket of another program was closed its queue stays busy for a moment.
const TRIES: u32 = 20;

/// An `AF_XDP` socket that only sends.
#[derive(Debug)]
pub(crate) struct XdpSender {
    socket: Socket,
}

impl XdpSender {
    /// Opens a socket on the first queue of the interface that is free.
    pub(crate) fn open(name: &str, interface: u32) -> io::Result<Self> {
        let mtu = interface::mtu_of(name).and_then(|mtu| usize::try_from(mtu).ok());
        let longest = mtu.unwrap_or(1500).saturating_add(LINK_BYTES);
        let queues = interface::receive_queues_of(name);
        let mut tries = 0;
        loop {
            match Self::open_any(interface, queues, longest) {
                Ok(socket) => {
                    socket.set_send_buffer(SEND_BUFFER)?;
                    return Ok(Self { socket });
                }
                Err(error) if error.kind() == io::ErrorKind::ResourceBusy && tries < TRIES => {
                    tries += 1;
                    pause(Duration::from_millis(5));
                }
                Err(error) => return Err(error),
            }
        }
    }

    fn open_any(interface: u32, queues: u32, longest: usize) -> io::Result<Socket> {
        for queue in 1..queues {
            match Socket::open(interface, queue - 1, CHUNKS, longest) {
                Err(error) if error.kind() == io::ErrorKind::ResourceBusy => {}
                other => return other,
            }
        }
        Socket::open(interface, queues.saturating_sub(1), CHUNKS, longest)
    }

    /// Sends all of them, or says what became of the rest.
    pub(crate) fn send(&mut self, mut frames: &[&[u8]], sent: &mut Sent) -> io::Result<()> {
        let mut since = None;
        loop {
            while let Some((first, behind)) = frames.split_first() {
                if first.is_empty() || first.len() > self.socket.longest() {
                    sent.refused += 1;
                } else if self.socket.put(first) {
                    sent.frames += 1;
                    sent.bytes += first.len() as u64;
                } else {
                    break;
                }
                frames = behind;
            }
            let before = self.socket.untaken();
            if before == 0 && frames.is_empty() {
                return Ok(());
            }
            let kicked = self.socket.kick();
            let left = self.socket.untaken();
            match kicked {
                Ok(Kick::Done | Kick::Again) => {}
                Ok(Kick::Dropped) => Self::take_back(1, sent),
                Err(error) => {
                    // What is in the ring leaves when the interface is back, if ever.
                    Self::take_back(left.into(), sent);
                    sent.refused += frames.len() as u64;
                    return Err(error);
                }
            }
            // 32 frames at a time is the way of the kernel, and no stall.
            if left < before {
                since = None;
                continue;
            }
            sent.stalls += 1;
            let now = monotonic_ns();
            if now.saturating_sub(*since.get_or_insert(now)) > PATIENCE_NS {
                sent.refused += frames.len() as u64;
                return Ok(());
            }
            pause(Duration::from_micros(20));
        }
    }

    /// Frames that were counted as sent and are not.
    const fn take_back(frames: u64, sent: &mut Sent) {
        sent.frames = sent.frames.saturating_sub(frames);
        sent.refused += frames;
    }
}
