//! Rates bin by bin: the chains of the sources side by side.

use crate::Random;
use crate::profile::Profile;
use crate::source::Source;
use crate::superposition::Superposition;

/// Walks through the states of a model and tells the rate of each bin.
///
/// Each source is a chain of its own with its own random numbers; the product chain is never built.
/// A bin costs a step of each source.
#[derive(Debug, Clone)]
pub struct Sampler {
    chains: Vec<Chain>,
    profile: Option<Profile>,
    bin: u64,
}

#[derive(Debug, Clone)]
struct Chain {
    rates: Vec<f64>,
    /// Row by row, each entry with the sum of those before it.
    cumulative: Vec<f64>,
    state: usize,
    random: Random,
}

impl Sampler {
    pub(crate) fn new(superposition: &Superposition, profile: Option<Profile>, seed: u64) -> Self {
        let chains = (0..).zip(superposition.sources());
        let chains = chains.map(|(number, source)| Chain::new(source, Random::part(seed, number)));
        Self {
            chains: chains.collect(),
            profile,
            bin: 0,
        }
    }

    /// Expected arrivals in the next bin, with the profile.
    #[inline]
    pub fn next_rate(&mut self) -> f64 {
        let rate: f64 = self.chains.iter_mut().map(Chain::next_rate).sum();
        let factor = self.profile.as_ref().map_or(1.0, |p| p.factor(self.bin));
        self.bin = self.bin.wrapping_add(1);
        rate * factor
    }

    /// How many bins have been given.
    #[must_use]
    pub const fn bins(&self) -> u64 {
        self.bin
    }
}

impl Chain {
    fn new(source: &Source, mut random: Random) -> Self {
        let mut cumulative = Vec::with_capacity(source.states() * source.states());
        for row in source.rows() {
            accumulate(row, &mut cumulative);
        }
        let mut first = Vec::with_capacity(source.states());
        accumulate(source.stationary(), &mut first);
        Self {
            rates: source.rates().to_vec(),
            cumulative,
            state: draw(&first, &mut random),
            random,
        }
    }

    #[inline]
    fn next_rate(&mut self) -> f64 {
        let states = self.rates.len();
        let rate = self.rates.get(self.state).copied().unwrap_or(0.0);
        let begin = self.state * states;
        let row = self.cumulative.get(begin..begin + states);
        self.state = draw(row.unwrap_or_default(), &mut self.random);
        rate
    }
}

fn accumulate(row: &[f64], into: &mut Vec<f64>) {
    let mut sum = 0.0;
    into.extend(row.iter().map(|p| {
        sum += p;
        sum
    }));
}

/// A place by cumulative probabilities.
#[inline]
fn draw(cumulative: &[f64], random: &mut Random) -> usize {
    let u = random.uniform();
    let place = cumulative.iter().take_while(|sum| **sum <= u).count();
    // Rounding may leave the last sum below 1.
    place.min(cumulative.len().saturating_sub(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn superposition() -> Superposition {
        let sources = vec![
            Source::two_state(0.8, 9.0, 0.9).unwrap(),
            Source::memoryless(vec![1.0, 3.0, 8.0], &[0.2, 0.5, 0.3]).unwrap(),
        ];
        Superposition::new(sources).unwrap()
    }

    #[test]
    fn the_path_has_the_moments_of_the_model() {
        let model = superposition();
        let mut sampler = Sampler::new(&model, None, 5);
        let n = 400_000_usize;
        let path: Vec<f64> = (0..n).map(|_| sampler.next_rate()).collect();
        assert_eq!(sampler.bins(), 400_000);
        let mean = path.iter().sum::<f64>() / n as f64;
        assert!((mean - model.mean()).abs() < 0.05, "{mean}");
        let expected = model.autocovariance_of_rate(20);
        for (lag, expected) in expected.iter().enumerate() {
            let pairs = path.iter().zip(path.iter().skip(lag));
            let sum: f64 = pairs.map(|(a, b)| (a - mean) * (b - mean)).sum();
            let found = sum / n as f64;
            assert!((found - expected).abs() < 0.35, "{lag}: {found} {expected}");
        }
    }

    #[test]
    fn the_profile_multiplies() {
        let profile = Profile::new(4, 1, vec![1.0, 2.0, 0.0, 1.0]).unwrap();
        let model = superposition();
        let mut plain = Sampler::new(&model, None, 9);
        let mut with = Sampler::new(&model, Some(profile), 9);
        for bin in 0..40 {
            let factor = [1.0, 2.0, 0.0, 1.0][bin % 4];
            assert_eq!(with.next_rate(), plain.next_rate() * factor);
        }
    }

    #[test]
    fn a_sum_that_rounding_left_below_one_has_a_last_place() {
        let mut random = Random::new(1);
        for _ in 0..100 {
            assert_eq!(draw(&[0.0, 0.0], &mut random), 1);
        }
    }
}
