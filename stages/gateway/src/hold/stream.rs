//! One direction of a connection: what comes next, and what waits.

use linkweir_engine::effect::{Answer, Verdict};
use linkweir_wire::{SeqNumber, Timestamp};
use std::collections::VecDeque;

/// Bounds of what is held by all streams together, and what is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Budget {
    pub(crate) packets: usize,
    pub(crate) bytes: usize,
    pub(crate) most_packets: usize,
    pub(crate) most_bytes: usize,
    /// The most packets that were held at once.
    pub(crate) peak_packets: usize,
}

impl Budget {
    pub(crate) const fn has_room(&self, bytes: usize) -> bool {
        self.packets < self.most_packets && self.bytes.saturating_add(bytes) <= self.most_bytes
    }

    fn take(&mut self, bytes: usize) {
        self.packets += 1;
        self.bytes += bytes;
        self.peak_packets = self.peak_packets.max(self.packets);
    }

    const fn give_back(&mut self, bytes: usize) {
        self.packets = self.packets.saturating_sub(1);
        self.bytes = self.bytes.saturating_sub(bytes);
    }
}

/// A segment of the stream, as the packet has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Segment<'a> {
    /// The packet's number.
    pub(crate) id: u32,
    /// The packet's mark.
    pub(crate) mark: u32,
    /// Number of its first byte; of a SYN that of the byte behind.
    pub(crate) seq: SeqNumber,
    pub(crate) payload: &'a [u8],
    pub(crate) is_fin: bool,
}

impl Segment<'_> {
    fn end(&self) -> SeqNumber {
        let len = u32::try_from(self.payload.len()).unwrap_or(u32::MAX);
        SeqNumber(
            self.seq
                .0
                .wrapping_add(len)
                .wrapping_add(u32::from(self.is_fin)),
        )
    }
}

/// Where a segment stands in its stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place {
    /// It takes no sequence space: an acknowledgment.
    Control,
    /// All of it was let go before: a retransmission, which its receiver answers.
    Old,
    /// All of it is held: a retransmission of what has not been let go.
    Held,
    /// It brings what comes next, behind this many bytes that were seen before.
    Next(usize),
    /// Something before it is missing.
    Ahead,
}

/// A segment that waits, with what it brings.
#[derive(Debug)]
pub(crate) struct Ahead {
    pub(crate) id: u32,
    pub(crate) mark: u32,
    pub(crate) seq: SeqNumber,
    pub(crate) payload: Box<[u8]>,
    pub(crate) is_fin: bool,
    pub(crate) since: Timestamp,
}

impl Ahead {
    pub(crate) const fn segment(&self) -> Segment<'_> {
        Segment {
            id: self.id,
            mark: self.mark,
            seq: self.seq,
            payload: &self.payload,
            is_fin: self.is_fin,
        }
    }
}

/// A packet that was delivered and waits for its verdict.
#[derive(Debug, Clone, Copy)]
struct Delivered {
    id: u32,
    mark: u32,
    end: SeqNumber,
    since: Timestamp,
}

/// One direction of a TCP connection.
#[derive(Debug, Default)]
pub(crate) struct Stream {
    /// Next byte for the inspector; nothing before the first segment.
    next: Option<SeqNumber>,
    /// Next byte that its receiver can have: all before was let go.
    released: SeqNumber,
    delivered: VecDeque<Delivered>,
    /// In the order of their sequence numbers.
    ahead: VecDeque<Ahead>,
    held_bytes: usize,
    /// Whether the end of the stream was delivered.
    pub(crate) is_finished: bool,
}

impl Stream {
    /// A stream whose first byte has this number.
    pub(crate) fn starting_at(first: SeqNumber) -> Self {
        Self {
            next: Some(first),
            released: first,
            ..Self::default()
        }
    }

    /// Whether it is known where the stream is.
    pub(crate) const fn is_known(&self) -> bool {
        self.next.is_some()
    }

    /// The next byte for the inspector, where it is known.
    pub(crate) const fn next(&self) -> Option<SeqNumber> {
        self.next
    }

    /// The next byte that the receiver expects, as far as it was let go.
    pub(crate) const fn released(&self) -> SeqNumber {
        self.released
    }

    /// Whether a packet waits for anything.
    pub(crate) fn holds_any(&self) -> bool {
        !self.delivered.is_empty() || !self.ahead.is_empty()
    }

    /// Packets that wait.
    pub(crate) fn held_packets(&self) -> usize {
        self.delivered.len() + self.ahead.len()
    }

    /// Where a segment stands. The first one of a stream that was met in its middle stands next.
    pub(crate) fn place(&mut self, segment: &Segment<'_>) -> Place {
        if segment.payload.is_empty() && !segment.is_fin {
            return Place::Control;
        }
        let next = *self.next.get_or_insert_with(|| {
            self.released = segment.seq;
            segment.seq
        });
        let end = segment.end();
        if !end.after(next) {
            return if end.after(self.released) {
                Place::Held
            } else {
                Place::Old
            };
        }
        if segment.seq.after(next) {
            let is_held = self
                .ahead
                .iter()
                .any(|held| held.seq == segment.seq && held.segment().end() == end);
            return if is_held { Place::Held } else { Place::Ahead };
        }
        Place::Next(usize::try_from(next.0.wrapping_sub(segment.seq.0)).unwrap_or(0))
    }

    /// A segment that stands next has been delivered: it waits until [`Stream::release`].
    pub(crate) fn deliver(&mut self, segment: &Segment<'_>, now: Timestamp, budget: &mut Budget) {
        let end = segment.end();
        self.next = Some(end);
        self.is_finished |= segment.is_fin;
        budget.take(0);
        self.delivered.push_back(Delivered {
            id: segment.id,
            mark: segment.mark,
            end,
            since: now,
        });
    }

    /// Lets go what was delivered, but for the last `keep` packets; each gets `mark` over its own.
    pub(crate) fn release(
        &mut self,
        keep: usize,
        budget: &mut Budget,
        answers: &mut Vec<Answer>,
        mark: impl Fn(u32) -> Option<u32>,
    ) {
        while self.delivered.len() > keep {
            let Some(packet) = self.delivered.pop_front() else {
                return;
            };
            budget.give_back(0);
            self.released = packet.end;
            answers.push(Answer {
                id: packet.id,
                verdict: Verdict::Accept,
                mark: mark(packet.mark),
            });
        }
    }

    /// Keeps a segment that cannot be delivered yet. Returns whether there was room.
    pub(crate) fn hold(
        &mut self,
        segment: &Segment<'_>,
        now: Timestamp,
        (most_packets, most_bytes): (usize, usize),
        budget: &mut Budget,
    ) -> bool {
        let bytes = segment.payload.len();
        if self.held_packets() >= most_packets
            || self.held_bytes.saturating_add(bytes) > most_bytes
            || !budget.has_room(bytes)
        {
            return false;
        }
        budget.take(bytes);
        self.held_bytes += bytes;
        let at = self
            .ahead
            .iter()
            .rposition(|held| !held.seq.after(segment.seq))
            .map_or(0, |at| at + 1);
        self.ahead.insert(
            at,
            Ahead {
                id: segment.id,
                mark: segment.mark,
                seq: segment.seq,
                payload: segment.payload.into(),
                is_fin: segment.is_fin,
                since: now,
            },
        );
        true
    }

    /// The first segment that waits, where nothing before it is missing any more.
    pub(crate) fn take_ready(&mut self, budget: &mut Budget) -> Option<Ahead> {
        let first = self.ahead.front()?;
        if first.seq.after(self.next?) {
            return None;
        }
        self.take_first(budget)
    }

    /// The first segment that waits, whatever is missing.
    pub(crate) fn take_first(&mut self, budget: &mut Budget) -> Option<Ahead> {
        let first = self.ahead.pop_front()?;
        self.held_bytes = self.held_bytes.saturating_sub(first.payload.len());
        budget.give_back(first.payload.len());
        Some(first)
    }

    /// Since when the segment that waits longest waits.
    pub(crate) fn waits_since(&self) -> Option<Timestamp> {
        self.ahead.iter().map(|held| held.since).min()
    }

    /// Whether a segment waits for what comes before it, or a packet to be let go.
    pub(crate) fn is_waiting(&self) -> bool {
        self.holds_any()
    }

    /// Since when the packet that was delivered first waits to be let go.
    pub(crate) fn delivered_since(&self) -> Option<Timestamp> {
        self.delivered.front().map(|packet| packet.since)
    }

    /// What is missing will not come: the stream goes on at the first segment that waits.
    pub(crate) fn skip_gap(&mut self) {
        if let Some(first) = self.ahead.front() {
            self.next = Some(first.seq);
        }
    }

    /// Answers everything that waits with one verdict.
    pub(crate) fn answer_all(
        &mut self,
        verdict: Verdict,
        budget: &mut Budget,
        answers: &mut Vec<Answer>,
        mark: impl Fn(u32) -> Option<u32>,
    ) {
        let mut answer = |id, old| {
            answers.push(Answer {
                id,
                verdict,
                mark: mark(old),
            });
        };
        while let Some(packet) = self.delivered.pop_front() {
            budget.give_back(0);
            answer(packet.id, packet.mark);
            if verdict == Verdict::Accept {
                self.released = packet.end;
            }
        }
        while let Some(held) = self.take_first(budget) {
            answer(held.id, held.mark);
        }
    }
}
