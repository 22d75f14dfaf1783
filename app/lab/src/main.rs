//! `linkweir-lab`: the laboratory, which `linkweir lab` starts.
#![forbid(unsafe_code)]

mod command;

use std::process::ExitCode;

use clap::{Args, Parser, Subcommand};
use linkweir_cli::lab::LabArgs;
use linkweir_cli::{exit, panics};
use linkweir_lab::p2p;

use command::https::{self, ClientArgs};
use command::line::{self, LineArgs};

// No text of its own: its help is that of `linkweir lab`.
#[derive(Debug, Parser)]
#[command(
    name = "linkweir-lab",
    bin_name = "linkweir lab",
    max_term_width = 100,
    args_conflicts_with_subcommands = true,
    disable_help_subcommand = true
)]
struct Cli {
    #[command(subcommand)]
    part: Option<Part>,

    #[command(flatten)]
    lab: LabArgs,
}

/// Parts of a laboratory that are processes of their own in a namespace. It starts them itself; they are no
/// part of what users and scripts may rely on.
#[derive(Debug, Subcommand)]
enum Part {
    #[command(hide = true)]
    Line(LineArgs),
    #[command(hide = true)]
    Peer(PeerArgs),
    /// The origin behind a web server, in the directory where it is started.
    #[command(hide = true)]
    Origin,
    #[command(hide = true)]
    Client(ClientArgs),
}

/// A peer of FastTrack, Gnutella, MSN, MSNFTP or eDonkey for one transfer or one conversation.
#[derive(Debug, Args)]
struct PeerArgs {
    /// What it does, with whom: words of the test kit's `peers`.
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, required = true)]
    words: Vec<String>,
}

fn main() -> ExitCode {
    panics::end_the_program();
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => return exit::usage(&error).into(),
    };
    let outcome = match cli.part {
        None => command::run(&cli.lab),
        Some(Part::Line(args)) => line::run(&args),
        Some(Part::Origin) => https::origin(),
        Some(Part::Client(args)) => https::client(&args),
        // Its exit codes are its own.
        Some(Part::Peer(args)) => return p2p::speak(&args.words).into(),
    };
    outcome.unwrap_or_else(|error| exit::failure(&error)).into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory as _;

    #[test]
    fn parts_are_not_for_users() {
        let help = Cli::command().render_long_help().to_string();
        assert!(help.starts_with("Run all systems together"), "{help}");
        assert!(!help.contains("Commands:"), "{help}");
    }
}
