//! Texts of bounded total size, in chunks.

/// Bytes of text in a chunk. Method, target, host and agent of most requests fit in one.
const CHUNK: usize = 252;

const NONE: u32 = 0;

#[derive(Clone, Copy)]
struct Chunk {
    next: u32,
    bytes: [u8; CHUNK],
}

impl std::fmt::Debug for Chunk {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Chunk")
            .field("next", &self.next)
            .finish_non_exhaustive()
    }
}

/// A text in a [`TextPool`]. Must be given back with [`TextPool::release`].
#[derive(Debug, Default, PartialEq, Eq)]
pub struct TextChain {
    first: u32,
    last: u32,
    len: u32,
}

impl TextChain {
    /// Bytes of text.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.len as usize
    }

    /// Whether there is no text.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }
}

/// A pool of 256-byte chunks from which texts of any length are made.
///
/// Shape: at most `capacity` chunks, reserved and not touched before they are used; freed chunks
/// are used again first, so that a quiet table stays within the caches. Cost: a copy.
#[derive(Debug)]
pub struct TextPool {
    chunks: Vec<Chunk>,
    capacity: usize,
    free: u32,
    free_len: usize,
}

impl TextPool {
    /// A pool of at most `capacity` chunks of 252 bytes of text.
    #[must_use]
    pub fn with_capacity(capacity: usize) -> Self {
        let capacity = capacity.clamp(1, 1 << 31);
        Self {
            chunks: Vec::with_capacity(capacity),
            capacity,
            free: NONE,
            free_len: 0,
        }
    }

    /// Whether `len` more bytes of new text would find room.
    #[inline]
    #[must_use]
    pub const fn has_room(&self, len: usize) -> bool {
        self.capacity - self.chunks.len() + self.free_len > len / CHUNK + 1
    }

    fn chunk_mut(&mut self, at: u32) -> Option<&mut Chunk> {
        self.chunks.get_mut((at as usize).checked_sub(1)?)
    }

    fn chunk(&self, at: u32) -> Option<&Chunk> {
        self.chunks.get((at as usize).checked_sub(1)?)
    }

    fn take_chunk(&mut self) -> Option<u32> {
        let at = self.free;
        if let Some(chunk) = self.chunk_mut(at) {
            self.free = std::mem::replace(&mut chunk.next, NONE);
            self.free_len -= 1;
            return Some(at);
        }
        if self.chunks.len() >= self.capacity {
            return None;
        }
        self.chunks.push(Chunk {
            next: NONE,
            bytes: [0; CHUNK],
        });
        u32::try_from(self.chunks.len()).ok()
    }

    /// Appends to a text; `false` where the pool is exhausted (the text then holds what fitted).
    #[inline]
    pub fn append(&mut self, text: &mut TextChain, mut bytes: &[u8]) -> bool {
        while !bytes.is_empty() {
            let used = text.len() % CHUNK;
            if used == 0 {
                let Some(at) = self.take_chunk() else {
                    return false;
                };
                match self.chunk_mut(text.last) {
                    Some(last) => last.next = at,
                    None => text.first = at,
                }
                text.last = at;
            }
            let (now, later) = bytes.split_at(bytes.len().min(CHUNK - used));
            if let Some(chunk) = self.chunk_mut(text.last)
                && let Some(room) = chunk.bytes.get_mut(used..used + now.len())
            {
                room.copy_from_slice(now);
            }
            // At most a few heads of 64 KiB: fits.
            text.len = text
                .len
                .saturating_add(u32::try_from(now.len()).unwrap_or(u32::MAX));
            bytes = later;
        }
        true
    }

    /// Writes several parts, one after the other, into a new text; `false` as [`TextPool::append`].
    #[inline]
    pub fn append_all<const N: usize>(&mut self, text: &mut TextChain, parts: [&[u8]; N]) -> bool {
        let total: usize = parts.iter().map(|part| part.len()).sum();
        if total > CHUNK || total == 0 || !text.is_empty() {
            return parts.into_iter().all(|part| self.append(text, part));
        }
        // The common case: one chunk, filled at once.
        let Some(at) = self.take_chunk() else {
            return false;
        };
        let Some(chunk) = self.chunk_mut(at) else {
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
        *text = TextChain {
            first: at,
            last: at,
            len: u32::try_from(total).unwrap_or(0),
        };
        true
    }

    /// The whole text: in place where it is one chunk, gathered in `scratch` where it is more.
    #[inline]
    pub fn read<'a>(&'a self, text: &TextChain, scratch: &'a mut Vec<u8>) -> &'a [u8] {
        if text.len() <= CHUNK {
            return self
                .chunk(text.first)
                .and_then(|c| c.bytes.get(..text.len()))
                .unwrap_or_default();
        }
        scratch.clear();
        self.copy_to(text, scratch);
        scratch
    }

    /// Appends the whole text to `out`.
    pub fn copy_to(&self, text: &TextChain, out: &mut Vec<u8>) {
        let mut left = text.len();
        let mut at = text.first;
        while let Some(chunk) = self.chunk(at).filter(|_| left > 0) {
            out.extend_from_slice(chunk.bytes.get(..left.min(CHUNK)).unwrap_or_default());
            left = left.saturating_sub(CHUNK);
            at = chunk.next;
        }
    }

    /// Gives the chunks of a text back.
    #[inline]
    #[expect(
        clippy::needless_pass_by_value,
        reason = "the text is no more: nobody may read it again"
    )]
    pub fn release(&mut self, text: TextChain) {
        let free = self.free;
        if let Some(last) = self.chunk_mut(text.last) {
            last.next = free;
            self.free = text.first;
            self.free_len += text.len().div_ceil(CHUNK);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_of_any_length_come_back_whole() {
        let mut pool = TextPool::with_capacity(300);
        let mut scratch = Vec::new();
        let mut texts = Vec::new();
        for len in [0, 1, 251, 252, 253, 504, 505, 20_000] {
            let bytes: Vec<u8> = (0..len).map(|n| u8::try_from(n % 251).unwrap()).collect();
            let mut text = TextChain::default();
            for part in bytes.chunks(97) {
                assert!(pool.append(&mut text, part));
            }
            texts.push((text, bytes));
        }
        for (text, bytes) in &texts {
            assert_eq!(pool.read(text, &mut scratch), bytes);
        }
        for (text, _) in texts {
            pool.release(text);
        }
        assert_eq!(pool.free_len, pool.chunks.len());
        let grown = pool.chunks.len();
        let mut text = TextChain::default();
        assert!(pool.append(&mut text, &[7; 20_000]));
        assert_eq!(pool.chunks.len(), grown, "freed chunks are used again");
        pool.release(text);
    }

    #[test]
    fn an_exhausted_pool_says_so_and_keeps_its_bound() {
        let mut pool = TextPool::with_capacity(3);
        let mut text = TextChain::default();
        assert!(pool.has_room(500));
        assert!(!pool.has_room(756));
        assert!(!pool.append(&mut text, &[1; 1000]));
        assert_eq!(text.len(), 756);
        assert!(!pool.has_room(0));
        pool.release(text);
        assert!(pool.has_room(500));
    }
}
