//! `--rrd DIR|unix:SOCKET`: Tstat's round-robin files, one per series, by the real rrdtool or by
//! rrdcached.
//!
//! Takes the steps of the batches ([`FlowBatch::steps`]), not the flows. The steps of all shards of a
//! run are added before anything is derived from them, so the files do not depend on how many
//! workers there were.
//!
//! Source: Tstat 3.3.0: names, statistics, archives and times of the files.

mod series;
mod store;

use std::collections::BTreeMap;
use std::time::Duration;

use linkweir_engine::{Sink, SinkError, SinkLosses};
use linkweir_record::flow::{FlowBatch, FlowKind};
use linkweir_sketch::Step;

pub use series::{Series, Statistic, measured, stock};
use store::{RrdFile, RrdStore};

/// Steps that wait for a shard: with more, the oldest is written without it. Two hours of Tstat's
/// steps; memory is what is bounded here.
const MAX_WAITING: usize = 24;

/// How round-robin files are written.
#[derive(Debug, Clone, Copy)]
pub struct RrdOptions {
    /// Length of a step (`--step`): whole seconds, because rrdtool knows no other.
    pub step: Duration,
}

impl Default for RrdOptions {
    /// Tstat's five minutes.
    fn default() -> Self {
        Self {
            step: Duration::from_secs(300),
        }
    }
}

/// Opens a directory of round-robin files (needs the program rrdtool) or a daemon (`unix:SOCKET`).
///
/// Values that the other side refuses do not end the run: see [`Sink::losses`].
///
/// # Errors
/// [`SinkError::Refused`] for a step that is not of whole seconds, or where rrdtool is missing;
/// [`SinkError::Io`] where the directory or the socket cannot be used.
pub fn open_rrd(dest: &str, options: RrdOptions) -> Result<Box<dyn Sink<FlowKind>>, SinkError> {
    if options.step.is_zero() || options.step.subsec_nanos() != 0 {
        return Err(SinkError::Refused {
            destination: dest.to_owned(),
            message: "rrdtool counts in seconds: --step must be a whole number of them".to_owned(),
        });
    }
    Ok(Box::new(RrdSink {
        store: RrdStore::open(dest)?,
        step_s: options.step.as_secs(),
        series: measured()
            .into_iter()
            .map(|series| (series.file(), series))
            .collect(),
        are_created: false,
        passed: Vec::new(),
        waiting: BTreeMap::new(),
        written: None,
        late: 0,
        is_finished: false,
    }))
}

struct RrdSink {
    store: RrdStore,
    step_s: u64,
    series: Vec<(String, Series)>,
    are_created: bool,
    /// Of each shard the last step that it has passed.
    passed: Vec<Option<u64>>,
    waiting: BTreeMap<u64, Step>,
    /// The last step written.
    written: Option<u64>,
    /// Steps of shards that came when their number had been written.
    late: u64,
    is_finished: bool,
}

impl RrdSink {
    fn take(&mut self, step: &Step) {
        let shard = step.shard as usize;
        let shards = step.shards.max(1) as usize;
        if self.passed.len() < shards && shards <= usize::from(u16::MAX) {
            self.passed.resize(shards, None);
        }
        if let Some(passed) = self.passed.get_mut(shard) {
            *passed = (*passed).max(Some(step.number));
        }
        if self.written.is_some_and(|written| step.number <= written) {
            self.late += 1;
            return;
        }
        self.waiting
            .entry(step.number)
            .and_modify(|waiting| waiting.merge(step))
            .or_insert_with(|| step.clone());
    }

    /// Writes the steps that every shard has passed.
    fn write_passed(&mut self) {
        // A shard that has passed nothing yet holds everything up.
        let passed = self.passed.iter().copied().min().flatten();
        while let Some(first) = self.waiting.first_key_value().map(|(number, _)| *number) {
            if Some(first) > passed && self.waiting.len() <= MAX_WAITING {
                return;
            }
            if let Some((number, step)) = self.waiting.pop_first() {
                self.write_step(number, &step);
            }
        }
    }

    /// A value is of the time that ends where the step does.
    fn write_step(&mut self, number: u64, step: &Step) {
        let start_s = number.saturating_mul(self.step_s);
        let end_s = start_s.saturating_add(self.step_s);
        if !self.are_created {
            for (file, series) in &self.series {
                self.store.create(&RrdFile {
                    name: file,
                    source: series.def.name,
                    start_s,
                    step_s: self.step_s,
                    heartbeat_s: self.step_s.saturating_mul(2),
                });
            }
        }
        for (file, series) in &self.series {
            let value = series.value(step.written(series.id).as_deref());
            self.store.update(file, end_s, value);
        }
        self.are_created |= self.store.commit();
        self.written = Some(number);
    }
}

impl Sink<FlowKind> for RrdSink {
    fn write(&mut self, batch: &FlowBatch) -> Result<(), SinkError> {
        if batch.steps().is_empty() {
            return Ok(());
        }
        for step in batch.steps() {
            self.take(step);
        }
        self.write_passed();
        Ok(())
    }

    fn flush(&mut self) -> Result<(), SinkError> {
        Ok(())
    }

    fn finish(&mut self) -> Result<(), SinkError> {
        if self.is_finished {
            return Ok(());
        }
        self.is_finished = true;
        while let Some((number, step)) = self.waiting.pop_first() {
            self.write_step(number, &step);
        }
        self.store.finish();
        Ok(())
    }

    fn losses(&self) -> SinkLosses {
        let mut losses = self.store.losses();
        losses.count += self.late;
        if self.late > 0 {
            losses.first.get_or_insert_with(|| {
                "rrd: a worker was so late that its step had been written without it".to_owned()
            });
        }
        losses
    }
}
