//! The flags of `linkweir merge`.

use std::path::PathBuf;

use clap::{Args, ValueHint};

use crate::files::OverwriteArgs;

const AFTER_HELP: &str = "Examples:
  linkweir merge monday.json tuesday.json --summary -
  linkweir merge sketches/ --sketch week.json --summary totals.json

Exit codes:
  0  success
  1  success, but one of the runs lost data (drops, truncated or corrupt input)
  2  invalid usage, or a file that is not a sketch of this version
  3  a file cannot be read, or an output failed";

/// Add up the sketches of several runs, giving the totals of one run over everything.
///
/// `linkweir http --sketch FILE` and `linkweir halves --sketch FILE` write totals that can be added:
/// counters, and the histogram of response times with its buckets. The quantiles of the sum are therefore
/// those of one run, in whatever order sketches are merged. Sketches of `halves` hold packets and bytes,
/// those of `http --from-halves` transactions, those of `http -r` both. Each run must be given once.
#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct MergeArgs {
    /// Sketches: files, or directories, of which all `.json` files are read.
    #[arg(value_name = "PATH", required = true, value_hint = ValueHint::AnyPath)]
    pub(crate) sketches: Vec<PathBuf>,

    /// Write the totals as the JSON object that `linkweir http --summary` writes; `-` is standard output.
    /// Its `elapsed_s` is the time from the start of the first run to the end of the last, by the clocks
    /// of the machines.
    #[arg(long, value_name = "PATH", value_hint = ValueHint::FilePath)]
    pub(crate) summary: Option<String>,

    /// Write the sum as a sketch, for a later merge; `-` is standard output.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) sketch: Option<String>,

    #[command(flatten)]
    pub(crate) files: OverwriteArgs,

    /// Suppress the summary.
    #[arg(short, long)]
    pub(crate) quiet: bool,
}
