//! Manual pages and completions, from the one definition of the command line.

use anyhow::Context;
use clap::CommandFactory;

use crate::args::{Cli, CompletionArgs, ManArgs};
use crate::exit::Exit;

/// Writes `linkweir.1`, `linkweir-http.1` and so on.
pub(crate) fn man(args: &ManArgs) -> anyhow::Result<Exit> {
    std::fs::create_dir_all(&args.folder).with_context(|| args.folder.display().to_string())?;
    clap_mangen::generate_to(Cli::command(), &args.folder)
        .with_context(|| args.folder.display().to_string())?;
    Ok(Exit::Done)
}

/// Prints a completion script.
pub(crate) fn completions(args: &CompletionArgs) -> anyhow::Result<Exit> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "linkweir", &mut script);
    match std::io::Write::write_all(&mut std::io::stdout().lock(), &script) {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => {
            Err(error).context("standard output")
        }
        _ => Ok(Exit::Done),
    }
}
