//! `linkweir metrics`: what `/metrics` exposes, for people, Prometheus and Grafana.

use anyhow::anyhow;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Args, ValueEnum};
use linkweir_live::{ALERT_RULES, Exposing, grafana_dashboard, metrics_markdown};

use crate::exit::{Exit, Wrong};
use crate::files::print;

const AFTER_HELP: &str = "Examples:
  linkweir metrics
  linkweir metrics --format prometheus-rules > /etc/prometheus/linkweir.rules.yml
  linkweir metrics http --format grafana > http.json

Exit codes:
  0  success
  2  invalid usage: a dashboard without a command, or a command with another format
  3  standard output cannot be written";

/// Print the metrics of `/metrics`: as documentation, alert rules for Prometheus or a dashboard for Grafana.
///
/// Names, types and labels of metrics do not change; metrics may be added.
#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct MetricsArgs {
    /// The command whose metrics the dashboard shows; only with `--format grafana`, which requires it.
    #[arg(value_name = "COMMAND", value_parser = commands())]
    pub(crate) command: Option<Exposing>,

    /// What to print.
    #[arg(long, value_name = "FORMAT", default_value = "markdown")]
    pub(crate) format: MetricsFormat,
}

/// What is printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum MetricsFormat {
    /// A table for people: name, type, labels, unit and meaning of every metric.
    Markdown,
    /// Alert and recording rules for Prometheus, over the metrics of all commands.
    PrometheusRules,
    /// A dashboard for Grafana 10 and later, with a panel of each metric that the command exposes.
    Grafana,
}

fn commands() -> impl TypedValueParser<Value = Exposing> {
    let names = Exposing::ALL.map(Exposing::name);
    PossibleValuesParser::new(names)
        .try_map(|name| Exposing::named(&name).ok_or("not a command with metrics"))
}

/// Runs the command.
pub(crate) fn run(args: &MetricsArgs) -> anyhow::Result<Exit> {
    let wrong = |message: &str| Err(anyhow!(Wrong(message.to_owned())));
    let text = match (args.format, args.command) {
        (MetricsFormat::Markdown, None) => format!("# metrics\n\n{}", metrics_markdown()),
        (MetricsFormat::PrometheusRules, None) => ALERT_RULES.to_owned(),
        (MetricsFormat::Grafana, Some(of)) => grafana_dashboard(of),
        (MetricsFormat::Grafana, None) => {
            return wrong("a dashboard is of one command: http, flows, gateway or load");
        }
        (_, Some(_)) => return wrong("a command goes with --format grafana only"),
    };
    print(&text)?;
    Ok(Exit::Done)
}
