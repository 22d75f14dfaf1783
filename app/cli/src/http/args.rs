//! The flags of `linkweir http`.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum, ValueHint};
use linkweir_http::PortSet;
use linkweir_sink::Format;

use crate::common_args::{ViewArgs, formats};
use crate::passive::args::{FeederArgs, InputArgs, OutputArgs, PageArgs, WorkerArgs};
use crate::units;

const AFTER_HELP: &str = "Examples:
  linkweir http -r trace.pcap.zst
  linkweir http -i eth0 -f 'tcp port 80' --workers 4 -w http.jsonl --rotate 1h --console 127.0.0.1:8080

Exit codes:
  0  done
  1  done, but data was lost (input truncated or corrupt in the middle, drops, fragments missing,
     one of several outputs failed)
  2  wrong usage or configuration
  3  an input gave nothing (no such file, no capture), or no output was left
SIGINT or SIGTERM ends a run early with everything written and 0; a second one aborts.
SIGHUP begins new output files; SIGUSR1 prints a line of progress.";

/// Measures HTTP/1.x transactions: one record each, with response time, without TCP reassembly.
///
/// A response belongs to the request whose acknowledgment number is the response's sequence number
/// (the method of HTTPanalyzer). Records of format text are lines of
/// `client_ip|client_port|server_ip|server_port|request_ts|response_ts|response_time|reason_phrase|status_code|method|user_agent|host|uri`
/// with times in seconds; an unanswered request has empty response fields, an orphan response empty
/// request fields. `|`, `\` and bytes outside printable ASCII in a field are `\xHH`.
///
/// Heads may span segments, and requests may be pipelined; where the length of a response is not
/// known (chunked over several segments, until close), those pipelined behind it are unanswered.
/// A request line or status line must be one of HTTP/1.x; what only looks like one is counted as
/// malformed. HTTP/2 and TLS are not read.
///
/// Link layers: Ethernet, IEEE 802.11, Linux cooked, raw IP, PPP, Cisco HDLC, Frame Relay, FDDI,
/// ARCnet, SLIP, loopback, NFLOG. Tunnels: GRE, ERSPAN, VXLAN, Geneve, GTP-U, CAPWAP, IP in IP, 6in4,
/// AYIYA, Teredo. IP fragments are reassembled.
#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct HttpArgs {
    #[command(flatten)]
    pub(crate) input: InputArgs,

    #[command(flatten)]
    pub(crate) feeder: FeederArgs,

    /// Read the rows of `linkweir halves` instead of packets: a Parquet file or a stream of Arrow's IPC
    /// format, `-` for a stream on standard input; may be given several times, all are one trace in this
    /// order. Rows must be in the order of `order_ns`, `file`, `packet`; further columns are passed over.
    /// Packets and bytes of the summary are those of the rows.
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

    /// Format of the records; `spreadsheet` is CSV without formulas and with rounded times [default: by
    /// the extension: .jsonl .json .ndjson, .csv, .parquet, .arrow, .zeek or http.log, .zeek.json, .txt
    /// .text .log; otherwise text].
    #[arg(long, value_name = "FORMAT", value_parser = formats(), help_heading = "Output")]
    pub(crate) format: Option<Format>,

    #[command(flatten)]
    pub(crate) output: OutputArgs,

    #[command(flatten)]
    pub(crate) page: PageArgs,

    /// Write the totals of the run as JSON that `linkweir merge` adds to those of other runs; `-` is
    /// standard output.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, help_heading = "Output")]
    pub(crate) sketch: Option<String>,

    #[command(flatten)]
    pub(crate) view: ViewArgs,

    #[command(flatten)]
    pub(crate) workers: WorkerArgs,

    /// How packets of an interface reach several workers: the `kernel` (`PACKET_FANOUT`) distributes each
    /// packet by itself, by addresses, ports and the acknowledgment or sequence number that a request and
    /// its response share (Eq. (3) of Vega et al. 2017); a `reader` thread also keeps together what spans
    /// workers: pipelines, heads over several segments. Files and `--ttlb` always use a reader.
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

/// How transactions are followed.
#[derive(Debug, Args)]
#[command(next_help_heading = "Tracking")]
pub(crate) struct TrackingArgs {
    /// A message without its counterpart leaves the table, and is written, after this much capture
    /// time.
    #[arg(long, value_name = "DURATION", default_value = "60s", value_parser = units::duration)]
    pub(crate) timeout: Duration,

    /// Messages that may wait for their counterpart at once; with more, the oldest leaves and is
    /// counted. Each takes at most about 430 bytes (long URIs take the room of several).
    #[arg(long, value_name = "N", default_value_t = 100_000, value_parser = clap::value_parser!(u32).range(16..=1 << 28))]
    pub(crate) max_pending: u32,

    /// Write a record for every retransmitted message too, instead of only counting them: an
    /// unanswered or orphan one whose field `retransmissions` is 1.
    #[arg(long)]
    pub(crate) keep_duplicates: bool,

    /// Measure the time to the last byte of each response (field `ttlb_ns` of jsonl and csv, `ttlb` of
    /// zeek; text has no column for it); records then wait for the end of the body.
    #[arg(long)]
    pub(crate) ttlb: bool,

    /// Only segments from or to these TCP ports, for example `80,8000-8100` [default: any].
    #[arg(long, value_name = "LIST", value_parser = units::ports)]
    pub(crate) ports: Option<PortSet>,

    /// Only records whose host contains this, in letters of any case; totals count all [default: all].
    #[arg(long, value_name = "SUBSTRING", help_heading = "Output")]
    pub(crate) host: Option<String>,

    /// Only records whose host and request target together contain this; totals count all [default:
    /// all].
    #[arg(long, value_name = "SUBSTRING", help_heading = "Output")]
    pub(crate) url: Option<String>,

    /// Write the records in the order of their request times; they then come up to a timeout late.
    #[arg(long, help_heading = "Output")]
    pub(crate) sort: bool,
}
