//! Reading, also while another process writes: rows are copied and their checksum looked at.

use super::header::{Layout, Refused};
use super::journal::{self, Image};
use super::ladder::Ladder;
use super::row::{self, Cell, RowBuffer};
use crate::cells::{Catalogue, Kind};

/// Reading failed; what the system said.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReadFault(pub String);

/// Where an archive is read from.
pub trait ReadAt {
    /// Fills `into` from byte `at` on.
    ///
    /// # Errors
    /// Where there are not so many bytes, or they cannot be read.
    fn read_at(&self, at: u64, into: &mut [u8]) -> Result<(), ReadFault>;
}

impl ReadAt for &[u8] {
    fn read_at(&self, at: u64, into: &mut [u8]) -> Result<(), ReadFault> {
        let at = usize::try_from(at).unwrap_or(usize::MAX);
        let part = at.checked_add(into.len()).and_then(|end| self.get(at..end));
        let part = part.ok_or_else(|| ReadFault("the file is shorter".to_owned()))?;
        into.copy_from_slice(part);
        Ok(())
    }
}

/// Where a row stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct RowPlace {
    /// Its number: its start divided by its length.
    pub number: u64,
    slot: u32,
}

/// An archive open for reading.
#[derive(Debug)]
pub struct Reader<S> {
    source: S,
    layout: Layout,
    /// A step that was being written: its rows, which count where those in place are older.
    journal: Vec<Image>,
}

/// How often a row is read that was being written just then.
const TRIES: u32 = 5;

impl<S: ReadAt> Reader<S> {
    /// Opens an archive of `len` bytes, of this or another version's series.
    ///
    /// # Errors
    /// Where it is not an archive, damaged, or cannot be read.
    pub fn open(source: S, len: u64) -> Result<Self, Refused> {
        let unreadable = |fault: ReadFault| Refused::Unreadable(fault.0);
        let mut header = vec![0; usize::try_from(len.min(4096)).unwrap_or(0)];
        source.read_at(0, &mut header).map_err(unreadable)?;
        let bytes = Layout::header_bytes_of(&header)?;
        header.resize(bytes, 0);
        source.read_at(0, &mut header).map_err(unreadable)?;
        let layout = Layout::read(&header, len)?;
        let mut reader = Self {
            source,
            layout,
            journal: Vec::new(),
        };
        reader.journal = reader.read_journal();
        Ok(reader)
    }

    fn read_journal(&self) -> Vec<Image> {
        let read = |at: usize, into: &mut [u8]| self.source.read_at(at as u64, into).is_ok();
        journal::read(&self.layout, read).map_or_else(Vec::new, |(_, images)| images)
    }

    /// The series of the file.
    pub const fn catalogue(&self) -> &Catalogue {
        &self.layout.catalogue
    }

    /// Its levels.
    pub const fn ladder(&self) -> &Ladder {
        &self.layout.ladder
    }

    /// A buffer for [`Reader::row`].
    #[must_use]
    pub fn buffer(&self) -> RowBuffer {
        RowBuffer::new(&self.layout.row)
    }

    /// The rows of a level, oldest first.
    ///
    /// # Errors
    /// Where the file cannot be read.
    pub fn rows(&self, level: usize) -> Result<Vec<RowPlace>, ReadFault> {
        let count = self
            .layout
            .ladder
            .levels()
            .get(level)
            .map_or(0, |one| one.rows);
        let mut rows = Vec::new();
        for slot in 0..count {
            let mut number = [0; 8];
            let at = self.layout.slot(level, slot);
            self.source.read_at(at as u64, &mut number)?;
            let image = self.image(level, slot).and_then(|image| image.number());
            let number = row::number(&number).max(image);
            // A number that belongs elsewhere is not one.
            let number = number.filter(|number| self.layout.slot_of(level, *number) == slot);
            rows.extend(number.map(|number| RowPlace { number, slot }));
        }
        rows.sort_unstable();
        Ok(rows)
    }

    fn image(&self, level: usize, slot: u32) -> Option<&RowBuffer> {
        let mut images = self.journal.iter();
        let found = images.find(|image| image.level == level && image.slot == slot);
        found.map(|image| &image.row)
    }

    /// Reads a row. Whether there is one: `false` where it was damaged, or has been overwritten.
    ///
    /// # Errors
    /// Where the file cannot be read.
    pub fn row(
        &mut self,
        level: usize,
        place: RowPlace,
        into: &mut RowBuffer,
    ) -> Result<bool, ReadFault> {
        let at = self.layout.slot(level, place.slot) as u64;
        into.bytes.resize(self.layout.row.bytes, 0);
        for attempt in 0..TRIES {
            if attempt > 0 {
                // It is being written: then it stands in the journal, now or in a moment.
                self.journal = self.read_journal();
            }
            self.source.read_at(at, &mut into.bytes)?;
            let is_whole = into.is_whole();
            if let Some(image) = self.image(level, place.slot)
                && (!is_whole || image.writing() > into.writing())
            {
                into.bytes.copy_from_slice(&image.bytes);
                return Ok(into.number() == Some(place.number));
            }
            if is_whole {
                return Ok(into.number() == Some(place.number));
            }
        }
        Ok(false)
    }

    /// What a row holds of a series, by its place in the catalogue.
    #[must_use]
    pub fn cell(&self, row: &RowBuffer, series: usize) -> Option<Cell> {
        self.layout.row.cell(row, series)
    }

    /// What a row holds of a series, as numbers to be written or drawn.
    #[must_use]
    pub fn reading(&self, level: usize, row: &RowBuffer, series: usize) -> Option<Reading> {
        let one = self.layout.catalogue.series().get(series)?;
        let span_ns = self.layout.ladder.span_ns(level);
        let steps = row.steps();
        let mut reading = Reading {
            series,
            level,
            start_ns: row.number()?.saturating_mul(span_ns),
            span_ns,
            steps,
            ..Reading::default()
        };
        match self.cell(row, series)? {
            Cell::Scalar { sum, min, max } => {
                // A counter is a rate, a gauge is a level.
                let step_seconds = self.layout.ladder.step_ns() as f64 / 1e9;
                let per = if one.kind == Kind::Gauge {
                    1.0
                } else {
                    step_seconds
                };
                reading.count = u64::from(steps);
                reading.sum = u128::from(sum);
                reading.avg = (steps > 0).then(|| sum as f64 / f64::from(steps) / per);
                reading.min = (steps > 0).then(|| min as f64 / per);
                reading.max = (steps > 0).then(|| max as f64 / per);
            }
            Cell::Distribution(cell) => {
                let has = cell.count > 0;
                reading.count = cell.count;
                reading.sum = cell.sum;
                reading.avg = cell.mean();
                reading.min = has.then_some(cell.min as f64);
                reading.max = has.then_some(cell.max as f64);
                reading.std = cell.standard_deviation();
                reading.p50 = cell.quantile(0.5);
                reading.p95 = cell.quantile(0.95);
                reading.p99 = cell.quantile(0.99);
            }
        }
        Some(reading)
    }

    /// Calls `each` with every reading of these series (places in the catalogue), level by level
    /// (all where `levels` is empty), oldest row first, whose row has time in `from_ns..to_ns`.
    /// Returns how many rows were damaged or overwritten meanwhile.
    ///
    /// # Errors
    /// Where the file cannot be read, or `each` says so.
    pub fn readings<E: From<ReadFault>>(
        &mut self,
        series: &[usize],
        levels: &[usize],
        (from_ns, to_ns): (u64, u64),
        mut each: impl FnMut(&Reading) -> Result<(), E>,
    ) -> Result<u64, E> {
        let mut row = self.buffer();
        let mut missed = 0;
        for level in 0..self.layout.ladder.levels().len() {
            if !levels.is_empty() && !levels.contains(&level) {
                continue;
            }
            let span_ns = self.layout.ladder.span_ns(level);
            for place in self.rows(level)? {
                let start = place.number.saturating_mul(span_ns);
                if start.saturating_add(span_ns) <= from_ns || start >= to_ns {
                    continue;
                }
                if !self.row(level, place, &mut row)? {
                    missed += 1;
                    continue;
                }
                for one in series {
                    if let Some(reading) = self.reading(level, &row, *one) {
                        each(&reading)?;
                    }
                }
            }
        }
        Ok(missed)
    }
}

/// One series over the time of one row.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Reading {
    /// Its place in the catalogue of the file.
    pub series: usize,
    /// Its level, from the finest.
    pub level: usize,
    /// Start of the row, nanoseconds since the epoch.
    pub start_ns: u64,
    /// Length of the row, nanoseconds.
    pub span_ns: u64,
    /// Steps measured in the row; the others were not.
    pub steps: u32,
    /// Values of a distribution; of counters and gauges the steps.
    pub count: u64,
    /// Sum of the values; of a counter what was counted in the row.
    pub sum: u128,
    /// Mean of the values; of a counter its rate, per second of the steps measured; of a gauge the
    /// mean of the steps. `None`, as everything below, where there is no value.
    pub avg: Option<f64>,
    /// Smallest value; of counters and gauges that of the steps.
    pub min: Option<f64>,
    /// Largest value; of counters and gauges that of the steps.
    pub max: Option<f64>,
    /// Standard deviation of the values.
    pub std: Option<f64>,
    /// Median of all values in the row.
    pub p50: Option<f64>,
    /// 95th percentile of all values in the row.
    pub p95: Option<f64>,
    /// 99th percentile of all values in the row.
    pub p99: Option<f64>,
}
