//! The flags of `linkweir feed`.

use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum, ValueHint};
use linkweir_sink::Existing;

use crate::files::OverwriteArgs;
use crate::outputs;
use crate::passive::args::InputArgs;
use crate::units;

const AFTER_HELP: &str = "Examples:
  linkweir feed -i eth0 --name uplink --consumers 4
  linkweir feed -r trace.pcap --name trace --consumers 2 & linkweir http --feed trace/0 & linkweir http --feed trace/1

Exit codes:
  0  success
  1  success, but packets were dropped, fragments were missing, an input was damaged or the summary
     could not be written
  2  invalid usage or configuration, or the name is in use
  3  an input or an output failed
SIGINT or SIGTERM ends the feed: consumers read what is in their rings and end too; a second one aborts.
SIGUSR1 prints the table.";

/// Distribute packets to several consumer processes through shared memory.
///
/// Consumer K, numbered from 0, is started as `linkweir http --feed NAME/K` (NAME/N is another name of
/// NAME/0, for numbering from 1). Consumers must belong to the same user and network namespace. They may
/// start and stop at any time: packets that do not fit into the ring of an absent consumer are dropped and
/// counted, the others continue, and a new consumer continues with what is in the ring. `--by` chooses what
/// goes to the same consumer.
///
/// A table of each consumer's share, queue and drops is shown on a terminal, and at the end.
#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct FeedArgs {
    #[command(flatten)]
    pub(crate) input: InputArgs,

    /// Name of the feed: up to 64 letters, digits, `.`, `_` or `-`.
    #[arg(long, value_name = "NAME", required_unless_present_any = ["histogram", "list_interfaces"], value_parser = name, value_hint = ValueHint::Other, help_heading = "Feed")]
    pub(crate) name: Option<String>,

    /// Number of consumers.
    #[arg(long, value_name = "N", required_unless_present_any = ["histogram", "list_interfaces"], value_parser = clap::value_parser!(u32).range(1..=1024), help_heading = "Feed")]
    pub(crate) consumers: Option<u32>,

    /// Choose what goes to the same consumer: the number of the consumer is the remainder of a hash divided
    /// by `--consumers`, and this is what is hashed.
    #[arg(
        long,
        value_name = "WHAT",
        default_value = "transaction",
        help_heading = "Feed"
    )]
    pub(crate) by: By,

    /// Size of the ring of each consumer; rounded up to a power of two from 64KiB to 1GiB.
    #[arg(long, value_name = "SIZE", default_value = "64MiB", value_parser = units::size, help_heading = "Feed")]
    pub(crate) ring: u64,

    /// Drop and count a packet whose ring is full, or wait for the consumer, if it is attached or has not
    /// started yet (never for one that left or was killed) [default: drop for an interface, wait for
    /// files].
    #[arg(long, value_name = "WHAT", help_heading = "Feed")]
    pub(crate) when_full: Option<Full>,

    /// Write the distribution of the packets' hashes instead of feeding consumers (Fig. 8 of the paper:
    /// Eqs. (1) to (3), and a mixed hash), as a plot (.svg), a page (.html) or numbers (.json, `-`).
    #[arg(long, value_name = "OUT", conflicts_with_all = ["name", "consumers"], value_hint = ValueHint::FilePath, help_heading = "Output")]
    pub(crate) histogram: Option<PathBuf>,

    /// Write the totals of the run as one JSON object; `-` is standard output.
    #[arg(long, value_name = "PATH", value_hint = ValueHint::FilePath, help_heading = "Output")]
    pub(crate) summary: Option<String>,

    #[command(flatten)]
    pub(crate) files: OverwriteArgs,

    /// Suppress the table and all messages but errors.
    #[arg(short, long, help_heading = "Output")]
    pub(crate) quiet: bool,

    /// Read flags from a TOML file: keys are the long flag names; the command line takes precedence.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, help_heading = "Output")]
    pub(crate) config: Option<PathBuf>,
}

impl FeedArgs {
    /// Gives up privileges once the input is open; a live feed keeps what it needs to open its interface
    /// again.
    pub(crate) fn restrict(&self) -> anyhow::Result<()> {
        let interfaces = &self.input.interface;
        let written = self.summary.iter().map(Path::new);
        let written = written.chain(self.histogram.as_deref());
        let directories = outputs::written_directories(written);
        outputs::restrict_run(!interfaces.is_empty(), interfaces, directories)
    }

    /// What becomes of files that exist.
    pub(crate) const fn existing(&self) -> Existing {
        self.files.existing(!self.input.interface.is_empty())
    }
}

/// What goes to the same consumer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum By {
    /// A request and its response go to the same consumer, those of one connection to many: a mixed hash of
    /// both addresses, both ports and the request's acknowledgment number, which is the first sequence
    /// number of its response. Connections are followed: the consumer changes only where a request begins
    /// and everything before it is answered and complete, so that all consumers together write the records
    /// of one process.
    Transaction,
    /// As in Vega et al. (2017), Eq. (3), each packet by itself: the XOR of both addresses, both ports and
    /// a number, the acknowledgment number of a packet from the client, the sequence number of one from the
    /// server. It keeps no state and is faster, but heads over several segments, pipelined requests and
    /// interim responses lose their counterpart.
    Paper,
    /// All packets of a TCP connection or UDP flow, for `linkweir flows --feed`: a mixed hash of both
    /// addresses and both ports, the same for both directions.
    Flow,
}

impl By {
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Transaction => "transaction",
            Self::Paper => "paper",
            Self::Flow => "flow",
        }
    }
}

/// What happens to a packet whose ring is full.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Full {
    /// It is dropped and counted.
    Drop,
    /// Everything waits for its consumer.
    Wait,
}

fn name(text: &str) -> Result<String, String> {
    linkweir_feed::check_name(text).map(str::to_owned)
}
