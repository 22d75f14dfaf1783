//! Step 3: the source without memory, which has what is left of the marginal distribution.

use super::persistent::{Persistent, offsets_of};
use super::series::Series;
use super::{FitError, MAX_STATES};
use crate::marginal::{Atom, Grid, Kernel, fit_atoms, reduce};
use crate::number::number;
use crate::source::Source;

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
