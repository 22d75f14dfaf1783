//! What all benches share: rows that take turns, figures over their rounds, targets, tables, what runs and
//! processes cost.
//!
//! A bench is a table of rows (`Row`: a word for `--only`, a name, and how it is run), columns (`Column`: a
//! title and a function that gives a cell) and targets. Rows take turns, a run each per round, so that what
//! the machine does meanwhile hits all of them; figures are medians over the rounds, ratios are of runs of
//! the same round.

mod chance;
pub(crate) mod cost;
mod place;
pub(crate) mod proc;
mod runs;
mod table;
mod targets;
mod words;

pub(crate) use chance::{Chance, Zipf};
pub(crate) use cost::{CORE, Cost, FEEDER_CORE, Job, pin};
#[cfg(test)]
pub(crate) use place::assert_different;
pub(crate) use place::{
    Parts, compile, count, in_directory, in_memory, linkweir, needs, number, progress, record,
    remove, setup, text,
};
pub(crate) use runs::median;
pub(crate) use runs::{Row, Runs, Series, find, rounds, row};
pub(crate) use table::{Column, cells, digits, megabytes, percent, print, print_cells};
#[cfg(test)]
pub(crate) use targets::reached;
pub(crate) use targets::{Target, verdict};
pub(crate) use words::{Words, before};
