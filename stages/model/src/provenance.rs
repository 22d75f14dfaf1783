//! Where a model comes from, and how well it fitted there.

use crate::Agreement;
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
