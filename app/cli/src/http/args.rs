//! The flags of `linkweir http`.

use std::cell::RefCell;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum, ValueHint};
use linkweir_http::PortSet;
use linkweir_sink::Format;

use super::estimates::Checks;
use crate::common_args::{HeaderArgs, ViewArgs, formats};
use crate::keys::KeySource;
use crate::packets::PacketArgs;
use crate::passive::args::{
    FeederArgs, InputArgs, OutputArgs, PageArgs, SampleArgs, WorkerArgs, after_help,
};
use crate::units;

const AFTER_HELP: &str = after_help!(
    "  linkweir http -r trace.pcapng.zst --keys keys.log
  linkweir http -i eth0 -f 'tcp port 80' --workers 4 -w http.jsonl --rotate 1h --console 127.0.0.1:8080"
);

/// Measure HTTP transactions: one record each, with response time.
///
/// HTTP/1.x is measured without TCP reassembly: a response belongs to the request whose acknowledgment number equals
/// the sequence number of the response (the method of HTTPanalyzer). Connections of HTTP/2 (and gRPC) are read in
/// order, and each stream is a transaction. HTTPS (TLS 1.2 and 1.3) and HTTP/3 (QUIC 1 and 2) are read with `--keys`.
/// `linkweir schema http_transaction` lists all fields of a record. Records in text format are lines of
/// `client_ip|client_port|server_ip|server_port|request_ts|response_ts|response_time|reason_phrase|status_code|method|user_agent|host|uri`
/// with times in seconds; an unanswered request has empty response fields, an orphan response empty request
/// fields. `|`, `\` and bytes outside printable ASCII are written as `\xHH`.
///
/// Message heads may span segments, and requests may be pipelined. Where the length of a response is not
/// known (chunked over several segments, or until close), requests pipelined behind it are reported as
/// unanswered. A start line must be one of HTTP/1.x; anything that only resembles one is counted as
/// malformed.
///
/// A connection of HTTP/2 may be joined late, and packets of it may be missing. Fields that cannot be known then stay
/// empty, and the field `names` says `partial` instead of `whole`.
///
/// Link layers: Ethernet, IEEE 802.11, Linux cooked, raw IP, PPP, Cisco HDLC, Frame Relay, FDDI, ARCnet,
/// SLIP, loopback, NFLOG. Tunnels: GRE, ERSPAN, VXLAN, Geneve, GTP-U, CAPWAP, IP in IP, 6in4, AYIYA,
/// Teredo. IP fragments are reassembled.
#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct HttpArgs {
    #[command(flatten)]
    pub(crate) input: InputArgs,

    #[command(flatten)]
    pub(crate) feeder: FeederArgs,

    /// Read the segments that `linkweir halves` extracted instead of packets: a Parquet file or a stream in
    /// Arrow's IPC format, `-` for a stream on standard input. May be repeated; all inputs are one trace,
    /// in this order, of HTTP/1.x alone. Rows must be sorted by `order_ns`, `file`, `packet`; further columns are ignored.
    /// Packets and bytes in the summary are those of the rows.
    #[cfg(feature = "parquet")]
    #[arg(
        long,
        value_name = "PATH",
        conflicts_with_all = ["read", "interface", "feed", "ttlb", "filter", "workers"],
        value_hint = ValueHint::AnyPath,
        help_heading = "Input"
    )]
    pub(crate) from_halves: Vec<PathBuf>,

    #[command(flatten)]
    pub(crate) tracking: TrackingArgs,

    #[command(flatten)]
    pub(crate) keys: KeyArgs,

    /// Format of the records; `spreadsheet` is CSV without formulas and with rounded times, `table` is for people
    /// [default: by the extension: .jsonl .json .ndjson, .csv, .parquet, .arrow, .zeek or http.log, .zeek.json, .txt
    /// .text .log; on a terminal table; otherwise text].
    #[arg(long, value_name = "FORMAT", value_parser = formats(), help_heading = "Output")]
    pub(crate) format: Option<Format>,

    #[command(flatten)]
    pub(crate) output: OutputArgs,

    #[command(flatten)]
    pub(crate) sample: SampleArgs,

    #[command(flatten)]
    pub(crate) page: PageArgs,

    #[command(flatten)]
    pub(crate) headers: HeaderArgs,

    /// Write the totals of the run as JSON, which `linkweir merge` adds to those of other runs; `-` is
    /// standard output.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, help_heading = "Output")]
    pub(crate) sketch: Option<String>,

    #[command(flatten)]
    pub(crate) packets: PacketArgs,

    /// Write the packets of this record to `--pcap-out`, and no records: a line of jsonl as it is, `@FILE` or
    /// `-` (several lines are several records). Which packets that are: see `--pcap-filter`.
    #[arg(
        long,
        value_name = "RECORD|@FILE",
        requires_all = ["pcap_out", "read"],
        conflicts_with_all = ["interface", "feed", "write", "pcap_filter", "alert", "report", "sketch", "summary", "console", "top"],
        help_heading = "Packets"
    )]
    pub(crate) packets_of: Option<String>,

    #[command(flatten)]
    pub(crate) view: ViewArgs,

    /// Give the N hosts with the most requests series of their own in `/metrics` and in `--otlp`, at most 1000; all
    /// others share `host="other"`. A host counts from when its series begins [default: 0, none].
    #[arg(
        long,
        value_name = "N",
        default_value_t = 0,
        hide_default_value = true,
        value_parser = clap::value_parser!(u16).range(0..=1000),
        help_heading = "Live view"
    )]
    pub(crate) metrics_hosts: u16,

    #[command(flatten)]
    pub(crate) workers: WorkerArgs,

    /// How packets of an interface reach several workers: the `kernel` (`PACKET_FANOUT`) distributes each
    /// packet by itself, by addresses, ports and the acknowledgment or sequence number that a request and
    /// its response share (Eq. (3) of Vega et al. 2017); a `reader` thread also keeps together what spans
    /// workers: pipelines, heads over several segments, connections of HTTP/2 and TLS. `--ttlb` and `--keys`
    /// always use a reader.
    #[arg(
        long,
        value_name = "HOW",
        default_value = "kernel",
        help_heading = "Performance"
    )]
    pub(crate) fanout: Fanout,
}

impl HttpArgs {
    /// Files of half-transactions that are read instead of packets.
    pub(crate) fn halves(&self) -> &[PathBuf] {
        #[cfg(feature = "parquet")]
        let halves = &self.from_halves;
        #[cfg(not(feature = "parquet"))]
        let halves = &[];
        halves
    }
}

/// Distributes packets of an interface to workers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Fanout {
    /// The kernel (`PACKET_FANOUT`).
    Kernel,
    /// A thread of this process.
    Reader,
}

/// On or off.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Switch {
    On,
    Off,
}

/// How TLS is decrypted, and whether it is estimated where it cannot be.
#[derive(Debug, Args)]
#[command(next_help_heading = "TLS")]
pub(crate) struct KeyArgs {
    /// Decrypt TLS 1.2 and 1.3, and QUIC, with the secrets in this key log: a file or a FIFO in the NSS key log format, which
    /// browsers and curl write if SSLKEYLOGFILE is set. It is read as it grows; with `-r` it is read to its end before
    /// the first packet. A connection must be captured from its `ClientHello` on. Secrets in pcapng captures are used
    /// without this flag. No secret is written to any output but with `--pcap-secrets` [default: none].
    #[arg(long, value_name = "FILE|FIFO", value_hint = ValueHint::FilePath)]
    pub(crate) keys: Option<PathBuf>,

    /// Estimate HTTPS transactions that cannot be decrypted, from the lengths and the order of TLS records, or of QUIC
    /// packets (HTTP/3): one record each, with `source` `estimate`, without method, URI and status code. `confidence`
    /// says how reliable its response time is: `exact`, one request at a time in HTTP/1.1; `likely`, so the order of the data
    /// says; `cannot_tell`, several requests at once or loss: no response time, and perhaps one record for several requests.
    #[arg(
        long,
        value_name = "on|off",
        default_value = "on",
        hide_possible_values = true
    )]
    pub(crate) estimate: Switch,

    /// Estimate decrypted transactions too, write both records, and print at the end how much the estimated response
    /// times differ from the decrypted ones.
    #[arg(long, conflicts_with_all = ["packets_of"])]
    pub(crate) check_estimates: bool,

    /// What is compared for `--check-estimates`.
    #[arg(skip)]
    pub(crate) checks: Checks,

    /// The key log, between its opening and the time when it is followed.
    #[arg(skip)]
    pub(crate) source: RefCell<Option<KeySource>>,
}

/// How transactions are followed.
#[derive(Debug, Args)]
#[command(next_help_heading = "Tracking")]
pub(crate) struct TrackingArgs {
    /// Maximum time, by the capture, that a message waits for its counterpart; then it is evicted and
    /// written.
    #[arg(long, value_name = "DURATION", default_value = "60s", value_parser = units::duration)]
    pub(crate) timeout: Duration,

    /// Maximum number of messages that wait for their counterpart. When full, the oldest is evicted and
    /// counted. Each takes up to about 430 bytes, more with a long URI.
    #[arg(long, value_name = "N", default_value_t = 100_000, value_parser = clap::value_parser!(u32).range(16..=1 << 28))]
    pub(crate) max_pending: u32,

    /// Write a record for every retransmitted message, instead of only counting it: an unanswered request
    /// or orphan response with `retransmissions` 1.
    #[arg(long)]
    pub(crate) keep_duplicates: bool,

    /// Measure the time to the last byte of each response (field `ttlb_ns` of jsonl and csv, `ttlb` of
    /// zeek; not in text). Records are then written after the end of the body.
    #[arg(long)]
    pub(crate) ttlb: bool,

    /// Read only segments from or to these TCP ports, for example `80,8000-8100` [default: any].
    #[arg(long, value_name = "LIST", value_parser = units::ports)]
    pub(crate) ports: Option<PortSet>,

    /// Write only records whose host contains this, ignoring case; totals include all records [default:
    /// all].
    #[arg(long, value_name = "SUBSTRING", help_heading = "Output")]
    pub(crate) host: Option<String>,

    /// Write only records whose host and request target, joined, contain this; totals include all records
    /// [default: all].
    #[arg(long, value_name = "SUBSTRING", help_heading = "Output")]
    pub(crate) url: Option<String>,

    /// Write the records in the order of their request times, which delays them by up to `--timeout`.
    #[arg(long, help_heading = "Output")]
    pub(crate) sort: bool,
}
