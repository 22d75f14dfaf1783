//! Segments of which it is not yet known whether they matter: they may be the rest of a head that they
//! have overtaken. The rows behind them wait, so that rows leave in the order of packets.

use std::collections::VecDeque;

use linkweir_record::{HalfBatch, HalfRow};

use crate::watch::{MAX_KEPT, WatchList};

/// Rows that wait at most; with more, the first goes as one that may matter.
const MAX_HELD: usize = 256;

/// What is known of a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Disposition {
    /// It is a row.
    Kept,
    /// It is the stage's kept segment of this number.
    Open(u64),
    /// It does not matter.
    Dropped,
}

#[derive(Debug)]
struct Held {
    disposition: Disposition,
    row: HalfRow,
    payload: Box<[u8]>,
}

/// Rows that wait for one before them.
#[derive(Debug, Default)]
pub(super) struct HeldRows {
    rows: VecDeque<Held>,
    open: usize,
    /// Of all that were not sure: rows that turned out to matter, and rows that may.
    taken: u64,
    possible: u64,
}

impl HeldRows {
    /// Rows that were not sure and turned out to matter, and such as went because they may.
    pub(super) const fn counts(&self) -> (u64, u64) {
        (self.taken, self.possible)
    }

    /// A row that counts.
    #[inline]
    pub(super) fn push(&mut self, row: HalfRow, payload: &[u8], out: &mut HalfBatch) {
        if self.rows.is_empty() {
            out.push(row, payload);
        } else {
            self.hold(Disposition::Kept, row, payload, out);
        }
    }

    /// A row for the segment that the stage has kept as its `number`th. Where that is never taken up, the
    /// row is dropped; where there is no room to wait, it goes as one that may matter (`row` says so).
    pub(super) fn push_undecided(
        &mut self,
        number: u64,
        row: HalfRow,
        payload: &[u8],
        out: &mut HalfBatch,
    ) {
        // The stage keeps the last few only.
        let oldest = (number + 1).saturating_sub(MAX_KEPT as u64);
        for held in &mut self.rows {
            if matches!(held.disposition, Disposition::Open(number) if number < oldest) {
                held.disposition = Disposition::Dropped;
                self.open -= 1;
            }
        }
        self.open += 1;
        self.hold(Disposition::Open(number), row, payload, out);
    }

    fn hold(
        &mut self,
        disposition: Disposition,
        row: HalfRow,
        payload: &[u8],
        out: &mut HalfBatch,
    ) {
        let payload = Box::from(payload);
        self.rows.push_back(Held {
            disposition,
            row,
            payload,
        });
        self.release(MAX_HELD, out);
    }

    /// The stage has looked at a segment, and may have taken up some that it kept.
    #[inline]
    pub(super) fn settle(&mut self, watch: &WatchList, out: &mut HalfBatch) {
        if self.open > 0 {
            self.settle_open(watch, out);
        }
    }

    fn settle_open(&mut self, watch: &WatchList, out: &mut HalfBatch) {
        for held in &mut self.rows {
            if let Disposition::Open(number) = held.disposition
                && watch.was_taken(number)
            {
                held.disposition = Disposition::Kept;
                held.row.is_plain = false;
                self.taken += 1;
                self.open -= 1;
            }
        }
        self.release(MAX_HELD, out);
    }

    /// Lets go what is decided, and what comes before the last `most` rows.
    pub(super) fn release(&mut self, most: usize, out: &mut HalfBatch) {
        while let Some(first) = self.rows.front() {
            match first.disposition {
                Disposition::Kept => out.push(first.row, &first.payload),
                Disposition::Dropped => {}
                Disposition::Open(_) if self.rows.len() > most => {
                    out.push(first.row, &first.payload);
                    self.open -= 1;
                    self.possible += 1;
                }
                Disposition::Open(_) => return,
            }
            self.rows.pop_front();
        }
    }
}
