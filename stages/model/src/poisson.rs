//! The Poisson distribution: its probabilities and draws from it.

use crate::Random;
use std::f64::consts::PI;

/// Most draws that are rejected one after the other before the mean is given instead. Each is
/// rejected with a probability below 0.3, so that this never happens; the loop has an end all the
/// same.
const MAX_REJECTED: u32 = 1_000;
/// Above this the draws go by transformed rejection; it asks for at least 10.
const SMALL_RATE: f64 = 10.0;

/// ln(k!), to about 1e-12 of its value.
pub(crate) fn ln_factorial(k: f64) -> f64 {
    if k < 16.0 {
        let mut product = 1.0;
        let mut factor = 2.0;
        while factor <= k {
            product *= factor;
            factor += 1.0;
        }
        return product.ln();
    }
    // Stirling's series.
    let square = k * k;
    let tail = (1.0 / 12.0 - (1.0 / 360.0 - 1.0 / (1260.0 * square)) / square) / k;
    (k + 0.5) * k.ln() - k + 0.5 * (2.0 * PI).ln() + tail
}

/// ln of the probability of `k` arrivals at an expectation of `rate`.
pub(crate) fn ln_probability(k: f64, rate: f64) -> f64 {
    if rate > 0.0 {
        k * rate.ln() - rate - ln_factorial(k)
    } else if k > 0.0 {
        f64::NEG_INFINITY
    } else {
        0.0
    }
}

/// A draw, as a whole number; 0 for a rate that is not a positive number. Exact up to the rounding of
/// the logarithms (1e-9 at the largest rates): by inversion for small rates, for others by
/// transformed rejection with squeeze (PTRS, Hörmann 1993).
pub(crate) fn draw(rate: f64, random: &mut Random) -> f64 {
    if !(rate.is_finite() && rate > 0.0) {
        0.0
    } else if rate < SMALL_RATE {
        by_inversion(rate, random)
    } else {
        by_rejection(rate, random)
    }
}

fn by_inversion(rate: f64, random: &mut Random) -> f64 {
    let mut left = random.uniform();
    let mut probability = (-rate).exp();
    let mut k = 0.0;
    // At such rates more than 200 has a probability below 1e-180: only rounding leads there.
    while left >= probability && k < 200.0 {
        left -= probability;
        k += 1.0;
        probability *= rate / k;
    }
    k
}

fn by_rejection(rate: f64, random: &mut Random) -> f64 {
    let b = 0.931 + 2.53 * rate.sqrt();
    let a = -0.059 + 0.024_83 * b;
    let inverse_alpha = 1.1239 + 1.1328 / (b - 3.4);
    let squeeze = 0.9277 - 3.6224 / (b - 2.0);
    for _ in 0..MAX_REJECTED {
        let u = random.uniform() - 0.5;
        let v = random.uniform();
        let side = 0.5 - u.abs();
        let k = ((2.0 * a / side + b) * u + rate + 0.43).floor();
        if side >= 0.07 && v <= squeeze {
            return k;
        }
        if k < 0.0 || (side < 0.013 && v > side) {
            continue;
        }
        if (v * inverse_alpha / (a / (side * side) + b)).ln() <= ln_probability(k, rate) {
            return k;
        }
    }
    rate.round()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn factorials() {
        let mut exact = 0.0;
        for k in 1..200_u32 {
            let k = f64::from(k);
            exact += k.ln();
            let error = (ln_factorial(k) - exact).abs();
            assert!(error <= 1e-12 * exact.max(1.0), "{k}: {error}");
        }
        assert_eq!(ln_factorial(0.0), 0.0);
    }

    #[test]
    fn probabilities_sum_to_one() {
        for rate in [0.0, 1e-3, 0.7, 9.0, 400.0] {
            let sum: f64 = (0..2000_u32)
                .map(|k| ln_probability(f64::from(k), rate).exp())
                .sum();
            assert!((sum - 1.0).abs() < 1e-11, "{rate}: {sum}");
        }
    }

    /// Pearson's statistic of draws against the probabilities, over the counts that are expected at
    /// least 20 times.
    fn chi_square(rate: f64, draws: u32) -> (f64, f64) {
        let mut random = Random::new(11);
        let mut seen = vec![0.0; 4000];
        for _ in 0..draws {
            let k = draw(rate, &mut random);
            seen[crate::number::to_index(k)] += 1.0;
        }
        let (mut sum, mut classes) = (0.0, 0.0);
        for (k, seen) in (0_u32..).zip(&seen) {
            let expected = f64::from(draws) * ln_probability(f64::from(k), rate).exp();
            if expected >= 20.0 {
                sum += (seen - expected) * (seen - expected) / expected;
                classes += 1.0;
            }
        }
        (sum, classes)
    }

    #[test]
    fn draws_have_the_distribution() {
        for rate in [0.3, 4.0, 9.99, 10.0, 32.57, 150.0, 2000.0] {
            let (sum, classes) = chi_square(rate, 200_000);
            // Mean `classes`, variance twice that: five standard deviations.
            let limit = classes + 5.0 * f64::sqrt(2.0 * classes);
            assert!(sum < limit, "{rate}: {sum} of {classes} classes");
        }
    }

    #[test]
    fn large_rates_keep_mean_and_variance() {
        let mut random = Random::new(3);
        let rate = 1e8;
        let n = 20_000;
        let draws: Vec<f64> = (0..n).map(|_| draw(rate, &mut random) - rate).collect();
        let mean = draws.iter().sum::<f64>() / f64::from(n);
        let variance = draws.iter().map(|d| d * d).sum::<f64>() / f64::from(n);
        assert!(mean.abs() < 5.0 * (rate / f64::from(n)).sqrt(), "{mean}");
        assert!((variance / rate - 1.0).abs() < 0.05, "{variance}");
    }

    #[test]
    fn what_is_no_rate_draws_nothing() {
        let mut random = Random::new(1);
        for rate in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            assert_eq!(draw(rate, &mut random), 0.0);
        }
    }
}
