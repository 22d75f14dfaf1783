//! What a bench prints: tables as data, of columns with a title and a function that gives the cell of a row,
//! and targets, which the figures must reach.

use crate::Outcome;
use crate::shell::print_table;
use std::borrow::Borrow;

/// A column: its title, and its cell in a row.
pub(crate) type Column<R> = (&'static str, fn(&R) -> String);

/// Prints a title and the rows below it.
pub(crate) fn print<R>(
    title: &str,
    columns: &[Column<R>],
    rows: impl IntoIterator<Item: Borrow<R>>,
) {
    let rows = rows.into_iter().map(|row| cells(columns, row.borrow()));
    print_cells(title, columns, rows);
}

/// The cells of a row.
pub(crate) fn cells<R>(columns: &[Column<R>], row: &R) -> Vec<String> {
    columns.iter().map(|(_, cell)| cell(row)).collect()
}

/// Prints rows, of which some may have fewer cells or other ones.
pub(crate) fn print_cells<R>(
    title: &str,
    columns: &[Column<R>],
    rows: impl IntoIterator<Item = Vec<String>>,
) {
    let titles = columns.iter().map(|(title, _)| (*title).to_owned());
    let mut table = vec![titles.collect()];
    table.extend(rows);
    println!("\n{title}");
    print_table(&table);
}

/// A figure with so many digits behind the point.
pub(crate) fn digits(figure: f64, digits: usize) -> String {
    format!("{figure:.digits$}")
}

/// A part of one as whole percent.
pub(crate) fn percent(part: f64) -> String {
    format!("{:.0} %", 100.0 * part)
}

/// Bytes as MB.
pub(crate) fn megabytes(bytes: f64) -> String {
    format!("{:.1}", bytes * 1e-6)
}

/// What was promised, and how it went.
#[derive(Debug)]
pub(crate) struct Target {
    /// The promise.
    pub(crate) what: String,
    /// What was measured, for people.
    pub(crate) figure: String,
    /// Whether the figure keeps the promise.
    pub(crate) is_reached: bool,
}

impl Target {
    pub(crate) fn new(
        what: impl Into<String>,
        figure: impl Into<String>,
        is_reached: bool,
    ) -> Self {
        Self {
            what: what.into(),
            figure: figure.into(),
            is_reached,
        }
    }

    /// Of a row that was not run: missed.
    pub(crate) fn not_measured(what: impl Into<String>) -> Self {
        Self::new(what, "not measured, something is not installed", false)
    }
}

/// Prints of each whether it is reached; the outcome of the bench.
pub(crate) fn verdict(targets: &[Target]) -> Outcome {
    println!();
    for target in targets {
        let word = if target.is_reached { "PASS" } else { "MISS" };
        println!("{word}  {}: {}", target.what, target.figure);
    }
    Ok(targets.iter().all(|target| target.is_reached))
}

/// Of each whether it is reached.
#[cfg(test)]
pub(crate) fn reached(targets: &[Target]) -> Vec<bool> {
    targets.iter().map(|target| target.is_reached).collect()
}
