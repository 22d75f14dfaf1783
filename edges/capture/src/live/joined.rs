//! Several interfaces as one source, in the order of time.
//!
//! ```text
//! eth0 ─► ring ─► lane ─┐
//! eth1 ─► ring ─► lane ─┴─ merged by timestamp, copied ─► Batch
//! ```
//! A request may pass one interface and its response another (a tap has an interface for each direction), so what
//! is measured of both needs them in order. A frame is given out when no lane can have an earlier one: when every
//! lane has later frames, has ended, or has had nothing until after it ([`Source::now`]).
//!
//! A batch lies in one buffer, so the frames of several rings are copied, once. One interface needs none of this.

use std::collections::VecDeque;
use std::os::fd::BorrowedFd;
use std::time::Duration;

use linkweir_engine::{
    Batch, Drops, Fault, FrameRef, InputCounts, Source, SourceError, SourceEvent,
};
use linkweir_sys::wait::{any_readable, monotonic_ns};
use linkweir_wire::Timestamp;

/// How long frames wait for a lane of which it is not known whether it has earlier ones, at most: longer
/// only if the clock was set.
const LONGEST_NS: u64 = 1_000_000_000;
/// How often is looked whether the clock has come far enough.
const LOOK_EVERY: Duration = Duration::from_millis(2);
/// Bytes of frames above which those that were given out make room.
const COMPACT_BYTES: usize = 4 << 20;

/// A source that never waits, and that can be waited for together with others.
pub(super) trait Waited: Source {
    /// What becomes readable when something has come; nothing while no interface is open.
    fn files(&self) -> Vec<BorrowedFd<'_>>;
}

/// The frames of several sources.
#[derive(Debug)]
pub(super) struct Joined<S> {
    lanes: Vec<Lane<S>>,
    /// The bytes of all frames that wait or are given out.
    bytes: Vec<u8>,
    spare: Vec<u8>,
    /// What is given out.
    frames: Vec<FrameRef>,
    idle: Duration,
}

#[derive(Debug)]
struct Lane<S> {
    name: String,
    source: S,
    /// What waits, over the bytes of all lanes.
    frames: VecDeque<FrameRef>,
    /// The latest of them.
    latest: Timestamp,
    /// Since when they wait.
    since_ns: u64,
    /// Nothing from before this comes any more.
    quiet_to: Timestamp,
    has_ended: bool,
    packets: u64,
    wire_bytes: u64,
}

impl<S> Lane<S> {
    fn head(&self) -> Option<Timestamp> {
        self.frames.front().map(|frame| frame.timestamp)
    }

    /// Up to when it is known what it has.
    const fn known_to(&self, is_empty: bool) -> Timestamp {
        match (is_empty, self.has_ended) {
            (false, _) => self.latest,
            (true, true) => Timestamp::MAX,
            (true, false) => self.quiet_to,
        }
    }
}

impl<S: Waited> Joined<S> {
    /// The frames of these sources, each with the name of its interface. After `idle` without any frame the
    /// caller is notified.
    pub(super) fn new(sources: Vec<(String, S)>, idle: Duration) -> Self {
        let lane = |(name, source)| Lane {
            name,
            source,
            frames: VecDeque::new(),
            latest: Timestamp::ZERO,
            since_ns: 0,
            quiet_to: Timestamp::ZERO,
            has_ended: false,
            packets: 0,
            wire_bytes: 0,
        };
        Self {
            lanes: sources.into_iter().map(lane).collect(),
            bytes: Vec::new(),
            spare: Vec::new(),
            frames: Vec::new(),
            idle,
        }
    }

    pub(super) fn sources(&self) -> impl Iterator<Item = &S> {
        self.lanes.iter().map(|lane| &lane.source)
    }

    /// Takes from every lane that has nothing what has come.
    fn refill(&mut self) -> Result<Option<Fault>, SourceError> {
        for lane in &mut self.lanes {
            if lane.has_ended || !lane.frames.is_empty() {
                continue;
            }
            // Asked before: what comes meanwhile is later.
            let now = lane.source.now();
            match lane.source.next_event()? {
                SourceEvent::Batch(batch) => {
                    lane.latest = Timestamp::ZERO;
                    lane.since_ns = monotonic_ns();
                    for frame in batch.frames() {
                        lane.latest = lane.latest.max(frame.timestamp);
                        lane.frames.push_back(FrameRef {
                            timestamp: frame.timestamp,
                            offset: u32::try_from(self.bytes.len()).unwrap_or(u32::MAX),
                            captured_len: u32::try_from(frame.bytes.len()).unwrap_or(u32::MAX),
                            wire_len: frame.wire_len,
                            link: frame.link,
                            interface: frame.interface,
                        });
                        self.bytes.extend_from_slice(frame.bytes);
                    }
                }
                SourceEvent::Idle => lane.quiet_to = now.unwrap_or(lane.quiet_to),
                SourceEvent::Fault(fault) => return Ok(Some(fault)),
                SourceEvent::End => lane.has_ended = true,
            }
        }
        Ok(None)
    }

    /// Moves to the batch what no lane can have anything before.
    fn merge(&mut self) {
        let known = self.lanes.iter();
        let known = known.map(|lane| lane.known_to(lane.frames.is_empty()));
        let mut limit = known.min().unwrap_or(Timestamp::MAX);
        let now_ns = monotonic_ns();
        for lane in &self.lanes {
            if !lane.frames.is_empty() && now_ns.saturating_sub(lane.since_ns) > LONGEST_NS {
                limit = limit.max(lane.latest);
            }
        }
        let is_due = |lane: &&mut Lane<S>| lane.head().is_some_and(|head| head <= limit);
        while let Some(lane) = self
            .lanes
            .iter_mut()
            .filter(is_due)
            .min_by_key(|lane| lane.head())
            && let Some(frame) = lane.frames.pop_front()
        {
            lane.packets += 1;
            lane.wire_bytes += u64::from(frame.wire_len);
            self.frames.push(frame);
        }
    }

    /// Forgets the bytes of frames that were given out.
    fn compact(&mut self) {
        if self.lanes.iter().all(|lane| lane.frames.is_empty()) {
            return self.bytes.clear();
        }
        if self.bytes.len() < COMPACT_BYTES {
            return;
        }
        self.spare.clear();
        for frame in self.lanes.iter_mut().flat_map(|lane| &mut lane.frames) {
            let begin = frame.offset as usize;
            let end = begin.saturating_add(frame.captured_len as usize);
            frame.offset = u32::try_from(self.spare.len()).unwrap_or(u32::MAX);
            let bytes = self.bytes.get(begin..end).unwrap_or_default();
            self.spare.extend_from_slice(bytes);
        }
        std::mem::swap(&mut self.bytes, &mut self.spare);
    }

    /// Waits until a lane that has nothing gets something; false after `limit`.
    fn wait(&self, limit: Duration) -> bool {
        // A lane whose frames wait still holds its part of the ring, which looks like something new.
        let empty = self.lanes.iter().filter(|lane| lane.frames.is_empty());
        let files: Vec<BorrowedFd<'_>> = empty.flat_map(|lane| lane.source.files()).collect();
        any_readable(&files, limit).unwrap_or(false)
    }
}

impl<S: Waited> Source for Joined<S> {
    fn next_event(&mut self) -> Result<SourceEvent<'_>, SourceError> {
        self.frames.clear();
        self.compact();
        let mut is_quiet = false;
        loop {
            if let Some(fault) = self.refill()? {
                return Ok(SourceEvent::Fault(fault));
            }
            self.merge();
            if !self.frames.is_empty() {
                return Ok(SourceEvent::Batch(Batch::new(&self.bytes, &self.frames)));
            }
            if self.lanes.iter().any(|lane| !lane.frames.is_empty()) {
                self.wait(LOOK_EVERY);
            } else if self.lanes.iter().all(|lane| lane.has_ended) {
                return Ok(SourceEvent::End);
            } else if is_quiet {
                return Ok(SourceEvent::Idle);
            } else {
                is_quiet = !self.wait(self.idle);
            }
        }
    }

    fn drops(&self) -> Drops {
        let mut all = Drops::default();
        self.sources().for_each(|source| all += source.drops());
        all
    }

    fn inputs(&self) -> Vec<InputCounts> {
        let lanes = self.lanes.iter();
        lanes
            .map(|lane| InputCounts {
                name: lane.name.clone(),
                packets: lane.packets,
                bytes: lane.wire_bytes,
                drops: lane.source.drops(),
            })
            .collect()
    }

    fn now(&self) -> Option<Timestamp> {
        let open = self.lanes.iter().filter(|lane| !lane.has_ended);
        open.filter_map(|lane| lane.source.now()).min()
    }
}

#[cfg(test)]
mod tests {
    use linkweir_wire::LinkType;

    use super::*;

    /// Gives batches of frames with these times, `None` being an idle event at a time of its own.
    struct Script {
        events: VecDeque<Option<Vec<u64>>>,
        now: u64,
        bytes: Vec<u8>,
        frames: Vec<FrameRef>,
    }

    impl Script {
        fn new(events: impl IntoIterator<Item = Option<Vec<u64>>>, now: u64) -> Self {
            Self {
                events: events.into_iter().collect(),
                now,
                bytes: Vec::new(),
                frames: Vec::new(),
            }
        }
    }

    impl Source for Script {
        fn next_event(&mut self) -> Result<SourceEvent<'_>, SourceError> {
            Ok(match self.events.pop_front() {
                None => SourceEvent::End,
                Some(None) => SourceEvent::Idle,
                Some(Some(times)) => {
                    (self.bytes, self.frames) = (Vec::new(), Vec::new());
                    for time in times {
                        self.frames.push(FrameRef {
                            timestamp: Timestamp::from_nanos(time),
                            offset: u32::try_from(self.bytes.len()).unwrap(),
                            captured_len: 8,
                            wire_len: 100,
                            link: LinkType::ETHERNET,
                            interface: 0,
                        });
                        self.bytes.extend(time.to_be_bytes());
                    }
                    SourceEvent::Batch(Batch::new(&self.bytes, &self.frames))
                }
            })
        }

        fn now(&self) -> Option<Timestamp> {
            Some(Timestamp::from_nanos(self.now))
        }

        fn drops(&self) -> Drops {
            Drops {
                kernel: self.now,
                ..Drops::default()
            }
        }
    }

    impl Waited for Script {
        fn files(&self) -> Vec<BorrowedFd<'_>> {
            Vec::new()
        }
    }

    fn joined(scripts: Vec<Script>) -> Joined<Script> {
        let names = (0..).map(|number| format!("eth{number}"));
        Joined::new(names.zip(scripts).collect(), Duration::from_millis(1))
    }

    /// The times of a batch, each as its index and its bytes say; nothing for an idle event.
    fn next(joined: &mut Joined<Script>) -> Option<Vec<u64>> {
        match joined.next_event().unwrap() {
            SourceEvent::Batch(batch) => Some(
                batch
                    .frames()
                    .map(|frame| {
                        let time = u64::from_be_bytes(frame.bytes.try_into().unwrap());
                        assert_eq!(Timestamp::from_nanos(time), frame.timestamp);
                        time
                    })
                    .collect(),
            ),
            SourceEvent::Idle => None,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn frames_of_two_lanes_come_in_the_order_of_time() {
        let one = Script::new([Some(vec![1, 4, 9]), Some(vec![12])], 0);
        let two = Script::new([Some(vec![2, 3, 10, 11]), Some(vec![20])], 0);
        let mut both = joined(vec![one, two]);
        assert_eq!(next(&mut both), Some(vec![1, 2, 3, 4, 9]));
        assert_eq!(next(&mut both), Some(vec![10, 11]));
        assert_eq!(next(&mut both), Some(vec![12]));
        assert_eq!(next(&mut both), Some(vec![20]));
        assert!(matches!(both.next_event().unwrap(), SourceEvent::End));
        let counts: Vec<_> = both
            .inputs()
            .into_iter()
            .map(|one| (one.name, one.packets, one.bytes))
            .collect();
        let expected = [("eth0".to_owned(), 4, 400), ("eth1".to_owned(), 5, 500)];
        assert_eq!(counts, expected);
    }

    #[test]
    fn a_frame_waits_for_a_lane_that_may_have_an_earlier_one() {
        let quiet = Script::new([None, None, None, Some(vec![6])], 5);
        let busy = Script::new([Some(vec![4, 5, 7])], 0);
        let mut both = joined(vec![quiet, busy]);
        assert_eq!(next(&mut both), Some(vec![4, 5]));
        // 7 is later than the quiet lane's clock: 6 may still come, and does.
        assert_eq!(next(&mut both), Some(vec![6]));
        assert_eq!(next(&mut both), Some(vec![7]));
    }

    #[test]
    fn a_clock_that_was_set_back_holds_nothing_up_for_long() {
        let quiet = Script::new(vec![None; 2000], 5);
        let busy = Script::new([Some(vec![1 << 60])], 0);
        let mut both = joined(vec![quiet, busy]);
        assert_eq!(next(&mut both), Some(vec![1 << 60]));
        assert_eq!(next(&mut both), None, "then nothing comes");
    }

    #[test]
    fn what_was_given_out_makes_room() {
        let frames = COMPACT_BYTES as u64 / 8;
        let many = |from: u64| Some((from..from + frames).collect());
        let one = Script::new([many(0), many(frames), many(2 * frames)], 0);
        let last = Script::new([Some(vec![1, 3 * frames])], 0);
        let mut both = joined(vec![one, last]);
        let mut seen = Vec::new();
        for _ in 0..4 {
            seen.extend(next(&mut both).unwrap());
        }
        assert_eq!(seen.len() as u64, 3 * frames + 2);
        assert!(seen.is_sorted());
        assert!(both.bytes.len() < 2 * COMPACT_BYTES + 64);
        assert_eq!(both.drops().kernel, 0);
    }
}
