//! How a comparison is printed, and when it is good enough.

use linkweir_model::check::Check;
use linkweir_record::human::{counted, short};
use serde_json::{Value, json};

use crate::exit::warn;

/// A share as per cent, with three digits.
pub(super) fn percent(share: f64) -> String {
    let percent = share * 100.0;
    if percent == 0.0 || percent.abs() >= 0.1 {
        format!("{} %", short(percent))
    } else if percent.abs() < 0.0005 {
        "< 0.001 %".to_owned()
    } else {
        format!("{percent:.3} %")
    }
}

/// A difference as per cent.
pub(super) fn signed_percent(share: f64) -> String {
    percent(share.abs())
}

/// `300 lags (50 min)`.
pub(super) fn lags_text(lags: usize, bin_s: f64) -> String {
    let seconds = short(lags as f64 * bin_s);
    format!("{} ({seconds} s)", counted(lags as u64, "lag"))
}

/// The figures of a comparison, one line each.
pub(super) fn figures(check: &Check, bin_s: f64) -> Vec<String> {
    let mut lines = vec![
        format!(
            "mean             model {:.4}, counts {:.4} per bin: {} apart",
            check.mean_model,
            check.mean_counted,
            signed_percent(check.mean_error)
        ),
        format!(
            "histogram        total variation {}",
            short(check.total_variation)
        ),
        format!(
            "autocovariance   inequality coefficient {} (Theil's {}) over {}",
            percent(check.autocovariance.ic),
            percent(check.autocovariance.theil),
            lags_text(check.lags, bin_s)
        ),
        format!(
            "                 {} (Theil's {}) with lag 0, the variance",
            percent(check.autocovariance_with_lag0.ic),
            percent(check.autocovariance_with_lag0.theil)
        ),
    ];
    match check.log_likelihood {
        Some(likelihood) if likelihood.is_finite() => {
            lines.push(format!("log-likelihood   {likelihood:.1}"));
        }
        Some(_) => lines.push(
            "log-likelihood   the model cannot give these counts (its probability is 0)".to_owned(),
        ),
        None => {}
    }
    lines
}

/// The same for programs.
pub(super) fn object(check: &Check) -> Value {
    json!({
        "lags": check.lags,
        "bins": check.bins,
        "mean_counted": check.mean_counted,
        "mean_model": check.mean_model,
        "mean_error": check.mean_error,
        "sd_of_mean": check.sd_of_mean,
        "total_variation": check.total_variation,
        "ic": check.autocovariance.ic,
        "theil": check.autocovariance.theil,
        "ic_with_lag0": check.autocovariance_with_lag0.ic,
        "theil_with_lag0": check.autocovariance_with_lag0.theil,
        "log_likelihood": check.log_likelihood.filter(|likelihood| likelihood.is_finite()),
    })
}

/// What the user asks for, in per cent.
#[derive(Debug, Clone, Copy)]
pub(super) struct Limits {
    pub(super) max_ic: Option<f64>,
    pub(super) max_mean_error: Option<f64>,
}

impl Limits {
    /// Whether a comparison is within; says where not.
    pub(super) fn are_met(self, check: &Check) -> bool {
        let found = [
            (
                "the inequality coefficient",
                check.autocovariance.ic,
                self.max_ic,
            ),
            (
                "the error of the mean",
                check.mean_error.abs(),
                self.max_mean_error,
            ),
        ];
        let mut is_met = true;
        for (what, share, limit) in found {
            // What is not a number is not within.
            if let Some(limit) = limit
                && (share * 100.0)
                    .partial_cmp(&limit)
                    .is_none_or(std::cmp::Ordering::is_gt)
            {
                warn(&format!("{what} is {}: above {limit} %", percent(share)));
                is_met = false;
            }
        }
        is_met
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_have_three_digits() {
        let texts = [0.0, 0.0235, 0.5, 0.0004, 0.0000001, 1.5].map(percent);
        assert_eq!(
            texts,
            ["0 %", "2.35 %", "50 %", "0.040 %", "< 0.001 %", "150 %"]
        );
    }

    #[test]
    fn one_is_no_plural() {
        let texts = [0, 1, 2].map(|number| counted(number, "two-state source"));
        assert_eq!(
            texts,
            [
                "0 two-state sources",
                "1 two-state source",
                "2 two-state sources"
            ]
        );
    }
}
