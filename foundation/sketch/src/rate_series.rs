//! Events over time in a bounded number of bins.
//!
//! Bins lie at multiples of their width since the epoch. When the events span more than the most
//! bins allowed, the width doubles and neighbours are added. The width depends only on the first and
//! the last event, so series of parts of a trace merge to the series of the whole, exactly.
//!
//! Cost: O(1) per event (a division), 8 bytes per bin. One absurd time stamp stretches the series to
//! wide bins but loses no event.

use crate::log_linear::to_f64;

/// Counts of events per time bin.
///
/// Units: nanoseconds since the epoch for times, nanoseconds for widths.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RateSeries {
    width: u64,
    max_bins: usize,
    /// Number of the first bin, counted from the epoch.
    first: u64,
    bins: Vec<u64>,
}

impl RateSeries {
    /// A series with bins of `width_ns` (at least 1) to begin with and at most `max_bins` (at least 2).
    /// Only series made with the same two values can be merged exactly.
    #[must_use]
    pub fn new(width_ns: u64, max_bins: usize) -> Self {
        Self {
            width: width_ns.max(1),
            max_bins: max_bins.max(2),
            first: 0,
            bins: Vec::new(),
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
        let at = (time_ns / self.width).wrapping_sub(self.first);
        // The common case: the bin is there.
        if let Some(bin) = usize::try_from(at)
            .ok()
            .and_then(|at| self.bins.get_mut(at))
        {
            *bin = bin.saturating_add(events);
            return;
        }
        if events > 0 {
            self.extend_to(time_ns, time_ns);
            self.add(time_ns, events);
        }
    }

    fn add(&mut self, time_ns: u64, events: u64) {
        let at = (time_ns / self.width).wrapping_sub(self.first);
        if let Some(bin) = usize::try_from(at)
            .ok()
            .and_then(|at| self.bins.get_mut(at))
        {
            *bin = bin.saturating_add(events);
        }
    }

    /// Makes bins from `low` to `high`, doubling the width as often as that needs.
    fn extend_to(&mut self, low: u64, high: u64) {
        loop {
            let (mut from, mut to) = (low / self.width, high / self.width);
            if !self.bins.is_empty() {
                from = from.min(self.first);
                to = to.max(self.first + (self.bins.len() as u64 - 1));
            }
            match usize::try_from(to - from) {
                Ok(span) if span < self.max_bins => {
                    let missing = usize::try_from(self.first.saturating_sub(from)).unwrap_or(0);
                    if !self.bins.is_empty() && missing > 0 {
                        self.bins.splice(0..0, std::iter::repeat_n(0, missing));
                    }
                    self.first = from;
                    self.bins.resize(span + 1, 0);
                    return;
                }
                _ => self.double(),
            }
        }
    }

    /// Doubles the width of the bins.
    fn double(&mut self) {
        let is_odd = self.first % 2 == 1;
        let mut bins = Vec::with_capacity(self.bins.len() / 2 + 1);
        let mut rest = self.bins.as_slice();
        if is_odd && let Some((first, after)) = rest.split_first() {
            bins.push(*first);
            rest = after;
        }
        bins.extend(
            rest.chunks(2)
                .map(|pair| pair.iter().fold(0_u64, |a, b| a.saturating_add(*b))),
        );
        self.bins = bins;
        self.first /= 2;
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
        if let Some((low, high)) = other.range() {
            self.extend_to(low, high);
            for (time, events) in other.bins() {
                self.add(time, events);
            }
        }
    }

    /// Start of the first and of the last bin.
    fn range(&self) -> Option<(u64, u64)> {
        let last = self.bins.len().checked_sub(1)? as u64;
        Some((
            self.first.saturating_mul(self.width),
            (self.first + last).saturating_mul(self.width),
        ))
    }

    /// Width of a bin, nanoseconds.
    #[must_use]
    pub const fn width_ns(&self) -> u64 {
        self.width
    }

    /// Number of bins from the first event to the last.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.bins.len()
    }

    /// Whether no event was counted.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.bins.is_empty()
    }

    /// The bins in order, empty ones included: start in nanoseconds since the epoch, events.
    pub fn bins(&self) -> impl ExactSizeIterator<Item = (u64, u64)> + '_ {
        self.bins
            .iter()
            .enumerate()
            .map(|(at, events)| ((self.first + at as u64).saturating_mul(self.width), *events))
    }

    /// Number of events.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.bins
            .iter()
            .fold(0, |sum, bin| sum.saturating_add(*bin))
    }

    /// The same events in at most `max_bins` (at least 2) wider bins, for a plot.
    #[must_use]
    pub fn coarsened(&self, max_bins: usize) -> Self {
        let mut series = self.clone();
        series.max_bins = max_bins.max(2);
        while series.bins.len() > series.max_bins {
            series.double();
        }
        series
    }

    /// Events per second of each bin, with its start.
    pub fn per_second(&self) -> impl ExactSizeIterator<Item = (u64, f64)> + '_ {
        let seconds = to_f64(self.width) / 1e9;
        self.bins()
            .map(move |(time, events)| (time, to_f64(events) / seconds))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn widths_double() {
        let mut series = RateSeries::new(10, 4);
        for time in [100, 105, 139] {
            series.record(time);
        }
        assert_eq!(
            series.bins().collect::<Vec<_>>(),
            [(100, 2), (110, 0), (120, 0), (130, 1)]
        );
        series.record(140);
        assert_eq!(series.width_ns(), 20);
        assert_eq!(
            series.bins().collect::<Vec<_>>(),
            [(100, 2), (120, 1), (140, 1)]
        );
        series.record(60);
        assert_eq!(series.width_ns(), 40);
        assert_eq!(
            series.bins().collect::<Vec<_>>(),
            [(40, 1), (80, 2), (120, 2)]
        );
        series.record(u64::MAX);
        series.record(0);
        assert_eq!(series.total(), 7);
        assert!(series.len() <= 4);
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
            prop_assert_eq!(one.coarsened(2).total(), all.total());
        }
    }
}
