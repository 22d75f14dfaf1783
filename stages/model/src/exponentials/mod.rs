//! Step 1: an autocovariance as a sum of few exponentials with positive weights.
//!
//! Such sums are exactly what superposed two-state sources with positive correlation can have; each
//! term becomes one source.
//!
//! Many time scales to few.

use crate::Agreement;
use crate::number::number;

mod refine;

/// Candidates for time scales.
const CANDIDATES: usize = 60;
/// Time scales nearer to each other than this are one.
const APART: f64 = 1.5;
/// A term below this part of the variance is left out.
const LEAST_AMPLITUDE: f64 = 1e-6;

/// One term `amplitude exp(-k / tau)` at lag `k`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Term {
    /// Its part of the autocovariance at lag 0.
    pub amplitude: f64,
    /// Its time constant in bins.
    pub tau: f64,
}

impl Term {
    /// The factor from one lag to the next.
    #[must_use]
    pub fn persistence(&self) -> f64 {
        (-1.0 / self.tau).exp()
    }
}

/// What is to be approximated.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Target<'a> {
    /// The autocovariance from lag 1 on.
    pub(crate) lags: &'a [f64],
    /// The variance.
    pub(crate) variance: f64,
    /// What the amplitudes may sum to: the variance without that of the Poisson process itself.
    /// Without it a scale of less than a bin takes what it likes at lag 0, which no lag forbids.
    pub(crate) budget: f64,
}

/// How many terms.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Terms {
    /// The fewest whose inequality coefficient is below 1 %, at most this many.
    AtMost(usize),
    /// This many, or fewer where they coincide.
    Exactly(usize),
}

const GOOD_ENOUGH: f64 = 0.01;

/// The terms, by their time constant; none where there is no positive autocovariance.
pub(crate) fn approximate(target: Target<'_>, terms: Terms) -> Vec<Term> {
    if !(target.variance.is_finite() && target.variance > 0.0) || target.lags.is_empty() {
        return Vec::new();
    }
    // In parts of the variance.
    let scale = |value: f64| value / target.variance;
    let lags: Vec<f64> = target.lags.iter().map(|c| scale(*c)).collect();
    let scaled = Target {
        lags: &lags,
        variance: 1.0,
        budget: scale(target.budget).max(1e-9),
    };
    let candidates = candidates(&lags);
    if candidates.is_empty() {
        return Vec::new();
    }
    let counts = match terms {
        Terms::AtMost(most) => 1..=most,
        Terms::Exactly(count) => count..=count,
    };
    let mut best = Vec::new();
    for count in counts {
        best = refine::refine(&merge(candidates.clone(), count), scaled);
        if agreement(&lags, &best).ic < GOOD_ENOUGH {
            break;
        }
    }
    best.retain(|term| term.amplitude >= LEAST_AMPLITUDE);
    // Each turn has one term less.
    while best.len() > 1 && coincide(&best) {
        best = merge(best.clone(), best.len() - 1);
        best = refine::refine(&best, scaled);
    }
    for term in &mut best {
        term.amplitude *= target.variance;
    }
    best
}

/// How well the terms agree with an autocovariance from lag 1 on.
pub(crate) fn agreement(lags: &[f64], terms: &[Term]) -> Agreement {
    Agreement::of(lags, &sum(terms, lags.len()))
}

/// The sum of the terms at lags 1 to `lags`.
pub(crate) fn sum(terms: &[Term], lags: usize) -> Vec<f64> {
    let mut result = vec![0.0; lags];
    for term in terms {
        for (sum, power) in result.iter_mut().zip(powers(term.tau)) {
            *sum += term.amplitude * power;
        }
    }
    result
}

/// `exp(-k / tau)` for k = 1, 2, ...
fn powers(tau: f64) -> impl Iterator<Item = f64> {
    let factor = (-1.0 / tau).exp();
    std::iter::successors(Some(factor), move |power| Some(power * factor))
}

fn column(tau: f64, lags: usize) -> Vec<f64> {
    powers(tau).take(lags).collect()
}

/// The sparse mixture on a grid of time constants from half a bin to twenty times the lags.
fn candidates(lags: &[f64]) -> Vec<Term> {
    let (least, most) = (0.5_f64, 20.0 * number(lags.len()));
    let step = (most / least).ln() / number(CANDIDATES - 1);
    let taus: Vec<f64> = (0..CANDIDATES)
        .map(|at| least * (step * number(at)).exp())
        .collect();
    let columns: Vec<Vec<f64>> = taus.iter().map(|tau| column(*tau, lags.len())).collect();
    let amplitudes = refine::non_negative(&columns, lags);
    let terms = taus.into_iter().zip(amplitudes);
    terms
        .map(|(tau, amplitude)| Term { amplitude, tau })
        .filter(|term| term.amplitude > 1e-9)
        .collect()
}

fn coincide(terms: &[Term]) -> bool {
    let mut pairs = terms.iter().zip(terms.iter().skip(1));
    pairs.any(|(a, b)| b.tau / a.tau < APART)
}

/// Merges neighbours, by their time constants, until at most `count` terms are left: each time the
/// pair whose merger moves the least weight the least way on the logarithmic scale. Amplitudes add.
fn merge(mut terms: Vec<Term>, count: usize) -> Vec<Term> {
    terms.sort_by(|a, b| a.tau.total_cmp(&b.tau));
    while terms.len() > count.max(1) {
        let pairs = terms.iter().zip(terms.iter().skip(1));
        let costs = pairs.map(|(a, b)| cost(*a, *b)).enumerate();
        let Some((at, _)) = costs.min_by(|(_, a), (_, b)| a.total_cmp(b)) else {
            break;
        };
        let second = terms.remove(at + 1);
        if let Some(first) = terms.get_mut(at) {
            *first = merged(*first, second);
        }
    }
    terms
}

fn cost(a: Term, b: Term) -> f64 {
    let apart = b.tau.ln() - a.tau.ln();
    a.amplitude * b.amplitude / (a.amplitude + b.amplitude) * apart * apart
}

fn merged(a: Term, b: Term) -> Term {
    let amplitude = a.amplitude + b.amplitude;
    let tau = (a.amplitude * a.tau.ln() + b.amplitude * b.tau.ln()) / amplitude;
    Term {
        amplitude,
        tau: tau.exp(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn target(terms: &[Term], lags: usize) -> Vec<f64> {
        sum(terms, lags)
    }

    fn term(amplitude: f64, tau: f64) -> Term {
        Term { amplitude, tau }
    }

    #[test]
    fn known_terms_are_found() {
        let known = [term(30.0, 3.0), term(20.0, 40.0), term(10.0, 900.0)];
        for count in 1..=3 {
            let known = &known[..count];
            let lags = target(known, 600);
            let variance: f64 = known.iter().map(|t| t.amplitude).sum::<f64>() + 35.0;
            let found = approximate(
                Target {
                    lags: &lags,
                    variance,
                    budget: variance - 32.0,
                },
                Terms::Exactly(count),
            );
            assert_eq!(found.len(), count, "{found:?}");
            for (found, known) in found.iter().zip(known) {
                assert!((found.tau / known.tau - 1.0).abs() < 0.02, "{found:?}");
                assert!((found.amplitude / known.amplitude - 1.0).abs() < 0.02);
            }
            assert!(agreement(&lags, &found).ic < 1e-3);
        }
    }

    #[test]
    fn as_few_terms_as_are_good_enough() {
        let one = target(&[term(5.0, 50.0)], 300);
        let of = |lags: &[f64]| {
            let target = Target {
                lags,
                variance: 50.0,
                budget: 40.0,
            };
            approximate(target, Terms::AtMost(3)).len()
        };
        assert_eq!(of(&one), 1);
        assert_eq!(of(&target(&[term(5.0, 5.0), term(5.0, 100.0)], 300)), 2);
    }

    #[test]
    fn the_budget_holds() {
        // A short scale of which only the tail is seen would like an amplitude of 20.
        let lags = target(&[term(20.0, 0.7), term(5.0, 30.0)], 100);
        let target = Target {
            lags: &lags,
            variance: 20.0,
            budget: 8.0,
        };
        let found = approximate(target, Terms::Exactly(2));
        let sum: f64 = found.iter().map(|t| t.amplitude).sum();
        assert!(sum < 8.5, "{found:?}");
    }

    #[test]
    fn what_has_no_terms_has_none() {
        let of = |lags: &[f64], variance: f64| {
            let target = Target {
                lags,
                variance,
                budget: 1.0,
            };
            approximate(target, Terms::AtMost(3))
        };
        assert!(of(&[-1.0; 50], 2.0).is_empty());
        assert!(of(&[0.0; 50], 2.0).is_empty());
        assert!(of(&[1.0; 50], 0.0).is_empty());
        assert!(of(&[1.0; 50], f64::NAN).is_empty());
        assert!(of(&[], 1.0).is_empty());
        assert!(of(&[f64::NAN; 50], 1.0).is_empty());
    }

    #[test]
    fn neighbours_are_merged() {
        let term = |amplitude, tau| Term { amplitude, tau };
        let terms = vec![term(1.0, 100.0), term(2.0, 1.0), term(1.0, 110.0)];
        let merged = merge(terms.clone(), 2);
        assert_eq!(merged.len(), 2);
        assert_eq!(merged[0], term(2.0, 1.0));
        assert_eq!(merged[1].amplitude, 2.0);
        assert!((merged[1].tau - f64::sqrt(11_000.0)).abs() < 1e-9);
        assert_eq!(merge(terms.clone(), 5).len(), 3);
        assert_eq!(merge(terms, 0).len(), 1);
    }
}
