//! The slope of the spectrum near the frequency 0: the local Whittle estimator.
//!
//! Near 0 the spectrum is `G f^(1-2H)`. With the periodogram `I(j)` at the first m Fourier frequencies
//! `w(j) = 2 pi j / n`, H is where
//!
//! ```text
//! R(H) = ln( 1/m * sum of w(j)^(2H-1) I(j) ) - (2H - 1)/m * sum of ln w(j)
//! ```
//!
//! is least. The estimate is normal around H with the standard error `1 / (2 sqrt(m))`, whatever H is. m is n^0.65:
//! faster changes say nothing of the slow ones.
//!
//! Source: Robinson 1995, *Gaussian semiparametric estimation of long range dependence* (Annals of Statistics
//! 23). That it holds beyond H = 1: Velasco 1999 (Journal of Time Series Analysis 20).

use super::{Estimate, transform};
use crate::number::{number, to_index};

/// Between these H is searched.
const RANGE: (f64, f64) = (0.01, 1.49);
/// Steps of the search: each leaves 0.618 of the range.
const STEPS: u32 = 40;

/// How many frequencies are used of a series of `bins` bins.
#[must_use]
pub fn frequencies(bins: usize) -> usize {
    to_index(number(bins).powf(0.65))
}

/// Of a series.
pub(super) fn of(series: &[f64]) -> Option<Estimate> {
    let m = frequencies(series.len());
    let mean = series.iter().sum::<f64>() / number(series.len());
    let centred: Vec<f64> = series.iter().map(|x| x - mean).collect();
    let spectrum = transform::forward(&centred, m + 1);
    let periodogram = spectrum.iter().skip(1).map(|c| c.norm_sqr());
    estimate(&periodogram.collect::<Vec<f64>>(), series.len())
}

/// For the expected periodogram of a series: `together` are the sums of the covariances of all pairs at each lag,
/// over the number of bins.
pub(super) fn expected(together: &[f64]) -> Option<Estimate> {
    let m = frequencies(together.len());
    let spectrum = transform::forward(together, m + 1);
    // Both signs of the lag, and lag 0 once.
    let first = together.first().copied().unwrap_or(0.0);
    let periodogram = spectrum
        .iter()
        .skip(1)
        .map(|c| (2.0 * c.re - first).max(0.0));
    estimate(&periodogram.collect::<Vec<f64>>(), together.len())
}

fn estimate(periodogram: &[f64], bins: usize) -> Option<Estimate> {
    let m = number(periodogram.len());
    let sum: f64 = periodogram.iter().sum();
    if !(sum > 0.0 && sum.is_finite()) {
        return None;
    }
    let step = std::f64::consts::TAU / number(bins);
    let logs: Vec<f64> = (1..=periodogram.len())
        .map(|j| (step * number(j)).ln())
        .collect();
    let mean_log = logs.iter().sum::<f64>() / m;
    let goal = |h: f64| {
        let terms = periodogram.iter().zip(&logs);
        let sum: f64 = terms
            .map(|(i, log)| i * ((2.0 * h - 1.0) * (log - mean_log)).exp())
            .sum();
        sum.ln()
    };
    // A sum of exponentials of lines: its logarithm is convex, so the golden section finds the least.
    let golden = (5.0_f64.sqrt() - 1.0) / 2.0;
    let (mut low, mut high) = RANGE;
    for _ in 0..STEPS {
        let width = (high - low) * golden;
        let (left, right) = (high - width, low + width);
        if goal(left) < goal(right) {
            high = right;
        } else {
            low = left;
        }
    }
    Some(Estimate {
        h: f64::midpoint(low, high),
        standard_error: 0.5 / m.sqrt(),
    })
}
