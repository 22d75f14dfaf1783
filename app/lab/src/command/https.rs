//! The client and the origin of the scenarios of HTTPS, processes of their own in their namespaces.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use clap::Args;
use linkweir_cli::exit::Exit;
use linkweir_lab::encrypted::{client, origin};

/// A client of HTTP/1.1 over TLS with a clock of its own.
#[derive(Debug, Args)]
pub(crate) struct ClientArgs {
    /// What it asks for: a line for each request, its path and the bytes of its body, if it has one.
    #[arg(long, value_name = "FILE")]
    plan: PathBuf,

    /// What its clock says, as JSON lines.
    #[arg(short, long, value_name = "FILE")]
    write: PathBuf,
}

/// Runs the client.
pub(crate) fn client(args: &ClientArgs) -> anyhow::Result<Exit> {
    let plan = fs::read_to_string(&args.plan).context("--plan")?;
    client::run(&plan, &args.write)?;
    Ok(Exit::Done)
}

/// Runs the origin.
pub(crate) fn origin() -> anyhow::Result<Exit> {
    origin::serve(Path::new("."))?;
    Ok(Exit::Done)
}
