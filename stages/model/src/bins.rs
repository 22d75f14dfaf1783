//! Events as counts per bin of time.

use std::collections::VecDeque;

/// The most bins that are held: 256 MiB of counts.
pub const MOST_BINS: usize = 1 << 25;

/// More bins than are held: the events are too far apart, or the bins too short.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the times span more than {MOST_BINS} bins")]
pub struct TooManyBins;

/// Counts per bin. Bins begin at whole multiples of their length since 1970, so that bins of 10 s
/// begin at full ten seconds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bins {
    width_ns: u64,
    /// Number of the first bin.
    first: u64,
    counts: VecDeque<u64>,
}

impl Bins {
    /// No bins yet, of a length in nanoseconds (at least 1).
    #[must_use]
    pub fn new(width_ns: u64) -> Self {
        Self {
            width_ns: width_ns.max(1),
            first: 0,
            counts: VecDeque::new(),
        }
    }

    /// Whether bins of such a length hold both times, all in nanoseconds.
    #[must_use]
    pub const fn can_hold(width_ns: u64, first_ns: u64, last_ns: u64) -> bool {
        let width = if width_ns == 0 { 1 } else { width_ns };
        (last_ns / width).saturating_sub(first_ns / width) < MOST_BINS as u64
    }

    /// Counts `count` events at a time.
    ///
    /// # Errors
    /// Where the bins would be more than [`MOST_BINS`]; then nothing is counted.
    pub fn add(&mut self, time_ns: u64, count: u64) -> Result<(), TooManyBins> {
        let number = time_ns / self.width_ns;
        if self.counts.is_empty() {
            self.first = number;
        }
        if number < self.first {
            let before = usize::try_from(self.first - number).map_err(|_| TooManyBins)?;
            if before > MOST_BINS.saturating_sub(self.counts.len()) {
                return Err(TooManyBins);
            }
            for _ in 0..before {
                self.counts.push_front(0);
            }
            self.first = number;
        }
        let place = usize::try_from(number - self.first).map_err(|_| TooManyBins)?;
        if place >= MOST_BINS {
            return Err(TooManyBins);
        }
        if place >= self.counts.len() {
            self.counts.resize(place + 1, 0);
        }
        if let Some(bin) = self.counts.get_mut(place) {
            *bin = bin.saturating_add(count);
        }
        Ok(())
    }

    /// The longest time without an event between two events: the times at which the bins of the two
    /// begin, nanoseconds since 1970.
    #[must_use]
    pub fn longest_gap(&self) -> Option<(u64, u64)> {
        let filled = || {
            let numbered = (self.first..).zip(&self.counts);
            numbered.filter(|(_, count)| **count > 0).map(|(at, _)| at)
        };
        let gaps = filled().zip(filled().skip(1));
        let (before, after) = gaps.max_by_key(|(before, after)| after - before)?;
        let begins = |number: u64| number.saturating_mul(self.width_ns);
        Some((begins(before), begins(after)))
    }

    /// Bins, and how many of them have an event.
    #[must_use]
    pub fn filled(&self) -> (usize, usize) {
        let filled = self.counts.iter().filter(|count| **count > 0).count();
        (self.counts.len(), filled)
    }

    /// The bins as they are: the time at which the first begins, nanoseconds since 1970, and the
    /// counts.
    #[must_use]
    pub fn into_counts(self) -> (u64, Vec<u64>) {
        (self.first.saturating_mul(self.width_ns), self.counts.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bins_are_aligned_and_without_gaps() {
        let mut bins = Bins::new(10);
        for (time, count) in [(57, 1), (91, 2), (50, 1), (39, 5), (70, 0)] {
            bins.add(time, count).unwrap();
        }
        assert_eq!(bins.longest_gap(), Some((50, 90)));
        assert_eq!(bins.filled(), (7, 3));
        assert_eq!(bins.into_counts(), (30, vec![5, 0, 2, 0, 0, 0, 2]));
        assert_eq!(Bins::new(10).longest_gap(), None);
        assert_eq!(Bins::new(0).into_counts(), (0, vec![]));
    }

    #[test]
    fn too_many_are_refused() {
        let mut bins = Bins::new(1);
        bins.add(u64::MAX, 1).unwrap();
        let most = MOST_BINS as u64;
        assert!(Bins::can_hold(10, 5, 10 * most - 1) && !Bins::can_hold(10, 5, 10 * most));
        assert_eq!(bins.add(0, 1), Err(TooManyBins));
        assert_eq!(bins.add(u64::MAX - (1 << 26), 1), Err(TooManyBins));
        bins.add(u64::MAX - 2, u64::MAX).unwrap();
        bins.add(u64::MAX - 2, u64::MAX).unwrap();
        assert_eq!(bins.into_counts(), (u64::MAX - 2, vec![u64::MAX, 0, 1]));
    }
}
