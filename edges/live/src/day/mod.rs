//! The last day of intervals in a file of constant size, so that a restart does not empty the page.
//!
//! ```text
//! header    magic, version, kind, ladder, checksum; never changes
//! journal   one slot per level: its row as it will be
//! rings     per level its rows, row N in slot N modulo the length of the ring
//! ```
//! Rows of 5 s for an hour, of 30 s for six hours and of 2 min for a day: a row is the sum of the intervals that
//! ended in it, its quantiles come from a small histogram and are at most 12.5 % too large. What a row holds are the
//! figures as [messages](crate::sketch) have them, so they are listed nowhere else.
//!
//! A row is written whenever a step of 5 s is over: first into the journal, then into its place. A killed process
//! loses the step that was open; a row that a crash of the machine left torn is recognised by its checksum, taken
//! from the journal where that has it, else left out and counted. A later run goes on in the row where the
//! earlier one ended.
//!
//! Size: 36 MB. Memory: the open row of each level. Cost: three rows of a few KiB into mapped memory every 5 s.

mod file;
mod row;

#[cfg(test)]
mod tests;

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use linkweir_sketch::archive::{Ladder, Level};
use linkweir_sys::mapped_file::MapError;
use serde::Serialize;
use thiserror::Error;

use self::file::{RingFile, RingReader};
use self::row::{OpenRow, tick};
use crate::api::{Dropped, Tick};
use crate::interval::Open;
use crate::kind::Kind;

/// Length of a step, nanoseconds.
const STEP: u64 = 5_000_000_000;
/// Steps in a row and rows of each level; a few more rows than the time they are for, since the last one is not full.
const LEVELS: [(u32, u32); 3] = [(1, 732), (6, 732), (24, 732)];

fn ladder() -> Option<Ladder> {
    let levels = LEVELS.map(|(steps, rows)| Level { steps, rows });
    Ladder::new(STEP, levels.to_vec())
}

/// Why a file cannot be used.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum DayError {
    /// Another kind of file.
    #[error("not a history of a console")]
    NotAHistory,
    /// A format of another version of the program.
    #[error(
        "the history has format version {found}, and this program writes {}; name another file",
        file::VERSION
    )]
    Version {
        /// The version it has.
        found: u32,
    },
    /// One of other statistics.
    #[error("the history is one of `{found}`, and not of `{wanted}`; name another file")]
    Subject {
        /// Whose it is.
        found: String,
        /// Whose it would have to be.
        wanted: &'static str,
    },
    /// It was cut, or its header is damaged.
    #[error("the history is damaged: {0}")]
    Damaged(&'static str),
    /// It cannot be made, locked or mapped.
    #[error(transparent)]
    Map(#[from] MapError),
    /// What the system said.
    #[error(transparent)]
    Io(#[from] std::io::Error),
}

/// What a history shows of a span that ends with its latest interval.
#[derive(Debug, Clone, Default, Serialize)]
#[serde(bound = "F: Serialize")]
pub struct Past<F> {
    /// Length of a row, seconds.
    pub step_s: f64,
    /// The rows that there are, oldest first; the last one grows until it is over.
    pub ticks: Vec<Tick<F>>,
    /// Rows that were found torn or could not be read.
    pub torn: u64,
    /// Rows of this run that were too large for the file, of all levels.
    pub too_large: u64,
}

/// What the writing side tells the reading one.
#[derive(Debug, Default)]
struct State {
    /// End of the latest interval, nanoseconds since the epoch.
    newest: AtomicU64,
    /// Rows that were too large for their slot.
    too_large: AtomicU64,
}

/// The writing side.
#[derive(Debug)]
pub(crate) struct Day<K: Kind> {
    file: RingFile,
    ladder: Ladder,
    /// In the order of the levels.
    rows: Vec<OpenRow<K>>,
    /// Whether an interval is in the open rows that is not in the file.
    is_dirty: bool,
    is_live: bool,
    state: Arc<State>,
    fault: Option<&'static str>,
}

/// The reading side: it waits for nobody, and nobody for it.
#[derive(Debug)]
pub(crate) struct DayReader {
    file: RingReader,
    ladder: Ladder,
    state: Arc<State>,
}

/// Opens the file at `path`, makes it where there is none.
///
/// # Errors
/// It is not such a file, or one of other statistics, another process writes it, or the system refuses.
pub(crate) fn open<K: Kind>(
    path: &Path,
    is_live: bool,
) -> Result<(Day<K>, Arc<DayReader>), DayError> {
    let ladder = ladder().ok_or(DayError::Damaged("its levels"))?;
    let file = RingFile::open(path, &ladder, K::SUBJECT)?;
    let state = Arc::new(State::default());
    state
        .newest
        .store(file.newest().unwrap_or(0), Ordering::Relaxed);
    let reader = DayReader {
        file: RingReader::open(path, &ladder)?,
        ladder: ladder.clone(),
        state: Arc::clone(&state),
    };
    let day = Day {
        rows: LEVELS.iter().map(|_| OpenRow::default()).collect(),
        file,
        ladder,
        is_dirty: false,
        is_live,
        state,
        fault: None,
    };
    Ok((day, Arc::new(reader)))
}

impl<K: Kind> Day<K> {
    /// Adds a closed interval that was `length_ns` long.
    pub(crate) fn push(&mut self, closed: &Open<K>, length_ns: u64, total: &Dropped) {
        if self.fault.is_some() || closed.end == 0 {
            return;
        }
        let step = self.number(0, closed.end);
        if self
            .rows
            .first()
            .is_some_and(|row| row.number != Some(step))
        {
            self.flush();
        }
        for level in 0..self.rows.len() {
            let number = self.number(level, closed.end);
            let Some(row) = self.rows.get_mut(level) else {
                return;
            };
            if row.number != Some(number) {
                *row = self
                    .file
                    .held(level, number)
                    .map_or_else(|| OpenRow::new(number), |held| OpenRow::read(number, held));
            }
            // An earlier run has measured this time already: the same capture, read again. Of an interface nothing
            // comes twice.
            if !self.is_live && closed.start < row.measured_to {
                continue;
            }
            row.add(closed, length_ns, total);
            self.is_dirty = true;
        }
        self.state.newest.store(closed.end, Ordering::Relaxed);
    }

    /// Writes the open rows.
    pub(crate) fn flush(&mut self) {
        if !std::mem::take(&mut self.is_dirty) || self.fault.is_some() {
            return;
        }
        if !self.file.is_whole() {
            self.fault = Some("the file was cut while it was in use");
            return;
        }
        for (level, row) in self.rows.iter().enumerate() {
            let Some(number) = row.number else { continue };
            // Of an interface the clock is right; a capture may be older than what is there.
            if !self.is_live && self.file.is_later(level, number) {
                continue;
            }
            let bytes = row.bytes(file::MAX_ROW);
            if !bytes.is_some_and(|bytes| self.file.put(level, number, &bytes)) {
                // What strangers send decides how long it is: only this row is lost.
                self.state.too_large.fetch_add(1, Ordering::Relaxed);
            }
        }
    }

    /// Why it is not written any more.
    pub(crate) const fn fault(&self) -> Option<&'static str> {
        self.fault
    }

    /// The row that an interval belongs to.
    fn number(&self, level: usize, end_ns: u64) -> u64 {
        end_ns.saturating_sub(1) / self.ladder.span_ns(level).max(1)
    }
}

impl DayReader {
    /// The rows of the last `span_s` seconds, of the finest level that goes so far back.
    pub(crate) fn past<K: Kind>(&self, span_s: u64) -> Past<K::Figures> {
        let span = span_s.saturating_mul(1_000_000_000);
        let levels = self.ladder.levels();
        let reaches = |level: usize, one: &Level| {
            self.ladder
                .span_ns(level)
                .saturating_mul(u64::from(one.rows))
                >= span
        };
        let level = levels.iter().enumerate();
        let level = level
            .clone()
            .find_map(|(at, one)| reaches(at, one).then_some(at))
            .unwrap_or_else(|| levels.len().saturating_sub(1));
        let row_ns = self.ladder.span_ns(level).max(1);
        let newest = self.state.newest.load(Ordering::Relaxed);
        let last = newest.saturating_sub(1) / row_ns;
        let (found, mut torn) = self.file.rows(level);
        let mut ticks = Vec::new();
        for (number, bytes) in found {
            if number > last || number.saturating_add(span / row_ns) <= last {
                continue;
            }
            match tick::<K>(number, &bytes) {
                Some(tick) => ticks.push(tick),
                None => torn += 1,
            }
        }
        ticks.sort_unstable_by_key(|tick| tick.id);
        Past {
            step_s: crate::text::seconds(row_ns),
            ticks,
            torn,
            too_large: self.state.too_large.load(Ordering::Relaxed),
        }
    }
}
