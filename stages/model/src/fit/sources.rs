//! Step 2: a two-state source for each time scale.
//!
//! A term of amplitude a leaves one parameter free, the probability p of the low state; the high
//! state's rate is then sqrt(a / (p (1 - p))). The lower rate is 0, as whatever all states have in
//! common is as well a rate of the source without memory.
//!
//! Step 3: the source without memory, which has what is left of the marginal distribution.

use super::series::Series;
use super::{FitError, MAX_STATES};
use crate::exponentials::Term;
use crate::marginal::{Atom, Grid, Kernel, Offset, fit_atoms, offsets, reduce};
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
        // What is not a number does not pass either.
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

/// Steps of EM for the law on the grid.
const GRID_STEPS: u32 = 1500;
/// Steps of EM for the atoms.
const ATOM_STEPS: u32 = 300;
/// The search for the number of states ends when so many more are no better.
const PATIENCE: usize = 2;
/// A difference of the Bayesian information criterion that is very strong evidence (Kass and Raftery
/// 1995, sec. 3.2): states that do not bring it are not worth having.
const VERY_STRONG: f64 = 10.0;
/// A state of less weight than this is left out.
const LEAST_WEIGHT: f64 = 1e-9;

/// What was found.
#[derive(Debug)]
pub(super) struct Rest {
    pub(super) source: Source,
    /// Numbers of states that were tried and their criteria.
    pub(super) tried: Vec<(usize, f64)>,
}

/// Fits the source, with as many states as are asked for, or with the fewest against which no other
/// number has very strong evidence (rates and weights: 2 M - 1 parameters).
pub(super) fn fit(
    sources: &[Persistent],
    series: &Series,
    states: Option<usize>,
) -> Result<Rest, FitError> {
    let observations = &series.observations;
    let offsets = offsets_of(sources);
    let grid = Grid::over(observations);
    let kernel = Kernel::new(observations, grid.rates(), &offsets);
    let mean = series.mean - sources.iter().map(Persistent::mean).sum::<f64>();
    let law = kernel.law(grid.rates(), mean, GRID_STEPS);
    let numbers = match states {
        Some(states) => states..=states,
        None => 1..=(MAX_STATES >> sources.len()).max(1),
    };
    let bins = number(series.bins);
    let mut tried: Vec<(f64, Vec<Atom>)> = Vec::new();
    let (mut least, mut since) = (f64::INFINITY, 0);
    for count in numbers {
        let atoms = reduce(grid.rates(), &law, count);
        let is_last = atoms.len() < count;
        let (atoms, log_likelihood) = fit_atoms(observations, &offsets, atoms, mean, ATOM_STEPS);
        let parameters = 2.0 * number(atoms.len()) - 1.0;
        let criterion = -2.0 * log_likelihood * bins + parameters * bins.ln();
        tried.push((criterion, atoms));
        if criterion < least {
            (least, since) = (criterion, 0);
        } else {
            since += 1;
        }
        if since > PATIENCE || is_last {
            break;
        }
    }
    let criteria = tried.iter().map(|(c, atoms)| (atoms.len(), *c)).collect();
    let few_enough = tried.into_iter().find(|(c, _)| *c <= least + VERY_STRONG);
    let (_, atoms) = few_enough.ok_or(FitError::Range)?;
    Ok(Rest {
        source: exact_mean(atoms, mean)?,
        tried: criteria,
    })
}

/// The source of the atoms, whose mean is `wanted` to the last digit.
fn exact_mean(mut atoms: Vec<Atom>, wanted: f64) -> Result<Source, FitError> {
    atoms.retain(|atom| atom.weight > LEAST_WEIGHT);
    let total: f64 = atoms.iter().map(|atom| atom.weight).sum();
    atoms.iter_mut().for_each(|atom| atom.weight /= total);
    let mean: f64 = atoms.iter().map(|atom| atom.weight * atom.rate).sum();
    let factor = wanted / mean;
    let (rates, weights): (Vec<f64>, Vec<f64>) = atoms
        .iter()
        .map(|atom| (atom.rate * factor, atom.weight))
        .unzip();
    Source::memoryless(rates, &weights).map_err(|_| FitError::Range)
}
