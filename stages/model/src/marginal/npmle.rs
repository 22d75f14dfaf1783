//! The rate's law of largest likelihood on a grid.

use super::{Observation, Offset, tilt};
use crate::number::{dot, number};
use crate::poisson::ln_factorial;

/// Rates of the grid.
const POINTS: usize = 160;

/// The rates that the law may have.
#[derive(Debug, Clone)]
pub(crate) struct Grid {
    rates: Vec<f64>,
}

impl Grid {
    /// Rates from nearly 0 to the largest that was seen.
    pub(crate) fn over(observations: &[Observation]) -> Self {
        let rates = observations.iter().map(|o| o.count / o.exposure);
        let top = rates.fold(0.0, f64::max) + 1.0;
        let least = 1e-3;
        let step = (top - least) / number(POINTS - 1);
        Self {
            rates: (0..POINTS).map(|at| least + step * number(at)).collect(),
        }
    }

    /// The rates, ascending.
    pub(crate) fn rates(&self) -> &[f64] {
        &self.rates
    }
}

/// The likelihood of each observation at each rate, with the offsets mixed in.
///
/// Rows are scaled so that their largest entry is 1: the law of largest likelihood does not depend on
/// it, and nothing leaves the range of numbers however large the counts are.
#[derive(Debug, Clone)]
pub(crate) struct Kernel {
    rates: usize,
    /// Row by row, one for each observation.
    entries: Vec<f64>,
    weights: Vec<f64>,
    /// What the scaling took from the mean logarithm of the likelihood.
    taken: f64,
}

impl Kernel {
    /// Of observations at `rates`; an offset is a rate that is added and its probability.
    pub(crate) fn new(observations: &[Observation], rates: &[f64], offsets: &[Offset]) -> Self {
        // Rate, its logarithm, logarithm of the offset's probability; rate by rate.
        let sums: Vec<(f64, f64, f64)> = rates
            .iter()
            .flat_map(|rate| {
                offsets.iter().map(move |(offset, p)| {
                    let sum = (rate + offset).max(1e-9);
                    (sum, sum.ln(), p.max(1e-300).ln())
                })
            })
            .collect();
        let mut logs = vec![0.0; sums.len()];
        let mut entries = Vec::with_capacity(observations.len() * rates.len());
        let mut taken = 0.0;
        for o in observations {
            let mut top = f64::NEG_INFINITY;
            for (log, (rate, ln_rate, ln_p)) in logs.iter_mut().zip(&sums) {
                *log = o.count * ln_rate - o.exposure * rate + ln_p;
                top = top.max(*log);
            }
            let per_rate = logs.chunks_exact(offsets.len().max(1));
            entries.extend(per_rate.map(|logs| {
                let terms = logs.iter().map(|log| scaled_exp(log - top));
                terms.sum::<f64>()
            }));
            let constant = o.count * o.exposure.ln() - ln_factorial(o.count);
            taken += o.weight * (top + constant);
        }
        Self {
            rates: rates.len(),
            entries,
            weights: observations.iter().map(|o| o.weight).collect(),
            taken,
        }
    }

    /// The rows, each with the weight of its observation.
    pub(super) fn rows(&self) -> impl Iterator<Item = (&[f64], f64)> {
        let rows = self.entries.chunks_exact(self.rates.max(1));
        rows.zip(self.weights.iter().copied())
    }

    /// Steps of the EM iteration from equal weights: the weights of `rates`, which are those of the
    /// kernel, among the laws of mean `mean`. Each step but the first raises the likelihood, which
    /// has one maximum. Where no law on these rates has that mean, it is free.
    pub(crate) fn law(&self, rates: &[f64], mean: f64, steps: u32) -> Vec<f64> {
        let mut tilt = 0.0;
        let mut law = vec![1.0 / number(self.rates.max(1)); self.rates];
        let mut gains = vec![0.0; self.rates];
        for _ in 0..steps {
            gains.fill(0.0);
            for (row, weight) in self.rows() {
                let ratio = weight / dot(row, &law).max(1e-300);
                for (gain, entry) in gains.iter_mut().zip(row) {
                    *gain += ratio * entry;
                }
            }
            for (weight, gain) in law.iter_mut().zip(&gains) {
                *weight *= gain;
            }
            let sum: f64 = law.iter().sum();
            if !(sum.is_finite() && sum > 0.0) {
                break;
            }
            law.iter_mut().for_each(|weight| *weight /= sum);
            if let Some(tilted) = tilt::weights(&law, rates, mean, &mut tilt) {
                law = tilted;
            }
        }
        law
    }

    /// Mean logarithm of the likelihood of an observation under a law.
    pub(crate) fn log_likelihood(&self, law: &[f64]) -> f64 {
        let rows = self.rows();
        let sum: f64 = rows
            .map(|(row, weight)| weight * dot(row, law).max(1e-300).ln())
            .sum();
        sum + self.taken
    }
}

/// `exp`, and 0 for what is too small to matter beside 1.
#[inline]
pub(super) fn scaled_exp(log: f64) -> f64 {
    if log > -60.0 { log.exp() } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::poisson::ln_probability;

    fn mixture(law: &[(f64, f64)], offsets: &[Offset]) -> Vec<Observation> {
        let at = |k: f64| -> f64 {
            let all = law
                .iter()
                .flat_map(|(rate, w)| offsets.iter().map(move |(o, p)| (rate + o, w * p)));
            all.map(|(rate, p)| p * ln_probability(k, rate).exp()).sum()
        };
        (0..200_u32)
            .map(|k| Observation {
                count: f64::from(k),
                exposure: 1.0,
                weight: at(f64::from(k)),
            })
            .filter(|o| o.weight > 1e-12)
            .collect()
    }

    #[test]
    fn a_known_law_is_found_behind_known_offsets() {
        let offsets = [(0.0, 0.7), (40.0, 0.3)];
        let observations = mixture(&[(5.0, 0.25), (30.0, 0.75)], &offsets);
        let grid = Grid::over(&observations);
        let kernel = Kernel::new(&observations, grid.rates(), &offsets);
        let law = kernel.law(grid.rates(), 23.75, 3000);
        let near = |low: f64, high: f64| -> f64 {
            let of = grid.rates().iter().zip(&law);
            of.filter(|(rate, _)| (low..high).contains(*rate))
                .map(|(_, weight)| weight)
                .sum()
        };
        assert!((near(2.0, 9.0) - 0.25).abs() < 0.01, "{}", near(2.0, 9.0));
        assert!((near(26.0, 34.0) - 0.75).abs() < 0.02);
    }

    #[test]
    fn the_likelihood_is_that_of_the_counts() {
        let observations = mixture(&[(5.0, 1.0)], &[(0.0, 1.0)]);
        let kernel = Kernel::new(&observations, &[5.0], &[(0.0, 1.0)]);
        let entropy: f64 = observations.iter().map(|o| o.weight * o.weight.ln()).sum();
        assert!((kernel.log_likelihood(&[1.0]) - entropy).abs() < 1e-9);
    }

    #[test]
    fn steps_raise_the_likelihood() {
        let observations = mixture(&[(3.0, 0.5), (12.0, 0.5)], &[(0.0, 1.0)]);
        let grid = Grid::over(&observations);
        let kernel = Kernel::new(&observations, grid.rates(), &[(0.0, 1.0)]);
        for mean in [7.5, 6.0] {
            let of = |steps| {
                let law = kernel.law(grid.rates(), mean, steps);
                let found: f64 = law.iter().zip(grid.rates()).map(|(w, r)| w * r).sum();
                assert!((found - mean).abs() < 1e-6, "{found}");
                kernel.log_likelihood(&law)
            };
            let all = [1, 2, 5, 20, 100].map(of);
            assert!(all.windows(2).all(|pair| pair[0] < pair[1]), "{all:?}");
        }
    }

    #[test]
    fn large_counts_stay_in_range() {
        let observations = [1e6, 3e6].map(|count| Observation {
            count,
            exposure: 1.0,
            weight: 0.5,
        });
        let grid = Grid::over(&observations);
        let kernel = Kernel::new(&observations, grid.rates(), &[(0.0, 0.5), (1e5, 0.5)]);
        let law = kernel.law(grid.rates(), 1.5e6, 100);
        assert!((law.iter().sum::<f64>() - 1.0).abs() < 1e-9);
        assert!(kernel.log_likelihood(&law).is_finite());
    }
}
