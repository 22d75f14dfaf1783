//! The command line: commands, and the flags that several have in common.

use std::path::PathBuf;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Args, Parser, Subcommand, ValueHint};
use linkweir_sink::{Format, Rotation};

use crate::http::HttpArgs;
use crate::units;

/// Measures network traffic: HTTP transactions at line rate, without TCP reassembly.
#[derive(Debug, Parser)]
#[command(
    name = "linkweir",
    bin_name = "linkweir",
    version,
    about,
    max_term_width = 100,
    disable_help_subcommand = true
)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Http(Box<HttpArgs>),
    Man(ManArgs),
    Completions(CompletionArgs),
}

/// Writes the manual pages into a folder.
#[derive(Debug, Args)]
pub(crate) struct ManArgs {
    /// Folder for the pages; made where it is missing.
    #[arg(value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) folder: PathBuf,
}

/// Prints a completion script for a shell.
#[derive(Debug, Args)]
pub(crate) struct CompletionArgs {
    /// The shell.
    #[arg(value_name = "SHELL")]
    pub(crate) shell: clap_complete::Shell,
}

/// What a passive command reads.
#[derive(Debug, Args)]
#[command(next_help_heading = "Input")]
pub(crate) struct InputArgs {
    /// Capture to read: a file, a directory (its files by name) or `-` for standard input; may be
    /// given several times, all are one trace in this order. pcap, pcapng, ERF and snoop, plain or
    /// compressed by gzip, zstd, xz or lz4, are told by their content. Subdirectories are not read.
    #[arg(short = 'r', long = "read", value_name = "PATH", required = true, value_hint = ValueHint::AnyPath)]
    pub(crate) read: Vec<PathBuf>,

    /// Only packets that match this libpcap filter expression, for example `tcp port 80`
    /// [default: all packets].
    #[arg(short = 'f', long, value_name = "BPF")]
    pub(crate) filter: Option<String>,

    /// Stop after this many packets [default: all].
    #[arg(short = 'c', long, value_name = "PACKETS")]
    pub(crate) count: Option<u64>,

    /// Bytes per read of a file.
    #[arg(long, value_name = "SIZE", default_value = "512KiB", value_parser = units::size, help_heading = "Performance")]
    pub(crate) read_size: u64,
}

/// What a command writes.
#[derive(Debug, Args)]
#[command(next_help_heading = "Output")]
pub(crate) struct OutputArgs {
    /// Where the records go: a path, or `-` for standard output; may be given several times. A
    /// file appears under its name, replacing one that is there, when it is complete (until then it
    /// is `.NAME.partial`).
    #[arg(short = 'w', long = "write", value_name = "DEST", default_value = "-", value_hint = ValueHint::FilePath)]
    pub(crate) write: Vec<String>,

    /// Format of the records [default: by the ending: .jsonl .json .ndjson, .csv, .zeek or http.log,
    /// .txt .text .log; text where there is none].
    #[arg(long, value_name = "FORMAT", value_parser = formats())]
    pub(crate) format: Option<Format>,

    /// Begin a new file after this size (`100MB`, `64MiB`) or capture time (`300s`, `1h`):
    /// out.jsonl becomes out-000001.jsonl and so on, after the highest number there is [default: one
    /// file; after a SIGHUP also numbered].
    #[arg(long, value_name = "SIZE|DURATION")]
    pub(crate) rotate: Option<Rotation>,

    /// Write the totals of the run as one JSON object; `-` is standard output.
    #[arg(long, value_name = "PATH", value_hint = ValueHint::FilePath)]
    pub(crate) summary: Option<String>,

    /// Write a self-contained HTML page with plots, readable without network.
    #[arg(long, value_name = "FILE.html", value_hint = ValueHint::FilePath)]
    pub(crate) report: Option<PathBuf>,

    /// No summary on standard error, and no progress.
    #[arg(short, long)]
    pub(crate) quiet: bool,

    /// Flags from a TOML file: keys are the long flag names (`read = ["a.pcap"]`, `sort = true`), and
    /// the command line wins.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) config: Option<PathBuf>,
}

fn formats() -> impl TypedValueParser<Value = Format> {
    PossibleValuesParser::new(Format::ALL.map(Format::as_str))
        .try_map(|name| Format::from_name(&name).ok_or("no such format"))
}
