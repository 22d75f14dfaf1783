//! Independent sources side by side (Eqs. 5 to 7 of the paper).

use crate::poisson;
use crate::source::{MAX_STATES, Source};

/// Most sources of a superposition.
pub const MAX_SOURCES: usize = 16;
/// Most states of the product chain.
pub const MAX_PRODUCT_STATES: usize = 4096;

/// The sum of the arrivals of independent sources.
///
/// Rates, means and autocovariances add, marginal distributions convolve. The chain of all sources
/// together has the product of their states; it is built only where [`product`](Self::product) is
/// asked for.
#[derive(Debug, Clone, PartialEq)]
pub struct Superposition {
    sources: Vec<Source>,
}

/// Why there is no superposition, or no product chain of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SuperpositionError {
    /// No source, or more than [`MAX_SOURCES`].
    #[error("{0} sources: 1 to {MAX_SOURCES} are possible")]
    Sources(usize),
    /// The product of the numbers of states is too large.
    #[error("{states} states together: {most} are possible")]
    States {
        /// How many there would be.
        states: usize,
        /// [`MAX_PRODUCT_STATES`], or [`MAX_STATES`] for the matrix.
        most: usize,
    },
}

impl Superposition {
    /// These sources together.
    ///
    /// # Errors
    /// No source, more than [`MAX_SOURCES`], more than [`MAX_PRODUCT_STATES`] states together.
    pub fn new(sources: Vec<Source>) -> Result<Self, SuperpositionError> {
        if !(1..=MAX_SOURCES).contains(&sources.len()) {
            return Err(SuperpositionError::Sources(sources.len()));
        }
        let result = Self { sources };
        result.at_most(MAX_PRODUCT_STATES)?;
        Ok(result)
    }

    fn at_most(&self, most: usize) -> Result<(), SuperpositionError> {
        match self.states() {
            states if states > most => Err(SuperpositionError::States { states, most }),
            _ => Ok(()),
        }
    }

    /// The sources.
    #[must_use]
    pub fn sources(&self) -> &[Source] {
        &self.sources
    }

    /// Number of states of the product chain: M 2^L in the paper.
    #[must_use]
    pub fn states(&self) -> usize {
        let states = self.sources.iter().map(Source::states);
        states.fold(1, usize::saturating_mul)
    }

    /// Arrivals per bin.
    #[must_use]
    pub fn mean(&self) -> f64 {
        self.sources.iter().map(Source::mean).sum()
    }

    /// Autocovariance of the counts at lags 0 to `lags`.
    #[must_use]
    pub fn autocovariance(&self, lags: usize) -> Vec<f64> {
        let mut result = self.autocovariance_of_rate(lags);
        if let Some(variance) = result.first_mut() {
            *variance += self.mean();
        }
        result
    }

    /// Autocovariance of the rate: without what a Poisson process adds at lag 0.
    pub(crate) fn autocovariance_of_rate(&self, lags: usize) -> Vec<f64> {
        let mut result = vec![0.0; lags + 1];
        for source in &self.sources {
            for (sum, part) in result.iter_mut().zip(source.autocovariance(lags)) {
                *sum += part;
            }
        }
        result
    }

    /// The law of the rate in a bin: what it may be, and how probable that is. In the order of the
    /// product chain's states.
    #[must_use]
    pub fn rate_law(&self) -> Vec<(f64, f64)> {
        let mut law = vec![(0.0, 1.0)];
        for source in &self.sources {
            let states = source.rates().iter().zip(source.stationary());
            law = law
                .iter()
                .flat_map(|&(rate, p)| states.clone().map(move |(r, q)| (rate + r, p * q)))
                .collect();
        }
        law
    }

    /// Probabilities of 0 to `max` arrivals in a bin: the convolution of the sources' marginals.
    #[must_use]
    pub fn marginal(&self, max: u32) -> Vec<f64> {
        let mut result = vec![1.0];
        for source in &self.sources {
            let part = mixture(source.rates().iter().zip(source.stationary()), max);
            result = convolve(&result, &part);
        }
        result
    }

    /// The chain of all sources together.
    ///
    /// # Errors
    /// More than [`MAX_STATES`] states: the matrix would be too large.
    pub fn product(&self) -> Result<Source, SuperpositionError> {
        self.at_most(MAX_STATES)?;
        let mut sources = self.sources.iter();
        let first = sources.next().ok_or(SuperpositionError::Sources(0))?;
        Ok(sources.fold(first.clone(), |all, source| all.kronecker(source)))
    }

    /// The same with all rates multiplied: the autocovariance of the rate by the square.
    pub(crate) fn scaled(&self, factor: f64) -> Self {
        let sources = self.sources.iter().map(|source| source.scaled(factor));
        Self {
            sources: sources.collect(),
        }
    }
}

/// Probabilities of 0 to `max` arrivals at rates with their weights.
#[expect(
    clippy::needless_pass_by_value,
    reason = "an iterator over a law is small"
)]
pub(crate) fn mixture<'a>(
    law: impl Iterator<Item = (&'a f64, &'a f64)> + Clone,
    max: u32,
) -> Vec<f64> {
    let at = |k: u32| {
        let law = law.clone();
        law.map(|(rate, p)| p * poisson::ln_probability(f64::from(k), *rate).exp())
            .sum()
    };
    (0..=max).map(at).collect()
}

/// As long as the longer one: what lies beyond is cut.
fn convolve(a: &[f64], b: &[f64]) -> Vec<f64> {
    let len = a.len().max(b.len());
    let mut result = vec![0.0; len];
    for (at, a) in a.iter().enumerate() {
        for (sum, b) in result.iter_mut().skip(at).zip(b) {
            *sum += a * b;
        }
    }
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    pub(crate) fn three() -> Superposition {
        let sources = vec![
            Source::two_state(0.8, 9.0, 0.95).unwrap(),
            Source::two_state(0.4, 2.5, 0.3).unwrap(),
            Source::memoryless(vec![1.0, 3.0, 8.0], &[0.2, 0.5, 0.3]).unwrap(),
        ];
        Superposition::new(sources).unwrap()
    }

    fn near(a: &[f64], b: &[f64]) {
        assert_eq!(a.len(), b.len());
        for (at, (a, b)) in a.iter().zip(b).enumerate() {
            assert!(
                (a - b).abs() <= 1e-12 * a.abs().max(1.0),
                "{at}: {a} and {b}"
            );
        }
    }

    #[test]
    fn the_product_chain_is_the_sum_of_its_parts() {
        let sum = three();
        let product = sum.product().unwrap();
        assert_eq!(product.states(), 12);
        assert_eq!(sum.states(), 12);
        near(&[product.mean()], &[sum.mean()]);
        let mut autocovariance = product.autocovariance(200);
        autocovariance[0] += product.mean();
        near(&autocovariance, &sum.autocovariance(200));
        let marginal = mixture(product.rates().iter().zip(product.stationary()), 80);
        near(&marginal, &sum.marginal(80));
        assert!((marginal.iter().sum::<f64>() - 1.0).abs() < 1e-12);
        let law = sum.rate_law();
        let (rates, weights): (Vec<f64>, Vec<f64>) = law.into_iter().unzip();
        near(&rates, product.rates());
        near(&weights, product.stationary());
    }

    #[test]
    fn the_product_chain_is_a_source() {
        // What the Kronecker product gives passes the checks of `Source::new`, and its stationary
        // distribution is the one that is computed there.
        let product = three().product().unwrap();
        let rows: Vec<Vec<f64>> = product.rows().map(<[f64]>::to_vec).collect();
        let again = Source::new(product.rates().to_vec(), &rows).unwrap();
        near(product.stationary(), again.stationary());
    }

    #[test]
    fn sizes_are_bounded() {
        assert_eq!(
            Superposition::new(Vec::new()),
            Err(SuperpositionError::Sources(0))
        );
        let two = || Source::two_state(0.5, 1.0, 0.5).unwrap();
        let many = Superposition::new(vec![two(); 11]).unwrap();
        assert!(matches!(
            many.product(),
            Err(SuperpositionError::States { states: 2048, .. })
        ));
        assert!(Superposition::new(vec![two(); 17]).is_err());
    }
}
