//! The flags of `linkweir flows`.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum, ValueHint};
use linkweir_flows::Classifier;
use linkweir_sink::Format;

use crate::common_args::{ViewArgs, applications};
use crate::passive::args::{FeederArgs, InputArgs, OutputArgs, PageArgs, WorkerArgs};
use crate::units;

const EXAMPLES: &str = "
Examples:
  linkweir flows -r trace.pcap.zst -w flows.jsonl
  linkweir flows -i eth0 --internal nets.txt --format tstat -w logs/ --archive link.lwa --console 127.0.0.1:8080

Exit codes:
  0  done
  1  done, but data was lost (input truncated or corrupt in the middle, drops, flows evicted,
     fragments missing, one of several outputs failed)
  2  wrong usage or configuration
  3  an input gave nothing (no such file, no capture), or no output was left
SIGINT or SIGTERM ends a run early with everything written and 0; a second one aborts.
SIGHUP begins new output files; SIGUSR1 prints a line of progress.";

/// Measures every TCP and UDP flow: one record each, both directions in it, as Tstat does.
///
/// A record has Tstat's columns with Tstat's names and units (times in milliseconds): packets, bytes,
/// retransmissions and why, round-trip times of both halves of the path, windows, options, TLS, HTTP
/// and QUIC, the name of the server; and what Tstat does not have: application, state, `flow_id`,
/// `classifier_evidence`. Format text is a line
/// `protocol|c_ip|c_port|s_ip|s_port|first|durat|c_pkts_all|s_pkts_all|c_bytes_all|s_bytes_all|c_pkts_retx|s_pkts_retx|c_rtt_avg|s_rtt_avg|state|application|sni|fqdn`
/// with times in seconds; jsonl and csv have all columns; zeek is a conn.log; tstat is Tstat's tree of
/// logs and histograms.
///
/// A flow ends by FIN or RST, or when it is idle; flows whose SYN was not seen are measured too
/// (`has_syn` is 0). Segments out of sequence are told apart by timestamps, selective
/// acknowledgments, identification fields and time: retransmitted by the timer or fast, reordered,
/// duplicated by the network, probing.
///
/// Link layers: Ethernet with VLAN tags, MPLS, PPPoE; Linux cooked, null/loop, raw IP, PPP, HDLC. Of
/// tunnels (GRE, ERSPAN, VXLAN, Geneve, GTP-U, CAPWAP, IP in IP, 6in4, AYIYA, Teredo) the inner flow is
/// measured. IP fragments are reassembled.
#[derive(Debug, Args)]
#[command(after_help = [applications().as_str(), EXAMPLES].join("\n"))]
pub(crate) struct FlowsArgs {
    #[command(flatten)]
    pub(crate) input: InputArgs,

    #[command(flatten)]
    pub(crate) feeder: FeederArgs,

    #[command(flatten)]
    pub(crate) tracking: TrackingArgs,

    #[command(flatten)]
    pub(crate) output: OutputArgs,

    #[command(flatten)]
    pub(crate) page: PageArgs,

    #[command(flatten)]
    pub(crate) store: FlowStoreArgs,

    #[command(flatten)]
    pub(crate) view: ViewArgs,

    #[command(flatten)]
    pub(crate) workers: WorkerArgs,
}

/// How flows are followed.
#[derive(Debug, Args)]
#[command(next_help_heading = "Tracking")]
pub(crate) struct TrackingArgs {
    /// File with the internal networks, one a line: `10.0.0.0/8`, `10.0.0.0/255.0.0.0`, `2001:db8::/32`,
    /// or a network and its mask on two lines; `#` begins a comment [default: all addresses are
    /// internal].
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) internal: Option<PathBuf>,

    /// A TCP flow without packets for this much capture time has ended.
    #[arg(long, value_name = "DURATION", default_value = "300s", value_parser = units::duration)]
    pub(crate) tcp_idle: Duration,

    /// A UDP flow without packets for this much capture time has ended; one of a single packet after
    /// `--syn-timeout` already.
    #[arg(long, value_name = "DURATION", default_value = "200s", value_parser = units::duration)]
    pub(crate) udp_idle: Duration,

    /// A TCP flow of nothing but SYNs, and a UDP flow of one packet, have ended after this, as in Tstat.
    #[arg(long, value_name = "DURATION", default_value = "10s", value_parser = units::duration)]
    pub(crate) syn_timeout: Duration,

    /// How long a flow that was closed stays at least, so that what still comes of it (a last ACK, a
    /// repeated FIN) counts with it; ten times as long after RST, and two of its round trips where that
    /// is longer.
    #[arg(long, value_name = "DURATION", default_value = "150ms", value_parser = units::duration)]
    pub(crate) linger: Duration,

    /// Flows at most at once; with more, the one idle longest (of a sample) leaves and is counted.
    /// Each takes about half a KiB.
    #[arg(long, value_name = "N", default_value_t = 1 << 20, value_parser = clap::value_parser!(u32).range(16..=1 << 27))]
    pub(crate) max_flows: u32,

    /// How segments out of sequence are classified: by `evidence` (timestamps, selective
    /// acknowledgments, then time), or by the published rules exactly as `tstat` applies them.
    #[arg(long, value_name = "RULES", default_value = "evidence")]
    pub(crate) classifier: Rules,

    /// Write partial records of this period too: what was added since the one before. They add up
    /// to the final record, which has `record` = `final` [default: final records only].
    #[arg(long, value_name = "DURATION", value_parser = units::duration)]
    pub(crate) periodic: Option<Duration>,

    /// Do not look at payloads: no application, no names.
    #[arg(long)]
    pub(crate) no_names: bool,
}

/// Whose rules classify.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Rules {
    /// What the ends say themselves first.
    Evidence,
    /// The published rules exactly.
    Tstat,
}

impl From<Rules> for Classifier {
    fn from(rules: Rules) -> Self {
        match rules {
            Rules::Evidence => Self::Evidence,
            Rules::Tstat => Self::Tstat,
        }
    }
}

/// How the records of flows are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum FlowFormat {
    /// One line of the main columns.
    Text,
    /// One JSON object a line.
    Jsonl,
    /// Comma-separated, with a header.
    Csv,
    /// Zeek's conn.log.
    Zeek,
    /// Zeek's conn.log as JSON.
    ZeekJson,
    /// CSV that spreadsheets open without running or rounding what is in it.
    Spreadsheet,
    /// Apache Parquet, compressed by zstd.
    Parquet,
    /// A stream of Apache Arrow's IPC format.
    Arrow,
    /// Tstat's tree of logs and histograms; the destination is a directory.
    Tstat,
}

impl FlowFormat {
    /// The format of a file or stream; `None` for the tree.
    pub(crate) const fn lines(self) -> Option<Format> {
        Some(match self {
            Self::Text => Format::Text,
            Self::Jsonl => Format::Jsonl,
            Self::Csv => Format::Csv,
            Self::Zeek => Format::Zeek,
            Self::ZeekJson => Format::ZeekJson,
            Self::Spreadsheet => Format::Spreadsheet,
            Self::Parquet => Format::Parquet,
            Self::Arrow => Format::Arrow,
            Self::Tstat => return None,
        })
    }
}

/// Formats and stores of flows.
#[derive(Debug, Args)]
#[command(next_help_heading = "Output")]
pub(crate) struct FlowStoreArgs {
    /// Format of the records [default: by the extension: .jsonl .json .ndjson, .csv, .parquet, .arrow,
    /// .zeek or conn.log, .zeek.json, .txt .text .log; otherwise text].
    #[arg(long, value_name = "FORMAT")]
    pub(crate) format: Option<FlowFormat>,

    /// Length of a step: of the histograms, the archive and the RRDs.
    #[arg(long, value_name = "DURATION", default_value = "300s", value_parser = units::duration)]
    pub(crate) step: Duration,

    /// Write Tstat's histograms of every step into this directory.
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) histograms: Option<PathBuf>,

    /// Keep what every step measured in this file of constant size (143 MB), for ever: 300 s steps for
    /// 50 hours, then 30 minutes, 2 hours and days, for more than two years (see `linkweir archive`).
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) archive: Option<PathBuf>,

    /// Write Tstat's round-robin databases: files made by rrdtool in this directory, or through the
    /// rrdcached that listens at this socket.
    #[arg(long, value_name = "DIR|unix:SOCKET", value_hint = ValueHint::AnyPath)]
    pub(crate) rrd: Option<String>,
}
