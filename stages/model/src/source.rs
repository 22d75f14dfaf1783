//! One source: a Markov chain whose state is the rate of Poisson arrivals in the bin.

use crate::number::{dot, number};
use std::collections::VecDeque;

/// Most states of one source.
pub const MAX_STATES: usize = 1024;
/// Largest rate of a state, in arrivals per bin.
pub const MAX_RATE: f64 = 1e9;
/// How far from 1 the sum of a row may be.
const ROW_TOLERANCE: f64 = 1e-9;

/// A discrete-time Markov modulated Poisson process (Eqs. 1 to 4 of the paper).
///
/// In a bin whose state is `i` the arrivals are Poisson with mean `rates[i]`; from bin to bin the
/// state moves by a row of the transition matrix. The chain is irreducible and begins in its
/// stationary distribution.
#[derive(Debug, Clone, PartialEq)]
pub struct Source {
    rates: Vec<f64>,
    /// Row by row.
    transitions: Vec<f64>,
    stationary: Vec<f64>,
}

/// Why there is no source. States count from 0.
#[derive(Debug, Clone, Copy, PartialEq, thiserror::Error)]
pub enum SourceError {
    /// No state, or more than [`MAX_STATES`].
    #[error("{0} states: 1 to {MAX_STATES} are possible")]
    States(usize),
    /// A rate is negative, no number or above [`MAX_RATE`].
    #[error("rate {rate} of state {state}: 0 to {MAX_RATE} are possible")]
    Rate {
        /// Whose.
        state: usize,
        /// Arrivals per bin.
        rate: f64,
    },
    /// The matrix has not one row for each state.
    #[error("{rows} rows for {states} states")]
    Rows {
        /// How many.
        rows: usize,
        /// How many there should be.
        states: usize,
    },
    /// A row has not one entry for each state.
    #[error("row {row} has {entries} entries for {states} states")]
    Entries {
        /// Which.
        row: usize,
        /// How many.
        entries: usize,
        /// How many there should be.
        states: usize,
    },
    /// An entry is no probability.
    #[error("row {row} has {entry}, which is not a probability")]
    Probability {
        /// Which.
        row: usize,
        /// What it has.
        entry: f64,
    },
    /// A row's sum is not 1.
    #[error("row {row} sums to {sum}, not to 1")]
    Sum {
        /// Which.
        row: usize,
        /// Its sum.
        sum: f64,
    },
    /// A state is not reached from every other one.
    #[error("state {0} is not reached from state 0, or state 0 not from it")]
    Reducible(usize),
}

impl Source {
    /// The source of these rates (arrivals per bin) and rows of the transition matrix. The rows are
    /// scaled so that their sums are 1 within rounding.
    ///
    /// # Errors
    /// Rates that are none, rows that are no distributions, a chain that is not irreducible.
    pub fn new(rates: Vec<f64>, rows: &[Vec<f64>]) -> Result<Self, SourceError> {
        let states = rates.len();
        if !(1..=MAX_STATES).contains(&states) {
            return Err(SourceError::States(states));
        }
        let is_rate = |rate: f64| (0.0..=MAX_RATE).contains(&rate);
        if let Some((state, &rate)) = rates.iter().enumerate().find(|(_, rate)| !is_rate(**rate)) {
            return Err(SourceError::Rate { state, rate });
        }
        if rows.len() != states {
            return Err(SourceError::Rows {
                rows: rows.len(),
                states,
            });
        }
        let mut transitions = Vec::with_capacity(states * states);
        for (row, entries) in rows.iter().enumerate() {
            if entries.len() != states {
                return Err(SourceError::Entries {
                    row,
                    entries: entries.len(),
                    states,
                });
            }
            let is_probability = |entry: f64| (0.0..=1.0 + ROW_TOLERANCE).contains(&entry);
            if let Some(&entry) = entries.iter().find(|entry| !is_probability(**entry)) {
                return Err(SourceError::Probability { row, entry });
            }
            let sum: f64 = entries.iter().sum();
            if (sum - 1.0).abs() > ROW_TOLERANCE {
                return Err(SourceError::Sum { row, sum });
            }
            // A row that was scaled before stays as it is, digit by digit.
            let by = if (sum - 1.0).abs() > 1e-12 { sum } else { 1.0 };
            transitions.extend(entries.iter().map(|entry| entry / by));
        }
        let rows: Vec<&[f64]> = transitions.chunks_exact(states).collect();
        if let Some(state) = unreached(&rows) {
            return Err(SourceError::Reducible(state));
        }
        let stationary = stationary(&rows);
        Ok(Self {
            rates,
            transitions,
            stationary,
        })
    }

    /// A two-state source: rate 0 with probability `low`, else `high`; from bin to bin the
    /// correlation falls by the factor `persistence`, its second eigenvalue.
    ///
    /// # Errors
    /// As [`new`](Self::new).
    pub fn two_state(low: f64, high: f64, persistence: f64) -> Result<Self, SourceError> {
        let rise = (1.0 - low) * (1.0 - persistence);
        let fall = low * (1.0 - persistence);
        let rows = [vec![1.0 - rise, rise], vec![fall, 1.0 - fall]];
        Self::new(vec![0.0, high], &rows)
    }

    /// A source without memory: in each bin a rate of `rates` is drawn with its weight. All rows of
    /// its matrix are the same.
    ///
    /// # Errors
    /// As [`new`](Self::new).
    pub fn memoryless(rates: Vec<f64>, weights: &[f64]) -> Result<Self, SourceError> {
        let rows = vec![weights.to_vec(); rates.len()];
        Self::new(rates, &rows)
    }

    /// Two independent sources as one: Kronecker sum of the rates, Kronecker product of the
    /// matrices (Eq. 7). The caller bounds the size.
    pub(crate) fn kronecker(&self, other: &Self) -> Self {
        let mut transitions = Vec::with_capacity(self.transitions.len() * other.transitions.len());
        for row in self.rows() {
            for other_row in other.rows() {
                for a in row {
                    transitions.extend(other_row.iter().map(|b| a * b));
                }
            }
        }
        Self {
            rates: combine(&self.rates, &other.rates, |a, b| a + b),
            transitions,
            stationary: combine(&self.stationary, &other.stationary, |a, b| a * b),
        }
    }

    /// Number of states; at least 1.
    #[must_use]
    pub const fn states(&self) -> usize {
        self.rates.len()
    }

    /// Arrivals per bin in each state.
    #[must_use]
    pub fn rates(&self) -> &[f64] {
        &self.rates
    }

    /// The rows of the transition matrix.
    pub fn rows(&self) -> impl Iterator<Item = &[f64]> + Clone {
        self.transitions.chunks_exact(self.rates.len())
    }

    /// Probability of each state in the long run.
    #[must_use]
    pub fn stationary(&self) -> &[f64] {
        &self.stationary
    }

    /// Arrivals per bin.
    #[must_use]
    pub fn mean(&self) -> f64 {
        dot(&self.stationary, &self.rates)
    }

    /// Whether a bin's state says nothing of the next one's: all rows are the same.
    #[must_use]
    pub fn is_memoryless(&self) -> bool {
        let first = self.rows().next().unwrap_or_default();
        self.rows().all(|row| row == first)
    }

    /// Autocovariance of the rate at lags 0 to `lags`. That of the counts has the mean more at lag
    /// 0, and is the same elsewhere.
    #[must_use]
    pub fn autocovariance(&self, lags: usize) -> Vec<f64> {
        let mean = self.mean();
        // From the mean, so that nothing cancels.
        let mut ahead: Vec<f64> = self.rates.iter().map(|rate| rate - mean).collect();
        let weighted: Vec<f64> = ahead
            .iter()
            .zip(&self.stationary)
            .map(|(a, p)| a * p)
            .collect();
        let mut result = Vec::with_capacity(lags + 1);
        result.push(dot(&weighted, &ahead));
        if self.is_memoryless() {
            result.resize(lags + 1, 0.0);
            return result;
        }
        let mut next = vec![0.0; ahead.len()];
        for _ in 0..lags {
            for (next, row) in next.iter_mut().zip(self.rows()) {
                *next = dot(row, &ahead);
            }
            std::mem::swap(&mut ahead, &mut next);
            result.push(dot(&weighted, &ahead));
        }
        result
    }

    /// The same source with all rates multiplied; at most [`MAX_RATE`].
    #[must_use]
    pub(crate) fn scaled(&self, factor: f64) -> Self {
        let rates = self.rates.iter().map(|r| (r * factor).min(MAX_RATE));
        Self {
            rates: rates.collect(),
            transitions: self.transitions.clone(),
            stationary: self.stationary.clone(),
        }
    }
}

fn combine(a: &[f64], b: &[f64], with: impl Fn(f64, f64) -> f64 + Copy) -> Vec<f64> {
    a.iter()
        .flat_map(|&a| b.iter().map(move |&b| with(a, b)))
        .collect()
}

/// A state that state 0 does not reach, or that does not reach state 0.
fn unreached(rows: &[&[f64]]) -> Option<usize> {
    let states = rows.len();
    let entry = |from: usize, to: usize| rows.get(from).and_then(|row| row.get(to));
    let moves = |from, to| entry(from, to).is_some_and(|p| *p > 0.0);
    let missing = |moves: &dyn Fn(usize, usize) -> bool| {
        let mut is_reached = vec![false; states];
        let mut queue = VecDeque::from([0]);
        if let Some(first) = is_reached.first_mut() {
            *first = true;
        }
        while let Some(from) = queue.pop_front() {
            for (to, is_reached) in is_reached.iter_mut().enumerate() {
                if !*is_reached && moves(from, to) {
                    *is_reached = true;
                    queue.push_back(to);
                }
            }
        }
        is_reached.iter().position(|is_reached| !is_reached)
    };
    missing(&moves).or_else(|| missing(&|from, to| moves(to, from)))
}

/// The stationary distribution of an irreducible chain, by the elimination of Grassmann, Taksar and
/// Heyman (1985), which subtracts nothing.
fn stationary(rows: &[&[f64]]) -> Vec<f64> {
    let states = rows.len();
    let mut rows: Vec<Vec<f64>> = rows.iter().map(|row| row.to_vec()).collect();
    for k in (1..states).rev() {
        let (before, from_k) = rows.split_at_mut(k);
        let Some((row_k, _)) = from_k.split_first() else {
            continue;
        };
        let leaves: f64 = row_k.iter().take(k).sum();
        for row in before {
            let Some(into_k) = row.get_mut(k) else {
                continue;
            };
            *into_k /= leaves;
            let into_k = *into_k;
            for (entry, through) in row.iter_mut().zip(row_k.iter()).take(k) {
                *entry += into_k * through;
            }
        }
    }
    let mut result = vec![1.0; states];
    for k in 1..states {
        let sum = result.iter().zip(&rows).take(k);
        let sum: f64 = sum.map(|(p, row)| p * row.get(k).unwrap_or(&0.0)).sum();
        if let Some(p) = result.get_mut(k) {
            *p = sum;
        }
    }
    let total: f64 = result.iter().sum();
    if total.is_finite() && total > 0.0 {
        result.iter_mut().for_each(|p| *p /= total);
    } else {
        // Probabilities so small that they have left the range of numbers.
        result.fill(1.0 / number(states));
    }
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    fn near(a: &[f64], b: &[f64], tolerance: f64) {
        assert_eq!(a.len(), b.len());
        for (a, b) in a.iter().zip(b) {
            assert!((a - b).abs() <= tolerance, "{a} and {b}");
        }
    }

    #[test]
    fn a_two_state_source_has_one_exponential() {
        let source = Source::two_state(0.7, 5.0, 0.9).unwrap();
        near(source.stationary(), &[0.7, 0.3], 1e-15);
        assert!((source.mean() - 1.5).abs() < 1e-14);
        let expected: Vec<f64> = (0..=50)
            .map(|k| 0.7 * 0.3 * 25.0 * 0.9_f64.powi(k))
            .collect();
        near(&source.autocovariance(50), &expected, 1e-13);
    }

    #[test]
    fn the_stationary_distribution_stays() {
        let rows = [
            vec![0.5, 0.5, 0.0, 0.0],
            vec![0.0, 0.1, 0.9, 0.0],
            vec![0.2, 0.0, 0.0, 0.8],
            vec![1e-9, 0.0, 0.0, 1.0 - 1e-9],
        ];
        let source = Source::new(vec![1.0, 2.0, 3.0, 4.0], &rows).unwrap();
        let p = source.stationary();
        let mut next = vec![0.0; 4];
        for (p, row) in p.iter().zip(source.rows()) {
            for (next, entry) in next.iter_mut().zip(row) {
                *next += p * entry;
            }
        }
        near(p, &next, 1e-15);
        assert!((p.iter().sum::<f64>() - 1.0).abs() < 1e-15);
    }

    #[test]
    fn without_memory_there_is_no_autocovariance() {
        let source = Source::memoryless(vec![1.0, 4.0], &[0.25, 0.75]).unwrap();
        assert!(source.is_memoryless());
        near(&source.autocovariance(2), &[27.0 / 16.0, 0.0, 0.0], 1e-15);
        assert!(!Source::two_state(0.5, 1.0, 0.1).unwrap().is_memoryless());
    }

    #[test]
    fn what_is_no_source_is_refused() {
        let row = |a: f64, b: f64| vec![a, b];
        let rates = || vec![1.0, 2.0];
        let of = |rows: &[Vec<f64>]| Source::new(rates(), rows).unwrap_err();
        assert_eq!(
            Source::new(Vec::new(), &[]).unwrap_err(),
            SourceError::States(0)
        );
        assert_eq!(
            Source::new(vec![1.0, -1.0], &[]).unwrap_err(),
            SourceError::Rate {
                state: 1,
                rate: -1.0
            }
        );
        assert!(Source::new(vec![f64::NAN], &[vec![1.0]]).is_err());
        assert!(Source::new(vec![2e9], &[vec![1.0]]).is_err());
        assert_eq!(
            of(&[row(0.5, 0.5)]),
            SourceError::Rows { rows: 1, states: 2 }
        );
        assert!(matches!(
            of(&[row(0.5, 0.5), vec![1.0]]),
            SourceError::Entries { row: 1, .. }
        ));
        assert!(matches!(
            of(&[row(0.5, 0.5), row(1.5, -0.5)]),
            SourceError::Probability { row: 1, .. }
        ));
        assert!(matches!(
            of(&[row(f64::NAN, 0.5), row(0.5, 0.5)]),
            SourceError::Probability { row: 0, .. }
        ));
        assert!(matches!(
            of(&[row(0.5, 0.4), row(0.5, 0.5)]),
            SourceError::Sum { row: 0, .. }
        ));
        // Once in state 1, always there.
        assert_eq!(
            of(&[row(0.5, 0.5), row(0.0, 1.0)]),
            SourceError::Reducible(1)
        );
        assert_eq!(
            of(&[row(1.0, 0.0), row(0.5, 0.5)]),
            SourceError::Reducible(1)
        );
    }
}
