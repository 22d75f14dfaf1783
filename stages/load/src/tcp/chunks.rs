//! Bytes in flight: a bounded pool of small chunks, and runs of a stream made of them.

use linkweir_wire::SeqNumber;

use super::pool::NOBODY;

/// Bytes of a chunk: with its link 256. The heads of most requests fit in one or two.
pub(super) const CHUNK: u32 = 252;

#[derive(Clone, Copy)]
struct Chunk {
    next: u32,
    bytes: [u8; CHUNK as usize],
}

/// A run of a stream, from `start` to `end`: a list of chunks, all full but the last.
/// Must be given back with [`Chunks::release`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Run {
    first: u32,
    last: u32,
    /// Sequence number of the first byte in the first chunk.
    start: SeqNumber,
    end: SeqNumber,
}

impl Run {
    /// An empty run.
    pub(super) const fn at(seq: SeqNumber) -> Self {
        Self {
            first: NOBODY,
            last: NOBODY,
            start: seq,
            end: seq,
        }
    }

    /// Sequence number of the first byte; some before what was forgotten may still be here.
    pub(super) const fn start(&self) -> SeqNumber {
        self.start
    }

    /// Sequence number behind the last byte.
    pub(super) const fn end(&self) -> SeqNumber {
        self.end
    }
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
            chunk: NOBODY,
            start: SeqNumber(0),
        }
    }
}

/// The pool. Memory is reserved, and touched when it is used; freed chunks are used again first.
pub(super) struct Chunks {
    chunks: Vec<Chunk>,
    capacity: u32,
    free: u32,
    free_len: u32,
}

impl std::fmt::Debug for Chunks {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Chunks")
            .field("capacity", &self.capacity)
            .field("touched", &self.chunks.len())
            .field("free", &self.free_len)
            .finish_non_exhaustive()
    }
}

/// Bytes from `from` to `to`; 0 where `to` is not behind.
pub(super) fn span(from: SeqNumber, to: SeqNumber) -> u32 {
    u32::try_from(to - from).unwrap_or(0)
}

impl Chunks {
    /// A pool that holds about `bytes`.
    pub(super) fn with_bytes(bytes: u64) -> Self {
        let capacity = u32::try_from(bytes / u64::from(CHUNK)).unwrap_or(u32::MAX);
        let capacity = capacity.clamp(1, NOBODY - 1);
        Self {
            chunks: Vec::with_capacity(capacity as usize),
            capacity,
            free: NOBODY,
            free_len: 0,
        }
    }

    /// Bytes of memory that were touched so far.
    pub(super) const fn memory_bytes(&self) -> usize {
        self.chunks.len() * size_of::<Chunk>()
    }

    /// Chunks in use.
    pub(super) fn in_use(&self) -> u32 {
        u32::try_from(self.chunks.len())
            .unwrap_or(0)
            .saturating_sub(self.free_len)
    }

    fn take(&mut self) -> Option<u32> {
        if let Some(chunk) = self.chunks.get_mut(self.free as usize) {
            let at = std::mem::replace(&mut self.free, chunk.next);
            chunk.next = NOBODY;
            self.free_len -= 1;
            return Some(at);
        }
        let at = u32::try_from(self.chunks.len()).ok()?;
        if at >= self.capacity {
            return None;
        }
        self.chunks.push(Chunk {
            next: NOBODY,
            bytes: [0; CHUNK as usize],
        });
        Some(at)
    }

    /// Appends to a run: all of it, or nothing where the pool has no room.
    pub(super) fn append(&mut self, run: &mut Run, mut bytes: &[u8]) -> bool {
        let Ok(len) = u32::try_from(bytes.len()) else {
            return false;
        };
        // Sequence numbers compare within 2^31.
        if span(run.start, run.end).saturating_add(len) > 1 << 30 {
            return false;
        }
        let mut used = span(run.start, run.end) % CHUNK;
        if run.first != NOBODY && used == 0 {
            used = CHUNK;
        }
        let room = if run.first == NOBODY { 0 } else { CHUNK - used };
        let needed = len.saturating_sub(room).div_ceil(CHUNK);
        if needed > self.capacity - self.in_use() {
            return false;
        }
        while !bytes.is_empty() {
            if run.first == NOBODY || used == CHUNK {
                let Some(at) = self.take() else {
                    return false;
                };
                match self.chunks.get_mut(run.last as usize) {
                    Some(last) => last.next = at,
                    None => run.first = at,
                }
                run.last = at;
                used = 0;
            }
            let room = (CHUNK - used) as usize;
            let (now, later) = bytes.split_at(bytes.len().min(room));
            if let Some(chunk) = self.chunks.get_mut(run.last as usize)
                && let Some(place) = chunk
                    .bytes
                    .get_mut(used as usize..used as usize + now.len())
            {
                place.copy_from_slice(now);
            }
            let now = u32::try_from(now.len()).unwrap_or(0);
            used += now;
            run.end += now;
            bytes = later;
        }
        true
    }

    /// Gives the chunks back that lie wholly before `seq`.
    pub(super) fn forget_before(&mut self, run: &mut Run, cursor: &mut Cursor, seq: SeqNumber) {
        if !seq.before(run.end) {
            let end = run.end;
            self.release(std::mem::replace(run, Run::at(end)));
            *cursor = Cursor::default();
            return;
        }
        while span(run.start, seq) >= CHUNK
            && let Some(chunk) = self.chunks.get_mut(run.first as usize)
        {
            let next = std::mem::replace(&mut chunk.next, self.free);
            if cursor.chunk == run.first {
                *cursor = Cursor::default();
            }
            self.free = std::mem::replace(&mut run.first, next);
            self.free_len += 1;
            run.start += CHUNK;
        }
    }

    /// Gives all chunks of a run back.
    pub(super) fn release(&mut self, run: Run) {
        if let Some(last) = self.chunks.get_mut(run.last as usize) {
            last.next = self.free;
            self.free = run.first;
            self.free_len += span(run.start, run.end).div_ceil(CHUNK);
        }
    }

    /// `len` bytes of a run from `seq` on: in place where they lie in one chunk, gathered in
    /// `scratch` where they do not.
    pub(super) fn read<'a>(
        &'a self,
        run: &Run,
        cursor: &mut Cursor,
        seq: SeqNumber,
        len: u32,
        scratch: &'a mut Vec<u8>,
    ) -> &'a [u8] {
        if cursor.chunk == NOBODY || seq.before(cursor.start) {
            *cursor = Cursor {
                chunk: run.first,
                start: run.start,
            };
        }
        while span(cursor.start, seq) >= CHUNK
            && let Some(chunk) = self.chunks.get(cursor.chunk as usize)
        {
            cursor.chunk = chunk.next;
            cursor.start += CHUNK;
        }
        let skip = span(cursor.start, seq) as usize;
        let len = len.min(span(seq, run.end)) as usize;
        let Some(chunk) = self.chunks.get(cursor.chunk as usize) else {
            return &[];
        };
        if let Some(bytes) = chunk.bytes.get(skip..skip + len) {
            return bytes;
        }
        scratch.clear();
        scratch.extend_from_slice(chunk.bytes.get(skip..).unwrap_or_default());
        let mut next = chunk.next;
        while scratch.len() < len
            && let Some(chunk) = self.chunks.get(next as usize)
        {
            let more = (len - scratch.len()).min(chunk.bytes.len());
            scratch.extend_from_slice(chunk.bytes.get(..more).unwrap_or_default());
            next = chunk.next;
        }
        scratch
    }

    /// Shows the bytes of a run from `seq` on, in order, in pieces.
    pub(super) fn for_each(&self, run: &Run, seq: SeqNumber, mut show: impl FnMut(&[u8])) {
        let mut at = run.first;
        let mut start = run.start;
        while let Some(chunk) = self.chunks.get(at as usize) {
            let skip = span(start, seq) as usize;
            let used = span(start, run.end).min(CHUNK) as usize;
            if let Some(bytes) = chunk.bytes.get(skip..used)
                && !bytes.is_empty()
            {
                show(bytes);
            }
            start += CHUNK;
            at = chunk.next;
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
            let mut chunks = Chunks::with_bytes(40 * u64::from(CHUNK));
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
                        if chunks.append(&mut run, &bytes) {
                            model.extend_from_slice(&bytes);
                        } else {
                            prop_assert!(model.len() + bytes.len() > 38 * CHUNK as usize);
                        }
                    }
                    1 => {
                        let len = len.min(u32::try_from(model.len()).unwrap());
                        una += len;
                        model.drain(..len as usize);
                        chunks.forget_before(&mut run, &mut cursor, una);
                    }
                    _ => {
                        let from = (len as usize / 3).min(model.len());
                        let want = (len as usize).min(model.len() - from);
                        let seq = una + u32::try_from(from).unwrap();
                        let read = chunks.read(&run, &mut cursor, seq, u32::try_from(want).unwrap(), &mut scratch);
                        prop_assert_eq!(read, &model[from..from + want]);
                        let mut all = Vec::new();
                        chunks.for_each(&run, seq, |bytes| all.extend_from_slice(bytes));
                        prop_assert_eq!(&all, &model[from..]);
                    }
                }
                prop_assert_eq!(span(una, run.end()) as usize, model.len());
            }
            chunks.release(run);
            prop_assert_eq!(chunks.in_use(), 0);
        }
    }
}
