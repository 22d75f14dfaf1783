//! One stream of RTP: what is lost, doubled and late by its sequence numbers, and its jitter.
//!
//! Source: RFC 3550 sections 6.4.1 (jitter) and A.1, A.3, A.8; the columns are Tstat's.

use linkweir_proto::rtp::{MediaPacket, clock_rate};
use linkweir_record::flow::{FlowRow, Jitter, MediaPart, StreamEnd, StreamPart, StreamRow};
use linkweir_wire::Side;

use super::sender::Sender;
use super::{Datagram, NS_PER_MS, Samples, float};
use crate::step::MediaMeasure;

/// Numbers below the highest that are remembered: what is older and did not come is given up.
const WINDOW: u64 = 64;
/// A jump forward of as much as this is another sequence (RFC 3550 A.1 `MAX_DROPOUT`).
const MAX_DROPOUT: u16 = 3000;
/// A jump back of more than this too.
const MAX_LATE: u16 = 1000;

/// Where the number of a packet stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    /// One after the highest.
    Next,
    /// Behind a gap.
    BehindGap,
    /// Below the highest, and not seen yet.
    Reordered,
    /// Below what is remembered.
    Late,
    /// Seen before.
    Duplicate,
    /// The first of another sequence, or a stray packet.
    Stray,
    /// The second of another sequence: it is taken.
    Restart,
}

/// A stream.
#[derive(Debug)]
pub(super) struct Stream {
    sender: Sender,
    squares: u64,
    /// The lowest and the highest number, extended; the first begins above 2^16, so that lower ones fit.
    lowest: u64,
    highest: u64,
    /// Bit `n`: the number `n` below the highest was seen.
    seen: u64,
    /// Numbers that were seen since the sequence began.
    received: u64,
    /// Lost in sequences before.
    lost_before: u64,
    /// What would begin another sequence.
    next_stray: Option<u16>,
    has_restarted: bool,
    is_proven: bool,
    duplicates: u64,
    late: u64,
    out_of_sequence: u64,
    reordered: u64,
    /// Lost numbers in a row that were given up.
    burst: u64,
    unbroken: u64,
    payload_max: u32,
    payload_min: u32,
    /// Ticks per second of the first payload type with a known clock.
    clock: Option<u32>,
    /// Arrival and timestamp of the packet before, and of the one with the highest number.
    before: (u64, u32),
    top: (u64, u32),
    /// By the clock of the payload type, by 8 kHz, by 90 kHz; milliseconds.
    jitter: [Jitter; 3],
    jitter_count: u64,
}

impl Stream {
    /// The first packet of a source.
    pub(super) fn new(side: Side, packet: &MediaPacket, datagram: &Datagram<'_>) -> Self {
        let number = 1 << 16 | u64::from(packet.sequence);
        let at = (datagram.ts_ns, packet.timestamp);
        let mut stream = Self {
            sender: Sender::new(side, packet.source, datagram.ts_ns),
            squares: 0,
            lowest: number,
            highest: number,
            seen: 1,
            received: 1,
            lost_before: 0,
            next_stray: None,
            has_restarted: false,
            is_proven: false,
            duplicates: 0,
            late: 0,
            out_of_sequence: 0,
            reordered: 0,
            burst: 0,
            unbroken: 0,
            payload_max: 0,
            payload_min: u32::MAX,
            clock: None,
            before: at,
            top: at,
            jitter: [Jitter::default(); 3],
            jitter_count: 0,
        };
        stream.count(packet, datagram);
        stream
    }

    #[inline]
    pub(super) fn is(&self, side: Side, source: u32) -> bool {
        self.sender.is(side, source)
    }

    /// Whether two packets followed each other.
    pub(super) const fn is_proven(&self) -> bool {
        self.is_proven
    }

    /// One more packet.
    pub(super) fn on_packet(
        &mut self,
        packet: &MediaPacket,
        datagram: &Datagram<'_>,
        samples: &mut Samples,
    ) {
        let place = self.place(packet.sequence, samples);
        let now = datagram.ts_ns;
        match place {
            Place::Next => {
                self.is_proven = true;
                self.sender.gap(now);
            }
            Place::Duplicate => self.duplicates += 1,
            Place::Restart => self.has_restarted = true,
            Place::BehindGap | Place::Reordered | Place::Late | Place::Stray => {}
        }
        if !matches!(place, Place::Next | Place::Duplicate) {
            self.out_of_sequence += 1;
            self.sender.sample(samples, MediaMeasure::OutOfSequence, 1);
        }
        self.count(packet, datagram);
        match place {
            Place::Duplicate | Place::Stray => {}
            // Timestamps began anew too.
            Place::Restart => self.before = (now, packet.timestamp),
            _ => self.on_arrival(packet, now),
        }
        if matches!(place, Place::Reordered | Place::Late) {
            self.reordered += 1;
            let delay = self.delay_ms(packet.timestamp, now);
            self.sender
                .sample(samples, MediaMeasure::ReorderDelay, delay);
        } else if matches!(place, Place::Next | Place::BehindGap | Place::Restart) {
            self.top = (now, packet.timestamp);
        }
        self.late += u64::from(place == Place::Late);
        self.sender.seen_at(now);
    }

    /// Finds the place of a number and remembers that it was seen.
    fn place(&mut self, sequence: u16, samples: &mut Samples) -> Place {
        let [.., high, low] = self.highest.to_be_bytes();
        let top = u16::from_be_bytes([high, low]);
        let ahead = sequence.wrapping_sub(top);
        let behind = top.wrapping_sub(sequence);
        if ahead == 0 {
            return Place::Duplicate;
        }
        if ahead < MAX_DROPOUT {
            self.slide(u64::from(ahead), samples);
            self.seen |= 1;
            self.received += 1;
            return if ahead == 1 {
                Place::Next
            } else {
                Place::BehindGap
            };
        }
        if behind <= MAX_LATE {
            let number = self.highest - u64::from(behind);
            self.lowest = self.lowest.min(number);
            let behind = u64::from(behind);
            if behind >= WINDOW {
                self.received += 1;
                return Place::Late;
            }
            if self.seen >> behind & 1 == 1 {
                return Place::Duplicate;
            }
            self.seen |= 1 << behind;
            self.received += 1;
            return Place::Reordered;
        }
        if self.next_stray == Some(sequence) {
            self.restart(sequence, samples);
            return Place::Restart;
        }
        self.next_stray = Some(sequence.wrapping_add(1));
        Place::Stray
    }

    /// Two packets of another sequence came: it is the one from now on (RFC 3550 A.1). The stray one was its
    /// first.
    fn restart(&mut self, sequence: u16, samples: &mut Samples) {
        self.finish(samples);
        self.lost_before = self.lost();
        let number = 1 << 16 | u64::from(sequence);
        (self.lowest, self.highest) = (number - 1, number);
        (self.seen, self.received) = (3, 2);
        self.next_stray = None;
    }

    /// Moves the window up by `count` numbers.
    fn slide(&mut self, count: u64, samples: &mut Samples) {
        for step in 0..count.min(WINDOW) {
            // The oldest leaves.
            let number = self.highest + step;
            let is_expected = number >= self.lowest + (WINDOW - 1);
            let is_seen = self.seen >> (WINDOW - 1) & 1 == 1;
            self.seen <<= 1;
            if is_expected {
                self.give_up(is_seen, samples);
            }
        }
        if let Some(beyond) = count.checked_sub(WINDOW) {
            self.burst += beyond;
        }
        self.highest += count;
    }

    /// A number leaves the window: what did not come by now is lost.
    fn give_up(&mut self, was_seen: bool, samples: &mut Samples) {
        if !was_seen {
            self.burst += 1;
            return;
        }
        match std::mem::take(&mut self.burst) {
            0 => self.unbroken += 1,
            burst => self.sender.sample(samples, MediaMeasure::Burst, burst),
        }
    }

    /// The stream has ended: everything leaves the window.
    pub(super) fn finish(&mut self, samples: &mut Samples) {
        let count = (self.highest + 1 - self.lowest).min(WINDOW);
        for behind in (0..count).rev() {
            let was_seen = self.seen >> behind & 1 == 1;
            self.give_up(was_seen, samples);
        }
    }

    /// Counts what every packet has.
    fn count(&mut self, packet: &MediaPacket, datagram: &Datagram<'_>) {
        let payload = packet.payload_len(datagram.len);
        self.sender.count(packet.kind, payload, datagram.ttl);
        let square = u64::from(payload) * u64::from(payload);
        self.squares = self.squares.saturating_add(square);
        self.payload_max = self.payload_max.max(payload);
        self.payload_min = self.payload_min.min(payload);
        if self.clock.is_none() {
            self.clock = clock_rate(packet.kind);
        }
    }

    /// Jitter by a packet more, in the order of arrival (RFC 3550 A.8).
    fn on_arrival(&mut self, packet: &MediaPacket, now: u64) {
        let (before_ns, before) = std::mem::replace(&mut self.before, (now, packet.timestamp));
        let arrival_ms = float(now.saturating_sub(before_ns)) / NS_PER_MS;
        let ticks = packet.timestamp.wrapping_sub(before).cast_signed();
        let clocks = [self.clock.unwrap_or_default(), 8_000, 90_000];
        let is_first = self.jitter_count == 0;
        for (jitter, clock) in self.jitter.iter_mut().zip(clocks) {
            if clock == 0 {
                continue;
            }
            let media_ms = f64::from(ticks) * 1_000.0 / f64::from(clock);
            let difference = (arrival_ms - media_ms).abs();
            jitter.average += (difference - jitter.average) / 16.0;
            jitter.max = jitter.max.max(jitter.average);
            jitter.min = if is_first {
                jitter.average
            } else {
                jitter.min.min(jitter.average)
            };
        }
        self.jitter_count += 1;
    }

    /// How much longer a packet was under way than the one with the highest number, milliseconds.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "it is not negative, and large ones saturate"
    )]
    fn delay_ms(&self, timestamp: u32, now: u64) -> u64 {
        let (top_ns, top) = self.top;
        let since = float(now.saturating_sub(top_ns)) / NS_PER_MS;
        let ticks = f64::from(top.wrapping_sub(timestamp).cast_signed());
        let media = self
            .clock
            .map_or(0.0, |clock| ticks * 1_000.0 / f64::from(clock));
        (since + media).max(0.0) as u64
    }

    /// Packets expected by the numbers less those that came (RFC 3550 A.3).
    const fn lost(&self) -> u64 {
        let expected = self.highest + 1 - self.lowest;
        self.lost_before + expected.saturating_sub(self.received)
    }

    /// Its row.
    pub(super) fn row(&self, flow: &FlowRow, ends: (StreamEnd, StreamEnd)) -> StreamRow {
        let [jitter, by_8k, by_90k] = self.jitter;
        let part = StreamPart::Media(MediaPart {
            lost: self.lost(),
            out_of_sequence: self.out_of_sequence,
            reordered: self.reordered,
            duplicates: self.duplicates,
            late: self.late,
            has_restarted: self.has_restarted,
            unbroken: self.unbroken,
            payload_max: self.payload_max,
            payload_min: self.payload_min,
            payload_squares: self.squares,
            jitter_by_clock: [by_8k, by_90k],
        });
        self.sender.row(flow, ends, jitter, part)
    }
}
