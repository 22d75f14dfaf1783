//! The command line: commands, and the flags that several have in common.

use std::path::PathBuf;
use std::time::Duration;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Args, Parser, Subcommand, ValueHint};
pub(crate) use linkweir_cli::files::OverwriteArgs;
use linkweir_cli::lab::LabArgs;
use linkweir_proto::application::Application;
use linkweir_sink::{Format, OutputOptions, Partition, Rotation};

use crate::archive::ArchiveArgs;
#[cfg(feature = "kafka")]
use crate::console::ConsoleArgs;
use crate::exit::warn;
use crate::feed::FeedArgs;
use crate::flows::FlowsArgs;
use crate::gateway::GatewayArgs;
use crate::halves::HalvesArgs;
use crate::http::HttpArgs;
use crate::load::args::LoadArgs;
use crate::merge::MergeArgs;
use crate::model::ModelArgs;
use crate::progress::wall_clock;
use crate::schema::SchemaArgs;
use crate::signals::is_stopping;
use crate::units;

/// Measures and controls network traffic: HTTP transactions without TCP reassembly, every TCP and UDP
/// flow, an inline gateway by application, and load from many emulated clients.
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
    Flows(Box<FlowsArgs>),
    Halves(Box<HalvesArgs>),
    Feed(Box<FeedArgs>),
    Gateway(GatewayArgs),
    Load(Box<LoadArgs>),
    Model(ModelArgs),
    Lab(LabArgs),
    Archive(ArchiveArgs),
    #[cfg(feature = "kafka")]
    Console(Box<ConsoleArgs>),
    Merge(MergeArgs),
    Schema(SchemaArgs),
    Man(ManArgs),
    Completions(CompletionArgs),
}

/// Writes the manual pages into a directory.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  linkweir man man/\n  man ./man/linkweir-http.1\n\nExit codes:\n  0  done\n  2  wrong command line\n  3  the directory cannot be written"
)]
pub(crate) struct ManArgs {
    /// Directory for the pages; made where it is missing.
    #[arg(value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) directory: PathBuf,
}

/// Prints a completion script for a shell.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  linkweir completions bash > ~/.local/share/bash-completion/completions/linkweir\n  linkweir completions zsh > ~/.zfunc/_linkweir\n\nExit codes:\n  0  done\n  2  wrong command line\n  3  standard output cannot be written"
)]
pub(crate) struct CompletionArgs {
    /// The shell.
    #[arg(value_name = "SHELL")]
    pub(crate) shell: clap_complete::Shell,
}

/// What a passive command reads.
#[derive(Debug, Args)]
#[command(next_help_heading = "Input")]
pub(crate) struct InputArgs {
    /// Capture to read: a file, a directory (the captures in it and below it, up to 32 levels deep, by
    /// name) or `-` for standard input; may be given several times, all are one trace in this order. pcap, pcapng, ERF
    /// and snoop, plain or compressed by gzip, zstd, xz or lz4, are recognised by their content.
    #[arg(short = 'r', long = "read", value_name = "PATH", value_hint = ValueHint::AnyPath)]
    pub(crate) read: Vec<PathBuf>,

    /// Interface to capture on, for example `eth0`, or `any`; `xdp:eth0` takes its frames by
    /// `AF_XDP`. Needs `CAP_NET_RAW` (xdp: also `CAP_BPF` and `CAP_NET_ADMIN`); runs until a signal or `-c`.
    #[arg(
        short = 'i',
        long,
        value_name = "IFACE",
        conflicts_with = "read",
        value_hint = ValueHint::Other
    )]
    pub(crate) interface: Option<String>,

    /// List the interfaces and end.
    #[arg(short = 'D', long)]
    pub(crate) list_interfaces: bool,

    /// Only packets that match this libpcap filter expression, for example `tcp port 80`; on an
    /// interface the kernel applies it [default: all packets].
    #[arg(short = 'f', long, value_name = "BPF")]
    pub(crate) filter: Option<String>,

    /// Stop after this many packets [default: all].
    #[arg(short = 'c', long, value_name = "PACKETS")]
    pub(crate) count: Option<u64>,

    /// Bytes kept of each packet of an interface; 0 is the default.
    #[arg(short = 's', long, value_name = "BYTES", default_value_t = 262_144, value_parser = clap::value_parser!(u32).range(..=262_144))]
    pub(crate) snaplen: u32,

    /// Do not put the interface into promiscuous mode.
    #[arg(short = 'p', long)]
    pub(crate) no_promiscuous: bool,

    /// Size of the capture ring of each worker, in KiB; at least 1024 is taken.
    #[arg(short = 'B', long = "buffer-size", value_name = "KIB", default_value_t = 65_536, value_parser = clap::value_parser!(u32).range(1..=16_777_216), help_heading = "Performance")]
    pub(crate) buffer_size: u32,

    /// Bytes per read of a file.
    #[arg(long, value_name = "SIZE", default_value = "512KiB", value_parser = units::size, help_heading = "Performance")]
    pub(crate) read_size: u64,
}

/// On how many cores a passive command works.
#[derive(Debug, Args)]
#[command(next_help_heading = "Performance")]
pub(crate) struct WorkerArgs {
    /// Threads that share the work; `auto` is one a core. Records and totals are those of one.
    #[arg(long, value_name = "N", default_value = "1", value_parser = units::workers)]
    pub(crate) workers: usize,

    /// Who deals the packets of an interface to several workers: the `kernel` (`PACKET_FANOUT`), each
    /// packet by itself, by addresses, ports and the acknowledgment or sequence number that a request and
    /// its response share (Eq. (3) of Vega et al. 2017); or a `reader` thread, which also keeps together
    /// what spans workers: pipelines, heads over several segments. Files always have a reader, and so has
    /// `--ttlb`.
    #[arg(long, value_name = "WHO", default_value = "kernel")]
    pub(crate) fanout: Fanout,
}

/// Who deals packets to workers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Fanout {
    /// The kernel.
    Kernel,
    /// A thread of the process.
    Reader,
}

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

impl ViewArgs {
    /// Whether there is a page to look at.
    pub(crate) const fn has_console(&self) -> bool {
        self.console.is_some()
    }

    /// Whether the terminal is for the live view.
    pub(crate) const fn has_top(&self) -> bool {
        self.top
    }
}

/// What a command writes.
#[derive(Debug, Args)]
#[command(next_help_heading = "Output")]
pub(crate) struct OutputArgs {
    /// Where the records go: a path, or `-` for standard output; may be given several times. A
    /// file appears under its name when it is complete; until then it is `.NAME.partial`, and if the run is
    /// killed, the next one keeps that. `kafka://HOST[:PORT][,HOST...]/TOPIC`: messages of a topic, without
    /// TLS; `ipfix://HOST:PORT`: flows to a collector [default: `-`; nowhere with `--top`].
    #[arg(short = 'w', long = "write", value_name = "DEST", value_hint = ValueHint::FilePath)]
    pub(crate) write: Vec<String>,

    #[command(flatten)]
    pub(crate) records: RecordArgs,

    /// Format of the records; `spreadsheet` is CSV without formulas and rounded times [default: by the
    /// ending: .jsonl .json .ndjson, .csv, .parquet, .arrow, .zeek or http.log, .zeek.json, .txt .text
    /// .log; text where there is none].
    #[arg(long, value_name = "FORMAT", value_parser = formats())]
    pub(crate) format: Option<Format>,

    /// Begin a new file after this size (`100MB`, `64MiB`) or capture time (`300s`, `1h`; on an interface
    /// also by the clock, where nothing comes):
    /// out.jsonl becomes out-000001.jsonl and so on, after the highest number there is [default: one
    /// file; after a SIGHUP also numbered].
    #[arg(long, value_name = "SIZE|DURATION")]
    pub(crate) rotate: Option<Rotation>,

    #[command(flatten)]
    pub(crate) store: StoreArgs,

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

/// Whether records are written at all.
#[derive(Debug, Clone, Copy, Default, Args)]
pub(crate) struct RecordArgs {
    /// Write no records: only count.
    #[arg(long, conflicts_with = "write", help_heading = "Output")]
    pub(crate) no_output: bool,
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
