//! The flags of `linkweir archive`.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum, ValueHint};

use crate::files::OverwriteArgs;
use crate::units::{Between, Moment};

const AFTER_HELP: &str = "Examples:
  linkweir archive plot link.lwa -o link.svg
  linkweir archive dump link.lwa --series tcp_rtt_avg --level 1day --format jsonl

Exit codes:
  0  success
  1  success, but damaged rows of the archive were omitted
  2  invalid usage: no such series or level
  3  the file is not an archive or cannot be read, or the output failed";

const PLOT_HELP: &str = "Examples:
  linkweir archive plot link.lwa -o link.svg
  linkweir archive plot link.lwa --series tcp_rtt_avg --distribution ccdf --from 2026-11-08 --to 2026-11-15 \
    --against 2025-11-08..2025-11-15 -o years.svg

Exit codes:
  0  success
  1  success, but damaged rows of the archive were omitted
  2  invalid usage: no such series or level
  3  the file is not an archive or cannot be read, or the output failed";

const DUMP_HELP: &str = "Examples:
  linkweir archive dump link.lwa --series tcp_rtt_avg --level 1day
  linkweir archive dump link.lwa --distribution --series tcp_rtt_avg --from 2026-11-01 --to 2026-11-15 \
    -o november.csv

Exit codes:
  0  success
  1  success, but damaged rows of the archive were omitted
  2  invalid usage: no such series or level
  3  the file is not an archive or cannot be read, or the output failed";

/// Read an archive: the file of constant size that `linkweir flows --archive` writes.
///
/// An archive holds every series at four resolutions: with steps of 300 s, the last 50 hours in rows of 5
/// minutes, 14.6 days in rows of 30 minutes, 64.6 days in rows of 2 hours, 797 days in rows of a day.
/// Percentiles cover all values in a row, at every resolution, with a relative error of at most 1/8. An
/// archive can be read while it is written.
#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct ArchiveArgs {
    #[command(subcommand)]
    pub(crate) command: ArchiveCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ArchiveCommand {
    Plot(PlotArgs),
    Dump(DumpArgs),
}

/// Draw a series over the last hour, day, week and month: one direction upwards, the other downwards.
///
/// Distributions (such as `tcp_throughput`) show average, 95th and 99th percentile; counters (such as
/// `bitrate_tcp`) average and largest step. Times without measurements are gaps. Times are UTC.
///
/// With `--distribution`, each of these times is also drawn as the distribution of all its values, a
/// curve for each direction, beside the course over time.
#[derive(Debug, Args)]
#[command(after_help = PLOT_HELP)]
pub(crate) struct PlotArgs {
    /// The archive.
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) file: PathBuf,

    /// Picture to write: an SVG file (.svg); `-` is standard output.
    #[arg(short = 'o', long, value_name = "OUT", value_hint = ValueHint::FilePath)]
    pub(crate) output: PathBuf,

    #[command(flatten)]
    pub(crate) files: OverwriteArgs,

    /// Series to draw, without its direction (`linkweir archive dump FILE --list` shows all).
    #[arg(long, value_name = "NAME", default_value = "tcp_throughput")]
    pub(crate) series: String,

    /// Time to draw: `all` is the days that the archive holds [default: four panels, hour to month].
    #[arg(long, value_name = "SPAN")]
    pub(crate) span: Option<Span>,

    /// End of the time to draw: `2026-11-14`, `2026-11-14 12:00` (UTC) or seconds since 1970 [default: the
    /// latest step].
    #[arg(long, value_name = "TIME", value_parser = crate::units::moment)]
    pub(crate) end: Option<Moment>,

    /// Draw only the time from here on (as for `--end`), in the finest rows that the archive still has
    /// of it [default: the oldest row].
    #[arg(long, value_name = "TIME", value_parser = crate::units::moment, conflicts_with_all = ["span", "end"])]
    pub(crate) from: Option<Moment>,

    /// Draw only the time until here [default: the latest step].
    #[arg(long, value_name = "TIME", value_parser = crate::units::moment, conflicts_with_all = ["span", "end"])]
    pub(crate) to: Option<Moment>,

    /// Draw the distribution of the values beside their course: the probability density, per decade of
    /// the logarithmic axis, or the share of values above (CCDF). Of counters, the values are the rates
    /// of rows.
    #[arg(long, value_name = "CURVE")]
    pub(crate) distribution: Option<Curve>,

    /// A second time to compare with, in the same plot: `FROM..TO`, such as `2025-11-08..2025-11-15`.
    #[arg(long, value_name = "FROM..TO", value_parser = crate::units::between, requires = "distribution")]
    pub(crate) against: Option<Between>,

    /// Direction to draw upwards: `in` (to internal addresses), `out`, `loc` (between internal ones) or
    /// `ext`.
    #[arg(long, value_name = "DIRECTION", default_value = "in")]
    pub(crate) up: Way,

    /// Direction to draw downwards.
    #[arg(long, value_name = "DIRECTION", default_value = "out")]
    pub(crate) down: Way,

    /// Scale of the vertical axis; `log` shows small values beside large ones. A CCDF is always drawn over
    /// logarithmic axes.
    #[arg(long, value_name = "SCALE", default_value = "linear")]
    pub(crate) scale: Scale,
}

/// Write the contents of an archive as a table: one line per series and row.
///
/// Columns: series; unit; level; time, `start_ns` (start of the row; nanoseconds since 1970); `span_ns`
/// (its length); steps (measured in it); count (values; of counters the steps); sum (of a counter: its
/// total); avg, min, max (of counters: per second, of the steps); std, p50, p95, p99 (of all values in the
/// row; counters have none). Round-trip times and durations are in nanoseconds, throughputs in bit/s.
///
/// With `--distribution`: one line per series and bucket over the whole time. Columns: series; unit;
/// level (of counters the rows whose rates are the values); from, to (`from_ns`, `to_ns`: the time that
/// the rows counted have); steps; low, high (the bucket: at least, below); count, share (its values);
/// density (per unit); ccdf (share of the values above `high`).
#[derive(Debug, Args)]
#[command(after_help = DUMP_HELP)]
pub(crate) struct DumpArgs {
    /// The archive.
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) file: PathBuf,

    /// Write only this series: a name (`tcp_rtt_avg_in`), or one without its suffix for all of them
    /// (`tcp_rtt_avg`, `tcp`); may be repeated [default: all].
    #[arg(long, value_name = "NAME")]
    pub(crate) series: Vec<String>,

    /// Write only rows of this length: 5min, 30min, 2h or 1day, with steps of 300 s; may be repeated
    /// [default: all].
    #[arg(long, value_name = "LEVEL")]
    pub(crate) level: Vec<String>,

    /// Write only rows that end after this time: `2026-11-14`, `2026-11-14 12:00` (UTC) or seconds since
    /// 1970 [default: all].
    #[arg(long, value_name = "TIME", value_parser = crate::units::moment)]
    pub(crate) from: Option<Moment>,

    /// Write only rows that begin before this time [default: all].
    #[arg(long, value_name = "TIME", value_parser = crate::units::moment)]
    pub(crate) to: Option<Moment>,

    /// Write the distribution of all values between `--from` and `--to` instead of rows.
    #[arg(long, conflicts_with_all = ["level", "list"])]
    pub(crate) distribution: bool,

    /// A second time to compare with: `FROM..TO`, such as `2025-11-08..2025-11-15`.
    #[arg(long, value_name = "FROM..TO", value_parser = crate::units::between, requires = "distribution")]
    pub(crate) against: Option<Between>,

    /// Format of the table.
    #[arg(long, value_name = "FORMAT", default_value = "csv")]
    pub(crate) format: Table,

    /// File to write; `-` is standard output.
    #[arg(short = 'o', long, value_name = "OUT", default_value = "-", value_hint = ValueHint::FilePath)]
    pub(crate) output: PathBuf,

    #[command(flatten)]
    pub(crate) files: OverwriteArgs,

    /// List the series with their units, and the levels with their rows, and exit.
    #[arg(long)]
    pub(crate) list: bool,
}

/// A time to draw.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Span {
    /// The last hour, in single steps.
    Hour,
    /// The last 24 hours, in rows of 6 steps (30 min).
    Day,
    /// The last 7 days, in rows of 6 steps (30 min).
    Week,
    /// The last 30 days, in rows of 24 steps (2 h).
    Month,
    /// Everything, in rows of 288 steps (1 day).
    All,
}

impl Span {
    /// Its length in nanoseconds; of everything the archive knows it.
    pub(crate) const fn length_ns(self) -> Option<u64> {
        const HOUR: u64 = 3600 * 1_000_000_000;
        match self {
            Self::Hour => Some(HOUR),
            Self::Day => Some(24 * HOUR),
            Self::Week => Some(7 * 24 * HOUR),
            Self::Month => Some(30 * 24 * HOUR),
            Self::All => None,
        }
    }
}

/// A direction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Way {
    /// From external to internal addresses.
    In,
    /// From internal to external addresses.
    Out,
    /// Between internal addresses.
    Loc,
    /// Between external addresses.
    Ext,
}

impl Way {
    /// As series end.
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::In => "in",
            Self::Out => "out",
            Self::Loc => "loc",
            Self::Ext => "ext",
        }
    }
}

/// A way to draw a distribution.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Curve {
    /// The probability density function.
    Pdf,
    /// The complementary cumulative distribution function.
    Ccdf,
}

/// How values become heights.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Scale {
    /// In proportion.
    Linear,
    /// By their logarithm.
    Log,
}

/// Format of a dump.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Table {
    /// Comma-separated, with a heading.
    Csv,
    /// One JSON object per line.
    Jsonl,
}
