//! Where a keyword may begin: a look at four bytes out of several, without the automaton.
//!
//! Every four bytes that can be met when one looks at each `step`-th place of a pattern are known: those
//! at its first `step` places. Where the text has others, no pattern begins at the `step` places before.
//! What it says is never that there is a pattern: the automaton says that.
//!
//! Four bytes are known where each of two tables has their bit, by a hash of its own. For most of a text only the
//! first table is read, for several places at a time, and all that is asked is whether any of them has its bit.

/// Bytes that are inspected.
const GRAM: usize = 4;
/// The widest step that is of use: further apart, the automaton has more to do for each hit than is saved.
const MAX_STEP: usize = 8;
/// Places that are inspected before one asks what was seen.
const AT_ONCE: usize = 8;
/// Bytes in which so many places lie, whatever the step.
const BLOCK: usize = (AT_ONCE - 1) * MAX_STEP + GRAM;
/// Bytes of a table, of a size that is known here, so that no place needs a check. With 1000 keywords the first
/// table has the bit of one look in 140 at other text, and the second leaves one in 600.
const BYTES: usize = 1 << 16;
/// Bits of a byte, to be read: a shift by what a hash says takes longer.
const BITS: [u8; 8] = [1, 2, 4, 8, 16, 32, 64, 128];
/// Fibonacci hashing: the upper half of a product of 32 bits depends on all bits.
const FIRST: u32 = 0x9E37_79B9;
const SECOND: u32 = 0x85EB_CA6B;

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
    first: Bits<FIRST>,
    second: Bits<SECOND>,
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
        let mut filter = Self {
            first: Bits::default(),
            second: Bits::default(),
            step,
        };
        for pattern in patterns {
            for gram in pattern.windows(GRAM).take(step).filter_map(gram) {
                filter.first.set(gram);
                filter.second.set(gram);
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
            let Some(block) = places.first_chunk::<BLOCK>() else {
                return self.find_one_by_one(places, begin, STEP);
            };
            let at = |place: usize| block.get(place * STEP..).and_then(gram);
            let seen = |place: usize| at(place).map_or(0, |gram| self.first.look(gram));
            if (0..AT_ONCE).fold(0, |all, place| all | seen(place)) != 0
                && let Some(place) = self.first_known(block, STEP)
            {
                return Suspicion::at(begin + place * STEP, STEP);
            }
            begin += AT_ONCE * STEP;
        }
    }

    /// The first place of a block at which four bytes are known.
    #[cold]
    #[inline(never)]
    fn first_known(&self, block: &[u8; BLOCK], step: usize) -> Option<usize> {
        let at = |place: &usize| block.get(place * step..).and_then(gram);
        (0..AT_ONCE).find(|place| at(place).is_some_and(|gram| self.knows(gram)))
    }

    /// The last places of a text, from `begin` on.
    fn find_one_by_one(&self, mut places: &[u8], mut begin: usize, step: usize) -> Suspicion {
        while let Some(gram) = gram(places) {
            if self.knows(gram) {
                return Suspicion::at(begin, step);
            }
            places = places.get(step..).unwrap_or_default();
            begin += step;
        }
        Suspicion { begin, end: None }
    }

    /// Whether four bytes may be known.
    #[inline]
    fn knows(&self, gram: u32) -> bool {
        self.first.look(gram) != 0 && self.second.look(gram) != 0
    }
}

impl Suspicion {
    /// At `step` places from `begin` on.
    const fn at(begin: usize, step: usize) -> Self {
        Self {
            begin,
            end: Some(begin + step),
        }
    }
}

/// A bit for each four bytes, by a hash of them.
#[derive(Debug, Clone)]
struct Bits<const HASH: u32>(Box<[u8; BYTES]>);

impl<const HASH: u32> Default for Bits<HASH> {
    fn default() -> Self {
        Self(Box::new([0; BYTES]))
    }
}

impl<const HASH: u32> Bits<HASH> {
    fn set(&mut self, gram: u32) {
        let (place, bit) = Self::place(gram);
        if let Some(byte) = self.0.get_mut(place) {
            *byte |= bit;
        }
    }

    /// The bit of four bytes where it is set, else 0.
    #[inline]
    fn look(&self, gram: u32) -> u8 {
        let (place, bit) = Self::place(gram);
        self.0.get(place).copied().unwrap_or(0) & bit
    }

    #[inline]
    fn place(gram: u32) -> (usize, u8) {
        let hash = gram.wrapping_mul(HASH);
        let bit = BITS.get((hash >> 13 & 7) as usize).copied().unwrap_or(0);
        ((hash >> 16) as usize, bit)
    }
}

/// Four bytes as a number in which upper and lower case of ASCII are the same (and other pairs too).
#[inline]
fn gram(bytes: &[u8]) -> Option<u32> {
    let bytes = bytes.first_chunk::<GRAM>()?;
    Some(u32::from_le_bytes(*bytes) | 0x2020_2020)
}
