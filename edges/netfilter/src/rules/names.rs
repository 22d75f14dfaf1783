//! Names of rules as the kernel keeps them: in comments of set elements, which have no escapes.

use std::fmt::Write as _;

/// A name in letters that may stand between quotes; others as `%` and two hexadecimal digits.
pub(super) fn written(name: &str) -> String {
    let mut out = String::new();
    for byte in name.bytes() {
        if byte.is_ascii_alphanumeric() || b" ._:/+=,()[]@-".contains(&byte) {
            out.push(char::from(byte));
        } else {
            // Writing to a text cannot fail.
            write!(out, "%{byte:02x}").unwrap_or_default();
        }
    }
    out
}

/// The way back; `None` for what [`written`] does not write.
pub(super) fn read(written: &str) -> Option<String> {
    let mut out = Vec::new();
    let mut bytes = written.bytes();
    while let Some(byte) = bytes.next() {
        if byte == b'%' {
            let mut digit = || char::from(bytes.next()?).to_digit(16);
            let (high, low) = (digit()?, digit()?);
            out.push(u8::try_from(high * 16 + low).ok()?);
        } else {
            out.push(byte);
        }
    }
    String::from_utf8(out).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn quotes_and_ends_of_lines_are_written_otherwise() {
        assert_eq!(written("chat & \"files\"\n"), "chat %26 %22files%22%0a");
        assert_eq!(read("100%25"), Some("100%".to_owned()));
        assert_eq!(read("cut %2"), None);
        assert_eq!(read("%zz"), None);
    }

    proptest! {
        #[test]
        fn every_name_comes_back(name in "\\PC*|[ -~\\n\\t]*") {
            let text = written(&name);
            let is_plain = !text.contains(['"', '\n', '\\', '{', '}', ';', '#', '$', '*']);
            prop_assert!(is_plain);
            prop_assert_eq!(read(&text), Some(name));
        }
    }
}
