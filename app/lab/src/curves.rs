//! Many times made into few points.

use crate::report::{Axis, Curve, Picture, Unit};

/// Points of a distribution.
const POINTS: usize = 200;

/// The value below which this part of the sorted ones lies.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "between 0 and the last index"
)]
pub(crate) fn quantile(sorted: &[f64], part: f64) -> Option<f64> {
    let last = sorted.len().checked_sub(1)?;
    let index = (last as f64 * part.clamp(0.0, 1.0)).round() as usize;
    sorted.get(index).copied()
}

/// Points of the complementary distribution of sorted values, evenly over its logarithm: value, and the
/// part that is larger.
pub(crate) fn complementary(sorted: &[f64]) -> Vec<(f64, f64)> {
    let count = sorted.len();
    let mut points: Vec<(f64, f64)> = Vec::new();
    for step in 0..POINTS {
        let part = (count as f64).powf(-(step as f64) / POINTS as f64);
        if let Some(value) = quantile(sorted, 1.0 - part) {
            points.push((value, part));
        }
    }
    points.dedup_by(|a, b| a.0 <= b.0);
    points
}

/// How response times are distributed: for each observer, the part of its times that is longer.
pub(crate) fn response_times(title: String, observers: Vec<(&str, Vec<f64>)>) -> Picture {
    let axis = |name: &str, unit| Axis {
        name: name.to_owned(),
        unit,
        is_logarithmic: true,
    };
    let curves = observers.into_iter().map(|(name, mut times)| {
        times.sort_by(f64::total_cmp);
        Curve {
            name: name.to_owned(),
            points: complementary(&times),
        }
    });
    Picture {
        title,
        x: axis("response time", Unit::Seconds),
        y: axis("part that is longer", Unit::Part),
        curves: curves.collect(),
    }
}

/// Means of what happened in each step of time: `(when, what)`, in seconds; steps without anything
/// have no point.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a time of the run in steps"
)]
pub(crate) fn means_over_time(values: &[(f64, f64)], step_s: f64) -> Vec<(f64, f64)> {
    let mut sums: Vec<(f64, u32)> = Vec::new();
    for &(when, what) in values {
        let place = (when / step_s).max(0.0) as usize;
        if sums.len() <= place {
            sums.resize(place + 1, (0.0, 0));
        }
        if let Some((sum, count)) = sums.get_mut(place) {
            *sum += what;
            *count += 1;
        }
    }
    let points = sums.iter().enumerate().filter(|(_, (_, count))| *count > 0);
    points
        .map(|(place, (sum, count))| (place as f64 * step_s, sum / f64::from(*count)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_of_few() {
        assert_eq!(quantile(&[], 0.5), None);
        assert_eq!(quantile(&[1.0, 2.0, 3.0], 0.5), Some(2.0));
        assert_eq!(quantile(&[1.0, 2.0, 3.0], 1.0), Some(3.0));
        assert_eq!(quantile(&[1.0, 2.0, 3.0], 0.0), Some(1.0));
    }

    #[test]
    fn a_complementary_distribution_falls() {
        let values: Vec<f64> = (1..=1000).map(f64::from).collect();
        let points = complementary(&values);
        let falls = |pair: &[(f64, f64)]| matches!(pair, [a, b] if a.0 < b.0 && a.1 > b.1);
        assert!(points.windows(2).all(falls));
        assert!(points.len() > 50 && points.last().unwrap().0 > 990.0);
    }

    #[test]
    fn means_are_those_of_their_step() {
        let values = [(0.01, 1.0), (0.09, 3.0), (0.35, 7.0)];
        let means = means_over_time(&values, 0.1);
        assert_eq!(means.len(), 2);
        assert_eq!(means[0], (0.0, 2.0));
        assert!((means[1].0 - 0.3).abs() < 1e-12 && means[1].1 == 7.0);
    }
}
