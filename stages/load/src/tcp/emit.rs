//! Segments to the server.

use super::connection::{Connection, Marks, Remotes, State};
use super::flight::Range;
use super::keys::Keys;
use super::settings::{TcpCounts, TcpSettings};
use crate::seam::{Client, SegmentOut};
use linkweir_wire::emit::TcpFrame;
use linkweir_wire::{SeqNumber, TcpFlags, Timestamp};
use std::net::SocketAddr;
use std::time::Duration;

/// Bytes of the timestamps option with its padding.
pub(super) const TIMESTAMPS_LEN: u16 = 12;

/// Options of a segment: at most 40 bytes.
struct Options {
    bytes: [u8; 40],
    len: usize,
}

impl Options {
    const fn new() -> Self {
        Self {
            bytes: [0; 40],
            len: 0,
        }
    }

    fn put(&mut self, bytes: &[u8]) {
        if let Some(place) = self.bytes.get_mut(self.len..self.len + bytes.len()) {
            place.copy_from_slice(bytes);
            self.len += bytes.len();
        }
    }

    fn put_timestamps(&mut self, value: u32, echo: u32) {
        self.put(&[8, 10]);
        self.put(&value.to_be_bytes());
        self.put(&echo.to_be_bytes());
    }

    fn as_slice(&self) -> &[u8] {
        self.bytes.get(..self.len).unwrap_or_default()
    }
}

/// What a SYN says; it follows from this alone.
#[derive(Debug, Clone, Copy)]
pub(super) struct Syn {
    pub(super) client: Client,
    pub(super) local: SocketAddr,
    pub(super) remote: SocketAddr,
    pub(super) seq: SeqNumber,
    /// Maximum segment size to announce.
    pub(super) mss: u16,
}

/// What a segment says beside what the connection says.
#[derive(Debug, Clone, Copy)]
pub(super) struct Parts<'a> {
    pub(super) seq: SeqNumber,
    /// With ACK, always.
    pub(super) flags: TcpFlags,
    pub(super) payload: &'a [u8],
    /// Selective acknowledgments; at most three.
    pub(super) blocks: &'a [Range],
}

/// What sending needs beside the connection.
#[derive(Debug)]
pub(super) struct Sender {
    pub(super) settings: TcpSettings,
    pub(super) window_scale: u8,
    pub(super) keys: Keys,
    pub(super) remotes: Remotes,
    pub(super) counts: TcpCounts,
    challenges: Allowance,
}

/// What may be done so often a second.
#[derive(Debug, Default)]
struct Allowance {
    second: u64,
    used: u32,
}

impl Sender {
    pub(super) fn new(settings: TcpSettings, seed: u64) -> Self {
        Self {
            window_scale: settings.window_scale(),
            settings,
            keys: Keys::new(seed),
            remotes: Remotes::default(),
            counts: TcpCounts::default(),
            challenges: Allowance::default(),
        }
    }

    /// The retransmission timeout of a connection.
    pub(super) fn rto(&self, conn: &Connection) -> Duration {
        let settings = &self.settings;
        let mut initial = settings.initial_rto;
        if conn.state != State::SynSent && conn.marks.has(Marks::SYN_LOST) {
            // RFC 6298 (5.7).
            initial = initial.max(Duration::from_secs(3));
        }
        conn.round_trip
            .rto(conn.backoff, initial, settings.min_rto, settings.max_rto)
            // Whatever is set: a timer that is due at once would be due forever.
            .max(Duration::from_millis(1))
    }

    /// Bytes of the receive window.
    pub(super) fn receive_window(&self, conn: &Connection) -> u32 {
        let window = self.settings.receive_window.clamp(1, 1 << 30);
        if conn.marks.has(Marks::SCALED) {
            // What the field can say.
            window >> self.window_scale << self.window_scale
        } else {
            window.min(0xffff)
        }
    }

    /// Sends the SYN of a connection.
    pub(super) fn syn(&mut self, syn: &Syn, now: Timestamp, out: &mut impl SegmentOut) {
        let settings = &self.settings;
        let [high, low] = syn.mss.to_be_bytes();
        let mut options = Options::new();
        options.put(&[2, 4, high, low]);
        // In the order and with the padding of RFC 7323 appendix A and of Linux.
        match (settings.sack, settings.timestamps) {
            (true, true) => options.put(&[4, 2]),
            (true, false) => options.put(&[1, 1, 4, 2]),
            (false, true) => options.put(&[1, 1]),
            (false, false) => {}
        }
        if settings.timestamps {
            options.put_timestamps(self.keys.clock(syn.client, now), 0);
        }
        options.put(&[1, 3, 3, self.window_scale]);
        let frame = TcpFrame {
            seq: syn.seq,
            flags: TcpFlags::SYN,
            // Never scaled in a SYN (RFC 7323 sec. 2.2).
            window: u16::try_from(settings.receive_window).unwrap_or(u16::MAX),
            options: options.as_slice(),
            ..TcpFrame::new(syn.local, syn.remote)
        };
        self.counts.segments_out += 1;
        out.segment(syn.client, &frame, now);
    }

    /// Sends a segment of a connection that is made; it acknowledges all that has arrived.
    pub(super) fn segment(
        &mut self,
        conn: &mut Connection,
        parts: &Parts<'_>,
        now: Timestamp,
        out: &mut impl SegmentOut,
    ) {
        let Parts {
            seq,
            flags,
            payload,
            blocks,
        } = *parts;
        let Some(remote) = self.remotes.get(conn.remote) else {
            return;
        };
        let mut options = Options::new();
        if conn.marks.has(Marks::TIMESTAMPS) {
            options.put(&[1, 1]);
            options.put_timestamps(self.keys.clock(conn.client, now), conn.ts_recent);
        }
        if !blocks.is_empty() {
            let len = u8::try_from(2 + 8 * blocks.len()).unwrap_or(2);
            options.put(&[1, 1, 5, len]);
            for (from, to) in blocks {
                options.put(&from.0.to_be_bytes());
                options.put(&to.0.to_be_bytes());
            }
        }
        let window = self.receive_window(conn);
        let shift = if conn.marks.has(Marks::SCALED) {
            self.window_scale
        } else {
            0
        };
        let frame = TcpFrame {
            seq,
            ack: conn.rcv_nxt,
            flags: flags | TcpFlags::ACK,
            window: u16::try_from(window >> shift).unwrap_or(u16::MAX),
            options: options.as_slice(),
            payload,
            ..TcpFrame::new(conn.local(), remote)
        };
        conn.rcv_acked = conn.rcv_nxt;
        conn.marks.clear(Marks::ACK_NOW);
        if !conn.awaits_fin() {
            conn.marks.clear(Marks::ACK_OWED);
        }
        self.counts.segments_out += 1;
        self.counts.payload_out += payload.len() as u64;
        out.segment(conn.client, &frame, now);
    }

    /// Sends an empty ACK.
    pub(super) fn ack(
        &mut self,
        conn: &mut Connection,
        seq: SeqNumber,
        blocks: &[Range],
        now: Timestamp,
        out: &mut impl SegmentOut,
    ) {
        let parts = Parts {
            seq,
            flags: TcpFlags::ACK,
            payload: &[],
            blocks,
        };
        self.segment(conn, &parts, now, out);
    }

    /// Sends an ACK that answers what cannot be right, unless too many were sent this second
    /// (RFC 5961 sec. 7).
    pub(super) fn challenge(
        &mut self,
        conn: &mut Connection,
        seq: SeqNumber,
        now: Timestamp,
        out: &mut impl SegmentOut,
    ) {
        if self.may_challenge(now) {
            self.counts.challenge_acks += 1;
            self.ack(conn, seq, &[], now, out);
        }
    }

    /// Whether an answer to what cannot be right is within the limit.
    pub(super) fn may_challenge(&mut self, now: Timestamp) -> bool {
        let second = now.as_nanos() / 1_000_000_000;
        let challenges = &mut self.challenges;
        if challenges.second != second {
            *challenges = Allowance { second, used: 0 };
        }
        let is_allowed = challenges.used < self.settings.challenge_acks_per_second;
        if is_allowed {
            challenges.used += 1;
        } else {
            self.counts.challenge_acks_limited += 1;
        }
        is_allowed
    }

    /// Sends the RST of a connection that we give up; none where the server knows nothing of it.
    pub(super) fn reset(
        &mut self,
        conn: &mut Connection,
        seq: SeqNumber,
        now: Timestamp,
        out: &mut impl SegmentOut,
    ) {
        if conn.state != State::SynSent {
            self.counts.resets_out += 1;
            let parts = Parts {
                seq,
                flags: TcpFlags::RST,
                payload: &[],
                blocks: &[],
            };
            self.segment(conn, &parts, now, out);
        }
    }

    /// Sends a segment that belongs to no connection.
    pub(super) fn bare(
        &mut self,
        client: Client,
        frame: &TcpFrame<'_>,
        now: Timestamp,
        out: &mut impl SegmentOut,
    ) {
        self.counts.segments_out += 1;
        out.segment(client, frame, now);
    }

    /// Sends an ACK of a connection of which only the numbers are left; it echoes the timestamp of
    /// what it answers.
    pub(super) fn last_ack(
        &mut self,
        client: Client,
        frame: &TcpFrame<'_>,
        echo: Option<u32>,
        now: Timestamp,
        out: &mut impl SegmentOut,
    ) {
        let mut options = Options::new();
        if let Some(echo) = echo {
            options.put(&[1, 1]);
            options.put_timestamps(self.keys.clock(client, now), echo);
        }
        let frame = TcpFrame {
            options: options.as_slice(),
            ..*frame
        };
        self.bare(client, &frame, now, out);
    }
}
