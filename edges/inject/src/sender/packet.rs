//! Sending by a packet socket.

use std::io;
use std::time::Duration;

use linkweir_sys::packet_socket::{Framing, Outbox, PacketSocket};
use linkweir_sys::wait::{monotonic_ns, pause, writable};

use super::{PATIENCE_NS, Sent};

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
