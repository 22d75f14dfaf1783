//! Lines of a head, found 64 bytes at a time.
//!
//! A head has some ten short lines; a search call for each costs more than the search. One mask of
//! all line feeds in a block of 64 bytes makes a line cost a few instructions.

use wide::u8x16;

/// Iterator over the lines of a head, without their line feeds.
///
/// A line that is not ended is not given.
#[derive(Debug, Clone)]
pub(super) struct Lines<'a> {
    bytes: &'a [u8],
    /// Where the block of `feeds` begins.
    block: usize,
    /// Line feeds of the block that were not passed yet, one bit a byte.
    feeds: u64,
    /// Where the next line begins.
    start: usize,
    is_folded: bool,
}

const BLOCK: usize = 64;

/// One bit a byte: which are line feeds.
#[inline]
fn feeds_of(block: &[u8; BLOCK]) -> u64 {
    let feed = u8x16::splat(b'\n');
    let (quarters, _) = block.as_chunks::<16>();
    quarters.iter().rev().fold(0, |mask, quarter| {
        let found = u8x16::new(*quarter).simd_eq(feed).to_bitmask();
        mask << 16 | u64::from(found)
    })
}

/// The feeds of the bytes from `at` on, as far as one block goes.
#[inline]
fn feeds_at(bytes: &[u8], at: usize) -> Option<u64> {
    let rest = bytes.get(at..).filter(|rest| !rest.is_empty())?;
    if let Some(block) = rest.first_chunk::<BLOCK>() {
        return Some(feeds_of(block));
    }
    // The last block: read it with what is before it, and push that out.
    let before = BLOCK - rest.len();
    if let Some(block) = bytes.last_chunk::<BLOCK>() {
        return Some(feeds_of(block) >> before);
    }
    let mut block = [0; BLOCK];
    block.get_mut(..rest.len())?.copy_from_slice(rest);
    Some(feeds_of(&block))
}

impl<'a> Lines<'a> {
    #[inline]
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Self {
            bytes,
            block: 0,
            feeds: feeds_at(bytes, 0).unwrap_or(0),
            start: 0,
            is_folded: false,
        }
    }

    /// `line`, which was given last, less its CR, with the lines that continue it (`obs-fold`,
    /// RFC 9112 sec. 5.2) as far as they are ended.
    #[inline]
    pub(super) fn whole(&mut self, line: &'a [u8]) -> &'a [u8] {
        if self.goes_on() {
            self.unfold(line)
        } else {
            line
        }
    }

    #[inline]
    fn goes_on(&self) -> bool {
        matches!(self.bytes.get(self.start), Some(b' ' | b'\t'))
    }

    #[cold]
    fn unfold(&mut self, line: &'a [u8]) -> &'a [u8] {
        let start = self.end().saturating_sub(line.len());
        while self.goes_on() && self.next().is_some() {}
        self.is_folded = true;
        self.bytes.get(start..self.end()).unwrap_or(line)
    }

    /// Where the line that was given last ends, less its CR.
    fn end(&self) -> usize {
        let end = self.start.saturating_sub(1);
        let line = self.bytes.get(..end).unwrap_or_default();
        end - usize::from(line.ends_with(b"\r"))
    }

    /// Whether a line was given with others that continue it.
    #[inline]
    pub(super) const fn is_folded(&self) -> bool {
        self.is_folded
    }

    /// Bytes passed so far: up to and with the last line feed.
    #[inline]
    pub(super) const fn passed(&self) -> usize {
        self.start
    }
}

impl<'a> Iterator for Lines<'a> {
    type Item = &'a [u8];

    #[inline]
    fn next(&mut self) -> Option<&'a [u8]> {
        while self.feeds == 0 {
            self.block += BLOCK;
            self.feeds = feeds_at(self.bytes, self.block)?;
        }
        let end = self.block + self.feeds.trailing_zeros() as usize;
        self.feeds &= self.feeds - 1;
        let line = self.bytes.get(self.start..end)?;
        self.start = end + 1;
        Some(line)
    }
}

/// `tchar` of RFC 9110 sec. 5.6.2.
static TCHAR: [bool; 256] = {
    let mut table = [false; 256];
    let mut byte = 0_u8;
    loop {
        #[expect(
            clippy::indexing_slicing,
            reason = "a u8 is within 256 entries; evaluated at compile time"
        )]
        {
            table[byte as usize] = byte.is_ascii_alphanumeric()
                || matches!(
                    byte,
                    b'!' | b'#'
                        | b'$'
                        | b'%'
                        | b'&'
                        | b'\''
                        | b'*'
                        | b'+'
                        | b'-'
                        | b'.'
                        | b'^'
                        | b'_'
                        | b'`'
                        | b'|'
                        | b'~'
                );
        }
        if byte == 255 {
            break;
        }
        byte += 1;
    }
    table
};

/// Whether a byte may stand in a method.
#[inline]
pub(super) fn is_tchar(byte: u8) -> bool {
    TCHAR.get(usize::from(byte)).copied().unwrap_or(false)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn the_same_lines_as_a_split(bytes in proptest::collection::vec(prop_oneof![3 => Just(b'x'), 1 => Just(b'\n')], 0..400)) {
            let mut lines = Lines::new(&bytes);
            let found: Vec<&[u8]> = lines.by_ref().collect();
            let mut split: Vec<&[u8]> = bytes.split(|b| *b == b'\n').collect();
            let rest = split.pop().unwrap_or_default();
            prop_assert_eq!(found, split);
            prop_assert_eq!(lines.passed(), bytes.len() - rest.len());
        }
    }
}
