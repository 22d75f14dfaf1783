//! The time that logs cover: runs of requests without a long gap.

use std::collections::BTreeMap;
use std::ops::Bound;

/// Runs that are remembered; with so many of them one more gap is no news.
const MOST_RUNS: usize = 4096;

/// A request: when it came and where it stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Mark {
    /// Nanoseconds since 1970.
    pub time_ns: u64,
    /// Number of its log among the inputs, and its line there.
    pub place: (usize, u64),
}

/// Requests none of which is further from the next than the longest gap.
#[derive(Debug, Clone, Copy)]
struct Run {
    first: Mark,
    last: Mark,
    requests: u64,
}

/// One side of a gap.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Side {
    /// The request at the gap.
    pub mark: Mark,
    /// Requests from there to the next gap.
    pub near: u64,
    /// All requests on this side.
    pub all: u64,
}

/// The runs of all requests, whatever their order.
#[derive(Debug)]
pub struct Coverage {
    longest_gap_ns: u64,
    /// By the time at which they begin.
    runs: BTreeMap<u64, Run>,
}

impl Coverage {
    /// Nothing yet; requests that are further apart than this, in nanoseconds, belong to different runs.
    #[must_use]
    pub const fn new(longest_gap_ns: u64) -> Self {
        Self {
            longest_gap_ns,
            runs: BTreeMap::new(),
        }
    }

    /// Takes a request.
    pub fn add(&mut self, mark: Mark) {
        let time_ns = mark.time_ns;
        let mut run = Run {
            first: mark,
            last: mark,
            requests: 1,
        };
        if let Some((_, before)) = self.runs.range_mut(..=time_ns).next_back()
            && time_ns.saturating_sub(before.last.time_ns) <= self.longest_gap_ns
        {
            before.requests += 1;
            if time_ns <= before.last.time_ns {
                return;
            }
            run = Run {
                last: mark,
                ..*before
            };
        }
        let behind = (Bound::Excluded(time_ns), Bound::Unbounded);
        if let Some((begins, next)) = self.runs.range(behind).next()
            && begins.saturating_sub(time_ns) <= self.longest_gap_ns
        {
            run.last = next.last;
            run.requests += next.requests;
            let begins = *begins;
            self.runs.remove(&begins);
        }
        self.runs.insert(run.first.time_ns, run);
        if self.runs.len() > MOST_RUNS {
            self.runs.pop_last();
        }
    }

    /// Runs with a time from `from` until before `to`.
    fn within(&self, (from, to): (u64, u64)) -> impl Iterator<Item = &Run> {
        let runs = self.runs.range(..to).map(|(_, run)| run);
        runs.filter(move |run| run.last.time_ns >= from)
    }

    /// The longest gap between two runs in a span of time (from when until before when, nanoseconds since
    /// 1970): what is before and behind it.
    #[must_use]
    pub fn gap(&self, span: (u64, u64)) -> Option<[Side; 2]> {
        let pairs = self.within(span).zip(self.within(span).skip(1));
        let (before, after) =
            pairs.max_by_key(|(before, after)| after.first.time_ns - before.last.time_ns)?;
        let (mut all_before, mut all_after) = (0, 0);
        for run in self.within(span) {
            if run.first.time_ns < after.first.time_ns {
                all_before += run.requests;
            } else {
                all_after += run.requests;
            }
        }
        let side = |mark, run: &Run, all| Side {
            mark,
            near: run.requests,
            all,
        };
        Some([
            side(before.last, before, all_before),
            side(after.first, after, all_after),
        ])
    }

    /// The first and the last moment of a span that are covered.
    #[must_use]
    pub fn watched(&self, span: (u64, u64)) -> Option<(u64, u64)> {
        let (from, to) = span;
        let first = self.within(span).next()?.first.time_ns.max(from);
        let last = self.within(span).last()?.last.time_ns;
        Some((first, last.min(to.saturating_sub(1))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const ALL: (u64, u64) = (0, u64::MAX);

    fn of(times: &[u64]) -> Coverage {
        let mut coverage = Coverage::new(10);
        for (time_ns, line) in times.iter().zip(1..) {
            let place = (0, line);
            coverage.add(Mark {
                time_ns: *time_ns,
                place,
            });
        }
        coverage
    }

    /// The times around the longest gap, and the line behind it.
    fn gap(coverage: &Coverage, span: (u64, u64)) -> Option<(u64, u64, u64)> {
        let [before, after] = coverage.gap(span)?.map(|side| side.mark);
        Some((before.time_ns, after.time_ns, after.place.1))
    }

    #[test]
    fn a_gap_is_found_in_any_order_and_only_in_the_span() {
        let coverage = of(&[100, 5000, 108, 90, 1, 118]);
        assert_eq!(gap(&coverage, ALL), Some((118, 5000, 2)));
        assert_eq!(gap(&coverage, (0, 5000)), Some((1, 90, 4)));
        assert_eq!(gap(&coverage, (50, 5000)), None);
        // What is beyond a gap covers nothing of the span.
        assert_eq!(coverage.watched((50, 5000)), Some((90, 118)));
        assert_eq!(coverage.watched((95, 110)), Some((95, 109)));
        assert_eq!(coverage.watched((200, 300)), None);
        assert_eq!(coverage.watched(ALL), Some((1, 5000)));
        assert_eq!(Coverage::new(10).watched(ALL), None);
    }

    #[test]
    fn a_late_request_joins_two_runs() {
        assert_eq!(gap(&of(&[0, 20]), ALL), Some((0, 20, 2)));
        assert_eq!(gap(&of(&[0, 20, 10]), ALL), None);
    }

    #[test]
    fn the_requests_on_both_sides_are_counted() {
        let sides = |times: &[u64]| {
            let sides = of(times).gap(ALL).unwrap();
            sides.map(|side| (side.near, side.all))
        };
        assert_eq!(sides(&[100, 105, 110, 5000, 100]), [(4, 4), (1, 1)]);
        // A late request joins two runs; another wrong time lies behind the first.
        assert_eq!(sides(&[100, 120, 5000, 110, 9000]), [(3, 3), (1, 2)]);
        assert_eq!(sides(&[1, 50, 55, 9000, 9001]), [(2, 3), (2, 2)]);
    }

    #[test]
    fn many_gaps_take_little_room() {
        let times: Vec<u64> = (0..100_000).map(|at| at * 11).collect();
        let coverage = of(&times);
        assert_eq!(coverage.runs.len(), MOST_RUNS);
        assert!(coverage.gap(ALL).is_some());
    }

    proptest! {
        #[test]
        fn runs_are_those_of_the_sorted_times(times in prop::collection::vec(0..500_u64, 1..60)) {
            let mut sorted = times.clone();
            sorted.sort_unstable();
            let longest = sorted.windows(2).map(|pair| pair[1] - pair[0]).max();
            let longest = longest.filter(|gap| *gap > 10);
            let found = of(&times).gap(ALL);
            let length = found.map(|[before, after]| after.mark.time_ns - before.mark.time_ns);
            prop_assert_eq!(length, longest);
            let requests = found.map(|[before, after]| before.all + after.all);
            prop_assert!(requests.is_none_or(|all| all == times.len() as u64));
        }
    }
}
