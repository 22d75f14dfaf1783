//! A packet queue of the kernel (NFQUEUE): packets come in, verdicts go out.
//!
//! Packets are taken many per system call and answered many per system call, each by its number and
//! in any order: a packet that is held holds up no other.
//!
//! What Linux 6.18 does, as the tests in namespaces show (iptables with the nftables kernel part):
//!
//! * The mark of a verdict is on the packet for every rule that follows: one in POSTROUTING can save
//!   it to the connection.
//! * A packet with the verdict [`Repeat`](linkweir_engine::Verdict::Repeat) begins anew at the first
//!   rule of the chain that queued it, with its new mark. A rule there that restores the
//!   connection's mark must pass over it, or the new mark is lost.
//! * A connection exists once its first packet has left. Where that one is dropped, so is the mark
//!   that was saved, and the next packet is a first one again.
//! * When a queue is closed, packets without a verdict are dropped, those held and those not yet
//!   received alike, and `--queue-bypass` changes nothing for them.
//! * Held packets cost the others nothing: 12 000 of them left throughput and CPU time as they were.
//! * Where connections are tracked the kernel has looked at the checksums before, and
//!   [`is_checksum_open`](QueuedPacket::is_checksum_open) is left for wrong ones.
//!
//! Source: `linux/netfilter/nfnetlink_queue.h`.

mod config;
mod packet;

use std::io;
use std::time::Duration;

use linkweir_engine::{Answer, QueuedPacket};
use linkweir_sys::netlink::{Arena, NetfilterSocket, ReceiveBuffer, Waker};

use crate::message::{ERROR, Messages, acknowledgment};

pub use config::QueueError;
pub use config::QueueOptions;

/// `NFNL_SUBSYS_QUEUE`.
const SUBSYSTEM: u8 = 3;
/// `NFQNL_MSG_PACKET`, with the subsystem.
const PACKET: u16 = (SUBSYSTEM as u16) << 8;
/// Verdicts in one send: few enough that the kernel finds memory for it in one piece.
const ANSWERS_PER_SEND: usize = 256;
/// `ENOBUFS`.
const NO_ROOM: i32 = 105;

/// What was counted at a queue since it was opened. Losses are of this end of the queue; for what the
/// kernel itself dropped see [`KernelQueue`](crate::stats::KernelQueue).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct QueueCounts {
    /// Packets received.
    pub packets: u64,
    /// Their bytes in the kernel.
    pub bytes: u64,
    /// Packets, and other messages, for which the socket had no room: they were dropped, or passed with
    /// fail-open. The receive buffer is too small, or the reader too slow.
    pub overruns: u64,
    /// Messages of the kernel that could not be read; a packet whose number could be read was given
    /// all the same, with the bytes that were good.
    pub malformed: u64,
    /// Datagrams that another process sent, not looked at.
    pub foreign: u64,
    /// Verdicts that the kernel refused: it had the packet no more.
    pub refused_answers: u64,
    /// System calls to send verdicts that failed.
    pub send_errors: u64,
}

/// A queue that this program serves; unbound when dropped.
#[derive(Debug)]
pub struct Queue {
    number: u16,
    socket: NetfilterSocket,
    waker: Waker,
    arena: Arena,
    receive_buffer: ReceiveBuffer,
    /// Verdicts on their way; kept for its memory.
    out: Vec<u8>,
    counts: QueueCounts,
}

impl Queue {
    /// Opens queue `number` of this network namespace: the one a rule names
    /// (`-j NFQUEUE --queue-num N`).
    ///
    /// # Errors
    /// [`QueueError`] says what to do.
    pub fn open(number: u16, options: &QueueOptions) -> Result<Self, QueueError> {
        let socket = config::open_socket(number)?;
        let receive_buffer = socket
            .set_receive_buffer(options.receive_buffer)
            .map_err(|error| QueueError::io(number, "set the receive buffer", error))?;
        let waker = Waker::new().map_err(|error| QueueError::io(number, "make a bell", error))?;
        let mut queue = Self {
            number,
            socket,
            waker,
            arena: Arena::new(),
            receive_buffer,
            out: Vec::with_capacity(ANSWERS_PER_SEND * packet::MAX_VERDICT),
            counts: QueueCounts::default(),
        };
        config::bind(&mut queue, options)?;
        Ok(queue)
    }

    /// Changes the settings while packets go through, all but the receive buffer. Packets that were not
    /// yet received come later, with new numbers.
    ///
    /// # Errors
    /// As [`Queue::open`]. The settings are then what they were.
    pub fn change(&mut self, options: &QueueOptions) -> Result<(), QueueError> {
        config::change(self, options)
    }

    /// Its number.
    #[must_use]
    pub const fn number(&self) -> u16 {
        self.number
    }

    /// The room at its socket that the kernel gave.
    #[must_use]
    pub const fn receive_buffer(&self) -> ReceiveBuffer {
        self.receive_buffer
    }

    /// What ends a [`Queue::receive`] from another thread.
    #[must_use]
    pub fn waker(&self) -> Waker {
        self.waker.clone()
    }

    /// Takes the packets that wait, 32 at most, and gives each to `on_packet`; where there are none,
    /// waits for some, for a [`Waker`] or for `limit`. Returns how many there were.
    ///
    /// While packets keep coming it does not look at the waker: who was announced by it is to be
    /// looked for after every receive.
    ///
    /// Each packet stays in the kernel until it is [answered](Queue::answer).
    ///
    /// # Errors
    /// The socket failed; the queue cannot be served any more.
    pub fn receive(
        &mut self,
        limit: Duration,
        on_packet: impl FnMut(QueuedPacket<'_>),
    ) -> Result<usize, QueueError> {
        // Under load the next packets are there already, and the question whether they are is saved.
        if !self.fill()? {
            let ready = self
                .socket
                .wait(&self.waker, limit)
                .map_err(|error| QueueError::io(self.number, "wait", error))?;
            if !ready.has_datagrams || !self.fill()? {
                return Ok(0);
            }
        }
        Ok(self.hand_out(on_packet))
    }

    /// Sends verdicts, in this order, each for a packet that was received and not yet answered. A
    /// number the kernel does not know is counted and does no harm.
    ///
    /// # Errors
    /// The kernel has no memory for them, twice in a row; the packets stay in the queue.
    pub fn answer(&mut self, answers: &[Answer]) -> Result<(), QueueError> {
        for part in answers.chunks(ANSWERS_PER_SEND) {
            self.out.clear();
            for answer in part {
                packet::append_answer(&mut self.out, self.number, answer);
            }
            if self.socket.send(&self.out).is_ok() {
                continue;
            }
            // A lack of memory passes. Verdicts that did get through would be refused, no more.
            self.counts.send_errors += 1;
            if let Err(error) = self.socket.send(&self.out) {
                self.counts.send_errors += 1;
                return Err(QueueError::io(self.number, "send verdicts", error));
            }
        }
        Ok(())
    }

    /// What was counted.
    #[must_use]
    pub fn counts(&self) -> QueueCounts {
        QueueCounts {
            // A socket that cannot say has no losses to tell of.
            overruns: self.socket.overruns().unwrap_or(0).into(),
            ..self.counts
        }
    }

    /// Fills the arena; whether there was anything.
    fn fill(&mut self) -> Result<bool, QueueError> {
        match self.socket.receive(&mut self.arena) {
            Ok(count) => Ok(count > 0),
            // A loss is counted by the socket, and the datagrams behind it are there.
            Err(error)
                if error.raw_os_error() == Some(NO_ROOM)
                    || matches!(
                        error.kind(),
                        io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted
                    ) =>
            {
                Ok(false)
            }
            Err(error) => Err(QueueError::io(self.number, "receive", error)),
        }
    }

    fn hand_out(&mut self, mut on_packet: impl FnMut(QueuedPacket<'_>)) -> usize {
        let mut given = 0;
        for datagram in self.arena.datagrams() {
            if !datagram.is_from_kernel {
                self.counts.foreign += 1;
                continue;
            }
            for message in Messages::new(datagram.bytes) {
                let Ok(message) = message else {
                    self.counts.malformed += 1;
                    continue;
                };
                match message.kind {
                    PACKET => {
                        let decoded = packet::decode(&message);
                        if decoded.is_none_or(|decoded| decoded.is_faulty) {
                            self.counts.malformed += 1;
                        }
                        if let Some(decoded) = decoded {
                            self.counts.packets += 1;
                            self.counts.bytes += u64::from(decoded.packet.wire_len);
                            given += 1;
                            on_packet(decoded.packet);
                        }
                    }
                    ERROR => match acknowledgment(&message) {
                        Some(code) => self.counts.refused_answers += u64::from(code != 0),
                        None => self.counts.malformed += 1,
                    },
                    _ => {}
                }
            }
        }
        given
    }
}
