//! Rows of any content in rings of slots of one size.

use std::fs::File;
use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::sync::atomic::{Ordering, fence};

use linkweir_sketch::archive::{Ladder, checksum};
use linkweir_sys::mapped_file::MappedFile;

use super::DayError;
use super::row::ends;

const MAGIC: &[u8; 8] = b"lwconday";
/// Raised with every change of the format.
pub(super) const VERSION: u32 = 1;
/// The header is a whole page, so that what follows is aligned.
const PAGE: usize = 4096;
/// Bytes of a slot.
const SLOT: usize = 16 * 1024;
/// Number of the row, length, nothing, checksum.
const HEAD: usize = 24;
/// Most bytes of a row.
pub(super) const MAX_ROW: usize = SLOT - HEAD;
/// Bytes of the word for the statistics.
const SUBJECT: usize = 16;
/// How often a row is read that was being written just then.
const TRIES: u32 = 5;

/// The header; all of it is known beforehand.
fn header(ladder: &Ladder, subject: &str) -> Vec<u8> {
    let mut out = MAGIC.to_vec();
    out.extend(VERSION.to_le_bytes());
    out.extend(u32::try_from(SLOT).unwrap_or(0).to_le_bytes());
    let mut word = subject.as_bytes().to_vec();
    word.resize(SUBJECT, 0);
    out.extend(word);
    out.extend(ladder.step_ns().to_le_bytes());
    for level in ladder.levels() {
        out.extend(level.steps.to_le_bytes());
        out.extend(level.rows.to_le_bytes());
    }
    let sum = checksum(0, &out);
    out.extend(sum.to_le_bytes());
    out
}

fn number_at<const N: usize>(bytes: &[u8], at: usize) -> Option<[u8; N]> {
    bytes.get(at..)?.first_chunk::<N>().copied()
}

/// Checks a header against the one that this program writes.
fn check(found: &[u8], ladder: &Ladder, subject: &'static str) -> Result<(), DayError> {
    if !found.starts_with(MAGIC) {
        return Err(DayError::NotAHistory);
    }
    let version = number_at(found, 8).map_or(0, u32::from_le_bytes);
    if version != VERSION {
        return Err(DayError::Version { found: version });
    }
    let own = header(ladder, subject);
    if found.starts_with(&own) {
        return Ok(());
    }
    let word = found.get(16..16 + SUBJECT).unwrap_or_default();
    let word = String::from_utf8_lossy(word);
    let word = word.trim_end_matches('\0');
    if found.starts_with(&header(ladder, word)) {
        return Err(DayError::Subject {
            found: crate::text::clean(word.as_bytes()),
            wanted: subject,
        });
    }
    Err(DayError::Damaged("its header is not whole"))
}

/// Where the slot of a row stands.
fn place(ladder: &Ladder, level: usize, number: u64) -> usize {
    let rows = |level: usize| ladder.levels().get(level).map_or(1, |one| one.rows.max(1));
    let before: usize = (0..level).map(|below| rows(below) as usize).sum();
    let slot = usize::try_from(number % u64::from(rows(level))).unwrap_or(0);
    PAGE + (ladder.levels().len() + before + slot) * SLOT
}

/// Where the journal of a level stands.
const fn journal(level: usize) -> usize {
    PAGE + level * SLOT
}

fn file_bytes(ladder: &Ladder) -> u64 {
    let last = ladder.levels().len().saturating_sub(1);
    let rows = ladder.levels().get(last).map_or(1, |one| one.rows.max(1));
    (place(ladder, last, u64::from(rows) - 1) + SLOT) as u64
}

/// What is in a slot.
enum Held<'a> {
    Nothing,
    Row(u64, &'a [u8]),
    /// It was half written.
    Torn,
}

fn held(slot: &[u8]) -> Held<'_> {
    let number = number_at(slot, 0).map_or(0, u64::from_le_bytes);
    let len = number_at(slot, 8).map_or(0, u32::from_le_bytes) as usize;
    let sum = number_at(slot, 16).map_or(0, u64::from_le_bytes);
    if (number, len, sum) == (0, 0, 0) {
        return Held::Nothing;
    }
    match slot.get(HEAD..HEAD.saturating_add(len)) {
        Some(row) if checksum(number, row) == sum => Held::Row(number, row),
        _ => Held::Torn,
    }
}

/// The file, for its one writer.
#[derive(Debug)]
pub(super) struct RingFile {
    file: MappedFile,
    ladder: Ladder,
}

impl RingFile {
    pub(super) fn open(
        path: &Path,
        ladder: &Ladder,
        subject: &'static str,
    ) -> Result<Self, DayError> {
        let bytes = file_bytes(ladder);
        let file = if path.try_exists()? {
            // Opening a device or a pipe to write to it might do something.
            if !path.metadata()?.is_file() {
                return Err(DayError::NotAHistory);
            }
            let file = MappedFile::open(path)?;
            check(file.bytes(), ladder, subject)?;
            if file.bytes().len() as u64 != bytes {
                return Err(DayError::Damaged("it was cut, or has grown"));
            }
            file
        } else {
            let header = header(ladder, subject);
            MappedFile::create(path, bytes, |all| {
                if let Some(start) = all.get_mut(..header.len()) {
                    start.copy_from_slice(&header);
                }
            })?
        };
        let mut file = Self {
            file,
            ladder: ladder.clone(),
        };
        file.replay();
        Ok(file)
    }

    /// Completes what a killed writer began.
    fn replay(&mut self) {
        for level in 0..self.ladder.levels().len() {
            if let Held::Row(number, row) = held(self.slot(journal(level))) {
                let at = place(&self.ladder, level, number);
                let is_there = matches!(held(self.slot(at)), Held::Row(there, known) if (there, known) == (number, row));
                if !is_there {
                    let row = row.to_vec();
                    self.write(at, number, &row);
                }
            }
        }
    }

    #[cfg(test)]
    pub(super) fn place_of(ladder: &Ladder, level: usize, number: u64) -> usize {
        place(ladder, level, number)
    }

    fn slot(&self, at: usize) -> &[u8] {
        self.file.bytes().get(at..at + SLOT).unwrap_or_default()
    }

    /// The row, where it is there and whole.
    pub(super) fn held(&self, level: usize, number: u64) -> Option<&[u8]> {
        match held(self.slot(place(&self.ladder, level, number))) {
            Held::Row(there, row) if there == number => Some(row),
            _ => None,
        }
    }

    /// Whether the place of a row has one of a later time.
    pub(super) fn is_later(&self, level: usize, number: u64) -> bool {
        let there = held(self.slot(place(&self.ladder, level, number)));
        matches!(there, Held::Row(there, _) if there > number)
    }

    /// The end of the latest interval in the finest rows.
    pub(super) fn newest(&self) -> Option<u64> {
        let rows = self.ladder.levels().first()?.rows;
        let numbers = (0..u64::from(rows)).filter_map(|slot| {
            match held(self.slot(place(&self.ladder, 0, slot))) {
                Held::Row(number, row) => Some((number, row)),
                _ => None,
            }
        });
        let (_, row) = numbers.max_by_key(|(number, _)| *number)?;
        ends(row)
    }

    /// Whether the file has all of its bytes.
    pub(super) fn is_whole(&self) -> bool {
        self.file.is_whole()
    }

    /// Puts a row into its place; false where it is too long.
    pub(super) fn put(&mut self, level: usize, number: u64, row: &[u8]) -> bool {
        if row.len() > MAX_ROW {
            return false;
        }
        self.write(journal(level), number, row);
        // A killed process leaves what its processor has stored, in program order: only the compiler must not
        // change it.
        fence(Ordering::SeqCst);
        self.write(place(&self.ladder, level, number), number, row);
        fence(Ordering::SeqCst);
        true
    }

    fn write(&mut self, at: usize, number: u64, row: &[u8]) {
        let len = u32::try_from(row.len()).unwrap_or(0);
        let mut slot = Vec::with_capacity(HEAD + row.len());
        slot.extend(number.to_le_bytes());
        slot.extend(u64::from(len).to_le_bytes());
        slot.extend(checksum(number, row).to_le_bytes());
        slot.extend(row);
        let rest = self.file.bytes_mut().get_mut(at..).unwrap_or_default();
        if let Some(part) = rest.get_mut(..slot.len()) {
            part.copy_from_slice(&slot);
        }
    }
}

/// The file for whoever reads it meanwhile.
#[derive(Debug)]
pub(super) struct RingReader {
    file: File,
    ladder: Ladder,
}

impl RingReader {
    pub(super) fn open(path: &Path, ladder: &Ladder) -> Result<Self, DayError> {
        Ok(Self {
            file: File::open(path)?,
            ladder: ladder.clone(),
        })
    }

    /// The whole rows of a level with their numbers, and how many are not whole.
    pub(super) fn rows(&self, level: usize) -> (Vec<(u64, Vec<u8>)>, u64) {
        let count = self.ladder.levels().get(level).map_or(0, |one| one.rows);
        let (mut rows, mut torn) = (Vec::new(), 0);
        let mut slot = vec![0; SLOT];
        for at in 0..u64::from(count) {
            let at = place(&self.ladder, level, at) as u64;
            let mut is_torn = true;
            for _ in 0..TRIES {
                if self.file.read_exact_at(&mut slot, at).is_err() {
                    break;
                }
                match held(&slot) {
                    Held::Torn => continue,
                    Held::Nothing => {}
                    Held::Row(number, row) => rows.push((number, row.to_vec())),
                }
                is_torn = false;
                break;
            }
            torn += u64::from(is_torn);
        }
        (rows, torn)
    }
}
