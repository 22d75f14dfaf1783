//! `linkweir console`: many probes, one view.

mod args;
mod run;

pub(crate) use args::ConsoleArgs;
pub(crate) use run::run;
