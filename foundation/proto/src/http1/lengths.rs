//! What a head says of its body's length, read while its other fields are.
//!
//! The rules are those of [`super::Framing`], taken as most recipients do: a coding `identity`, which is
//! none, and `chunked` said twice change nothing.

/// The length fields of a head so far.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Lengths {
    length: Option<u64>,
    /// Whether `Content-Length` is not a number, or there are several different ones.
    contradicts: bool,
    coding: Coding,
}

/// The last transfer coding.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Coding {
    #[default]
    None,
    Chunked,
    Other,
    /// Another one on top of `chunked`.
    Nonsense,
}

/// What became of the fields.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Told {
    /// `Content-Length`, where it is one number.
    pub(super) length: Option<u64>,
    /// Whether the last transfer coding is `chunked`.
    pub(super) chunked: bool,
    /// Whether there are fields whose length is undefined (RFC 9112 sec. 6.3 rules 4 and 5).
    pub(super) is_unclear: bool,
}

impl Lengths {
    /// A line of `Content-Length`.
    #[inline]
    pub(super) fn add_length(&mut self, value: &[u8]) {
        let number = number(value);
        self.contradicts |= number.is_none() || self.length.is_some_and(|had| Some(had) != number);
        self.length = number;
    }

    /// A line of `Transfer-Encoding`: codings in the order in which they were applied.
    pub(super) fn add_codings(&mut self, value: &[u8]) {
        for part in value.split(|&byte| byte == b',') {
            let part = part.trim_ascii();
            self.coding = match self.coding {
                coding if part.is_empty() => coding,
                Coding::None if part.eq_ignore_ascii_case(b"identity") => Coding::None,
                Coding::Nonsense => Coding::Nonsense,
                _ if part.eq_ignore_ascii_case(b"chunked") => Coding::Chunked,
                Coding::None | Coding::Other => Coding::Other,
                Coding::Chunked => Coding::Nonsense,
            };
        }
    }

    /// What all fields together say: a transfer coding overrides `Content-Length` (rule 3).
    #[inline]
    pub(super) fn told(&self) -> Told {
        Told {
            length: self.length.filter(|_| !self.contradicts),
            chunked: self.coding == Coding::Chunked,
            is_unclear: match self.coding {
                Coding::None => self.contradicts,
                Coding::Chunked => false,
                Coding::Other | Coding::Nonsense => true,
            },
        }
    }
}

/// A `Content-Length`: digits only; a list of equal values counts as one (RFC 9110 sec. 8.6).
#[inline]
fn number(value: &[u8]) -> Option<u64> {
    let mut number = 0_u64;
    for byte in value {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 || number > u64::MAX / 10 - 1 {
            return number_in_list(value);
        }
        number = number * 10 + u64::from(digit);
    }
    (!value.is_empty()).then_some(number)
}

#[cold]
fn number_in_list(value: &[u8]) -> Option<u64> {
    let mut parts = value.split(|&b| b == b',').map(|part| {
        let part = part.trim_ascii();
        if part.is_empty() {
            return None;
        }
        part.iter().try_fold(0_u64, |n, &digit| {
            let digit = digit.is_ascii_digit().then(|| u64::from(digit - b'0'))?;
            n.checked_mul(10)?.checked_add(digit)
        })
    });
    let first = parts.next()??;
    parts.all(|other| other == Some(first)).then_some(first)
}
