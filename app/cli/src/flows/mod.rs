//! `linkweir flows`: every TCP and UDP flow of captures and interfaces.

mod args;
mod run;
mod summary;

pub(crate) use args::FlowsArgs;
