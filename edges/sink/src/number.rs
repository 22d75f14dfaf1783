//! Numbers, times and addresses as text, without the formatting machinery: these are half of the
//! work of writing a record.

use std::io::Write;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// `00` to `99`.
const PAIRS: [[u8; 2]; 100] = {
    let mut table = [[0; 2]; 100];
    let mut n = 0;
    while n < 100 {
        #[expect(
            clippy::indexing_slicing,
            clippy::cast_possible_truncation,
            reason = "constant evaluation: n is below 100"
        )]
        {
            table[n] = [b'0' + (n / 10) as u8, b'0' + (n % 10) as u8];
        }
        n += 1;
    }
    table
};

/// `0.` to `255.`, padded to four bytes, and the length with the dot.
const OCTETS: [([u8; 4], u8); 256] = {
    let mut table = [([b'.'; 4], 0); 256];
    let mut n = 0;
    while n < 256 {
        #[expect(
            clippy::indexing_slicing,
            clippy::cast_possible_truncation,
            reason = "constant evaluation: n is below 256"
        )]
        {
            let (h, t, o) = (
                b'0' + (n / 100) as u8,
                b'0' + (n / 10 % 10) as u8,
                b'0' + (n % 10) as u8,
            );
            table[n] = if n >= 100 {
                ([h, t, o, b'.'], 4)
            } else if n >= 10 {
                ([t, o, b'.', b'.'], 3)
            } else {
                ([o, b'.', b'.', b'.'], 2)
            };
        }
        n += 1;
    }
    table
};

fn pair(n: u32) -> [u8; 2] {
    PAIRS.get(n as usize % 100).copied().unwrap_or_default()
}

/// A decimal number.
#[inline]
pub(crate) fn push_u64(out: &mut Vec<u8>, value: u64) {
    if value < 10 {
        // Most counters of a record are one digit.
        out.push(b'0' | (value & 0xf) as u8);
        return;
    }
    out.extend_from_slice(itoa::Buffer::new().format(value).as_bytes());
}

/// Nine decimals of a second with the point before them.
#[inline]
fn nine_decimals(nanos: u32) -> [u8; 10] {
    let [a, b] = pair(nanos / 10_000_000);
    let [c, d] = pair(nanos / 100_000 % 100);
    let [e, f] = pair(nanos / 1000 % 100);
    let [g, h] = pair(nanos / 10 % 100);
    [b'.', a, b, c, d, e, f, g, h, b'0' + (nanos % 10) as u8]
}

fn split(nanos: u64) -> (u64, u32) {
    let rest = nanos % 1_000_000_000;
    (nanos / 1_000_000_000, u32::try_from(rest).unwrap_or(0))
}

/// Seconds with nine decimals.
#[inline]
pub(crate) fn push_seconds9(out: &mut Vec<u8>, nanos: u64) {
    let (seconds, rest) = split(nanos);
    push_u64(out, seconds);
    out.extend_from_slice(&nine_decimals(rest));
}

/// Seconds with six decimals, cut off (not rounded) as Zeek and tcpdump do.
pub(crate) fn push_seconds6(out: &mut Vec<u8>, nanos: u64) {
    let (seconds, rest) = split(nanos);
    push_u64(out, seconds);
    if let Some(part) = nine_decimals(rest).first_chunk::<7>() {
        out.extend_from_slice(part);
    }
}

/// An address as RFC 5952 writes it; an IPv4-mapped one as IPv4.
#[inline]
pub(crate) fn push_ip(out: &mut Vec<u8>, address: IpAddr) {
    match address {
        IpAddr::V4(v4) => push_ipv4(out, v4),
        IpAddr::V6(v6) => match v6.to_ipv4_mapped() {
            Some(v4) => push_ipv4(out, v4),
            None => push_ipv6(out, v6),
        },
    }
}

#[inline]
fn push_ipv4(out: &mut Vec<u8>, address: Ipv4Addr) {
    // Each octet is written as four bytes where it starts; what was too much is overwritten by the
    // next, and the last dot is cut off with the rest.
    let mut text = [0_u8; 16];
    let mut at = 0_usize;
    for octet in address.octets() {
        let (digits, len) = OCTETS.get(octet as usize).copied().unwrap_or_default();
        if let Some(place) = text.get_mut(at..at + 4) {
            place.copy_from_slice(&digits);
        }
        at += usize::from(len);
    }
    out.extend_from_slice(text.get(..at.saturating_sub(1)).unwrap_or_default());
}

#[cold]
fn push_ipv6(out: &mut Vec<u8>, address: Ipv6Addr) {
    // Writing to a vector cannot fail.
    let _unfailing = write!(out, "{address}");
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn made(make: impl FnOnce(&mut Vec<u8>)) -> String {
        let mut out = b"x".to_vec();
        make(&mut out);
        String::from_utf8(out).unwrap().split_off(1)
    }

    #[test]
    fn times() {
        let cases = [
            (0, "0.000000000", "0.000000"),
            (104_130_000, "0.104130000", "0.104130"),
            (
                1_700_000_000_123_456_789,
                "1700000000.123456789",
                "1700000000.123456",
            ),
            (u64::MAX, "18446744073.709551615", "18446744073.709551"),
            (999_999_999, "0.999999999", "0.999999"),
        ];
        for (nanos, nine, six) in cases {
            assert_eq!(made(|o| push_seconds9(o, nanos)), nine);
            assert_eq!(made(|o| push_seconds6(o, nanos)), six);
        }
    }

    #[test]
    fn mapped_addresses_are_ipv4() {
        assert_eq!(
            made(|o| push_ip(o, "::ffff:10.0.0.255".parse().unwrap())),
            "10.0.0.255"
        );
        assert_eq!(
            made(|o| push_ip(o, "2001:db8::1".parse().unwrap())),
            "2001:db8::1"
        );
        assert_eq!(made(|o| push_ip(o, "::1".parse().unwrap())), "::1");
    }

    proptest! {
        #[test]
        fn as_the_standard_library_writes_them(n: u64, v4: u32, shift in 0_u32..64) {
            let n = n >> shift;
            prop_assert_eq!(made(|o| push_u64(o, n)), n.to_string());
            prop_assert_eq!(made(|o| push_seconds9(o, n)), format!("{}.{:09}", n / 1_000_000_000, n % 1_000_000_000));
            let address = Ipv4Addr::from(v4);
            prop_assert_eq!(made(|o| push_ip(o, IpAddr::V4(address))), address.to_string());
        }
    }
}
