//! `linkweir http`: HTTP transactions from captures.

mod args;
mod conclude;
#[cfg(feature = "parquet")]
mod halves;
mod run;
mod setup;
mod summary;

pub(crate) use args::HttpArgs;
pub(crate) use run::run;
pub(crate) use summary::Totals;
