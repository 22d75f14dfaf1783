//! Autocovariances and histograms, side by side.

use super::moments::{Histogram, Moments};
use super::tables::Observations;
use crate::report::{Axis, Curve, Picture, Unit};

/// All of them; `lags` are those of the models' moments.
pub(super) fn all(observations: &Observations<'_>, lags: &[usize]) -> Vec<Picture> {
    let [known, fitted] = observations.models;
    let bin_s = observations.settings.bin.as_secs_f64();
    let (first, second) = (&observations.first.counts, &observations.second.counts);
    let of = |counts: &[u64]| Moments::of(counts, lags);
    let covariances = [
        ("known model", known.clone()),
        ("first capture", of(first)),
        ("fitted model", fitted.clone()),
        ("second capture", of(second)),
    ];
    let histograms = [
        ("known model", observations.known.histogram.clone()),
        ("first capture", Histogram::of(first)),
        ("fitted model", observations.fitted.histogram.clone()),
        ("second capture", Histogram::of(second)),
    ];
    let curve = |name: &str, points| Curve {
        name: name.to_owned(),
        points,
    };
    let axis = |name: &str, unit| Axis {
        name: name.to_owned(),
        unit,
        is_logarithmic: false,
    };
    // The variance would hide what is behind it.
    let points = |moments: &Moments| {
        let pairs = lags.iter().zip(&moments.covariances).skip(1);
        pairs
            .map(|(lag, value)| (*lag as f64 * bin_s, *value))
            .collect()
    };
    let starts = |counts: &[u64]| {
        let places = counts.iter().enumerate();
        places
            .map(|(place, count)| (place as f64 * bin_s, *count as f64))
            .collect()
    };
    vec![
        Picture {
            title: "Autocovariance of sessions in a bin".to_owned(),
            x: axis("lag", Unit::Seconds),
            y: axis("autocovariance", Unit::Number),
            curves: covariances
                .iter()
                .map(|(name, moments)| curve(name, points(moments)))
                .collect(),
        },
        Picture {
            title: "Histogram of sessions in a bin".to_owned(),
            x: axis("sessions in a bin", Unit::Count),
            y: axis("part of the bins", Unit::Part),
            curves: histograms
                .iter()
                .map(|(name, histogram)| curve(name, histogram.points()))
                .collect(),
        },
        Picture {
            title: "Sessions that begin in a bin".to_owned(),
            x: axis("time", Unit::Seconds),
            y: axis("sessions", Unit::Count),
            curves: vec![
                curve("first capture", starts(first)),
                curve("second capture", starts(second)),
            ],
        },
    ]
}
