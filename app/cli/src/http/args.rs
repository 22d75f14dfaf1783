//! The flags of `linkweir http`.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueHint};
use linkweir_http::PortSet;

use crate::args::{InputArgs, OutputArgs};
use crate::units;

const AFTER_HELP: &str = "Examples:
  linkweir http -r trace.pcap.zst
  linkweir http -r captures/ -f 'tcp port 80' -w http.jsonl --summary - --report http.html

Exit codes:
  0  done
  1  done, but data was lost (truncated or corrupt input, drops)
  2  wrong usage or configuration
  3  an input or output failed
SIGINT or SIGTERM ends a run early with everything written and 0; a second one aborts.
SIGHUP begins new output files; SIGUSR1 prints a line of progress.";

/// Measures HTTP/1.x transactions: one record each, with response time, without TCP reassembly.
///
/// A response belongs to the request whose acknowledgment number is the response's sequence number
/// (the method of HTTPanalyzer). Records of format text are lines of
/// `client_ip|client_port|server_ip|server_port|request_ts|response_ts|response_time|reason_phrase|status_code|method|user_agent|host|uri`
/// with times in seconds; an unanswered request has empty response fields, an orphan response empty
/// request fields.
#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct HttpArgs {
    #[command(flatten)]
    pub(crate) input: InputArgs,

    #[command(flatten)]
    pub(crate) tracking: TrackingArgs,

    #[command(flatten)]
    pub(crate) output: OutputArgs,
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

    /// Write a record for every retransmitted message too, instead of only counting them.
    #[arg(long)]
    pub(crate) keep_duplicates: bool,

    /// Measure the time to the last byte of each response (field `ttlb_ns`); records then wait for
    /// the end of the body.
    #[arg(long)]
    pub(crate) ttlb: bool,

    /// Only segments from or to these TCP ports, for example `80,8000-8100` [default: any].
    #[arg(long, value_name = "LIST", value_parser = units::ports)]
    pub(crate) ports: Option<PortSet>,

    /// Only records whose host contains this [default: all].
    #[arg(long, value_name = "SUBSTRING", help_heading = "Output")]
    pub(crate) host: Option<String>,

    /// Only records whose host and request target together contain this [default: all].
    #[arg(long, value_name = "SUBSTRING", help_heading = "Output")]
    pub(crate) url: Option<String>,

    /// Write the records in the order of their request times; they then come up to a timeout late.
    #[arg(long, help_heading = "Output")]
    pub(crate) sort: bool,

    /// Replace addresses by the prefix-preserving Crypto-PAn under the key in this file: 32 bytes,
    /// or 64 hexadecimal digits.
    #[arg(long, value_name = "KEYFILE", value_hint = ValueHint::FilePath, help_heading = "Output")]
    pub(crate) anonymize: Option<PathBuf>,
}
