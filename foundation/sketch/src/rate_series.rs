//! Events over time in a bounded number of bins.
//!
//! Bins lie at multiples of their width since the epoch; only those with events are kept. When these are
//! more than allowed, the width doubles and neighbours are added. The width depends only on which times
//! there are, so series of parts of a trace merge to the series of the whole, exactly.
//!
//! Cost: a division and a search among the bins per event, 16 bytes and some per bin. One absurd time
//! stamp takes one bin: the others stay as fine as they were, and [`RateSeries::main_range`] is without it.

use std::collections::BTreeMap;

use crate::log_linear::to_f64;

/// A stretch of time is apart from the others behind a gap so many times as long as it is.
const APART: u64 = 20;
/// And so long, nanoseconds.
const LEAST_GAP: u64 = 3_600_000_000_000;
/// Stray events are fewer than one in so many.
const STRAY: u64 = 10;

/// Counts of events per time bin.
///
/// Units: nanoseconds since the epoch for times, nanoseconds for widths.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RateSeries {
    width: u64,
    max_bins: usize,
    /// Events by the number of their bin, counted from the epoch.
    bins: BTreeMap<u64, u64>,
}

/// Bins near one another.
#[derive(Debug, Clone, Copy)]
struct Group {
    /// Start of the first.
    from: u64,
    /// End of the last.
    to: u64,
    events: u64,
}

impl RateSeries {
    /// A series with bins of `width_ns` (at least 1) to begin with and at most `max_bins` (at least 2)
    /// with events. Only series made with the same two values can be merged exactly.
    #[must_use]
    pub fn new(width_ns: u64, max_bins: usize) -> Self {
        Self {
            width: width_ns.max(1),
            max_bins: max_bins.max(2),
            bins: BTreeMap::new(),
        }
    }

    /// Counts one event.
    #[inline]
    pub fn record(&mut self, time_ns: u64) {
        self.record_n(time_ns, 1);
    }

    /// Counts `events` at one time.
    #[inline]
    pub fn record_n(&mut self, time_ns: u64, events: u64) {
        if events > 0 {
            self.add(time_ns / self.width, events);
            self.bound();
        }
    }

    fn add(&mut self, number: u64, events: u64) {
        let bin = self.bins.entry(number).or_default();
        *bin = bin.saturating_add(events);
    }

    /// Makes the bins as wide as their number needs.
    fn bound(&mut self) {
        while self.bins.len() > self.max_bins {
            self.double();
        }
    }

    /// Doubles the width of the bins.
    fn double(&mut self) {
        for (number, events) in std::mem::take(&mut self.bins) {
            self.add(number / 2, events);
        }
        self.width = self.width.saturating_mul(2);
    }

    /// Adds the events of another part of the trace.
    pub fn merge(&mut self, other: &Self) {
        let mut other = other.clone();
        while other.width < self.width {
            other.double();
        }
        while self.width < other.width {
            self.double();
        }
        for (number, events) in other.bins {
            self.add(number, events);
        }
        self.bound();
    }

    /// Width of a bin, nanoseconds.
    #[must_use]
    pub const fn width_ns(&self) -> u64 {
        self.width
    }

    /// Number of bins with events.
    #[must_use]
    pub fn len(&self) -> usize {
        self.bins.len()
    }

    /// Whether no event was counted.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.bins.is_empty()
    }

    /// The bins with events in order: start in nanoseconds since the epoch, events.
    pub fn bins(&self) -> impl DoubleEndedIterator<Item = (u64, u64)> + '_ {
        let bins = self.bins.iter();
        bins.map(|(number, events)| (number.saturating_mul(self.width), *events))
    }

    /// Number of events.
    #[must_use]
    pub fn total(&self) -> u64 {
        let events = self.bins.values();
        events.fold(0, |sum, events| sum.saturating_add(*events))
    }

    /// The time in which the events lie without strays, from the start of a bin to the end of one:
    /// strays are fewer than a tenth of the others, and apart from them by more than an hour and more
    /// than twenty times the length of that time.
    #[must_use]
    pub fn main_range(&self) -> Option<(u64, u64)> {
        let mut groups = self.groups();
        let all = groups.first()?.from..groups.last()?.to;
        let most = groups
            .iter()
            .enumerate()
            .max_by_key(|(_, group)| group.events)?;
        let late = groups.split_off(most.0 + 1);
        let mut main = groups.pop()?;
        let (mut before, mut after) = (
            groups.into_iter().rev().peekable(),
            late.into_iter().peekable(),
        );
        loop {
            let near = (main.to - main.from).saturating_mul(APART).max(LEAST_GAP);
            let (from, to) = (main.from, main.to);
            if let Some(group) = before.next_if(|group| from - group.to <= near) {
                main.from = group.from;
                main.events = main.events.saturating_add(group.events);
            } else if let Some(group) = after.next_if(|group| group.from - to <= near) {
                main.to = group.to;
                main.events = main.events.saturating_add(group.events);
            } else {
                break;
            }
        }
        let strays = self.total() - main.events;
        Some(match strays < main.events / STRAY {
            true => (main.from, main.to),
            false => (all.start, all.end),
        })
    }

    /// The bins in groups with longer gaps between them than [`LEAST_GAP`].
    fn groups(&self) -> Vec<Group> {
        let mut groups: Vec<Group> = Vec::new();
        for (from, events) in self.bins() {
            let to = from.saturating_add(self.width);
            match groups.last_mut() {
                Some(last) if from - last.to <= LEAST_GAP => {
                    last.to = to;
                    last.events = last.events.saturating_add(events);
                }
                _ => groups.push(Group { from, to, events }),
            }
        }
        groups
    }

    /// The bins that reach into a time.
    #[must_use]
    pub fn within(&self, from_ns: u64, to_ns: u64) -> Self {
        let (first, end) = (from_ns / self.width, to_ns.div_ceil(self.width));
        let mut series = Self::new(self.width, self.max_bins);
        if first < end {
            let bins = self.bins.range(first..end);
            series.bins = bins.map(|(number, events)| (*number, *events)).collect();
        }
        series
    }

    /// The same events in wider bins, of which at most `max_bins` (at least 2) lie between the first and
    /// the last, for a plot.
    #[must_use]
    pub fn coarsened(&self, max_bins: usize) -> Self {
        let mut series = self.clone();
        series.max_bins = max_bins.max(2);
        while series.span() > series.max_bins as u64 {
            series.double();
        }
        series
    }

    /// Number of bins from the first to the last, with those between them.
    fn span(&self) -> u64 {
        let ends = self.bins.keys().next().zip(self.bins.keys().next_back());
        ends.map_or(0, |(first, last)| (last - first).saturating_add(1))
    }

    /// Events per second of each bin from the first to the last, empty ones too, with its start: of a
    /// series that was [`RateSeries::coarsened`].
    pub fn per_second(&self) -> impl Iterator<Item = (u64, f64)> + '_ {
        let seconds = to_f64(self.width) / 1e9;
        let first = self.bins.keys().next().copied().unwrap_or(0);
        let numbers = first..first.saturating_add(self.span());
        numbers.map(move |number| {
            let events = self.bins.get(&number).copied().unwrap_or(0);
            (number.saturating_mul(self.width), to_f64(events) / seconds)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn widths_double() {
        let mut series = RateSeries::new(10, 3);
        for time in [100, 105, 139, 140] {
            series.record(time);
        }
        let bins = |series: &RateSeries| series.bins().collect::<Vec<_>>();
        assert_eq!(bins(&series), [(100, 2), (130, 1), (140, 1)]);
        series.record(60);
        assert_eq!(series.width_ns(), 40);
        assert_eq!(bins(&series), [(40, 1), (80, 2), (120, 2)]);
        series.record(u64::MAX);
        series.record(0);
        assert_eq!(series.total(), 7);
        assert!(series.len() <= 3);
    }

    #[test]
    fn a_stray_time_leaves_the_others_as_they_are() {
        const S: u64 = 1_000_000_000;
        const DAY: u64 = 86_400 * S;
        let mut series = RateSeries::new(S, 1000);
        (0..600).for_each(|second| series.record(20_000 * DAY + second * S));
        let (from, to) = (20_000 * DAY, 20_000 * DAY + 600 * S);
        let all = Some((from, to));
        assert_eq!(series.main_range(), all);
        for stray in [0, 30_000 * DAY, u64::MAX] {
            series.record(stray);
        }
        assert_eq!((series.width_ns(), series.main_range()), (S, all));
        assert_eq!(series.within(from, to).total(), 600);
        // Within an hour, or as long again as the others, or as many as a tenth: no strays.
        let mut near = series.within(from, to);
        near.record(to + 3000 * S);
        assert_eq!(near.main_range(), Some((from, to + 3001 * S)));
        let mut later = series.within(from, to);
        (0..60).for_each(|second| later.record(from + DAY + second * S));
        assert_eq!(later.main_range(), Some((from, from + DAY + 60 * S)));
        assert_eq!(RateSeries::new(1, 2).main_range(), None);
    }

    #[test]
    fn rates_are_per_second() {
        let mut series = RateSeries::new(100_000_000, 8);
        series.record_n(50_000_000, 3);
        assert_eq!(series.per_second().collect::<Vec<_>>(), [(0, 30.0)]);
    }

    proptest! {
        #[test]
        fn merging_is_recording_all(a in prop::collection::vec((0_u32..64, any::<u64>()), 0..40),
                                    b in prop::collection::vec((0_u32..64, any::<u64>()), 0..40),
                                    max in 2_usize..20) {
            let (mut one, mut two, mut all) =
                (RateSeries::new(3, max), RateSeries::new(3, max), RateSeries::new(3, max));
            a.iter().for_each(|(s, t)| { one.record(t >> s); all.record(t >> s); });
            b.iter().for_each(|(s, t)| { two.record(t >> s); all.record(t >> s); });
            one.merge(&two);
            prop_assert_eq!(one.total(), (a.len() + b.len()) as u64);
            prop_assert_eq!(&one, &all);
            prop_assert!(one.len() <= max);
            let plotted = one.coarsened(2);
            prop_assert_eq!(plotted.total(), all.total());
            prop_assert!(plotted.per_second().count() <= 2);
            let main = all.main_range();
            prop_assert_eq!(main.is_some(), !all.is_empty());
            if let Some((from, to)) = main {
                prop_assert!(all.within(from, to).total() * 2 > all.total());
            }
        }
    }
}
