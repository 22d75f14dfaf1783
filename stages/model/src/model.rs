//! A model: the superposition, the length of its bins, its profile, and where it comes from.

use crate::counts::{Counts, CountsError};
use crate::profile::Profile;
use crate::provenance::Provenance;
use crate::sampler::Sampler;
use crate::superposition::Superposition;
use crate::{Random, number::to_count, poisson};

/// Arrivals correlated over several time scales, with a deterministic profile or without.
#[derive(Debug, Clone, PartialEq)]
pub struct Model {
    bin_s: f64,
    superposition: Superposition,
    profile: Option<Profile>,
    provenance: Provenance,
}

/// A factor, rate or bin length that is not positive.
#[derive(Debug, Clone, Copy, PartialEq, thiserror::Error)]
#[error("{what} of {value}: it must be a positive number")]
pub struct NotPositive {
    /// What it should have been.
    pub what: &'static str,
    /// What it is.
    pub value: f64,
}

fn positive(what: &'static str, value: f64) -> Result<f64, NotPositive> {
    if value.is_finite() && value > 0.0 {
        Ok(value)
    } else {
        Err(NotPositive { what, value })
    }
}

impl Model {
    /// A model whose bins are `bin_s` seconds long.
    ///
    /// # Errors
    /// A bin length that is not positive.
    pub fn new(
        bin_s: f64,
        superposition: Superposition,
        profile: Option<Profile>,
        provenance: Provenance,
    ) -> Result<Self, NotPositive> {
        Ok(Self {
            bin_s: positive("bin length in seconds", bin_s)?,
            superposition,
            profile,
            provenance,
        })
    }

    /// Length of a bin in seconds.
    #[must_use]
    pub const fn bin_s(&self) -> f64 {
        self.bin_s
    }

    /// The sources.
    #[must_use]
    pub const fn superposition(&self) -> &Superposition {
        &self.superposition
    }

    /// The slow trend, where there is one.
    #[must_use]
    pub const fn profile(&self) -> Option<&Profile> {
        self.profile.as_ref()
    }

    /// Where the model comes from.
    #[must_use]
    pub const fn provenance(&self) -> &Provenance {
        &self.provenance
    }

    /// The model with another provenance.
    #[must_use]
    pub fn with_provenance(self, provenance: Provenance) -> Self {
        Self { provenance, ..self }
    }

    /// Arrivals per bin, over a whole period of the profile.
    #[must_use]
    pub fn mean(&self) -> f64 {
        self.superposition.mean()
    }

    /// Arrivals per second.
    #[must_use]
    pub fn rate_per_s(&self) -> f64 {
        self.mean() / self.bin_s
    }

    /// The model with all rates multiplied by `factor`: the shape of the load at another intensity.
    ///
    /// # Errors
    /// A factor that is not positive.
    pub fn scaled(&self, factor: f64) -> Result<Self, NotPositive> {
        Ok(Self {
            superposition: self.superposition.scaled(positive("factor", factor)?),
            ..self.clone()
        })
    }

    /// The model scaled to `rate` arrivals per second.
    ///
    /// # Errors
    /// A rate that is not positive; a model without arrivals.
    pub fn with_rate_per_s(&self, rate: f64) -> Result<Self, NotPositive> {
        self.scaled(positive("rate", rate)? / self.rate_per_s())
    }

    /// The model with bins of another length: the same counts, faster or slower.
    ///
    /// # Errors
    /// A bin length that is not positive.
    pub fn with_bin_s(&self, bin_s: f64) -> Result<Self, NotPositive> {
        Ok(Self {
            bin_s: positive("bin length in seconds", bin_s)?,
            ..self.clone()
        })
    }

    /// The rates of the bins, one after the other. The same seed gives the same rates.
    #[must_use]
    pub fn sampler(&self, seed: u64) -> Sampler {
        Sampler::new(&self.superposition, self.profile.clone(), seed)
    }

    /// Counts of `bins` bins. The same seed gives the same counts.
    ///
    /// # Errors
    /// No bins, or more than [`MAX_BINS`](crate::counts::MAX_BINS).
    pub fn simulate(&self, bins: usize, seed: u64) -> Result<Counts, CountsError> {
        if bins > crate::counts::MAX_BINS {
            return Err(CountsError::TooManyBins(bins));
        }
        let mut sampler = self.sampler(seed);
        // The sources have the numbers from 0 on.
        let mut random = Random::part(seed, u64::MAX);
        let values = (0..bins).map(|_| to_count(poisson::draw(sampler.next_rate(), &mut random)));
        Counts::new(self.bin_s, values.collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::Source;

    fn model() -> Model {
        let sources = vec![
            Source::two_state(0.8, 9.0, 0.9).unwrap(),
            Source::memoryless(vec![1.0, 3.0], &[0.5, 0.5]).unwrap(),
        ];
        let superposition = Superposition::new(sources).unwrap();
        Model::new(0.5, superposition, None, Provenance::default()).unwrap()
    }

    #[test]
    fn the_rate_scales() {
        let model = model();
        assert!((model.mean() - 3.8).abs() < 1e-14);
        assert!((model.rate_per_s() - 7.6).abs() < 1e-14);
        let faster = model.with_rate_per_s(76.0).unwrap();
        assert!((faster.mean() - 38.0).abs() < 1e-12);
        let (a, b) = (
            model.superposition().autocovariance_of_rate(5),
            faster.superposition().autocovariance_of_rate(5),
        );
        for (a, b) in a.iter().zip(b) {
            assert!((a * 100.0 - b).abs() < 1e-9);
        }
        assert_eq!(model.with_bin_s(0.25).unwrap().mean(), model.mean());
        for wrong in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            assert!(model.scaled(wrong).is_err());
            assert!(model.with_rate_per_s(wrong).is_err());
            assert!(model.with_bin_s(wrong).is_err());
        }
    }

    #[test]
    fn a_seed_names_the_counts() {
        let model = model();
        let counts = model.simulate(500, 3).unwrap();
        assert_eq!(counts, model.simulate(500, 3).unwrap());
        assert_ne!(counts, model.simulate(500, 4).unwrap());
        // A longer run begins as the shorter one.
        let longer = model.simulate(900, 3).unwrap();
        assert_eq!(longer.values()[..500], *counts.values());
        assert!(model.simulate(0, 1).is_err());
        assert!(model.simulate(usize::MAX, 1).is_err());
    }
}
