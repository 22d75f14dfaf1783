//! What a bench prints: tables as data, of columns with a title and a function that gives the cell of a row,
//! and targets, which the figures must reach.
//!
//! Figures in the words of other programs.

use crate::Outcome;
use crate::shell::print_table;
use anyhow::{Context as _, Result};
use serde_json::Value;
use std::borrow::Borrow;
use std::str::FromStr;

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
    if figure.is_nan() {
        return "-".to_owned();
    }
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

/// A line of `key=value`.
#[derive(Debug)]
pub(crate) struct Words<'a>(&'a str);

impl<'a> Words<'a> {
    pub(crate) const fn of(line: &'a str) -> Self {
        Self(line)
    }

    fn get<T: FromStr>(&self, name: &str) -> Result<T> {
        let mut pairs = self.0.split_whitespace();
        let value = pairs.find_map(|pair| pair.strip_prefix(name)?.strip_prefix('='));
        value
            .and_then(|value| value.parse().ok())
            .with_context(|| format!("no `{name}=` in `{}`", self.0.trim()))
    }

    pub(crate) fn whole(&self, name: &str) -> Result<u64> {
        self.get(name)
    }

    pub(crate) fn number(&self, name: &str) -> Result<f64> {
        self.get(name)
    }
}

/// The number that stands before the first of these phrases (`12 packets captured`).
pub(crate) fn before(text: &str, phrases: &[&str]) -> Option<u64> {
    let found = |line: &str, phrase: &str| {
        let at = line.find(phrase)?;
        line.get(..at)?.split_whitespace().last()?.parse().ok()
    };
    phrases
        .iter()
        .find_map(|phrase| text.lines().find_map(|line| found(line, phrase)))
}

/// A number of a JSON document; parts of the way to it are separated by slashes.
///
/// # Errors
/// There is none.
pub(crate) fn number(said: &Value, way: &str) -> Result<f64> {
    let number = said.pointer(&format!("/{way}")).and_then(Value::as_f64);
    number.with_context(|| format!("no `{way}`"))
}

/// The same for a count.
///
/// # Errors
/// There is none.
pub(crate) fn count(said: &Value, way: &str) -> Result<u64> {
    let count = said.pointer(&format!("/{way}")).and_then(Value::as_u64);
    count.with_context(|| format!("no count `{way}`"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_and_phrases() {
        let words = Words::of("mode=xdp sent=12 link=13 pps=1.5\n");
        assert_eq!(words.whole("sent").unwrap(), 12);
        assert_eq!(words.number("pps").unwrap(), 1.5);
        assert!(words.whole("en").is_err());
        let said = "tcpdump: listening\n5 packets captured\n0 packets dropped by kernel\n";
        assert_eq!(before(said, &[" packets captured"]), Some(5));
        assert_eq!(
            before(said, &[" packets lost", " packets dropped by kernel"]),
            Some(0)
        );
        assert_eq!(before(said, &[" nothing"]), None);
    }
}
