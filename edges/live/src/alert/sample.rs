//! What a metric stands on in an interval, and how intervals with little traffic are judged together.

use std::collections::VecDeque;

use linkweir_sketch::LogLinear;

use crate::text::{percent, to_f64};

/// A figure of a distribution.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Stat {
    /// What this share (0 to 1) of samples did not exceed.
    Quantile(f64),
    /// Smallest.
    Min,
    /// Mean.
    Mean,
    /// Largest.
    Max,
}

/// What a metric stands on in one interval.
#[derive(Debug, Clone, Copy)]
pub enum Sample<'a> {
    /// A figure that needs no samples: a rate, a count. `None` where these numbers do not have it.
    Figure(Option<f64>),
    /// A part of a whole, percent.
    Share {
        /// How many are in the part.
        part: u64,
        /// How many there are.
        whole: u64,
    },
    /// A figure of a distribution.
    Values(Stat, &'a LogLinear),
}

impl Sample<'_> {
    /// Samples it stands on; `None` where it needs none.
    pub(super) const fn count(&self) -> Option<u64> {
        match self {
            Self::Figure(_) => None,
            Self::Share { whole, .. } => Some(*whole),
            Self::Values(_, values) => Some(values.count()),
        }
    }

    /// The value; `None` of nothing.
    pub(super) fn value(&self) -> Option<f64> {
        match self {
            Self::Figure(value) => *value,
            Self::Share { whole: 0, .. } => None,
            Self::Share { part, whole } => Some(percent(*part, *whole)),
            Self::Values(stat, values) => match stat {
                Stat::Quantile(q) => values.quantile(*q),
                Stat::Min => values.min(),
                Stat::Mean => values.mean(),
                Stat::Max => values.max(),
            }
            .map(to_f64),
        }
    }
}

/// An interval whose samples were too few, with the number of the interval.
#[derive(Debug, Clone)]
struct Interval {
    number: u64,
    part: u64,
    samples: u64,
    /// Values with how often they came: at most as many as there are samples.
    values: Vec<(u64, u64)>,
}

/// The samples of the last intervals that had too few each.
#[derive(Debug, Clone, Default)]
pub(super) struct Few(VecDeque<Interval>);

impl Few {
    /// Takes the sample of interval `number`, which has fewer than `needed`. The value of it and those before
    /// it back to interval `oldest`, of as many as it takes; `None` where they are too few together.
    pub(super) fn add(
        &mut self,
        sample: Sample<'_>,
        number: u64,
        oldest: u64,
        needed: u64,
    ) -> Option<f64> {
        self.0.push_back(Interval {
            number,
            part: match sample {
                Sample::Share { part, .. } => part,
                _ => 0,
            },
            samples: sample.count().unwrap_or(0),
            values: match sample {
                Sample::Values(_, values) => values.buckets().collect(),
                _ => Vec::new(),
            },
        });
        let total = |few: &VecDeque<Interval>| few.iter().map(|one| one.samples).sum::<u64>();
        while self
            .0
            .front()
            .is_some_and(|first| first.number < oldest || total(&self.0) - first.samples >= needed)
        {
            self.0.pop_front();
        }
        let whole = total(&self.0);
        if whole < needed {
            return None;
        }
        match sample {
            Sample::Values(stat, _) => {
                let mut values = LogLinear::new();
                let all = self.0.iter().flat_map(|one| &one.values);
                all.for_each(|(value, times)| values.record_n(*value, *times));
                Sample::Values(stat, &values).value()
            }
            _ => {
                let part = self.0.iter().map(|one| one.part).sum();
                Sample::Share { part, whole }.value()
            }
        }
    }

    /// An interval had enough samples: those before it are not needed.
    pub(super) fn clear(&mut self) {
        self.0.clear();
    }
}
