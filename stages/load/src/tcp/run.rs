//! Bytes of a stream that are held in a pool of chunks: a run from one sequence number to another.

use linkweir_table::{Chain, Chunks, NONE};
use linkweir_wire::SeqNumber;

/// Bytes of a chunk: with its link 256. The heads of most requests fit in one or two.
const CHUNK: u32 = 252;

/// The pool that runs are in.
pub(super) type Pool = Chunks<{ CHUNK as usize }>;

/// A pool that holds about `bytes`.
pub(super) fn pool_of(bytes: u64) -> Pool {
    Pool::with_capacity(usize::try_from(bytes / u64::from(CHUNK)).unwrap_or(usize::MAX))
}

/// Bytes from `from` to `to`; 0 where `to` is not behind.
pub(super) fn span(from: SeqNumber, to: SeqNumber) -> u32 {
    u32::try_from(to - from).unwrap_or(0)
}

/// A run of a stream. Must be given back with [`Run::release`].
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Run {
    bytes: Chain,
    /// Sequence number of the first byte in the first chunk.
    start: SeqNumber,
}

/// Where the last read was, so that reading on does not begin at the front.
#[derive(Debug, Clone, Copy)]
pub(super) struct Cursor {
    chunk: u32,
    start: SeqNumber,
}

impl Default for Cursor {
    fn default() -> Self {
        Self {
            chunk: NONE,
            start: SeqNumber(0),
        }
    }
}

impl Run {
    /// An empty run.
    pub(super) const fn at(seq: SeqNumber) -> Self {
        Self {
            bytes: Chain::new(),
            start: seq,
        }
    }

    /// Sequence number of the first byte; some before what was forgotten may still be here.
    pub(super) const fn start(&self) -> SeqNumber {
        self.start
    }

    /// Sequence number behind the last byte.
    pub(super) fn end(&self) -> SeqNumber {
        self.start + u32::try_from(self.bytes.len()).unwrap_or(0)
    }

    /// Appends all of it, or nothing where the pool has no room.
    pub(super) fn append(&mut self, pool: &mut Pool, bytes: &[u8]) -> bool {
        // Sequence numbers compare within 2^31.
        self.bytes.len().saturating_add(bytes.len()) <= 1 << 30
            && pool.append_whole(&mut self.bytes, bytes)
    }

    /// Gives the chunks back that lie wholly before `seq`.
    pub(super) fn forget_before(&mut self, pool: &mut Pool, cursor: &mut Cursor, seq: SeqNumber) {
        if !seq.before(self.end()) {
            self.release(pool);
            *cursor = Cursor::default();
            return;
        }
        while span(self.start, seq) >= CHUNK {
            if cursor.chunk == self.bytes.first() {
                *cursor = Cursor::default();
            }
            pool.drop_first(&mut self.bytes);
            self.start += CHUNK;
        }
    }

    /// Gives all chunks back: an empty run at the end.
    pub(super) fn release(&mut self, pool: &mut Pool) {
        let end = self.end();
        pool.release(std::mem::replace(self, Self::at(end)).bytes);
    }

    /// `len` bytes from `seq` on: in place where they lie in one chunk, gathered in `scratch` where
    /// they do not.
    pub(super) fn read<'a>(
        &self,
        pool: &'a Pool,
        cursor: &mut Cursor,
        seq: SeqNumber,
        len: u32,
        scratch: &'a mut Vec<u8>,
    ) -> &'a [u8] {
        if cursor.chunk == NONE || seq.before(cursor.start) {
            *cursor = Cursor {
                chunk: self.bytes.first(),
                start: self.start,
            };
        }
        while span(cursor.start, seq) >= CHUNK
            && let Some((_, next)) = pool.chunk(cursor.chunk)
        {
            cursor.chunk = next;
            cursor.start += CHUNK;
        }
        let skip = span(cursor.start, seq) as usize;
        let len = len.min(span(seq, self.end())) as usize;
        let Some((bytes, mut next)) = pool.chunk(cursor.chunk) else {
            return &[];
        };
        if let Some(bytes) = bytes.get(skip..skip + len) {
            return bytes;
        }
        scratch.clear();
        scratch.extend_from_slice(bytes.get(skip..).unwrap_or_default());
        while scratch.len() < len
            && let Some((bytes, after)) = pool.chunk(next)
        {
            let more = (len - scratch.len()).min(bytes.len());
            scratch.extend_from_slice(bytes.get(..more).unwrap_or_default());
            next = after;
        }
        scratch
    }

    /// Shows the bytes from `seq` on, in order, in pieces.
    pub(super) fn for_each(&self, pool: &Pool, seq: SeqNumber, mut show: impl FnMut(&[u8])) {
        let mut at = self.bytes.first();
        let mut start = self.start;
        while let Some((bytes, next)) = pool.chunk(at) {
            let skip = span(start, seq) as usize;
            let used = span(start, self.end()).min(CHUNK) as usize;
            if let Some(bytes) = bytes.get(skip..used)
                && !bytes.is_empty()
            {
                show(bytes);
            }
            start += CHUNK;
            at = next;
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// A run behaves like a queue of bytes, across the wrap of sequence numbers, and leaves
        /// nothing behind.
        #[test]
        fn a_run_is_a_queue(
            start: u32,
            steps in proptest::collection::vec((0_u8..3, 0_u32..2000), 1..60),
        ) {
            let mut pool = pool_of(40 * u64::from(CHUNK));
            let mut run = Run::at(SeqNumber(start));
            let mut cursor = Cursor::default();
            let mut scratch = Vec::new();
            let mut una = SeqNumber(start);
            let mut model: Vec<u8> = Vec::new();
            let mut byte = 0_u8;
            for (step, len) in steps {
                match step {
                    0 => {
                        let bytes: Vec<u8> = (0..len).map(|_| { byte = byte.wrapping_add(7); byte }).collect();
                        if run.append(&mut pool, &bytes) {
                            model.extend_from_slice(&bytes);
                        } else {
                            prop_assert!(model.len() + bytes.len() > 38 * CHUNK as usize);
                        }
                    }
                    1 => {
                        let len = len.min(u32::try_from(model.len()).unwrap());
                        una += len;
                        model.drain(..len as usize);
                        run.forget_before(&mut pool, &mut cursor, una);
                    }
                    _ => {
                        let from = (len as usize / 3).min(model.len());
                        let want = (len as usize).min(model.len() - from);
                        let seq = una + u32::try_from(from).unwrap();
                        let read = run.read(&pool, &mut cursor, seq, u32::try_from(want).unwrap(), &mut scratch);
                        prop_assert_eq!(read, &model[from..from + want]);
                        let mut all = Vec::new();
                        run.for_each(&pool, seq, |bytes| all.extend_from_slice(bytes));
                        prop_assert_eq!(&all, &model[from..]);
                    }
                }
                prop_assert_eq!(span(una, run.end()) as usize, model.len());
            }
            run.release(&mut pool);
            prop_assert_eq!(pool.in_use(), 0);
        }
    }
}
