//! How long-range dependence is printed: the Hurst parameter of counts, model and runs.

use linkweir_model::hurst::{Dependence, Estimate, LEAST_BINS};
use linkweir_record::human::short;
use serde_json::{Value, json};

/// Of the counts, of the model by its equations, and of runs of it.
#[derive(Debug)]
pub(super) struct Three {
    pub(super) counts: Dependence,
    pub(super) model: Dependence,
    pub(super) runs: Vec<Dependence>,
}

type Row = (&'static str, fn(&Dependence) -> Option<Estimate>);

/// What is shown of each.
const ROWS: [Row; 3] = [
    ("variance-time", |found| found.variance_time.estimate),
    ("R/S", |found| found.rescaled_range),
    ("local Whittle", |found| found.whittle),
];

/// `0.83 +- 0.02`.
fn text(estimate: Option<Estimate>) -> String {
    estimate.map_or_else(
        || "none".to_owned(),
        |found| format!("{:.3} +- {:.3}", found.h, found.standard_error),
    )
}

fn slope(found: &Dependence) -> String {
    let slope = found.variance_time.slope;
    slope.map_or_else(|| "none".to_owned(), |slope| format!("{slope:.3}"))
}

/// The lines; one where there are too few bins.
pub(super) fn lines(three: Option<&Three>, bin_s: f64) -> Vec<String> {
    let heading = "Long-range dependence";
    let Some(three) = three else {
        return vec![format!(
            "{heading}: too few bins, {LEAST_BINS} are required"
        )];
    };
    let (first, last) = three.counts.scales;
    let seconds = |bins: usize| short(bins as f64 * bin_s);
    let mut lines = vec![format!(
        "{heading}: Hurst parameter H and its standard error (0.5: none), scales of {first} to {last} bins ({} to {} s)",
        seconds(first),
        seconds(last)
    )];
    for (name, of) in ROWS {
        let model = match of(&three.model) {
            None => String::new(),
            found => format!(", model {}", text(found)),
        };
        lines.push(format!(
            "{name:<17}counts {}{model}",
            text(of(&three.counts))
        ));
        if name == "variance-time" {
            lines.push(format!(
                "                 its slope: counts {}, model {}; -1 without dependence",
                slope(&three.counts),
                slope(&three.model)
            ));
        }
        let runs: Vec<Estimate> = three.runs.iter().filter_map(of).collect();
        if !runs.is_empty() {
            lines.push(format!("                 runs {}", spread(&runs)));
        }
    }
    let found = ROWS.iter().filter_map(|(_, of)| of(&three.counts));
    if found.map(|one| one.h).any(|h| h > 1.0) {
        let text = "counts above 1: no stationary process, but a trend over these scales (see --profile of fit)";
        lines.push(format!("                 {text}"));
    }
    lines
}

/// Median, least and largest.
fn spread(runs: &[Estimate]) -> String {
    let mut values: Vec<f64> = runs.iter().map(|run| run.h).collect();
    values.sort_by(f64::total_cmp);
    let at = |place: usize| values.get(place).copied().unwrap_or(f64::NAN);
    let last = values.len().saturating_sub(1);
    format!(
        "{:.3} ({:.3} to {:.3})",
        at(values.len() / 2),
        at(0),
        at(last)
    )
}

/// The same for programs.
pub(super) fn object(three: Option<&Three>) -> Value {
    let Some(three) = three else {
        return Value::Null;
    };
    let of = |found: &Dependence| {
        let estimate = |found: Option<Estimate>| {
            found.map(|found| json!({"h": found.h, "standard_error": found.standard_error}))
        };
        json!({
            "variance_time": estimate(found.variance_time.estimate),
            "variance_time_slope": found.variance_time.slope,
            "rescaled_range": estimate(found.rescaled_range),
            "local_whittle": estimate(found.whittle),
            "variance_time_curve": found.variance_time.curve,
        })
    };
    let (first, last) = three.counts.scales;
    json!({
        "scales": [first, last],
        "counts": of(&three.counts),
        "model": of(&three.model),
        "runs": three.runs.iter().map(of).collect::<Vec<Value>>(),
    })
}
