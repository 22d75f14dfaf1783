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
mod report;
mod runs;

pub(crate) use chance::{Chance, Zipf};
pub(crate) use cost::{CORE, Cost, FEEDER_CORE, Job, pin};
#[cfg(test)]
pub(crate) use place::assert_different;
pub(crate) use place::{
    Parts, compile, in_directory, in_memory, linkweir, needs, progress, ready, record, remove,
    said, setup, text,
};
#[cfg(test)]
pub(crate) use report::reached;
pub(crate) use report::{
    Column, Target, Words, before, cells, count, digits, megabytes, number, percent, print,
    print_cells, verdict,
};
pub(crate) use runs::{Row, Runs, Series, find, median, rounds, row};
