//! Sending by an `AF_XDP` socket.

use std::io;
use std::time::Duration;

use linkweir_sys::interface;
use linkweir_sys::wait::{monotonic_ns, pause};
use linkweir_sys::xdp::{Kick, XdpSender as Socket};

use super::{PATIENCE_NS, Sent};

/// Frames that the kernel may hold before the driver has sent them: 4 MiB for an MTU of 1500, half of
/// the memory that an ordinary user may lock.
const CHUNKS: u32 = 2048;

/// Memory for frames that the driver has not sent yet.
const SEND_BUFFER: usize = 16 << 20;

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
