//! How what we made is known again: by comments.
//!
//! A comment on the first rule of our chains, and on an element of our set, says which bits of marks
//! are ours and which plan it was: `linkweir gateway mask 0x0fff0000 plan 0123456789abcdef`. A comment
//! on a rule that leads to our chains says what we had to make for it:
//! `linkweir gateway made chain table`.

use std::fmt::Write as _;

use linkweir_engine::effect::MarkLayout;

const OURS: &str = "linkweir gateway";

/// What a comment of ours says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Sign {
    pub marks: MarkLayout,
    /// [`fingerprint`] of what was made.
    pub plan: u64,
}

impl Sign {
    pub(super) fn written(self) -> String {
        format!(
            "{OURS} mask {:#010x} plan {:016x}",
            self.marks.mask(),
            self.plan
        )
    }

    pub(super) fn read(comment: &str) -> Option<Self> {
        let rest = comment.strip_prefix(OURS)?.strip_prefix(" mask 0x")?;
        let (mask, plan) = rest.split_once(" plan ")?;
        let mask = u32::from_str_radix(mask, 16).ok()?;
        Some(Self {
            marks: MarkLayout::from_mask(mask).ok()?,
            plan: u64::from_str_radix(plan, 16).ok()?,
        })
    }
}

/// What was not there before, in the order of making.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub(super) enum Made {
    /// Everything was there.
    #[default]
    Nothing,
    /// The chain of the kernel that leads to ours.
    Chain,
    /// Its table, too.
    Table,
}

impl Made {
    const ALL: [Self; 3] = [Self::Nothing, Self::Chain, Self::Table];

    pub(super) fn written(self) -> String {
        let made = match self {
            Self::Nothing => "",
            Self::Chain => " made chain",
            Self::Table => " made chain table",
        };
        format!("{OURS}{made}")
    }

    pub(super) fn read(comment: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|made| made.written() == comment)
    }
}

/// A number of a text that another text hardly has (FNV-1a, 64 bits). Nobody is kept from making two
/// of the same: it tells one policy from the next, not friend from foe.
pub(super) fn fingerprint(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

/// A name in letters that may stand between quotes; others as `%` and two hexadecimal digits.
pub(super) fn written_name(name: &str) -> String {
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

/// The way back; `None` for what `written` does not write.
pub(super) fn read_name(written: &str) -> Option<String> {
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
    fn comments_are_read_back() {
        let sign = Sign {
            marks: MarkLayout::default(),
            plan: 0x12,
        };
        assert_eq!(
            sign.written(),
            "linkweir gateway mask 0x0fff0000 plan 0000000000000012"
        );
        assert_eq!(Sign::read(&sign.written()), Some(sign));
        for made in Made::ALL {
            assert_eq!(Made::read(&made.written()), Some(made));
            assert_eq!(Sign::read(&made.written()), None);
        }
        for other in [
            "",
            "linkweir",
            "linkweir gateway mask 0x1 plan 2",
            "linkweir gateways",
        ] {
            assert_eq!(Sign::read(other), None);
            assert_eq!(Made::read(other), None);
        }
    }

    #[test]
    fn the_fingerprint_is_the_same_in_every_version() {
        assert_eq!(fingerprint(""), 0xcbf2_9ce4_8422_2325);
        // Of the authors' own test vectors.
        assert_eq!(fingerprint("foobar"), 0x8594_4171_f739_67e8);
    }

    #[test]
    fn quotes_and_ends_of_lines_are_written_otherwise() {
        assert_eq!(
            written_name("chat & \"files\"\n"),
            "chat %26 %22files%22%0a"
        );
        assert_eq!(read_name("100%25"), Some("100%".to_owned()));
        assert_eq!(read_name("cut %2"), None);
        assert_eq!(read_name("%zz"), None);
    }

    proptest! {
        #[test]
        fn every_name_comes_back(name in "\\PC*|[ -~\\n\\t]*") {
            let text = written_name(&name);
            let is_plain = !text.contains(['"', '\n', '\\', '{', '}', ';', '#', '$', '*']);
            prop_assert!(is_plain);
            prop_assert_eq!(read_name(&text), Some(name));
        }
    }
}
