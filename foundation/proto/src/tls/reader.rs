//! A cursor over bytes: numbers in network order and length-prefixed vectors (RFC 8446 sec. 3).

/// What was not read yet. Every read gives `None` where the bytes do not suffice, and then takes
/// none of them.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    pub(crate) const fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    /// What is left.
    pub(crate) const fn rest(&self) -> &'a [u8] {
        self.0
    }

    pub(crate) const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (array, rest) = self.0.split_first_chunk::<N>()?;
        self.0 = rest;
        Some(*array)
    }

    pub(crate) fn u8(&mut self) -> Option<u8> {
        self.array::<1>().map(|[byte]| byte)
    }

    pub(crate) fn u16(&mut self) -> Option<u16> {
        self.array().map(u16::from_be_bytes)
    }

    pub(crate) fn u24(&mut self) -> Option<u32> {
        self.array()
            .map(|[a, b, c]| u32::from_be_bytes([0, a, b, c]))
    }

    pub(crate) fn u32(&mut self) -> Option<u32> {
        self.array().map(u32::from_be_bytes)
    }

    /// A number of one, two, four or eight bytes (RFC 9000 sec. 16).
    pub(crate) fn varint(&mut self) -> Option<u64> {
        let first = *self.0.first()?;
        let len = 1_usize << (first >> 6);
        let bytes = self.take(len)?;
        let value = bytes
            .iter()
            .fold(0, |value, byte| value << 8 | u64::from(*byte));
        Some(value & (u64::MAX >> (66 - 8 * len)))
    }

    pub(crate) fn take(&mut self, len: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(len)?;
        self.0 = rest;
        Some(taken)
    }

    /// As much of `len` bytes as there is, and whether that is all.
    pub(crate) fn take_up_to(&mut self, len: usize) -> (&'a [u8], bool) {
        match self.take(len) {
            Some(taken) => (taken, true),
            None => (std::mem::take(&mut self.0), false),
        }
    }

    /// A vector whose length is one byte.
    pub(crate) fn vector8(&mut self) -> Option<&'a [u8]> {
        let mut ahead = *self;
        let len = ahead.u8()?;
        let taken = ahead.take(usize::from(len))?;
        *self = ahead;
        Some(taken)
    }

    /// A vector whose length is two bytes.
    pub(crate) fn vector16(&mut self) -> Option<&'a [u8]> {
        let mut ahead = *self;
        let len = ahead.u16()?;
        let taken = ahead.take(usize::from(len))?;
        *self = ahead;
        Some(taken)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_variable_length() {
        // RFC 9000 appendix A.1
        let cases: [(&[u8], u64); 5] = [
            (
                &[0xc2, 0x19, 0x7c, 0x5e, 0xff, 0x14, 0xe8, 0x8c],
                151_288_809_941_952_652,
            ),
            (&[0x9d, 0x7f, 0x3e, 0x7d], 494_878_333),
            (&[0x7b, 0xbd], 15_293),
            (&[0x25], 37),
            (&[0x40, 0x25], 37),
        ];
        for (bytes, value) in cases {
            assert_eq!(Reader::new(bytes).varint(), Some(value));
        }
        assert_eq!(Reader::new(&[0x40]).varint(), None);
        assert_eq!(Reader::new(&[]).varint(), None);
    }

    #[test]
    fn a_read_that_fails_takes_nothing() {
        let mut reader = Reader::new(&[0, 3, 1, 2]);
        assert_eq!(reader.vector16(), None);
        assert_eq!(reader.u16(), Some(3));
        assert_eq!(reader.take_up_to(3), (&[1, 2][..], false));
        assert!(reader.is_empty());
    }
}
