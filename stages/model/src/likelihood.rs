//! How probable a series is under a model.

use crate::counts::Counts;
use crate::model::Model;
use crate::poisson::ln_factorial;
use crate::source::Source;

/// Logarithm of the probability of the counts: the forward algorithm on the product chain, scaled in
/// every bin. The chain moves source by source, so that its matrix is not built. `-infinity` where the
/// model cannot have given the counts. A profile begins with the first bin.
#[must_use]
pub fn log_likelihood(model: &Model, counts: &Counts) -> f64 {
    let superposition = model.superposition();
    let (rates, mut state): (Vec<f64>, Vec<f64>) = superposition.rate_law().into_iter().unzip();
    let states: Vec<(f64, f64)> = rates.iter().map(|rate| (*rate, rate.ln())).collect();
    let mut logs = vec![0.0; state.len()];
    let mut moved = vec![0.0; state.len()];
    let mut result = 0.0;
    for (bin, &count) in (0_u64..).zip(counts.values()) {
        let count = f64::from(count);
        let factor = model.profile().map_or(1.0, |profile| profile.factor(bin));
        let mut top = f64::NEG_INFINITY;
        for (log, (rate, ln_rate)) in logs.iter_mut().zip(&states) {
            let rate = rate * factor;
            *log = if rate > 0.0 {
                count * (ln_rate + factor.ln()) - rate
            } else if count > 0.0 {
                f64::NEG_INFINITY
            } else {
                0.0
            };
            top = top.max(*log);
        }
        if top == f64::NEG_INFINITY {
            return top;
        }
        let mut sum = 0.0;
        for (p, log) in state.iter_mut().zip(&logs) {
            *p *= (log - top).exp();
            sum += *p;
        }
        if sum.is_nan() || sum <= 0.0 {
            return f64::NEG_INFINITY;
        }
        result += sum.ln() + top - ln_factorial(count);
        state.iter_mut().for_each(|p| *p /= sum);
        let mut after = state.len();
        for source in superposition.sources() {
            after /= source.states();
            advance(source, after, &state, &mut moved);
            std::mem::swap(&mut state, &mut moved);
        }
    }
    result
}

/// Moves the chain of one source; `after` is the number of states of those after it in the product.
fn advance(source: &Source, after: usize, from: &[f64], to: &mut [f64]) {
    to.fill(0.0);
    let block = source.states() * after;
    for (from, to) in from.chunks_exact(block).zip(to.chunks_exact_mut(block)) {
        for (from, row) in from.chunks_exact(after).zip(source.rows()) {
            for (to, p) in to.chunks_exact_mut(after).zip(row) {
                for (to, from) in to.iter_mut().zip(from) {
                    *to += p * from;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::poisson::ln_probability;
    use crate::{Profile, Provenance, Superposition};

    fn model(sources: Vec<Source>, profile: Option<Profile>) -> Model {
        let superposition = Superposition::new(sources).unwrap();
        Model::new(1.0, superposition, profile, Provenance::default()).unwrap()
    }

    fn three() -> Vec<Source> {
        vec![
            Source::two_state(0.8, 9.0, 0.95).unwrap(),
            Source::memoryless(vec![0.0, 3.0, 8.0], &[0.2, 0.5, 0.3]).unwrap(),
            Source::two_state(0.4, 2.5, 0.3).unwrap(),
        ]
    }

    /// The sum over all paths of states.
    fn by_paths(chain: &Source, counts: &[u32], factors: &[f64]) -> f64 {
        let rows: Vec<&[f64]> = chain.rows().collect();
        let mut total = 0.0;
        let paths = chain.states().pow(u32::try_from(counts.len()).unwrap());
        for path in 0..paths {
            let (mut left, mut before, mut p) = (path, None, 1.0);
            for (count, factor) in counts.iter().zip(factors) {
                let state = left % chain.states();
                left /= chain.states();
                p *= before.map_or_else(|| chain.stationary()[state], |b: usize| rows[b][state]);
                let rate = chain.rates()[state] * factor;
                p *= ln_probability(f64::from(*count), rate).exp();
                before = Some(state);
            }
            total += p;
        }
        total.ln()
    }

    #[test]
    fn it_is_the_sum_over_all_paths_of_the_product_chain() {
        let values = vec![3, 0, 12, 7];
        let counts = Counts::new(1.0, values.clone()).unwrap();
        let plain = model(three(), None);
        let chain = plain.superposition().product().unwrap();
        let expected = by_paths(&chain, &values, &[1.0; 4]);
        assert!((log_likelihood(&plain, &counts) - expected).abs() < 1e-10);
        let profile = Profile::new(4, 1, vec![0.5, 0.0, 2.0, 1.5]).unwrap();
        let expected = by_paths(&chain, &values, &profile.first(4));
        let with = model(three(), Some(profile));
        assert!((log_likelihood(&with, &counts) - expected).abs() < 1e-10);
    }

    #[test]
    fn long_and_improbable_series_stay_in_range() {
        let of = |value: u32| {
            let counts = Counts::new(1.0, vec![value; 2000]).unwrap();
            log_likelihood(&model(three(), None), &counts)
        };
        assert!(of(5).is_finite());
        assert!(of(4_000_000).is_finite());
        assert!(of(5) > of(60));
    }

    #[test]
    fn what_cannot_be_has_no_probability() {
        let silent = model(vec![Source::memoryless(vec![0.0], &[1.0]).unwrap()], None);
        let of = |values: Vec<u32>| log_likelihood(&silent, &Counts::new(1.0, values).unwrap());
        assert_eq!(of(vec![0, 0]), 0.0);
        assert_eq!(of(vec![0, 1]), f64::NEG_INFINITY);
    }
}
