//! The flags of `linkweir halves`.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueHint};
use linkweir_http::PortSet;
use linkweir_sink::{Format, Rotation};

use crate::args::{InputArgs, StoreArgs, formats};
use crate::outputs;
use crate::units;

const AFTER_HELP: &str = "Examples:
  linkweir halves -r part-017.pcap.zst --file-number 17 -w halves/part-017.parquet
  linkweir halves -r trace.pcap --format arrow -w - | linkweir http --from-halves - -w http.jsonl

Exit codes:
  0  done
  1  done, but data was lost (input truncated or corrupt in the middle, drops, fragments missing,
     one of several outputs failed)
  2  wrong usage or configuration
  3  an input gave nothing (no such file, no capture), or no output was left
SIGINT or SIGTERM ends a run early with everything written and 0; a second one aborts.
SIGHUP begins new output files; SIGUSR1 prints a line of progress.";

/// Reduces a capture to the segments on which a measurement of HTTP could depend, one row each.
///
/// For traces that no machine reads alone: every file is reduced where it lies, an engine such as Spark
/// sorts the rows and deals them to shards, and `linkweir http --from-halves` makes of each shard the
/// records; together they are those of one `linkweir http` on all files, one after the other. How rows are
/// dealt, and what cannot be told, is in docs/scale-out.md.
///
/// Heads stay whole, bodies are left away. At the beginning of a file, of which nobody knows what came
/// before, everything is kept that may go on with it. All `-r` of one run count as one file. Bodies are
/// not followed, so the times to last byte (`linkweir http --ttlb`) are not there.
#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct HalvesArgs {
    #[command(flatten)]
    pub(crate) input: InputArgs,

    /// Place of the file in the whole trace (field `file`): rows of one time are in this order.
    #[arg(
        long,
        value_name = "N",
        default_value_t = 0,
        help_heading = "Extraction"
    )]
    pub(crate) file_number: u32,

    /// Only segments from or to these TCP ports, for example `80,8000-8100` [default: any].
    #[arg(long, value_name = "LIST", value_parser = units::ports, help_heading = "Extraction")]
    pub(crate) ports: Option<PortSet>,

    /// The `--timeout` that the measurement will have: for twice as long at the beginning of the file,
    /// what may go on with something of the file before is kept.
    #[arg(long, value_name = "DURATION", default_value = "60s", value_parser = units::duration, help_heading = "Extraction")]
    pub(crate) timeout: Duration,

    #[command(flatten)]
    pub(crate) output: HalvesOutput,
}

impl HalvesArgs {
    /// Where the rows go.
    pub(super) fn destinations(&self) -> Vec<&str> {
        outputs::destinations(&self.output.write, false)
    }

    /// Whether packets come as they are sent, and do not wait.
    pub(crate) const fn is_live(&self) -> bool {
        self.input.interface.is_some()
    }
}

/// Where the rows go.
#[derive(Debug, Args)]
#[command(next_help_heading = "Output")]
pub(crate) struct HalvesOutput {
    /// Where rows go: a path, `-` for standard output, or a URL as of other records; may be repeated
    /// [default: -].
    #[arg(short, long, value_name = "DEST", value_hint = ValueHint::FilePath)]
    pub(crate) write: Vec<String>,

    /// Format of the rows [default: by the ending; text where there is none].
    #[arg(long, value_name = "FORMAT", value_parser = formats())]
    pub(crate) format: Option<Format>,

    /// Begin a new file after this size (`100MB`, `64MiB`) or capture time (`300s`, `1h`) [default: one
    /// file; after a SIGHUP also numbered].
    #[arg(long, value_name = "SIZE|DURATION")]
    pub(crate) rotate: Option<Rotation>,

    #[command(flatten)]
    pub(crate) store: StoreArgs,

    /// Write the totals of the run as one JSON object; `-` is standard output.
    #[arg(long, value_name = "PATH", value_hint = ValueHint::FilePath)]
    pub(crate) summary: Option<String>,

    /// Write packets, bytes and faults as JSON that `linkweir merge` adds to those of other runs; `-` is
    /// standard output.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) sketch: Option<String>,

    /// No summary on standard error, and no progress.
    #[arg(short, long)]
    pub(crate) quiet: bool,

    /// Flags from a TOML file: keys are the long flag names (`read = ["a.pcap"]`), and the command line
    /// wins.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) config: Option<PathBuf>,
}
