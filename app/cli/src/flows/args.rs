//! The flags of `linkweir flows`.

use std::path::PathBuf;
use std::time::Duration;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Args, ValueEnum, ValueHint};
use linkweir_flows::Classifier;
use linkweir_sink::Format;

use crate::common_args::{ViewArgs, applications};
use crate::packets::PacketArgs;
use crate::passive::args::{
    FeederArgs, InputArgs, OutputArgs, PageArgs, SampleArgs, WorkerArgs, after_help,
};
use crate::units;

const EXAMPLES: &str = after_help!(
    "  linkweir flows -r trace.pcap.zst -w flows.jsonl
  linkweir flows -r trace.pcap.zst --kind dns -w dns.log
  linkweir flows -i eth0 --internal nets.txt --format tstat -w logs/ --archive link.lwa --console 127.0.0.1:8080"
);

/// Measure every TCP and UDP flow, as Tstat does: one record each, with both directions.
///
/// A record has Tstat's columns with Tstat's names and units (times in milliseconds): packets, bytes,
/// retransmissions and their causes, round-trip times on both sides of the probe, windows, options, TLS,
/// HTTP and QUIC, the server name; and columns that Tstat does not have: application, state, `flow_id`,
/// `classifier_evidence`. Text format is a line
/// `protocol|c_ip|c_port|s_ip|s_port|first|durat|c_pkts_all|s_pkts_all|c_bytes_all|s_bytes_all|c_pkts_retx|s_pkts_retx|c_rtt_avg|s_rtt_avg|state|application|sni|fqdn`
/// with times in seconds; jsonl and csv have all columns; zeek is a conn.log; tstat is Tstat's tree of logs
/// and histograms.
///
/// A flow ends by FIN or RST, or when it is idle; flows whose SYN was not seen are measured too (`has_syn`
/// is 0). Out-of-sequence segments are classified by timestamps, selective acknowledgments, identification
/// fields and time: retransmitted by the timer or fast, reordered, duplicated by the network, probing.
///
/// Link layers: Ethernet with VLAN tags, MPLS, PPPoE; Linux cooked, null/loop, raw IP, PPP, HDLC. Inside
/// tunnels (GRE, ERSPAN, VXLAN, Geneve, GTP-U, CAPWAP, IP in IP, 6in4, AYIYA, Teredo) the inner flow is
/// measured. IP fragments are reassembled.
#[derive(Debug, Args)]
#[command(after_help = [applications().as_str(), EXAMPLES].join("\n\n"))]
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
    pub(crate) sample: SampleArgs,

    #[command(flatten)]
    pub(crate) page: PageArgs,

    #[command(flatten)]
    pub(crate) store: FlowStoreArgs,

    #[command(flatten)]
    pub(crate) packets: PacketArgs,

    #[command(flatten)]
    pub(crate) view: ViewArgs,

    #[command(flatten)]
    pub(crate) workers: WorkerArgs,
}

/// How flows are followed.
#[derive(Debug, Args)]
#[command(next_help_heading = "Tracking")]
pub(crate) struct TrackingArgs {
    /// Read the internal networks from this file, one per line: `10.0.0.0/8`, `10.0.0.0/255.0.0.0`,
    /// `2001:db8::/32`, or a network and its mask on two lines; `#` begins a comment [default: all
    /// addresses are internal].
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) internal: Option<PathBuf>,

    /// End a TCP flow without packets after this much capture time.
    #[arg(long, value_name = "DURATION", default_value = "300s", value_parser = units::duration)]
    pub(crate) tcp_idle: Duration,

    /// End a UDP flow without packets after this much capture time; one of a single packet ends after
    /// `--syn-timeout`.
    #[arg(long, value_name = "DURATION", default_value = "200s", value_parser = units::duration)]
    pub(crate) udp_idle: Duration,

    /// End a TCP flow that has only SYNs, and a UDP flow of one packet, after this time, as Tstat does.
    #[arg(long, value_name = "DURATION", default_value = "10s", value_parser = units::duration)]
    pub(crate) syn_timeout: Duration,

    /// Minimum time that a closed flow stays in the table, so that late packets (a last ACK, a repeated
    /// FIN) count with it; ten times as long after RST, and two round-trip times if that is longer.
    #[arg(long, value_name = "DURATION", default_value = "150ms", value_parser = units::duration)]
    pub(crate) linger: Duration,

    /// Maximum number of concurrent flows. When full, the longest-idle flow of a sample is evicted and
    /// counted. Each takes about 512 bytes.
    #[arg(long, value_name = "N", default_value_t = 1 << 20, value_parser = clap::value_parser!(u32).range(16..=1 << 27))]
    pub(crate) max_flows: u32,

    /// Classify out-of-sequence segments by `evidence` (timestamps, selective acknowledgments, then time),
    /// or by the published rules exactly as `tstat` applies them.
    #[arg(long, value_name = "RULES", default_value = "evidence")]
    pub(crate) classifier: Rules,

    /// Write partial records at this interval too: what was added since the previous one. They add up to
    /// the final record, which has `record` = `final` [default: final records only].
    #[arg(long, value_name = "DURATION", value_parser = units::duration)]
    pub(crate) periodic: Option<Duration>,

    /// List flows of no known application at the end, N rows, the most frequent first, beside the summary and in
    /// `--summary`: by protocol, server port and the first 8 bytes that client and server sent, so that a signature can be
    /// written. Flows without payload are not listed; bytes of TCP flows whose beginning was not seen are not shown
    /// [default N: 20].
    #[arg(
        long,
        value_name = "N",
        num_args = 0..=1,
        default_missing_value = "20",
        conflicts_with = "no_names",
        value_parser = clap::value_parser!(u16).range(1..=1000)
    )]
    pub(crate) unknown: Option<u16>,

    /// Do not inspect payloads: no application, no names.
    #[arg(long)]
    pub(crate) no_names: bool,
}

/// Whose rules classify.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Rules {
    /// Timestamps and selective acknowledgments of the endpoints first.
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
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FlowFormat {
    /// As those of other kinds.
    Lines(Format),
    /// Tstat's tree of logs and histograms; the destination is a directory.
    Tstat,
}

impl FlowFormat {
    /// The format of a file or stream; `None` for the tree.
    pub(crate) const fn lines(self) -> Option<Format> {
        match self {
            Self::Lines(format) => Some(format),
            Self::Tstat => None,
        }
    }
}

/// The names of formats of flows.
fn flow_formats() -> impl TypedValueParser<Value = FlowFormat> {
    let names = Format::ALL.iter().map(|format| format.as_str());
    PossibleValuesParser::new(names.chain(["tstat"])).try_map(|name| match name.as_str() {
        "tstat" => Ok(FlowFormat::Tstat),
        name => Format::from_name(name)
            .map(FlowFormat::Lines)
            .ok_or("no such format"),
    })
}

/// What there is a record of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum FlowRecords {
    /// Each flow.
    Flow,
    /// Each handshake of TLS, in TCP and QUIC.
    Tls,
    /// Each query of DNS, with its response.
    Dns,
}

/// Formats and stores of flows.
#[derive(Debug, Args)]
#[command(next_help_heading = "Output")]
pub(crate) struct FlowStoreArgs {
    /// What the records of `-w` are: one of each flow, of each TLS handshake (version, cipher suite, names, certificate,
    /// time; of TCP and QUIC, as far as it is not encrypted), or of each DNS query (name, type, answers, response time; not
    /// of encrypted DNS). `linkweir schema tls_handshake` and `dns_query` list their fields. The summary, archive and other
    /// outputs are of flows in any case.
    #[arg(long, value_name = "KIND", default_value = "flow")]
    pub(crate) kind: FlowRecords,

    /// Format of the records; `spreadsheet` is CSV without formulas and with rounded times, `table` is for people, `tstat`
    /// is Tstat's tree of logs and histograms in a directory [default: by the extension: .jsonl .json .ndjson, .csv,
    /// .parquet, .arrow, .zeek or conn.log, ssl.log, dns.log, .zeek.json, .txt .text .log; on a terminal table; otherwise text].
    #[arg(long, value_name = "FORMAT", value_parser = flow_formats())]
    pub(crate) format: Option<FlowFormat>,

    /// Interval of the histograms, the archive and the RRDs.
    #[arg(long, value_name = "DURATION", default_value = "300s", value_parser = units::duration)]
    pub(crate) step: Duration,

    /// Write Tstat's histograms of every step to this directory.
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) histograms: Option<PathBuf>,

    /// Store the measurements of every step in this file of constant size (143 MB): 300 s steps for 50
    /// hours, then 30 minutes, 2 hours and days, for more than two years (see `linkweir archive`); with other steps
    /// all of these in proportion. A file that is there already is continued, if its steps are the same.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) archive: Option<PathBuf>,

    /// Write Tstat's round-robin databases: as files in this directory, by rrdtool, or through the
    /// rrdcached that listens at this socket.
    #[arg(long, value_name = "DIR|unix:SOCKET", value_hint = ValueHint::AnyPath)]
    pub(crate) rrd: Option<String>,
}
