//! Records in the order of their time.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use linkweir_record::{RecordBatch, RecordKind};

/// Records that may wait to be sorted; with more, the earliest go out early.
const MAX_RECORDS: usize = 1 << 20;
/// Bytes they may take.
const MAX_BYTES: usize = 256 << 20;
/// Records that leave at a time.
const PIECE: usize = 1024;

/// Holds records back until nothing earlier can come any more, and gives them in the order of
/// [`RecordKind::time_ns`].
///
/// The window is bounded; what would still be out of order then is counted in [`Sorter::late`].
#[derive(Debug)]
pub struct Sorter<K: RecordKind> {
    held: K::Batch,
    order: BinaryHeap<Reverse<(u64, usize)>>,
    released_ns: u64,
    late: u64,
}

impl<K: RecordKind> Default for Sorter<K> {
    fn default() -> Self {
        Self {
            held: K::Batch::default(),
            order: BinaryHeap::new(),
            released_ns: 0,
            late: 0,
        }
    }
}

impl<K: RecordKind> Sorter<K> {
    /// Records that came after a later one had left, because the window was too small.
    #[must_use]
    pub const fn late(&self) -> u64 {
        self.late
    }

    /// Takes all records of `fresh` in and empties it.
    pub fn take_in(&mut self, fresh: &mut K::Batch) {
        for view in fresh.views() {
            let time = K::time_ns(&view);
            self.order.push(Reverse((time, self.held.len())));
            self.held.push_view(&view);
        }
        fresh.clear();
    }

    /// Appends to `out`, in order, what is earlier than `before_ns`, at most about a thousand
    /// records; says whether that was all.
    pub fn release(&mut self, before_ns: u64, out: &mut K::Batch) -> bool {
        let crowded_bytes = self.held.memory_bytes() > MAX_BYTES;
        let floor = if crowded_bytes {
            // Half of what is held goes out: the earliest.
            self.order.len() / 2
        } else {
            MAX_RECORDS
        };
        for _ in 0..PIECE {
            let Some(Reverse((time, at))) = self.order.peek().copied() else {
                break;
            };
            if time >= before_ns && self.order.len() <= floor {
                self.compact();
                return true;
            }
            self.order.pop();
            self.late += u64::from(time < self.released_ns);
            self.released_ns = self.released_ns.max(time);
            if let Some(view) = self.held.get(at) {
                out.push_view(&view);
            }
        }
        self.compact();
        self.order.is_empty()
    }

    /// Forgets the records that have left, when they are most of what is held.
    fn compact(&mut self) {
        if self.held.len() <= 4096 || self.order.len() * 2 > self.held.len() {
            return;
        }
        let mut kept = K::Batch::default();
        let mut order: Vec<_> = std::mem::take(&mut self.order)
            .into_iter()
            .map(|Reverse(key)| key)
            .collect();
        order.sort_unstable();
        for (time, at) in order {
            if let Some(view) = self.held.get(at) {
                self.order.push(Reverse((time, kept.len())));
                kept.push_view(&view);
            }
        }
        self.held = kept;
    }
}

#[cfg(test)]
mod tests {
    use linkweir_record::{HttpBatch, HttpKind, HttpRow, Text};

    use super::*;

    fn batch(times: &[u64]) -> HttpBatch {
        let mut batch = HttpBatch::default();
        for time in times {
            let row = HttpRow {
                request_ts_ns: Some(*time),
                ..HttpRow::default()
            };
            batch.push(row, &Text::default());
        }
        batch
    }

    fn times(batch: &HttpBatch) -> Vec<u64> {
        batch.views().map(|view| HttpKind::time_ns(&view)).collect()
    }

    #[test]
    fn records_leave_in_order_and_not_before_their_time() {
        let mut sorter = Sorter::<HttpKind>::default();
        let mut out = HttpBatch::default();
        sorter.take_in(&mut batch(&[5, 1, 9, 3]));
        assert!(sorter.release(4, &mut out));
        assert_eq!(times(&out), [1, 3]);
        sorter.take_in(&mut batch(&[4]));
        out.clear();
        assert!(sorter.release(u64::MAX, &mut out));
        assert_eq!(times(&out), [4, 5, 9]);
        assert_eq!(sorter.late(), 0);
        sorter.take_in(&mut batch(&[2]));
        sorter.release(u64::MAX, &mut out);
        assert_eq!(sorter.late(), 1, "what comes too late is counted");
    }

    #[test]
    fn many_leave_piece_by_piece() {
        let mut sorter = Sorter::<HttpKind>::default();
        let all: Vec<u64> = (0..10_000).rev().collect();
        sorter.take_in(&mut batch(&all));
        let (mut out, mut pieces) = (HttpBatch::default(), 0);
        while !sorter.release(u64::MAX, &mut out) {
            pieces += 1;
        }
        assert!(pieces > 5);
        assert!(times(&out).is_sorted());
        assert_eq!(out.len(), all.len());
    }
}
