//! `linkweir http`: HTTP transactions from captures.

mod args;
#[cfg(feature = "parquet")]
mod halves;
mod run;
pub(crate) mod summary;

pub(crate) use args::HttpArgs;
pub(crate) use run::run;
