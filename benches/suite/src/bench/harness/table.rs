//! Tables as data: columns with a title and a function that gives the cell of a row.

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
