//! What a fit is asked for, and why it may not be had.

use crate::counts::Counts;

/// Fewest bins that are fitted.
pub const LEAST_BINS: usize = 100;
/// Fewest arrivals that are fitted: of fewer nothing can be said about how they depend on one another.
pub const LEAST_ARRIVALS: u64 = 100;
/// Most states of a fitted model.
pub const MAX_STATES: usize = 64;
/// Most two-state sources.
pub const MAX_SCALES: usize = 4;

/// How a model is fitted. What is `None` is chosen by the procedure.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct FitOptions {
    /// Lags of the autocovariance that is fitted. Chosen: a tenth of the bins (10,000 at most), or
    /// less where the autocovariance stays at or below 0 for ten lags.
    pub lags: Option<usize>,
    /// States of the whole chain, M 2^L. Chosen: L so that the inequality coefficient of the
    /// exponentials is below 1 %, three at most; M by the Bayesian information criterion, the fewest
    /// within 10 of the best.
    pub states: Option<usize>,
    /// Two-state sources, L.
    pub scales: Option<usize>,
    /// Fits a slow trend first, as the moving average over this many seconds, and the model to the
    /// rest: for logs with a daily trend.
    pub profile_s: Option<f64>,
    /// Name of what was counted, for the provenance.
    pub source: String,
    /// Date, for the provenance.
    pub date: String,
    /// Program and version, for the provenance.
    pub program: String,
}

/// Why there is no model.
#[derive(Debug, Clone, Copy, PartialEq, thiserror::Error)]
pub enum FitError {
    /// Fewer bins than [`LEAST_BINS`].
    #[error("{bins} bins: at least {LEAST_BINS} are needed")]
    TooShort {
        /// How many there are.
        bins: usize,
    },
    /// All bins have the same count.
    #[error("every bin has {count} arrivals: there is nothing to fit")]
    Constant {
        /// How many arrivals.
        count: u32,
    },
    /// Fewer arrivals than [`LEAST_ARRIVALS`].
    #[error("{arrivals} arrivals: at least {LEAST_ARRIVALS} are needed")]
    Few {
        /// How many there are.
        arrivals: u64,
    },
    /// More lags than half the bins, more than can be compared, or none.
    #[error("{lags} lags of {bins} bins: 1 to {most} are possible")]
    Lags {
        /// How many were asked for.
        lags: usize,
        /// Bins that there are.
        bins: usize,
        /// How many there can be.
        most: usize,
    },
    /// That many states cannot be had.
    #[error(
        "{states} states with {scales} two-state sources: M 2^L, at most {MAX_STATES}, is possible"
    )]
    States {
        /// How many were asked for.
        states: usize,
        /// Two-state sources that were asked for or found.
        scales: usize,
    },
    /// More two-state sources than [`MAX_SCALES`].
    #[error("{0} two-state sources: at most {MAX_SCALES} are possible")]
    Scales(usize),
    /// The window of the trend is none.
    #[error("a moving average over {0} s: it must be positive and shorter than the series")]
    Window(f64),
    /// The autocovariance is so large beside the mean that no rate could stay at or above 0.
    #[error(
        "the autocovariance is too large for the mean of {mean}: no rates at or above 0 have it"
    )]
    Infeasible {
        /// Arrivals per bin.
        mean: f64,
    },
    /// The numbers left the range in which they can be reckoned with.
    #[error("the fit left the range of numbers")]
    Range,
}

impl FitOptions {
    pub(super) fn check(&self, counts: &Counts) -> Result<(), FitError> {
        let bins = counts.len();
        if bins < LEAST_BINS {
            return Err(FitError::TooShort { bins });
        }
        if let Some((first, rest)) = counts.values().split_first()
            && rest.iter().all(|count| count == first)
        {
            return Err(FitError::Constant { count: *first });
        }
        let arrivals = counts.total();
        if arrivals < LEAST_ARRIVALS {
            return Err(FitError::Few { arrivals });
        }
        let most = (bins / 2).min(crate::check::MAX_LAGS);
        if let Some(lags) = self.lags
            && !(1..=most).contains(&lags)
        {
            return Err(FitError::Lags { lags, bins, most });
        }
        if let Some(scales) = self.scales
            && scales > MAX_SCALES
        {
            return Err(FitError::Scales(scales));
        }
        if let Some(states) = self.states {
            let scales = self.scales.unwrap_or(0);
            if states == 0 || states > MAX_STATES || states % (1 << scales) != 0 {
                return Err(FitError::States { states, scales });
            }
        }
        if let Some(window) = self.profile_s {
            let length = counts.bin_s() * crate::number::number(bins);
            if !(window > 0.0 && window < length) {
                return Err(FitError::Window(window));
            }
        }
        Ok(())
    }
}
