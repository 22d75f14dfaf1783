//! Text from the network, made fit for people's screens and for JSON.

use std::fmt::Write as _;

/// Whether a character could act on a terminal, break a line or turn the direction of text.
fn is_unfit(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{200e}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{feff}')
}

/// Valid UTF-8 without control characters: every byte that is not part of valid UTF-8, or is part of
/// a control character or of one that turns the direction of text, becomes `\xHH`.
#[must_use]
pub fn clean(bytes: &[u8]) -> String {
    let mut out = String::with_capacity(bytes.len());
    let push_hex = |out: &mut String, byte: u8| {
        // Writing to a String cannot fail.
        write!(out, "\\x{byte:02x}").ok();
    };
    for chunk in bytes.utf8_chunks() {
        for c in chunk.valid().chars() {
            if is_unfit(c) {
                let mut buffer = [0; 4];
                c.encode_utf8(&mut buffer)
                    .bytes()
                    .for_each(|byte| push_hex(&mut out, byte));
            } else {
                out.push(c);
            }
        }
        chunk
            .invalid()
            .iter()
            .for_each(|byte| push_hex(&mut out, *byte));
    }
    out
}

/// For rates and shares, which need no more than 53 bits.
#[expect(
    clippy::cast_precision_loss,
    reason = "rates and shares need no more than 53 bits"
)]
pub(crate) const fn to_f64(count: u64) -> f64 {
    count as f64
}

/// `part` of `whole` in percent; 0 of nothing.
pub(crate) fn percent(part: u64, whole: u64) -> f64 {
    if whole == 0 {
        0.0
    } else {
        to_f64(part) * 100.0 / to_f64(whole)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn what_acts_on_a_screen_is_shown_as_bytes() {
        assert_eq!(clean(b"shop.example"), "shop.example");
        assert_eq!(clean("h\u{e9}".as_bytes()), "h\u{e9}");
        assert_eq!(clean(b"a\x1b[2J\xff\r\n"), "a\\x1b[2J\\xff\\x0d\\x0a");
        assert_eq!(clean("\u{202e}txt".as_bytes()), "\\xe2\\x80\\xaetxt");
    }

    proptest! {
        #[test]
        fn nothing_unfit_is_left(bytes in prop::collection::vec(any::<u8>(), 0..80)) {
            prop_assert!(!clean(&bytes).chars().any(is_unfit));
        }
    }
}
