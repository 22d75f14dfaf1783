//! The flags of `linkweir model`.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand, ValueEnum, ValueHint};
use linkweir_model::log::LogFormat;

use crate::files::OverwriteArgs;
use crate::units::{self, Moment};

const AFTER_HELP: &str = "From a log to load that resembles it:
  linkweir model fit access.log --bin 10s -o shop.json
  linkweir model check shop.json access.log --plot shop.svg
  linkweir load http://10.1.0.2/ --interface veth0 --clients 10.64.0.0/10 --arrivals mmpp:shop.json --duration 10m

Examples:
  linkweir model sessions access.log --bin 10s -w counts.csv
  linkweir model fit counts.csv -o shop.json

Exit codes:
  0  success
  1  success, but lines of a log could not be read, or a limit (--max-ic, --max-mean-error) is not met
  2  invalid usage
  3  an input cannot be read or fitted, or the output failed";

/// Model how sessions arrive at a server, and generate arrivals that resemble a log.
///
/// `sessions` finds the sessions of a web log, `fit` makes a model of their counts per bin of time (a
/// discrete-time Markov modulated Poisson process with the same mean, histogram and autocovariance),
/// `simulate` draws counts from it, `check` compares model and counts, `export` writes its Markov chain.
/// `linkweir load` generates sessions by the model.
#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct ModelArgs {
    #[command(subcommand)]
    pub(crate) command: ModelCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ModelCommand {
    Sessions(SessionsArgs),
    Fit(Box<FitArgs>),
    Simulate(SimulateArgs),
    Check(Box<CheckArgs>),
    Export(ExportArgs),
}

/// What a session is.
#[derive(Debug, Args)]
#[command(next_help_heading = "Logs")]
pub(crate) struct LogArgs {
    /// Begin a new session when its client sent nothing for longer than this.
    #[arg(long, value_name = "DURATION", default_value = "30m", value_parser = units::duration)]
    pub(crate) timeout: Duration,

    /// Format of the logs: `clf` is Common or Combined Log Format, `wc98` the binary records of the 1998
    /// World Cup logs, `http` records of `linkweir http` as JSON lines, CSV, text, Parquet or a stream of
    /// Arrow.
    #[arg(long, value_name = "FORMAT", default_value = "auto")]
    pub(crate) format: LogForm,

    /// Maximum delay of a line that is still put in order.
    #[arg(long, value_name = "DURATION", default_value = "1m", value_parser = units::duration)]
    pub(crate) disorder: Duration,

    /// Maximum number of clients that are tracked; each takes about 100 bytes.
    #[arg(long, value_name = "N", default_value_t = 4_194_304, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) max_clients: u32,
}

/// Which part of the time.
#[derive(Debug, Clone, Copy, Args)]
#[command(next_help_heading = "Input")]
pub(crate) struct SpanArgs {
    /// Read only what begins at this time or later: `1998-06-08`, `'1998-06-08 22:00'` (UTC) or seconds
    /// since 1970 [default: all].
    #[arg(long, value_name = "TIME", value_parser = units::moment)]
    pub(crate) from: Option<Moment>,

    /// Read only what begins before this time [default: all].
    #[arg(long, value_name = "TIME", value_parser = units::moment)]
    pub(crate) to: Option<Moment>,

    /// Maximum time without an arrival that is filled with empty bins. A longer one is an error, as it
    /// usually means that one line has a wrong time.
    #[arg(long, value_name = "DURATION", default_value = "30d", value_parser = units::duration)]
    pub(crate) max_gap: Duration,
}

/// Find the sessions of web logs: their start times, or their number in each bin of time.
///
/// A request begins a new session of its client when that client sent nothing for the timeout. Several logs
/// are merged by time: rotated logs and logs of several servers, in any order. They may be compressed
/// (gzip, zstd, xz, lz4, detected by content). Lines that cannot be read are counted by cause, and the
/// first of each is shown.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  linkweir model sessions access.log.1.gz access.log --bin 10s -w counts.csv
  linkweir model sessions wc_day45_*.gz wc_day46_*.gz --timeout 10m --from '1998-06-08 22:00' -w starts.csv

Exit codes:
  0  success
  1  success, but lines or records of a log could not be read, or came too late
  2  invalid usage
  3  an input is not a log or cannot be read, or the output failed")]
pub(crate) struct SessionsArgs {
    /// Logs; `-` is standard input.
    #[arg(value_name = "LOG", required = true, value_hint = ValueHint::FilePath)]
    pub(crate) logs: Vec<PathBuf>,

    #[command(flatten)]
    pub(crate) log: LogArgs,

    #[command(flatten)]
    pub(crate) span: SpanArgs,

    /// Count the sessions that begin in each bin of this length: CSV `bin_start,count`, bins without
    /// sessions too [default: one line per session, CSV `session_start`].
    #[arg(long, value_name = "DURATION", value_parser = units::duration, help_heading = "Output")]
    pub(crate) bin: Option<Duration>,

    /// File for the CSV; `-` is standard output.
    #[arg(short = 'w', long = "write", value_name = "OUT", default_value = "-", value_hint = ValueHint::FilePath, help_heading = "Output")]
    pub(crate) write: PathBuf,

    /// Write the totals as one JSON object; `-` is standard output.
    #[arg(long, value_name = "PATH", value_hint = ValueHint::FilePath, help_heading = "Output")]
    pub(crate) summary: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) files: OverwriteArgs,

    /// Suppress the summary.
    #[arg(short, long, help_heading = "Output")]
    pub(crate) quiet: bool,
}

/// How counts are read.
#[derive(Debug, Args)]
#[command(next_help_heading = "Input")]
pub(crate) struct SeriesArgs {
    /// Length of a bin. Counts of shorter bins are summed, those of longer ones require `--spread`
    /// [default: that of the counts if they have times, otherwise 10s; in `check` that of the model].
    #[arg(long, value_name = "DURATION", value_parser = units::duration)]
    pub(crate) bin: Option<Duration>,

    /// Column of a table that holds the counts (with `--events` the times): its name, or its number from 1
    /// [default: detected by content].
    #[arg(long, value_name = "NAME")]
    pub(crate) column: Option<String>,

    /// Read a table of events: each line is an event, and the column its time.
    #[arg(long)]
    pub(crate) events: bool,

    /// Spread counts of longer bins over shorter ones, by Poisson draws with this seed around a rate
    /// interpolated linearly between the middles of the bins. Counts without times are taken as per minute.
    /// The result is a surrogate: it has no structure below the counted bins.
    #[arg(long, value_name = "SEED")]
    pub(crate) spread: Option<u64>,

    /// Mean number of arrivals per bin after `--spread` [default: as counted].
    #[arg(long, value_name = "COUNT", requires = "spread", value_parser = units::positive)]
    pub(crate) mean: Option<f64>,
}

/// Fit a model to counts, to the sessions of logs, or to a list of events.
///
/// The type of INPUT is detected by content: a table of counts (CSV, one column or time and count), a table
/// of events (a time on each line), or logs, whose sessions are counted. Prints the model, its memory, and
/// its distance from the counts.
///
/// A stationary model mistakes a daily trend for chance. If the rate changes by the hour, give `--profile`:
/// the slow trend is kept as it is, and the process models the rest.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  linkweir model fit counts.csv --bin 10s -o shop.json
  linkweir model fit access.log --bin 10s --timeout 10m --profile 15m -o shop.json --max-ic 5

Exit codes:
  0  success
  1  success, but lines of a log could not be read, or a limit is not met
  2  invalid usage
  3  the input cannot be read or fitted, or the output failed")]
pub(crate) struct FitArgs {
    /// Counts, events or logs; `-` is standard input. Several logs are merged by time.
    #[arg(value_name = "INPUT", required = true, value_hint = ValueHint::FilePath)]
    pub(crate) inputs: Vec<PathBuf>,

    /// File for the model (JSON); `-` is standard output.
    #[arg(short = 'o', long, value_name = "MODEL.json", value_hint = ValueHint::FilePath)]
    pub(crate) output: PathBuf,

    #[command(flatten)]
    pub(crate) series: SeriesArgs,

    #[command(flatten)]
    pub(crate) span: SpanArgs,

    #[command(flatten)]
    pub(crate) log: LogArgs,

    #[command(flatten)]
    pub(crate) shape: ShapeArgs,

    /// Exit with 1 if the inequality coefficient (the paper's, by the equations, over the lags of the
    /// fit) is above this percentage [default: no limit].
    #[arg(long, value_name = "PERCENT", value_parser = units::positive, help_heading = "Limits")]
    pub(crate) max_ic: Option<f64>,

    /// Exit with 1 if the mean of the model differs from that of the counts by more than this percentage
    /// [default: no limit].
    #[arg(long, value_name = "PERCENT", value_parser = units::positive, help_heading = "Limits")]
    pub(crate) max_mean_error: Option<f64>,

    #[command(flatten)]
    pub(crate) files: OverwriteArgs,

    /// Print one JSON object on standard output instead of the table.
    #[arg(long, help_heading = "Output")]
    pub(crate) json: bool,

    /// Suppress the table and all messages but errors.
    #[arg(short, long, help_heading = "Output")]
    pub(crate) quiet: bool,
}

/// What the model should be like.
#[derive(Debug, Args)]
#[command(next_help_heading = "Model")]
pub(crate) struct ShapeArgs {
    /// Lags of the autocovariance that are matched, in bins [default: a tenth of the bins, or up to where
    /// the autocovariance is gone].
    #[arg(long, value_name = "K", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub(crate) lags: Option<u32>,

    /// Number of states of the model: M times two to the power L, maximum 64 [default: as required by the
    /// counts].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=64))]
    pub(crate) states: Option<u32>,

    /// Number of two-state sources, L: one for each time scale of the autocovariance [default: as required,
    /// maximum 3].
    #[arg(long, value_name = "L", value_parser = clap::value_parser!(u32).range(0..=4))]
    pub(crate) sources: Option<u32>,

    /// Keep a slow trend as it is: the mean over this length around each bin. The model then repeats the
    /// trend of the counts [default: no trend, a stationary model].
    #[arg(long, value_name = "DURATION", value_parser = units::duration)]
    pub(crate) profile: Option<Duration>,
}

/// Draw counts from a model.
///
/// The same seed gives the same counts on every machine and in every version.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  linkweir model simulate shop.json --bins 17280 --seed 1 -w counts.csv
  linkweir model simulate shop.json --bins 360 --seed 2 | head

Exit codes:
  0  success
  2  invalid usage
  3  the model cannot be read, or the output failed")]
pub(crate) struct SimulateArgs {
    /// The model.
    #[arg(value_name = "MODEL.json", value_hint = ValueHint::FilePath)]
    pub(crate) model: PathBuf,

    /// Number of bins.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=4_194_304))]
    pub(crate) bins: u32,

    /// Seed of the draws.
    #[arg(long, value_name = "SEED")]
    pub(crate) seed: u64,

    /// File for the counts, CSV `count`; `-` is standard output.
    #[arg(short = 'w', long = "write", value_name = "FILE", default_value = "-", value_hint = ValueHint::FilePath)]
    pub(crate) write: PathBuf,

    #[command(flatten)]
    pub(crate) files: OverwriteArgs,

    /// Suppress the summary.
    #[arg(short, long)]
    pub(crate) quiet: bool,
}

/// Compare a model with counts: mean, histogram, autocovariance, likelihood.
///
/// The comparison is by the equations of the model and, with `--simulate`, by runs as long as the counts.
/// The inequality coefficient of the autocovariances is given as defined by the paper and by Theil, over
/// the stated lags. Long-range dependence is shown as the Hurst parameter by three estimators. A plot shows the
/// histograms of the counts and of the model, both autocovariances and both variance-time curves.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  linkweir model check shop.json counts.csv --plot shop.svg
  linkweir model check shop.json access.log --simulate 20 --lags 300 --json

Exit codes:
  0  success
  1  success, but lines of a log could not be read, or a limit is not met
  2  invalid usage
  3  an input cannot be read, or the output failed")]
pub(crate) struct CheckArgs {
    /// The model.
    #[arg(value_name = "MODEL.json", value_hint = ValueHint::FilePath)]
    pub(crate) model: PathBuf,

    /// Counts, events or logs, as in `fit`; `-` is standard input.
    #[arg(value_name = "INPUT", required = true, value_hint = ValueHint::FilePath)]
    pub(crate) inputs: Vec<PathBuf>,

    #[command(flatten)]
    pub(crate) series: SeriesArgs,

    #[command(flatten)]
    pub(crate) span: SpanArgs,

    #[command(flatten)]
    pub(crate) log: LogArgs,

    /// Lags of the autocovariance that are compared, in bins [default: those the model was fitted over].
    #[arg(long, value_name = "K", value_parser = clap::value_parser!(u32).range(1..=100_000), help_heading = "Check")]
    pub(crate) lags: Option<u32>,

    /// Draw this many runs as long as the counts and compare them too: their median, minimum and maximum
    /// [default: none].
    #[arg(long, value_name = "RUNS", default_value_t = 0, hide_default_value = true, value_parser = clap::value_parser!(u32).range(0..=100_000), help_heading = "Check")]
    pub(crate) simulate: u32,

    /// Seed of the first run; the next ones follow.
    #[arg(long, value_name = "SEED", default_value_t = 1, help_heading = "Check")]
    pub(crate) seed: u64,

    /// As in `fit`: exit with 1 if the inequality coefficient is above this percentage.
    #[arg(long, value_name = "PERCENT", value_parser = units::positive, help_heading = "Limits")]
    pub(crate) max_ic: Option<f64>,

    /// As in `fit`: exit with 1 if the means differ by more than this percentage.
    #[arg(long, value_name = "PERCENT", value_parser = units::positive, help_heading = "Limits")]
    pub(crate) max_mean_error: Option<f64>,

    /// Draw histograms and autocovariance to this file, by its extension .svg or .html.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, help_heading = "Output")]
    pub(crate) plot: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) files: OverwriteArgs,

    /// Print one JSON object on standard output instead of the table.
    #[arg(long, help_heading = "Output")]
    pub(crate) json: bool,
}

/// Write the states of a model as one Markov chain, with `--matrices` also P and Lambda.
///
/// The sources of a model together are one chain with the product of their states (M 2^L). For each state
/// its rate (arrivals per bin) and its share of time (`stationary`) are written. The states are in the order
/// of the Kronecker product of the sources of the model file: the state of the last source changes from one
/// line to the next. A profile is not part of the chain.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  linkweir model export shop.json --matrices -w chain.json
  linkweir model export shop.json --matrices --format csv | head

Exit codes:
  0  success
  2  invalid usage, or more states than --matrices allows
  3  the model cannot be read, or the output failed")]
pub(crate) struct ExportArgs {
    /// The model.
    #[arg(value_name = "MODEL.json", value_hint = ValueHint::FilePath)]
    pub(crate) model: PathBuf,

    /// Write the matrices as well, for at most 1,024 states: the transition probabilities P, row by row (in
    /// CSV the columns `p1`, `p2`, ...), and Lambda, whose diagonal has the rates (in CSV the column `rate`).
    #[arg(long)]
    pub(crate) matrices: bool,

    /// Form of the output.
    #[arg(long, value_name = "FORMAT", default_value = "json")]
    pub(crate) format: ExportForm,

    /// File for the chain; `-` is standard output.
    #[arg(short = 'w', long = "write", value_name = "FILE", default_value = "-", value_hint = ValueHint::FilePath)]
    pub(crate) write: PathBuf,

    #[command(flatten)]
    pub(crate) files: OverwriteArgs,
}

/// Form of an exported chain.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ExportForm {
    /// One object.
    Json,
    /// A line for each state.
    Csv,
}

/// Form of a log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum LogForm {
    /// Detected by content.
    Auto,
    /// Common or Combined Log Format.
    Clf,
    /// `WorldCup98` records.
    Wc98,
    /// Records of `linkweir http`.
    Http,
}

impl LogForm {
    /// Whether a log of this form was asked for.
    pub(crate) const fn allows(self, format: LogFormat) -> bool {
        match self {
            Self::Auto => true,
            Self::Clf => matches!(format, LogFormat::Common),
            Self::Wc98 => matches!(format, LogFormat::WorldCup),
            Self::Http => matches!(
                format,
                LogFormat::HttpJson | LogFormat::HttpCsv | LogFormat::HttpText
            ),
        }
    }
}
