//! The header: what the file holds, so that a later version can still read it.

use thiserror::Error;

use super::bytes::{checksum, put_u32, put_u64, u32_at, u64_at};
use super::ladder::{Ladder, Level};
use super::row::RowLayout;
use crate::cells::{Buckets, Catalogue, Kind, Series};

/// Head of the journal: writing, count, places, checksum.
pub(super) const JOURNAL_HEAD_BYTES: usize = 128;
const MAGIC: [u8; 8] = *b"lwarchiv";
/// Raised with every change of the format.
const VERSION: u32 = 1;
/// Headers are whole pages, so that what follows is aligned.
const PAGE: usize = 4096;
/// The longest header.
const MAX_BYTES: usize = 1 << 20;
/// Magic, version, length, step, levels, series.
const FIXED: usize = 32;
/// The most bytes of a file.
const MAX_FILE: u64 = 1 << 40;

/// Why a file is no archive, or not this one.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum Refused {
    /// Another kind of file.
    #[error("not an archive")]
    NotAnArchive,
    /// A format of another version of the program.
    #[error("the archive has format version {found}; this program knows {VERSION}")]
    Version {
        /// The version it has.
        found: u32,
    },
    /// The header is damaged.
    #[error("the header of the archive is damaged: {0}")]
    Header(&'static str),
    /// The file has not the size that its header says.
    #[error(
        "the archive should have {expected} bytes and has {found}: it was cut or is no longer whole"
    )]
    Size {
        /// Bytes by the header.
        expected: u64,
        /// Bytes of the file.
        found: u64,
    },
    /// It was made with other steps.
    #[error("the archive has steps of {} s, and not of {} s: use --step {}s or another file", seconds(*.found), seconds(*.wanted), seconds(*.found))]
    Step {
        /// Nanoseconds of its steps.
        found: u64,
        /// Nanoseconds asked for.
        wanted: u64,
    },
    /// It was made by a version with other series.
    #[error(
        "the archive holds other series than this version measures ({0}); it can be read, but goes on only in a new file"
    )]
    Series(String),
    /// It could not be read.
    #[error("{0}")]
    Unreadable(String),
}

/// Seconds for a message.
fn seconds(ns: u64) -> f64 {
    ns as f64 / 1e9
}

/// What a file holds and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Layout {
    pub(super) ladder: Ladder,
    pub(super) catalogue: Catalogue,
    pub(super) row: RowLayout,
    header_bytes: usize,
}

impl Layout {
    pub(super) fn new(ladder: Ladder, catalogue: Catalogue) -> Self {
        let row = RowLayout::new(&catalogue);
        let header_bytes = header_length(&ladder, &catalogue);
        Self {
            ladder,
            catalogue,
            row,
            header_bytes,
        }
    }

    /// Where the journal begins.
    pub(super) const fn journal(&self) -> usize {
        self.header_bytes
    }

    /// Where the image of the journal for a level stands.
    pub(super) const fn image(&self, level: usize) -> usize {
        self.header_bytes + JOURNAL_HEAD_BYTES + level * self.row.bytes
    }

    /// Where a row stands.
    pub(super) fn slot(&self, level: usize, slot: u32) -> usize {
        let levels = self.ladder.levels();
        let before = levels
            .iter()
            .take(level)
            .map(|one| one.rows as usize)
            .sum::<usize>();
        self.image(levels.len()) + (before + slot as usize) * self.row.bytes
    }

    /// The slot of a row.
    pub(super) fn slot_of(&self, level: usize, number: u64) -> u32 {
        let rows = self
            .ladder
            .levels()
            .get(level)
            .map_or(1, |one| one.rows.max(1));
        u32::try_from(number % u64::from(rows)).unwrap_or(0)
    }

    /// Bytes of the whole file.
    pub(super) fn file_bytes(&self) -> u64 {
        let rows: u64 = self
            .ladder
            .levels()
            .iter()
            .map(|one| u64::from(one.rows))
            .sum();
        let before = self.image(self.ladder.levels().len()) as u64;
        before.saturating_add(rows.saturating_mul(self.row.bytes as u64))
    }

    /// The header as it stands in the file.
    pub(super) fn header(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(self.header_bytes);
        out.extend_from_slice(&MAGIC);
        out.resize(FIXED, 0);
        let levels = self.ladder.levels();
        put_u32(&mut out, 8, VERSION);
        put_u32(&mut out, 12, u32::try_from(self.header_bytes).unwrap_or(0));
        put_u64(&mut out, 16, self.ladder.step_ns());
        put_u32(&mut out, 24, u32::try_from(levels.len()).unwrap_or(0));
        let series = self.catalogue.series();
        put_u32(&mut out, 28, u32::try_from(series.len()).unwrap_or(0));
        for level in levels {
            out.extend_from_slice(&level.steps.to_le_bytes());
            out.extend_from_slice(&level.rows.to_le_bytes());
        }
        for one in series {
            let (kind, shape) = match one.kind {
                Kind::Counter => (0, [0; 3]),
                Kind::Gauge => (1, [0; 3]),
                Kind::Distribution(shape) => (2, [shape.low_bits, shape.high_bits, shape.sub_bits]),
            };
            out.push(kind);
            out.extend_from_slice(&shape);
            for text in [&one.name, &one.unit] {
                let text = short(text);
                out.push(u8::try_from(text.len()).unwrap_or(0));
                out.extend_from_slice(text);
            }
        }
        out.resize(self.header_bytes, 0);
        let end = self.header_bytes - 8;
        let sum = checksum(0, out.get(..end).unwrap_or_default());
        put_u64(&mut out, end, sum);
        out
    }

    /// How many bytes of a file are needed to read its header: its length, if the first bytes are
    /// those of an archive.
    pub(super) fn header_bytes_of(first: &[u8]) -> Result<usize, Refused> {
        if first.get(..8) != Some(&MAGIC) || first.len() < FIXED {
            return Err(Refused::NotAnArchive);
        }
        let found = u32_at(first, 8);
        if found != VERSION {
            return Err(Refused::Version { found });
        }
        let bytes = u32_at(first, 12) as usize;
        if !(PAGE..=MAX_BYTES).contains(&bytes) || !bytes.is_multiple_of(PAGE) {
            return Err(Refused::Header("its length"));
        }
        Ok(bytes)
    }

    /// Reads a header. `len` is that of the whole file.
    pub(super) fn read(bytes: &[u8], len: u64) -> Result<Self, Refused> {
        let header_bytes = Self::header_bytes_of(bytes)?;
        let header = bytes
            .get(..header_bytes)
            .ok_or(Refused::Header("it is cut"))?;
        let end = header_bytes - 8;
        if checksum(0, header.get(..end).unwrap_or_default()) != u64_at(header, end) {
            return Err(Refused::Header("its checksum"));
        }
        let mut rest = Words(header.get(FIXED..end).unwrap_or_default());
        let levels = u32_at(header, 24) as usize;
        let count = u32_at(header, 28) as usize;
        if levels > Ladder::MAX_LEVELS || count > Catalogue::MAX_SERIES {
            return Err(Refused::Header("its counts"));
        }
        let levels = (0..levels)
            .map(|_| rest.level())
            .collect::<Option<Vec<Level>>>();
        let ladder = levels.and_then(|levels| Ladder::new(u64_at(header, 16), levels));
        let ladder = ladder.ok_or(Refused::Header("its levels"))?;
        let series = (0..count)
            .map(|_| rest.series())
            .collect::<Option<Vec<Series>>>();
        let catalogue = series.and_then(Catalogue::new);
        let catalogue = catalogue.ok_or(Refused::Header("its series"))?;
        let layout = Self {
            row: RowLayout::new(&catalogue),
            ladder,
            catalogue,
            header_bytes,
        };
        let expected = layout.file_bytes();
        if expected != len || expected > MAX_FILE {
            return Err(Refused::Size {
                expected,
                found: len,
            });
        }
        Ok(layout)
    }

    /// Whether cells of `catalogue` in steps of `step_ns` can be put into it.
    pub(super) fn accepts(&self, step_ns: u64, catalogue: &Catalogue) -> Result<(), Refused> {
        if self.ladder.step_ns() != step_ns {
            return Err(Refused::Step {
                found: self.ladder.step_ns(),
                wanted: step_ns,
            });
        }
        let (mine, theirs) = (self.catalogue.series(), catalogue.series());
        if let Some((old, new)) = mine.iter().zip(theirs).find(|(old, new)| old != new) {
            let what = if old.name == new.name {
                "of another shape"
            } else {
                "instead"
            };
            let text = format!("`{}` there, `{}` {what} here", old.name, new.name);
            return Err(Refused::Series(text));
        }
        if mine.len() != theirs.len() {
            let text = format!("{} there, {} here", mine.len(), theirs.len());
            return Err(Refused::Series(text));
        }
        Ok(())
    }
}

/// A text as far as one byte can tell its length.
fn short(text: &str) -> &[u8] {
    text.as_bytes()
        .get(..text.len().min(255))
        .unwrap_or_default()
}

fn header_length(ladder: &Ladder, catalogue: &Catalogue) -> usize {
    let series = catalogue.series().iter();
    let texts: usize = series
        .map(|one| 6 + short(&one.name).len() + short(&one.unit).len())
        .sum();
    let bytes = FIXED + 8 * ladder.levels().len() + texts + 8;
    bytes.next_multiple_of(PAGE)
}

/// What is still to be read.
struct Words<'a>(&'a [u8]);

impl<'a> Words<'a> {
    fn take(&mut self, len: usize) -> Option<&'a [u8]> {
        let (part, rest) = self.0.split_at_checked(len)?;
        self.0 = rest;
        Some(part)
    }

    fn level(&mut self) -> Option<Level> {
        let part = self.take(8)?;
        Some(Level {
            steps: u32_at(part, 0),
            rows: u32_at(part, 4),
        })
    }

    fn text(&mut self) -> Option<String> {
        let [len] = *self.take(1)?.first_chunk::<1>()?;
        let text = std::str::from_utf8(self.take(usize::from(len))?).ok()?;
        // Names go to terminals and into tables.
        let is_plain = text
            .bytes()
            .all(|byte| byte.is_ascii_graphic() && byte != b',' && byte != b'"');
        is_plain.then(|| text.to_owned())
    }

    fn series(&mut self) -> Option<Series> {
        let [kind, low_bits, high_bits, sub_bits] = *self.take(4)?.first_chunk::<4>()?;
        let kind = match kind {
            0 => Kind::Counter,
            1 => Kind::Gauge,
            2 => Kind::Distribution(Buckets {
                low_bits,
                high_bits,
                sub_bits,
            }),
            _ => return None,
        };
        let (name, unit) = (self.text()?, self.text()?);
        Some(Series { name, unit, kind })
    }
}
