//! The command line: all commands.

use std::ffi::OsString;

use clap::{Args, Parser, Subcommand};
use linkweir_cli::lab::LabArgs;

use crate::archive::ArchiveArgs;
#[cfg(feature = "kafka")]
use crate::console::ConsoleArgs;
use crate::documents::{CompletionArgs, ManArgs};
use crate::feed::FeedArgs;
use crate::flows::FlowsArgs;
use crate::gateway::GatewayArgs;
use crate::halves::HalvesArgs;
use crate::http::HttpArgs;
use crate::load::args::LoadArgs;
use crate::merge::MergeArgs;
use crate::metrics::MetricsArgs;
use crate::model::ModelArgs;
use crate::report::ReportArgs;
use crate::schema::SchemaArgs;

/// Measure, filter and generate network traffic: HTTP transactions without TCP reassembly, every TCP and
/// UDP flow, an inline gateway that identifies applications, and load from many emulated clients.
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
    Report(Box<ReportArgs>),
    Schema(SchemaArgs),
    Metrics(MetricsArgs),
    Man(ManArgs),
    Completions(CompletionArgs),
}

impl Cli {
    /// The valid command line of a command that measures; `None` for all others, of which [`Parser::try_parse_from`] says what is
    /// wrong with them. To set up the flags of all commands takes a fifth of the time to the first record, here only those of
    /// one are.
    pub(crate) fn measuring(words: &[OsString]) -> Option<Self> {
        fn flags<A: Args>(words: &[OsString]) -> Option<Box<A>> {
            let command = A::augment_args(clap::Command::new("linkweir"));
            let given = command.try_get_matches_from(words).ok()?;
            A::from_arg_matches(&given).ok().map(Box::new)
        }
        // The word stands where the name of a program would.
        let words = words.get(1..)?;
        let command = match words.first()?.to_str()? {
            "http" => Command::Http(flags(words)?),
            "flows" => Command::Flows(flags(words)?),
            "halves" => Command::Halves(flags(words)?),
            _ => return None,
        };
        Some(Self { command })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_command_alone_reads_its_flags_as_among_all() {
        let words = |line: &str| -> Vec<OsString> { line.split(' ').map(OsString::from).collect() };
        let valid = [
            "linkweir http -q -r a.pcap -w - --format text",
            "linkweir http -i eth0 -f tcp --workers 4 -w http.jsonl --rotate 1h --timeout 5s",
            "linkweir flows -r a.pcap -r b.pcap --no-output --archive=x.archive",
            "linkweir halves -r - -w h.parquet",
        ];
        for line in valid {
            let all = Cli::try_parse_from(words(line)).unwrap();
            let one = Cli::measuring(&words(line)).unwrap();
            assert_eq!(format!("{one:?}"), format!("{all:?}"), "{line}");
        }
        for line in [
            "linkweir http --help",
            "linkweir http -r a.pcap --format nothing",
            "linkweir flows -V",
            "linkweir gateway check x.toml",
            "linkweir",
        ] {
            assert!(Cli::measuring(&words(line)).is_none(), "{line}");
        }
    }
}
