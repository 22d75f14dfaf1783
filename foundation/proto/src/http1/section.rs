//! Where does a section of field lines end? At its empty line, however the bytes are cut.

use memchr::memchr;

/// Finds the empty line that ends a head, a trailer section or the header of a part.
///
/// Lines end in CRLF, or in LF alone (RFC 9112 sec. 2.2). Every byte is looked at once, so a
/// section that comes byte by byte costs no more than one that comes whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SectionEnd(Position);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Position {
    LineStart,
    /// A CR stands alone in its line so far.
    LoneCr,
    InLine,
}

impl Default for SectionEnd {
    fn default() -> Self {
        Self(Position::LineStart)
    }
}

impl SectionEnd {
    /// The bytes of `bytes` that belong to the section with its empty line; `None` where it goes on.
    ///
    /// The next call takes the bytes that follow these.
    pub fn find(&mut self, bytes: &[u8]) -> Option<usize> {
        let mut at = 0;
        loop {
            let rest = bytes.get(at..).filter(|rest| !rest.is_empty())?;
            match (self.0, rest.first()?) {
                (Position::LineStart | Position::LoneCr, b'\n') => {
                    *self = Self::default();
                    return Some(at + 1);
                }
                (Position::LineStart, b'\r') => {
                    self.0 = Position::LoneCr;
                    at += 1;
                }
                _ => {
                    self.0 = Position::InLine;
                    at += memchr(b'\n', rest)? + 1;
                    self.0 = Position::LineStart;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn sections_end_at_their_empty_line() {
        for (bytes, end) in [
            (&b"a: b\r\n\r\nrest"[..], Some(8)),
            (b"a: b\n\nrest", Some(6)),
            (b"a: b\n\r\nrest", Some(7)),
            (b"\r\nrest", Some(2)),
            (b"a\r\r\n\r\r\n", None),
            (b"a: b\r\n", None),
            (b"", None),
        ] {
            assert_eq!(
                SectionEnd::default().find(bytes),
                end,
                "{}",
                bytes.escape_ascii()
            );
        }
    }

    proptest! {
        #[test]
        fn cuts_change_nothing(
            bytes in proptest::collection::vec(prop_oneof![Just(b'\r'), Just(b'\n'), Just(b'x')], 0..40),
            cuts in proptest::collection::vec(1_usize..6, 0..40),
        ) {
            let whole = SectionEnd::default().find(&bytes);
            let (mut section, mut rest, mut before, mut found) = (SectionEnd::default(), &bytes[..], 0, None);
            for cut in cuts.into_iter().chain([bytes.len()]) {
                let (piece, after) = rest.split_at(cut.min(rest.len()));
                found = section.find(piece).map(|at| before + at);
                before += piece.len();
                rest = after;
                if found.is_some() {
                    break;
                }
            }
            prop_assert_eq!(found, whole);
        }
    }
}
