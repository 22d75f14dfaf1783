//! What arrived ahead of a gap: held in a bounded pool that all connections share.

use linkweir_table::{NONE, Slab};
use linkweir_wire::SeqNumber;

use super::flight::Range;
use super::run::{Pool, Run, pool_of, span};

/// Pieces of one connection: a server that leaves more gaps than this sends the rest again.
const PIECES: u32 = 64;

/// Blocks that an acknowledgment has room for beside timestamps (RFC 2018 sec. 3).
pub(super) const BLOCKS: usize = 3;

/// A run ahead of a gap.
#[derive(Debug)]
struct Piece {
    bytes: Run,
    /// The next one, not before the end of this.
    next: u32,
    /// Whether the server's FIN stands behind it.
    has_fin: bool,
}

/// Pieces of all connections; each has a list, in order, that begins at its `held`.
#[derive(Debug)]
pub(super) struct Reassembly {
    chunks: Pool,
    pieces: Slab<Piece>,
}

/// What became of a segment ahead of a gap.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Hold {
    /// It is held, at least its beginning.
    Held,
    /// All of it was held already.
    Known,
    /// There was no room.
    NoRoom,
}

impl Reassembly {
    /// A pool of about `bytes`.
    pub(super) fn with_bytes(bytes: u64) -> Self {
        let pieces = u32::try_from(bytes / 1024).unwrap_or(u32::MAX);
        Self {
            chunks: pool_of(bytes),
            pieces: Slab::with_capacity(pieces.clamp(16, 1 << 24)),
        }
    }

    /// Bytes of memory that were touched so far.
    pub(super) fn memory_bytes(&self) -> usize {
        self.chunks.memory_bytes() + self.pieces.memory_bytes()
    }

    /// Pieces and chunks in use.
    #[cfg(test)]
    pub(super) fn in_use(&self) -> usize {
        self.pieces.len() + self.chunks.in_use()
    }

    /// Holds the payload of a segment that begins behind `RCV.NXT`.
    pub(super) fn hold(
        &mut self,
        held: &mut u32,
        mut seq: SeqNumber,
        mut payload: &[u8],
        mut has_fin: bool,
    ) -> Hold {
        // The last piece that does not begin behind us, and what it has of our bytes already.
        let mut before = NONE;
        let mut next = *held;
        let mut count = 0;
        while let Some(piece) = self.pieces.get(next)
            && !piece.bytes.start().after(seq)
        {
            let end = piece.bytes.end();
            if end.after(seq) {
                let known = (span(seq, end) as usize).min(payload.len());
                let (_, rest) = payload.split_at(known);
                seq += span(seq, end).min(u32::try_from(known).unwrap_or(0));
                payload = rest;
            }
            before = next;
            next = piece.next;
            count += 1;
        }
        // What lies behind the beginning of the next piece is sent again if it is needed.
        if let Some(piece) = self.pieces.get(next) {
            let room = span(seq, piece.bytes.start()) as usize;
            if payload.len() > room {
                payload = payload.get(..room).unwrap_or_default();
                has_fin = false;
            }
        }
        if payload.is_empty() && !has_fin {
            return Hold::Known;
        }
        if let Some(piece) = self.pieces.get_mut(before)
            && piece.bytes.end() == seq
            && !piece.has_fin
        {
            if !piece.bytes.append(&mut self.chunks, payload) {
                return Hold::NoRoom;
            }
            piece.has_fin = has_fin;
            return Hold::Held;
        }
        if payload.is_empty()
            && self
                .pieces
                .get(before)
                .is_some_and(|piece| piece.bytes.end() == seq)
        {
            // Only the FIN, again.
            return Hold::Known;
        }
        while let Some(piece) = self.pieces.get(next)
            && count < PIECES
        {
            next = piece.next;
            count += 1;
        }
        if count >= PIECES {
            return Hold::NoRoom;
        }
        self.insert(held, before, seq, payload, has_fin)
    }

    fn insert(
        &mut self,
        held: &mut u32,
        before: u32,
        seq: SeqNumber,
        payload: &[u8],
        has_fin: bool,
    ) -> Hold {
        let mut bytes = Run::at(seq);
        if self.pieces.is_full() || !bytes.append(&mut self.chunks, payload) {
            return Hold::NoRoom;
        }
        let next = self.pieces.get(before).map_or(*held, |piece| piece.next);
        let piece = Piece {
            bytes,
            next,
            has_fin,
        };
        let Some(at) = self.pieces.insert(piece) else {
            return Hold::NoRoom;
        };
        match self.pieces.get_mut(before) {
            Some(before) => before.next = at,
            None => *held = at,
        }
        Hold::Held
    }

    /// Shows what has become next at `nxt`, in order, and forgets it. Gives the number behind it and
    /// whether the FIN stands there.
    pub(super) fn take_ready(
        &mut self,
        held: &mut u32,
        mut nxt: SeqNumber,
        mut show: impl FnMut(&[u8]),
    ) -> (SeqNumber, bool) {
        let mut has_fin = false;
        while let Some(piece) = self.pieces.get_mut(*held)
            && !piece.bytes.start().after(nxt)
        {
            let (end, next) = (piece.bytes.end(), piece.next);
            has_fin |= piece.has_fin && !end.before(nxt);
            if end.after(nxt) {
                piece.bytes.for_each(&self.chunks, nxt, &mut show);
                nxt = end;
            }
            piece.bytes.release(&mut self.chunks);
            self.pieces.give_back(*held);
            *held = next;
        }
        (nxt, has_fin)
    }

    /// Gives everything of a connection back.
    pub(super) fn forget(&mut self, held: &mut u32) {
        while let Some(piece) = self.pieces.get_mut(*held) {
            let next = piece.next;
            piece.bytes.release(&mut self.chunks);
            self.pieces.give_back(*held);
            *held = next;
        }
    }

    /// The first ranges that are held, for selective acknowledgment: first the one with `latest`, as
    /// RFC 2018 sec. 4 asks, then the lowest.
    pub(super) fn blocks(&self, held: u32, latest: SeqNumber) -> ([Range; BLOCKS], usize) {
        let mut blocks = [(latest, latest); BLOCKS];
        let mut len = 0;
        let mut first = None;
        let mut at = held;
        while let Some(piece) = self.pieces.get(at) {
            let from = piece.bytes.start();
            let mut to = piece.bytes.end();
            at = piece.next;
            // Pieces that touch are one range.
            while let Some(next) = self.pieces.get(at)
                && next.bytes.start() == to
            {
                to = next.bytes.end();
                at = next.next;
            }
            if from == to {
                continue;
            }
            if first.is_none() && !latest.before(from) && latest.before(to) {
                first = Some((from, to));
            } else if let Some(place) = blocks.get_mut(len) {
                *place = (from, to);
                len += 1;
            }
        }
        if let Some(first) = first {
            len = (len + 1).min(BLOCKS);
            blocks.rotate_right(1);
            if let Some(place) = blocks.first_mut() {
                *place = first;
            }
        }
        (blocks, len)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn seq(n: u32) -> SeqNumber {
        SeqNumber(u32::MAX - 500) + n
    }

    #[test]
    fn the_latest_block_comes_first_and_neighbours_are_one() {
        let mut pool = Reassembly::with_bytes(1 << 20);
        let mut held = NONE;
        for n in [100, 300, 500, 700, 310] {
            assert_eq!(pool.hold(&mut held, seq(n), &[0; 10], false), Hold::Held);
        }
        let (blocks, len) = pool.blocks(held, seq(500));
        assert_eq!(
            blocks[..len],
            [
                (seq(500), seq(510)),
                (seq(100), seq(110)),
                (seq(300), seq(320))
            ]
        );
        assert_eq!(pool.hold(&mut held, seq(305), &[0; 9], false), Hold::Known);
        pool.forget(&mut held);
        assert_eq!(pool.in_use(), 0);
        assert_eq!(pool.blocks(held, seq(0)).1, 0);
    }

    #[test]
    fn pieces_and_bytes_are_bounded() {
        let mut pool = Reassembly::with_bytes(100 * 252);
        let mut held = NONE;
        let mut kept = 0;
        for n in 0..100 {
            if pool.hold(&mut held, seq(n * 2 + 1), b"x", false) == Hold::Held {
                kept += 1;
            }
        }
        assert_eq!(kept, u32::min(PIECES, 24));
        let mut other = NONE;
        assert_eq!(
            pool.hold(&mut other, seq(1), &[0; 60_000], false),
            Hold::NoRoom
        );
        pool.forget(&mut held);
        pool.forget(&mut other);
        assert_eq!(pool.in_use(), 0);
    }

    proptest! {
        /// Segments of a stream in any order and of any cut, again and again: what is shown is the
        /// stream, and nothing stays behind.
        #[test]
        fn the_stream_comes_out(cuts in proptest::collection::vec((0_u32..1000, 0_u32..300), 1..200)) {
            let stream: Vec<u8> = (0..1000_u32).map(|n| u8::try_from(n % 251).unwrap()).collect();
            let mut pool = Reassembly::with_bytes(1 << 20);
            let mut held = NONE;
            let mut shown = Vec::new();
            let mut ended = false;
            let again = (0..1000).step_by(100).rev().chain((0..1000).step_by(100));
            let whole = again.map(|from| (from, 100));
            for (from, len) in cuts.into_iter().chain(whole) {
                let to = (from + len).min(1000);
                let nxt = u32::try_from(shown.len()).unwrap();
                let fin = to == 1000;
                let bytes = &stream[from as usize..to as usize];
                if from > nxt {
                    let hold = pool.hold(&mut held, seq(from), bytes, fin);
                    prop_assert_ne!(hold, Hold::NoRoom);
                    continue;
                }
                if to > nxt {
                    shown.extend_from_slice(&stream[nxt as usize..to as usize]);
                    ended |= fin;
                    let nxt = seq(u32::try_from(shown.len()).unwrap());
                    let (nxt, fin) = pool.take_ready(&mut held, nxt, |bytes| shown.extend_from_slice(bytes));
                    ended |= fin;
                    prop_assert_eq!(nxt, seq(u32::try_from(shown.len()).unwrap()));
                }
                prop_assert_eq!(&shown[..], &stream[..shown.len()]);
            }
            prop_assert_eq!(shown.len(), 1000);
            prop_assert!(ended);
            prop_assert_eq!(pool.in_use(), 0);
        }
    }
}
