//! What `http`, `flows` and `halves` have in common: they read packets, run a stage over them, write its
//! records and end with totals. Each implements [`command::Passive`], which [`run::run`] runs.

pub(crate) mod args;
pub(crate) mod command;
mod conclude;
pub(crate) mod input;
pub(crate) mod run;
pub(crate) mod totals;
pub(crate) mod watch;
