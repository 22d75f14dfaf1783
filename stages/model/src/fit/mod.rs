//! Counts to a model, in the four steps of Salvador, Valadas and Pacheco (2003).
//!
//! 1. The autocovariance as few exponentials ([`exponentials`]).
//! 2. A two-state source for each of them (`sources`), whose shares of time are chosen so that
//!    the marginal distribution can be met best.
//! 3. The marginal distribution that is left: a source of M states without memory.
//! 4. All of them side by side; compared with the counts.
//!
//! The steps are the paper's, what is inside of them is not: their formulas are not in the paper at
//! hand, and `docs/model.md` says what stands in for them.

mod options;
mod series;
mod sources;

pub use options::{FitError, FitOptions, LEAST_ARRIVALS, LEAST_BINS, MAX_SCALES, MAX_STATES};

use crate::check::{self, Check};
use crate::counts::Counts;
use crate::exponentials::{self, Target, Term, Terms};
use crate::model::Model;
use crate::provenance::{Provenance, Statistics};
use crate::superposition::Superposition;
use crate::{Agreement, autocovariance::could_be_chance, number::number};
use series::Series;

/// Scales that are chosen at most where nobody says.
const CHOSEN_SCALES: usize = 3;

/// A model and how it came about.
#[derive(Debug, Clone, PartialEq)]
pub struct Fitted {
    /// The model, with its provenance.
    pub model: Model,
    /// How it compares with the counts, by its equations, over the lags that were fitted.
    pub check: Check,
    /// The two-state sources, by their time constants.
    pub scales: Vec<Scale>,
    /// How well the exponentials agree with the autocovariance that was fitted (step 1): what was
    /// counted, or what was left of it beside the trend.
    pub exponentials: Agreement,
    /// States of the source without memory (M), and the Bayesian information criterion of each number
    /// that was tried.
    pub atoms: Vec<(usize, f64)>,
}

/// A time scale of the model.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Scale {
    /// Time constant in bins.
    pub tau: f64,
    /// Its part of the variance.
    pub amplitude: f64,
    /// Probability of its low state.
    pub low: f64,
    /// How often its source is expected to change its state and come back in as many bins as were
    /// fitted. A path of that length with few visits may look nothing like the counts: below about
    /// 10, a profile is the better model.
    pub visits: f64,
}

/// Fits a model.
///
/// # Errors
/// [`FitError`]: too few bins or arrivals, constant counts, wishes that cannot be met, an autocovariance that no
/// such model has.
pub fn fit(counts: &Counts, options: &FitOptions) -> Result<Fitted, FitError> {
    options.check(counts)?;
    let series = Series::new(counts, options)?;
    let found = scales(&series, options)?;
    let most = options.states.map(|states| states >> found.len());
    let sources = sources::choose(&found, &series)?;
    let rest = sources::fit(&sources, &series, most)?;
    let scales = sources
        .iter()
        .map(|source| Scale {
            tau: source.term.tau,
            amplitude: source.term.amplitude,
            low: source.low,
            visits: source.visits(counts.len()),
        })
        .collect();
    let mut all = Vec::with_capacity(sources.len() + 1);
    for source in &sources {
        all.push(source.source().map_err(|_| FitError::Range)?);
    }
    all.push(rest.source);
    let superposition = Superposition::new(all).map_err(|_| FitError::Range)?;
    let exponentials = exponentials::agreement(&series.lags, &found);
    let lags = series.lags.len();
    let provenance = Provenance {
        source: options.source.clone(),
        bins: counts.len() as u64,
        mean: counts.mean(),
        lags: lags as u64,
        date: options.date.clone(),
        program: options.program.clone(),
        statistics: None,
    };
    let model = Model::new(
        counts.bin_s(),
        superposition,
        series.profile,
        provenance.clone(),
    )
    .map_err(|_| FitError::Range)?;
    let check = check::analytic(&model, counts, lags).map_err(|_| FitError::Range)?;
    let statistics = Some(statistics(&check));
    Ok(Fitted {
        model: model.with_provenance(Provenance {
            statistics,
            ..provenance
        }),
        check,
        scales,
        exponentials,
        atoms: rest.tried,
    })
}

/// Step 1, with the number of terms that was asked for or that suits the number of states.
fn scales(series: &Series, options: &FitOptions) -> Result<Vec<Term>, FitError> {
    let target = Target {
        lags: &series.lags,
        variance: series.variance,
        budget: series.budget,
    };
    // A number of states allows as many factors of 2 as it has.
    let factors = options
        .states
        .map(|states| states.trailing_zeros() as usize);
    let terms = match options.scales {
        Some(0) => return Ok(Vec::new()),
        Some(scales) => exponentials::approximate(target, Terms::Exactly(scales)),
        None => {
            let most = factors.unwrap_or(CHOSEN_SCALES).min(CHOSEN_SCALES);
            let mut all = vec![series.variance];
            all.extend_from_slice(&series.lags);
            if most == 0 || could_be_chance(&all, series.bins) {
                return Ok(Vec::new());
            }
            exponentials::approximate(target, Terms::AtMost(most))
        }
    };
    // A wish for scales that coincide cannot be met to the letter; the states still must be.
    if let Some(states) = options.states
        && !states.is_multiple_of(1 << terms.len())
    {
        let scales = terms.len();
        return Err(FitError::States { states, scales });
    }
    Ok(terms)
}

fn statistics(check: &Check) -> Statistics {
    Statistics {
        lags: check.lags as u64,
        mean_error: check.mean_error,
        total_variation: check.total_variation,
        autocovariance: check.autocovariance,
        autocovariance_with_lag0: check.autocovariance_with_lag0,
        log_likelihood: check.log_likelihood.filter(|value| value.is_finite()),
    }
}

#[cfg(test)]
mod tests;
