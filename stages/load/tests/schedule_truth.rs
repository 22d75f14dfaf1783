//! An hour of a dMMPP schedule, planned without a network: its counts have the mean, the histogram and
//! the autocovariance of the model.
//!
//! Tolerances are four standard errors, and these are of theory, because counts of a correlated process
//! say less than as many independent ones. With `f(t)` the profile's factor in bin t (1 without one),
//! R the rate of the sources, gamma its autocovariance, and
//! `G(s,t) = f(s) f(t) gamma(s-t) + [s = t] f(t) E R` the autocovariance of the counts over n bins:
//!
//! - mean: its variance is the sum of all `G(s,t)`, over n^2;
//! - share of the bins whose count is in a class: a count is in it with probability `p(t)`, and given the
//!   rate with one that varies by `v(t)`. The chains are reversible with a second eigenvalue of at most r, so
//!   that two such probabilities k bins apart have a covariance of at most `r^k sqrt(v(s) v(t))`. The
//!   variance of the share is therefore at most the sum of `p(1-p) + 2 v r/(1-r)`, over n^2;
//! - autocovariance at lag k: Bartlett's formula, the sum of `G(t,u) G(t+k,u+k) + G(t,u+k) G(t+k,u)`, over
//!   n^2. It is exact for a normal process. The two-state sources here are low and high for equally long, which
//!   makes their fourth cumulant negative, and the true variance is less.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::cast_precision_loss,
    reason = "a test"
)]

use linkweir_load::arrivals::{
    Arrivals as _, Exact, Limits, Modulated, Plan, Schedule, rate_factor,
};
use linkweir_model::hurst::Dependence;
use linkweir_model::{Counts, Model, Profile, Provenance, Random, Source, Superposition};

const BIN_NS: u64 = 100_000_000;
/// An hour of them.
const BINS: usize = 36_000;
const DURATION_NS: u64 = BINS as u64 * BIN_NS;
/// Sessions a second that are asked for; the model itself has 392.
const WANTED: f64 = 450.0;
/// Second eigenvalue of the slower source.
const SLOW: f64 = 0.95;
/// Beyond so many bins nothing is left of it: 0.95^400 is 1e-9.
const REACH: usize = 400;
const STANDARD_ERRORS: f64 = 4.0;
/// Upper ends of the classes of the histogram; the last has no end.
const CLASSES: [usize; 9] = [15, 25, 32, 38, 44, 50, 57, 66, 80];
const LAGS: [usize; 6] = [0, 1, 2, 5, 10, 20];

fn model(persistence: f64, profile: Option<Profile>) -> Model {
    let sources = vec![
        Source::two_state(0.5, 20.0, persistence).unwrap(),
        Source::two_state(0.5, 12.0, 0.5).unwrap(),
        Source::memoryless(vec![12.0, 22.0, 36.0], &[0.3, 0.4, 0.3]).unwrap(),
    ];
    let superposition = Superposition::new(sources).unwrap();
    Model::new(0.1, superposition, profile, Provenance::default()).unwrap()
}

/// Counts of the bins of a schedule, as `linkweir load` makes it from `mmpp:MODEL@RATE`.
fn played(model: &Model, seed: u64) -> Vec<usize> {
    let factor = rate_factor(model.mean(), BIN_NS, WANTED);
    let random = Random::part(seed, 1);
    let modulated = Modulated::new(model.sampler(seed), BIN_NS, factor, random);
    counts(Plan::Modulated(modulated))
}

fn counts(plan: Plan) -> Vec<usize> {
    let limits = Limits {
        duration_ns: DURATION_NS,
        ..Limits::NONE
    };
    let mut schedule = Schedule::new(plan, limits);
    let mut counts = vec![0; BINS];
    while let Some(at) = schedule.next() {
        counts[usize::try_from(at / BIN_NS).unwrap()] += 1;
    }
    counts
}

/// What the model says of the counts.
struct Theory {
    mean: f64,
    /// Autocovariance of the rate.
    gamma: Vec<f64>,
    /// The profile.
    factors: Vec<f64>,
    /// What the rate may be, and how probable that is.
    law: Vec<(f64, f64)>,
}

impl Theory {
    fn of(model: &Model) -> Self {
        let model = model.with_rate_per_s(WANTED).unwrap();
        let sources = model.superposition();
        let mut gamma = sources.autocovariance(REACH);
        // What a Poisson process adds.
        gamma[0] -= sources.mean();
        let factors = model.profile().map(|profile| profile.first(BINS));
        Self {
            mean: sources.mean(),
            gamma,
            factors: factors.unwrap_or_else(|| vec![1.0; BINS]),
            law: sources.rate_law(),
        }
    }

    /// `G(s,t)`; 0 where one of them is outside of the hour.
    fn covariance(&self, s: usize, t: usize) -> f64 {
        let (Some(a), Some(b)) = (self.factors.get(s), self.factors.get(t)) else {
            return 0.0;
        };
        let together = self.gamma.get(s.abs_diff(t)).copied().unwrap_or(0.0);
        let alone = if s == t { a * self.mean } else { 0.0 };
        a * b * together + alone
    }

    /// Expected mean, and its standard error.
    fn mean(&self) -> (f64, f64) {
        let mean = self.mean * self.factors.iter().sum::<f64>() / BINS as f64;
        let near = |t: usize| t.saturating_sub(REACH)..=t + REACH;
        let all = (0..BINS).map(|t| near(t).map(|u| self.covariance(t, u)).sum::<f64>());
        (mean, all.sum::<f64>().sqrt() / BINS as f64)
    }

    /// Expected shares of the classes, and their standard errors.
    fn shares(&self) -> Vec<(f64, f64)> {
        let mut sums = vec![(0.0, 0.0); CLASSES.len() + 1];
        for factor in &self.factors {
            let given: Vec<_> = self
                .law
                .iter()
                .map(|(rate, q)| (classes(rate * factor), q))
                .collect();
            for (class, (shares, variances)) in sums.iter_mut().enumerate() {
                let p: f64 = given.iter().map(|(of, q)| of[class] * **q).sum();
                let v: f64 = given
                    .iter()
                    .map(|(of, q)| (of[class] - p).powi(2) * **q)
                    .sum();
                *shares += p;
                *variances += p * (1.0 - p) + 2.0 * v * SLOW / (1.0 - SLOW);
            }
        }
        let n = BINS as f64;
        sums.into_iter()
            .map(|(p, variance)| (p / n, f64::sqrt(variance) / n))
            .collect()
    }

    /// Expected autocovariance about the known means at a lag, and its standard error.
    fn autocovariance(&self, lag: usize) -> (f64, f64) {
        let mut expected = 0.0;
        let mut variance = 0.0;
        for t in 0..BINS - lag {
            expected += self.covariance(t, t + lag);
            for u in t.saturating_sub(REACH)..=(t + REACH).min(BINS - 1 - lag) {
                variance += self.covariance(t, u) * self.covariance(t + lag, u + lag)
                    + self.covariance(t, u + lag) * self.covariance(t + lag, u);
            }
        }
        (expected / BINS as f64, variance.sqrt() / BINS as f64)
    }
}

/// Probabilities of the classes of a count that is Poisson of this mean.
fn classes(mean: f64) -> Vec<f64> {
    let mut all = vec![0.0; CLASSES.len() + 1];
    let mut p = (-mean).exp();
    let mut below = 0.0;
    for count in 0..=CLASSES[CLASSES.len() - 1] {
        all[class_of(count)] += p;
        below += p;
        p *= mean / (count + 1) as f64;
    }
    all[CLASSES.len()] = 1.0 - below;
    all
}

fn class_of(count: usize) -> usize {
    CLASSES.iter().take_while(|end| **end < count).count()
}

/// How far the counts are from what a model says, in standard errors, each with its name.
fn deviations(counts: &[usize], model: &Model) -> Vec<(String, f64)> {
    let theory = Theory::of(model);
    let n = BINS as f64;
    let mut all = Vec::new();
    let mut note = |what: String, found: f64, (expected, error): (f64, f64)| {
        // A tolerance that allows everything is none.
        assert!(
            error > 0.0 && STANDARD_ERRORS * error < 0.5 * expected,
            "{what}: {error} of {expected}"
        );
        all.push((
            format!("{what}: {found}, expected {expected} +- {error}"),
            (found - expected) / error,
        ));
    };
    note(
        "mean".to_owned(),
        counts.iter().sum::<usize>() as f64 / n,
        theory.mean(),
    );
    let mut shares = [0.0; CLASSES.len() + 1];
    for count in counts {
        shares[class_of(*count)] += 1.0 / n;
    }
    for (class, (found, expected)) in shares.iter().zip(theory.shares()).enumerate() {
        note(format!("class {class}"), *found, expected);
    }
    let pairs = theory.factors.iter().zip(counts);
    let off: Vec<f64> = pairs
        .map(|(factor, count)| *count as f64 - factor * theory.mean)
        .collect();
    for lag in LAGS {
        let found = off.iter().zip(&off[lag..]).map(|(a, b)| a * b).sum::<f64>() / n;
        note(format!("lag {lag}"), found, theory.autocovariance(lag));
    }
    all
}

fn agrees(model: &Model, seed: u64) {
    for (what, off) in deviations(&played(model, seed), model) {
        assert!(
            off.abs() <= STANDARD_ERRORS,
            "seed {seed}: {what}: {off:.1} standard errors"
        );
    }
}

#[test]
fn an_hour_of_a_stationary_model() {
    let model = model(SLOW, None);
    for seed in 1..=3 {
        agrees(&model, seed);
    }
}

#[test]
fn an_hour_of_a_model_with_a_profile() {
    // Twenty minutes of rise and fall, three times.
    let profile = Profile::new(12_000, 2_000, vec![0.6, 0.8, 1.3, 1.5, 1.1, 0.7]).unwrap();
    for seed in 4..=5 {
        agrees(&model(SLOW, Some(profile.clone())), seed);
    }
}

/// The tolerances can tell models apart: the same rates that stay for a third of the time.
#[test]
fn another_persistence_is_seen() {
    let counts = played(&model(0.85, None), 1);
    let worst = deviations(&counts, &model(SLOW, None));
    let worst = worst.iter().map(|(_, off)| off.abs()).fold(0.0, f64::max);
    assert!(worst > 2.0 * STANDARD_ERRORS, "{worst}");
}

/// What the paper asks of its model: arrivals that depend on themselves over many time scales.
#[test]
fn generated_arrivals_are_as_dependent_as_their_model() {
    // High and low for three, thirty and three hundred bins.
    let two = |high, persistence| Source::two_state(0.5, high, persistence).unwrap();
    let rest = Source::memoryless(vec![12.0, 22.0, 36.0], &[0.3, 0.4, 0.3]).unwrap();
    let sources = vec![two(10.0, 0.7), two(9.0, 0.97), two(8.0, 0.997), rest];
    let superposition = Superposition::new(sources).unwrap();
    let model = Model::new(0.1, superposition, None, Provenance::default()).unwrap();
    let expected = Dependence::of_model(&model.with_rate_per_s(WANTED).unwrap(), BINS).unwrap();
    let expected =
        [expected.variance_time.estimate, expected.whittle].map(|found| found.unwrap().h);
    assert!(expected.iter().all(|h| *h > 0.7), "{expected:?}");
    // What is wanted for an hour.
    let sessions = 450 * 3600;
    let exact = |seed| {
        let source = model.sampler(seed);
        Exact::new(source, BIN_NS, DURATION_NS, sessions, Random::part(seed, 1)).unwrap()
    };
    for seed in 1..=2 {
        let with_mean = counts(Plan::Exact(exact(seed)));
        assert_eq!(with_mean.iter().sum::<usize>() as u64, sessions);
        for played in [played(&model, seed), with_mean] {
            let values = played.iter().map(|count| u32::try_from(*count).unwrap());
            let counts = Counts::new(0.1, values.collect()).unwrap();
            let found = Dependence::of_counts(&counts).unwrap();
            let range = found.rescaled_range.unwrap().h;
            let found = [found.variance_time.estimate, found.whittle].map(|found| found.unwrap().h);
            for (found, expected) in found.iter().zip(expected) {
                assert!(
                    (found - expected).abs() < 0.08,
                    "seed {seed}: {found} {expected}"
                );
            }
            assert!(range > 0.6, "seed {seed}: {range}");
        }
    }
}
