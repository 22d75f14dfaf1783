//! What a fitted model is compared with: simpler processes for the same counts.

mod hmm;

pub use hmm::{HmmOptions, hidden_markov};

use crate::counts::Counts;
use crate::model::{Model, NotPositive};
use crate::provenance::Provenance;
use crate::source::{Source, SourceError};
use crate::superposition::{Superposition, SuperpositionError};

/// Why there is no baseline.
#[derive(Debug, Clone, Copy, PartialEq, thiserror::Error)]
pub enum BaselineError {
    /// What was found is no source.
    #[error(transparent)]
    Source(#[from] SourceError),
    /// Too many states.
    #[error(transparent)]
    States(#[from] SuperpositionError),
    /// The bins have no length.
    #[error(transparent)]
    Bin(#[from] NotPositive),
    /// A series that is too long, or more states than it has different counts.
    #[error("{bins} bins with {states} states are too many")]
    Size {
        /// Bins of the series.
        bins: usize,
        /// States that were asked for.
        states: usize,
    },
}

/// The Poisson process of the counts' mean: one state.
///
/// # Errors
/// A mean that is too large for a rate.
pub fn poisson(counts: &Counts) -> Result<Model, BaselineError> {
    of(counts, Source::memoryless(vec![counts.mean()], &[1.0])?)
}

fn of(counts: &Counts, source: Source) -> Result<Model, BaselineError> {
    let provenance = Provenance {
        bins: counts.len() as u64,
        mean: counts.mean(),
        ..Provenance::default()
    };
    let superposition = Superposition::new(vec![source])?;
    Ok(Model::new(counts.bin_s(), superposition, None, provenance)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn poisson_has_the_mean_and_nothing_else() {
        let counts = Counts::new(10.0, vec![1, 2, 3, 6]).unwrap();
        let model = poisson(&counts).unwrap();
        assert_eq!(model.mean(), 3.0);
        assert_eq!(model.superposition().autocovariance(2), [3.0, 0.0, 0.0]);
    }
}
