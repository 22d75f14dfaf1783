//! The autocovariance of a series.

use crate::number::{dot, number};
use rustfft::algorithm::Radix4;
use rustfft::num_complex::Complex;
use rustfft::{Fft as _, FftDirection};

/// Below this many products the sums are quicker than the transform.
const FEW_PRODUCTS: usize = 1 << 18;

/// The autocovariance of a series at lags 0 to `lags`, with 1/n at every lag (the biased estimator,
/// whose sequence is positive definite). Lags beyond the series have 0.
#[must_use]
pub fn autocovariance(series: &[f64], lags: usize) -> Vec<f64> {
    let n = number(series.len());
    let mean = series.iter().sum::<f64>() / n;
    let centred: Vec<f64> = series.iter().map(|x| x - mean).collect();
    let mut result = lagged_products(&centred, lags);
    result.iter_mut().for_each(|c| *c /= n);
    result
}

/// `sum x[t] x[t + k]` for k from 0 to `lags`.
pub(crate) fn lagged_products(series: &[f64], lags: usize) -> Vec<f64> {
    if series.len().saturating_mul(lags + 1) > FEW_PRODUCTS {
        by_transform(series, lags)
    } else {
        by_sums(series, lags)
    }
}

fn by_sums(series: &[f64], lags: usize) -> Vec<f64> {
    let at = |lag: usize| {
        let late = series.get(lag..).unwrap_or_default();
        dot(series.get(..late.len()).unwrap_or_default(), late)
    };
    (0..=lags).map(at).collect()
}

/// By the theorem of Wiener and Khinchin, padded with zeros so that nothing wraps around.
fn by_transform(series: &[f64], lags: usize) -> Vec<f64> {
    let reach = lags.min(series.len());
    let size = (series.len() + reach + 1).next_power_of_two();
    // Sizes are powers of two: without a planner, whose every other algorithm would be compiled too.
    let forward = Radix4::new(size, FftDirection::Forward);
    let inverse = Radix4::new(size, FftDirection::Inverse);
    let mut values = vec![Complex::new(0.0, 0.0); size];
    for (to, from) in values.iter_mut().zip(series) {
        to.re = *from;
    }
    forward.process(&mut values);
    for value in &mut values {
        *value = Complex::new(value.norm_sqr(), 0.0);
    }
    inverse.process(&mut values);
    let scale = number(size);
    let mut result: Vec<f64> = values
        .iter()
        .take(reach + 1)
        .map(|c| c.re / scale)
        .collect();
    result.resize(lags + 1, 0.0);
    result
}

/// How many lags are fitted where nobody says: a tenth of the series, or less where the
/// autocovariance (lag 0 first) stays at or below 0 for ten lags in a row; at least `LEAST`.
pub(crate) fn default_lags(autocovariance: &[f64]) -> usize {
    const LEAST: usize = 10;
    let after_zero = autocovariance.get(1..).unwrap_or_default();
    let falls = after_zero
        .windows(LEAST)
        .position(|run| run.iter().all(|c| *c <= 0.0));
    falls.unwrap_or(after_zero.len()).max(LEAST)
}

/// Whether a series of `bins` with this autocovariance (lag 0 first) could be without memory: no sum
/// of the correlations of the first 1, 2, 4, ... lags is beyond what chance gives in one series of a
/// hundred. Sums, because a weak slow correlation is in no single lag.
pub(crate) fn could_be_chance(autocovariance: &[f64], bins: usize) -> bool {
    let (variance, rest) = autocovariance.split_first().unwrap_or((&0.0, &[]));
    // Each sum is one test.
    let tests = number(rest.len().max(1)).log2().floor() + 1.0;
    let limit = (2.0 * (100.0 * tests).ln()).sqrt();
    let mut sum = 0.0;
    rest.iter().enumerate().all(|(at, c)| {
        sum += c / variance;
        let terms = at + 1;
        !terms.is_power_of_two() || sum * (number(bins) / number(terms)).sqrt() <= limit
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Random;

    fn noise(n: usize, seed: u64) -> Vec<f64> {
        let mut random = Random::new(seed);
        (0..n).map(|_| random.exponential()).collect()
    }

    #[test]
    fn the_transform_gives_the_sums() {
        for (n, lags) in [(1000, 300), (777, 776), (50, 80), (4096, 10)] {
            let series = noise(n, 3);
            let sums = by_sums(&series, lags);
            let transform = by_transform(&series, lags);
            assert_eq!(sums.len(), lags + 1);
            assert_eq!(transform.len(), lags + 1);
            for (a, b) in sums.iter().zip(&transform) {
                assert!((a - b).abs() < 1e-9 * n as f64, "{a} {b}");
            }
        }
    }

    #[test]
    fn of_a_short_series() {
        let c = autocovariance(&[1.0, 2.0, 3.0, 6.0], 5);
        // Deviations -2, -1, 0, 3.
        let expected = [3.5, 0.5, -0.75, -1.5, 0.0, 0.0];
        for (c, expected) in c.iter().zip(expected) {
            assert!((c - expected).abs() < 1e-14);
        }
        assert!(autocovariance(&[], 2).iter().all(|c| !c.is_normal()));
    }

    #[test]
    fn lags_end_where_the_autocovariance_does() {
        let mut c = vec![1.0; 100];
        assert_eq!(default_lags(&c), 99);
        c[40..50].fill(-0.1);
        assert_eq!(default_lags(&c), 39);
        c[45] = 0.1;
        assert_eq!(default_lags(&c), 99);
        c.fill(-1.0);
        assert_eq!(default_lags(&c), 10);
        assert_eq!(default_lags(&[1.0]), 10);
    }

    #[test]
    fn chance_is_told_from_memory() {
        let n = 5000;
        let mut by_chance = 0;
        for seed in 0..100 {
            let white = noise(n, seed);
            by_chance += u32::from(could_be_chance(&autocovariance(&white, 100), n));
            // A weak slow component: 3 % of the variance, 300 bins long.
            let mut level = 0.0;
            let mut random = Random::new(seed + 1000);
            let slow: Vec<f64> = white
                .iter()
                .map(|x| {
                    level = level * (1.0 - 1.0 / 300.0) + (random.uniform() - 0.5) * 0.1;
                    x + level
                })
                .collect();
            assert!(!could_be_chance(&autocovariance(&slow, 100), n), "{seed}");
        }
        assert!(by_chance >= 95, "{by_chance}");
    }
}
