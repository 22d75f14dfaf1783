//! A short text that is made when it is read, and kept nowhere.

/// At most 30 bytes of ASCII, in the value itself.
///
/// Shape: 31 bytes, so that [`crate::Value`] has 32.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Short {
    len: u8,
    bytes: [u8; Self::MAX],
}

impl Short {
    /// The most bytes that one has.
    pub const MAX: usize = 30;

    /// Nothing.
    pub const EMPTY: Self = Self {
        len: 0,
        bytes: [0; Self::MAX],
    };

    /// Of these bytes; of more than there is room for, the first.
    #[must_use]
    pub fn new(text: &[u8]) -> Self {
        let mut bytes = [0; Self::MAX];
        let mut len = 0;
        for (to, from) in bytes.iter_mut().zip(text) {
            *to = *from;
            len += 1;
        }
        Self { len, bytes }
    }

    /// Its bytes.
    #[inline]
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        self.bytes.get(..usize::from(self.len)).unwrap_or_default()
    }
}

impl std::fmt::Debug for Short {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "\"{}\"", self.as_bytes().escape_ascii())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_stays_small() {
        assert_eq!(size_of::<crate::Value<'_>>(), 32);
        assert_eq!(Short::new(b"").as_bytes(), b"");
        assert_eq!(Short::new(&[b'a'; 40]).as_bytes(), &[b'a'; 30]);
        assert_eq!(format!("{:?}", Short::new(b"1:=")), "\"1:=\"");
    }
}
