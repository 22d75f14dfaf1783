//! What a fitted model is compared with: simpler processes for the same counts.
//!
//! A hidden Markov model with Poisson counts, by the algorithm of Baum and Welch.

use crate::counts::Counts;
use crate::model::{Model, NotPositive};
use crate::number::number;
use crate::poisson::ln_probability;
use crate::provenance::Provenance;
use crate::source::{Source, SourceError};
use crate::superposition::{Superposition, SuperpositionError};

/// Why there is no baseline.
#[derive(Debug, Clone, Copy, PartialEq, thiserror::Error)]
pub enum BaselineError {
    /// What was found is no source.
    #[error(transparent)]
    Source(#[from] SourceError),
    /// Too many states.
    #[error(transparent)]
    States(#[from] SuperpositionError),
    /// The bins have no length.
    #[error(transparent)]
    Bin(#[from] NotPositive),
    /// A series that is too long, or more states than it has different counts.
    #[error("{bins} bins with {states} states are too many")]
    Size {
        /// Bins of the series.
        bins: usize,
        /// States that were asked for.
        states: usize,
    },
}

/// The Poisson process of the counts' mean: one state.
///
/// # Errors
/// A mean that is too large for a rate.
pub fn poisson(counts: &Counts) -> Result<Model, BaselineError> {
    of(counts, Source::memoryless(vec![counts.mean()], &[1.0])?)
}

fn of(counts: &Counts, source: Source) -> Result<Model, BaselineError> {
    let provenance = Provenance {
        bins: counts.len() as u64,
        mean: counts.mean(),
        ..Provenance::default()
    };
    let superposition = Superposition::new(vec![source])?;
    Ok(Model::new(counts.bin_s(), superposition, None, provenance)?)
}

/// Most bins times states: what the forward pass keeps.
const MOST_CELLS: usize = 1 << 24;
/// Least probability of a move, so that no state is cut off.
const LEAST_MOVE: f64 = 1e-12;

/// How it is fitted.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct HmmOptions {
    /// Number of states.
    pub states: usize,
    /// Most iterations.
    pub iterations: u32,
    /// It ends where an iteration raises the logarithm of the likelihood by less.
    pub tolerance: f64,
}

impl Default for HmmOptions {
    fn default() -> Self {
        Self {
            states: 8,
            iterations: 200,
            tolerance: 1e-2,
        }
    }
}

/// The hidden Markov model of largest likelihood that is reached from rates at equal shares of the
/// counts. What it has in the long run need not be what was counted: it is fitted to the steps from
/// bin to bin.
///
/// # Errors
/// No states, too many, a series that is too long.
pub fn hidden_markov(counts: &Counts, options: HmmOptions) -> Result<Model, BaselineError> {
    let (bins, states) = (counts.len(), options.states);
    if states == 0 || states > 64 || bins.saturating_mul(states) > MOST_CELLS {
        return Err(BaselineError::Size { bins, states });
    }
    let mut guess = Guess::start(counts, states);
    let mut before = f64::NEG_INFINITY;
    for _ in 0..options.iterations {
        let (next, log_likelihood) = guess.improved(counts);
        if !log_likelihood.is_finite() {
            break;
        }
        let gain = log_likelihood - before;
        before = log_likelihood;
        guess = next;
        if gain < options.tolerance {
            break;
        }
    }
    of(counts, Source::new(guess.rates, &guess.rows)?)
}

#[derive(Debug, Clone)]
struct Guess {
    rates: Vec<f64>,
    rows: Vec<Vec<f64>>,
    first: Vec<f64>,
}

impl Guess {
    /// Rates at the middles of equal shares of the sorted counts; states that mostly stay.
    fn start(counts: &Counts, states: usize) -> Self {
        let mut sorted = counts.values().to_vec();
        sorted.sort_unstable();
        let size = sorted.len().div_ceil(states).max(1);
        let mut rates: Vec<f64> = sorted
            .chunks(size)
            .map(|part| part.iter().map(|c| f64::from(*c)).sum::<f64>() / number(part.len()))
            .collect();
        let top = rates.last().copied().unwrap_or(0.0);
        rates.resize(states, top);
        // Two states of one rate would stay the same for ever.
        for (at, rate) in rates.iter_mut().enumerate() {
            *rate += 1e-3 * number(at + 1);
        }
        let other = 0.1 / number((states - 1).max(1));
        let rows = (0..states).map(|from| {
            let row = (0..states).map(|to| if from == to { 0.9 } else { other });
            normal(row.collect())
        });
        Self {
            rows: rows.collect(),
            first: vec![1.0 / number(states); states],
            rates,
        }
    }

    /// One iteration; the likelihood is that of the guess that went in.
    fn improved(&self, counts: &Counts) -> (Self, f64) {
        let states = self.rates.len();
        let emissions = Emissions::new(counts, &self.rates);
        let (forward, scales, log_likelihood) = self.forward(counts, &emissions);
        let mut moves = vec![vec![0.0; states]; states];
        let mut shares = vec![0.0; states];
        let mut arrivals = vec![0.0; states];
        let mut ahead = vec![1.0; states];
        let mut weighted = vec![0.0; states];
        let mut first = vec![0.0; states];
        let mut bins = counts
            .values()
            .iter()
            .zip(forward.chunks_exact(states))
            .zip(&scales)
            .rev()
            .peekable();
        while let Some(((count, forward), scale)) = bins.next() {
            for (at, (alpha, beta)) in forward.iter().zip(&ahead).enumerate() {
                let posterior = alpha * beta;
                add(&mut shares, at, posterior);
                add(&mut arrivals, at, posterior * f64::from(*count));
                if let Some(first) = first.get_mut(at) {
                    *first = posterior;
                }
            }
            let Some(((_, earlier), _)) = bins.peek() else {
                break;
            };
            let row = emissions.of(*count);
            for ((weighted, beta), p) in weighted.iter_mut().zip(&ahead).zip(row) {
                *weighted = beta * p / scale;
            }
            let all = moves.iter_mut().zip(&self.rows).zip(earlier.iter());
            for (((moves, row), alpha), ahead) in all.zip(&mut ahead) {
                let mut sum = 0.0;
                for ((moves, p), weighted) in moves.iter_mut().zip(row).zip(&weighted) {
                    let step = p * weighted;
                    sum += step;
                    *moves += alpha * step;
                }
                *ahead = sum;
            }
        }
        let rates = arrivals.iter().zip(&shares).zip(&self.rates);
        let next = Self {
            rates: rates
                .map(|((a, s), rate)| if *s > 1e-9 { a / s } else { *rate })
                .collect(),
            rows: moves.into_iter().map(normal).collect(),
            first: normal(first),
        };
        (next, log_likelihood)
    }

    /// Scaled forward probabilities, bin by bin, their scales, and the logarithm of the likelihood.
    fn forward(&self, counts: &Counts, emissions: &Emissions) -> (Vec<f64>, Vec<f64>, f64) {
        let states = self.rates.len();
        let mut forward = Vec::with_capacity(counts.len() * states);
        let mut scales = Vec::with_capacity(counts.len());
        let mut log_likelihood = 0.0;
        let mut ahead = self.first.clone();
        for count in counts.values() {
            let mut here = ahead.clone();
            for (p, emission) in here.iter_mut().zip(emissions.of(*count)) {
                *p *= emission;
            }
            let scale = here.iter().sum::<f64>().max(1e-300);
            here.iter_mut().for_each(|p| *p /= scale);
            log_likelihood += scale.ln() + emissions.taken(*count);
            scales.push(scale);
            ahead.fill(0.0);
            for (p, row) in here.iter().zip(&self.rows) {
                for (ahead, step) in ahead.iter_mut().zip(row) {
                    *ahead += p * step;
                }
            }
            forward.extend(here);
        }
        (forward, scales, log_likelihood)
    }
}

fn add(values: &mut [f64], at: usize, value: f64) {
    if let Some(sum) = values.get_mut(at) {
        *sum += value;
    }
}

/// As probabilities, each at least [`LEAST_MOVE`].
fn normal(mut row: Vec<f64>) -> Vec<f64> {
    let sum: f64 = row.iter().sum();
    let scale = if sum > 0.0 { sum } else { 1.0 };
    row.iter_mut()
        .for_each(|p| *p = (*p / scale).max(LEAST_MOVE));
    let sum: f64 = row.iter().sum();
    row.iter_mut().for_each(|p| *p /= sum);
    row
}

/// The probabilities of each count that occurs in each state, scaled so that the largest is 1.
#[derive(Debug)]
struct Emissions {
    counts: Vec<u32>,
    states: usize,
    rows: Vec<f64>,
    taken: Vec<f64>,
}

impl Emissions {
    fn new(counts: &Counts, rates: &[f64]) -> Self {
        let mut result = Self {
            counts: counts
                .histogram()
                .into_iter()
                .map(|(count, _)| count)
                .collect(),
            states: rates.len(),
            rows: Vec::new(),
            taken: Vec::new(),
        };
        for count in &result.counts {
            let logs = rates.iter();
            let logs: Vec<f64> = logs
                .map(|rate| ln_probability(f64::from(*count), rate.max(1e-9)))
                .collect();
            let top = logs.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            result.rows.extend(logs.iter().map(|log| (log - top).exp()));
            result.taken.push(top);
        }
        result
    }

    fn of(&self, count: u32) -> &[f64] {
        let at = self.counts.binary_search(&count).unwrap_or(0);
        let begin = at * self.states;
        let row = self.rows.get(begin..begin + self.states);
        row.unwrap_or_default()
    }

    fn taken(&self, count: u32) -> f64 {
        let at = self.counts.binary_search(&count).unwrap_or(0);
        self.taken.get(at).copied().unwrap_or(0.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Provenance, Superposition, log_likelihood};

    #[test]
    fn poisson_has_the_mean_and_nothing_else() {
        let counts = Counts::new(10.0, vec![1, 2, 3, 6]).unwrap();
        let model = poisson(&counts).unwrap();
        assert_eq!(model.mean(), 3.0);
        assert_eq!(model.superposition().autocovariance(2), [3.0, 0.0, 0.0]);
    }

    fn known() -> Model {
        let rows = [
            vec![0.95, 0.05, 0.0],
            vec![0.02, 0.9, 0.08],
            vec![0.1, 0.0, 0.9],
        ];
        let source = Source::new(vec![3.0, 20.0, 60.0], &rows).unwrap();
        let superposition = Superposition::new(vec![source]).unwrap();
        Model::new(1.0, superposition, None, Provenance::default()).unwrap()
    }

    #[test]
    fn a_known_chain_is_found() {
        let counts = known().simulate(30_000, 1).unwrap();
        let options = HmmOptions {
            states: 3,
            ..HmmOptions::default()
        };
        let found = hidden_markov(&counts, options).unwrap();
        let [known, found] = [&known(), &found].map(|m| m.superposition().sources()[0].clone());
        for (a, b) in known.rates().iter().zip(found.rates()) {
            assert!((a / b - 1.0).abs() < 0.03, "{found:?}");
        }
        for (a, b) in known.rows().flatten().zip(found.rows().flatten()) {
            assert!((a - b).abs() < 0.015, "{found:?}");
        }
    }

    #[test]
    fn iterations_raise_the_likelihood() {
        let counts = known().simulate(3000, 2).unwrap();
        let of = |iterations| {
            let options = HmmOptions {
                states: 5,
                iterations,
                tolerance: 0.0,
            };
            log_likelihood(&hidden_markov(&counts, options).unwrap(), &counts)
        };
        let all = [0, 1, 3, 10, 40].map(of);
        assert!(all.windows(2).all(|pair| pair[0] < pair[1]), "{all:?}");
    }

    #[test]
    fn sizes_are_bounded_and_strange_series_end() {
        let counts = Counts::new(1.0, vec![7; 50]).unwrap();
        for states in [0, 65, usize::MAX] {
            let options = HmmOptions {
                states,
                ..HmmOptions::default()
            };
            assert!(hidden_markov(&counts, options).is_err());
        }
        let model = hidden_markov(&counts, HmmOptions::default()).unwrap();
        assert!((model.mean() - 7.0).abs() < 0.1);
        let jumps = Counts::new(1.0, [0, 4_000_000].repeat(50)).unwrap();
        let model = hidden_markov(&jumps, HmmOptions::default()).unwrap();
        assert!(model.mean().is_finite());
    }
}
