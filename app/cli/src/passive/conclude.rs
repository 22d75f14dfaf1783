//! How a run went: documents, totals on standard error, exit code.

use std::time::Duration;

use linkweir_engine::{NoOutput, RunError, RunReport};
use linkweir_record::human::counted;
use linkweir_report::ReportMeta;
use linkweir_wire::{DecodeFaults, FragmentStats, Timestamp};

use super::command::{Flags, Page, Passive};
use super::totals::{self, Counters, Totals, WorkerTotals};
use super::watch::Watcher;
use crate::exit::{Exit, say, warn};
use crate::files;
use crate::merge::sketch::{RunTotals, Sketch};
use crate::outputs::Documents;
use crate::packets::PacketTotals;

/// What a run needs when its stages have ended.
pub(super) struct Ending<'a> {
    pub(super) flags: Flags<'a>,
    pub(super) documents: Documents,
    pub(super) page: Option<Page>,
    pub(super) watcher: Watcher,
}

impl Ending<'_> {
    /// Ends a run whose stages have come to `report` together and to `each`, where there are several workers:
    /// writes the documents, says how it went and chooses the exit code.
    pub(super) fn conclude<C: Passive>(
        mut self,
        mut report: RunReport,
        each: &[RunReport],
        stages: &[C::Stage],
        outcome: Result<(), RunError>,
    ) -> anyhow::Result<Exit> {
        let elapsed = self.watcher.finish(&mut report);
        // A run that came to nothing replaces nothing but the summary, which says so.
        let keeps = report.is_unread && self.flags.output.store.files.overwrite;
        let packets = if keeps {
            self.documents.report = None;
            self.documents.sketch = None;
            self.watcher.packets.abandon();
            None
        } else {
            self.watcher.finish_packets(self.flags.input, &mut report)
        };
        let is_closed = matches!(outcome, Err(RunError::Output(NoOutput::ClosedPipe)));
        let mut exit = match outcome {
            Ok(()) | Err(RunError::Output(NoOutput::Complete | NoOutput::ClosedPipe)) => Exit::Done,
            // The reason was reported for each.
            Err(RunError::Output(NoOutput::Failed)) => Exit::Failed,
            Err(RunError::Source(error)) => {
                warn(&error.to_string());
                Exit::Failed
            }
        };
        let mut ended = Ended::<C::Counters>::new::<C>(report, each, stages, elapsed);
        ended.packets = packets;
        let before = ended.report.losses.len();
        // A document that cannot be written is an output that has failed.
        if let (Some(page), Some(document)) = (self.page, self.documents.report) {
            let html = page(&report_meta(&self.flags, &ended.totals()));
            ended.report.losses.extend(document.write(&html));
        }
        if let Some(document) = self.documents.sketch {
            // The packets of half-transactions were counted when those were made.
            let run = self.flags.halves.is_empty();
            let run = run.then(|| RunTotals::new(&ended.report, &ended.faults));
            let http = C::http_totals(&ended.report, &ended.counters);
            let sketch = Sketch::of_run(elapsed, run, http).to_json();
            ended.report.losses.extend(document.write_json(&sketch));
        }
        if let Some(document) = self.documents.summary {
            let summary = ended.totals().to_json();
            ended.report.losses.extend(document.write_json(&summary));
        }
        // The reader has closed the output: no totals are shown, but the documents are written.
        if is_closed && ended.report.losses.len() == before {
            return self.watcher.stay_with(Ok(exit));
        }
        let totals = ended.totals();
        if self.flags.output.quiet {
            // What was asked for by a flag of its own.
            if let Some(table) = C::Counters::table(&totals) {
                say(&table);
            }
        } else {
            let head = self.flags.output.store.choice.head;
            if let Some(head) = head.filter(|_| totals.report.is_complete_early) {
                warn(&format!(
                    "ended by --head after {}",
                    counted(head, "record")
                ));
            }
            say(&totals.to_screen());
        }
        totals::warn_of_link_types(totals.faults);
        if totals::unread(totals.report).next().is_some() {
            exit = exit.max(Exit::Failed);
        }
        if totals.is_lossy() {
            exit = exit.max(Exit::DataLost);
        }
        self.watcher.stay_with(Ok(exit))
    }
}

/// What a run has come to.
struct Ended<N> {
    report: RunReport,
    counters: N,
    faults: DecodeFaults,
    fragments: FragmentStats,
    elapsed: Duration,
    workers: Vec<WorkerTotals>,
    packets: Option<PacketTotals>,
}

impl<N: Counters> Ended<N> {
    fn new<C: Passive<Counters = N>>(
        report: RunReport,
        each: &[RunReport],
        stages: &[C::Stage],
        elapsed: Duration,
    ) -> Self {
        let mut ended = Self {
            counters: N::default(),
            faults: DecodeFaults::default(),
            fragments: report.fragments,
            report,
            elapsed,
            workers: Vec::new(),
            packets: None,
        };
        for stage in stages {
            C::count(
                stage,
                &mut ended.counters,
                &mut ended.faults,
                &mut ended.fragments,
            );
        }
        // Workers that took turns with one stage have counted together.
        let has_own = each.len() == stages.len();
        for (number, report) in each.iter().enumerate() {
            let stage = stages.get(number).filter(|_| has_own);
            let counted = stage.map_or_else(Vec::new, |stage| {
                let mut counters = N::default();
                C::count(
                    stage,
                    &mut counters,
                    &mut DecodeFaults::default(),
                    &mut FragmentStats::default(),
                );
                counters.of_worker()
            });
            ended.workers.push(WorkerTotals::new(report, counted));
        }
        ended
    }

    fn totals(&self) -> Totals<'_, N> {
        Totals {
            report: &self.report,
            counters: &self.counters,
            faults: &self.faults,
            fragments: &self.fragments,
            elapsed: self.elapsed,
            workers: &self.workers,
            packets: self.packets.as_ref(),
        }
    }
}

fn report_meta<N: Counters>(flags: &Flags<'_>, totals: &Totals<'_, N>) -> ReportMeta {
    let report = totals.report;
    let nanos = |time: Option<Timestamp>| time.map(Timestamp::as_nanos);
    let owned = |(name, count): (&str, u64)| (name.to_owned(), count);
    let drops = totals
        .drops()
        .into_iter()
        .chain([("sink", report.lost_records())]);
    let notes = [
        ("damaged inputs", totals::damaged(report)),
        ("inputs not read", totals::unread(report).count() as u64),
        ("frames that did not decode", totals.faults.undecoded()),
    ];
    ReportMeta {
        title: N::TITLE.to_owned(),
        inputs: flags.source_names(),
        command_line: files::command_line(),
        program: concat!("linkweir ", env!("CARGO_PKG_VERSION")).to_owned(),
        packets: report.packets,
        bytes: report.bytes,
        first_ts_ns: nanos(report.first),
        last_ts_ns: nanos(report.last),
        drops: drops.map(owned).collect(),
        notes: notes
            .into_iter()
            .chain(N::notes(totals))
            .map(owned)
            .collect(),
    }
}
