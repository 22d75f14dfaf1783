//! `linkweir merge`: sketches of several runs become the totals of one.

mod args;
mod json;
mod run;
pub(crate) mod sketch;

pub(crate) use args::MergeArgs;
pub(crate) use run::run;
