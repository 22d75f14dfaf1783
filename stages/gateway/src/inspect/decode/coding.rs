//! Names of content codings.

/// How the bytes of a file are coded (RFC 9110 sec. 8.4.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Coding {
    /// Not at all.
    #[default]
    Identity,
    /// `gzip`, `x-gzip` (RFC 1952).
    Gzip,
    /// `deflate`: zlib (RFC 1950), or raw deflate as some servers send it.
    Deflate,
    /// One that is not taken off: `br`, `zstd`, several one after the other.
    Other,
}

impl Coding {
    /// The coding that a `Content-Encoding` value names, or a list of one.
    #[must_use]
    pub fn of(value: &[u8]) -> Self {
        value
            .split(|&byte| byte == b',')
            .fold(Self::Identity, |before, name| {
                before.then(Self::of_name(name.trim_ascii()))
            })
    }

    /// This coding, and then another over it.
    #[must_use]
    pub const fn then(self, next: Self) -> Self {
        match (self, next) {
            (Self::Identity, other) | (other, Self::Identity) => other,
            _ => Self::Other,
        }
    }

    fn of_name(name: &[u8]) -> Self {
        let is = |other: &[u8]| name.eq_ignore_ascii_case(other);
        if name.is_empty() || is(b"identity") {
            Self::Identity
        } else if is(b"gzip") || is(b"x-gzip") {
            Self::Gzip
        } else if is(b"deflate") {
            Self::Deflate
        } else {
            Self::Other
        }
    }
}
