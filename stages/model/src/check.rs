//! A model against counts: mean, marginal distribution, autocovariance, likelihood.

use crate::Agreement;
use crate::autocovariance::{autocovariance, lagged_products};
use crate::counts::{Counts, CountsError};
use crate::likelihood::log_likelihood;
use crate::model::Model;
use crate::number::number;
use crate::poisson::ln_probability;

/// Most lags that are compared.
pub const MAX_LAGS: usize = 100_000;
/// Classes of the profile's factors for the marginal distribution.
const CLASSES: usize = 256;
/// The likelihood is left out where it would take more steps (bins times states times moves).
const MOST_STEPS: usize = 1 << 31;

/// What a comparison found. Lags are in bins.
#[derive(Debug, Clone, PartialEq)]
pub struct Check {
    /// Lags of the autocovariance that were compared, from 1 on.
    pub lags: usize,
    /// Bins that were counted.
    pub bins: usize,
    /// Arrivals per bin that were counted.
    pub mean_counted: f64,
    /// Arrivals per bin of the model.
    pub mean_model: f64,
    /// Difference of the means, in parts of the counted one; the sign is the model's.
    pub mean_error: f64,
    /// How far the mean of as many bins of the model spreads by chance: its standard deviation in
    /// arrivals per bin. What lies beyond the lags is taken as 0.
    pub sd_of_mean: f64,
    /// Total variation of the marginal distributions: half the sum of the differences, 0 to 1.
    pub total_variation: f64,
    /// The autocovariances at lags 1 to `lags`.
    pub autocovariance: Agreement,
    /// The same with lag 0, the variance.
    pub autocovariance_with_lag0: Agreement,
    /// The counted autocovariance from lag 0 on.
    pub counted: Vec<f64>,
    /// The model's from lag 0 on.
    pub model: Vec<f64>,
    /// Logarithm of the probability of the counts under the model (may be `-infinity`); `None` for a
    /// realised series, and where it would take too long.
    pub log_likelihood: Option<f64>,
}

/// Why nothing could be compared.
#[derive(Debug, Clone, Copy, PartialEq, thiserror::Error)]
pub enum CheckError {
    /// The lengths of the bins differ.
    #[error("the model has bins of {model_s} s, the counts of {counts_s} s")]
    BinLength {
        /// Of the model.
        model_s: f64,
        /// Of the counts.
        counts_s: f64,
    },
    /// No lags, more than the counts have, or more than [`MAX_LAGS`].
    #[error("{lags} lags of {bins} bins: 1 to {most} are possible")]
    Lags {
        /// How many were asked for.
        lags: usize,
        /// Bins that there are.
        bins: usize,
        /// How many there can be.
        most: usize,
    },
    /// Nothing was counted.
    #[error("no arrivals")]
    NoArrivals,
    /// The path could not be simulated.
    #[error(transparent)]
    Simulation(#[from] CountsError),
}

/// By the model's equations: what it has on average over all its paths of this length.
///
/// With a profile the autocovariance is that of the profile's trend and of the chance around it.
///
/// # Errors
/// Bins of another length, lags that cannot be, no arrivals.
pub fn analytic(model: &Model, counts: &Counts, lags: usize) -> Result<Check, CheckError> {
    suits(model, counts, lags)?;
    let bins = counts.len();
    let factors = model.profile().map(|profile| profile.first(bins));
    let (mean, of_model, sd_of_mean) = match &factors {
        None => {
            let all = model.superposition().autocovariance(lags);
            let n = number(bins);
            let pairs = all.iter().enumerate();
            let together = pairs.map(|(lag, c)| c * (1.0 - number(lag) / n));
            let sd = sd_of_mean(together, bins);
            (model.mean(), all, sd)
        }
        Some(factors) => with_trend(model, factors, lags),
    };
    let histogram = counts.histogram();
    let exposures = factors.map_or_else(|| vec![(1.0, 1.0)], |factors| classes(factors, CLASSES));
    let seen: Vec<u32> = histogram.iter().map(|(count, _)| *count).collect();
    let probabilities = probabilities(model, &exposures, &seen);
    // What the model has where nothing was seen counts in full.
    let covered: f64 = probabilities.iter().sum();
    let apart: f64 = histogram
        .iter()
        .zip(&probabilities)
        .map(|((_, share), p)| (share - p).abs())
        .sum();
    let moves: usize = model
        .superposition()
        .sources()
        .iter()
        .map(|s| s.states())
        .sum();
    let steps = bins
        .saturating_mul(model.superposition().states())
        .saturating_mul(moves + 10);
    let log_likelihood = (steps <= MOST_STEPS).then(|| log_likelihood(model, counts));
    Ok(finish(
        counts,
        lags,
        Found {
            mean,
            autocovariance: of_model,
            sd_of_mean,
            total_variation: (apart + (1.0 - covered).max(0.0)) / 2.0,
            log_likelihood,
        },
    ))
}

/// By a simulated path of the same length: what one run of the model has.
///
/// # Errors
/// As [`analytic`].
pub fn realised(
    model: &Model,
    counts: &Counts,
    lags: usize,
    seed: u64,
) -> Result<Check, CheckError> {
    suits(model, counts, lags)?;
    let path = model.simulate(counts.len(), seed)?;
    compare(counts, &path, lags)
}

/// Any two series: `other` in the place of the model.
///
/// # Errors
/// As [`analytic`].
pub fn compare(counts: &Counts, other: &Counts, lags: usize) -> Result<Check, CheckError> {
    possible(counts, lags)?;
    let of_other = of_counts(other, lags);
    let spread = sd_of_mean(of_other.iter().copied(), other.len());
    Ok(finish(
        counts,
        lags,
        Found {
            mean: other.mean(),
            autocovariance: of_other,
            sd_of_mean: spread,
            total_variation: apart(&counts.histogram(), &other.histogram()),
            log_likelihood: None,
        },
    ))
}

/// Probabilities of 0 to `max` arrivals in a bin, over the first `bins` bins of the profile: the
/// model's side of a histogram. At most 2^16 counts.
#[must_use]
pub fn marginal(model: &Model, bins: usize, max: u32) -> Vec<f64> {
    let exposures = match model.profile() {
        None => vec![(1.0, 1.0)],
        Some(profile) => classes(
            profile.first(bins.clamp(1, crate::counts::MAX_BINS)),
            CLASSES,
        ),
    };
    let counts: Vec<u32> = (0..=max.min(u32::from(u16::MAX))).collect();
    probabilities(model, &exposures, &counts)
}

/// The autocovariance that a run of `bins` bins has on average, at all lags: the sum of the covariances of all pairs
/// of bins at that lag, over the number of bins.
pub(crate) fn expected_autocovariance(model: &Model, bins: usize) -> Vec<f64> {
    let lags = bins.saturating_sub(1);
    let Some(profile) = model.profile() else {
        let mut all = model.superposition().autocovariance(lags);
        for (lag, c) in all.iter_mut().enumerate() {
            *c *= 1.0 - number(lag) / number(bins);
        }
        return all;
    };
    with_trend(model, &profile.first(bins), lags).1
}

/// What the side of the model has.
#[derive(Debug)]
struct Found {
    mean: f64,
    autocovariance: Vec<f64>,
    sd_of_mean: f64,
    total_variation: f64,
    log_likelihood: Option<f64>,
}

fn finish(counts: &Counts, lags: usize, found: Found) -> Check {
    let counted = of_counts(counts, lags);
    let mean_counted = counts.mean();
    let from = |values: &[f64], lag: usize| values.get(lag..).unwrap_or_default().to_vec();
    Check {
        lags,
        bins: counts.len(),
        mean_counted,
        mean_model: found.mean,
        mean_error: found.mean / mean_counted - 1.0,
        sd_of_mean: found.sd_of_mean,
        total_variation: found.total_variation,
        autocovariance: Agreement::of(&from(&counted, 1), &from(&found.autocovariance, 1)),
        autocovariance_with_lag0: Agreement::of(&counted, &found.autocovariance),
        counted,
        model: found.autocovariance,
        log_likelihood: found.log_likelihood,
    }
}

fn suits(model: &Model, counts: &Counts, lags: usize) -> Result<(), CheckError> {
    let (model_s, counts_s) = (model.bin_s(), counts.bin_s());
    if (model_s / counts_s - 1.0).abs() > 1e-9 {
        return Err(CheckError::BinLength { model_s, counts_s });
    }
    possible(counts, lags)
}

fn possible(counts: &Counts, lags: usize) -> Result<(), CheckError> {
    let bins = counts.len();
    let most = bins.saturating_sub(1).min(MAX_LAGS);
    if !(1..=most).contains(&lags) {
        return Err(CheckError::Lags { lags, bins, most });
    }
    if counts.total() == 0 {
        return Err(CheckError::NoArrivals);
    }
    Ok(())
}

/// The autocovariance of counts.
pub(crate) fn of_counts(counts: &Counts, lags: usize) -> Vec<f64> {
    let values: Vec<f64> = counts.values().iter().map(|c| f64::from(*c)).collect();
    autocovariance(&values, lags)
}

/// The standard deviation of the mean of `bins` counts, from the sums of the covariances of all pairs
/// at each lag over `bins`. What lies beyond the last lag counts as 0.
fn sd_of_mean(mut together: impl Iterator<Item = f64>, bins: usize) -> f64 {
    let variance = together.next().unwrap_or(0.0);
    let pairs: f64 = together.map(|c| 2.0 * c).sum();
    ((variance + pairs).max(0.0) / number(bins)).sqrt()
}

/// Mean, autocovariance, and standard deviation of the mean, of the counts of a model whose bins have
/// these factors. The autocovariance is that of the trend and of the chance around it, which is the
/// stronger the larger the factors of both bins are; the mean spreads by chance alone.
fn with_trend(model: &Model, factors: &[f64], lags: usize) -> (f64, Vec<f64>, f64) {
    let n = number(factors.len());
    let mean_factor = factors.iter().sum::<f64>() / n;
    let mean = model.mean() * mean_factor;
    let deviations: Vec<f64> = factors.iter().map(|f| f - mean_factor).collect();
    let trend = lagged_products(&deviations, lags);
    let both = lagged_products(factors, lags);
    let chance = model.superposition().autocovariance_of_rate(lags);
    let level = model.mean() * model.mean();
    let mut chance: Vec<f64> = chance.iter().zip(&both).map(|(c, b)| c * b / n).collect();
    if let Some(variance) = chance.first_mut() {
        *variance += mean;
    }
    let parts = trend.iter().zip(&chance);
    let all = parts.map(|(trend, chance)| level * trend / n + chance);
    let all = all.collect();
    let sd = sd_of_mean(chance.into_iter(), factors.len());
    (mean, all, sd)
}

/// Factors as few classes of nearly the same size: the mean of each and its share.
fn classes(mut factors: Vec<f64>, most: usize) -> Vec<(f64, f64)> {
    factors.sort_by(f64::total_cmp);
    let n = number(factors.len());
    let size = factors.len().div_ceil(most).max(1);
    let classes = factors.chunks(size);
    classes
        .map(|class| {
            let len = number(class.len());
            (class.iter().sum::<f64>() / len, len / n)
        })
        .collect()
}

/// The model's probabilities of the given counts, over exposures with their shares.
fn probabilities(model: &Model, exposures: &[(f64, f64)], counts: &[u32]) -> Vec<f64> {
    let law = model.superposition().rate_law();
    let law: Vec<(f64, f64)> = exposures
        .iter()
        .flat_map(|(exposure, share)| law.iter().map(move |(r, p)| (exposure * r, share * p)))
        .filter(|(_, p)| *p > 0.0)
        .collect();
    counts
        .iter()
        .map(|count| {
            let count = f64::from(*count);
            let terms = law.iter().map(|(r, p)| p * ln_probability(count, *r).exp());
            terms.sum()
        })
        .collect()
}

/// Total variation of two histograms, both in ascending order.
fn apart(a: &[(u32, f64)], b: &[(u32, f64)]) -> f64 {
    let share = |of: &[(u32, f64)], count: u32| {
        let found = of.binary_search_by_key(&count, |(count, _)| *count);
        found
            .ok()
            .and_then(|at| of.get(at))
            .map_or(0.0, |(_, share)| *share)
    };
    let of_a = a.iter().map(|(count, p)| (p - share(b, *count)).abs());
    let only_b = b
        .iter()
        .map(|(count, p)| if share(a, *count) > 0.0 { 0.0 } else { *p });
    (of_a.sum::<f64>() + only_b.sum::<f64>()) / 2.0
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Profile, Provenance, Source, Superposition};

    fn model(profile: Option<Profile>) -> Model {
        let sources = vec![
            Source::two_state(0.8, 20.0, 0.9).unwrap(),
            Source::memoryless(vec![6.0, 14.0], &[0.5, 0.5]).unwrap(),
        ];
        let superposition = Superposition::new(sources).unwrap();
        Model::new(1.0, superposition, profile, Provenance::default()).unwrap()
    }

    fn wave() -> Profile {
        let factors = (0..100).map(|i| 1.0 + 0.8 * (f64::from(i) * 0.0628).sin());
        Profile::new(20_000, 200, factors.collect()).unwrap()
    }

    #[test]
    fn a_long_path_of_a_model_is_near_it() {
        for profile in [None, Some(wave())] {
            let model = model(profile);
            let counts = model.simulate(200_000, 1).unwrap();
            let check = analytic(&model, &counts, 50).unwrap();
            assert!(check.mean_error.abs() < 0.01, "{}", check.mean_error);
            assert!(check.total_variation < 0.01, "{}", check.total_variation);
            assert!(check.autocovariance.ic < 0.05, "{:?}", check.autocovariance);
            assert!(check.autocovariance_with_lag0.ic < 0.05);
            assert!(check.log_likelihood.unwrap().is_finite());
            let other = realised(&model, &counts, 50, 2).unwrap();
            assert!(other.mean_error.abs() < 0.01);
            assert!(other.total_variation < 0.015);
            assert!(other.autocovariance.ic < 0.08);
            assert_eq!(other.log_likelihood, None);
        }
    }

    #[test]
    fn another_model_is_far() {
        let counts = model(None).simulate(20_000, 1).unwrap();
        let twice = model(None).scaled(2.0).unwrap();
        let check = analytic(&twice, &counts, 20).unwrap();
        assert!((check.mean_error - 1.0).abs() < 0.15);
        assert!(check.total_variation > 0.3);
        assert!(check.autocovariance.ic > 2.0);
        let near = analytic(&model(None), &counts, 20).unwrap();
        assert!(near.log_likelihood > check.log_likelihood);
    }

    #[test]
    fn the_mean_spreads_as_far_as_said() {
        let n = 2000;
        let short = Profile::new(2000, 500, vec![0.1, 1.0, 4.0, 1.0]).unwrap();
        for profile in [None, Some(short)] {
            let model = model(profile);
            let means: Vec<f64> = (0..400)
                .map(|seed| model.simulate(n, seed).unwrap().mean())
                .collect();
            let mean = means.iter().sum::<f64>() / 400.0;
            let variance = means.iter().map(|m| (m - mean) * (m - mean)).sum::<f64>() / 400.0;
            let counts = model.simulate(n, 1).unwrap();
            let said = analytic(&model, &counts, 200).unwrap().sd_of_mean;
            assert!((variance.sqrt() / said - 1.0).abs() < 0.15, "{said}");
        }
    }

    #[test]
    fn deviation_of_the_mean() {
        let of = |together: &[f64], bins| sd_of_mean(together.iter().copied(), bins);
        assert!((of(&[4.0, 0.0], 100) - 0.2).abs() < 1e-15);
        // Two bins that are always the same are one.
        assert!((of(&[4.0, 2.0], 2) - 2.0).abs() < 1e-15);
    }

    #[test]
    fn histograms_apart() {
        assert_eq!(apart(&[(1, 0.5), (2, 0.5)], &[(1, 0.5), (2, 0.5)]), 0.0);
        assert_eq!(apart(&[(1, 1.0)], &[(2, 1.0)]), 1.0);
        assert_eq!(apart(&[(1, 0.5), (3, 0.5)], &[(1, 1.0)]), 0.5);
    }

    #[test]
    fn the_marginal_has_the_profile_in_it() {
        let plain = marginal(&model(None), 1, 200);
        let direct = model(None).superposition().marginal(200);
        for (a, b) in plain.iter().zip(&direct) {
            assert!((a - b).abs() < 1e-12);
        }
        let mean = |p: &[f64]| -> f64 { (0..).zip(p).map(|(k, p)| f64::from(k) * p).sum() };
        let with = marginal(&model(Some(wave())), 20_000, 400);
        assert!((mean(&with) - model(None).mean()).abs() < 1e-3);
        assert_eq!(marginal(&model(None), 1, u32::MAX).len(), 65_536);
    }

    #[test]
    fn what_cannot_be_compared_is_refused() {
        let counts = model(None).simulate(100, 1).unwrap();
        for lags in [0, 100, usize::MAX] {
            assert!(matches!(
                analytic(&model(None), &counts, lags),
                Err(CheckError::Lags { .. })
            ));
        }
        let other = model(None).with_bin_s(2.0).unwrap();
        assert!(matches!(
            realised(&other, &counts, 10, 1),
            Err(CheckError::BinLength { .. })
        ));
        let none = Counts::new(1.0, vec![0; 100]).unwrap();
        assert_eq!(
            analytic(&model(None), &none, 10),
            Err(CheckError::NoArrivals)
        );
    }
}
