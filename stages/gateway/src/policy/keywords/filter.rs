//! Where a keyword may begin: a look at four bytes out of several, without the automaton.
//!
//! Every four bytes that can be met when one looks at each `step`-th place of a pattern are known: those
//! at its first `step` places. Where the text has others, no pattern begins at the `step` places before.
//! What it says is never that there is a pattern: the automaton says that.

/// Bytes that are inspected.
const GRAM: usize = 4;
/// The widest step that is of use: further apart, the automaton has more to do for each hit than is saved.
const MAX_STEP: usize = 8;
/// Places that are inspected before one asks what was seen.
const AT_ONCE: usize = 4;
/// Bytes in which so many places lie, whatever the step.
const BLOCK: usize = 32;
/// Words of the filter: 64 KiB, of a size that is known here, so that no place needs a check. With 1000
/// keywords one look in 300 at other text is a hit, with 10,000 one in 30.
const WORDS: usize = 1 << 13;

/// Places in a text at which a pattern may begin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Suspicion {
    /// None begins before, from where the search began.
    pub(super) begin: usize,
    /// Beyond it nothing has been inspected; nothing where the text is too short to know.
    pub(super) end: Option<usize>,
}

/// What the beginnings of all patterns look like.
#[derive(Debug, Clone)]
pub(super) struct Filter {
    /// A Bloom filter: two bits for each four bytes that are known, both in one word.
    words: Box<[u64; WORDS]>,
    step: usize,
}

impl Filter {
    /// A filter for patterns; `None` where one of them is too short.
    pub(super) fn new(patterns: &[Vec<u8>]) -> Option<Self> {
        let shortest = patterns.iter().map(Vec::len).min()?;
        let step = (shortest + 1).checked_sub(GRAM)?.min(MAX_STEP);
        if step == 0 {
            return None;
        }
        let of = |pattern: &Vec<u8>| -> Vec<u32> {
            let places = pattern.windows(GRAM).take(step);
            places.filter_map(gram).collect()
        };
        let mut grams: Vec<u32> = patterns.iter().flat_map(of).collect();
        grams.sort_unstable();
        grams.dedup();
        let mut filter = Self {
            words: Box::new([0; WORDS]),
            step,
        };
        for gram in grams {
            let hash = hash(gram);
            let place = filter.place(hash);
            if let Some(word) = filter.words.get_mut(place) {
                *word |= 1 << first(hash) | 1 << second(hash);
            }
        }
        Some(filter)
    }

    /// The first places from `from` on at which a pattern may begin.
    #[inline]
    pub(super) fn find(&self, text: &[u8], from: usize) -> Suspicion {
        match self.step {
            1 => self.find_by::<1>(text, from),
            2 => self.find_by::<2>(text, from),
            3 => self.find_by::<3>(text, from),
            4 => self.find_by::<4>(text, from),
            5 => self.find_by::<5>(text, from),
            6 => self.find_by::<6>(text, from),
            7 => self.find_by::<7>(text, from),
            _ => self.find_by::<MAX_STEP>(text, from),
        }
    }

    /// [`Filter::find`] for one step, so that a block is inspected without a loop.
    fn find_by<const STEP: usize>(&self, text: &[u8], from: usize) -> Suspicion {
        let mut begin = from;
        loop {
            let places = text.get(begin + STEP - 1..).unwrap_or_default();
            if let Some(block) = places.first_chunk::<BLOCK>() {
                let at = |place: usize| block.get(place * STEP..).and_then(gram);
                let seen = |place: usize| at(place).map_or(0, |gram| self.look(gram));
                let seen = (0..AT_ONCE).fold(0, |all, place| all | seen(place));
                if seen & 1 == 0 {
                    begin += AT_ONCE * STEP;
                    continue;
                }
            }
            let Some(gram) = gram(places) else {
                return Suspicion { begin, end: None };
            };
            if self.look(gram) & 1 != 0 {
                let end = Some(begin + STEP);
                return Suspicion { begin, end };
            }
            begin += STEP;
        }
    }

    /// Whether four bytes may be known: the lowest bit.
    #[inline]
    fn look(&self, gram: u32) -> u64 {
        let hash = hash(gram);
        let word = self.words.get(self.place(hash)).copied().unwrap_or(0);
        word >> first(hash) & word >> second(hash)
    }

    #[inline]
    #[expect(clippy::cast_possible_truncation, reason = "13 bits")]
    const fn place(&self, hash: u64) -> usize {
        // As many bits as number the words.
        (hash >> (u64::BITS - WORDS.trailing_zeros())) as usize
    }
}

/// Fibonacci hashing: the upper half of a product depends on all bits.
#[inline]
const fn hash(gram: u32) -> u64 {
    (gram as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15)
}

/// Bits of a word, from bits of the hash that do not choose the word.
#[inline]
const fn first(hash: u64) -> u64 {
    hash >> 42 & 63
}

#[inline]
const fn second(hash: u64) -> u64 {
    hash >> 36 & 63
}

/// Four bytes as a number in which upper and lower case of ASCII are the same (and other pairs too).
#[inline]
fn gram(bytes: &[u8]) -> Option<u32> {
    let bytes = bytes.first_chunk::<GRAM>()?;
    Some(u32::from_le_bytes(*bytes) | 0x2020_2020)
}
