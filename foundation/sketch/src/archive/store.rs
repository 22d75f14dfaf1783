//! Writing: steps go in, rows of all levels are kept up.

use thiserror::Error;

use super::header::{Layout, Refused};
use super::journal::{self, Image};
use super::ladder::Ladder;
use super::row::{self, RowBuffer};
use crate::cells::{Catalogue, CellSet};

/// The memory of an archive: a mapped file, or bytes in a test.
pub trait Memory {
    /// All of it.
    fn bytes(&self) -> &[u8];

    /// Writes `data` at `at`. Places outside are not written.
    fn write(&mut self, at: usize, data: &[u8]);

    /// What was written before comes before what is written after, for whoever reads the memory
    /// when the process is gone.
    fn barrier(&mut self);
}

impl Memory for Vec<u8> {
    fn bytes(&self) -> &[u8] {
        self
    }

    fn write(&mut self, at: usize, data: &[u8]) {
        if let Some(part) = self.get_mut(at..at + data.len()) {
            part.copy_from_slice(data);
        }
    }

    fn barrier(&mut self) {}
}

/// What was found when an archive was opened for writing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Opened {
    /// The latest step there is.
    pub newest: Option<u64>,
    /// Whether the writing of the last step was completed now.
    pub completed: bool,
    /// Torn rows that were made again from the level below.
    pub rebuilt: u32,
    /// Torn rows that were given up.
    pub lost: u32,
}

/// What became of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Put {
    /// It was new.
    New,
    /// It was added to what was there of the same step.
    Added,
}

/// Why a step was not taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum PutError {
    /// The ring has gone on: its place holds a later step.
    #[error("the step is older than what the archive still holds at this resolution")]
    TooOld,
    /// It begins after the year 2554.
    #[error("the time of the step is beyond what an archive can hold")]
    BeyondTime,
    /// Its cells are of another catalogue.
    #[error("the step has other series than the archive")]
    OtherSeries,
}

/// An archive open for writing.
#[derive(Debug)]
pub struct Archive<M> {
    memory: M,
    layout: Layout,
    /// Number of the last writing.
    writing: u64,
    /// Room for the rows of a step: level, and as they will be.
    images: Vec<Image>,
}

impl<M: Memory> Archive<M> {
    /// Bytes of a file for these steps and series.
    #[must_use]
    pub fn file_bytes(ladder: &Ladder, catalogue: &Catalogue) -> u64 {
        Layout::new(ladder.clone(), catalogue.clone()).file_bytes()
    }

    /// The bytes with which such a file begins; the others are zeros. For the creator of the file.
    #[must_use]
    pub fn header(ladder: &Ladder, catalogue: &Catalogue) -> Vec<u8> {
        Layout::new(ladder.clone(), catalogue.clone()).header()
    }

    /// Makes a new archive in memory of [`Archive::file_bytes`] zeros.
    ///
    /// # Errors
    /// [`Refused::Size`] where the memory has another size.
    pub fn create(mut memory: M, ladder: Ladder, catalogue: Catalogue) -> Result<Self, Refused> {
        let layout = Layout::new(ladder, catalogue);
        let (expected, found) = (layout.file_bytes(), memory.bytes().len() as u64);
        if expected != found {
            return Err(Refused::Size { expected, found });
        }
        memory.write(0, &layout.header());
        memory.barrier();
        Ok(Self::with(memory, layout, 0))
    }

    /// Opens an archive to go on with steps of `step_ns` and cells of `catalogue`. Completes what a
    /// killed writer began, and looks at every row.
    ///
    /// # Errors
    /// Where it is not an archive, damaged, or one of other steps or series.
    pub fn open(memory: M, step_ns: u64, catalogue: &Catalogue) -> Result<(Self, Opened), Refused> {
        let bytes = memory.bytes();
        let layout = Layout::read(bytes, bytes.len() as u64)?;
        layout.accepts(step_ns, catalogue)?;
        let mut archive = Self::with(memory, layout, 0);
        let mut opened = Opened {
            completed: archive.replay(),
            ..Opened::default()
        };
        archive.look_through(&mut opened);
        Ok((archive, opened))
    }

    fn with(memory: M, layout: Layout, writing: u64) -> Self {
        Self {
            memory,
            layout,
            writing,
            images: Vec::new(),
        }
    }

    /// The memory.
    pub const fn memory(&self) -> &M {
        &self.memory
    }

    /// The memory, to be written back or given up.
    pub const fn memory_mut(&mut self) -> &mut M {
        &mut self.memory
    }

    /// Gives the memory back.
    pub fn into_memory(self) -> M {
        self.memory
    }

    /// Its levels.
    pub const fn ladder(&self) -> &Ladder {
        &self.layout.ladder
    }

    /// Whether a step is there.
    #[must_use]
    pub fn holds(&self, number: u64) -> bool {
        let slot = self.layout.slot_of(0, number);
        row::number(self.raw(0, slot)) == Some(number)
    }

    /// Until when a step was measured, nanoseconds since 1970 and a little less rather than more;
    /// `None` where it is not there, or not recorded.
    #[must_use]
    pub fn measured_until(&self, number: u64) -> Option<u64> {
        if !self.holds(number) {
            return None;
        }
        let part = self.row(0, self.layout.slot_of(0, number)).measured();
        let step_ns = self.layout.ladder.step_ns();
        let into = (u128::from(part) * u128::from(step_ns)) >> u32::BITS;
        let start = number.checked_mul(step_ns)?;
        (part > 0).then(|| start.saturating_add(u64::try_from(into).unwrap_or(u64::MAX)))
    }

    /// The time until which a step was measured as a part of its length.
    fn part_of(&self, number: u64, until_ns: u64) -> u32 {
        let step_ns = self.layout.ladder.step_ns();
        let into = until_ns.saturating_sub(number.saturating_mul(step_ns));
        let part = (u128::from(into) << u32::BITS) / u128::from(step_ns.max(1));
        u32::try_from(part).unwrap_or(u32::MAX)
    }

    /// As [`Archive::put_until`], where it does not matter until when the step was measured.
    ///
    /// # Errors
    /// As [`Archive::put_until`].
    pub fn put(&mut self, number: u64, cells: &CellSet) -> Result<Put, PutError> {
        self.put_until(number, 0, cells)
    }

    /// Puts a step that was measured until a time (nanoseconds since 1970): into the row of its own,
    /// and into the rows of all upper levels that it is part of. What is there of the same step already
    /// is added to.
    ///
    /// Cost: about 200 kB checked and written twice, whatever the step holds.
    ///
    /// # Errors
    /// Where the step cannot be kept; the archive is as it was.
    pub fn put_until(
        &mut self,
        number: u64,
        until_ns: u64,
        cells: &CellSet,
    ) -> Result<Put, PutError> {
        let step_ns = self.layout.ladder.step_ns();
        if number
            .checked_add(1)
            .and_then(|end| end.checked_mul(step_ns))
            .is_none()
        {
            return Err(PutError::BeyondTime);
        }
        if cells.catalogue() != &self.layout.catalogue {
            return Err(PutError::OtherSeries);
        }
        let slot = self.layout.slot_of(0, number);
        let known = match row::number(self.raw(0, slot)) {
            Some(held) if held > number => return Err(PutError::TooOld),
            Some(held) if held == number => Some(self.row(0, slot)),
            _ => None,
        };
        let mut images = std::mem::take(&mut self.images);
        images.clear();
        let levels = self.layout.ladder.levels().len();
        for level in 0..levels {
            if let Some(mut image) = self.renewed(level, number, cells, known.as_ref(), &images) {
                if level == 0 {
                    image.row.measure_to(self.part_of(number, until_ns));
                }
                images.push(image);
            }
        }
        self.write(&mut images);
        self.images = images;
        Ok(if known.is_some() {
            Put::Added
        } else {
            Put::New
        })
    }

    /// The row of a level with the step in it; `None` where its place holds a later row.
    fn renewed(
        &self,
        level: usize,
        number: u64,
        cells: &CellSet,
        known: Option<&RowBuffer>,
        below: &[Image],
    ) -> Option<Image> {
        let steps = self.layout.ladder.levels().get(level)?.steps;
        let number = number / u64::from(steps.max(1));
        let slot = self.layout.slot_of(level, number);
        let held = row::number(self.raw(level, slot));
        let mut row = if held == Some(number) {
            self.row(level, slot)
        } else {
            if held.is_some_and(|held| held > number) {
                return None;
            }
            let mut row = RowBuffer::new(&self.layout.row);
            row.begin(number);
            row
        };
        // A row that lost its part of the step gets only what is new: it counts the step once.
        let known = known.filter(|_| row.steps() > 0);
        self.layout.row.add_step(&mut row, cells, known);
        if known.is_some() {
            self.renew_minima(level, &mut row, below);
        }
        Some(Image { level, slot, row })
    }

    /// After a step was added to: the smallest values of counters, from the level below where it
    /// still has all parts of the row.
    fn renew_minima(&self, level: usize, row: &mut RowBuffer, images: &[Image]) {
        let Some(below) = level.checked_sub(1) else {
            // The row of one step: its sum is its smallest and largest.
            self.layout.row.settle(row);
            return;
        };
        let Some(mut parts) = self.parts(level, row.number().unwrap_or(0)) else {
            return;
        };
        for image in images.iter().filter(|image| image.level == below) {
            let number = image.row.number();
            parts.retain(|part| part.number() != number);
            parts.push(image.row.clone());
        }
        if parts.iter().map(RowBuffer::steps).sum::<u32>() == row.steps() {
            self.layout.row.take_minima(row, parts.iter());
        }
    }

    /// The rows of the level below that a row is made of; `None` where some may have been
    /// overwritten by later ones.
    fn parts(&self, level: usize, number: u64) -> Option<Vec<RowBuffer>> {
        let levels = self.layout.ladder.levels();
        let below = level.checked_sub(1)?;
        let count = levels.get(level)?.steps / levels.get(below)?.steps.max(1);
        let first = number.checked_mul(u64::from(count))?;
        let mut parts = Vec::new();
        for number in first..first.checked_add(u64::from(count))? {
            let slot = self.layout.slot_of(below, number);
            match row::number(self.raw(below, slot)) {
                Some(held) if held > number => return None,
                Some(held) if held == number => parts.push(self.row(below, slot)),
                _ => {}
            }
        }
        Some(parts)
    }

    /// Journal first, then the rows.
    fn write(&mut self, images: &mut [Image]) {
        self.writing = self.writing.saturating_add(1);
        for (place, image) in images.iter_mut().enumerate() {
            image.row.seal(self.writing);
            self.memory
                .write(self.layout.image(place), &image.row.bytes);
        }
        self.memory.barrier();
        let head = journal::head(self.writing, images);
        self.memory.write(self.layout.journal(), &head);
        self.memory.barrier();
        self.write_rows(images);
    }

    fn write_rows(&mut self, images: &[Image]) {
        for image in images {
            let at = self.layout.slot(image.level, image.slot);
            self.memory.write(at, &image.row.bytes);
        }
        self.memory.barrier();
    }

    /// Writes out a whole journal again. Whether that changed anything.
    fn replay(&mut self) -> bool {
        let memory = &self.memory;
        let read = |at: usize, into: &mut [u8]| {
            let from = memory.bytes().get(at..at + into.len());
            from.map(|from| into.copy_from_slice(from)).is_some()
        };
        let Some((writing, images)) = journal::read(&self.layout, read) else {
            return false;
        };
        self.writing = writing;
        let is_new = |image: &&Image| self.raw(image.level, image.slot) != image.row.bytes;
        let is_changed = images.iter().any(|image| is_new(&image));
        if is_changed {
            self.write_rows(&images);
        }
        is_changed
    }

    /// Looks at every row, finest level first; a torn one is made again or given up.
    fn look_through(&mut self, opened: &mut Opened) {
        let levels = self.layout.ladder.levels().to_vec();
        for (level, one) in levels.iter().enumerate() {
            for slot in 0..one.rows {
                let raw = self.raw(level, slot);
                let number = row::number(raw);
                let is_in_place = number.is_none_or(|n| self.layout.slot_of(level, n) == slot);
                if is_in_place && row::is_whole(raw) {
                    self.writing = self.writing.max(super::bytes::u64_at(raw, 8));
                    if level == 0 {
                        opened.newest = opened.newest.max(number);
                    }
                    continue;
                }
                let made = self.remade(level, slot);
                *(if made.is_some() {
                    &mut opened.rebuilt
                } else {
                    &mut opened.lost
                }) += 1;
                let mut row = made.unwrap_or_else(|| RowBuffer::new(&self.layout.row));
                if row.number().is_some() {
                    row.seal(self.writing);
                }
                let at = self.layout.slot(level, slot);
                self.memory.write(at, &row.bytes);
            }
        }
    }

    /// The latest row of a slot, from the level below.
    fn remade(&self, level: usize, slot: u32) -> Option<RowBuffer> {
        let levels = self.layout.ladder.levels();
        let below = level.checked_sub(1)?;
        let count = u64::from(levels.get(level)?.steps / levels.get(below)?.steps.max(1));
        let number = (0..levels.get(below)?.rows)
            .filter_map(|part| row::number(self.raw(below, part)))
            .map(|part| part / count.max(1))
            .filter(|number| self.layout.slot_of(level, *number) == slot)
            .max()?;
        let mut row = RowBuffer::new(&self.layout.row);
        row.begin(number);
        for part in self.parts(level, number)? {
            self.layout.row.add_row(&mut row, &part);
        }
        Some(row)
    }

    fn raw(&self, level: usize, slot: u32) -> &[u8] {
        let at = self.layout.slot(level, slot);
        let row = self.memory.bytes().get(at..at + self.layout.row.bytes);
        row.unwrap_or_default()
    }

    fn row(&self, level: usize, slot: u32) -> RowBuffer {
        let mut row = RowBuffer::new(&self.layout.row);
        let raw = self.raw(level, slot);
        if raw.len() == row.bytes.len() {
            row.bytes.copy_from_slice(raw);
        }
        row
    }
}
