//! Distributions over any time, from rows of all levels together.

use super::reader::{ReadAt, ReadFault, Reader, RowPlace};
use super::row::Cell;
use crate::cells::{Buckets, Distribution, Kind};

/// Parts of a unit that the values of counters and gauges are counted in.
const PARTS: u64 = 1000;

/// The buckets of counters and gauges, in thousandths of their unit.
const SCALARS: Buckets = Buckets {
    low_bits: 0,
    high_bits: 63,
    sub_bits: 3,
};

/// What was measured in a time.
#[derive(Debug, Clone, PartialEq)]
pub struct Spread {
    /// Start of the first row counted, nanoseconds since the epoch. Before what was asked for where
    /// the rings no longer have finer rows.
    pub from_ns: u64,
    /// End of the last row counted, likewise; equal to the start where nothing was measured.
    pub to_ns: u64,
    /// Steps measured in it.
    pub steps: u64,
    /// Rows that were damaged, or overwritten meanwhile.
    pub missed: u64,
    /// The distributions, as many as series were asked for, in that order.
    pub series: Vec<Values>,
}

/// The values of a series in a time.
#[derive(Debug, Clone, PartialEq)]
pub struct Values {
    /// How they are spread. Of a counter or gauge one value a row of the level asked for: its rate or
    /// its mean.
    pub distribution: Distribution,
    /// Parts of a unit that the values are in: 1, or 1000 of a counter or gauge.
    pub parts: u64,
}

/// Rows of every level that there are, and from when on a level has all.
struct Held {
    rows: Vec<Vec<RowPlace>>,
    complete_ns: Vec<u64>,
}

impl<S: ReadAt> Reader<S> {
    fn held(&self) -> Result<Held, ReadFault> {
        let levels = self.ladder().levels();
        let mut held = Held {
            rows: Vec::with_capacity(levels.len()),
            complete_ns: Vec::with_capacity(levels.len()),
        };
        for (at, level) in levels.iter().enumerate() {
            let rows = self.rows(at)?;
            let newest = rows.last().map_or(0, |row| row.number);
            let first = newest
                .saturating_add(1)
                .saturating_sub(u64::from(level.rows));
            let complete_ns = first.saturating_mul(self.ladder().span_ns(at));
            held.complete_ns.push(complete_ns);
            held.rows.push(rows);
        }
        Ok(held)
    }

    /// The finest level whose ring still has everything that was measured from a time on; the coarsest
    /// where none has.
    ///
    /// # Errors
    /// Where the file cannot be read.
    pub fn level_since(&self, from_ns: u64) -> Result<usize, ReadFault> {
        let held = self.held()?;
        let last = held.rows.len().saturating_sub(1);
        let oldest = held.rows.last().and_then(|rows| rows.first());
        let oldest = oldest.map_or(0, |row| {
            row.number.saturating_mul(self.ladder().span_ns(last))
        });
        let from_ns = from_ns.max(oldest);
        let found = held.complete_ns.iter().position(|first| *first <= from_ns);
        Ok(found.unwrap_or(last))
    }

    /// How the values of these series (places in the catalogue) are spread from `from_ns` to before
    /// `to_ns`. Distributions are the exact merge of the coarsest rows inside and the finest ones at
    /// both ends; of counters and gauges the rows of `level` are the values.
    ///
    /// # Errors
    /// Where the file cannot be read.
    pub fn spread(
        &mut self,
        series: &[usize],
        level: usize,
        (from_ns, to_ns): (u64, u64),
    ) -> Result<Spread, ReadFault> {
        let held = self.held()?;
        let step_ns = self.ladder().step_ns();
        let newest = held.rows.first().and_then(|rows| rows.last());
        let newest_ns = newest.map_or(0, |row| {
            row.number.saturating_add(1).saturating_mul(step_ns)
        });
        let mut found = Spread {
            from_ns: u64::MAX,
            to_ns: 0,
            steps: 0,
            missed: 0,
            series: Vec::with_capacity(series.len()),
        };
        let catalogue = self.catalogue().series();
        let kinds: Vec<Option<Kind>> = series
            .iter()
            .map(|place| catalogue.get(*place).map(|one| one.kind))
            .collect();
        for kind in &kinds {
            let (shape, parts) = match kind {
                Some(Kind::Distribution(shape)) => (*shape, 1),
                _ => (SCALARS, PARTS),
            };
            found.series.push(Values {
                distribution: Distribution::new(shape),
                parts,
            });
        }
        let is_distribution = |kind: &Option<Kind>| matches!(kind, Some(Kind::Distribution(_)));
        let mut row = self.buffer();
        let mut wanted = Vec::new();
        if kinds.iter().any(is_distribution) {
            let top = held.rows.len().saturating_sub(1);
            self.parts(&held, top, (from_ns, to_ns), &mut wanted);
        }
        // Rows to be read, the last one first.
        while let Some((at, place)) = wanted.pop() {
            let span_ns = self.ladder().span_ns(at);
            let start = place.number.saturating_mul(span_ns);
            let end = start.saturating_add(span_ns);
            if !self.row(at, place, &mut row)? {
                // A damaged row is that of the level below once more, where that has all of it.
                let below = at.checked_sub(1);
                let has_all =
                    |below: &usize| held.complete_ns.get(*below).is_some_and(|ns| *ns <= start);
                match below.filter(has_all) {
                    Some(below) => self.parts(&held, below, (start, end), &mut wanted),
                    None => found.missed += 1,
                }
                continue;
            }
            found.count(row.steps(), start, end);
            for (values, place) in found.series.iter_mut().zip(series) {
                if let Some(Cell::Distribution(cell)) = self.cell(&row, *place) {
                    values.distribution.merge(&cell);
                }
            }
        }
        if !kinds.iter().all(is_distribution) {
            let has_steps = found.steps > 0;
            self.scalars(
                &held,
                series,
                level,
                (from_ns, to_ns),
                &mut found,
                !has_steps,
            )?;
        }
        found.to_ns = found.to_ns.min(newest_ns);
        found.from_ns = found.from_ns.min(found.to_ns);
        Ok(found)
    }

    /// One value a row.
    fn scalars(
        &mut self,
        held: &Held,
        series: &[usize],
        level: usize,
        (from_ns, to_ns): (u64, u64),
        found: &mut Spread,
        counts_steps: bool,
    ) -> Result<(), ReadFault> {
        let mut row = self.buffer();
        let (span_ns, step_ns) = (self.ladder().span_ns(level), self.ladder().step_ns());
        for place in held.rows.get(level).into_iter().flatten() {
            let start = place.number.saturating_mul(span_ns);
            let end = start.saturating_add(span_ns);
            if end <= from_ns || start >= to_ns {
                continue;
            }
            if !self.row(level, *place, &mut row)? {
                found.missed += 1;
                continue;
            }
            let steps = row.steps();
            if steps == 0 {
                continue;
            }
            if counts_steps {
                found.count(steps, start, end);
            }
            for (values, place) in found.series.iter_mut().zip(series) {
                let Some(Cell::Scalar { sum, .. }) = self.cell(&row, *place) else {
                    continue;
                };
                let kind = self.catalogue().series().get(*place).map(|one| one.kind);
                // A counter is a rate, a gauge is a level.
                let unit_ns = if kind == Some(Kind::Gauge) {
                    step_ns
                } else {
                    1_000_000_000
                };
                let value = u128::from(sum) * u128::from(PARTS) * u128::from(unit_ns)
                    / (u128::from(steps) * u128::from(step_ns)).max(1);
                values
                    .distribution
                    .add(u64::try_from(value).unwrap_or(u64::MAX));
            }
        }
        Ok(())
    }

    /// The rows that together are a time, the newest first: those of a level inside of it, and at its
    /// ends those of finer levels where these are still there.
    fn parts(
        &self,
        held: &Held,
        level: usize,
        (from_ns, to_ns): (u64, u64),
        out: &mut Vec<(usize, RowPlace)>,
    ) {
        let span_ns = self.ladder().span_ns(level);
        for place in held.rows.get(level).into_iter().flatten().rev() {
            let start = place.number.saturating_mul(span_ns);
            let end = start.saturating_add(span_ns);
            if end <= from_ns || start >= to_ns {
                continue;
            }
            let (first, last) = (start.max(from_ns), end.min(to_ns));
            let below = level
                .checked_sub(1)
                .filter(|_| (first, last) != (start, end));
            let has_all =
                |below: &usize| held.complete_ns.get(*below).is_some_and(|ns| *ns <= first);
            match below.filter(has_all) {
                // There are at most eight levels.
                Some(below) => self.parts(held, below, (first, last), out),
                None => out.push((level, *place)),
            }
        }
    }
}

impl Spread {
    fn count(&mut self, steps: u32, start_ns: u64, end_ns: u64) {
        if steps > 0 {
            self.steps += u64::from(steps);
            self.from_ns = self.from_ns.min(start_ns);
            self.to_ns = self.to_ns.max(end_ns);
        }
    }
}
