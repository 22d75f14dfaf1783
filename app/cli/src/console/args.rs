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
  2  wrong command line
  3  the page cannot be served";

/// Shows the live statistics of many probes as one.
///
/// Each probe that writes its records to `kafka://BROKER/TOPIC` also sends the sums, histograms and top
/// tables of every interval to the topic `TOPIC.sketches`. Adding them up gives the statistics that one
/// probe would have of all packets: page, terminal, alerts and /metrics are those of a run.
#[derive(Debug, Args)]
#[command(after_help = AFTER)]
pub(crate) struct ConsoleArgs {
    /// The destination of the probes' records.
    #[arg(long, value_name = "kafka://HOST[:PORT][,HOST...]/TOPIC")]
    pub(crate) from: String,

    /// What the records are.
    #[arg(long, value_name = "http|flows", default_value = "http")]
    pub(crate) kind: Subject,

    /// Where to begin: with what the topic holds, or with what comes.
    #[arg(long, value_name = "now|beginning", default_value = "now")]
    pub(crate) since: Since,

    /// How long an interval waits for probes that have not sent theirs; what comes later is in the sums
    /// of the run only, and counted.
    #[arg(long, value_name = "DURATION", default_value = "10s", value_parser = units::duration)]
    pub(crate) late: Duration,

    /// Setting of the Kafka client, by librdkafka's name; may be repeated.
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
    /// With what comes.
    Now,
    /// With what the topic holds.
    Beginning,
}
