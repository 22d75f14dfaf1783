//! Memory for frames of any length, in blocks of one size: what is freed fits whatever comes next.

/// Bytes of a block: most frames of a client (requests, ACKs) take one.
const BLOCK: usize = 512;

/// The end of a chain.
const NONE: u32 = u32::MAX;

/// Chains of blocks.
#[derive(Debug, Clone)]
pub(super) struct Blocks {
    bytes: Vec<u8>,
    /// The block after each, in its chain or among the free ones.
    next: Vec<u32>,
    free: u32,
    used: usize,
    most: usize,
}

impl Blocks {
    /// At most so many bytes, in whole blocks.
    pub(super) const fn new(most_bytes: usize) -> Self {
        let most = most_bytes / BLOCK;
        Self {
            bytes: Vec::new(),
            next: Vec::new(),
            free: NONE,
            used: 0,
            // A number must remain for the end of a chain.
            most: if most < NONE as usize {
                most
            } else {
                NONE as usize
            },
        }
    }

    /// Bytes of blocks in use.
    pub(super) const fn used_bytes(&self) -> usize {
        self.used * BLOCK
    }

    /// Copies bytes to blocks; their first, or `None` where there are not enough.
    pub(super) fn put(&mut self, bytes: &[u8]) -> Option<u32> {
        if self.used + bytes.len().div_ceil(BLOCK).max(1) > self.most {
            return None;
        }
        let mut first = NONE;
        // Backwards, so that each block knows the next.
        let chunks = bytes.chunks(BLOCK).rev();
        for chunk in chunks {
            let number = self.take()?;
            if let Some(next) = self.next.get_mut(number as usize) {
                *next = first;
            }
            let at = number as usize * BLOCK;
            let block = self.bytes.get_mut(at..at + chunk.len())?;
            block.copy_from_slice(chunk);
            first = number;
        }
        Some(first)
    }

    fn take(&mut self) -> Option<u32> {
        let number = if self.free == NONE {
            let number = u32::try_from(self.next.len()).ok()?;
            self.next.push(NONE);
            self.bytes.resize(self.bytes.len() + BLOCK, 0);
            number
        } else {
            let number = self.free;
            self.free = *self.next.get(number as usize)?;
            number
        };
        self.used += 1;
        Some(number)
    }

    /// Appends the first `len` bytes of a chain to `out`, and frees it.
    pub(super) fn drain(&mut self, first: u32, len: usize, out: &mut Vec<u8>) {
        let (mut number, mut left) = (first, len);
        while number != NONE {
            let at = number as usize * BLOCK;
            let part = left.min(BLOCK);
            out.extend_from_slice(self.bytes.get(at..at + part).unwrap_or_default());
            left -= part;
            let Some(next) = self.next.get_mut(number as usize) else {
                return;
            };
            let behind = std::mem::replace(next, self.free);
            self.free = number;
            self.used -= 1;
            number = behind;
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn chains_keep_their_bytes(steps in prop::collection::vec((0_usize..3000, any::<bool>(), any::<u8>()), 1..60)) {
            let most = 40 * BLOCK;
            let mut blocks = Blocks::new(most);
            let mut held: Vec<(u32, Vec<u8>)> = Vec::new();
            for (len, takes, fill) in steps {
                if takes && !held.is_empty() {
                    let (first, expected) = held.remove(usize::from(fill) % held.len());
                    let mut out = Vec::new();
                    blocks.drain(first, expected.len(), &mut out);
                    prop_assert_eq!(out, expected);
                } else {
                    let bytes: Vec<u8> = (0..len).map(|n| fill.wrapping_add(n.to_le_bytes()[0])).collect();
                    if let Some(first) = blocks.put(&bytes) {
                        held.push((first, bytes));
                    }
                }
                let used: usize = held.iter().map(|(_, bytes)| bytes.len().div_ceil(BLOCK)).sum();
                prop_assert_eq!(blocks.used_bytes(), used * BLOCK);
                prop_assert!(blocks.bytes.len() <= most);
            }
        }
    }
}
