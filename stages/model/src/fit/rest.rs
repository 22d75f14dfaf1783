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
/// A state of less weight than this is left out.
const LEAST_WEIGHT: f64 = 1e-9;

/// What was found.
#[derive(Debug)]
pub(super) struct Rest {
    pub(super) source: Source,
    /// Numbers of states that were tried and their criteria.
    pub(super) tried: Vec<(usize, f64)>,
}

/// Fits the source, with as many states as are asked for or as the Bayesian information criterion
/// prefers (rates and weights: 2 M - 1 parameters).
pub(super) fn fit(
    sources: &[Persistent],
    series: &Series,
    states: Option<usize>,
) -> Result<Rest, FitError> {
    let observations = &series.observations;
    let offsets = offsets_of(sources);
    let grid = Grid::over(observations);
    let kernel = Kernel::new(observations, grid.rates(), &offsets);
    let law = kernel.law(GRID_STEPS);
    let numbers = match states {
        Some(states) => states..=states,
        None => 1..=(MAX_STATES >> sources.len()).max(1),
    };
    let bins = number(series.bins);
    let mut tried = Vec::new();
    let mut best: Option<(f64, usize, Vec<Atom>)> = None;
    for count in numbers {
        let atoms = reduce(grid.rates(), &law, count);
        let is_last = atoms.len() < count;
        let (atoms, log_likelihood) = fit_atoms(observations, &offsets, atoms, ATOM_STEPS);
        let parameters = 2.0 * number(atoms.len()) - 1.0;
        let criterion = -2.0 * log_likelihood * bins + parameters * bins.ln();
        tried.push((atoms.len(), criterion));
        if best.as_ref().is_none_or(|(best, _, _)| criterion < *best) {
            best = Some((criterion, count, atoms));
        }
        let is_late = best
            .as_ref()
            .is_some_and(|(_, at, _)| count > at + PATIENCE);
        if is_late || is_last {
            break;
        }
    }
    let (_, _, atoms) = best.ok_or(FitError::Range)?;
    let source = exact_mean(atoms, sources, series)?;
    Ok(Rest { source, tried })
}

/// Scales the rates so that the mean of the whole model is that of the counts.
fn exact_mean(
    mut atoms: Vec<Atom>,
    sources: &[Persistent],
    series: &Series,
) -> Result<Source, FitError> {
    atoms.retain(|atom| atom.weight > LEAST_WEIGHT);
    let total: f64 = atoms.iter().map(|atom| atom.weight).sum();
    atoms.iter_mut().for_each(|atom| atom.weight /= total);
    let wanted = series.mean - sources.iter().map(Persistent::mean).sum::<f64>();
    let mean: f64 = atoms.iter().map(|atom| atom.weight * atom.rate).sum();
    let factor = wanted / mean;
    let (rates, weights): (Vec<f64>, Vec<f64>) = atoms
        .iter()
        .map(|atom| (atom.rate * factor, atom.weight))
        .unzip();
    Source::memoryless(rates, &weights).map_err(|_| FitError::Range)
}
