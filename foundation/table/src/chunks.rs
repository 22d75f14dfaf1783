//! Bytes of any length in chunks of one size: what is freed fits whatever comes next.

use super::slab::NONE;

#[derive(Clone, Copy)]
struct Chunk<const N: usize> {
    next: u32,
    bytes: [u8; N],
}

/// Bytes in a pool of [`Chunks`]: a list of chunks, all full but the last. Must be given back with
/// [`Chunks::release`].
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Chain {
    first: u32,
    last: u32,
    len: u32,
}

impl Default for Chain {
    #[inline]
    fn default() -> Self {
        Self::new()
    }
}

impl Chain {
    /// No bytes, no chunks.
    #[inline]
    #[must_use]
    pub const fn new() -> Self {
        Self {
            first: NONE,
            last: NONE,
            len: 0,
        }
    }

    /// Bytes.
    #[inline]
    #[must_use]
    pub const fn len(&self) -> usize {
        self.len as usize
    }

    /// Whether there are none.
    #[inline]
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Number of the first chunk; [`NONE`] where there are no bytes.
    #[inline]
    #[must_use]
    pub const fn first(&self) -> u32 {
        self.first
    }
}

/// A pool of chunks of `N` bytes, from which chains of any length are made.
///
/// Shape: at most `capacity` chunks, reserved and not touched before they are used; freed chunks
/// are used again first, so that a quiet pool stays within the caches. A chunk is its bytes and a
/// link: 256 with the `N` that is usual, in which method, target, host and agent of most requests fit.
/// Cost: a copy.
pub struct Chunks<const N: usize = 252> {
    chunks: Vec<Chunk<N>>,
    capacity: u32,
    free: u32,
    free_len: u32,
}

impl<const N: usize> std::fmt::Debug for Chunks<N> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Chunks")
            .field("capacity", &self.capacity)
            .field("touched", &self.chunks.len())
            .field("free", &self.free_len)
            .finish_non_exhaustive()
    }
}

impl<const N: usize> Chunks<N> {
    /// A pool of at most `capacity` chunks (at least 1, at most 2^32 - 2).
    #[must_use]
    pub fn with_capacity(capacity: usize) -> Self {
        let capacity = u32::try_from(capacity)
            .unwrap_or(u32::MAX)
            .clamp(1, NONE - 1);
        Self {
            chunks: Vec::with_capacity(capacity as usize),
            capacity,
            free: NONE,
            free_len: 0,
        }
    }

    /// Bytes of memory that were touched so far.
    #[must_use]
    pub const fn memory_bytes(&self) -> usize {
        self.chunks.len() * size_of::<Chunk<N>>()
    }

    /// Chunks in use.
    #[inline]
    #[must_use]
    pub const fn in_use(&self) -> usize {
        self.chunks.len() - self.free_len as usize
    }

    #[inline]
    const fn unused(&self) -> usize {
        self.capacity as usize - self.in_use()
    }

    /// Whether `len` bytes of a new chain would find room.
    #[inline]
    #[must_use]
    pub const fn has_room(&self, len: usize) -> bool {
        self.unused() > len / N + 1
    }

    #[inline]
    fn take(&mut self) -> Option<u32> {
        let at = self.free;
        if let Some(chunk) = self.chunks.get_mut(at as usize) {
            self.free = std::mem::replace(&mut chunk.next, NONE);
            self.free_len -= 1;
            return Some(at);
        }
        let at = u32::try_from(self.chunks.len()).ok()?;
        if at >= self.capacity {
            return None;
        }
        self.chunks.push(Chunk {
            next: NONE,
            bytes: [0; N],
        });
        Some(at)
    }

    /// Appends to a chain; `false` where the pool is exhausted (the chain then holds what fitted).
    #[inline]
    pub fn append(&mut self, chain: &mut Chain, mut bytes: &[u8]) -> bool {
        while !bytes.is_empty() {
            let used = chain.len() % N;
            if used == 0 {
                let Some(at) = self.take() else {
                    return false;
                };
                match self.chunks.get_mut(chain.last as usize) {
                    Some(last) => last.next = at,
                    None => chain.first = at,
                }
                chain.last = at;
            }
            let (now, later) = bytes.split_at(bytes.len().min(N - used));
            if let Some(chunk) = self.chunks.get_mut(chain.last as usize)
                && let Some(room) = chunk.bytes.get_mut(used..used + now.len())
            {
                room.copy_from_slice(now);
            }
            // Chains of 4 GiB: the callers keep far below.
            chain.len = chain
                .len
                .saturating_add(u32::try_from(now.len()).unwrap_or(u32::MAX));
            bytes = later;
        }
        true
    }

    /// Appends to a chain: all of it, or nothing where the pool has no room.
    #[inline]
    pub fn append_whole(&mut self, chain: &mut Chain, bytes: &[u8]) -> bool {
        let free = chain.len().next_multiple_of(N) - chain.len();
        let needed = bytes.len().saturating_sub(free).div_ceil(N);
        needed <= self.unused() && self.append(chain, bytes)
    }

    /// Writes several parts, one after the other, into a new chain; `false` as [`Chunks::append`].
    #[inline]
    pub fn append_all<const P: usize>(&mut self, chain: &mut Chain, parts: [&[u8]; P]) -> bool {
        let total: usize = parts.iter().map(|part| part.len()).sum();
        if total > N || total == 0 || !chain.is_empty() {
            return parts.into_iter().all(|part| self.append(chain, part));
        }
        // The common case: one chunk, filled at once.
        let Some(at) = self.take() else {
            return false;
        };
        let Some(chunk) = self.chunks.get_mut(at as usize) else {
            return false;
        };
        let mut rest = chunk.bytes.as_mut_slice();
        for part in parts {
            let Some((room, after)) = rest.split_at_mut_checked(part.len()) else {
                return false;
            };
            room.copy_from_slice(part);
            rest = after;
        }
        *chain = Chain {
            first: at,
            last: at,
            len: u32::try_from(total).unwrap_or(0),
        };
        true
    }

    /// The bytes of a chunk, also those that nothing was written to, and the number of the next one.
    #[inline]
    #[must_use]
    pub fn chunk(&self, at: u32) -> Option<(&[u8; N], u32)> {
        let chunk = self.chunks.get(at as usize)?;
        Some((&chunk.bytes, chunk.next))
    }

    /// All bytes: in place where they are in one chunk, gathered in `scratch` where they are in more.
    #[inline]
    pub fn read<'a>(&'a self, chain: &Chain, scratch: &'a mut Vec<u8>) -> &'a [u8] {
        if chain.len() <= N {
            return self
                .chunk(chain.first)
                .and_then(|(bytes, _)| bytes.get(..chain.len()))
                .unwrap_or_default();
        }
        scratch.clear();
        self.copy_to(chain, scratch);
        scratch
    }

    /// Appends all bytes to `out`.
    pub fn copy_to(&self, chain: &Chain, out: &mut Vec<u8>) {
        let mut left = chain.len();
        let mut at = chain.first;
        while let Some((bytes, next)) = self.chunk(at).filter(|_| left > 0) {
            out.extend_from_slice(bytes.get(..left.min(N)).unwrap_or_default());
            left = left.saturating_sub(N);
            at = next;
        }
    }

    /// Gives the first chunk of a chain back, which must not be its last, and its bytes with it.
    pub fn drop_first(&mut self, chain: &mut Chain) {
        if chain.len() > N
            && let Some(chunk) = self.chunks.get_mut(chain.first as usize)
        {
            let next = std::mem::replace(&mut chunk.next, self.free);
            self.free = std::mem::replace(&mut chain.first, next);
            self.free_len += 1;
            chain.len -= u32::try_from(N).unwrap_or(0);
        }
    }

    /// Gives the chunks of a chain back.
    #[inline]
    #[expect(
        clippy::needless_pass_by_value,
        reason = "the chain is freed and must not be read again"
    )]
    pub fn release(&mut self, chain: Chain) {
        if let Some(last) = self.chunks.get_mut(chain.last as usize) {
            last.next = self.free;
            self.free = chain.first;
            self.free_len += u32::try_from(chain.len().div_ceil(N)).unwrap_or(0);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn bytes_of_any_length_come_back_whole() {
        let mut pool: Chunks = Chunks::with_capacity(300);
        assert_eq!(size_of::<Chunk<252>>(), 256);
        let mut scratch = Vec::new();
        let mut chains = Vec::new();
        for len in [0, 1, 251, 252, 253, 504, 505, 20_000] {
            let bytes: Vec<u8> = (0..len).map(|n| u8::try_from(n % 251).unwrap()).collect();
            let mut chain = Chain::default();
            for part in bytes.chunks(97) {
                assert!(pool.append(&mut chain, part));
            }
            chains.push((chain, bytes));
        }
        for (chain, bytes) in &chains {
            assert_eq!(pool.read(chain, &mut scratch), bytes);
        }
        for (chain, _) in chains {
            pool.release(chain);
        }
        assert_eq!(pool.in_use(), 0);
        let grown = pool.chunks.len();
        let mut chain = Chain::default();
        assert!(pool.append(&mut chain, &[7; 20_000]));
        assert_eq!(pool.chunks.len(), grown, "freed chunks are used again");
        pool.release(chain);
    }

    #[test]
    fn an_exhausted_pool_says_so_and_keeps_its_bound() {
        let mut pool: Chunks = Chunks::with_capacity(3);
        let mut chain = Chain::default();
        assert!(pool.has_room(500));
        assert!(!pool.has_room(756));
        assert!(!pool.append_whole(&mut chain, &[1; 757]));
        assert_eq!(pool.in_use(), 0);
        assert!(!pool.append(&mut chain, &[1; 1000]));
        assert_eq!(chain.len(), 756);
        assert!(!pool.has_room(0));
        pool.release(chain);
        assert!(pool.has_room(500));
        let mut chain = Chain::default();
        assert!(pool.append_whole(&mut chain, &[1; 756]));
        pool.release(chain);
    }

    proptest! {
        /// Chains that come and go keep their bytes, and the pool its bound.
        #[test]
        fn chains_keep_their_bytes(steps in prop::collection::vec((0_usize..3000, any::<bool>(), any::<u8>()), 1..60)) {
            let mut pool: Chunks<512> = Chunks::with_capacity(40);
            let mut held: Vec<(Chain, Vec<u8>)> = Vec::new();
            let mut out = Vec::new();
            for (len, takes, fill) in steps {
                if takes && !held.is_empty() {
                    let (mut chain, mut expected) = held.remove(usize::from(fill) % held.len());
                    if chain.len() > 512 && fill % 2 == 0 {
                        pool.drop_first(&mut chain);
                        expected.drain(..512);
                    }
                    prop_assert_eq!(pool.read(&chain, &mut out), &expected);
                    pool.release(chain);
                } else {
                    let bytes: Vec<u8> = (0..len).map(|n| fill.wrapping_add(n.to_le_bytes()[0])).collect();
                    let mut chain = Chain::new();
                    let fits = bytes.len().div_ceil(512) <= 40 - pool.in_use();
                    prop_assert_eq!(pool.append_whole(&mut chain, &bytes), fits);
                    if fits {
                        held.push((chain, bytes));
                    }
                }
                let used: usize = held.iter().map(|(_, bytes)| bytes.len().div_ceil(512)).sum();
                prop_assert_eq!(pool.in_use(), used);
                prop_assert!(pool.chunks.len() <= 40);
            }
        }
    }
}
