//! Where a model comes from, and how well it fitted there.
//!
//! How well two series agree.

use serde::{Deserialize, Serialize};

/// Where a model comes from. All of it is information: nothing is computed from it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Provenance {
    /// What was counted: a file's name, say.
    pub source: String,
    /// Bins that were counted.
    pub bins: u64,
    /// Arrivals per bin that were counted.
    pub mean: f64,
    /// Lags of the autocovariance over which it was fitted.
    pub lags: u64,
    /// When it was fitted, as the caller says it.
    pub date: String,
    /// By which version of which program.
    pub program: String,
    /// How well it fitted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub statistics: Option<Statistics>,
}

/// How well a model fitted the counts that it was fitted to, by its equations.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Statistics {
    /// Lags of the autocovariance that were compared.
    pub lags: u64,
    /// Difference of the means, in parts of the counted one.
    pub mean_error: f64,
    /// Half the sum of the differences of the histograms.
    pub total_variation: f64,
    /// Autocovariance from lag 1 on.
    pub autocovariance: Agreement,
    /// Autocovariance with lag 0, the variance.
    pub autocovariance_with_lag0: Agreement,
    /// Logarithm of the probability of the counts; absent where it was not computed or is -infinity.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub log_likelihood: Option<f64>,
}

/// Two coefficients of how far a series is from another; 0 where they are the same.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Agreement {
    /// The inequality coefficient as printed in the paper (sec. 3.2):
    /// `sqrt(sum (x - y)^2 / sum x^2)`, where `x` is what was counted.
    pub ic: f64,
    /// Theil's: `sqrt(mean (x - y)^2) / (sqrt(mean x^2) + sqrt(mean y^2))`. About half of `ic` where
    /// the two are near each other, never above 1.
    pub theil: f64,
}

impl Agreement {
    /// Of what was counted (`x`) and what a model has (`y`), as far as both go. 0 for two series of
    /// zeros; where only `x` is zero, `ic` is 1 as if `y` were `x`.
    #[must_use]
    pub fn of(x: &[f64], y: &[f64]) -> Self {
        let pairs = || x.iter().zip(y);
        let apart = pairs().map(|(x, y)| (x - y) * (x - y)).sum::<f64>().sqrt();
        let of_x = pairs().map(|(x, _)| x * x).sum::<f64>().sqrt();
        let of_y = pairs().map(|(_, y)| y * y).sum::<f64>().sqrt();
        let over = |part: f64, whole: f64| if part > 0.0 { part / whole } else { 0.0 };
        Self {
            ic: over(apart, if of_x > 0.0 { of_x } else { of_y }),
            theil: over(apart, of_x + of_y),
        }
    }

    /// With 0 for what is not a number or infinite.
    pub(crate) fn finite(self) -> Self {
        let finite = |value: f64| if value.is_finite() { value } else { 0.0 };
        Self {
            ic: finite(self.ic),
            theil: finite(self.theil),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn coefficients() {
        let same = Agreement::of(&[1.0, 2.0], &[1.0, 2.0]);
        assert_eq!((same.ic, same.theil), (0.0, 0.0));
        let half = Agreement::of(&[3.0, 4.0], &[1.5, 2.0]);
        assert!((half.ic - 0.5).abs() < 1e-15);
        assert!((half.theil - 1.0 / 3.0).abs() < 1e-15);
        // Against nothing: all of it is missing.
        let none = Agreement::of(&[3.0, 4.0], &[0.0, 0.0]);
        assert_eq!((none.ic, none.theil), (1.0, 1.0));
        let zeros = Agreement::of(&[0.0], &[0.0]);
        assert_eq!((zeros.ic, zeros.theil), (0.0, 0.0));
        assert_eq!(Agreement::of(&[0.0], &[2.0]).ic, 1.0);
    }
}
