//! The payload of `MSG`: fields, an empty line, a body (RFC 2045 in part).

/// A message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MimeMessage<'a> {
    head: &'a [u8],
    /// Behind the empty line; has no end of line of its own.
    pub body: &'a [u8],
}

impl<'a> MimeMessage<'a> {
    /// Divides a payload. Without an empty line all of it is head.
    #[must_use]
    pub fn parse(payload: &'a [u8]) -> Self {
        let mut rest = payload;
        while let Some((line, behind)) = take_line(rest) {
            if line.is_empty() {
                let head = payload.len() - rest.len();
                let head = payload.get(..head).unwrap_or_default();
                return Self { head, body: behind };
            }
            rest = behind;
        }
        Self {
            head: payload,
            body: &[],
        }
    }

    /// The value of a field; names are equal whatever their case.
    #[must_use]
    pub fn field(&self, name: &[u8]) -> Option<&'a [u8]> {
        field(self.head, name)
    }

    /// The media type without its parameters; empty where none is given.
    #[must_use]
    pub fn media_type(&self) -> &'a [u8] {
        let value = self.field(b"Content-Type").unwrap_or_default();
        let end = memchr::memchr(b';', value).unwrap_or(value.len());
        value.get(..end).unwrap_or_default().trim_ascii()
    }

    /// Whether the body is coded in base64 (RFC 2045 sec. 6.8).
    #[must_use]
    pub fn is_base64(&self) -> bool {
        self.field(b"Content-Transfer-Encoding")
            .is_some_and(|coding| coding.eq_ignore_ascii_case(b"base64"))
    }
}

/// The value of the first field of this name among `lines`, without the spaces around it.
#[must_use]
pub fn field<'a>(lines: &'a [u8], name: &[u8]) -> Option<&'a [u8]> {
    lines.split(|byte| *byte == b'\n').find_map(|line| {
        let (key, value) = line.split_at_checked(name.len())?;
        let value = value.strip_prefix(b":")?;
        key.eq_ignore_ascii_case(name).then_some(value.trim_ascii())
    })
}

/// A decimal number: digits and nothing else.
pub(super) fn number(digits: &[u8]) -> Option<u64> {
    let is_plain = digits.iter().all(u8::is_ascii_digit);
    let text = str::from_utf8(digits).ok().filter(|_| is_plain)?;
    text.parse().ok()
}

/// The line in front, without its end, and what follows; `None` where it has no end.
fn take_line(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let end = memchr::memchr(b'\n', bytes)?;
    let (line, rest) = bytes.split_at_checked(end)?;
    Some((line.strip_suffix(b"\r").unwrap_or(line), rest.get(1..)?))
}
