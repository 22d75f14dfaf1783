//! Strings that were decoded before: many servers send the same ones with each response, and never name them by an index.

use super::huffman;

/// The longest that is remembered, coded, and how long it is then: no code has less than five bits.
const MAX_CODED: usize = 32;
const MAX_TEXT: usize = MAX_CODED * 8 / 5 + 1;
/// How many there are.
const SLOTS: usize = 128;

#[derive(Debug, Clone)]
struct Slot {
    coded: [u8; MAX_CODED],
    coded_len: u8,
    text_len: u8,
    text: [u8; MAX_TEXT],
}

/// The strings, each in the place that its bytes give it; a new one takes the place of another.
///
/// Shape: 11 KiB, with the first of them.
#[derive(Debug, Clone, Default)]
pub(crate) struct Known(Vec<Slot>);

impl Known {
    /// Decodes `coded` into `into`, instead of what is there; `None` where it is not of the code.
    pub(super) fn decode(&mut self, coded: &[u8], into: &mut Vec<u8>) -> Option<()> {
        let Some(slot) = self.slot(coded) else {
            return huffman::decode(coded, into);
        };
        if slot.coded.get(..usize::from(slot.coded_len)) == Some(coded) {
            into.clear();
            into.extend_from_slice(slot.text.get(..usize::from(slot.text_len))?);
            return Some(());
        }
        huffman::decode(coded, into)?;
        slot.coded_len = 0;
        slot.coded.get_mut(..coded.len())?.copy_from_slice(coded);
        slot.text.get_mut(..into.len())?.copy_from_slice(into);
        slot.text_len = u8::try_from(into.len()).ok()?;
        slot.coded_len = u8::try_from(coded.len()).ok()?;
        Some(())
    }

    /// The place of a string; none has one that is too long, or too short to be worth it.
    fn slot(&mut self, coded: &[u8]) -> Option<&mut Slot> {
        let first = coded.first_chunk().filter(|_| coded.len() <= MAX_CODED)?;
        let last = coded.last_chunk()?;
        if self.0.is_empty() {
            let empty = Slot {
                coded: [0; MAX_CODED],
                coded_len: 0,
                text_len: 0,
                text: [0; MAX_TEXT],
            };
            self.0.resize(SLOTS, empty);
        }
        // Whoever makes them meet loses what is remembered, no more.
        let mixed =
            u64::from(u32::from_le_bytes(*first)) << 32 | u64::from(u32::from_le_bytes(*last));
        let hash = mixed.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 57;
        self.0.get_mut(usize::try_from(hash).ok()? % SLOTS)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_remembered_is_what_is_decoded() {
        let mut known = Known::default();
        let (mut text, mut expected) = (Vec::new(), Vec::new());
        // Strings of every length, twice in a row, of few places.
        for round in 0_u32..4000 {
            let len = round as usize / 2 % 40;
            let bytes: Vec<u8> = (0..len)
                .map(|at| {
                    (round / 2 % 7 * 41).to_le_bytes()[0]
                        .wrapping_mul(u8::try_from(at).unwrap() | 1)
                })
                .collect();
            let is_decoded = huffman::decode(&bytes, &mut expected).is_some();
            assert_eq!(
                known.decode(&bytes, &mut text).is_some(),
                is_decoded,
                "{bytes:?}"
            );
            if is_decoded {
                assert_eq!(text, expected, "{bytes:?}");
            }
        }
        let (mut one, mut two) = (Vec::new(), Vec::new());
        let coded = [
            0xf1, 0xe3, 0xc2, 0xe5, 0xf2, 0x3a, 0x6b, 0xa0, 0xab, 0x90, 0xf4, 0xff,
        ];
        known.decode(&coded, &mut one).unwrap();
        known.decode(&coded, &mut two).unwrap();
        assert_eq!(
            (one.as_slice(), two.as_slice()),
            (&b"www.example.com"[..], &b"www.example.com"[..])
        );
    }
}
