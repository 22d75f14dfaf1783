//! The command line: all commands.

use clap::{Parser, Subcommand};
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
