//! Who sent a request, as a log names them.
//!
//! What of a log could not be used, by cause.

use std::net::IpAddr;

/// A client of a log: a key of fixed size.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Client {
    /// An address; IPv4-mapped IPv6 addresses are IPv4.
    Address(IpAddr),
    /// A number that stands for an address, as in the World Cup logs.
    Number(u32),
    /// Anything else, mostly a host name: the 128-bit FNV-1a hash of it in lower case.
    Name([u8; 16]),
}

impl Client {
    /// The client of a text: an address where it is one, else a name. Nothing for an empty text.
    #[must_use]
    pub fn from_text(text: &[u8]) -> Option<Self> {
        if text.is_empty() {
            return None;
        }
        let address: Option<IpAddr> = std::str::from_utf8(text)
            .ok()
            .and_then(|text| text.parse().ok());
        Some(address.map_or_else(
            || Self::Name(fnv1a(text)),
            |address| Self::Address(address.to_canonical()),
        ))
    }
}

/// FNV-1a with 128 bits: a hash by a fixed rule, wide enough that names do not meet by chance.
fn fnv1a(text: &[u8]) -> [u8; 16] {
    const BASIS: u128 = 0x6c62_272e_07bb_0142_62b8_2175_6295_c58d;
    const PRIME: u128 = 0x0000_0000_0100_0000_0000_0000_0000_013b;
    let hash = text.iter().fold(BASIS, |hash, byte| {
        (hash ^ u128::from(byte.to_ascii_lowercase())).wrapping_mul(PRIME)
    });
    hash.to_be_bytes()
}

/// Why a line or record gave no request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cause {
    /// No client at its beginning.
    Client,
    /// No time, or one that is none.
    Time,
    /// The request is not in quotes.
    Request,
    /// No status code, nor `-` for none.
    Status,
    /// No size, nor `-` for none.
    Size,
    /// No record of the form.
    Record,
    /// Longer than a line may be.
    Length,
    /// The log ends within it.
    Truncated,
    /// Whole, but without a request: `"-"` of a connection that sent none, a response without its
    /// request. No damage.
    NoRequest,
}

impl Cause {
    /// All of them, in the order of the places in [`Faults`].
    pub const ALL: [Self; 9] = [
        Self::Client,
        Self::Time,
        Self::Request,
        Self::Status,
        Self::Size,
        Self::Record,
        Self::Length,
        Self::Truncated,
        Self::NoRequest,
    ];

    /// The name in summaries.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Client => "client",
            Self::Time => "time",
            Self::Request => "request",
            Self::Status => "status",
            Self::Size => "size",
            Self::Record => "record",
            Self::Length => "too_long",
            Self::Truncated => "truncated",
            Self::NoRequest => "no_request",
        }
    }

    /// Whether the line is damaged; one without a request is not.
    #[must_use]
    pub const fn is_damage(self) -> bool {
        !matches!(self, Self::NoRequest)
    }
}

/// How often, and where first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Seen {
    count: u64,
    first: u64,
}

/// What could not be used: by cause how much, and the first line (or record) of each.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Faults {
    seen: [Seen; Cause::ALL.len()],
}

impl Faults {
    /// Counts a line, by its number from 1.
    pub fn add(&mut self, cause: Cause, line: u64) {
        for (seen, of) in self.seen.iter_mut().zip(Cause::ALL) {
            if of == cause {
                if seen.count == 0 {
                    seen.first = line;
                }
                seen.count += 1;
            }
        }
    }

    /// The causes that occurred: how often, and the first line.
    pub fn iter(&self) -> impl Iterator<Item = (Cause, u64, u64)> {
        let all = Cause::ALL.into_iter().zip(self.seen);
        all.filter(|(_, seen)| seen.count > 0)
            .map(|(cause, seen)| (cause, seen.count, seen.first))
    }

    /// Lines that are damaged.
    #[must_use]
    pub fn damaged(&self) -> u64 {
        let damaged = self.iter().filter(|(cause, _, _)| cause.is_damage());
        damaged.map(|(_, count, _)| count).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_and_names() {
        let of = |text: &str| Client::from_text(text.as_bytes());
        assert_eq!(of("10.0.0.1"), of("::ffff:10.0.0.1"));
        assert!(matches!(of("2001:db8::1"), Some(Client::Address(_))));
        assert_eq!(of("Piweba3y.prodigy.com"), of("piweba3y.PRODIGY.com"));
        assert_ne!(of("a.example"), of("b.example"));
        assert_eq!(of(""), None);
        // The published value of FNV-1a 128 for "a".
        assert_eq!(
            u128::from_be_bytes(fnv1a(b"a")),
            0xd228_cb69_6f1a_8caf_7891_2b70_4e4a_8964
        );
        assert!(size_of::<Client>() <= 20);
    }
}
