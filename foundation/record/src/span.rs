//! The texts of an entry of a batch, in the one arena of all.

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
