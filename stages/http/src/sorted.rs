//! Records in the order of their time.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use linkweir_engine::{Batch, Stage, TableFill};
use linkweir_record::{HttpBatch, HttpKind, RecordBatch, RecordKind};
use linkweir_wire::Timestamp;

use crate::stage::HttpStage;

/// Records that may wait to be sorted; with more, the earliest go out early.
const MAX_RECORDS: usize = 1 << 20;
/// Records that leave at a time in the end.
const PIECE: usize = 1024;
/// Bytes of text they may have.
const MAX_BYTES: usize = 256 << 20;

/// A stage whose records come sorted by request time (of an orphan: response time).
///
/// A record leaves when nothing earlier can come any more: a timeout behind the capture. The
/// window is bounded; what would still be out of order then is counted in [`Sorted::late`].
#[derive(Debug)]
pub struct Sorted {
    stage: HttpStage,
    fresh: HttpBatch,
    held: HttpBatch,
    order: BinaryHeap<Reverse<(u64, usize)>>,
    released_ns: u64,
    late: u64,
}

impl Sorted {
    /// Sorts the records of `stage`.
    #[must_use]
    pub fn new(stage: HttpStage) -> Self {
        Self {
            stage,
            fresh: HttpBatch::default(),
            held: HttpBatch::default(),
            order: BinaryHeap::new(),
            released_ns: 0,
            late: 0,
        }
    }

    /// The stage itself.
    #[must_use]
    pub const fn inner(&self) -> &HttpStage {
        &self.stage
    }

    /// Records that came after a later one had left, because the window was too small.
    #[must_use]
    pub const fn late(&self) -> u64 {
        self.late
    }

    fn take_in(&mut self) {
        for view in self.fresh.views() {
            let time = HttpKind::time_ns(&view);
            self.order.push(Reverse((time, self.held.len())));
            self.held.push_view(&view);
        }
        self.fresh.clear();
    }

    fn release(&mut self, before_ns: u64, out: &mut HttpBatch) {
        while let Some(Reverse((time, at))) = self.order.peek().copied() {
            let crowded = self.order.len() > MAX_RECORDS;
            if time >= before_ns && !crowded {
                break;
            }
            self.order.pop();
            self.late += u64::from(time < self.released_ns);
            self.released_ns = self.released_ns.max(time);
            if let Some(view) = self.held.get(at) {
                out.push_view(&view);
            }
        }
        self.compact(out);
    }

    /// Forgets the records that have left, when they are most of what is held.
    fn compact(&mut self, out: &mut HttpBatch) {
        if self.held.memory_bytes() > MAX_BYTES && self.order.len() * 2 > self.held.len() {
            // Half of what is held goes out: the earliest.
            for _ in 0..self.order.len() / 2 {
                let Some(Reverse((time, at))) = self.order.pop() else {
                    break;
                };
                self.released_ns = self.released_ns.max(time);
                if let Some(view) = self.held.get(at) {
                    out.push_view(&view);
                }
            }
        }
        if self.held.len() > 4096 && self.order.len() * 2 <= self.held.len() {
            let mut kept = HttpBatch::default();
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
}

impl Stage for Sorted {
    type Record = HttpKind;
    type Parcel = <HttpStage as Stage>::Parcel;

    fn take_parcel(&mut self) -> Option<(usize, Self::Parcel)> {
        self.stage.take_parcel()
    }

    fn accept(&mut self, parcel: Self::Parcel, out: &mut HttpBatch) {
        self.stage.accept(parcel, &mut self.fresh);
        self.take_in();
        self.release(self.stage.watermark_ns(), out);
    }

    fn fill(&self) -> TableFill {
        self.stage.fill()
    }

    fn on_batch(&mut self, batch: &Batch<'_>, out: &mut HttpBatch) {
        self.stage.on_batch(batch, &mut self.fresh);
        self.take_in();
        self.release(self.stage.watermark_ns(), out);
    }

    fn on_tick(&mut self, now: Timestamp, out: &mut HttpBatch) {
        self.stage.on_tick(now, &mut self.fresh);
        self.take_in();
        self.release(self.stage.watermark_ns(), out);
    }

    fn next_deadline(&self) -> Option<Timestamp> {
        self.stage.next_deadline()
    }

    fn finish(&mut self, out: &mut HttpBatch) -> bool {
        while !self.stage.finish(&mut self.fresh) {
            self.take_in();
        }
        self.take_in();
        for _ in 0..PIECE {
            let Some(Reverse((_, at))) = self.order.pop() else {
                self.held.clear();
                return true;
            };
            if let Some(view) = self.held.get(at) {
                out.push_view(&view);
            }
        }
        false
    }
}
