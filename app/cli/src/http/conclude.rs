//! How a run of `linkweir http` went: summary, report, exit code.

use std::time::Duration;

use linkweir_engine::{FaultKind, NoOutput, RunError, RunReport};
use linkweir_http::{HttpStage, HttpStats, PayloadSample};
use linkweir_report::{HttpReport, ReportMeta};
use linkweir_wire::{DecodeFaults, FragmentStats, Timestamp};

use super::args::HttpArgs;
use super::summary::{Totals, WorkerTotals};
use crate::documents;
use crate::exit::{Exit, say, warn};
use crate::merge::{HttpTotals, RunTotals, Sketch};
use crate::outputs::{Documents, SharedReport};
use crate::totals;

/// A run that has ended.
#[derive(Debug)]
pub(crate) struct Ended<'a> {
    args: &'a HttpArgs,
    report: RunReport,
    stats: HttpStats,
    faults: DecodeFaults,
    fragments: FragmentStats,
    payload: PayloadSample,
    workers: Vec<WorkerTotals>,
    elapsed: Duration,
    page: Option<SharedReport<HttpReport>>,
    documents: Documents,
}

impl<'a> Ended<'a> {
    /// A run whose stages have come to `report` together and to `each`, where there were several; with the
    /// figures of its page, and what it writes now.
    pub(crate) fn new(
        args: &'a HttpArgs,
        report: RunReport,
        each: &[RunReport],
        stages: &[HttpStage],
        elapsed: Duration,
        (page, documents): (Option<SharedReport<HttpReport>>, Documents),
    ) -> Self {
        let mut ended = Self {
            args,
            stats: HttpStats::default(),
            faults: DecodeFaults::default(),
            fragments: report.fragments,
            report,
            payload: PayloadSample::default(),
            workers: Vec::new(),
            elapsed,
            page,
            documents,
        };
        for stage in stages {
            ended.stats.merge(stage.stats());
            ended.faults.merge(stage.faults());
            ended.fragments += stage.fragments();
            ended.payload.merge(stage.payload());
        }
        ended.workers = each
            .iter()
            .zip(stages)
            .map(|(report, stage)| WorkerTotals::new(report, stage.stats()))
            .collect();
        ended
    }

    fn totals(&self) -> Totals<'_> {
        Totals {
            report: &self.report,
            stats: &self.stats,
            faults: &self.faults,
            fragments: &self.fragments,
            payload: &self.payload,
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
        if let Some(document) = documents.sketch {
            // The packets of half-transactions were counted when those were made.
            let run = self.args.halves().is_empty();
            let run = run.then(|| RunTotals::new(&self.report, &self.faults));
            let http = HttpTotals::new(&self.report, &self.stats);
            let sketch = Sketch::of_run(self.elapsed, run, Some(http));
            self.report
                .losses
                .extend(document.write_json(&sketch.to_json()));
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

fn report_meta(args: &HttpArgs, totals: &Totals<'_>) -> ReportMeta {
    let report = totals.report;
    let nanos = |time: Option<Timestamp>| time.map(Timestamp::as_nanos);
    let owned = |(name, count): (&str, u64)| (name.to_owned(), count);
    let inputs = args.source_names();
    ReportMeta {
        title: "HTTP transactions".to_owned(),
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
        notes: vec![
            ("damaged inputs".to_owned(), totals.damaged()),
            (
                "inputs not read".to_owned(),
                totals::unread(report).count() as u64,
            ),
            (
                "frames that did not decode".to_owned(),
                totals.faults.undecoded(),
            ),
            ("truncated heads".to_owned(), totals.stats.truncated_heads),
            (
                "retransmitted requests".to_owned(),
                totals.stats.retransmitted_requests,
            ),
            (
                "retransmitted responses".to_owned(),
                totals.stats.retransmitted_responses,
            ),
            (
                "interim responses".to_owned(),
                totals.stats.interim_responses,
            ),
        ],
    }
}
