//! The run loop: pulls batches from a source, pushes them through a stage, hands records to sinks.

use linkweir_record::{RecordBatch, RecordKind};
use linkweir_wire::Timestamp;
use thiserror::Error;

use crate::seams::{
    Drops, Fault, Progress, Sink, SinkError, Source, SourceError, SourceEvent, Stage, TableFill,
};

/// Records that are gathered before the sinks see them, where nobody watches.
const BATCH_RECORDS: usize = 512;

/// What the caller wants of a run, asked between batches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Directive {
    /// Go on.
    Continue,
    /// Go on, and let the sinks show what they hold.
    Flush,
    /// Go on with new output files.
    Rotate,
    /// Take no more input; finish and write everything.
    Stop,
}

/// What a run has come to.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RunReport {
    /// Packets the stage saw.
    pub packets: u64,
    /// Bytes those packets had on the wire.
    pub bytes: u64,
    /// Earliest capture time.
    pub first: Option<Timestamp>,
    /// Latest capture time.
    pub last: Option<Timestamp>,
    /// Parts of the input that were lost.
    pub faults: Vec<Fault>,
    /// Packets lost on the way to the stage.
    pub drops: Drops,
    /// How full the stage's table was when last asked.
    pub fill: TableFill,
    /// Records handed to the sinks.
    pub records: u64,
}

/// What ended a run before its time.
#[derive(Debug, Error)]
pub enum RunError {
    /// The input.
    #[error(transparent)]
    Source(#[from] SourceError),
    /// An output.
    #[error(transparent)]
    Sink(#[from] SinkError),
}

/// A stage with its source and sinks, and the progress of the run.
pub struct Run<'s, S, T: Stage> {
    source: S,
    stage: &'s mut T,
    sinks: &'s mut [Box<dyn Sink<T::Record>>],
    limit: Option<u64>,
    records: <T::Record as RecordKind>::Batch,
    report: RunReport,
}

impl<K: RecordKind> std::fmt::Debug for dyn Sink<K> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Sink<{}>", K::NAME)
    }
}

impl<S, T: Stage> std::fmt::Debug for Run<'_, S, T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Run")
            .field("limit", &self.limit)
            .field("report", &self.report)
            .finish_non_exhaustive()
    }
}

impl<'s, S: Source, T: Stage> Run<'s, S, T> {
    /// A run of `source` through `stage` into `sinks`, over at most `limit` packets.
    pub fn new(
        source: S,
        stage: &'s mut T,
        sinks: &'s mut [Box<dyn Sink<T::Record>>],
        limit: Option<u64>,
    ) -> Self {
        Self {
            source,
            stage,
            sinks,
            limit,
            records: Default::default(),
            report: RunReport::default(),
        }
    }

    /// Runs to the end of the source, to the limit, or until `direct` says stop.
    ///
    /// `direct` is asked between batches with what was reached so far. Whatever ends the run, the
    /// stage is finished and its records are written, so that an input error costs only the rest
    /// of that input.
    ///
    /// # Errors
    /// The first error of a sink; that of a source after everything before it was written. The
    /// report says how far the run came either way.
    pub fn drive(
        mut self,
        mut direct: impl FnMut(&RunReport, Progress) -> Directive,
    ) -> (RunReport, Result<(), RunError>) {
        let outcome = self.take_input(&mut direct);
        let outcome = match outcome {
            Err(RunError::Sink(error)) => Err(RunError::Sink(error)),
            ended => self.complete().map_err(RunError::from).and(ended),
        };
        self.report.drops = self.source.drops();
        (self.report, outcome)
    }

    fn take_input(
        &mut self,
        direct: &mut impl FnMut(&RunReport, Progress) -> Directive,
    ) -> Result<(), RunError> {
        loop {
            if self.limit.is_some_and(|limit| self.report.packets >= limit) {
                return Ok(());
            }
            let mut is_idle = false;
            match self.source.next_event()? {
                SourceEvent::End => return Ok(()),
                SourceEvent::Idle => {
                    is_idle = true;
                    if let Some(now) = self.source.now() {
                        self.stage.on_tick(now, &mut self.records);
                    }
                }
                SourceEvent::Fault(fault) => self.report.faults.push(fault),
                SourceEvent::Batch(mut batch) => {
                    if let Some(limit) = self.limit {
                        let left =
                            usize::try_from(limit - self.report.packets).unwrap_or(usize::MAX);
                        batch = batch.first(left);
                    }
                    account(&mut self.report, &batch);
                    self.stage.on_batch(&batch, &mut self.records);
                }
            }
            self.report.drops = self.source.drops();
            self.report.fill = self.stage.fill();
            let mut directive = direct(&self.report, self.source.progress());
            if is_idle && directive == Directive::Continue {
                directive = Directive::Flush;
            }
            if self.records.len() >= BATCH_RECORDS || directive != Directive::Continue {
                self.hand_over()?;
            }
            match directive {
                Directive::Continue => {}
                Directive::Flush => self.sinks.iter_mut().try_for_each(|sink| sink.flush())?,
                Directive::Rotate => self.sinks.iter_mut().try_for_each(|sink| sink.rotate())?,
                Directive::Stop => return Ok(()),
            }
        }
    }

    fn hand_over(&mut self) -> Result<(), SinkError> {
        if self.records.is_empty() {
            return Ok(());
        }
        for sink in self.sinks.iter_mut() {
            sink.write(&self.records)?;
        }
        self.report.records += self.records.len() as u64;
        self.records.clear();
        Ok(())
    }

    fn complete(&mut self) -> Result<(), SinkError> {
        loop {
            let was_all = self.stage.finish(&mut self.records);
            self.hand_over()?;
            if was_all {
                break;
            }
        }
        self.sinks.iter_mut().try_for_each(|sink| sink.finish())
    }
}

fn account(report: &mut RunReport, batch: &crate::Batch<'_>) {
    report.packets += batch.len() as u64;
    let (mut bytes, mut first, mut last) = (0_u64, Timestamp::MAX, Timestamp::ZERO);
    for frame in batch.index() {
        bytes += u64::from(frame.wire_len);
        first = first.min(frame.timestamp);
        last = last.max(frame.timestamp);
    }
    if !batch.is_empty() {
        report.bytes += bytes;
        report.first = Some(report.first.map_or(first, |t| t.min(first)));
        report.last = Some(report.last.map_or(last, |t| t.max(last)));
    }
}
