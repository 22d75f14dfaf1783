//! Parquet files in directories by the time of their records.

use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};

use linkweir_engine::{Sink, SinkError, SinkLosses};
use linkweir_record::{RecordBatch, RecordKind};

use super::directories::Budget;
use super::directories::{PART, directory, span_ns};
use super::part::ParquetPart;
use super::sink::ColumnSink;
use crate::options::{OutputOptions, Partition};
use crate::output::{Output, Place, io_error};

/// Directories with a file that is being written; each has a row group in memory.
const MAX_OPEN: usize = 4;

/// How long a directory whose time is over is kept open for late records, by the time of records. The
/// next ones begin another file in it.
const LATE_NS: u64 = 300_000_000_000;

/// A directory that is being written.
#[derive(Debug)]
struct Open<K: RecordKind> {
    /// The first moment that belongs to it.
    start_ns: u64,
    /// The newest record of all when the last one came for this directory.
    last_used_ns: u64,
    directory: PathBuf,
    sink: ColumnSink<K, ParquetPart<K>>,
    /// Files of `sink` after which the budget was looked at.
    counted: u64,
}

/// Sorts records into directories by their time.
///
/// At most four directories are open at once; a record for a fifth completes the file of the one that was
/// not used for the longest time. A directory whose time is over is completed five minutes (of the records'
/// time) after its last record.
#[derive(Debug)]
pub(crate) struct PartitionedSink<K: RecordKind> {
    root: PathBuf,
    partition: Partition,
    options: OutputOptions,
    open: Vec<Open<K>>,
    budget: Option<Budget>,
    /// The newest moment that was seen.
    newest_ns: u64,
    /// Records that were to be written, and those of them in files that are complete.
    given: u64,
    arrived: u64,
    /// Why nothing more is written.
    over: Option<&'static str>,
    has_failed: bool,
}

impl<K: RecordKind> PartitionedSink<K> {
    /// Opens the directory `destination`, which is made where it is missing.
    ///
    /// # Errors
    /// [`SinkError::Refused`] where it is not a directory; [`SinkError::Io`] where no file can be made in it.
    pub(crate) fn open(
        destination: &str,
        partition: Partition,
        options: OutputOptions,
    ) -> Result<Self, SinkError> {
        let root = root(destination)?;
        // Finds out at once whether files can be made, by making one. Another run may be at that too.
        match Output::partial(destination, &root.join(PART)) {
            Err(SinkError::Refused { .. }) => {}
            made => made?.discard()?,
        }
        let budget = options
            .budget
            .map(|limit| Budget::new(root.clone(), limit, options.announce));
        Ok(Self {
            root,
            partition,
            options,
            open: Vec::with_capacity(MAX_OPEN),
            budget,
            newest_ns: 0,
            given: 0,
            arrived: 0,
            over: None,
            has_failed: false,
        })
    }

    fn check(&self) -> Result<(), SinkError> {
        match self.over {
            None => Ok(()),
            Some(why) => Err(SinkError::Refused {
                destination: self.root.display().to_string(),
                message: why.to_owned(),
            }),
        }
    }

    fn keep(&mut self, result: Result<(), SinkError>) -> Result<(), SinkError> {
        if result.is_err() {
            self.has_failed = true;
            self.over = Some("an earlier write failed; what was written is in `.part-*.partial`");
        }
        result
    }

    /// Writes records that all belong to the directory of moment `start_ns`.
    fn put(&mut self, start_ns: u64, views: &[K::View<'_>]) -> Result<(), SinkError> {
        let newest = views.iter().map(K::time_ns).max().unwrap_or(start_ns);
        self.newest_ns = self.newest_ns.max(newest);
        let at = match self.open.iter().position(|open| open.start_ns == start_ns) {
            Some(at) => at,
            None => self.begin(start_ns)?,
        };
        if let Some(open) = self.open.get_mut(at) {
            open.last_used_ns = self.newest_ns;
            open.sink.write_views(views)?;
        }
        self.keep_budget();
        Ok(())
    }

    /// Opens a directory, instead of another one where there are too many. Gives its index.
    fn begin(&mut self, start_ns: u64) -> Result<usize, SinkError> {
        if self.open.len() >= MAX_OPEN {
            let longest = self.open.iter().enumerate();
            let longest = longest.min_by_key(|(_, open)| (open.last_used_ns, open.start_ns));
            if let Some((at, _)) = longest {
                self.complete(at)?;
            }
        }
        let directory = self.root.join(directory(self.partition, start_ns));
        fs::create_dir_all(&directory).map_err(|e| io_error(&directory.to_string_lossy(), e))?;
        let path = directory.join(PART);
        let destination = path.to_string_lossy().into_owned();
        let options = self.options.clone();
        self.open.push(Open {
            start_ns,
            last_used_ns: self.newest_ns,
            directory,
            sink: ColumnSink::open(&destination, Place::File(path), options, true)?,
            counted: 0,
        });
        Ok(self.open.len() - 1)
    }

    /// Completes the file of a directory that is open.
    fn complete(&mut self, at: usize) -> Result<(), SinkError> {
        if at >= self.open.len() {
            return Ok(());
        }
        let mut open = self.open.swap_remove(at);
        let finished = open.sink.finish();
        self.arrived += open.sink.arrived();
        finished?;
        if let Some(budget) = &mut self.budget {
            budget.keep(&open_directories(&self.open));
        }
        Ok(())
    }

    /// Looks at the budget where a rotation completed a file.
    fn keep_budget(&mut self) {
        let mut is_due = false;
        for open in &mut self.open {
            is_due |= open.sink.completed() > open.counted;
            open.counted = open.sink.completed();
        }
        if let Some(budget) = self.budget.as_mut().filter(|_| is_due) {
            budget.keep(&open_directories(&self.open));
        }
    }

    /// Completes the directories whose time is over, and for which nothing came lately.
    fn complete_idle(&mut self) -> Result<(), SinkError> {
        let span = span_ns(self.partition);
        let newest = self.newest_ns;
        let is_idle = |open: &Open<K>| {
            let end = open.start_ns.saturating_add(span);
            newest >= end.max(open.last_used_ns).saturating_add(LATE_NS)
        };
        while let Some(at) = self.open.iter().position(is_idle) {
            self.complete(at)?;
        }
        Ok(())
    }

    fn write_runs(&mut self, views: &[K::View<'_>]) -> Result<(), SinkError> {
        let span = span_ns(self.partition);
        let start = |view: &K::View<'_>| K::time_ns(view) / span * span;
        let mut rest = views;
        while let Some(first) = rest.first() {
            let start_ns = start(first);
            let count = rest.iter().position(|view| start(view) != start_ns);
            let (now, later) = rest
                .split_at_checked(count.unwrap_or(rest.len()))
                .unwrap_or((rest, &[]));
            self.put(start_ns, now)?;
            rest = later;
        }
        self.complete_idle()
    }

    fn complete_all(&mut self) -> Result<(), SinkError> {
        // One that fails does not keep the others from being complete; its error is reported.
        let mut result = Ok(());
        while !self.open.is_empty() {
            let completed = self.complete(0);
            result = result.and(completed);
        }
        result
    }
}

fn open_directories<K: RecordKind>(open: &[Open<K>]) -> HashSet<PathBuf> {
    open.iter().map(|open| open.directory.clone()).collect()
}

/// The directory that a destination names.
fn root(destination: &str) -> Result<PathBuf, SinkError> {
    let refuse = |message: &str| {
        Err(SinkError::Refused {
            destination: destination.to_owned(),
            message: message.to_owned(),
        })
    };
    let path = Path::new(destination);
    match path.metadata() {
        Ok(meta) if meta.is_dir() => return Ok(path.to_owned()),
        Ok(_) => {
            return refuse(
                "is not a directory; --partition sorts files into the directory that -w names",
            );
        }
        Err(_) if matches!(destination, "" | "-") => {
            return refuse(
                "is not a directory; --partition sorts files into the directory that -w names",
            );
        }
        Err(_) => {}
    }
    if path.extension().is_some() {
        return refuse(
            "looks like a file; --partition sorts files into the directory that -w names (one with a dot in its name has to be there already)",
        );
    }
    match fs::create_dir_all(path) {
        Ok(()) => Ok(path.to_owned()),
        Err(source) => Err(io_error(destination, source)),
    }
}

impl<K: RecordKind> Sink<K> for PartitionedSink<K> {
    fn write(&mut self, batch: &K::Batch) -> Result<(), SinkError> {
        self.given += batch.len() as u64;
        self.check()?;
        let views: Vec<K::View<'_>> = batch.views().collect();
        let result = self.write_runs(&views);
        self.keep(result)
    }

    fn miss(&mut self, batch: &K::Batch) {
        self.given += batch.len() as u64;
    }

    fn losses(&self) -> SinkLosses {
        let open = self.open.iter().map(|open| open.sink.arrived());
        let missing = self.given - self.arrived - open.sum::<u64>();
        SinkLosses {
            count: if self.has_failed { missing } else { 0 },
            first: None,
        }
    }

    fn flush(&mut self) -> Result<(), SinkError> {
        self.check()?;
        if self.options.is_live {
            // Where nothing comes any more, time goes on.
            self.newest_ns = self.newest_ns.max((self.options.wall_clock_ns)());
        }
        let mut result = self.complete_idle();
        for open in &mut self.open {
            result = result.and_then(|()| open.sink.flush());
        }
        self.keep(result)
    }

    /// Completes all files; the next records begin others.
    fn rotate(&mut self) -> Result<(), SinkError> {
        self.check()?;
        let result = self.complete_all();
        self.keep(result)
    }

    fn finish(&mut self) -> Result<(), SinkError> {
        const FINISHED: &str = "the output is complete already";
        if self.over == Some(FINISHED) {
            return Ok(());
        }
        let before = self.check();
        let result = self.complete_all();
        self.has_failed |= result.is_err();
        self.over = Some(FINISHED);
        before.and(result)
    }
}
