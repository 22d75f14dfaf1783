//! Series whose Hurst parameter is known: fractional Gaussian noise, and counts around it.
//!
//! For tests and benches: what an estimator says of it can be judged, and it is long-range dependent on all
//! scales, which a superposition of a few sources is not.

use rustfft::FftDirection;
use rustfft::num_complex::Complex;

use super::transform;
use crate::counts::{Counts, CountsError, MAX_BINS};
use crate::number::{number, to_count};
use crate::{Random, poisson};

/// Fractional Gaussian noise of mean 0 and variance 1, whose autocovariance is
/// `(|k+1|^2H - 2 |k|^2H + |k-1|^2H) / 2`; exact. `h` is kept within 0.01 to 0.99, the length within
/// [`MAX_BINS`].
///
/// Source: Davies, Harte 1987, *Tests for Hurst effect* (Biometrika 74): the covariances as a circle, whose
/// eigenvalues are their Fourier transform; for this noise none is negative (Craigmile 2003).
#[must_use]
pub fn fractional_gaussian(h: f64, bins: usize, random: &mut Random) -> Vec<f64> {
    let bins = bins.clamp(1, MAX_BINS);
    let half = bins.next_power_of_two();
    let size = 2 * half;
    let power = 2.0 * h.clamp(0.01, 0.99);
    let covariance = |lag: usize| {
        let k = number(lag);
        f64::midpoint((k + 1.0).powf(power), (k - 1.0).abs().powf(power)) - k.powf(power)
    };
    let circle = (0..size).map(|at| Complex::new(covariance(at.min(size - at)), 0.0));
    let mut values: Vec<Complex<f64>> = circle.collect();
    transform::of_power_of_two(&mut values, FftDirection::Forward);
    // Two independent series in one: its real part is used.
    for value in &mut values {
        let deviation = (value.re.max(0.0) / number(size)).sqrt();
        let (a, b) = normal(random);
        *value = Complex::new(a * deviation, b * deviation);
    }
    transform::of_power_of_two(&mut values, FftDirection::Forward);
    values.iter().take(bins).map(|value| value.re).collect()
}

/// Two independent standard normal numbers.
///
/// Source: Box, Muller 1958 (Annals of Mathematical Statistics 29).
fn normal(random: &mut Random) -> (f64, f64) {
    let length = (2.0 * random.exponential()).sqrt();
    let (sin, cos) = (std::f64::consts::TAU * random.uniform()).sin_cos();
    (length * cos, length * sin)
}

/// How counts are drawn.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Drawn {
    /// Hurst parameter of the rate.
    pub h: f64,
    /// Arrivals per bin.
    pub mean: f64,
    /// Standard deviation of the rate in parts of its mean.
    pub deviation: f64,
    /// How many bins.
    pub bins: usize,
    /// Length of a bin in seconds.
    pub bin_s: f64,
    /// Seed of the draws.
    pub seed: u64,
}

/// Counts that are Poisson around a rate whose logarithm is fractional Gaussian noise: like sessions, never negative
/// and with a long tail, and long-range dependent on all scales.
///
/// # Errors
/// A bin length that is not positive, no bins, too many.
pub fn counts(drawn: Drawn) -> Result<Counts, CountsError> {
    if drawn.bins > MAX_BINS {
        return Err(CountsError::TooManyBins(drawn.bins));
    }
    // Lognormal: exp(s g - s^2/2) has the mean 1 and the variance exp(s^2) - 1.
    let square = (drawn.deviation * drawn.deviation).ln_1p();
    let mut random = Random::new(drawn.seed);
    let noise = fractional_gaussian(drawn.h, drawn.bins, &mut random);
    let rates = noise
        .iter()
        .map(|g| drawn.mean * (square.sqrt() * g - square / 2.0).exp());
    let values = rates.map(|rate| to_count(poisson::draw(rate, &mut random)));
    let values: Vec<u32> = values.take(drawn.bins).collect();
    Counts::new(drawn.bin_s, values)
}
