//! Base64 as MIME has it (RFC 2045 sec. 6.8), as an iterator: nothing is allocated.

/// The bytes that a text stands for, as far as it is whole.
///
/// White space between the letters is passed over; the end is the padding, any other byte, or the
/// end of the text.
#[derive(Debug, Clone)]
pub struct Base64<'a> {
    letters: std::slice::Iter<'a, u8>,
    /// Bits that were read and not given yet, the lowest ones.
    bits: u32,
    /// How many: fewer than 8.
    count: u32,
}

impl<'a> Base64<'a> {
    /// Decodes `text`.
    #[must_use]
    pub fn new(text: &'a [u8]) -> Self {
        Self {
            letters: text.iter(),
            bits: 0,
            count: 0,
        }
    }

    /// Six bits of the next letter.
    fn next_bits(&mut self) -> Option<u32> {
        let letter = self.letters.find(|letter| !letter.is_ascii_whitespace())?;
        let value = match letter {
            b'A'..=b'Z' => letter - b'A',
            b'a'..=b'z' => letter - b'a' + 26,
            b'0'..=b'9' => letter - b'0' + 52,
            b'+' => 62,
            b'/' => 63,
            _ => {
                self.letters = [].iter();
                return None;
            }
        };
        Some(u32::from(value))
    }
}

impl Iterator for Base64<'_> {
    type Item = u8;

    fn next(&mut self) -> Option<u8> {
        while self.count < 8 {
            self.bits = (self.bits << 6 | self.next_bits()?) & 0x3fff;
            self.count += 6;
        }
        self.count -= 8;
        let [.., byte] = (self.bits >> self.count).to_be_bytes();
        Some(byte)
    }
}
