//! The intervals of a long run in few: what is older than the intervals that are kept one by one.
//!
//! Up to [`MAX_BINS`] bins of equal width; when they are full, neighbours are added and the width
//! doubles. Quantiles come from a small histogram in each bin and are at most 12.5 % too large.
//!
//! Memory: a bin is some counts and up to 1.2 KiB a distribution, 5 MB for one and 26 MB for six at
//! most; a day of seconds is 2,700 bins of 32 s.

use linkweir_sketch::{Coarse, LogLinear, Payload as _};

use crate::api::{Percentiles, Tick};
use crate::figures::Counts as _;
use crate::kind::Kind;

/// Maximum number of bins.
const MAX_BINS: usize = 3600;

/// A distribution of several intervals.
#[derive(Debug)]
pub(super) struct Spread {
    pub(super) values: Coarse,
    pub(super) sum: u128,
    pub(super) min: u64,
}

impl Spread {
    pub(super) fn of(values: &LogLinear) -> Self {
        let mut small = Coarse::default();
        for (value, count) in values.buckets() {
            small.record_n(
                value.clamp(values.min().unwrap_or(0), values.max().unwrap_or(value)),
                count,
            );
        }
        Self {
            values: small,
            sum: values.sum(),
            min: values.min().unwrap_or(u64::MAX),
        }
    }

    pub(super) fn merge(&mut self, other: &Self) {
        self.values.merge(&other.values);
        self.sum = self.sum.saturating_add(other.sum);
        self.min = self.min.min(other.min);
    }

    pub(super) fn percentiles(&self) -> Option<Percentiles> {
        let values = &self.values;
        let quantile = |per_mille| values.quantile(per_mille).unwrap_or(0);
        values.max().map(|max| Percentiles {
            count: values.count(),
            min: self.min,
            mean: u64::try_from(self.sum / u128::from(values.count().max(1))).unwrap_or(u64::MAX),
            p50: quantile(500),
            p90: quantile(900),
            p95: quantile(950),
            p99: quantile(990),
            p999: quantile(999),
            max,
        })
    }
}

/// Several intervals as one.
#[derive(Debug)]
struct Bin<K: Kind> {
    /// Sums; quantiles are made when asked for.
    tick: Tick<K::Figures>,
    /// In the order of [`Kind::Of`].
    spreads: Vec<Spread>,
    /// How many intervals are in it.
    intervals: u64,
}

impl<K: Kind> Bin<K> {
    fn merge(&mut self, other: Self) {
        let (mine, theirs) = (&mut self.tick, other.tick);
        mine.t_ms = theirs.t_ms;
        mine.id = theirs.id;
        mine.interval_s += theirs.interval_s;
        mine.packets = mine.packets.saturating_add(theirs.packets);
        mine.bytes = mine.bytes.saturating_add(theirs.bytes);
        K::Counts::add(&mut mine.figures, theirs.figures);
        mine.dropped.add(&theirs.dropped);
        mine.dropped_total = theirs.dropped_total;
        mine.table = theirs.table;
        for (mine, theirs) in self.spreads.iter_mut().zip(&other.spreads) {
            mine.merge(theirs);
        }
        self.intervals += other.intervals;
    }

    fn tick(&self) -> Tick<K::Figures> {
        let mut tick = self.tick.clone();
        let percentiles = K::Counts::percentiles(&mut tick.figures);
        for ((_, percentiles), spread) in percentiles.into_iter().zip(&self.spreads) {
            *percentiles = spread.percentiles();
        }
        tick
    }
}

/// The whole run in at most [`MAX_BINS`] bins.
#[derive(Debug)]
pub(super) struct History<K: Kind> {
    bins: Vec<Bin<K>>,
    /// Intervals in a full bin.
    width: u64,
}

impl<K: Kind> Default for History<K> {
    fn default() -> Self {
        Self {
            bins: Vec::new(),
            width: 1,
        }
    }
}

impl<K: Kind> History<K> {
    /// Adds a closed interval and its distributions. Rules are left out.
    pub(super) fn push(&mut self, tick: &Tick<K::Figures>, counts: &K::Counts) {
        // Added to nothing, so that what is left out of sums is left out from the start.
        let mut figures = K::Figures::default();
        K::Counts::add(&mut figures, tick.figures.clone());
        let bin = Bin {
            tick: Tick {
                figures,
                alerts: Vec::new(),
                ..tick.clone()
            },
            spreads: counts.distributions().into_iter().map(Spread::of).collect(),
            intervals: 1,
        };
        match self.bins.last_mut() {
            Some(last) if last.intervals < self.width => last.merge(bin),
            _ => self.bins.push(bin),
        }
        if self.bins.len() > MAX_BINS {
            self.halve();
        }
    }

    /// Doubles the width.
    fn halve(&mut self) {
        self.width *= 2;
        let mut joined: Vec<Bin<K>> = Vec::with_capacity(self.bins.len().div_ceil(2));
        for bin in self.bins.drain(..) {
            match joined.last_mut() {
                Some(last) if last.intervals + bin.intervals <= self.width => last.merge(bin),
                _ => joined.push(bin),
            }
        }
        self.bins = joined;
    }

    /// The bins that end before interval `id`.
    pub(super) fn before(&self, id: u64) -> Vec<Tick<K::Figures>> {
        self.bins
            .iter()
            .take_while(|bin| bin.tick.id < id)
            .map(Bin::tick)
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::{HttpCounts, HttpFigures};
    use linkweir_record::HttpKind;

    #[test]
    fn a_long_run_fits_and_adds_up() {
        let mut history = History::<HttpKind>::default();
        let mut times = LogLinear::new();
        times.record_n(1_000_000, 9);
        times.record(64_000_000);
        let counts = HttpCounts {
            response_time_ns: times,
            ..HttpCounts::default()
        };
        for id in 1..=50_000 {
            let tick = Tick {
                id,
                t_ms: id * 1000,
                interval_s: 1.0,
                figures: HttpFigures {
                    requests: 2,
                    codes: [(200, 1), (404, 1)].into(),
                    ..HttpFigures::default()
                },
                ..Tick::default()
            };
            history.push(&tick, &counts);
        }
        let all = history.before(u64::MAX);
        assert!(
            (MAX_BINS / 2..=MAX_BINS).contains(&all.len()),
            "{}",
            all.len()
        );
        assert_eq!(all.iter().map(|tick| tick.requests).sum::<u64>(), 100_000);
        assert_eq!(all.iter().map(|tick| tick.codes[&404]).sum::<u64>(), 50_000);
        assert!((all.iter().map(|tick| tick.interval_s).sum::<f64>() - 50_000.0).abs() < 1e-6);
        assert!(all.windows(2).all(|pair| pair[0].id < pair[1].id));
        let response_time = all[0].response_time_ns.unwrap();
        assert_eq!(response_time.count, all[0].requests * 5);
        assert_eq!(
            (response_time.min, response_time.mean, response_time.max),
            (1_000_000, 7_300_000, 64_000_000)
        );
        assert!((1_000_000..=1_125_000).contains(&response_time.p50));
        assert_eq!(response_time.p95, 64_000_000);
        let half = history.before(25_000);
        assert!(half.last().unwrap().id < 25_000);
    }
}
