//! The records of one direction of TLS, by their headers and sequence numbers alone.
//!
//! Nothing is kept of a segment but where it ends. Bytes that are missing inside a record do not matter; where a header
//! may be missing, the direction waits for it, and goes on behind it at a segment that begins with a header.

use linkweir_proto::Cut;
use linkweir_proto::tls::{ContentType, RecordHeader};
use linkweir_wire::SeqNumber;

use crate::segment::Segment;

/// What there is in a segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Event<'a> {
    /// A record, whose header begins at this number.
    Begin(RecordHeader, SeqNumber),
    /// Bytes of a record of the handshake.
    Bytes(&'a [u8]),
    /// The last byte of the record.
    End,
}

/// What a segment was to its direction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Came {
    /// It has nothing new.
    Repeated,
    /// Its records were walked.
    Walked,
    /// A header before it is missing, and may come yet.
    Behind,
    /// It is new, but where its records begin is not known.
    Unknown,
}

/// Where a direction stands.
#[derive(Debug, Clone, Copy)]
pub(super) struct Walk {
    /// Up to where the records are known.
    next: SeqNumber,
    /// Up to where bytes were seen.
    seen_to: SeqNumber,
    /// Bytes of the record at hand that are still to come.
    left: u16,
    header: Cut<{ RecordHeader::LEN }>,
    content: ContentType,
    is_lost: bool,
}

impl Walk {
    /// From this number on.
    pub(super) fn new(next: SeqNumber) -> Self {
        Self {
            next,
            seen_to: next,
            left: 0,
            header: Cut::default(),
            content: ContentType::Handshake,
            is_lost: false,
        }
    }

    /// Up to where the records are known.
    pub(super) const fn next(&self) -> SeqNumber {
        self.next
    }

    /// Up to where bytes were seen.
    pub(super) const fn seen_to(&self) -> SeqNumber {
        self.seen_to
    }

    /// Up to where bytes were seen, and the record at hand goes.
    pub(super) fn due(&self) -> SeqNumber {
        later(self.seen_to, self.next + u32::from(self.left))
    }

    /// The other side says that it has everything up to `to`: of that nothing is new any more.
    pub(super) fn skip(&mut self, to: SeqNumber) {
        self.seen_to = later(self.seen_to, to);
        self.lose();
    }

    fn lose(&mut self) {
        self.is_lost = true;
        self.next = self.seen_to;
        self.left = 0;
        self.header.clear();
    }

    /// Bytes of the record at hand, of which `count` were missing or seen before; whether that is all of them.
    fn pass(&mut self, count: u32, mut on: impl FnMut(Event<'_>)) -> bool {
        let Some(left) = u16::try_from(count)
            .ok()
            .and_then(|count| self.left.checked_sub(count))
            .filter(|_| self.header.is_empty())
        else {
            return false;
        };
        if count > 0 {
            self.left = left;
            self.next += count;
            if left == 0 {
                on(Event::End);
            }
        }
        true
    }

    /// The next segment with payload.
    pub(super) fn on_segment(
        &mut self,
        segment: &Segment<'_>,
        mut on: impl FnMut(Event<'_>),
    ) -> Came {
        let (seq, end) = (segment.seq, segment.end());
        if self.is_lost {
            if seq.before(self.seen_to) {
                self.seen_to = later(self.seen_to, end);
                return Came::Repeated;
            }
            if !begins_record(segment.payload) {
                self.skip(end);
                return Came::Unknown;
            }
            (self.next, self.seen_to, self.is_lost) = (seq, seq, false);
        }
        if !end.after(self.next) {
            return Came::Repeated;
        }
        if let Ok(missing @ 1..) = u32::try_from(seq - self.next)
            && !self.pass(missing, &mut on)
        {
            self.seen_to = later(self.seen_to, end);
            return Came::Behind;
        }
        let known = usize::try_from(self.next - seq).unwrap_or(0);
        self.walk(segment.payload.get(known..).unwrap_or_default(), &mut on);
        // What the capture has cut off, and what has come before.
        let seen_to = later(self.seen_to, end);
        let beyond = u32::try_from(seen_to - self.next).unwrap_or(0);
        let is_known = !self.is_lost && self.pass(beyond, &mut on);
        self.seen_to = seen_to;
        if !is_known {
            self.lose();
        }
        Came::Walked
    }

    fn walk(&mut self, mut rest: &[u8], mut on: impl FnMut(Event<'_>)) {
        while !rest.is_empty() {
            if self.left > 0 {
                let count = rest.len().min(usize::from(self.left));
                let (part, behind) = rest.split_at_checked(count).unwrap_or((rest, &[]));
                if self.content == ContentType::Handshake {
                    on(Event::Bytes(part));
                }
                rest = behind;
                // No more than `left`.
                self.pass(u32::try_from(count).unwrap_or(0), &mut on);
                continue;
            }
            let waiting = u32::try_from(self.header.len()).unwrap_or(0);
            let begin = SeqNumber(self.next.0.wrapping_sub(waiting));
            let before = rest.len();
            let header = self.header.take(&mut rest);
            self.next += u32::try_from(before - rest.len()).unwrap_or(0);
            let Some(header) = header else { break };
            let Some(header) = RecordHeader::parse(header) else {
                self.is_lost = true;
                break;
            };
            (self.left, self.content) = (header.len, header.content);
            on(Event::Begin(header, begin));
            if header.len == 0 {
                on(Event::End);
            }
        }
    }
}

fn later(one: SeqNumber, other: SeqNumber) -> SeqNumber {
    if other.after(one) { other } else { one }
}

/// Whether a payload begins like a record of application data, and what is behind the record like another.
pub(super) fn begins_record(payload: &[u8]) -> bool {
    let mut rest = payload;
    while let Some((header, behind)) = rest.split_first_chunk() {
        match RecordHeader::parse(*header) {
            Some(header) if header.version == 0x0303 && header.len > 0 => {
                rest = behind.get(usize::from(header.len)..).unwrap_or_default();
            }
            _ => return false,
        }
    }
    payload.first() == Some(&(ContentType::ApplicationData as u8))
        && payload.len() >= RecordHeader::LEN
}
