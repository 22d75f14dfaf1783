//! How a run of `linkweir flows` went: summary, report, exit code.

use std::time::Duration;

use anyhow::Context;
use linkweir_engine::{FaultKind, NoOutput, RunError, RunReport, SinkError};
use linkweir_flows::{FlowsStage, FlowsStats};
use linkweir_sink::report::{FlowReport, ReportMeta, write_report_file};
use linkweir_sink::summary::write_summary_file;
use linkweir_wire::{DecodeFaults, FragmentStats, Timestamp};

use super::args::FlowsArgs;
use super::summary::{Totals, WorkerTotals};
use crate::documents;
use crate::exit::{Exit, say, warn};
use crate::input;
use crate::outputs::SharedReport;
use crate::totals;

/// A run that has ended.
#[derive(Debug)]
pub(crate) struct Ended<'a> {
    args: &'a FlowsArgs,
    report: RunReport,
    stats: FlowsStats,
    faults: DecodeFaults,
    fragments: FragmentStats,
    workers: Vec<WorkerTotals>,
    elapsed: Duration,
    page: Option<SharedReport<FlowReport>>,
}

impl<'a> Ended<'a> {
    /// A run whose stages have come to `report` together and to `each`, where there were several.
    pub(crate) fn new(
        args: &'a FlowsArgs,
        report: RunReport,
        each: &[RunReport],
        stages: &[FlowsStage],
        elapsed: Duration,
        page: Option<SharedReport<FlowReport>>,
    ) -> Self {
        let mut ended = Self {
            args,
            stats: FlowsStats::default(),
            faults: DecodeFaults::default(),
            fragments: report.fragments,
            report,
            workers: Vec::new(),
            elapsed,
            page,
        };
        for stage in stages {
            ended.stats.merge(&stage.stats());
            ended.faults.merge(stage.faults());
            ended.fragments += stage.fragments();
        }
        ended.stats.fragments = ended.fragments.lost;
        ended.workers = each
            .iter()
            .zip(stages)
            .map(|(report, stage)| WorkerTotals::new(report, &stage.stats()))
            .collect();
        ended
    }

    /// Says how it went and chooses the exit code.
    pub(crate) fn conclude(self, outcome: Result<(), RunError>) -> anyhow::Result<Exit> {
        let Self { args, report, .. } = &self;
        let mut exit = Exit::Done;
        match outcome {
            Ok(()) => {}
            Err(RunError::Output(NoOutput::ClosedPipe)) => return Ok(Exit::Done),
            // Why was said of each.
            Err(RunError::Output(NoOutput::Failed)) => exit = Exit::Failed,
            Err(RunError::Source(error)) => {
                warn(&error.to_string());
                exit = Exit::Failed;
            }
        }
        let totals = Totals {
            report,
            stats: &self.stats,
            faults: &self.faults,
            fragments: &self.fragments,
            elapsed: self.elapsed,
            workers: &self.workers,
        };
        if let Some(destination) = &args.output.summary {
            match write_summary_file(destination, &totals.to_json()) {
                Err(SinkError::ClosedPipe) | Ok(()) => {}
                Err(error) => return Err(error).context("--summary"),
            }
        }
        if let (Some(page), Some(path)) = (self.page.as_ref(), &args.output.report) {
            let html = page.0.borrow().render(&report_meta(args, &totals));
            write_report_file(&path.to_string_lossy(), &html).context("--report")?;
        }
        if !args.output.quiet {
            say(&totals.to_screen());
        }
        totals::warn_of_link_types(totals.faults);
        if report
            .faults
            .iter()
            .any(|fault| fault.kind == FaultKind::Unusable)
        {
            exit = exit.max(Exit::Failed);
        }
        if totals.is_lossy() {
            exit = exit.max(Exit::DataLost);
        }
        Ok(exit)
    }
}

fn report_meta(args: &FlowsArgs, totals: &Totals<'_>) -> ReportMeta {
    let report = totals.report;
    let nanos = |time: Option<Timestamp>| time.map(Timestamp::as_nanos);
    let owned = |(name, count): (&str, u64)| (name.to_owned(), count);
    let inputs = match &args.feed {
        Some(feed) => vec![feed.to_string()],
        None => input::names(&args.input),
    };
    let stats = totals.stats;
    ReportMeta {
        title: "TCP and UDP flows".to_owned(),
        inputs,
        command_line: documents::command_line(),
        program: concat!("linkweir ", env!("CARGO_PKG_VERSION")).to_owned(),
        packets: report.packets,
        bytes: report.bytes,
        first_ts_ns: nanos(report.first),
        last_ts_ns: nanos(report.last),
        drops: totals
            .drops()
            .into_iter()
            .chain([("sink", report.lost_records())])
            .map(owned)
            .collect(),
        notes: [
            ("damaged inputs", totals.damaged()),
            ("frames that did not decode", totals.faults.undecoded()),
            ("TCP flows, complete", stats.tcp_complete),
            ("TCP flows, incomplete", stats.tcp_incomplete),
            ("UDP flows", stats.udp),
            ("most flows at once", stats.peak_flows),
            ("fragments of no flow", stats.fragments),
            ("impossible sequence numbers", stats.impossible_sequences),
        ]
        .map(owned)
        .to_vec(),
    }
}
