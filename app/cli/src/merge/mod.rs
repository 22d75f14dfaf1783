//! `linkweir merge`: sketches of several runs become the totals of one.

mod args;
mod fields;
mod read;
mod run;
mod sketch;
mod write;

pub(crate) use args::MergeArgs;
pub(crate) use run::run;
pub(crate) use sketch::{HttpTotals, RunTotals, Sketch};
