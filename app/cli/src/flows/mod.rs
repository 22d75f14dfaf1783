//! `linkweir flows`: every TCP and UDP flow of captures and interfaces.

mod args;
mod conclude;
mod run;
mod setup;
mod summary;

pub(crate) use args::FlowsArgs;
pub(crate) use run::run;
