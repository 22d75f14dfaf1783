//! A row: the cells of all series over its time, in bytes.

use super::bytes::{
    BUCKET_BYTES, add_to_bucket, bucket, checksum, put_u32, put_u64, put_u128, u32_at, u64_at,
    u128_at,
};
use crate::cells::{Buckets, Catalogue, CellSet, Distribution, Kind};

/// Number and one, writing, steps, how far it was measured, checksum.
const HEAD_BYTES: usize = 32;
/// Sum, smallest, largest.
const SCALAR_BYTES: usize = 24;
/// Count, sum, squares, smallest, largest.
const MOMENT_BYTES: usize = 56;

/// Where the cells of a row stand.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct RowLayout {
    /// Bytes of a row.
    pub(super) bytes: usize,
    scalars: usize,
    /// Where each distribution begins, and its shape.
    distributions: Vec<(usize, Buckets)>,
}

impl RowLayout {
    pub(super) fn new(catalogue: &Catalogue) -> Self {
        let scalars = catalogue.scalars();
        let mut at = HEAD_BYTES + scalars * SCALAR_BYTES;
        let mut distributions = Vec::new();
        for series in catalogue.series() {
            if let Kind::Distribution(shape) = series.kind {
                distributions.push((at, shape));
                at += MOMENT_BYTES + shape.len() * BUCKET_BYTES;
            }
        }
        Self {
            bytes: at.next_multiple_of(64),
            scalars,
            distributions,
        }
    }

    /// Adds a step to a row. `before` is the row of the step alone as it was, where part of it is in
    /// the row already.
    pub(super) fn add_step(
        &self,
        row: &mut RowBuffer,
        cells: &CellSet,
        before: Option<&RowBuffer>,
    ) {
        let is_first = row.steps() == 0;
        for (place, value) in cells.scalars().iter().take(self.scalars).enumerate() {
            let at = HEAD_BYTES + place * SCALAR_BYTES;
            let bytes = &mut row.bytes;
            let sum = u64_at(bytes, at).saturating_add(*value);
            put_u64(bytes, at, sum);
            // What the step has in all, with what an earlier run put into it.
            let known = before.map_or(0, |before| u64_at(&before.bytes, at));
            let whole = known.saturating_add(*value);
            let (min, max) = (u64_at(bytes, at + 8), u64_at(bytes, at + 16));
            put_u64(bytes, at + 8, if is_first { whole } else { min.min(whole) });
            put_u64(
                bytes,
                at + 16,
                if is_first { whole } else { max.max(whole) },
            );
        }
        for ((at, _), cell) in self.distributions.iter().zip(cells.distributions()) {
            if let Some(cell) = cell {
                merge(
                    &mut row.bytes,
                    *at,
                    cell.moments(),
                    cell.buckets.iter().copied(),
                );
            }
        }
        if before.is_none() {
            row.set_steps(row.steps().saturating_add(1));
        }
    }

    /// Adds a row of the level below.
    pub(super) fn add_row(&self, row: &mut RowBuffer, part: &RowBuffer) {
        if part.steps() == 0 {
            return;
        }
        let is_first = row.steps() == 0;
        for place in 0..self.scalars {
            let at = HEAD_BYTES + place * SCALAR_BYTES;
            let [sum, min, max] = [0, 8, 16].map(|more| u64_at(&row.bytes, at + more));
            let [s, a, b] = [0, 8, 16].map(|more| u64_at(&part.bytes, at + more));
            put_u64(&mut row.bytes, at, sum.saturating_add(s));
            put_u64(
                &mut row.bytes,
                at + 8,
                if is_first { a } else { min.min(a) },
            );
            put_u64(
                &mut row.bytes,
                at + 16,
                if is_first { b } else { max.max(b) },
            );
        }
        for (at, shape) in &self.distributions {
            let moments = Moments::read(&part.bytes, *at);
            if moments.count > 0 {
                let buckets = buckets_at(&part.bytes, *at, *shape);
                merge(&mut row.bytes, *at, moments, buckets.iter().map(bucket));
            }
        }
        row.set_steps(row.steps().saturating_add(part.steps()));
    }

    /// Takes the smallest values of counters from the rows that a row is made of. Needed where a
    /// step was added to: what was its smallest may have become larger.
    pub(super) fn take_minima<'a>(
        &self,
        row: &mut RowBuffer,
        parts: impl Iterator<Item = &'a RowBuffer>,
    ) {
        let mut least = vec![u64::MAX; self.scalars];
        for part in parts {
            for (place, min) in least.iter_mut().enumerate() {
                *min = (*min).min(u64_at(&part.bytes, HEAD_BYTES + place * SCALAR_BYTES + 8));
            }
        }
        for (place, min) in least.iter().enumerate() {
            put_u64(&mut row.bytes, HEAD_BYTES + place * SCALAR_BYTES + 8, *min);
        }
    }

    /// The row of one step: its sum is its smallest and largest.
    pub(super) fn settle(&self, row: &mut RowBuffer) {
        for place in 0..self.scalars {
            let at = HEAD_BYTES + place * SCALAR_BYTES;
            let sum = u64_at(&row.bytes, at);
            put_u64(&mut row.bytes, at + 8, sum);
            put_u64(&mut row.bytes, at + 16, sum);
        }
    }

    /// The cell of a series, by its place in the catalogue.
    pub(super) fn cell(&self, row: &RowBuffer, series: usize) -> Option<Cell> {
        let Some(place) = series.checked_sub(self.scalars) else {
            let at = HEAD_BYTES + series * SCALAR_BYTES;
            let [sum, min, max] = [0, 8, 16].map(|more| u64_at(&row.bytes, at + more));
            return Some(Cell::Scalar { sum, min, max });
        };
        let (at, shape) = *self.distributions.get(place)?;
        let moments = Moments::read(&row.bytes, at);
        let buckets = buckets_at(&row.bytes, at, shape)
            .iter()
            .map(bucket)
            .collect();
        Some(Cell::Distribution(Distribution {
            shape,
            count: moments.count,
            sum: moments.sum,
            squares: moments.squares,
            min: moments.min,
            max: moments.max,
            buckets,
        }))
    }
}

/// What a row holds of a series.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Cell {
    /// A counter or gauge.
    Scalar {
        /// The sum over all steps.
        sum: u64,
        /// The smallest of a step.
        min: u64,
        /// The largest of a step.
        max: u64,
    },
    /// A distribution.
    Distribution(Distribution),
}

/// A distribution without its buckets.
#[derive(Debug, Clone, Copy)]
struct Moments {
    count: u64,
    sum: u128,
    squares: u128,
    min: u64,
    max: u64,
}

impl Moments {
    fn read(bytes: &[u8], at: usize) -> Self {
        Self {
            count: u64_at(bytes, at),
            sum: u128_at(bytes, at + 8),
            squares: u128_at(bytes, at + 24),
            min: u64_at(bytes, at + 40),
            max: u64_at(bytes, at + 48),
        }
    }
}

impl Distribution {
    const fn moments(&self) -> Moments {
        Moments {
            count: self.count,
            sum: self.sum,
            squares: self.squares,
            min: self.min,
            max: self.max,
        }
    }
}

fn buckets_at(bytes: &[u8], at: usize, shape: Buckets) -> &[[u8; BUCKET_BYTES]] {
    let from = at + MOMENT_BYTES;
    let part = bytes.get(from..from + shape.len() * BUCKET_BYTES);
    part.unwrap_or_default().as_chunks().0
}

fn merge(row: &mut [u8], at: usize, more: Moments, buckets: impl Iterator<Item = u64>) {
    let old = Moments::read(row, at);
    let is_first = old.count == 0;
    put_u64(row, at, old.count.saturating_add(more.count));
    put_u128(row, at + 8, old.sum.saturating_add(more.sum));
    put_u128(row, at + 24, old.squares.saturating_add(more.squares));
    put_u64(
        row,
        at + 40,
        if is_first {
            more.min
        } else {
            old.min.min(more.min)
        },
    );
    put_u64(
        row,
        at + 48,
        if is_first {
            more.max
        } else {
            old.max.max(more.max)
        },
    );
    let mine = row.get_mut(at + MOMENT_BYTES..).unwrap_or_default();
    for (mine, values) in mine.as_chunks_mut().0.iter_mut().zip(buckets) {
        if values > 0 {
            add_to_bucket(mine, values);
        }
    }
}

/// The bytes of one row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RowBuffer {
    pub(super) bytes: Vec<u8>,
}

impl RowBuffer {
    /// Zeros.
    pub(super) fn new(layout: &RowLayout) -> Self {
        Self {
            bytes: vec![0; layout.bytes],
        }
    }

    /// Makes it the empty row of a number.
    pub(super) fn begin(&mut self, number: u64) {
        self.bytes.fill(0);
        put_u64(&mut self.bytes, 0, number.saturating_add(1));
    }

    /// Its number: its start divided by its length; `None` where it is empty.
    #[must_use]
    pub fn number(&self) -> Option<u64> {
        number(&self.bytes)
    }

    /// How many steps are in it.
    #[must_use]
    pub fn steps(&self) -> u32 {
        u32_at(&self.bytes, 16)
    }

    fn set_steps(&mut self, steps: u32) {
        put_u32(&mut self.bytes, 16, steps);
    }

    /// How far the row of a step was measured, as a part of its length; 0 where not recorded.
    pub(super) fn measured(&self) -> u32 {
        u32_at(&self.bytes, 20)
    }

    /// It was measured at least so far.
    pub(super) fn measure_to(&mut self, part: u32) {
        let part = self.measured().max(part);
        put_u32(&mut self.bytes, 20, part);
    }

    /// Which writing it is of: later ones have higher numbers.
    pub(super) fn writing(&self) -> u64 {
        u64_at(&self.bytes, 8)
    }

    /// Puts writing and checksum on it.
    pub(super) fn seal(&mut self, writing: u64) {
        put_u64(&mut self.bytes, 8, writing);
        let sum = row_checksum(&self.bytes);
        put_u64(&mut self.bytes, 24, sum);
    }

    /// Its checksum.
    pub(super) fn seal_mark(&self) -> u64 {
        u64_at(&self.bytes, 24)
    }

    /// Whether it was written whole, or never.
    pub(super) fn is_whole(&self) -> bool {
        is_whole(&self.bytes)
    }
}

/// The number of a row in the file.
pub(super) fn number(row: &[u8]) -> Option<u64> {
    u64_at(row, 0).checked_sub(1)
}

/// Whether a row in the file was written whole, or never.
pub(super) fn is_whole(row: &[u8]) -> bool {
    match row.first_chunk::<HEAD_BYTES>() {
        Some(head) if *head == [0; HEAD_BYTES] => true,
        Some(_) => number(row).is_some() && row_checksum(row) == u64_at(row, 24),
        None => false,
    }
}

fn row_checksum(row: &[u8]) -> u64 {
    let (head, cells) = row.split_at_checked(HEAD_BYTES).unwrap_or_default();
    checksum(checksum(1, head.get(..24).unwrap_or_default()), cells)
}
