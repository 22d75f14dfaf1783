//! Identifiers as text.

/// Two hexadecimal digits for each byte.
pub(super) fn hexadecimal(bytes: &[u8]) -> Vec<u8> {
    let digit = |nibble: u8| match nibble {
        0..10 => b'0' + nibble,
        _ => b'a' + nibble - 10,
    };
    bytes
        .iter()
        .flat_map(|byte| [digit(byte >> 4), digit(byte & 15)])
        .collect()
}

#[cfg(test)]
mod tests {
    #[test]
    fn digits_are_those_of_sixteen() {
        assert_eq!(super::hexadecimal(&[0x00, 0x9a, 0xff]), b"009aff");
    }
}
