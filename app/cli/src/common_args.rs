//! Flags and formats that several commands have.

use std::time::Duration;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Args, ValueHint};
use linkweir_proto::application::Application;
use linkweir_sink::{Format, OutputOptions, Partition};

use crate::clock::wall_clock;
use crate::exit::warn;
use crate::files::OverwriteArgs;
use crate::signals::is_stopping;
use crate::units;

/// What can be looked at while a command runs.
#[derive(Debug, Args)]
#[command(next_help_heading = "Live view")]
pub(crate) struct ViewArgs {
    /// Length of an interval of the live statistics; without `--console` and `--top` each one is a
    /// line on standard error [default: 1s, and no lines].
    #[arg(long, value_name = "DURATION", value_parser = units::duration)]
    pub(crate) interval: Option<Duration>,

    /// Serve a web page with the live statistics, and `/metrics` for Prometheus, at this address, for
    /// example `127.0.0.1:8080`. An address that others reach needs a token. `stdin`: the standard input
    /// is a socket that listens already, as systemd gives one.
    #[arg(long, value_name = "ADDR", value_hint = ValueHint::Other)]
    pub(crate) console: Option<String>,

    /// Token that the page and `/metrics` ask for, as `?token=` or `Authorization: Bearer` [default: none
    /// on loopback, else made and printed].
    #[arg(long, value_name = "TEXT", requires = "console")]
    pub(crate) console_token: Option<String>,

    /// Name under which browsers reach the page, where that is no address; may be repeated.
    #[arg(long, value_name = "HOST", requires = "console")]
    pub(crate) console_host: Vec<String>,

    /// Show the live statistics in the terminal; q ends the run.
    #[arg(long)]
    pub(crate) top: bool,

    /// Alert when this holds; may be repeated. A rule is METRIC [of WHAT NAME] COMPARISON LIMIT [for N
    /// intervals] [min N samples], for example (http) `p95 of host shop.test > 500 ms for 3 intervals`, `5xx share > 2 %`;
    /// (flows) `p95 of rtt of server 10.0.0.1 > 200 ms`, `retransmissions share > 3 %`; (gateway)
    /// `infected rate of client 10.0.0.7 > 0 /s`. Metrics of http: p50 p90 p95 p99 p999 mean max,
    /// 4xx|5xx|unanswered share, requests rate, of host|server|url; of flows: p50... of rtt|client
    /// rtt|server rtt|handshake|throughput|duration, flows|resets|packets|bits rate (`/s`),
    /// retransmissions|resets|unanswered share, active flows, of server|client|name|application; of both:
    /// table fill; of a gateway: events|blocked|infected|keyword|unscanned rate (`/s`), and
    /// decided|message|file|limit|malformed|unseen rate, of application|client|server, packets|bits rate; of all:
    /// drops. A value needs samples: 20 for shares, mean and percentiles up to p95, 100 for p99, 1000 for
    /// p999, none for rates, unless the rule ends with `min N samples`. An interval with fewer is judged
    /// together with those before it, the last N (at least 10); with too few in all of these the rule has
    /// `no data`, which is not `resolved`.
    /// Alerts go to standard error, `/metrics` and `--webhook`.
    #[arg(long, value_name = "RULE")]
    pub(crate) alert: Vec<String>,

    /// POST alerts as JSON to this URL.
    #[arg(long, value_name = "URL", requires = "alert", value_hint = ValueHint::Url)]
    pub(crate) webhook: Option<String>,
}

/// What destinations that keep or carry many records want to know.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Output")]
pub(crate) struct StoreArgs {
    #[command(flatten)]
    pub(crate) files: OverwriteArgs,

    /// Sort Parquet files into directories by the time of their records (UTC): `-w` then names a directory, in
    /// which `date=2026-11-22/hour=07/part-000001.parquet` and so on appear [default: one file].
    #[arg(long, value_name = "hour|day", value_parser = partition)]
    pub(crate) partition: Option<Partition>,

    /// Bytes that all files of a partitioned output may take (`100GB`); with more, the oldest are deleted,
    /// and that is told [default: no limit].
    #[arg(long, value_name = "SIZE", value_parser = units::size, requires = "partition")]
    pub(crate) budget: Option<u64>,

    /// Name of this probe in the messages of `kafka://` [default: the name of the host].
    #[arg(long, value_name = "NAME")]
    pub(crate) probe: Option<String>,

    /// Setting of the Kafka client, by librdkafka's name, for example `compression.codec=zstd`; may be
    /// repeated. `queue.buffering.max.messages` and `.kbytes` bound what waits for a broker [default: 500000
    /// and 262144]; `linkweir.patience.ms` is how long a file, or the end of any run, waits for a broker that
    /// takes nothing [default: 300000 for files, 30000 else].
    #[arg(long, value_name = "NAME=VALUE", value_parser = setting)]
    pub(crate) kafka: Vec<(String, String)>,
}

impl StoreArgs {
    /// The options of an output; `is_live` where records come from an interface.
    pub(crate) fn options(&self, is_live: bool) -> OutputOptions {
        OutputOptions {
            wall_clock_ns: wall_clock,
            is_live,
            existing: self.files.existing(is_live),
            partition: self.partition,
            budget: self.budget,
            probe: self.probe.clone().unwrap_or_else(host_name),
            kafka: self.kafka.clone(),
            is_stopping,
            announce: warn,
            ..OutputOptions::default()
        }
    }
}

fn host_name() -> String {
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    name.trim().to_owned()
}

fn partition(word: &str) -> Result<Partition, String> {
    match word {
        "hour" => Ok(Partition::Hour),
        "day" => Ok(Partition::Day),
        _ => Err("one of hour, day".to_owned()),
    }
}

pub(crate) fn setting(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.to_owned(), value.to_owned())),
        _ => Err("NAME=VALUE, for example compression.codec=zstd".to_owned()),
    }
}

/// What a help text says of applications: all their names.
pub(crate) fn applications() -> String {
    let mut names: Vec<&str> = Application::ALL.iter().map(|one| one.as_str()).collect();
    names.sort_unstable();
    let mut text =
        "Applications (anything else is unknown; of http, HTTP/2 is known but not inspected; a rule for\n  stun or for dtls fits stun,dtls):"
            .to_owned();
    let mut column = usize::MAX;
    for name in names {
        column = column.saturating_add(1 + name.len());
        if column > LINE {
            text.push_str("\n ");
            column = 2 + name.len();
        }
        text.push(' ');
        text.push_str(name);
    }
    text
}

/// Columns of a line of help.
const LINE: usize = 100;

/// The names of formats.
pub(crate) fn formats() -> impl TypedValueParser<Value = Format> {
    PossibleValuesParser::new(Format::ALL.map(Format::as_str))
        .try_map(|name| Format::from_name(&name).ok_or("no such format"))
}
