//! The sink of columns: one file or stream, or rotated files.

use std::marker::PhantomData;

use linkweir_engine::{Sink, SinkError, SinkLosses};
use linkweir_record::{RecordBatch, RecordKind};

use super::part::Part;
use crate::options::OutputOptions;
use crate::output::Place;
use crate::rotate::{Period, Rotation};
use crate::series::Series;

/// Records after which the size of a file is looked at, with a rotation by size.
const SIZE_STEP: usize = 64;

/// Writes records as columns.
#[derive(Debug)]
pub(crate) struct ColumnSink<K, P> {
    options: OutputOptions,
    series: Series,
    /// `None` while no file is open.
    part: Option<P>,
    /// Records in the current file.
    records: u64,
    /// Records that were to be written, and those of them that are in earlier files.
    given: u64,
    arrived: u64,
    /// Files that got their name.
    completed: u64,
    period: Period,
    kind: PhantomData<fn(K)>,
}

impl<K: RecordKind, P: Part<K>> ColumnSink<K, P> {
    /// Opens a destination. `is_numbered`: files have numbers, as they have with a rotation.
    pub(crate) fn open(
        destination: &str,
        place: Place,
        options: OutputOptions,
        is_numbered: bool,
    ) -> Result<Self, SinkError> {
        let is_numbered = is_numbered || options.rotation.is_some();
        let series = Series::open(destination, place, is_numbered, &options)?;
        let mut sink = Self {
            options,
            series,
            part: None,
            records: 0,
            given: 0,
            arrived: 0,
            completed: 0,
            period: Period::default(),
            kind: PhantomData,
        };
        sink.begin_file()?;
        Ok(sink)
    }

    fn begin_file(&mut self) -> Result<(), SinkError> {
        let part = &mut self.part;
        self.records = 0;
        self.series.write(|output| {
            *part = Some(P::begin(output)?);
            Ok(())
        })
    }

    fn put(&mut self, views: &[K::View<'_>]) -> Result<(), SinkError> {
        let now_ns = (self.options.wall_clock_ns)();
        let part = &mut self.part;
        self.records += views.len() as u64;
        self.series.write(|output| match part {
            Some(part) => part.extend(output, views, now_ns),
            None => Ok(()),
        })
    }

    /// Takes records in order.
    pub(crate) fn write_views(&mut self, views: &[K::View<'_>]) -> Result<(), SinkError> {
        self.given += views.len() as u64;
        self.series.check()?;
        match self.options.rotation {
            None => self.put(views),
            Some(Rotation::Every(span)) => {
                let mut rest = views;
                while let Some(first) = rest.first() {
                    if self.period.begins(K::time_ns(first), span) && self.records > 0 {
                        self.next_file()?;
                    }
                    let mut period = self.period;
                    let count = rest
                        .iter()
                        .position(|view| period.begins(K::time_ns(view), span));
                    let (now, later) = rest
                        .split_at_checked(count.unwrap_or(rest.len()))
                        .unwrap_or((rest, &[]));
                    self.put(now)?;
                    rest = later;
                }
                Ok(())
            }
            Some(Rotation::Size(limit)) => {
                for views in views.chunks(SIZE_STEP) {
                    if self.records > 0 && self.bytes() >= limit {
                        self.next_file()?;
                    }
                    self.put(views)?;
                }
                Ok(())
            }
        }
    }

    /// About how many bytes the current file would have if it ended here.
    fn bytes(&self) -> u64 {
        self.series.written() + self.part.as_ref().map_or(0, Part::pending_bytes)
    }

    fn complete_file(&mut self) -> Result<(), SinkError> {
        if let Some(mut part) = self.part.take() {
            let ended = self.series.write(|output| part.end(output));
            self.arrived += part.saved();
            ended?;
        }
        self.series.complete()?;
        self.completed += 1;
        Ok(())
    }

    /// Completes the current file and opens the next.
    fn next_file(&mut self) -> Result<(), SinkError> {
        if !self.series.is_file() {
            return Ok(());
        }
        self.series.number_files()?;
        self.complete_file()?;
        self.series.open_next()?;
        self.begin_file()
    }

    /// Records that are in an output.
    pub(crate) fn arrived(&self) -> u64 {
        self.arrived + self.part.as_ref().map_or(0, Part::saved)
    }

    /// Files that got their name so far.
    pub(crate) const fn completed(&self) -> u64 {
        self.completed
    }
}

impl<K: RecordKind, P: Part<K>> Sink<K> for ColumnSink<K, P> {
    fn write(&mut self, batch: &K::Batch) -> Result<(), SinkError> {
        let views: Vec<K::View<'_>> = batch.views().collect();
        self.write_views(&views)
    }

    fn miss(&mut self, batch: &K::Batch) {
        self.given += batch.len() as u64;
    }

    fn losses(&self) -> SinkLosses {
        self.series.losses(self.given - self.arrived())
    }

    fn flush(&mut self) -> Result<(), SinkError> {
        self.series.check()?;
        if self.options.is_over(&mut self.period) && self.records > 0 {
            return self.next_file();
        }
        let now_ns = (self.options.wall_clock_ns)();
        let part = &mut self.part;
        self.series.write(|output| match part {
            Some(part) => part.flush(output, now_ns),
            None => Ok(()),
        })
    }

    /// An empty file is not completed: the next records go into it.
    fn rotate(&mut self) -> Result<(), SinkError> {
        self.series.check()?;
        if !self.series.is_file() || self.records == 0 {
            return self.flush();
        }
        self.next_file()
    }

    fn finish(&mut self) -> Result<(), SinkError> {
        if self.series.is_finished() {
            return Ok(());
        }
        self.series.check()?;
        if self.records == 0 && self.series.follows_another() {
            self.part = None;
            self.series.discard()?;
        } else {
            self.complete_file()?;
        }
        self.series.finish();
        Ok(())
    }
}

impl<K, P> Drop for ColumnSink<K, P> {
    /// A run that ends before its first record (another destination was refused) leaves no file: the next
    /// run would take it for what a killed one left.
    fn drop(&mut self) {
        if self.records == 0 && !self.series.is_finished() {
            // Its bytes say nothing; that they stay harms nobody.
            let _best_effort = self.series.discard();
        }
    }
}
