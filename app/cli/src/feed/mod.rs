//! `linkweir feed`: packets distributed to consumer processes, and the distribution of their hashes.

mod args;
mod histogram;
mod run;
mod spread;
mod summary;
mod table;

pub(crate) use args::FeedArgs;
pub(crate) use run::run;
