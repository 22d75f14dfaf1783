//! Headers of a fixed length that the end of a segment may cut.

/// The first bytes of a header of `N` bytes whose others come with the next segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cut<const N: usize> {
    bytes: [u8; N],
    len: u8,
}

impl<const N: usize> Default for Cut<N> {
    fn default() -> Self {
        Self {
            bytes: [0; N],
            len: 0,
        }
    }
}

impl<const N: usize> Cut<N> {
    /// Takes the next header off `rest`; `None` where the bytes end before it does: they wait then.
    #[inline]
    pub fn take(&mut self, rest: &mut &[u8]) -> Option<[u8; N]> {
        if self.len == 0
            && let Some((header, behind)) = rest.split_first_chunk()
        {
            *rest = behind;
            return Some(*header);
        }
        let room = self.bytes.get_mut(usize::from(self.len)..)?;
        let count = room.len().min(rest.len());
        let (now, behind) = rest.split_at_checked(count)?;
        room.get_mut(..count)?.copy_from_slice(now);
        *rest = behind;
        // `N` at most, a few bytes.
        self.len += u8::try_from(count).unwrap_or(0);
        if usize::from(self.len) < N {
            return None;
        }
        self.len = 0;
        Some(self.bytes)
    }

    /// Bytes that wait.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.len as usize
    }

    /// Whether nothing waits.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Forgets what waits.
    pub const fn clear(&mut self) {
        self.len = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_in_any_pieces() {
        for at in 0..=5 {
            let mut cut = Cut::<5>::default();
            let (first, second) = [1, 2, 3, 4, 5, 6].split_at(at);
            let mut rest = first;
            let mut found = cut.take(&mut rest);
            if found.is_none() {
                assert_eq!((cut.len(), cut.is_empty()), (at, at == 0));
                rest = second;
                found = cut.take(&mut rest);
                assert_eq!(rest, [6]);
            }
            assert_eq!(found, Some([1, 2, 3, 4, 5]));
        }
        let mut cut = Cut::<2>::default();
        assert_eq!(cut.take(&mut [9].as_slice()), None);
        cut.clear();
        assert_eq!(cut.take(&mut [1, 2].as_slice()), Some([1, 2]));
    }
}
