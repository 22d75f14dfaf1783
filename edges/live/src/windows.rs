//! The parts of the last minutes: fine ones of five seconds for the last minute, joined ones of half a
//! minute before that.

use std::collections::VecDeque;
use std::sync::Arc;

use linkweir_sketch::LogLinear;

use crate::api::{Ccdf, Window};
use crate::kind::Kind;
use crate::part::Part;
use crate::text::to_f64;

const MINUTE: u64 = 60_000_000_000;
/// Duration of a joined part.
const JOINED: u64 = 30_000_000_000;
/// Longest window.
const LONGEST: u64 = 5 * MINUTE;
/// Points of a distribution.
const MAX_POINTS: usize = 300;

/// Closed parts, oldest first.
#[derive(Debug)]
pub(super) struct Windows<K: Kind> {
    /// How many at the front are joined ones.
    joined: usize,
    parts: VecDeque<Arc<Part<K>>>,
}

impl<K: Kind> Default for Windows<K> {
    fn default() -> Self {
        Self {
            joined: 0,
            parts: VecDeque::new(),
        }
    }
}

impl<K: Kind> Windows<K> {
    /// Adds a closed part. Where this leaves half a minute of fine parts older than a minute, gives
    /// them to be joined; they stay until [`Windows::replace`].
    pub(super) fn push(&mut self, part: impl Into<Arc<Part<K>>>) -> Option<Vec<Arc<Part<K>>>> {
        let part = part.into();
        let now = part.end;
        self.parts.push_back(part);
        while self
            .parts
            .front()
            .is_some_and(|old| old.end.saturating_add(LONGEST) <= now)
        {
            self.parts.pop_front();
            self.joined = self.joined.saturating_sub(1);
        }
        let old: Vec<_> = self
            .parts
            .iter()
            .skip(self.joined)
            .take_while(|part| part.end.saturating_add(MINUTE) <= now)
            .cloned()
            .collect();
        let span = old.last()?.end.saturating_sub(old.first()?.start);
        (old.len() > 1 && span >= JOINED).then_some(old)
    }

    /// Puts the join of the first `count` fine parts in their place.
    pub(super) fn replace(&mut self, count: usize, joined: Part<K>) {
        let end = (self.joined + count).min(self.parts.len());
        self.parts.drain(self.joined..end);
        self.parts.insert(self.joined, Arc::new(joined));
        self.joined += 1;
    }

    /// The parts that reach into a window.
    pub(super) fn parts(&self, window: Window) -> Vec<Arc<Part<K>>> {
        let span = match window {
            Window::Minute => MINUTE,
            Window::FiveMinutes | Window::All => LONGEST,
        };
        let now = self.parts.back().map_or(0, |part| part.end);
        self.parts
            .iter()
            .filter(|part| part.end.saturating_add(span) > now)
            .cloned()
            .collect()
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.parts.len()
    }
}

/// One part out of several.
pub(super) fn join<K: Kind>(parts: &[Arc<Part<K>>], max_keys: usize) -> Part<K> {
    let start = parts.first().map_or(0, |part| part.start);
    let mut joined = Part::new(start, max_keys);
    for part in parts {
        joined.merge(part);
    }
    joined
}

/// The distribution of a histogram, thinned out where points would lie on each other in a log-log
/// plot.
pub(super) fn ccdf(times: &LogLinear) -> Ccdf {
    let mut points = times.ccdf();
    points.retain(|(_, share)| *share > 0.0);
    if points.len() > MAX_POINTS
        && let (Some(first), Some(last)) = (points.first().copied(), points.last().copied())
    {
        let place = |(time, share): (u64, f64)| (to_f64(time.max(1)).ln(), -share.ln());
        let (from, to) = (place(first), place(last));
        // A path that only rises, in steps of at least 2/MAX_POINTS of its length in both directions
        // together, has at most MAX_POINTS / 2 steps.
        let length = (to.0 - from.0) + (to.1 - from.1);
        let step = length * 2.0 / to_f64(MAX_POINTS as u64 - 4);
        let mut kept = from;
        let mut at = 0;
        let count = points.len();
        points.retain(|point| {
            let here = place(*point);
            at += 1;
            let is_kept = at == 1 || at == count || (here.0 - kept.0) + (here.1 - kept.1) >= step;
            if is_kept {
                kept = here;
            }
            is_kept
        });
    }
    Ccdf {
        count: times.count(),
        points,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use linkweir_record::HttpKind;

    fn part(start_s: u64, end_s: u64) -> Part<HttpKind> {
        let mut part = Part::new(start_s * 1_000_000_000, 4);
        part.end = end_s * 1_000_000_000;
        part.distributions[0].record(start_s);
        part
    }

    #[test]
    fn parts_are_joined_and_forgotten_and_windows_cover_their_span() {
        let mut windows = Windows::default();
        for at in 0..1000 {
            if let Some(old) = windows.push(part(at * 5, at * 5 + 5)) {
                let joined = join(&old, 4);
                windows.replace(old.len(), joined);
            }
            assert!(windows.len() <= 33, "{}", windows.len());
            let now = at * 5 + 5;
            for (window, span) in [(Window::Minute, 60), (Window::FiveMinutes, 300)] {
                let parts = windows.parts(window);
                let starts = parts.first().unwrap().start / 1_000_000_000;
                // As long as the window, and at most a joined part longer.
                assert!(
                    starts <= now.saturating_sub(span),
                    "{window:?} {starts} {now}"
                );
                assert!(starts + span + 30 >= now);
                let count: u64 = parts.iter().map(|part| part.distributions[0].count()).sum();
                assert_eq!(count, (now - starts) / 5, "nothing twice, nothing lost");
            }
        }
    }

    #[test]
    fn distributions_are_thinned_and_keep_their_ends() {
        let mut times = LogLinear::new();
        (1..200_000_u64).for_each(|n| times.record(n * n));
        let ccdf = ccdf(&times);
        assert_eq!(ccdf.count, 199_999);
        assert!(
            (100..=MAX_POINTS).contains(&ccdf.points.len()),
            "{}",
            ccdf.points.len()
        );
        assert!(
            ccdf.points
                .windows(2)
                .all(|w| w[0].0 < w[1].0 && w[0].1 > w[1].1)
        );
        assert!(ccdf.points.iter().all(|(_, share)| *share > 0.0));
        assert_eq!(
            ccdf.points.last().unwrap().0,
            times.ccdf().iter().rev().nth(1).unwrap().0
        );
    }
}
