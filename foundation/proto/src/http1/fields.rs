//! The field lines of a head, one after the other, for those who need more than the common ones.

use super::lines::Lines;

/// A field line (RFC 9112 sec. 5), with the lines that continue it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Field<'a> {
    /// The name as it was sent; names are case-insensitive.
    pub name: &'a [u8],
    /// The value without the white space around it. Where it is folded, the line ends are in it and
    /// stand for blanks.
    pub value: &'a [u8],
    /// Whether it goes on in further lines (`obs-fold`, RFC 9112 sec. 5.2).
    pub is_folded: bool,
    /// Whether white space stands between name and colon, which a request must not have (sec. 5.1).
    pub has_blank_before_colon: bool,
    /// Whether white space stands behind the value, or other than blanks and tabs before it: not all clients leave it out (RFC
    /// 9110 sec. 5.5 says that it is not a part of the value).
    pub has_odd_blank: bool,
}

impl Field<'_> {
    /// Whether the field has this name.
    #[must_use]
    pub fn is(&self, name: &[u8]) -> bool {
        self.name.eq_ignore_ascii_case(name)
    }
}

/// Iterator over the field lines of a whole head.
///
/// Lines without a colon are passed over, and so are lines that begin with white space where no
/// field is before them (RFC 9112 sec. 2.2).
#[derive(Debug, Clone)]
pub struct Fields<'a> {
    section: &'a [u8],
    /// Offset of the next line.
    at: usize,
    lines: Lines<'a>,
}

impl<'a> Fields<'a> {
    /// The fields of a head: what is behind its start line.
    #[must_use]
    pub fn of_head(head: &'a [u8]) -> Self {
        let start = memchr::memchr(b'\n', head).map_or(head.len(), |end| end + 1);
        Self::of_section(head.get(start..).unwrap_or_default())
    }

    /// The fields of a section without start line: trailers, headers of parts.
    #[must_use]
    pub fn of_section(section: &'a [u8]) -> Self {
        Self {
            section,
            at: 0,
            lines: Lines::new(section),
        }
    }

    /// Passes the lines that begin with white space; says whether there was one.
    fn pass_folds(&mut self) -> bool {
        let from = self.at;
        while matches!(self.section.get(self.at), Some(b' ' | b'\t')) {
            if self.lines.next().is_none() {
                self.at = self.section.len();
                break;
            }
            self.at = self.lines.passed();
        }
        self.at > from
    }
}

impl<'a> Iterator for Fields<'a> {
    type Item = Field<'a>;

    fn next(&mut self) -> Option<Field<'a>> {
        loop {
            self.pass_folds();
            let start = self.at;
            let line = self.lines.next()?;
            self.at = self.lines.passed();
            if line.is_empty() || line == b"\r" {
                return None;
            }
            let is_folded = self.pass_folds();
            let whole = self.section.get(start..self.at)?;
            let Some(colon) = memchr::memchr(b':', line) else {
                continue;
            };
            let (name, value) = whole.split_at_checked(colon)?;
            let trimmed = name.trim_ascii_end();
            let raw = value.get(1..)?;
            let value = raw.trim_ascii();
            return Some(Field {
                name: trimmed,
                value,
                has_odd_blank: !value.is_empty() && has_odd_blank(raw),
                is_folded,
                has_blank_before_colon: trimmed.len() != name.len(),
            });
        }
    }
}

/// Whether the value of a field, with its line end, begins otherwise than with blanks and tabs, or ends in white space.
fn has_odd_blank(raw: &[u8]) -> bool {
    let line = raw.strip_suffix(b"\n").unwrap_or(raw);
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    let is_blank = |byte: &&u8| matches!(byte, b' ' | b'\t');
    let first = line.iter().find(|byte| !is_blank(byte));
    line.last().is_some_and(u8::is_ascii_whitespace) || first.is_some_and(u8::is_ascii_whitespace)
}

/// What in a whole head is no start line and no field line of HTTP, whatever the fields mean: some clients end a
/// line at a CR alone, a text at a NUL, or the fields at a line without a colon or with a name that is none (RFC 9112 sec. 2.2
/// and 5, RFC 9110 sec. 5.5). Nothing where all is well.
#[must_use]
pub fn head_fault(head: &[u8]) -> Option<&'static str> {
    if let Some(fault) = byte_fault(head, true) {
        return Some(fault);
    }
    let mut lines = head.split(|byte| *byte == b'\n').skip(1);
    let mut is_first = true;
    while let Some(line) = lines.next().filter(|line| !matches!(line, [] | [b'\r'])) {
        match line {
            [b' ' | b'\t', ..] if is_first => return Some("a field that begins with white space"),
            [b' ' | b'\t', ..] => {}
            _ => match memchr::memchr(b':', line).and_then(|colon| line.get(..colon)) {
                None => return Some("a line without a colon"),
                Some(name) if !name.iter().all(u8::is_ascii_graphic) => {
                    return Some("an invalid field name");
                }
                Some(_) => {}
            },
        }
        is_first = false;
    }
    None
}

/// The first byte that no head has, in a part of one: what comes behind such a byte is to some clients the body. A CR at the end of
/// the part is looked at where the part `is_last`.
#[must_use]
pub fn byte_fault(part: &[u8], is_last: bool) -> Option<&'static str> {
    memchr::memchr2_iter(0, b'\r', part).find_map(|at| match (part.get(at), part.get(at + 1)) {
        (Some(0), _) => Some("NUL in a head"),
        (_, Some(b'\n')) => None,
        (_, None) if !is_last => None,
        _ => Some("CR without LF in a head"),
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn of(head: &[u8]) -> Vec<(Vec<u8>, Vec<u8>)> {
        Fields::of_head(head)
            .map(|field| (field.name.to_vec(), field.value.to_vec()))
            .collect()
    }

    #[test]
    fn names_and_values() {
        let head = b"GET / HTTP/1.1\r\n odd: 1\r\nHost: a\r\nno colon\nEmpty:\nX :\t y \r\n\r\nLate: 1\r\n";
        let want = [("Host", "a"), ("Empty", ""), ("X", "y")];
        let want = want.map(|(name, value)| (name.as_bytes().to_vec(), value.as_bytes().to_vec()));
        assert_eq!(of(head), want);
        let blanks: Vec<bool> = Fields::of_head(head)
            .map(|field| field.has_blank_before_colon)
            .collect();
        assert_eq!(blanks, [false, false, true]);
        assert!(Fields::of_head(head).any(|field| field.is(b"hOST")));
    }

    #[test]
    fn a_folded_value_is_one() {
        let head = b"GET / HTTP/1.1\r\nA:\r\n one\r\n\ttwo\r\nB: 2\r\n\r\n";
        let fields: Vec<Field<'_>> = Fields::of_head(head).collect();
        assert_eq!(fields[0].value, b"one\r\n\ttwo");
        assert!(fields[0].is_folded && !fields[1].is_folded);
        assert_eq!(fields[1].value, b"2");
    }

    #[test]
    fn lines_that_clients_read_in_different_ways() {
        for (head, fault) in [
            ("GET / HTTP/1.1\r\nHost: a\r\nA: 1\r\n 2\r\n\r\n", None),
            ("GET / HTTP/1.1\nHost: a\n\n", None),
            ("GET / HTTP/1.1\r\n\r\n", None),
            (
                "HTTP/1.1 200 OK\r\nX: a\rTransfer-Encoding: chunked\r\n\r\n",
                Some("CR without LF in a head"),
            ),
            (
                "HTTP/1.1 200 OK\rX: a\r\n\r\n",
                Some("CR without LF in a head"),
            ),
            (
                "HTTP/1.1 200 OK\r\nX: a\r\r\n\r\n",
                Some("CR without LF in a head"),
            ),
            ("HTTP/1.1 200 OK\r\nX: a\0\r\n\r\n", Some("NUL in a head")),
            (
                "HTTP/1.1 200 OK\r\nno colon\r\nX: a\r\n\r\n",
                Some("a line without a colon"),
            ),
            (
                "HTTP/1.1 200 OK\r\nX : a\r\n\r\n",
                Some("an invalid field name"),
            ),
            (
                "HTTP/1.1 200 OK\r\nX\u{e9}: a\r\n\r\n",
                Some("an invalid field name"),
            ),
            (
                "HTTP/1.1 200 OK\r\n X: a\r\n\r\n",
                Some("a field that begins with white space"),
            ),
        ] {
            assert_eq!(head_fault(head.as_bytes()), fault, "{head:?}");
        }
    }

    proptest! {
        #[test]
        fn values_stay_inside(bytes in proptest::collection::vec(prop_oneof![Just(b'\r'), Just(b'\n'), Just(b' '), Just(b':'), Just(b'x'), any::<u8>()], 0..200)) {
            let mut seen = 0;
            for field in Fields::of_section(&bytes) {
                seen += field.name.len() + field.value.len() + 1;
                prop_assert!(seen <= bytes.len());
            }
        }
    }
}
