//! Segments that are kept for a while in case they are the rest of a head yet to come.

use linkweir_table::{Chain, Chunks};
use linkweir_wire::SeqNumber;

use crate::key::Connection;
use crate::segment::Segment;

/// Segments towards servers that are kept in case they are the rest of a head yet to come.
pub(crate) const MAX_KEPT: usize = 64;

#[derive(Debug)]
struct Kept {
    direction: Connection,
    seq: SeqNumber,
    ts_ns: u64,
    text: Chain,
}

/// A piece that belongs behind a head being gathered.
#[derive(Debug, Clone, Copy)]
pub(crate) struct KeptPiece {
    slot: usize,
    pub(crate) seq: SeqNumber,
    pub(crate) len: u32,
    pub(crate) ts_ns: u64,
}

fn slot_of(number: u64) -> usize {
    usize::try_from(number % MAX_KEPT as u64).unwrap_or(0)
}

/// The last [`MAX_KEPT`] segments towards servers that may have overtaken the head they belong to.
#[derive(Debug)]
pub(super) struct OutOfOrder {
    kept: Vec<Kept>,
    /// How many were kept so far; the slot of the next is the remainder.
    count: u64,
}

impl OutOfOrder {
    pub(super) fn new() -> Self {
        Self {
            kept: Vec::with_capacity(MAX_KEPT),
            count: 0,
        }
    }

    /// Keeps a copy of a segment; returns whether it did.
    pub(super) fn keep(&mut self, segment: &Segment<'_>, texts: &mut Chunks) -> bool {
        if segment.is_cut() || segment.payload.is_empty() || !texts.has_room(segment.payload.len())
        {
            return false;
        }
        let mut text = Chain::default();
        texts.append(&mut text, segment.payload);
        let kept = Kept {
            direction: segment.direction,
            seq: segment.seq,
            ts_ns: segment.ts_ns,
            text,
        };
        match self.kept.get_mut(slot_of(self.count)) {
            Some(slot) => {
                let old = std::mem::replace(slot, kept);
                texts.release(old.text);
            }
            None => self.kept.push(kept),
        }
        self.count += 1;
        true
    }

    pub(super) const fn count(&self) -> u64 {
        self.count
    }

    /// Whether the segment `number` (from 0), one of the last [`MAX_KEPT`], has been taken as the rest of a head.
    pub(super) fn was_taken(&self, number: u64) -> bool {
        let kept = self.kept.get(slot_of(number));
        kept.is_some_and(|kept| kept.text.is_empty())
    }

    /// The segment at `seq` of `direction`.
    pub(super) fn find(&self, direction: &Connection, seq: SeqNumber) -> Option<KeptPiece> {
        let slot = self.kept.iter().position(|kept| {
            !kept.text.is_empty() && kept.seq == seq && kept.direction == *direction
        })?;
        let kept = self.kept.get(slot)?;
        Some(KeptPiece {
            slot,
            seq: kept.seq,
            len: u32::try_from(kept.text.len()).ok()?,
            ts_ns: kept.ts_ns,
        })
    }

    /// The bytes of a segment, which is then no longer kept.
    pub(super) fn read(
        &mut self,
        piece: KeptPiece,
        texts: &mut Chunks,
        mut bytes: Vec<u8>,
    ) -> Vec<u8> {
        bytes.clear();
        if let Some(kept) = self.kept.get_mut(piece.slot) {
            let text = std::mem::take(&mut kept.text);
            texts.copy_to(&text, &mut bytes);
            texts.release(text);
        }
        bytes
    }
}
