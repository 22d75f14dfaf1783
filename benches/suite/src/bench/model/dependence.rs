//! Long-range dependence of a series, of the model that was fitted to it, and of paths of that.

use anyhow::{Context as _, Result};
use linkweir_model::hurst::noise::{self, Drawn};
use linkweir_model::hurst::{Dependence, Estimate};
use linkweir_model::{Counts, FitOptions, Model, fit};

use crate::bench::harness::{Target, median};
use crate::shell::print_table;

/// Paths of the model.
const PATHS: u64 = 5;
/// How far the model's H may be from that of the series it was fitted to, over the same scales.
const NEAR: f64 = 0.1;
/// The made series: its length, mean and bins are those of the paper's.
pub(super) const MADE: Drawn = Drawn {
    h: 0.85,
    mean: 32.57,
    deviation: 0.35,
    bins: 17_280,
    bin_s: 10.0,
    seed: 1,
};

/// Counts whose rate is long-range dependent on all scales (fractional Gaussian noise, H = 0.85): a series that
/// anybody can make.
pub(super) fn made(seed: u64) -> Result<Counts> {
    Ok(noise::counts(Drawn { seed, ..MADE })?)
}

/// The three estimates and the slope of the variance-time curve.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Row {
    h: [Option<Estimate>; 3],
    slope: Option<f64>,
}

fn row(found: &Dependence) -> Row {
    Row {
        h: [
            found.variance_time.estimate,
            found.rescaled_range,
            found.whittle,
        ],
        slope: found.variance_time.slope,
    }
}

/// The medians over paths; without errors, for there is the spread instead.
fn middle(rows: &[Row]) -> Row {
    let of = |place: usize| {
        let values = rows
            .iter()
            .filter_map(|row| row.h.get(place).copied().flatten());
        let values: Vec<f64> = values.map(|found| found.h).collect();
        let spread = |with: fn(f64, f64) -> f64, from| values.iter().copied().fold(from, with);
        (!values.is_empty()).then(|| Estimate {
            h: median(&values),
            standard_error: (spread(f64::max, f64::MIN) - spread(f64::min, f64::MAX)) / 2.0,
        })
    };
    let slopes: Vec<f64> = rows.iter().filter_map(|row| row.slope).collect();
    Row {
        h: [of(0), of(1), of(2)],
        slope: (!slopes.is_empty()).then(|| median(&slopes)),
    }
}

/// Prints the table of a series; the target is that the model has its dependence.
pub(super) fn show(title: &str, counts: &Counts) -> Result<Target> {
    let short = "too few bins for a Hurst parameter";
    let of_counts = Dependence::of_counts(counts).context(short)?;
    let model = fit(counts, &FitOptions::default())?.model;
    let of_model = Dependence::of_model(&model, counts.len()).context(short)?;
    let paths = paths(&model, counts.len())?;
    let rows = [
        ("series".to_owned(), row(&of_counts)),
        (
            format!("model of {} states", model.superposition().states()),
            row(&of_model),
        ),
        (
            format!("{PATHS} paths of it: median, half the range"),
            middle(&paths),
        ),
    ];
    let (first, last) = of_counts.scales;
    println!("\n{title}: Hurst parameter over {first} to {last} bins; 0.5 without dependence");
    let header = ["", "variance-time", "its slope", "R/S", "local Whittle"];
    let mut cells = vec![header.map(str::to_owned).to_vec()];
    for (name, row) in &rows {
        let [variance, range, whittle] = row.h.map(text);
        let slope = row
            .slope
            .map_or_else(String::new, |slope| format!("{slope:.3}"));
        cells.push(vec![name.clone(), variance, slope, range, whittle]);
    }
    print_table(&cells);
    let h = |found: &Dependence| {
        found
            .variance_time
            .estimate
            .map_or(f64::NAN, |found| found.h)
    };
    Ok(target(title, h(&of_counts), h(&of_model)))
}

fn paths(model: &Model, bins: usize) -> Result<Vec<Row>> {
    let mut rows = Vec::new();
    for seed in 1..=PATHS {
        rows.extend(Dependence::of_counts(&model.simulate(bins, seed)?).map(|found| row(&found)));
    }
    Ok(rows)
}

fn text(estimate: Option<Estimate>) -> String {
    estimate.map_or_else(String::new, |found| {
        format!("{:.3} +- {:.3}", found.h, found.standard_error)
    })
}

fn target(title: &str, counted: f64, modelled: f64) -> Target {
    Target::new(
        format!("{title}: H of the model within {NEAR} of the series', by variance-time"),
        format!("{modelled:.3} and {counted:.3}"),
        (modelled - counted).abs() <= NEAR,
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_made_series_is_dependent_and_its_model_too() {
        let target = show("made", &made(1).unwrap()).unwrap();
        assert!(target.is_reached, "{target:?}");
        assert!(!super::target("", 0.8, f64::NAN).is_reached);
    }
}
