//! Segments that are kept for a while in case they are the rest of a head yet to come.

use linkweir_table::Chain;
use linkweir_wire::SeqNumber;

use super::{Purpose, WatchList};
use crate::key::Connection;
use crate::segment::Segment;

/// Segments towards servers that are kept in case they are the rest of a head yet to come.
pub(crate) const EARLY: usize = 64;

/// A segment that may have come before the head it belongs to.
#[derive(Debug)]
pub(super) struct EarlySegment {
    direction: Connection,
    seq: SeqNumber,
    ts_ns: u64,
    text: Chain,
}

/// A piece that belongs behind a head being gathered.
#[derive(Debug, Clone, Copy)]
pub(crate) struct EarlyPiece {
    slot: usize,
    pub(crate) seq: SeqNumber,
    pub(crate) len: u32,
    pub(crate) ts_ns: u64,
}

fn early_slot(number: u64) -> usize {
    usize::try_from(number % EARLY as u64).unwrap_or(0)
}

impl WatchList {
    /// Keeps a copy of a segment that may be the rest of a head yet to come; whether it did.
    pub(crate) fn keep_early(&mut self, segment: &Segment<'_>) -> bool {
        if segment.is_cut()
            || segment.payload.is_empty()
            || !self.texts.has_room(segment.payload.len())
        {
            return false;
        }
        let mut text = Chain::default();
        self.texts.append(&mut text, segment.payload);
        let early = EarlySegment {
            direction: segment.direction,
            seq: segment.seq,
            ts_ns: segment.ts_ns,
            text,
        };
        match self.early.get_mut(early_slot(self.early_count)) {
            Some(slot) => {
                let old = std::mem::replace(slot, early);
                self.texts.release(old.text);
            }
            None => self.early.push(early),
        }
        self.early_count += 1;
        true
    }

    /// Segments that were kept so far in case they are the rest of a head yet to come.
    pub(crate) const fn early_count(&self) -> u64 {
        self.early_count
    }

    /// Whether the kept segment `number` (from 0), one of the last [`EARLY`], has been taken as the rest
    /// of a head.
    pub(crate) fn was_early_taken(&self, number: u64) -> bool {
        let early = self.early.get(early_slot(number));
        early.is_some_and(|early| early.text.is_empty())
    }

    /// A kept segment that is the next part of the head being gathered in `direction`.
    pub(crate) fn take_early(&mut self, direction: &Connection) -> Option<EarlyPiece> {
        let Purpose::Head(head) = &self.table.get(self.find(direction)?)?.purpose else {
            return None;
        };
        let slot = self.early.iter().position(|early| {
            !early.text.is_empty() && early.seq == head.next_seq && early.direction == *direction
        })?;
        let early = self.early.get(slot)?;
        let len = u32::try_from(early.text.len()).ok()?;
        Some(EarlyPiece {
            slot,
            seq: early.seq,
            len,
            ts_ns: early.ts_ns,
        })
    }

    /// The bytes of a kept segment, which is then no longer kept.
    pub(crate) fn read_early(&mut self, piece: EarlyPiece, mut bytes: Vec<u8>) -> Vec<u8> {
        bytes.clear();
        if let Some(early) = self.early.get_mut(piece.slot) {
            let text = std::mem::take(&mut early.text);
            self.texts.copy_to(&text, &mut bytes);
            self.texts.release(text);
        }
        bytes
    }
}
