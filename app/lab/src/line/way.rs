//! One direction of a line: what becomes of each frame.
//!
//! What a line did, counted by direction and by kind of frame.

use linkweir_load::frames::Frames;
use linkweir_load::path::DelayLine;
use linkweir_model::Random;
use linkweir_wire::{LinkType, TcpFlags, Timestamp, Transport, decode};
use serde::Serialize;
use std::time::Duration;

/// Frames that may be late at a time, and their bytes.
const LATE_FRAMES: usize = 100_000;
const LATE_BYTES: usize = 128 << 20;

/// What is done to frames; only TCP segments and UDP datagrams are lost or come late.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Harm {
    /// How long each frame is on its way.
    pub latency: Duration,
    /// Part of them that is lost.
    pub loss: f64,
    /// Part of the others that comes late.
    pub reorder: f64,
    /// By how much more.
    pub delay: Duration,
}

/// One direction. What becomes of its segment number n is named by the seed and n alone.
#[derive(Debug)]
pub(super) struct Way {
    harm: Harm,
    random: Random,
    late: DelayLine,
    counts: Counts,
}

impl Way {
    /// Direction `number` of a seed.
    pub(super) fn new(harm: Harm, seed: u64, number: u64) -> Self {
        Self {
            harm,
            random: Random::part(seed, number),
            late: DelayLine::new(LATE_FRAMES, LATE_BYTES),
            counts: Counts::default(),
        }
    }

    /// Takes a frame: it goes to `out` now, or late, or never.
    pub(super) fn take(&mut self, frame: &[u8], now: Timestamp, out: &mut Frames) {
        let (kind, payload) = Kind::of(frame);
        self.counts.frames += 1;
        let mut wait = self.harm.latency;
        if kind != Kind::Other {
            self.counts.segments.add(kind);
            self.counts.payload_bytes += payload;
            // Both are drawn for each, so that the fate of one does not move that of the next.
            let (is_lost, is_late) = (
                self.random.uniform() < self.harm.loss,
                self.random.uniform() < self.harm.reorder,
            );
            if is_lost {
                self.counts.lost.add(kind);
                self.counts.lost_bytes += payload;
                return;
            }
            if is_late {
                wait += self.harm.delay;
                self.counts.late.add(kind);
            }
        }
        if wait.is_zero() {
            self.pass(frame, out);
        } else if !self.late.put(now + wait, frame) {
            self.counts.no_room += 1;
            self.pass(frame, out);
        }
    }

    /// Hands on what has waited long enough.
    pub(super) fn pop_due(&mut self, now: Timestamp, out: &mut Frames) {
        let passed = &mut self.counts.passed;
        self.late.pop_due(now, |_, frame| {
            *passed += 1;
            out.push(frame);
        });
    }

    /// When that is so next.
    pub(super) fn next_deadline(&self) -> Option<Timestamp> {
        self.late.next_deadline()
    }

    /// What was done so far.
    pub(super) const fn counts(&self) -> Counts {
        self.counts
    }

    fn pass(&mut self, frame: &[u8], out: &mut Frames) {
        self.counts.passed += 1;
        out.push(frame);
    }
}

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
    /// A UDP datagram.
    Datagram,
    /// Neither TCP nor UDP: never lost, never late.
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
        let tcp = match packet.transport {
            Transport::Tcp(tcp) => tcp,
            Transport::Udp(udp) => return (Self::Datagram, udp.payload_len.into()),
            _ => return (Self::Other, 0),
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

/// Segments by kind, and datagrams.
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
    /// Datagrams of UDP.
    pub datagram: u64,
}

impl Segments {
    /// Counts one. What is not a segment is not counted.
    pub(super) const fn add(&mut self, kind: Kind) {
        let count = match kind {
            Kind::Syn => &mut self.syn,
            Kind::Data => &mut self.data,
            Kind::Fin => &mut self.fin,
            Kind::Ack => &mut self.ack,
            Kind::Rst => &mut self.rst,
            Kind::Datagram => &mut self.datagram,
            Kind::Other => return,
        };
        *count += 1;
    }

    /// All of them.
    #[must_use]
    pub const fn all(&self) -> u64 {
        self.syn + self.data + self.fin + self.ack + self.rst + self.datagram
    }
}

/// What became of the frames of one direction.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Counts {
    /// Frames received, segments or not.
    pub frames: u64,
    /// Frames handed on.
    pub passed: u64,
    /// TCP segments and UDP datagrams received.
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
