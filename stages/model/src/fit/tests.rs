//! Known models are found again, and what cannot be fitted is refused.

use super::*;
use crate::source::Source;

fn model(sources: Vec<Source>) -> Model {
    let superposition = Superposition::new(sources).unwrap();
    Model::new(1.0, superposition, None, Provenance::default()).unwrap()
}

fn asked(lags: usize) -> FitOptions {
    FitOptions {
        lags: Some(lags),
        ..FitOptions::default()
    }
}

/// The persistence of the first source is found within 3 % of its time constant, its amplitude and
/// the rates within 5 %.
#[test]
fn a_known_two_state_source_is_found() {
    let tau = 12.0_f64;
    let known = model(vec![
        Source::two_state(0.7, 24.0, (-1.0 / tau).exp()).unwrap(),
        Source::memoryless(vec![10.0], &[1.0]).unwrap(),
    ]);
    let counts = known.simulate(400_000, 1).unwrap();
    let options = FitOptions {
        scales: Some(1),
        ..asked(60)
    };
    let fitted = fit(&counts, &options).unwrap();
    let [scale] = fitted.scales[..] else {
        panic!("{:?}", fitted.scales);
    };
    assert!((scale.tau / tau - 1.0).abs() < 0.03, "{scale:?}");
    let amplitude = 0.7 * 0.3 * 24.0 * 24.0;
    assert!(
        (scale.amplitude / amplitude - 1.0).abs() < 0.05,
        "{scale:?}"
    );
    assert!((scale.low - 0.7).abs() < 0.01, "{scale:?}");
    let sources = fitted.model.superposition().sources();
    assert_eq!(fitted.model.superposition().states(), 2);
    assert!((sources[0].rates()[1] / 24.0 - 1.0).abs() < 0.05);
    assert!((sources[1].rates()[0] / 10.0 - 1.0).abs() < 0.05);
    assert!(fitted.check.mean_error.abs() < 1e-9);
    assert!(fitted.check.total_variation < 0.02);
}

#[test]
fn two_time_scales_and_a_marginal_are_found() {
    let known = model(vec![
        Source::two_state(0.8, 20.0, (-1.0_f64 / 4.0).exp()).unwrap(),
        Source::two_state(0.5, 14.0, (-1.0_f64 / 80.0).exp()).unwrap(),
        Source::memoryless(vec![5.0, 30.0], &[0.6, 0.4]).unwrap(),
    ]);
    let counts = known.simulate(1_000_000, 2).unwrap();
    let fitted = fit(&counts, &asked(300)).unwrap();
    let taus: Vec<f64> = fitted.scales.iter().map(|scale| scale.tau).collect();
    assert_eq!(taus.len(), 2, "{taus:?}");
    assert!((taus[0] / 4.0 - 1.0).abs() < 0.15, "{taus:?}");
    assert!((taus[1] / 80.0 - 1.0).abs() < 0.15, "{taus:?}");
    assert!(
        fitted.check.autocovariance.ic < 0.0235,
        "{:?}",
        fitted.check.autocovariance
    );
    // Other shares of time give nearly the same marginal: those that were put in need not come out.
    let apart = fitted.check.total_variation;
    assert!(apart < 0.03, "{apart}");
    assert!(fitted.model.superposition().states() <= 64);
    // Against the model that made it, not only against what it made.
    let (a, b) = (
        known.superposition().autocovariance(300),
        fitted.model.superposition().autocovariance(300),
    );
    assert!(Agreement::of(&a[1..], &b[1..]).ic < 0.08);
}

#[test]
fn poisson_arrivals_have_one_state() {
    let known = model(vec![Source::memoryless(vec![20.0], &[1.0]).unwrap()]);
    let counts = known.simulate(20_000, 5).unwrap();
    let fitted = fit(&counts, &FitOptions::default()).unwrap();
    assert_eq!(fitted.model.superposition().states(), 1);
    assert!((fitted.model.mean() / counts.mean() - 1.0).abs() < 1e-12);
}

#[test]
fn a_trend_goes_into_the_profile_and_the_rest_into_sources() {
    let profile = (0..96).map(|i| 1.0 + 0.7 * (f64::from(i) * 0.131).sin());
    let profile = crate::Profile::new(48_000, 500, profile.collect()).unwrap();
    let sources = vec![
        Source::two_state(0.6, 30.0, (-1.0_f64 / 5.0).exp()).unwrap(),
        Source::memoryless(vec![20.0], &[1.0]).unwrap(),
    ];
    let superposition = Superposition::new(sources).unwrap();
    let known = Model::new(1.0, superposition, Some(profile), Provenance::default()).unwrap();
    let counts = known.simulate(48_000, 3).unwrap();
    let options = FitOptions {
        profile_s: Some(1500.0),
        ..asked(40)
    };
    let fitted = fit(&counts, &options).unwrap();
    let [scale] = fitted.scales[..] else {
        panic!("{:?}", fitted.scales);
    };
    assert!((scale.tau / 5.0 - 1.0).abs() < 0.1, "{scale:?}");
    let amplitude = 0.6 * 0.4 * 900.0;
    assert!((scale.amplitude / amplitude - 1.0).abs() < 0.1, "{scale:?}");
    assert!(
        fitted.check.mean_error.abs() < 1e-9,
        "{}",
        fitted.check.mean_error
    );
    assert!(fitted.check.total_variation < 0.03);
    assert!(
        fitted.check.autocovariance.ic < 0.03,
        "{:?}",
        fitted.check.autocovariance
    );
    let [known, found] = [&known, &fitted.model].map(|m| m.profile().unwrap().first(48_000));
    let worst = known.iter().zip(&found).map(|(a, b)| (a - b).abs());
    assert!(worst.fold(0.0, f64::max) < 0.2);
}

#[test]
fn a_number_of_states_can_be_asked_for() {
    let known = model(vec![
        Source::two_state(0.7, 24.0, 0.95).unwrap(),
        Source::memoryless(vec![4.0, 10.0, 30.0], &[0.3, 0.4, 0.3]).unwrap(),
    ]);
    let counts = known.simulate(30_000, 1).unwrap();
    for (states, scales) in [(6, None), (1, None), (5, None), (14, Some(1)), (3, Some(0))] {
        let options = FitOptions {
            states: Some(states),
            scales,
            ..asked(50)
        };
        let fitted = fit(&counts, &options).unwrap();
        assert_eq!(fitted.model.superposition().states(), states);
    }
    for (states, scales) in [(0, None), (65, None), (5, Some(1)), (6, Some(2))] {
        let options = FitOptions {
            states: Some(states),
            scales,
            ..asked(50)
        };
        let fault = fit(&counts, &options).unwrap_err();
        assert!(matches!(fault, FitError::States { .. }), "{fault}");
    }
}

#[test]
fn what_cannot_be_fitted_is_refused() {
    let of = |values: Vec<u32>, options: FitOptions| {
        fit(&Counts::new(1.0, values).unwrap(), &options).unwrap_err()
    };
    let plain = FitOptions::default;
    assert_eq!(of(vec![1; 99], plain()), FitError::TooShort { bins: 99 });
    assert_eq!(of(vec![4; 500], plain()), FitError::Constant { count: 4 });
    assert_eq!(of(vec![0; 500], plain()), FitError::Constant { count: 0 });
    let few: Vec<u32> = (0..500).map(|i| u32::from(i % 6 == 0)).collect();
    assert_eq!(of(few, plain()), FitError::Few { arrivals: 84 });
    let some: Vec<u32> = (0..500).map(|i| i % 7).collect();
    for lags in [0, 251, usize::MAX] {
        let fault = of(some.clone(), asked(lags));
        assert!(matches!(fault, FitError::Lags { .. }), "{fault}");
    }
    let scales = FitOptions {
        scales: Some(5),
        ..plain()
    };
    assert_eq!(of(some.clone(), scales), FitError::Scales(5));
    for window in [0.0, -3.0, f64::NAN, f64::INFINITY, 500.0] {
        let options = FitOptions {
            profile_s: Some(window),
            ..plain()
        };
        let fault = of(some.clone(), options);
        assert!(matches!(fault, FitError::Window(_)), "{fault}");
    }
}

#[test]
fn strange_series_have_a_model_or_an_error() {
    let n = 2000_usize;
    let series: [Vec<u32>; 7] = [
        // One burst at the end, in the middle, in one bin.
        (0..n)
            .map(|i| if i < n - 1 { 0 } else { 1_000_000 })
            .collect(),
        (0..n)
            .map(|i| if i / 100 == 9 { 5000 } else { 0 })
            .collect(),
        (0..n).map(|i| u32::from(i == 700)).collect(),
        // Less chance than Poisson; a rising line; the largest counts; up and down.
        (0..n).map(|i| 100 + u32::from(i % 2 == 0)).collect(),
        (0..n).map(|i| u32::try_from(i).unwrap()).collect(),
        (0..n)
            .map(|i| if i % 3 == 0 { u32::MAX } else { 0 })
            .collect(),
        (0..n).map(|i| if i % 2 == 0 { 40 } else { 0 }).collect(),
    ];
    for (number, values) in series.into_iter().enumerate() {
        let counts = Counts::new(1.0, values).unwrap();
        for profile_s in [None, Some(200.0)] {
            let options = FitOptions {
                profile_s,
                ..FitOptions::default()
            };
            match fit(&counts, &options) {
                Ok(fitted) => {
                    let error = fitted.model.mean() / counts.mean() - 1.0;
                    assert!(error.abs() < 1e-6, "{number}: {error}");
                    let again = Model::from_json(&fitted.model.to_json()).unwrap();
                    assert!(again.sampler(1).next_rate().is_finite(), "{number}");
                }
                Err(fault) => assert!(
                    matches!(
                        fault,
                        FitError::Infeasible { .. }
                            | FitError::Range
                            | FitError::Few { arrivals: 1 }
                    ),
                    "{number}: {fault}"
                ),
            }
        }
    }
}
