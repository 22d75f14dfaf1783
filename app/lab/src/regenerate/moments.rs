//! Mean, autocovariance and histogram of counts.
//!
//! What `linkweir model check` says of a model and counts.
//!
//! How far a path of a model is from the model, by chance alone.
//!
//! A path of half a minute has seen the bursts of its model some dozens of times; its mean, its
//! variance and all else are those of the model only so far. How far is not guessed: `linkweir model
//! simulate` draws a long path, which is cut into [`PATHS`] as long as the one that was captured, and each
//! of them is as far from the model as it is. A captured path may be [`MARGIN`] times as far as the
//! farthest of them. One path more is farther than the farthest of the others in one of `PATHS` + 1 cases;
//! with several figures compared in each run, that would be every tenth run or so. Times the margin it is
//! rare: of 4,000 further paths of the scenario's model between 4 and 26 were farther than
//! the farthest in each of the eight figures, and none was beyond the margin in any.

use super::model::Model;
use crate::error::LabError;
use crate::program::output;
use crate::testbed::Testbed;
use linkweir_testkit::gateway::Place;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::path::Path;

/// Lags at which autocovariances are compared, bins; 0 is the variance.
pub(super) const LAGS: [usize; 6] = [0, 1, 2, 4, 8, 16];
/// Lags over which the model is fitted and checked, bins.
pub(super) const FIT_LAGS: usize = 30;

/// Mean of counts, and their autocovariances at the lags that were asked for.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Moments {
    /// Arrivals in a bin.
    pub(super) mean: f64,
    /// At each of the lags; lag 0 is the variance.
    pub(super) covariances: Vec<f64>,
}

impl Moments {
    /// Of counts: sums over the pairs that are so far apart, divided by the number of bins (the usual
    /// estimator, which `linkweir model` has too).
    pub(super) fn of(counts: &[u64], lags: &[usize]) -> Self {
        let bins = counts.len().max(1) as f64;
        let mean = counts.iter().sum::<u64>() as f64 / bins;
        let apart: Vec<f64> = counts.iter().map(|count| *count as f64 - mean).collect();
        let at = |lag: &usize| {
            let pairs = apart.iter().zip(apart.iter().skip(*lag));
            pairs.map(|(a, b)| a * b).sum::<f64>() / bins
        };
        Self {
            mean,
            covariances: lags.iter().map(at).collect(),
        }
    }

    /// The mean and all covariances.
    pub(super) fn figures(&self) -> impl Iterator<Item = f64> + '_ {
        std::iter::once(self.mean).chain(self.covariances.iter().copied())
    }
}

/// Part of the bins that had so many arrivals.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Histogram(BTreeMap<u64, f64>);

impl Histogram {
    /// Of counts.
    pub(super) fn of(counts: &[u64]) -> Self {
        let part = 1.0 / counts.len().max(1) as f64;
        let mut parts = BTreeMap::new();
        for count in counts {
            *parts.entry(*count).or_insert(0.0) += part;
        }
        Self(parts)
    }

    /// Half of what two differ by: 0 for the same, 1 for nothing in common.
    pub(super) fn total_variation(&self, other: &Self) -> f64 {
        let at = |histogram: &Self, count: &u64| histogram.0.get(count).copied().unwrap_or(0.0);
        let mine = self
            .0
            .keys()
            .map(|count| (at(self, count) - at(other, count)).abs());
        let only_theirs = other
            .0
            .iter()
            .filter(|(count, _)| !self.0.contains_key(count));
        (mine.sum::<f64>() + only_theirs.map(|(_, part)| part).sum::<f64>()) / 2.0
    }

    /// Arrivals in a bin and part of the bins, in order.
    pub(super) fn points(&self) -> Vec<(f64, f64)> {
        self.0
            .iter()
            .map(|(count, part)| (*count as f64, *part))
            .collect()
    }
}

/// Its figures, by the equations of the model.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
pub(super) struct Checked {
    /// Bins that were counted.
    pub(super) bins: u64,
    /// Arrivals in a bin, counted.
    pub(super) mean_counted: f64,
    /// Arrivals in a bin, of the model.
    pub(super) mean_model: f64,
    /// Of the histograms.
    pub(super) total_variation: f64,
    /// Of the autocovariances from lag 1 on, the inequality coefficient of the paper.
    pub(super) ic: f64,
    /// The same with the variance.
    pub(super) ic_with_lag0: f64,
}

/// The object that it writes.
#[derive(Debug, Deserialize)]
struct Document {
    equations: Checked,
}

/// The lags that it compares, and 0.
pub(super) fn all_lags() -> Vec<usize> {
    (0..=FIT_LAGS).collect()
}

impl Checked {
    /// Asks it, and lets it draw `check.svg`.
    pub(super) fn of(testbed: &Testbed<'_>, model: &Path, counts: &Path) -> Result<Self, LabError> {
        let (model, counts) = (model.display().to_string(), counts.display().to_string());
        let (lags, plot) = (FIT_LAGS.to_string(), testbed.path("check.svg"));
        let plot = plot.display().to_string();
        let words = [
            "model", "check", &model, &counts, "--lags", &lags, "--plot", &plot, "--json",
        ];
        let text = output(testbed, Place::Client, &words)?;
        let document: Document = serde_json::from_slice(&text)
            .map_err(|error| LabError::program("linkweir model check", error))?;
        Ok(document.equations)
    }
}

/// The inequality coefficient as the paper prints it (sec. 3.2): the root of the squares of what counts
/// and model differ by over that of the squares of the counts'.
pub(super) fn inequality(counted: &Moments, model: &Moments, from: usize) -> f64 {
    let pairs = counted.covariances.iter().zip(&model.covariances);
    let (apart, whole) = pairs.skip(from).fold((0.0, 0.0), |(apart, whole), (x, y)| {
        (apart + (x - y) * (x - y), whole + x * x)
    });
    f64::sqrt(apart / whole)
}

/// Paths that are drawn.
pub(super) const PATHS: usize = 400;
/// How much farther than the farthest of them another may be.
pub(super) const MARGIN: f64 = 1.5;

/// What a model is, and how far a path of it may be from that.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Spread {
    /// By the model's equations.
    pub(super) moments: Moments,
    /// Of the long path.
    pub(super) histogram: Histogram,
    /// What the mean and each autocovariance may be apart.
    pub(super) tolerances: Vec<f64>,
    /// What the total variation of the histograms may be.
    pub(super) variation: f64,
}

impl Spread {
    /// Of a model by a long path of it, for paths of so many bins.
    pub(super) fn new(model: &Model, long: &[u64], bins: usize, lags: &[usize]) -> Self {
        let moments = model.moments(lags);
        let histogram = Histogram::of(long);
        let mut farthest = vec![0.0; 1 + lags.len()];
        let mut variation = 0.0_f64;
        for path in long.chunks_exact(bins.max(1)) {
            let figures = Moments::of(path, lags);
            for (most, apart) in farthest.iter_mut().zip(apart(&figures, &moments)) {
                *most = apart.max(*most);
            }
            variation = variation.max(Histogram::of(path).total_variation(&histogram));
        }
        Self {
            moments,
            histogram,
            tolerances: farthest.into_iter().map(|most| MARGIN * most).collect(),
            variation: MARGIN * variation,
        }
    }
}

fn apart<'a>(a: &'a Moments, b: &'a Moments) -> impl Iterator<Item = f64> + 'a {
    a.figures().zip(b.figures()).map(|(a, b)| (a - b).abs())
}

/// Reads counts: a CSV whose last column they are.
pub(super) fn read_counts(path: &Path) -> Result<Vec<u64>, LabError> {
    let text = std::fs::read_to_string(path).map_err(LabError::file(path))?;
    let lines = text.lines().enumerate().skip(1);
    let counts = lines.map(|(number, line)| {
        let last = line.rsplit(',').next().unwrap_or(line);
        last.trim().parse().map_err(|_| {
            let what = format!("{}, line {}", path.display(), number + 1);
            LabError::program(what, format!("`{line}` has no count"))
        })
    });
    counts.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_of_few_counts() {
        let moments = Moments::of(&[1, 3, 1, 3], &[0, 1, 2]);
        assert_eq!(moments.mean, 2.0);
        assert_eq!(moments.covariances, [1.0, -0.75, 0.5]);
        assert_eq!(moments.figures().count(), 4);
    }

    #[test]
    fn total_variation_is_half_the_difference() {
        let a = Histogram::of(&[1, 1, 2, 3]);
        let b = Histogram::of(&[1, 2, 2, 5]);
        assert!((a.total_variation(&b) - 0.5).abs() < 1e-12);
        assert_eq!(a.total_variation(&a), 0.0);
        assert!((a.total_variation(&Histogram::of(&[7])) - 1.0).abs() < 1e-12);
        assert_eq!(a.points(), [(1.0, 0.5), (2.0, 0.25), (3.0, 0.25)]);
    }

    #[test]
    fn the_coefficient_of_the_paper() {
        let moments = |covariances: &[f64]| Moments {
            mean: 0.0,
            covariances: covariances.to_vec(),
        };
        let (counted, model) = (moments(&[9.0, 3.0, 4.0]), moments(&[1.0, 1.5, 2.0]));
        assert!((inequality(&counted, &model, 1) - 0.5).abs() < 1e-12);
        let with_variance = ((64.0 + 2.25 + 4.0_f64) / (81.0 + 25.0)).sqrt();
        assert!((inequality(&counted, &model, 0) - with_variance).abs() < 1e-12);
    }

    #[test]
    fn the_farthest_path_decides() {
        let text = r#"{"sources":[{"rates":[2.0],"P":[[1.0]]}]}"#;
        let model: Model = serde_json::from_str(text).unwrap();
        // Two paths of two bins: means 2 and 5.
        let spread = Spread::new(&model, &[1, 3, 4, 6, 9], 2, &[0]);
        assert!((spread.moments.mean - 2.0).abs() < 1e-9);
        assert!((spread.tolerances[0] - 3.0 * MARGIN).abs() < 1e-9);
        assert!(spread.variation > 0.0);
    }

    #[test]
    fn counts_are_the_last_column() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("counts.csv");
        std::fs::write(&path, "bin_start,count\n2026-11-22 13:00:00.01,5\n7\n").unwrap();
        assert_eq!(read_counts(&path).unwrap(), [5, 7]);
        std::fs::write(&path, "count\nmany\n").unwrap();
        let wrong = read_counts(&path).unwrap_err().to_string();
        assert!(
            wrong.contains("line 2") && wrong.contains("many"),
            "{wrong}"
        );
    }
}
