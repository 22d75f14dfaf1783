//! How many states the procedure finds: for several draws of a series, over given lags and over those that it
//! chooses itself. Printed as it comes: the paper has 14 for its one series.

use anyhow::Result;
use linkweir_model::{Counts, FitOptions, fit};

use super::row::over;
use crate::shell::print_table;

/// Draws of each series.
pub(super) const SEEDS: std::ops::RangeInclusive<u64> = 1..=20;

/// What a fit found.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Shape {
    pub(super) lags: usize,
    /// L and M of M 2^L.
    pub(super) two_state: usize,
    pub(super) memoryless: usize,
    pub(super) states: usize,
    pub(super) ic: f64,
}

/// A draw, over the given lags and over its own.
pub(super) type Draw = (u64, [Shape; 2]);

fn shape(counts: &Counts, options: &FitOptions) -> Result<Shape> {
    let fitted = fit(counts, options)?;
    let sources = fitted.model.superposition();
    Ok(Shape {
        lags: fitted.check.lags,
        two_state: fitted.scales.len(),
        memoryless: sources.states() >> fitted.scales.len(),
        states: sources.states(),
        ic: fitted.check.autocovariance.ic,
    })
}

/// Fits every draw.
pub(super) fn find(
    seeds: impl IntoIterator<Item = u64>,
    lags: usize,
    series: impl Fn(u64) -> Result<Counts>,
) -> Result<Vec<Draw>> {
    let of = |seed| {
        let counts = series(seed)?;
        let given = shape(&counts, &over(lags))?;
        let own = shape(&counts, &FitOptions::default())?;
        Ok((seed, [given, own]))
    };
    seeds.into_iter().map(of).collect()
}

/// A row for each draw, and how often each number of states was found.
pub(super) fn table(title: &str, draws: &[Draw]) {
    println!("\n{title}: states found, M 2^L");
    let header = [
        "seed",
        "lags",
        "states",
        "IC %",
        "lags as chosen",
        "states",
        "IC %",
    ];
    let mut cells = vec![header.map(str::to_owned).to_vec()];
    for (seed, [given, own]) in draws {
        let mut row = vec![seed.to_string()];
        for shape in [given, own] {
            row.extend([
                shape.lags.to_string(),
                format!(
                    "{} = {} x 2^{}",
                    shape.states, shape.memoryless, shape.two_state
                ),
                format!("{:.2}", shape.ic * 100.0),
            ]);
        }
        cells.push(row);
    }
    print_table(&cells);
    for (place, name) in ["over the given lags", "over the lags as chosen"]
        .into_iter()
        .enumerate()
    {
        println!(
            "{name}: {}",
            tally(draws.iter().filter_map(|(_, both)| both.get(place)))
        );
    }
}

/// `14 states 12 times, 16 states 8 times`.
fn tally<'a>(shapes: impl Iterator<Item = &'a Shape>) -> String {
    let mut all: Vec<usize> = shapes.map(|shape| shape.states).collect();
    all.sort_unstable();
    let runs = all.chunk_by(|a, b| a == b);
    let texts = runs.filter_map(|run| Some(format!("{} states {} times", run.first()?, run.len())));
    texts.collect::<Vec<String>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn states_are_counted() {
        let shape = |states| Shape {
            lags: 1,
            two_state: 1,
            memoryless: states / 2,
            states,
            ic: 0.0,
        };
        let all = [14, 16, 14].map(shape);
        assert_eq!(tally(all.iter()), "14 states 2 times, 16 states 1 times");
    }
}
