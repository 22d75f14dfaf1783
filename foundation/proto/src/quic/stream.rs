//! The handshake stream, put together from CRYPTO frames in any order.

use crate::tls::reader::Reader;

/// Bytes of the stream that are kept: the largest hellos have some four thousand.
pub(super) const STREAM: usize = 8192;
/// Pieces that do not touch each other: some clients cut their hello into ten and shuffle them.
const PIECES: usize = 32;

/// The beginning of the stream of handshake messages of one side and level.
///
/// Shape: 8 KiB, of fixed size.
#[derive(Debug, Clone)]
pub struct CryptoStream {
    bytes: [u8; STREAM],
    /// Start and end of what is there, in order, none touching the next.
    pieces: [(u16, u16); PIECES],
    count: usize,
}

impl Default for CryptoStream {
    fn default() -> Self {
        Self::new()
    }
}

impl CryptoStream {
    /// Nothing there yet.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            bytes: [0; STREAM],
            pieces: [(0, 0); PIECES],
            count: 0,
        }
    }

    /// Forgets everything.
    pub const fn clear(&mut self) {
        self.count = 0;
    }

    /// Puts a piece where it belongs; what does not fit is left out.
    pub fn insert(&mut self, offset: u64, piece: &[u8]) {
        let Ok(from) = usize::try_from(offset) else {
            return;
        };
        let to = from.saturating_add(piece.len()).min(STREAM);
        let (Some(room), Some(piece)) = (
            self.bytes.get_mut(from..to),
            piece.get(..to.saturating_sub(from)),
        ) else {
            return;
        };
        // No more than `STREAM`.
        let (Ok(mut start), Ok(mut end)) = (u16::try_from(from), u16::try_from(to)) else {
            return;
        };
        if start == end {
            return;
        }
        // The pieces that it touches become one with it.
        let pieces = self.pieces.get(..self.count).unwrap_or_default();
        let first = pieces.partition_point(|piece| piece.1 < start);
        let touching = pieces.get(first..).unwrap_or_default();
        let touched = touching.partition_point(|piece| piece.0 <= end);
        if touched == 0 && self.count == PIECES {
            return;
        }
        for piece in touching.iter().take(touched) {
            start = start.min(piece.0);
            end = end.max(piece.1);
        }
        room.copy_from_slice(piece);
        let after = first + touched..self.count;
        let moved = after.len();
        self.pieces.copy_within(after, first + 1);
        if let Some(piece) = self.pieces.get_mut(first) {
            *piece = (start, end);
        }
        self.count = first + 1 + moved;
    }

    /// What is there without a hole.
    #[must_use]
    pub fn prefix(&self) -> &[u8] {
        let end = match self.pieces.first() {
            Some((0, end)) if self.count > 0 => usize::from(*end),
            _ => 0,
        };
        self.bytes.get(..end).unwrap_or_default()
    }
}

// Frames of Initial packets (RFC 9000 sec. 19): only CRYPTO is read.

/// Frames that are looked at in one packet: more are an attack, not a hello.
const MAX_FRAMES: usize = 512;

/// Gives the offset and the bytes of each CRYPTO frame to `on_crypto`.
pub(super) fn walk<'a>(frames: &'a [u8], mut on_crypto: impl FnMut(u64, &'a [u8])) {
    let mut reader = Reader::new(frames);
    for _ in 0..MAX_FRAMES {
        // PADDING, a byte each
        let padding = reader.rest().iter().take_while(|byte| **byte == 0).count();
        let _ = reader.take(padding);
        let next = match reader.u8() {
            // PING
            Some(0x01) => Some(()),
            Some(kind @ (0x02 | 0x03)) => ack(&mut reader, kind == 0x03),
            // CRYPTO; of Google's Q050 the number is 8, which nothing else in these packets has
            Some(0x06 | 0x08) => crypto(&mut reader, &mut on_crypto),
            _ => None,
        };
        if next.is_none() {
            return;
        }
    }
}

fn crypto<'a>(reader: &mut Reader<'a>, on_crypto: &mut impl FnMut(u64, &'a [u8])) -> Option<()> {
    let offset = reader.varint()?;
    let len = usize::try_from(reader.varint()?).ok()?;
    on_crypto(offset, reader.take(len)?);
    Some(())
}

pub(super) fn ack(reader: &mut Reader<'_>, has_ecn: bool) -> Option<()> {
    let _largest = reader.varint()?;
    let _delay = reader.varint()?;
    let ranges = reader.varint()?;
    let _first = reader.varint()?;
    for _ in 0..ranges.min(MAX_FRAMES as u64) {
        let _gap = reader.varint()?;
        let _len = reader.varint()?;
    }
    for _ in 0..if has_ecn { 3 } else { 0 } {
        let _count = reader.varint()?;
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn pieces_in_any_order_make_the_stream(
            cuts in proptest::collection::vec(0_usize..600, 0..28),
            order in any::<u64>(),
        ) {
            let whole: Vec<u8> = (0..600_u32).map(|n| n.to_le_bytes()[0]).collect();
            let mut cuts = cuts;
            cuts.extend([0, 600]);
            cuts.sort_unstable();
            let mut parts: Vec<(usize, usize)> =
                cuts.windows(2).map(|cut| (cut[0], (cut[1] + 3).min(600))).collect();
            let mut seed = order | 1;
            for at in (1..parts.len()).rev() {
                seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                parts.swap(at, usize::try_from(seed >> 33).unwrap() % (at + 1));
            }
            let mut stream = CryptoStream::new();
            for (from, to) in parts {
                stream.insert(from as u64, &whole[from..to]);
            }
            prop_assert_eq!(stream.prefix(), &whole[..]);
        }

        #[test]
        fn anything_goes(pieces in proptest::collection::vec((any::<u16>(), 0_usize..300), 0..100)) {
            let mut stream = CryptoStream::new();
            for (offset, len) in pieces {
                stream.insert(u64::from(offset) * 3, &vec![1; len]);
                prop_assert!(stream.prefix().iter().all(|byte| *byte == 1));
            }
            stream.insert(u64::MAX, &[1]);
        }
    }
}
