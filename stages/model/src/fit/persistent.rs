//! Step 2: a two-state source for each time scale.
//!
//! A term of amplitude a leaves one parameter free, the probability p of the low state; the high
//! state's rate is then sqrt(a / (p (1 - p))). The lower rate is 0, as whatever all states have in
//! common is as well a rate of the source without memory.

use super::FitError;
use super::series::Series;
use crate::exponentials::Term;
use crate::marginal::{Grid, Kernel, Offset, offsets};
use crate::number::number;
use crate::source::{Source, SourceError};

/// Where the search begins: all sources alike. The last ones are for rare bursts, which are all that
/// a large autocovariance beside a small mean leaves.
const STARTS: [f64; 9] = [0.5, 0.65, 0.8, 0.9, 0.95, 0.98, 0.99, 0.995, 0.998];
/// What is tried for each source after that.
const TRIED: [f64; 11] = [0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95];
/// How often each source has its turn.
const SWEEPS: usize = 2;
/// Steps of EM for each trial: enough to tell the better from the worse.
const STEPS: u32 = 150;
/// How much of the mean the two-state sources may have: what is left must have a rate.
const MOST_OF_MEAN: f64 = 0.995;

/// A two-state source that is not yet one.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Persistent {
    pub(super) term: Term,
    /// Probability of the low state.
    pub(super) low: f64,
}

impl Persistent {
    /// Rate of the high state.
    pub(super) fn high(&self) -> f64 {
        (self.term.amplitude / (self.low * (1.0 - self.low))).sqrt()
    }

    pub(super) fn mean(&self) -> f64 {
        self.high() * (1.0 - self.low)
    }

    pub(super) fn source(&self) -> Result<Source, SourceError> {
        Source::two_state(self.low, self.high(), self.term.persistence())
    }

    /// Expected visits to the high state in `bins` bins.
    pub(super) fn visits(&self, bins: usize) -> f64 {
        number(bins) * (1.0 - self.term.persistence()) * self.low * (1.0 - self.low)
    }
}

/// What the sources add to the rate together.
pub(super) fn offsets_of(sources: &[Persistent]) -> Vec<Offset> {
    offsets(sources.iter().map(|source| (source.low, source.high())))
}

/// Chooses the probabilities under which the likelihood of the marginal distribution is largest.
pub(super) fn choose(terms: &[Term], series: &Series) -> Result<Vec<Persistent>, FitError> {
    if terms.is_empty() {
        return Ok(Vec::new());
    }
    let grid = Grid::over(&series.observations);
    let likelihood = |sources: &[Persistent]| -> Option<f64> {
        let mean: f64 = sources.iter().map(Persistent::mean).sum();
        // What is no number does not pass either.
        if mean.is_nan() || mean > MOST_OF_MEAN * series.mean {
            return None;
        }
        let kernel = Kernel::new(&series.observations, grid.rates(), &offsets_of(sources));
        let law = kernel.law(grid.rates(), series.mean - mean, STEPS);
        Some(kernel.log_likelihood(&law))
    };
    let mut best: Option<(f64, Vec<Persistent>)> = None;
    for low in STARTS {
        // The rare ones only where nothing else is possible.
        if low > 0.98 && best.is_some() {
            break;
        }
        let terms = terms.iter().copied();
        let sources: Vec<Persistent> = terms.map(|term| Persistent { term, low }).collect();
        if let Some(found) = likelihood(&sources)
            && best.as_ref().is_none_or(|(best, _)| found > *best)
        {
            best = Some((found, sources));
        }
    }
    let (mut best, mut sources) = best.ok_or(FitError::Infeasible { mean: series.mean })?;
    for _ in 0..SWEEPS {
        let before = sources.clone();
        for at in 0..sources.len() {
            for low in TRIED {
                let mut other = sources.clone();
                match other.get_mut(at) {
                    Some(source) if source.low != low => source.low = low,
                    _ => continue,
                }
                if let Some(found) = likelihood(&other)
                    && found > best + 1e-7
                {
                    (best, sources) = (found, other);
                }
            }
        }
        if sources == before {
            break;
        }
    }
    Ok(sources)
}
