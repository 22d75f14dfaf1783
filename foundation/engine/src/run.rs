//! The run loop: pulls batches from a source, pushes them through a stage, hands records to outputs.

use linkweir_record::{RecordBatch, RecordKind};
use linkweir_wire::{FragmentStats, Timestamp};
use thiserror::Error;

use crate::batch::{Batch, Limit};
use crate::distribute::DispatchState;
use crate::exchange::Mailbox;
use crate::outputs::{Loss, NoOutput, Outlet, Outputs, SampleCounts};
use crate::seams::{
    Drops, Fault, FaultKind, InputCounts, Progress, Source, SourceError, SourceEvent, Stage,
    TableFill,
};
use crate::sort::Sorter;

/// Records that are gathered before the outputs see them, where there is no observer.
const BATCH_RECORDS: usize = 512;

/// Frames after which the outputs may have what a stage made of them, in a batch that has more: between two of them there
/// may be minutes, and a step of every interval meanwhile.
const PIECE_FRAMES: usize = 32;

/// What the caller wants of a run, asked between batches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Directive {
    /// Go on.
    Continue,
    /// Go on, and let the outputs show what they hold.
    Flush,
    /// Go on with new output files.
    Rotate,
    /// Take no more input; finish and write everything.
    Stop,
}

/// Where the interval ends, in capture time, that whoever looks at a run is in: a batch is cut there, so that what
/// is counted between two looks belongs to one interval. Time zero before the first packet; asked once a batch and
/// once an interval.
pub type IntervalEnd = Box<dyn Fn() -> Timestamp + Send>;

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
    /// Of these, and of the packets, what each of several interfaces has; known at the end.
    pub inputs: Vec<InputCounts>,
    /// What became of IP fragments that were reassembled before they reached the stage.
    pub fragments: FragmentStats,
    /// How full the stage's table was when last asked.
    pub fill: TableFill,
    /// Records handed to the outputs.
    pub records: u64,
    /// Of these, records out of order though they were to be sorted.
    pub unsorted: u64,
    /// What each destination has lost, when last asked: with every flush, and at the end.
    pub losses: Vec<Loss>,
    /// What was sampled of the records, if that was asked for; known at the end.
    pub sample: Option<SampleCounts>,
    /// Records that were not written because they did not meet a condition, or come after the last that is wanted; known
    /// at the end.
    pub left_out: u64,
    /// Whether it ended before its input because the outputs had all records that they were to have.
    pub is_complete_early: bool,
    /// All records from before this were handed to the outputs.
    pub complete_to: Timestamp,
    /// Whether it came to nothing because of its inputs: without a packet, and they were unusable, damaged, or left
    /// before their end. Known at the end.
    pub is_unread: bool,
}

impl RunReport {
    /// Whether it is without a packet because of its inputs: one is unusable or damaged, or they were left before
    /// they had `ended`.
    #[must_use]
    pub fn left_without_a_packet(&self, ended: bool) -> bool {
        let is_bad = |kind| matches!(kind, FaultKind::Unusable | FaultKind::Damaged);
        let is_sound = ended && !self.faults.iter().any(|fault| is_bad(fault.kind));
        self.packets == 0 && !is_sound
    }

    /// Records that did not reach a destination, of all destinations together.
    #[must_use]
    pub fn lost_records(&self) -> u64 {
        let counts = self.losses.iter().map(|loss| loss.count);
        counts.fold(0, u64::saturating_add)
    }
}

/// What ended a run before its time.
#[derive(Debug, Error)]
pub enum RunError {
    /// The input.
    #[error(transparent)]
    Source(#[from] SourceError),
    /// All outputs.
    #[error(transparent)]
    Output(#[from] NoOutput),
}

/// A stage with its outputs, and the progress of the run.
pub struct Run<'s, T: Stage, O = Outputs<<T as Stage>::Record>> {
    stage: &'s mut T,
    outputs: &'s mut O,
    limit: Limit,
    records: <T::Record as RecordKind>::Batch,
    sorter: Option<Sorter<T::Record>>,
    mailbox: Option<Mailbox<T::Handoff>>,
    distributed: Option<&'s DispatchState>,
    /// `None`: nobody looks at intervals.
    interval_end: Option<IntervalEnd>,
    report: RunReport,
    /// Whether the source has come to its end.
    has_ended: bool,
}

impl<T: Stage, O> std::fmt::Debug for Run<'_, T, O> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Run")
            .field("limit", &self.limit)
            .field("report", &self.report)
            .finish_non_exhaustive()
    }
}

impl<'s, T: Stage, O: Outlet<T::Record>> Run<'s, T, O> {
    /// A run through `stage` into `outputs`, over at most `limit` packets.
    pub fn new(stage: &'s mut T, outputs: &'s mut O, limit: Limit) -> Self {
        Self {
            stage,
            outputs,
            limit,
            records: Default::default(),
            sorter: None,
            mailbox: None,
            distributed: None,
            interval_end: None,
            has_ended: false,
            report: RunReport::default(),
        }
    }

    /// Lets the records leave in the order of their time.
    #[must_use]
    pub fn sorted(mut self, is_sorted: bool) -> Self {
        self.sorter = is_sorted.then(Sorter::default);
        self
    }

    /// Cuts batches where intervals end, where there is somebody who looks at intervals. The records of an interval
    /// are handed over before the next one begins.
    #[must_use]
    pub fn cut_at(mut self, interval_end: Option<IntervalEnd>) -> Self {
        self.interval_end = interval_end;
        self
    }

    /// Makes this one of several shards that hand handoffs to one another.
    pub(crate) fn at(mut self, mailbox: Mailbox<T::Handoff>) -> Self {
        self.mailbox = Some(mailbox);
        self
    }

    /// Ends at the time at which the dispatcher's input ended, which may be after this shard's last
    /// frame.
    pub(crate) const fn until(mut self, distributed: &'s DispatchState) -> Self {
        self.distributed = Some(distributed);
        self
    }

    /// Runs to the end of `source`, to the limit, or until `direct` says stop.
    ///
    /// `direct` is asked between batches with what was reached so far. Whatever ends the run, the
    /// stage is finished and its records are written, so that an input error costs only the rest
    /// of that input.
    ///
    /// # Errors
    /// Where no output is left; the error of a source after everything before it was written. The
    /// report says how far the run came either way.
    pub fn drive(
        mut self,
        mut source: impl Source,
        mut direct: impl FnMut(&RunReport, Progress) -> Directive,
    ) -> (RunReport, Result<(), RunError>) {
        let outcome = loop {
            match self.step(&mut source, &mut direct) {
                Ok(true) => {}
                Ok(false) => break Ok(()),
                Err(error) => break Err(error),
            }
        };
        self.end(source, outcome)
    }

    /// What it has come to so far.
    pub(crate) const fn report(&self) -> &RunReport {
        &self.report
    }

    /// Ends a run whose steps came to `outcome`.
    pub(crate) fn end(
        mut self,
        source: impl Source,
        outcome: Result<(), RunError>,
    ) -> (RunReport, Result<(), RunError>) {
        self.report.drops = source.drops();
        self.report.inputs = source.inputs();
        // Who fills it waits for room no longer: the other shards, for which this one waits now, may be
        // waiting for what comes behind that.
        drop(source);
        let outcome = match outcome {
            Err(RunError::Output(none)) => {
                self.report.is_complete_early = none == NoOutput::Complete;
                Err(RunError::Output(none))
            }
            ended => self.complete().map_err(RunError::from).and(ended),
        };
        self.report.losses = self.outputs.losses();
        self.report.sample = self.outputs.sampled();
        self.report.left_out = self.outputs.left_out();
        (self.report, outcome)
    }

    /// Takes the next event of the source; false where there is nothing more to take.
    pub(crate) fn step(
        &mut self,
        source: &mut impl Source,
        direct: &mut impl FnMut(&RunReport, Progress) -> Directive,
    ) -> Result<bool, RunError> {
        if self.limit.is_used_up() {
            return Ok(false);
        }
        let mut is_idle = false;
        // A batch borrows from the source, which cannot be asked between its intervals.
        let progress = self.interval_end.as_ref().map(|_| source.progress());
        match source.next_event()? {
            SourceEvent::End => {
                self.has_ended = true;
                return Ok(false);
            }
            SourceEvent::Idle => {
                is_idle = true;
                if let Some(now) = source.now() {
                    self.stage.on_tick(now, &mut self.records);
                }
            }
            SourceEvent::Fault(fault) => self.report.faults.push(fault),
            SourceEvent::Batch(batch) => {
                let batch = self.limit.apply(batch);
                let Some(rest) = self.take_pieces(batch, progress.unwrap_or_default(), direct)?
                else {
                    return Ok(false);
                };
                account(&mut self.report, &rest);
                self.stage.on_batch(&rest, &mut self.records);
            }
        }
        if let Some(mailbox) = &self.mailbox {
            mailbox.exchange(self.stage, &mut self.records);
        }
        self.report.drops = source.drops();
        self.report.fill = self.stage.fill();
        let mut directive = direct(&self.report, source.progress());
        if is_idle && directive == Directive::Continue {
            directive = Directive::Flush;
        }
        if self.has_enough() || directive != Directive::Continue {
            self.hand_over()?;
        }
        if self.records.is_empty() {
            self.report.complete_to = self.stage.watermark();
        }
        match directive {
            Directive::Continue => {}
            Directive::Flush => {
                self.outputs.flush()?;
                self.report.losses = self.outputs.losses();
                // What a sorter keeps is not written.
                if self.sorter.is_none() {
                    source.on_written();
                }
            }
            Directive::Rotate => self.outputs.rotate()?,
            Directive::Stop => return Ok(false),
        }
        Ok(true)
    }

    /// Takes the frames of a batch piece by piece, and cut where intervals end; gives the last piece, which is not empty
    /// unless the batch is. `None` where the run is to stop.
    fn take_pieces<'b>(
        &mut self,
        mut batch: Batch<'b>,
        progress: Progress,
        direct: &mut impl FnMut(&RunReport, Progress) -> Directive,
    ) -> Result<Option<Batch<'b>>, RunError> {
        loop {
            let end = self.interval_end.as_ref().map(|end| end());
            let mut frames = batch.index().iter().take(PIECE_FRAMES);
            let at = end.and_then(|end| frames.position(|frame| frame.timestamp >= end));
            if at == Some(0) {
                // It begins another interval, and what is at hand belongs to the one before.
                self.hand_over()?;
            }
            let (piece, rest) = batch.split_at(at.unwrap_or(PIECE_FRAMES).max(1));
            if rest.is_empty() {
                return Ok(Some(batch));
            }
            batch = rest;
            account(&mut self.report, &piece);
            self.stage.on_batch(&piece, &mut self.records);
            // What an interval came to is asked before the next one begins, and when it has.
            let next = batch.index().first().map(|frame| frame.timestamp);
            if at.is_none() && end.is_none_or(|end| next < Some(end)) {
                if self.has_enough() {
                    self.hand_over()?;
                }
                continue;
            }
            self.report.fill = self.stage.fill();
            match direct(&self.report, progress) {
                Directive::Continue => {}
                Directive::Flush => {
                    self.hand_over()?;
                    self.outputs.flush()?;
                }
                Directive::Rotate => {
                    self.hand_over()?;
                    self.outputs.rotate()?;
                }
                Directive::Stop => return Ok(None),
            }
        }
    }

    /// Whether the records are worth writing. The first ones do not wait for others: somebody may be looking. A sorter
    /// keeps them in any case.
    fn has_enough(&self) -> bool {
        let is_first = self.report.records == 0 && self.sorter.is_none();
        let enough = if is_first { 1 } else { BATCH_RECORDS };
        self.records.len() >= enough || self.records.is_bulky()
    }

    fn hand_over(&mut self) -> Result<(), NoOutput> {
        let before = self.stage.watermark().as_nanos();
        self.write_out(before)
    }

    /// Writes the records, when sorted those from before `before_ns`.
    fn write_out(&mut self, before_ns: u64) -> Result<(), NoOutput> {
        let Some(sorter) = &mut self.sorter else {
            return write_to(self.outputs, &mut self.records, &mut self.report.records);
        };
        sorter.take_in(&mut self.records);
        loop {
            let was_all = sorter.release(before_ns, &mut self.records);
            write_to(self.outputs, &mut self.records, &mut self.report.records)?;
            if was_all {
                self.report.unsorted = sorter.late();
                return Ok(());
            }
        }
    }

    fn complete(&mut self) -> Result<(), NoOutput> {
        if let Some(mailbox) = &mut self.mailbox {
            mailbox.settle(self.stage, &mut self.records);
        }
        if let Some(distributed) = self.distributed {
            self.stage.on_tick(distributed.latest(), &mut self.records);
        }
        loop {
            let was_all = self.stage.finish(&mut self.records);
            if was_all {
                break;
            }
            self.hand_over()?;
        }
        self.write_out(u64::MAX)?;
        self.report.complete_to = Timestamp::MAX;
        self.report.is_unread = self.report.left_without_a_packet(self.has_ended);
        self.outputs.finish_after(self.report.is_unread)
    }
}

/// Writes a batch to all outputs, counts it and empties it.
pub(crate) fn write_to<K: RecordKind>(
    outputs: &mut impl Outlet<K>,
    records: &mut K::Batch,
    count: &mut u64,
) -> Result<(), NoOutput> {
    if records.is_empty() {
        return Ok(());
    }
    let written = outputs.write(records);
    *count += records.len() as u64;
    records.clear();
    written
}

fn account(report: &mut RunReport, batch: &Batch<'_>) {
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
