//! How a run of `linkweir halves` went: summary, sketch, exit code.

use std::time::Duration;

use linkweir_engine::{FaultKind, NoOutput, RunError, RunReport};
use linkweir_http::HalfStage;

use super::args::HalvesArgs;
use super::summary::Totals;
use crate::exit::{Exit, say, warn};
use crate::merge::{RunTotals, Sketch};
use crate::outputs::Documents;
use crate::totals;

/// A run that has ended.
#[derive(Debug)]
pub(super) struct Ended<'a> {
    pub(super) args: &'a HalvesArgs,
    pub(super) report: RunReport,
    pub(super) stage: &'a HalfStage,
    pub(super) elapsed: Duration,
}

impl Ended<'_> {
    const fn totals(&self) -> Totals<'_> {
        Totals {
            report: &self.report,
            stage: self.stage,
            elapsed: self.elapsed,
        }
    }

    /// Writes the documents; those that cannot be written are outputs that have failed.
    fn write(&mut self, documents: Documents) {
        if let Some(document) = documents.sketch {
            let run = RunTotals::new(&self.report, self.stage.faults());
            let sketch = Sketch::of_run(self.elapsed, Some(run), None);
            let lost = document.write_json(&sketch.to_json());
            self.report.losses.extend(lost);
        }
        if let Some(document) = documents.summary {
            let lost = document.write_json(&self.totals().to_json());
            self.report.losses.extend(lost);
        }
    }

    /// Writes the documents, says how it went and chooses the exit code.
    pub(super) fn conclude(
        mut self,
        outcome: Result<(), RunError>,
        documents: Documents,
    ) -> anyhow::Result<Exit> {
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
        self.write(documents);
        let (report, totals) = (&self.report, self.totals());
        if !self.args.output.quiet {
            say(&totals.to_screen());
        }
        totals::warn_of_link_types(self.stage.faults());
        let mut faults = report.faults.iter();
        if faults.any(|fault| fault.kind == FaultKind::Unusable) {
            exit = exit.max(Exit::Failed);
        }
        if totals.is_lossy() {
            exit = exit.max(Exit::DataLost);
        }
        Ok(exit)
    }
}
