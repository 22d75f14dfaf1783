//! Long-range dependence: the Hurst parameter of a series by three estimators.
//!
//! A series whose autocovariance falls like `k^(2H-2)` with 1/2 < H < 1 depends on itself over all time scales: its
//! sum is infinite, and the mean of m bins spreads like `m^(H-1)` instead of `m^(-1/2)`. H = 1/2 is a
//! series without, such as independent counts. Each estimator looks at another consequence:
//!
//! - [`variance_time`](mod@variance_time): how the variance falls when bins are joined;
//! - [`rescaled_range`]: how far sums stray from the mean;
//! - [`whittle`]: how the spectrum rises towards the frequency 0.
//!
//! A superposition of a few sources depends on itself over finitely many scales only: its H is 1/2 on all
//! scales beyond the slowest source. Over the scales of a log it may have that of the log, and that is what is
//! compared here: the model's side is computed from its autocovariance over exactly the same scales, as the
//! expectation for a run as long as the series.
//!
//! Source: Taqqu, Teverovsky, Willinger 1995, *Estimators for long-range dependence: an empirical study*
//! (Fractals 3), which also has the scales: from 10^0.7 = 5 bins to a thirty-second of the series.

mod line;
pub mod noise;
pub mod rescaled_range;
mod transform;
pub mod variance_time;
pub mod whittle;

use crate::check::expected_autocovariance;
use crate::counts::Counts;
use crate::model::Model;
use variance_time::VarianceTime;

/// Fewest bins that anything is said of: the scales then span a factor of three.
pub const LEAST_BINS: usize = 512;
/// Smallest scale in bins.
const FIRST: usize = 5;
/// The largest is this part of the series.
const LAST_PART: usize = 32;
/// Scales in a decade.
const A_DECADE: f64 = 10.0;

/// An estimate of H. Below 1/2: what is high is followed by what is low; from 1 on: not stationary.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Estimate {
    /// The Hurst parameter.
    pub h: f64,
    /// Its standard error. That of a regression is a lower bound: its points are of one series and depend on each
    /// other. For the equations of a model it says how straight its curve is.
    pub standard_error: f64,
}

/// What the three estimators say. An estimator says nothing of a series without variance.
#[derive(Debug, Clone, PartialEq)]
pub struct Dependence {
    /// Smallest and largest scale, bins.
    pub scales: (usize, usize),
    /// By the variance of joined bins, with its curve.
    pub variance_time: VarianceTime,
    /// By the rescaled range; it follows from no autocovariance and is absent for the equations of a model.
    pub rescaled_range: Option<Estimate>,
    /// By the spectrum.
    pub whittle: Option<Estimate>,
}

impl Dependence {
    /// Of counts; `None` where there are fewer than [`LEAST_BINS`].
    #[must_use]
    pub fn of_counts(counts: &Counts) -> Option<Self> {
        let values: Vec<f64> = counts.values().iter().map(|c| f64::from(*c)).collect();
        Self::of(&values)
    }

    /// Of any series; `None` where it is shorter than [`LEAST_BINS`].
    #[must_use]
    pub fn of(series: &[f64]) -> Option<Self> {
        let scales = scales(series.len())?;
        Some(Self {
            scales,
            variance_time: VarianceTime::of(series, scales),
            rescaled_range: rescaled_range::of(series),
            whittle: whittle::of(series),
        })
    }

    /// What the equations of a model expect of a run of `bins` bins, with its profile where it has one; `None`
    /// below [`LEAST_BINS`].
    #[must_use]
    pub fn of_model(model: &Model, bins: usize) -> Option<Self> {
        let scales = scales(bins)?;
        let expected = expected_autocovariance(model, bins);
        Some(Self {
            scales,
            variance_time: VarianceTime::expected(&expected, scales),
            rescaled_range: None,
            whittle: whittle::expected(&expected),
        })
    }
}

/// Smallest and largest scale of a series.
fn scales(bins: usize) -> Option<(usize, usize)> {
    (bins >= LEAST_BINS).then_some((FIRST, bins / LAST_PART))
}

/// Whole numbers from `first` to `last`, equally far from each other in logarithms.
fn levels(first: usize, last: usize) -> Vec<usize> {
    let mut levels = Vec::new();
    let step = 10_f64.powf(1.0 / A_DECADE);
    let mut exact = crate::number::number(first);
    loop {
        let level = crate::number::to_index(exact.round());
        if level > last {
            return levels;
        }
        if levels.last() != Some(&level) {
            levels.push(level);
        }
        exact *= step;
    }
}

#[cfg(test)]
mod tests;
