//! `linkweir http`: HTTP transactions from captures.

mod args;
mod run;
mod summary;

pub(crate) use args::HttpArgs;
pub(crate) use run::run;
