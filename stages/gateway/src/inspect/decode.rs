//! Content codings taken off, within bounds.

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
