//! The flags of `linkweir report`.

use std::path::PathBuf;

use clap::{Args, ValueHint};
use linkweir_sink::{Format, TimeStyle};

use crate::common_args::{ChoiceArgs, StoreArgs, formats, time_style};
use crate::files::OverwriteArgs;
use crate::units::{self, Moment};

const AFTER_HELP: &str = "Examples:
  linkweir report http.jsonl.gz --by host,status --by url
  linkweir report /data/http --from 2026-11-27T08:00:00Z --to 2026-11-27T09:00:00Z --report morning.html
  linkweir report /data/http --where 'host = shop.test and status >= 500' --records
  linkweir report --compare before/ after/ --by url
  zcat http-*.jsonl.gz | linkweir report -

Exit codes:
  0  success
  1  success, but records could not be read (damaged lines, truncated files), or an output lost some
  2  invalid usage, or records of different kinds
  3  an input cannot be read, or the output failed";

/// Report on records that `http`, `flows`, `gateway` or `load` wrote before.
///
/// Reads JSON lines (also compressed), Parquet files and Arrow streams, in any order, in bounded memory, and prints
/// totals, distributions and tables. Each row of a table comes with the condition that finds its records: give it to
/// `--where`, with `--records` to write them. Percentiles of all records are at most 0.1 % too large, those of rows
/// (≈) at most 12.5 %; of rows, the 1,024 largest of each table are counted.
#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct ReportArgs {
    /// Records: files, or directories of them; `-` is standard input (JSON lines or Arrow).
    #[arg(value_name = "RECORDS", required_unless_present = "compare", value_hint = ValueHint::AnyPath)]
    pub(crate) records: Vec<PathBuf>,

    /// Compare two sets of records, each a file or a directory, instead of RECORDS; a percentile that differs by more than its
    /// histogram may err is marked, from 20 values on for p50, 100 for p95, 500 for p99.
    #[arg(long, num_args = 2, value_names = ["A", "B"], conflicts_with_all = ["records", "wants_records"], value_hint = ValueHint::AnyPath)]
    pub(crate) compare: Vec<PathBuf>,

    /// Kind of the records (`linkweir schema`); files of other kinds are then passed over [default: that of the first file; others are an error].
    #[arg(long, value_name = "KIND")]
    pub(crate) kind: Option<String>,

    /// Group records by this column, or by `host`, `url`, `client`, `server`, `country`, or by several together (`host,status`); may be
    /// repeated, and a table is made for each [default: those of the kind, such as host, url, client and server].
    #[arg(long, value_name = "COLUMN,...")]
    pub(crate) by: Vec<String>,

    /// Rows of a table, and records in the list of the slowest.
    #[arg(long, value_name = "ROWS", default_value_t = 10, value_parser = clap::value_parser!(u16).range(1..=1000))]
    pub(crate) rows: u16,

    /// Take only records of this time or later: `2026-11-27T08:00:00Z` (RFC 3339), `2026-11-27`, seconds since 1970, or `-1h`:
    /// an hour before now [default: all].
    #[arg(long, value_name = "TIME", value_parser = units::moment, allow_hyphen_values = true)]
    pub(crate) from: Option<Moment>,

    /// Take only records before this time [default: all].
    #[arg(long, value_name = "TIME", value_parser = units::moment, allow_hyphen_values = true)]
    pub(crate) to: Option<Moment>,

    /// Take only records that match this expression over the columns, for example `status >= 500 and host ~ "shop"`; the
    /// same as that of `linkweir http --where`. Estimates count among the others where it names `source`.
    #[arg(long = "where", value_name = "EXPR")]
    pub(crate) condition: Option<String>,

    /// Take at most this many records, then end [default: all].
    #[arg(long, value_name = "RECORDS", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) head: Option<u64>,

    /// Write an HTML page, without references to anything outside it; `-` is standard output.
    #[arg(long, value_name = "FILE", help_heading = "Output", value_hint = ValueHint::FilePath)]
    pub(crate) report: Option<String>,

    /// Write the figures as JSON; `-` is standard output.
    #[arg(long, value_name = "FILE", help_heading = "Output", value_hint = ValueHint::FilePath)]
    pub(crate) summary: Option<String>,

    /// Write the records themselves instead of a report.
    #[arg(long = "records", help_heading = "Output", conflicts_with_all = ["by", "report", "summary"])]
    pub(crate) wants_records: bool,

    /// Destination of the records; may be repeated [default: standard output].
    #[arg(short, long, value_name = "DEST", help_heading = "Output", requires = "wants_records", value_hint = ValueHint::FilePath)]
    pub(crate) write: Vec<String>,

    /// Format of the records [default: by the extension of the destination; otherwise `text`, on a terminal `table`].
    #[arg(long, value_name = "FORMAT", help_heading = "Output", requires = "wants_records", value_parser = formats())]
    pub(crate) format: Option<Format>,

    /// Write only these columns of the records, in this order, in `text`, `jsonl`, `csv` and `spreadsheet` [default: those of the format].
    #[arg(
        long,
        value_name = "COLUMN,...",
        help_heading = "Output",
        requires = "wants_records",
        value_delimiter = ','
    )]
    pub(crate) fields: Vec<String>,

    /// Show times in a table of records as time of day here (`local`) or in UTC (`utc`), in seconds since 1970 (`epoch`), or
    /// since the first record (`relative`); an error where no table is written [default: local].
    #[arg(long, value_name = "local|utc|epoch|relative", help_heading = "Output", requires = "wants_records", value_parser = time_style())]
    pub(crate) time: Option<TimeStyle>,

    #[command(flatten)]
    pub(crate) files: OverwriteArgs,

    /// Suppress the report on standard output.
    #[arg(short, long)]
    pub(crate) quiet: bool,
}

impl ReportArgs {
    /// How records are written.
    pub(super) fn store(&self) -> StoreArgs {
        StoreArgs {
            choice: ChoiceArgs {
                condition: None,
                fields: self.fields.clone(),
                head: None,
                time: self.time,
            },
            files: self.files,
            ..StoreArgs::default()
        }
    }
}
