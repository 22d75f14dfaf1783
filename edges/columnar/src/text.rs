//! Text of the network as valid UTF-8, by the rule of the `jsonl` output.
//!
//! A byte that is not part of a valid UTF-8 sequence becomes the four characters `\xHH`, and so does
//! a backslash that is followed by `x` and two hexadecimal digits. The original bytes are had back by
//! replacing every `\xHH` by that byte. Control characters stay as they are.

use std::fmt::Write;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use linkweir_record::escape::push_hex;

/// The text, which stands in `scratch` where it is not taken as it is.
#[inline]
pub(crate) fn valid<'a>(bytes: &'a [u8], scratch: &'a mut String) -> &'a str {
    // No early exit: vectorises.
    let has_backslash = bytes.iter().fold(false, |has, byte| has | (*byte == b'\\'));
    match std::str::from_utf8(bytes) {
        // The usual case.
        Ok(text) if !has_backslash => text,
        _ => {
            scratch.clear();
            escape(bytes, scratch);
            scratch
        }
    }
}

#[cold]
fn escape(bytes: &[u8], out: &mut String) {
    for chunk in bytes.utf8_chunks() {
        let mut rest = chunk.valid();
        while let Some((before, after)) = rest.split_once('\\') {
            out.push_str(before);
            match after.as_bytes() {
                [b'x', high, low, ..] if high.is_ascii_hexdigit() && low.is_ascii_hexdigit() => {
                    out.push_str("\\x5c");
                }
                _ => out.push('\\'),
            }
            rest = after;
        }
        out.push_str(rest);
        for byte in chunk.invalid() {
            push_hex(out, *byte);
        }
    }
}

/// Slots of the memory: a power of two, small enough to stay in the first-level cache.
const SLOTS: usize = 256;

/// Remembers the texts of the addresses it wrote last, each in the slot of its hash.
#[derive(Debug)]
pub(crate) struct Addresses {
    slots: Vec<(IpAddr, String)>,
}

impl Default for Addresses {
    fn default() -> Self {
        let nobody = IpAddr::V6(Ipv6Addr::UNSPECIFIED);
        Self {
            slots: vec![(nobody, nobody.to_string()); SLOTS],
        }
    }
}

impl Addresses {
    /// The canonical text of an address (RFC 5952); an IPv4-mapped one as IPv4.
    #[inline]
    pub(crate) fn text(&mut self, address: IpAddr) -> &str {
        let bits = folded(match address {
            IpAddr::V4(address) => u128::from(address.to_bits()),
            IpAddr::V6(address) => address.to_bits(),
        });
        let Some((known, text)) = self.slots.get_mut(slot(bits, SLOTS)) else {
            return "";
        };
        if *known != address {
            text.clear();
            push_address(text, address);
            *known = address;
        }
        text
    }
}

/// Appends the canonical text of an address (RFC 5952); an IPv4-mapped one as IPv4.
fn push_address(out: &mut String, address: IpAddr) {
    match address.to_canonical() {
        IpAddr::V4(address) => push_v4(out, address),
        IpAddr::V6(address) => {
            // Writing to a string cannot fail.
            let _unfailing = write!(out, "{address}");
        }
    }
}

/// An IPv4 address without the formatting machinery, which takes several times as long.
#[inline]
fn push_v4(out: &mut String, address: Ipv4Addr) {
    for (at, octet) in address.octets().into_iter().enumerate() {
        if at > 0 {
            out.push('.');
        }
        if octet >= 100 {
            out.push(char::from(b'0' + octet / 100));
        }
        if octet >= 10 {
            out.push(char::from(b'0' + octet / 10 % 10));
        }
        out.push(char::from(b'0' + octet % 10));
    }
}

/// The bits of an address as one number: the last ones, which tell hosts of a network apart, mixed with
/// the others.
#[inline]
fn folded(bits: u128) -> u64 {
    let [high, low] =
        [bits >> 64, bits & u128::from(u64::MAX)].map(|half| u64::try_from(half).unwrap_or(0));
    high.rotate_left(32) ^ low
}

/// The slot of a number in a memory with so many slots, a power of two above 1.
#[inline]
fn slot(bits: u64, slots: usize) -> usize {
    // Fibonacci hashing: the highest bits of the product depend on all others.
    let mixed = bits.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (u64::BITS - slots.trailing_zeros());
    usize::try_from(mixed).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow_array::Array;
    use arrow_array::builder::StringBuilder;

    #[test]
    fn what_is_no_utf8_is_escaped_and_can_be_had_back() {
        let cases: [(&[u8], &str); 8] = [
            (b"", ""),
            (b"plain", "plain"),
            ("zażółć".as_bytes(), "zażółć"),
            (b"a\xffb", "a\\xffb"),
            (b"\\x5c", "\\x5cx5c"),
            (b"C:\\dir\\xyz", "C:\\dir\\xyz"),
            (b"\xc3\\xfe\xe2\x82", "\\xc3\\x5cxfe\\xe2\\x82"),
            (b"tab\tand\x00", "tab\tand\0"),
        ];
        let mut builder = StringBuilder::new();
        let mut scratch = String::new();
        for (bytes, _) in cases {
            builder.append_value(valid(bytes, &mut scratch));
        }
        let array = builder.finish();
        assert_eq!(array.null_count(), 0);
        for (at, (_, expected)) in cases.iter().enumerate() {
            assert_eq!(array.value(at), *expected);
        }
    }

    #[test]
    fn texts_are_canonical_whatever_was_written_before() {
        let mut addresses = Addresses::default();
        let cases = [
            ("10.0.0.1", "10.0.0.1"),
            ("::ffff:10.0.0.1", "10.0.0.1"),
            ("::", "::"),
            ("2001:DB8:0:0:0:0:0:1", "2001:db8::1"),
        ];
        for _ in 0..2 {
            for (given, text) in cases {
                assert_eq!(addresses.text(given.parse().unwrap()), text);
            }
        }
        // Many more than there are slots.
        for round in 0..3_u32 {
            for n in 0..5000_u32 {
                let address = Ipv4Addr::from_bits(n.wrapping_mul(0x0101_0007) ^ round);
                assert_eq!(addresses.text(address.into()), address.to_string());
            }
        }
    }
}
