//! What has passed ahead of a gap.

use super::unacked::common;
use std::collections::BTreeMap;

/// Bytes after which a run of bytes goes on in another one.
const MAX_KEPT: usize = 64 * 1024;
/// What a run takes beside its bytes, about, bytes.
const OVERHEAD: usize = 96;

/// Runs of bytes, none of which overlap, by the place of their first byte in the stream.
#[derive(Debug, Default)]
pub(super) struct Ahead {
    runs: BTreeMap<u64, Vec<u8>>,
    /// Where the stream ends, where a FIN has said it.
    end: Option<u64>,
    /// Memory of all of it, bytes.
    memory: usize,
}

impl Ahead {
    pub(super) const fn memory(&self) -> usize {
        self.memory
    }

    pub(super) fn is_empty(&self) -> bool {
        self.runs.is_empty() && self.end.is_none()
    }

    /// The most memory that it has with one more segment of so many bytes, bytes.
    pub(super) const fn memory_with(&self, bytes: usize) -> usize {
        self.memory + bytes + OVERHEAD
    }

    /// Whether a segment brings another byte in a place that has one, or other bytes where the stream ends.
    pub(super) fn differs(&self, at: u64, bytes: &[u8], is_end: bool) -> bool {
        let to = at + bytes.len() as u64;
        self.end.is_some_and(|end| to > end || is_end && to != end)
            || is_end && self.last().is_some_and(|last| last > to)
            || self.touched(at, to).any(|(from, run)| {
                let (skip, bytes) = common(from, at, bytes);
                let kept = run.get(skip..).unwrap_or_default();
                kept.iter().zip(bytes).any(|(kept, byte)| kept != byte)
            })
    }

    /// Keeps what a segment brings where nothing is yet.
    pub(super) fn insert(&mut self, at: u64, bytes: &[u8], is_end: bool) {
        let to = at + bytes.len() as u64;
        if is_end {
            self.end = Some(to);
        }
        let mut from = at;
        while from < to {
            let before = self.runs.range_mut(..=from).next_back();
            let before = before.map(|(start, run)| (start + run.len() as u64, run));
            let end = before.as_ref().map_or(0, |(end, _)| *end);
            if end > from {
                from = end;
                continue;
            }
            let grows = before.is_some_and(|(_, run)| end == from && run.len() < MAX_KEPT);
            let next = self.runs.range(from..).next();
            let until = next.map_or(to, |(start, _)| to.min(*start));
            let (skip, _) = common(at, from, &[]);
            let (stop, _) = common(at, until, &[]);
            let piece = bytes.get(skip..stop).unwrap_or_default();
            self.memory += piece.len();
            match self.runs.range_mut(..from).next_back() {
                Some((_, run)) if grows => run.extend_from_slice(piece),
                _ => {
                    self.memory += OVERHEAD;
                    self.runs.insert(from, piece.to_vec());
                }
            }
            from = until;
        }
    }

    /// Takes the first run, where it brings bytes behind `next` without a gap, with the number of its bytes
    /// that do not. Runs before it are forgotten.
    pub(super) fn pop(&mut self, next: u64) -> Option<(Vec<u8>, usize)> {
        while let Some(first) = self.runs.first_entry().filter(|first| *first.key() <= next) {
            let (start, run) = first.remove_entry();
            self.memory -= run.len() + OVERHEAD;
            let (skip, _) = common(start, next, &[]);
            if skip < run.len() {
                return Some((run, skip));
            }
        }
        None
    }

    /// Where the first run begins.
    pub(super) fn first(&self) -> Option<u64> {
        self.runs.first_key_value().map(|(start, _)| *start)
    }

    /// Whether the stream ends at `next`.
    pub(super) fn ends_at(&self, next: u64) -> bool {
        self.end == Some(next)
    }

    /// Position behind the last byte.
    fn last(&self) -> Option<u64> {
        let (start, run) = self.runs.last_key_value()?;
        Some(start + run.len() as u64)
    }

    /// The runs that may have a byte between the places.
    fn touched(&self, at: u64, to: u64) -> impl Iterator<Item = (u64, &[u8])> {
        let before = self.runs.range(..=at).next_back();
        let others = self.runs.range(at + 1..to.max(at + 1));
        let all = before.into_iter().chain(others);
        all.map(|(start, run)| (*start, run.as_slice()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::collection::vec;
    use proptest::prelude::{prop_assert, prop_assert_eq, proptest};

    #[test]
    fn an_end_stands_in_one_place() {
        let mut ahead = Ahead::default();
        ahead.insert(10, b"abc", true);
        assert!(ahead.ends_at(13) && !ahead.ends_at(12));
        assert!(ahead.differs(11, b"b", true), "an earlier end");
        assert!(ahead.differs(13, b"d", false), "bytes behind the end");
        assert!(!ahead.differs(10, b"abc", true));
        let mut ahead = Ahead::default();
        ahead.insert(10, b"abc", false);
        assert!(ahead.differs(10, b"ab", true));
    }

    #[test]
    fn long_runs_are_parted() {
        let mut ahead = Ahead::default();
        for at in 0..200 {
            ahead.insert(at * 1000, &[1; 1000], false);
        }
        assert_eq!(ahead.runs.len(), 4);
        assert_eq!(ahead.memory(), 200_000 + 4 * OVERHEAD);
    }

    proptest! {
        /// Whatever comes in whatever order, each byte is there once, and the first one stays.
        #[test]
        fn what_is_kept_is_what_came_first(pieces in vec((0..300_usize, 1..60_usize), 1..60), next in 0..300_u64) {
            let mut ahead = Ahead::default();
            let mut expected = [None; 400];
            for (number, (at, len)) in pieces.iter().enumerate() {
                let byte = u8::try_from(number).expect("small");
                let place = &mut expected[*at..at + len];
                let is_other = place.iter().flatten().any(|kept| *kept != byte);
                prop_assert_eq!(ahead.differs(*at as u64, &vec![byte; *len], false), is_other);
                ahead.insert(*at as u64, &vec![byte; *len], false);
                place.iter_mut().for_each(|kept| _ = kept.get_or_insert(byte));
            }
            let mut at = next;
            while let Some((run, skip)) = ahead.pop(at) {
                for byte in &run[skip..] {
                    prop_assert_eq!(expected[usize::try_from(at).expect("small")], Some(*byte));
                    at += 1;
                }
            }
            prop_assert!(expected[usize::try_from(at).expect("small")].is_none());
            prop_assert!(ahead.first().is_none_or(|first| first > at));
            while ahead.pop(1000).is_some() {}
            prop_assert_eq!(ahead.memory(), 0);
        }
    }
}
