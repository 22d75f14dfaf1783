//! Directions that are followed: their streams, and segments that wait behind a gap.

use linkweir_table::Chain;

use super::head::{PartialHead, Refused};
use super::stream::{Gap, Late, Stream};
use super::{Purpose, WatchList, Watched};
use crate::key::Connection;
use crate::segment::{Place, Segment};

/// Segments behind a gap that wait, at most.
const MAX_LATE: usize = 512;
/// How long a gap is waited for, nanoseconds of capture time: a sender's longest pauses are not much longer.
const GAP_NS: u64 = 10_000_000_000;
/// What begins further behind a gap is of another connection.
const FAR: i32 = 1 << 24;

impl WatchList {
    /// Follows a direction, from now on or again.
    pub(crate) fn follow(&mut self, direction: Connection, stream: Box<Stream>, now_ns: u64) {
        let id = self.find(&direction);
        if let Some(id) = id
            && let Some(watched) = self.table.get_mut(id)
            && let Purpose::Stream(place) = &mut watched.purpose
        {
            *place = Some(stream);
            watched.changed_ns = now_ns;
            return self.table.refresh(id);
        }
        self.put(Watched {
            direction,
            changed_ns: now_ns,
            purpose: Purpose::Stream(Some(stream)),
        });
    }

    /// Follows a direction no longer.
    pub(crate) fn forget(&mut self, direction: &Connection) {
        if let Some(id) = self.find(direction) {
            self.take(id);
        }
    }

    /// Whether two more directions find no room.
    pub(crate) const fn lacks_pair(&self) -> bool {
        self.table.len() + 2 > self.table.capacity()
    }

    /// The stream of a direction that is followed.
    pub(crate) fn stream_mut(&mut self, direction: &Connection) -> Option<&mut Stream> {
        let id = self.find(direction)?;
        match &mut self.table.get_mut(id)?.purpose {
            Purpose::Stream(stream) => stream.as_deref_mut(),
            Purpose::Head(_) | Purpose::Start(_) => None,
        }
    }

    /// Takes the stream of a direction to read on: the direction is followed meanwhile too.
    pub(crate) fn take_stream(&mut self, direction: &Connection) -> Option<Box<Stream>> {
        let id = self.find(direction)?;
        match &mut self.table.get_mut(id)?.purpose {
            Purpose::Stream(stream) => stream.take(),
            Purpose::Head(_) | Purpose::Start(_) => None,
        }
    }

    /// Ends any other watch over a direction; what was gathered of a head waits in its stream.
    pub(crate) fn absorb(&mut self, direction: &Connection, stream: &mut Stream) {
        let watched = self.find(direction).and_then(|id| self.take(id));
        match watched.map(|watched| watched.purpose) {
            Some(Purpose::Head(head)) => {
                let place = head.place;
                let late = head.late.into_iter().map(|late| (late.seq, late.text));
                for (seq, text) in std::iter::once((place.seq, head.text)).chain(late) {
                    stream.late.push(Late {
                        seq,
                        ack: place.ack,
                        has_ack: place.has_ack,
                        ts_ns: place.ts_ns,
                        vlan: place.vlan,
                        text,
                    });
                }
                stream.late.sort_by_key(|late| late.seq - place.seq);
            }
            Some(Purpose::Stream(Some(old))) => self.release_stream(*old),
            Some(Purpose::Start(_) | Purpose::Stream(None)) | None => {}
        }
    }

    /// Keeps a segment that begins behind a gap.
    pub(crate) fn keep_late(&mut self, stream: &mut Stream, segment: &Segment<'_>) -> Gap {
        let waits_since = stream.late.iter().map(|late| late.ts_ns).min();
        if waits_since.is_some_and(|since| segment.ts_ns.saturating_sub(since) > GAP_NS)
            || segment.is_cut()
            || segment.seq - stream.next_seq > FAR
        {
            return Gap::GivenUp;
        }
        let at = stream
            .late
            .partition_point(|late| late.seq.before(segment.seq));
        let is_there = stream.late.get(at).is_some_and(|late| {
            late.seq == segment.seq && late.text.len() >= segment.payload.len()
        });
        if !is_there && stream.late.len() < MAX_LATE && self.texts.has_room(segment.payload.len()) {
            let mut text = Chain::default();
            self.texts.append(&mut text, segment.payload);
            stream.late.insert(
                at,
                Late {
                    seq: segment.seq,
                    ack: segment.ack,
                    has_ack: segment.has_ack,
                    ts_ns: segment.ts_ns,
                    vlan: segment.vlan,
                    text,
                },
            );
        }
        Gap::Waits
    }

    /// The first segment that waited, where the bytes before it are there by now, or where `all` are wanted.
    /// `bytes` is for its payload.
    pub(crate) fn next_segment<'a>(
        &mut self,
        direction: &Connection,
        stream: &mut Stream,
        all: bool,
        bytes: &'a mut Vec<u8>,
    ) -> Option<Segment<'a>> {
        let first = stream.late.first()?;
        let is_due = !stream.next_seq.before(first.seq);
        if !is_due && !all {
            return None;
        }
        let late = stream.late.remove(0);
        bytes.clear();
        self.texts.copy_to(&late.text, bytes);
        self.texts.release(late.text);
        Some(Segment {
            direction: *direction,
            seq: late.seq,
            ack: late.ack,
            has_ack: late.has_ack,
            ts_ns: late.ts_ns,
            vlan: late.vlan,
            payload: bytes,
            payload_len: u32::try_from(bytes.len()).unwrap_or(u32::MAX),
        })
    }

    /// Begins to gather the head at `place`; `None` where `bytes` are none after all.
    pub(crate) fn begin_in(&mut self, place: Place, bytes: &[u8]) -> Option<PartialHead> {
        let mut head = PartialHead::new(place);
        match self.gather(&mut head, bytes) {
            Ok(_) => Some(head),
            Err(_) => {
                self.release(head);
                None
            }
        }
    }

    /// Adds to the head of a stream what `segment` has of it in `bytes`. Says how many of these were taken
    /// where the head is whole with them.
    pub(crate) fn gather_in(
        &mut self,
        head: &mut PartialHead,
        segment: &Segment<'_>,
        bytes: &[u8],
    ) -> Result<Option<usize>, Refused> {
        head.place.segment_end = segment.end();
        head.place.segment_ns = segment.ts_ns;
        self.gather(head, bytes)
    }

    /// Gives the memory of a stream back.
    pub(crate) fn release_stream(&mut self, stream: Stream) {
        if let Some(head) = stream.head {
            self.release(head);
        }
        for late in stream.late {
            self.texts.release(late.text);
        }
    }
}
