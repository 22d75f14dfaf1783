//! How a run of `linkweir flows` went: summary, report, exit code.

use std::time::Duration;

use linkweir_engine::{FaultKind, NoOutput, RunError, RunReport};
use linkweir_flows::{FlowsStage, FlowsStats};
use linkweir_report::{FlowReport, ReportMeta};
use linkweir_wire::{DecodeFaults, FragmentStats, Timestamp};

use super::args::FlowsArgs;
use super::summary::{Totals, WorkerTotals};
use crate::documents;
use crate::exit::{Exit, say, warn};
use crate::input;
use crate::outputs::{Documents, SharedReport};
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
    documents: Documents,
}

impl<'a> Ended<'a> {
    /// A run whose stages have come to `report` together and to `each`, where there were several; with the
    /// figures of its page, and what it writes now.
    pub(crate) fn new(
        args: &'a FlowsArgs,
        report: RunReport,
        each: &[RunReport],
        stages: &[FlowsStage],
        elapsed: Duration,
        (page, documents): (Option<SharedReport<FlowReport>>, Documents),
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
            documents,
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

    fn totals(&self) -> Totals<'_> {
        Totals {
            report: &self.report,
            stats: &self.stats,
            faults: &self.faults,
            fragments: &self.fragments,
            elapsed: self.elapsed,
            workers: &self.workers,
        }
    }

    /// Writes the documents; those that cannot be written are outputs that have failed.
    fn write(&mut self) {
        let documents = std::mem::take(&mut self.documents);
        if let (Some(page), Some(document)) = (&self.page, documents.report) {
            let html = page
                .0
                .borrow()
                .render(&report_meta(self.args, &self.totals()));
            self.report.losses.extend(document.write(&html));
        }
        if let Some(document) = documents.summary {
            let lost = document.write_json(&self.totals().to_json());
            self.report.losses.extend(lost);
        }
    }

    /// Says how it went and chooses the exit code.
    pub(crate) fn conclude(mut self, outcome: Result<(), RunError>) -> anyhow::Result<Exit> {
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
        self.write();
        let (args, report, totals) = (self.args, &self.report, self.totals());
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
            ("inputs not read", totals::unread(report).count() as u64),
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
