//! What is fitted: the counts, or what is left of them beside a trend.

use super::{FitError, FitOptions, number};
use crate::autocovariance::{default_lags, lagged_products};
use crate::check::of_counts;
use crate::counts::Counts;
use crate::marginal::{self, Observation};
use crate::number::to_index;
use crate::profile::Profile;

/// Lags that are chosen at most.
const MOST_CHOSEN: usize = 10_000;

/// The moments of a series and its histogram.
#[derive(Debug)]
pub(super) struct Series {
    pub(super) bins: usize,
    pub(super) mean: f64,
    /// Autocovariance at lag 0.
    pub(super) variance: f64,
    /// Autocovariance from lag 1 on.
    pub(super) lags: Vec<f64>,
    /// The variance without what Poisson arrivals add to it.
    pub(super) budget: f64,
    pub(super) observations: Vec<Observation>,
    pub(super) profile: Option<Profile>,
}

impl Series {
    pub(super) fn new(counts: &Counts, options: &FitOptions) -> Result<Self, FitError> {
        let bins = counts.len();
        let reach = options.lags.unwrap_or_else(|| (bins / 10).min(MOST_CHOSEN));
        match options.profile_s {
            None => Ok(Self::plain(counts, reach, options.lags.is_some())),
            Some(window) => {
                let window_bins = to_index((window / counts.bin_s()).round()).max(1);
                let profile = Profile::moving_average(counts.values(), window_bins)
                    .ok_or(FitError::Window(window))?;
                Ok(Self::beside(counts, profile, reach, options.lags.is_some()))
            }
        }
    }

    fn plain(counts: &Counts, reach: usize, is_asked: bool) -> Self {
        let all = of_counts(counts, reach);
        let mean = counts.mean();
        let variance = all.first().copied().unwrap_or(0.0);
        let lags = if is_asked { reach } else { default_lags(&all) };
        Self {
            bins: counts.len(),
            mean,
            variance,
            lags: all.into_iter().skip(1).take(lags).collect(),
            budget: variance - mean,
            observations: marginal::plain(counts),
            profile: None,
        }
    }

    /// Beside a trend. Where the rate in bin t is `factor[t] S[t]`, the counts' deviations from
    /// `mean factor[t]` have products of expectation `factor[t] factor[t + k] cov(S[t], S[t + k])`,
    /// and at lag 0 the mean more: the autocovariance of S is the sum of the ones over the sum of the
    /// others. Bins of small factor, which say little, so have little weight.
    fn beside(counts: &Counts, profile: Profile, reach: usize, is_asked: bool) -> Self {
        let bins = counts.len();
        let factors = profile.first(bins);
        let mean = counts.mean() * number(bins) / factors.iter().sum::<f64>();
        let values = counts.values().iter().zip(&factors);
        let deviations: Vec<f64> = values
            .map(|(count, factor)| f64::from(*count) - mean * factor)
            .collect();
        let products = lagged_products(&deviations, reach);
        let weights = lagged_products(&factors, reach);
        let ratio = |product: f64, weight: f64| {
            if weight > 0.0 { product / weight } else { 0.0 }
        };
        let pairs = products.iter().zip(&weights);
        let all: Vec<f64> = pairs.map(|(p, w)| ratio(*p, *w)).collect();
        let variance = all.first().copied().unwrap_or(0.0);
        let weight = weights.first().copied().unwrap_or(0.0);
        let lags = if is_asked { reach } else { default_lags(&all) };
        Self {
            bins,
            mean,
            variance,
            lags: all.into_iter().skip(1).take(lags).collect(),
            budget: variance - ratio(counts.mean() * number(bins), weight),
            observations: marginal::exposed(counts, &factors),
            profile: Some(profile),
        }
    }
}
