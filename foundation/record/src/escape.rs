//! Bytes as hexadecimal digits, and what of a text must not reach a screen.

/// The two lower-case hexadecimal digits of a byte.
#[must_use]
pub const fn hex(byte: u8) -> [u8; 2] {
    const fn digit(nibble: u8) -> u8 {
        if nibble < 10 {
            b'0' + nibble
        } else {
            b'a' + nibble - 10
        }
    }
    [digit(byte >> 4), digit(byte & 15)]
}

/// Bytes in lower-case hexadecimal digits.
#[must_use]
pub fn hex_digits(bytes: &[u8]) -> String {
    let digits = bytes.iter().flat_map(|byte| hex(*byte));
    digits.map(char::from).collect()
}

/// Appends a byte as `\xHH`.
pub fn push_hex(out: &mut String, byte: u8) {
    out.push_str("\\x");
    out.extend(hex(byte).map(char::from));
}

/// Whether a character could act on a terminal, break a line or turn the direction of text.
#[must_use]
pub fn is_unfit(letter: char) -> bool {
    letter.is_control()
        || matches!(letter, '\u{200e}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{feff}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_are_those_of_the_standard_library() {
        let all: Vec<u8> = (0..=255).collect();
        let want: String = all.iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(hex_digits(&all), want);
        let mut out = String::from("a");
        push_hex(&mut out, 0x0f);
        assert_eq!(out, "a\\x0f");
        assert!(is_unfit('\u{202e}') && is_unfit('\x1b') && !is_unfit('é'));
    }
}
