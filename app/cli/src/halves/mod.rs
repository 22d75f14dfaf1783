//! `linkweir halves`: of a capture, the segments on which an HTTP measurement could depend.

mod args;
mod conclude;
mod run;
mod summary;

pub(crate) use args::HalvesArgs;
pub(crate) use run::run;
