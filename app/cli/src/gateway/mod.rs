//! `linkweir gateway`: classify, filter, scan, audit and shape, inline.

mod args;
mod buckets;
mod check;
mod config;
mod control;
mod directories;
mod explain;
mod kernel;
mod run;
mod shared;
mod snapshot;
mod status;
mod steps;
mod try_out;
mod unseen;
mod watchdog;
mod worker;

pub(crate) use args::GatewayArgs;

use args::GatewayCommand;

use crate::exit::Exit;
use linkweir_sys::privileges::hide_new_files;

/// Runs the command.
pub(crate) fn run(args: &GatewayArgs) -> anyhow::Result<Exit> {
    // Events tell who wrote what to whom.
    hide_new_files();
    match &args.command {
        GatewayCommand::Check(args) => check::run(args),
        GatewayCommand::Explain(args) => explain::run(args),
        GatewayCommand::Up(args) => kernel::up(args),
        GatewayCommand::Run(args) => run::run(args),
        GatewayCommand::Status(args) => status::run(args),
        GatewayCommand::Reload(args) => kernel::reload(args),
        GatewayCommand::Down(args) => kernel::down(args),
    }
}
