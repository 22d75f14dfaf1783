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

use std::path::Path;

use super::model::Model;
use super::moments::{Histogram, Moments};

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
pub(super) fn read_counts(path: &Path) -> Result<Vec<u64>, crate::LabError> {
    let text = std::fs::read_to_string(path).map_err(crate::LabError::file(path))?;
    let lines = text.lines().enumerate().skip(1);
    let counts = lines.map(|(number, line)| {
        let last = line.rsplit(',').next().unwrap_or(line);
        last.trim().parse().map_err(|_| {
            let what = format!("{}, line {}", path.display(), number + 1);
            crate::LabError::program(what, format!("`{line}` has no count"))
        })
    });
    counts.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

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
