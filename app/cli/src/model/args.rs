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
  0  done
  1  done, but lines of a log could not be read, or a limit (--max-ic, --max-mean-error) is not met
  2  wrong usage
  3  an input cannot be read or fitted, or the output failed";

/// Models how sessions arrive at a server, and makes arrivals that resemble a log.
///
/// `sessions` finds the sessions of a web log, `fit` makes a model of their counts per bin of time (a
/// discrete-time Markov modulated Poisson process: the same mean, histogram and autocovariance),
/// `simulate` draws counts from it, `check` says how far model and counts are apart. `linkweir load`
/// sends by the model.
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
}

/// What a session is.
#[derive(Debug, Args)]
#[command(next_help_heading = "Logs")]
pub(crate) struct LogArgs {
    /// A request begins a new session when nothing came from its client for longer than this.
    #[arg(long, value_name = "DURATION", default_value = "30m", value_parser = units::duration)]
    pub(crate) timeout: Duration,

    /// Form of the logs: `clf` is Common or Combined Log Format, `wc98` the binary records of the 1998
    /// World Cup logs, `http` records of `linkweir http` as JSON lines, CSV, text, Parquet or a stream of
    /// Arrow.
    #[arg(long, value_name = "FORMAT", default_value = "auto")]
    pub(crate) format: LogForm,

    /// How much later than its place in time a line may come and is still put in order.
    #[arg(long, value_name = "DURATION", default_value = "1m", value_parser = units::duration)]
    pub(crate) disorder: Duration,

    /// Clients remembered at once, and counted apart; about 100 bytes each.
    #[arg(long, value_name = "N", default_value_t = 4_194_304, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) max_clients: u32,
}

/// Which part of the time.
#[derive(Debug, Clone, Copy, Args)]
#[command(next_help_heading = "Input")]
pub(crate) struct SpanArgs {
    /// Only what begins at this time or later: `1998-06-08`, `'1998-06-08 22:00'` (UTC) or seconds since
    /// 1970 [default: all].
    #[arg(long, value_name = "TIME", value_parser = units::moment)]
    pub(crate) from: Option<Moment>,

    /// Only what begins before this time [default: all].
    #[arg(long, value_name = "TIME", value_parser = units::moment)]
    pub(crate) to: Option<Moment>,

    /// Longest time without an arrival that is filled with empty bins. A longer one is refused: as a rule
    /// one line has a wrong time.
    #[arg(long, value_name = "DURATION", default_value = "30d", value_parser = units::duration)]
    pub(crate) max_gap: Duration,
}

/// Finds the sessions of web logs: when they begin, or how many begin in each bin of time.
///
/// A request begins a new session of its client when nothing came from that client for the timeout.
/// Several logs are merged by time: rotated logs and logs of several servers, in any order. They may be
/// compressed (gzip, zstd, xz, lz4, told by content). Lines that cannot be read are counted by cause with
/// the first of each.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  linkweir model sessions access.log.1.gz access.log --bin 10s -w counts.csv
  linkweir model sessions wc_day45_*.gz wc_day46_*.gz --timeout 10m --from '1998-06-08 22:00' -w starts.csv

Exit codes:
  0  done
  1  done, but lines or records of a log could not be read, or came too late
  2  wrong usage
  3  an input is no log or cannot be read, or the output failed")]
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

    /// No summary on standard error.
    #[arg(short, long, help_heading = "Output")]
    pub(crate) quiet: bool,
}

/// How counts are read.
#[derive(Debug, Args)]
#[command(next_help_heading = "Input")]
pub(crate) struct SeriesArgs {
    /// Length of a bin. Counts of shorter bins are summed, those of longer ones need `--spread`
    /// [default: that of the counts where they have times, else 10s; in `check` that of the model].
    #[arg(long, value_name = "DURATION", value_parser = units::duration)]
    pub(crate) bin: Option<Duration>,

    /// Column of a table that holds the counts (with `--events` the times): its name, or its number
    /// from 1 [default: told by content].
    #[arg(long, value_name = "NAME")]
    pub(crate) column: Option<String>,

    /// Every line of the table is an event, and the column its time.
    #[arg(long)]
    pub(crate) events: bool,

    /// Spread counts of longer bins over shorter ones: Poisson draws with this seed around a rate that
    /// goes in lines from middle to middle. Counts without times are taken as per minute. What comes
    /// out has no structure below the counted bins: a surrogate.
    #[arg(long, value_name = "SEED")]
    pub(crate) spread: Option<u64>,

    /// Arrivals per bin on average after `--spread` [default: as many as were counted].
    #[arg(long, value_name = "COUNT", requires = "spread", value_parser = units::positive)]
    pub(crate) mean: Option<f64>,
}

/// Fits a model to counts, to the sessions of logs, or to a list of events.
///
/// INPUT is told by content: a table of counts (CSV, one column or time and count), a table of events
/// (a time on each line), or logs, whose sessions are counted. It prints what the model is, how long it
/// remembers, and how far it is from the counts.
///
/// A stationary model takes a daily trend for chance. Where the rate goes up and down by the hour, give
/// `--profile`: the slow trend is kept as it is, and the process models what is left.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  linkweir model fit counts.csv --bin 10s -o shop.json
  linkweir model fit access.log --bin 10s --timeout 10m --profile 15m -o shop.json --max-ic 5

Exit codes:
  0  done
  1  done, but lines of a log could not be read, or a limit is not met
  2  wrong usage
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

    /// Exit with 1 where the inequality coefficient (the paper's, by the equations, over the lags of the
    /// fit) is above this, in per cent [default: no limit].
    #[arg(long, value_name = "PERCENT", value_parser = units::positive, help_heading = "Limits")]
    pub(crate) max_ic: Option<f64>,

    /// Exit with 1 where the mean of the model is further from that of the counts, in per cent
    /// [default: no limit].
    #[arg(long, value_name = "PERCENT", value_parser = units::positive, help_heading = "Limits")]
    pub(crate) max_mean_error: Option<f64>,

    #[command(flatten)]
    pub(crate) files: OverwriteArgs,

    /// One JSON object on standard output in place of the table.
    #[arg(long, help_heading = "Output")]
    pub(crate) json: bool,

    /// No table, and nothing on standard error but faults.
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

    /// States of the model: M times two to the power L, 64 at most [default: as many as the counts ask for].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=64))]
    pub(crate) states: Option<u32>,

    /// Two-state sources, L: one for each time scale of the autocovariance [default: as many as it takes, 3
    /// at most].
    #[arg(long, value_name = "L", value_parser = clap::value_parser!(u32).range(0..=4))]
    pub(crate) sources: Option<u32>,

    /// Keep a slow trend as it is: the mean over this length around each bin. The model then repeats the
    /// trend of the counts [default: no trend, a stationary model].
    #[arg(long, value_name = "DURATION", value_parser = units::duration)]
    pub(crate) profile: Option<Duration>,
}

/// Draws counts from a model.
///
/// The same seed gives the same counts on every machine and in every version.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  linkweir model simulate shop.json --bins 17280 --seed 1 -w counts.csv
  linkweir model simulate shop.json --bins 360 --seed 2 | head

Exit codes:
  0  done
  2  wrong usage
  3  the model cannot be read, or the output failed")]
pub(crate) struct SimulateArgs {
    /// The model.
    #[arg(value_name = "MODEL.json", value_hint = ValueHint::FilePath)]
    pub(crate) model: PathBuf,

    /// How many bins.
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

    /// No summary on standard error.
    #[arg(short, long)]
    pub(crate) quiet: bool,
}

/// Says how far a model is from counts: mean, histogram, autocovariance, likelihood.
///
/// By its equations, and, with `--simulate`, as it comes out in runs as long as the counts. The
/// inequality coefficient of the autocovariances is given as the paper defines it and as Theil does, over
/// the lags that are stated. A plot shows the histogram of the counts, that of the model, and both
/// autocovariances.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  linkweir model check shop.json counts.csv --plot shop.svg
  linkweir model check shop.json access.log --simulate 20 --lags 300 --json

Exit codes:
  0  done
  1  done, but lines of a log could not be read, or a limit is not met
  2  wrong usage
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

    /// Draw this many runs as long as the counts and compare them too: their median, least and largest
    /// [default: none].
    #[arg(long, value_name = "RUNS", default_value_t = 0, hide_default_value = true, value_parser = clap::value_parser!(u32).range(0..=100_000), help_heading = "Check")]
    pub(crate) simulate: u32,

    /// Seed of the first run; the next ones follow.
    #[arg(long, value_name = "SEED", default_value_t = 1, help_heading = "Check")]
    pub(crate) seed: u64,

    /// As in `fit`: exit with 1 where the inequality coefficient is above this, in per cent.
    #[arg(long, value_name = "PERCENT", value_parser = units::positive, help_heading = "Limits")]
    pub(crate) max_ic: Option<f64>,

    /// As in `fit`: exit with 1 where the means are further apart, in per cent.
    #[arg(long, value_name = "PERCENT", value_parser = units::positive, help_heading = "Limits")]
    pub(crate) max_mean_error: Option<f64>,

    /// Draw histograms and autocovariance into this file; its ending says as what: .svg or .html.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, help_heading = "Output")]
    pub(crate) plot: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) files: OverwriteArgs,

    /// One JSON object on standard output in place of the table.
    #[arg(long, help_heading = "Output")]
    pub(crate) json: bool,
}

/// Form of a log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum LogForm {
    /// Told by content.
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
