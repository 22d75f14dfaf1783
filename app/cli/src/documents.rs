//! Manual pages and completions, from the one definition of the command line.

use std::path::PathBuf;

use anyhow::Context;
use clap::{Args, ValueHint};

use crate::exit::Exit;
use crate::files::print;

/// Write the manual pages to a directory.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  linkweir man man/\n  man ./man/linkweir-http.1\n\nExit codes:\n  0  done\n  2  invalid usage\n  3  the directory cannot be written"
)]
pub(crate) struct ManArgs {
    /// Directory for the pages; created if missing.
    #[arg(value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) directory: PathBuf,
}

/// Print a completion script for a shell.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  linkweir completions bash > ~/.local/share/bash-completion/completions/linkweir\n  linkweir completions zsh > ~/.zfunc/_linkweir\n\nExit codes:\n  0  done\n  2  invalid usage\n  3  standard output cannot be written"
)]
pub(crate) struct CompletionArgs {
    /// The shell.
    #[arg(value_name = "SHELL")]
    pub(crate) shell: clap_complete::Shell,
}

/// Writes `linkweir.1`, `linkweir-http.1` and so on.
pub(crate) fn man(cli: clap::Command, args: &ManArgs) -> anyhow::Result<Exit> {
    std::fs::create_dir_all(&args.directory)
        .with_context(|| args.directory.display().to_string())?;
    clap_mangen::generate_to(cli, &args.directory)
        .with_context(|| args.directory.display().to_string())?;
    for entry in
        std::fs::read_dir(&args.directory).with_context(|| args.directory.display().to_string())?
    {
        let path = entry?.path();
        if path.extension().is_some_and(|ending| ending == "1") {
            keep_lines(&path).with_context(|| path.display().to_string())?;
        }
    }
    Ok(Exit::Done)
}

/// The examples and exit codes at the end of a page are lines, not a paragraph to be filled.
fn keep_lines(page: &std::path::Path) -> std::io::Result<()> {
    let text = std::fs::read_to_string(page)?;
    let Some((before, rest)) = text.split_once(".SH EXTRA\n") else {
        return Ok(());
    };
    let (extra, after) = rest
        .split_once("\n.SH ")
        .map_or((rest, None), |(extra, after)| (extra, Some(after)));
    let mut page_text = format!("{before}.SH \"EXAMPLES AND EXIT STATUS\"\n.nf\n{extra}\n.fi\n");
    if let Some(after) = after {
        page_text.push_str(".SH ");
        page_text.push_str(after);
    }
    std::fs::write(page, page_text)
}

/// Prints a completion script.
pub(crate) fn completions(mut cli: clap::Command, args: &CompletionArgs) -> anyhow::Result<Exit> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut cli, "linkweir", &mut script);
    print(&String::from_utf8_lossy(&script))?;
    Ok(Exit::Done)
}
