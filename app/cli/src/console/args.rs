//! The flags of `linkweir console`.

use std::time::Duration;

use clap::{Args, ValueEnum};

use crate::common_args::ViewArgs;
use crate::units;

const AFTER: &str = "Examples:
  linkweir http -i eth0 -w kafka://broker/web --probe hall-3       (on each probe)
  linkweir console --from kafka://broker/web                       (one page of all, on 127.0.0.1:8080)
  linkweir console --from kafka://a,b,c/web --kind flows --top
  linkweir console --from kafka://broker/web --since beginning --alert '5xx share > 2 %'

Exit codes:
  0  ended by a signal, or by q in the terminal
  2  invalid usage
  3  the page cannot be served";

/// Show the live statistics of many probes as one.
///
/// Each probe that writes its records to `kafka://BROKER/TOPIC` also sends the sums, histograms and top
/// tables of every interval to the topic `TOPIC.sketches`. Their sum gives the statistics that one probe
/// would have of all packets, with the same page, terminal view, alerts and /metrics.
#[derive(Debug, Args)]
#[command(after_help = AFTER)]
pub(crate) struct ConsoleArgs {
    /// The destination of the probes' records.
    #[arg(long, value_name = "kafka://HOST[:PORT][,HOST...]/TOPIC")]
    pub(crate) from: String,

    /// What the records are.
    #[arg(long, value_name = "http|flows", default_value = "http")]
    pub(crate) kind: Subject,

    /// Begin with new messages, or with the oldest that the topic holds.
    #[arg(long, value_name = "now|beginning", default_value = "now")]
    pub(crate) since: Since,

    /// Maximum time that an interval waits for probes; data that arrives later is counted, and added to the
    /// totals of the run only.
    #[arg(long, value_name = "DURATION", default_value = "10s", value_parser = units::duration)]
    pub(crate) late: Duration,

    /// Set an option of the Kafka client, by librdkafka's name; may be repeated.
    #[arg(long, value_name = "NAME=VALUE", value_parser = crate::common_args::setting)]
    pub(crate) kafka: Vec<(String, String)>,

    #[command(flatten)]
    pub(crate) view: ViewArgs,
}

/// What the records are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Subject {
    /// HTTP transactions.
    Http,
    /// TCP and UDP flows.
    Flows,
}

/// Where to begin.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Since {
    /// With new messages.
    Now,
    /// With the oldest messages of the topic.
    Beginning,
}
