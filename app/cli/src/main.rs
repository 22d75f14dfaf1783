//! `linkweir`: measures, controls and generates network traffic.
//!
//! This crate is glue: it reads the command line, opens sources and sinks, runs a stage between
//! them and says how it went.
#![forbid(unsafe_code)]

mod archive;
mod chunks;
mod command;
mod common_args;
mod config;
#[cfg(feature = "kafka")]
mod console;
mod documents;
mod feed;
mod flows;
mod gateway;
mod halves;
mod http;
mod interval_line;
mod keys;
mod load;
mod merge;
mod metrics;
mod model;
mod opened;
mod outputs;
mod packets;
mod passive;
mod progress;
mod report;
mod schema;
mod screen;
#[cfg(feature = "kafka")]
mod sketches;
mod table;
mod view;

use std::process::ExitCode;

use clap::CommandFactory;
use linkweir_cli::{clock, conflicts, exit, files, lab, panics, signals, units};

use crate::command::{Cli, Command};

fn main() -> ExitCode {
    panics::end_the_program();
    match config::parse(std::env::args_os()) {
        Ok(cli) => run(cli),
        Err(config::Refused::Clap(error)) => exit::usage(&error).into(),
        Err(config::Refused::File(message)) => exit::failure(&exit::Wrong(message).into()).into(),
    }
}

fn run(cli: Cli) -> ExitCode {
    let outcome = match cli.command {
        Command::Http(args) => http::run(&args),
        Command::Halves(args) => passive::run::run(&*args),
        Command::Feed(args) => feed::run(&args),
        Command::Flows(args) => passive::run::run(&*args),
        Command::Gateway(args) => gateway::run(&args),
        Command::Model(args) => model::run(&args),
        Command::Lab(_) => lab::start(),
        Command::Load(args) => load::run(&args),
        Command::Archive(args) => archive::run(&args),
        #[cfg(feature = "kafka")]
        Command::Console(args) => console::run(*args),
        Command::Merge(args) => merge::run(&args),
        Command::Report(args) => report::run(&args),
        Command::Schema(args) => schema::run(&args),
        Command::Metrics(args) => metrics::run(&args),
        Command::Man(args) => documents::man(Cli::command(), &args),
        Command::Completions(args) => documents::completions(Cli::command(), &args),
    };
    let exit = outcome.unwrap_or_else(|error| exit::failure(&error));
    exit.into()
}
