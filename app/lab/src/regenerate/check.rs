//! What `linkweir model check` says of a model and counts.

use std::path::Path;

use linkweir_testkit::gateway::Place;
use serde::Deserialize;

use super::moments::{FIT_LAGS, Moments};
use crate::error::LabError;
use crate::program::output;
use crate::testbed::Testbed;

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

#[cfg(test)]
mod tests {
    use super::*;

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
}
