//! How a run of `linkweir halves` went: summary, sketch, exit code.

use std::time::Duration;

use anyhow::Context;
use linkweir_engine::{FaultKind, NoOutput, RunError, RunReport, SinkError};
use linkweir_http::HalfStage;
use linkweir_sink::summary::write_summary_file;

use super::args::HalvesArgs;
use super::summary::Totals;
use crate::exit::{Exit, say, warn};
use crate::merge::{RunTotals, Sketch, write_sketch};
use crate::totals;

/// A run that has ended.
#[derive(Debug)]
pub(super) struct Ended<'a> {
    pub(super) args: &'a HalvesArgs,
    pub(super) report: &'a RunReport,
    pub(super) stage: &'a HalfStage,
    pub(super) elapsed: Duration,
}

impl Ended<'_> {
    /// Says how it went and chooses the exit code.
    pub(super) fn conclude(&self, outcome: Result<(), RunError>) -> anyhow::Result<Exit> {
        let Self { report, stage, .. } = *self;
        let output = &self.args.output;
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
            stage,
            elapsed: self.elapsed,
        };
        if let Some(destination) = &output.summary {
            written(write_summary_file(destination, &totals.to_json())).context("--summary")?;
        }
        if let Some(destination) = &output.sketch {
            let run = RunTotals::new(report, stage.faults());
            let sketch = Sketch::of_run(self.elapsed, Some(run), None);
            written(write_sketch(destination, &sketch)).context("--sketch")?;
        }
        if !output.quiet {
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

/// Nobody who reads is no failure.
fn written(outcome: Result<(), SinkError>) -> Result<(), SinkError> {
    match outcome {
        Err(SinkError::ClosedPipe) => Ok(()),
        other => other,
    }
}
