//! Escaping of bytes from the network.
//!
//! A field is first tested as a whole (sixteen bytes a step, no early exit, so that it vectorises);
//! nearly all fields are clean and are copied in one piece.

use linkweir_record::escape::hex;

/// A short text that is written again and again: copied in whole blocks, of which what is too much is cut
/// off again, which is cheaper than to copy just so many bytes.
#[derive(Debug)]
pub(crate) struct Piece {
    blocks: Box<[[u8; Self::BLOCK]]>,
    len: usize,
}

impl Piece {
    const BLOCK: usize = 32;

    pub(crate) fn new(text: &str) -> Self {
        let block = |part: &[u8]| {
            let mut block = [0; Self::BLOCK];
            for (to, from) in block.iter_mut().zip(part) {
                *to = *from;
            }
            block
        };
        Self {
            blocks: text.as_bytes().chunks(Self::BLOCK).map(block).collect(),
            len: text.len(),
        }
    }

    #[inline]
    pub(crate) fn push(&self, out: &mut Vec<u8>) {
        let len = out.len() + self.len;
        for block in &self.blocks {
            out.extend_from_slice(block);
        }
        out.truncate(len);
    }
}

/// Whether `is_special` holds for no byte of `bytes`.
#[inline]
pub(crate) fn is_clean(bytes: &[u8], is_special: impl Fn(u8) -> bool) -> bool {
    let fold = |part: &[u8]| part.iter().fold(false, |bad, b| bad | is_special(*b));
    if let Some(last) = bytes.last_chunk::<16>() {
        let mut bad = false;
        for chunk in bytes.chunks_exact(16) {
            if let Some(chunk) = chunk.first_chunk::<16>() {
                bad |= fold(chunk);
            }
        }
        // Overlaps the last whole step instead of a loop over the rest.
        return !(bad | fold(last));
    }
    if let (Some(first), Some(last)) = (bytes.first_chunk::<8>(), bytes.last_chunk::<8>()) {
        return !(fold(first) | fold(last));
    }
    !fold(bytes)
}

/// Bytes that are no text, as lower-case hexadecimal digits.
pub(crate) fn push_digits(out: &mut Vec<u8>, bytes: &[u8]) {
    out.extend(bytes.iter().flat_map(|byte| hex(*byte)));
}

/// `\xHH`.
pub(crate) fn push_hex(out: &mut Vec<u8>, byte: u8) {
    let [high, low] = hex(byte);
    out.extend_from_slice(&[b'\\', b'x', high, low]);
}

/// Copies `bytes`, writing those for which `is_special` holds as `\xHH`.
#[inline]
pub fn push_hex_escaped(out: &mut Vec<u8>, bytes: &[u8], is_special: impl Fn(u8) -> bool) {
    if is_clean(bytes, &is_special) {
        out.extend_from_slice(bytes);
    } else {
        push_slow(out, bytes, is_special);
    }
}

#[cold]
fn push_slow(out: &mut Vec<u8>, bytes: &[u8], is_special: impl Fn(u8) -> bool) {
    for &byte in bytes {
        if is_special(byte) {
            push_hex(out, byte);
        } else {
            out.push(byte);
        }
    }
}

/// Whether a byte is outside printable ASCII, `0x20..=0x7e`.
#[inline]
pub const fn is_unprintable(byte: u8) -> bool {
    byte.wrapping_sub(0x20) > 0x5e
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn pieces_are_written_as_they_are() {
        let text = "0123456789".repeat(10);
        let mut out = Vec::new();
        for len in 0..text.len() {
            let text = text.get(..len).unwrap();
            Piece::new(text).push(&mut out);
            assert_eq!(out, text.as_bytes());
            out.clear();
        }
    }

    #[test]
    fn every_place_is_tested() {
        for len in 0..70 {
            let mut bytes = vec![b'a'; len];
            assert!(is_clean(&bytes, is_unprintable));
            for at in 0..len {
                bytes[at] = 0x80;
                assert!(!is_clean(&bytes, is_unprintable), "{at} of {len}");
                bytes[at] = b'a';
            }
        }
    }

    proptest! {
        #[test]
        fn clean_is_what_it_says(bytes in prop::collection::vec(any::<u8>(), 0..40)) {
            prop_assert_eq!(is_clean(&bytes, is_unprintable), bytes.iter().all(|b| (0x20..=0x7e).contains(b)));
        }
    }
}
