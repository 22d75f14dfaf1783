//! The intervals of a long run in few: what is older than the intervals that are kept one by one.
//!
//! Up to [`MAX_BINS`] bins of equal width; when they are full, neighbours are added and the width
//! doubles. Quantiles come from a small histogram in each bin and are at most 12.5 % too large.
//!
//! Memory: 1.2 KiB a bin and a few counts, at most 5 MB; a day of seconds is 2,700 bins of 32 s.

use std::collections::BTreeMap;

use linkweir_sketch::{Coarse, LogLinear, Payload as _};

use crate::api::{ResponseTimes, Tick};

/// Bins at most.
const MAX_BINS: usize = 3600;

/// Several intervals as one.
#[derive(Debug)]
struct Bin {
    /// Sums; quantiles are made when asked for.
    tick: Tick,
    times: Coarse,
    sum_ns: u128,
    min_ns: u64,
    /// How many intervals are in it.
    intervals: u64,
}

impl Bin {
    fn merge(&mut self, other: Self) {
        let (mine, theirs) = (&mut self.tick, other.tick);
        mine.t_ms = theirs.t_ms;
        mine.id = theirs.id;
        mine.interval_s += theirs.interval_s;
        mine.packets += theirs.packets;
        mine.bytes += theirs.bytes;
        mine.requests += theirs.requests;
        mine.responses += theirs.responses;
        mine.complete += theirs.complete;
        mine.unanswered += theirs.unanswered;
        mine.orphans += theirs.orphans;
        mine.retransmissions += theirs.retransmissions;
        for (code, count) in theirs.codes {
            *mine.codes.entry(code).or_insert(0) += count;
        }
        mine.dropped.add(&theirs.dropped);
        mine.dropped_total = theirs.dropped_total;
        mine.table = theirs.table;
        self.times.merge(&other.times);
        self.sum_ns += other.sum_ns;
        self.min_ns = self.min_ns.min(other.min_ns);
        self.intervals += other.intervals;
    }

    fn tick(&self) -> Tick {
        let times = &self.times;
        let quantile = |per_mille| times.quantile(per_mille).unwrap_or(0);
        let mut tick = self.tick.clone();
        tick.response_time_ns = times.max().map(|max| ResponseTimes {
            count: times.count(),
            min: self.min_ns,
            mean: u64::try_from(self.sum_ns / u128::from(times.count().max(1))).unwrap_or(u64::MAX),
            p50: quantile(500),
            p90: quantile(900),
            p95: quantile(950),
            p99: quantile(990),
            p999: quantile(999),
            max,
        });
        tick
    }
}

/// The whole run in at most [`MAX_BINS`] bins.
#[derive(Debug)]
pub(super) struct History {
    bins: Vec<Bin>,
    /// Intervals in a full bin.
    width: u64,
}

impl Default for History {
    fn default() -> Self {
        Self {
            bins: Vec::new(),
            width: 1,
        }
    }
}

impl History {
    /// Adds a closed interval and its response times. Rules and methods are left out.
    pub(super) fn push(&mut self, tick: &Tick, times: &LogLinear) {
        let mut small = Coarse::default();
        for (value, count) in times.buckets() {
            small.record_n(
                value.clamp(times.min().unwrap_or(0), times.max().unwrap_or(value)),
                count,
            );
        }
        let bin = Bin {
            tick: Tick {
                alerts: Vec::new(),
                methods: BTreeMap::new(),
                response_time_ns: None,
                ..tick.clone()
            },
            times: small,
            sum_ns: times.sum(),
            min_ns: times.min().unwrap_or(u64::MAX),
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
        let mut joined: Vec<Bin> = Vec::with_capacity(self.bins.len().div_ceil(2));
        for bin in self.bins.drain(..) {
            match joined.last_mut() {
                Some(last) if last.intervals + bin.intervals <= self.width => last.merge(bin),
                _ => joined.push(bin),
            }
        }
        self.bins = joined;
    }

    /// The bins that end before interval `id`.
    pub(super) fn before(&self, id: u64) -> Vec<Tick> {
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

    #[test]
    fn a_long_run_fits_and_adds_up() {
        let mut history = History::default();
        let mut times = LogLinear::new();
        times.record_n(1_000_000, 9);
        times.record(64_000_000);
        for id in 1..=50_000 {
            let tick = Tick {
                id,
                t_ms: id * 1000,
                interval_s: 1.0,
                requests: 2,
                codes: [(200, 1), (404, 1)].into(),
                ..Tick::default()
            };
            history.push(&tick, &times);
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
