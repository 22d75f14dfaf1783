//! Rows of a batch with texts, which stand in one arena.
//!
//! A batch of several kinds of rows has the arena in common, and uses [`Span`] alone.

/// Rows of numbers, each with `N` texts.
///
/// Shape: each row, `N` + 1 offsets, its texts.
#[derive(Debug, Clone)]
pub(crate) struct Rows<R, const N: usize> {
    rows: Vec<R>,
    spans: Vec<Span<N>>,
    arena: Vec<u8>,
}

/// Where the `N` texts of an entry stand in the arena.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Span<const N: usize> {
    start: u32,
    ends: [u32; N],
}

impl<const N: usize> Span<N> {
    /// Puts the texts into the arena; what does not fit in 4 GiB is empty.
    pub(crate) fn fill(arena: &mut Vec<u8>, texts: [&[u8]; N]) -> Self {
        let start = u32::try_from(arena.len()).unwrap_or(u32::MAX);
        let mut ends = [start; N];
        for (end, text) in ends.iter_mut().zip(texts) {
            arena.extend_from_slice(text);
            *end = u32::try_from(arena.len()).unwrap_or(start);
        }
        Self { start, ends }
    }

    /// The texts.
    pub(crate) fn texts<'a>(&self, arena: &'a [u8]) -> [&'a [u8]; N] {
        let mut from = self.start as usize;
        self.ends.map(|end| {
            let part = arena.get(from..end as usize).unwrap_or_default();
            from = end as usize;
            part
        })
    }
}

impl<R, const N: usize> Default for Rows<R, N> {
    fn default() -> Self {
        Self {
            rows: Vec::new(),
            spans: Vec::new(),
            arena: Vec::new(),
        }
    }
}

impl<R, const N: usize> Rows<R, N> {
    pub(crate) fn push(&mut self, row: R, texts: [&[u8]; N]) {
        self.rows.push(row);
        self.spans.push(Span::fill(&mut self.arena, texts));
    }

    #[inline]
    pub(crate) const fn len(&self) -> usize {
        self.rows.len()
    }

    /// A row and its texts.
    #[inline]
    pub(crate) fn get(&self, at: usize) -> Option<(&R, [&[u8]; N])> {
        Some((self.rows.get(at)?, self.spans.get(at)?.texts(&self.arena)))
    }

    pub(crate) fn clear(&mut self) {
        self.rows.clear();
        self.spans.clear();
        self.arena.clear();
    }

    pub(crate) fn memory_bytes(&self) -> usize {
        self.rows.len() * (size_of::<R>() + size_of::<Span<N>>()) + self.arena.len()
    }
}
