//! Estimators on series whose Hurst parameter is known.

use super::noise::{Drawn, counts, fractional_gaussian};
use super::*;
use crate::{FitOptions, Provenance, Random, Source, Superposition, autocovariance, fit};

const BINS: usize = 8192;
const SERIES: u64 = 6;

/// Mean and standard deviation of what the estimators say of several series.
fn all_of(of: impl Fn(u64) -> Vec<f64>) -> [(f64, f64); 3] {
    let all: Vec<[f64; 3]> = (0..SERIES)
        .map(|seed| {
            let found = Dependence::of(&of(seed)).unwrap();
            let estimates = [
                found.variance_time.estimate,
                found.rescaled_range,
                found.whittle,
            ];
            estimates.map(|estimate| estimate.unwrap().h)
        })
        .collect();
    std::array::from_fn(|place| {
        let n = all.len() as f64;
        let mean = all.iter().map(|h| h[place]).sum::<f64>() / n;
        let squares = all.iter().map(|h| (h[place] - mean).powi(2));
        (mean, (squares.sum::<f64>() / (n - 1.0)).sqrt())
    })
}

#[test]
fn the_noise_has_its_autocovariance() {
    for h in [0.3, 0.5, 0.8] {
        let mut random = Random::new(5);
        let series = fractional_gaussian(h, 1 << 17, &mut random);
        let found = autocovariance(&series, 4);
        for (lag, found) in found.iter().enumerate() {
            let k = lag as f64;
            let expected = f64::midpoint((k + 1.0).powf(2.0 * h), (k - 1.0).abs().powf(2.0 * h))
                - k.powf(2.0 * h);
            assert!(
                (found - expected).abs() < 0.03,
                "{h} {lag}: {found} {expected}"
            );
        }
    }
    let short = fractional_gaussian(0.7, 3, &mut Random::new(1));
    assert_eq!(short.len(), 3);
}

#[test]
fn the_hurst_parameter_of_noise_is_found() {
    for h in [0.5, 0.6, 0.7, 0.8, 0.9] {
        let found = all_of(|seed| fractional_gaussian(h, BINS, &mut Random::new(seed)));
        // The variance misses what moves the whole series: too low by 0.05 at 0.9; R/S is drawn towards 0.7.
        for ((mean, deviation), most) in found.into_iter().zip([0.07, 0.08, 0.03]) {
            assert!((mean - h).abs() < most, "{h}: {found:?}");
            assert!(deviation < 0.06, "{h}: {found:?}");
        }
    }
}

#[test]
fn a_poisson_process_has_no_dependence() {
    let poisson = Source::memoryless(vec![7.0], &[1.0]).unwrap();
    let poisson = Superposition::new(vec![poisson]).unwrap();
    let poisson = Model::new(1.0, poisson, None, Provenance::default()).unwrap();
    let found = all_of(|seed| {
        let counts = poisson.simulate(BINS, seed).unwrap();
        counts.values().iter().map(|c| f64::from(*c)).collect()
    });
    for ((mean, _), most) in found.into_iter().zip([0.04, 0.06, 0.04]) {
        assert!((mean - 0.5).abs() < most, "{found:?}");
    }
    let expected = Dependence::of_model(&poisson, BINS).unwrap();
    assert!((expected.variance_time.estimate.unwrap().h - 0.5).abs() < 1e-9);
    assert!((expected.whittle.unwrap().h - 0.5).abs() < 1e-6);
    assert_eq!(expected.rescaled_range, None);
}

#[test]
fn the_standard_error_of_whittle_is_how_far_it_spreads() {
    let series = |seed| fractional_gaussian(0.75, 2048, &mut Random::new(seed));
    let all: Vec<Estimate> = (0..60)
        .map(|seed| whittle::of(&series(seed)).unwrap())
        .collect();
    let squares = all.iter().map(|estimate| (estimate.h - 0.75).powi(2));
    let spread = (squares.sum::<f64>() / 60.0).sqrt();
    let said = all[0].standard_error;
    assert!((0.75..1.35).contains(&(spread / said)), "{spread} {said}");
}

#[test]
fn the_equations_expect_what_runs_have() {
    let sources = vec![
        Source::two_state(0.7, 12.0, 0.995).unwrap(),
        Source::two_state(0.6, 9.0, 0.9).unwrap(),
        Source::memoryless(vec![2.0, 9.0], &[0.4, 0.6]).unwrap(),
    ];
    let profile =
        crate::Profile::new(4096, 512, vec![0.5, 1.0, 1.5, 2.0, 1.0, 0.5, 0.5, 1.0]).unwrap();
    for profile in [None, Some(profile)] {
        let sources = Superposition::new(sources.clone()).unwrap();
        let model = Model::new(1.0, sources, profile, Provenance::default()).unwrap();
        let expected = Dependence::of_model(&model, 4096).unwrap();
        let runs = 40_u32;
        let mut curve = vec![0.0; expected.variance_time.curve.len()];
        let mut whittle = 0.0;
        for seed in 0..u64::from(runs) {
            let found = Dependence::of_counts(&model.simulate(4096, seed).unwrap()).unwrap();
            for (sum, (_, variance)) in curve.iter_mut().zip(&found.variance_time.curve) {
                *sum += variance / f64::from(runs);
            }
            whittle += found.whittle.unwrap().h / f64::from(runs);
        }
        for ((level, expected), mean) in expected.variance_time.curve.iter().zip(&curve) {
            assert!(
                (mean / expected - 1.0).abs() < 0.25,
                "{level}: {mean} {expected}"
            );
        }
        let expected = expected.whittle.unwrap().h;
        assert!((whittle - expected).abs() < 0.06, "{whittle} {expected}");
    }
}

#[test]
fn a_fitted_model_has_the_dependence_of_its_counts_over_their_scales() {
    let drawn = Drawn {
        h: 0.85,
        mean: 32.57,
        deviation: 0.35,
        bins: 17_280,
        bin_s: 10.0,
        seed: 1,
    };
    let counts = counts(drawn).unwrap();
    let fitted = fit(&counts, &FitOptions::default()).unwrap();
    let (of_counts, of_model) = (
        Dependence::of_counts(&counts).unwrap(),
        Dependence::of_model(&fitted.model, counts.len()).unwrap(),
    );
    let h = |found: &Dependence| {
        let slope = found.variance_time.estimate.unwrap().h;
        [slope, found.whittle.unwrap().h]
    };
    for (counted, modelled) in h(&of_counts).into_iter().zip(h(&of_model)) {
        assert!(counted > 0.7, "{counted}");
        assert!((counted - modelled).abs() < 0.1, "{counted} {modelled}");
    }
}

#[test]
fn what_is_too_short_or_always_the_same_says_nothing() {
    assert_eq!(Dependence::of(&[1.0; 511]), None);
    let same = Dependence::of(&[3.0; 600]).unwrap();
    assert_eq!(same.variance_time.estimate, None);
    assert_eq!((same.rescaled_range, same.whittle), (None, None));
    assert_eq!(levels(1, 12), [1, 2, 3, 4, 5, 6, 8, 10]);
}
