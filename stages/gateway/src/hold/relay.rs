//! What the gateway brings to a receiver itself, because it has acknowledged it to its sender.
//!
//! A sender stops at the window of its receiver, so a file can only be held to its end by acknowledging it.
//! The gateway, which does that, has to deliver it: in segments of its own, as far as the receiver's window and what is lost on the way
//! allow (slow start and fast retransmit, RFC 5681 sec. 3; partial acknowledgments, RFC 6582; no congestion avoidance, since
//! the receiver is near).

use std::collections::VecDeque;

use linkweir_engine::effect::Ticket;
use linkweir_wire::Timestamp;

/// Payload of a segment, bytes: what goes through every link that has IPv6.
pub(super) const SEGMENT: u64 = 1200;
/// What is sent before anything is acknowledged, bytes (RFC 6928).
const FIRST_WINDOW: u64 = 10 * SEGMENT;
/// Acknowledgments of the same byte after which it is sent again.
const DUPLICATES: u8 = 3;
/// After which time what is not acknowledged is sent again first, nanoseconds; then after twice as long (RFC 6298 sec. 5.5).
const TIMEOUT_NS: u64 = 500_000_000;
/// How often that is doubled.
const MAX_DOUBLED: u8 = 4;
/// How often some bytes go where the verdict is awaited, nanoseconds.
const TRICKLE_NS: u64 = 2_000_000_000;
/// How many.
const TRICKLE: u64 = 512;
/// Bytes at the end of what came that do not go before the verdict, clean or not.
const KEPT_BACK: u64 = 64 * 1024;

/// Places are counted as in [`Stream`](super::Stream).
#[derive(Debug, Clone)]
pub(super) struct Relay {
    /// The first that the receiver has not acknowledged.
    pub(super) unacked: u64,
    /// The next that goes.
    pub(super) next: u64,
    /// What stands before it may go.
    pub(super) free: u64,
    /// Behind the last that the receiver has room for.
    edge: u64,
    /// How much may be under way, bytes.
    window: u64,
    duplicates: u8,
    /// The window advertised to the sender.
    pub(super) advertised: u16,
    /// Up to here is sent again what the receiver misses.
    recovers_to: u64,
    /// Since when nothing new was acknowledged, or sent again.
    pub(super) since: Timestamp,
    /// How often in a row something was sent again.
    timeouts: u8,
    /// When the sender brought something new last, or the receiver acknowledged something new.
    moved: Timestamp,
    trickled: Timestamp,
    /// Files by their numbers, and the packet in which each has begun by its first place.
    files: VecDeque<(u32, u64)>,
    /// Scans that were asked for, and the packet with which each was by its first place: what stands before it is in that
    /// scan or in an earlier one.
    scans: VecDeque<(Ticket, u64)>,
    /// What stands before it was found clean.
    clean: u64,
    /// What has come, and what had before the newest packet.
    seen: u64,
    before: u64,
}

impl Relay {
    /// Brings what comes from `from` on.
    pub(super) fn new(from: u64, edge: u64, now: Timestamp) -> Self {
        Self {
            unacked: from,
            next: from,
            free: from,
            edge,
            window: FIRST_WINDOW,
            duplicates: 0,
            advertised: 0,
            recovers_to: 0,
            since: now,
            timeouts: 0,
            moved: now,
            trickled: now,
            files: VecDeque::new(),
            scans: VecDeque::new(),
            clean: from,
            seen: from,
            before: from,
        }
    }

    /// What came up to `end` has begun this file, if no other had.
    pub(super) fn note_file(&mut self, newest: Option<u32>, end: u64, now: Timestamp) {
        let last = self.files.back().map(|(number, _)| *number);
        if let Some(newest) = newest.filter(|newest| last.is_none_or(|last| last < *newest)) {
            self.files.push_back((newest, self.seen));
        }
        if end > self.seen {
            self.before = self.seen;
            self.moved = now;
        }
        self.seen = end;
    }

    /// This scan was asked for with what came since [`Relay::note_file`] was called last.
    pub(super) fn note_scan(&mut self, last: Option<Ticket>) {
        let known = self.scans.back().map(|(ticket, _)| *ticket);
        if let Some(last) = last.filter(|last| known != Some(*last)) {
            self.scans.push_back((last, self.seen));
        }
    }

    /// This scan is the first that is awaited, or none is.
    pub(super) fn note_clean(&mut self, awaited: Option<Ticket>) {
        let is_done =
            |(ticket, _): &mut (Ticket, u64)| awaited.is_none_or(|awaited| *ticket < awaited);
        while let Some((_, to)) = self.scans.pop_front_if(is_done) {
            self.clean = self.clean.max(to);
        }
    }

    /// All may go, or all but the newest packet.
    pub(super) fn set_free(&mut self, but_the_newest: bool) {
        self.files.clear();
        let free = if but_the_newest {
            self.before
        } else {
            self.seen
        };
        self.free = self.free.max(free);
    }

    /// What came before this file may go.
    pub(super) fn set_free_before(&mut self, oldest: u32) {
        while self
            .files
            .pop_front_if(|(number, _)| *number < oldest)
            .is_some()
        {}
        if let Some((_, from)) = self.files.front() {
            self.free = self.free.max(*from);
        }
    }

    /// Where the next bytes to be sent begin, and how many may go of those before `end`.
    pub(super) fn due(&self, end: u64) -> (u64, u64) {
        let most = self
            .free
            .min(end)
            .min(self.edge)
            .min(self.unacked + self.window);
        (self.next, most.saturating_sub(self.next))
    }

    /// The receiver has all before `to`, and room up to `edge`. Returns whether the first byte that it misses is to be
    /// sent again.
    pub(super) fn on_ack(&mut self, to: u64, edge: u64, is_bare: bool, now: Timestamp) -> bool {
        let is_same_edge = edge == self.edge;
        self.edge = self.edge.max(edge);
        if to > self.unacked {
            self.window += to - self.unacked;
            self.unacked = to;
            self.next = self.next.max(to);
            self.duplicates = 0;
            self.timeouts = 0;
            self.since = now;
            self.moved = now;
            return to < self.recovers_to;
        }
        if to < self.unacked || !is_bare || !is_same_edge || self.next == self.unacked {
            return false;
        }
        self.duplicates = self.duplicates.saturating_add(1);
        let is_lost = self.duplicates == DUPLICATES && self.unacked >= self.recovers_to;
        if is_lost {
            self.lose();
        }
        is_lost
    }

    /// For how long neither end has moved it on, nanoseconds.
    pub(super) const fn still_for(&self, now: Timestamp) -> u64 {
        now.nanos_since(self.moved)
    }

    fn lose(&mut self) {
        self.recovers_to = self.next;
        self.window = (self.window / 2).max(FIRST_WINDOW);
    }

    /// Time has passed, and so much has come of the stream. Returns whether the first byte that the receiver misses is to
    /// be sent again.
    pub(super) fn on_time(&mut self, now: Timestamp, end: u64, is_held: bool) -> bool {
        if is_held && now.nanos_since(self.trickled) >= TRICKLE_NS {
            self.trickled = now;
            let most = end.saturating_sub(KEPT_BACK).min(self.clean);
            self.free = self.free.max(most.min(self.free + TRICKLE));
        }
        let is_under_way = self.next > self.unacked;
        if !is_under_way && self.free <= self.next {
            self.since = now;
            self.timeouts = 0;
        }
        if now.nanos_since(self.since) < TIMEOUT_NS << self.timeouts {
            return false;
        }
        self.since = now;
        self.timeouts = (self.timeouts + 1).min(MAX_DOUBLED);
        if is_under_way {
            self.lose();
        } else {
            // One byte asks for the window (RFC 9293 sec. 3.8.6.1).
            self.edge = self.edge.max(self.next + 1);
        }
        is_under_way
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Timestamp {
        Timestamp::from_nanos(1_000_000_000 + ms * 1_000_000)
    }

    #[test]
    fn nothing_goes_before_it_may_or_beyond_the_window() {
        let mut relay = Relay::new(100, 5000, at(0));
        assert_eq!(relay.due(90_000), (100, 0));
        relay.free = 90_000;
        assert_eq!(relay.due(90_000), (100, 4900), "the receiver's window");
        relay.edge = 1 << 20;
        assert_eq!(relay.due(90_000), (100, FIRST_WINDOW));
        relay.next += FIRST_WINDOW;
        assert_eq!(relay.due(90_000).1, 0);
        assert!(!relay.on_ack(1300, 1 << 20, true, at(1)));
        assert_eq!(relay.due(90_000).1, 2 * SEGMENT, "slow start");
    }

    #[test]
    fn what_is_lost_goes_again() {
        let mut relay = Relay::new(0, 1 << 20, at(0));
        relay.free = 1 << 20;
        relay.next = 6000;
        let acks = [false, false, true, false, false];
        for (number, again) in acks.into_iter().enumerate() {
            assert_eq!(relay.on_ack(0, 1 << 20, true, at(1)), again, "{number}");
        }
        assert!(relay.on_ack(2400, 1 << 20, true, at(2)), "another hole");
        assert!(!relay.on_ack(6000, 1 << 20, true, at(3)));
        relay.next = 7200;
        assert!(!relay.on_time(at(400), 1 << 20, false));
        assert!(relay.on_time(at(503), 1 << 20, false));
        assert!(!relay.on_time(at(504), 1 << 20, false));
        assert!(!relay.on_time(at(1502), 1 << 20, false), "twice as long");
        assert!(relay.on_time(at(1503), 1 << 20, false));
        assert_eq!(relay.still_for(at(1503)), 1_500_000_000);
    }

    #[test]
    fn a_closed_window_is_asked_for() {
        let mut relay = Relay::new(0, 0, at(0));
        relay.free = 5000;
        assert!(!relay.on_time(at(400), 5000, false));
        assert_eq!(relay.due(5000), (0, 0));
        assert!(!relay.on_time(at(500), 5000, false));
        assert_eq!(relay.due(5000), (0, 1));
    }

    #[test]
    fn a_trickle_is_clean_and_never_reaches_the_end() {
        let mut relay = Relay::new(0, 1 << 20, at(0));
        let mut seconds = 0..;
        let mut trickle = |relay: &mut Relay, end| {
            for second in seconds.by_ref().take(600) {
                relay.on_time(at(second * 1000), end, true);
            }
            relay.free
        };
        relay.note_scan(Some(Ticket(1)));
        relay.note_file(Some(1), 30_000, at(0));
        relay.note_scan(Some(Ticket(2)));
        relay.note_file(Some(1), 60_000, at(0));
        relay.note_clean(Some(Ticket(1)));
        assert_eq!(
            trickle(&mut relay, KEPT_BACK + 90_000),
            0,
            "nothing is known"
        );
        relay.note_clean(Some(Ticket(2)));
        assert_eq!(
            trickle(&mut relay, KEPT_BACK + 90_000),
            0,
            "the first packet is not whole in it"
        );
        relay.note_clean(None);
        assert_eq!(trickle(&mut relay, KEPT_BACK + 1000), 1000);
        assert_eq!(trickle(&mut relay, KEPT_BACK + 90_000), 30_000);
    }
}
