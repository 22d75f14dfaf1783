//! What joins the logs that Zeek's tools join by `uid`: a name of the two ends and their protocol.
//!
//! Zeek draws a new one for each connection. A transaction knows no connection, so that this one is a hash of what
//! stands in every record: connections that use the same ports one after the other have it in common.

use std::net::IpAddr;

use crate::flow::Protocol;
use crate::schema::Endpoint;
use crate::short::Short;

/// Digits behind the letter: as many as 64 bits may need in base 62.
const DIGITS: usize = 11;

/// The last six digits are those of the remainder by this.
const LOW: u64 = 62_u64.pow(6);

/// The name, `C` and 11 digits; it does not matter which end is given first.
#[must_use]
pub fn uid(protocol: Protocol, one: Endpoint, other: Endpoint) -> Short {
    // Both halves at once: the divisions of one need not wait for those of the other.
    let number = hash(protocol, one.min(other), one.max(other));
    let (mut high, mut low) = (number / LOW, number % LOW);
    let (mut highs, mut lows) = ([0; 5], [0; 6]);
    let [first, rest @ ..] = &mut lows;
    for (one, other) in highs.iter_mut().zip(rest).rev() {
        (*one, *other) = (next_digit(&mut high), next_digit(&mut low));
    }
    *first = next_digit(&mut low);
    let mut text = [b'C'; 1 + DIGITS];
    let digits = highs.iter().chain(&lows);
    for (to, digit) in text.iter_mut().skip(1).zip(digits) {
        *to = *digit;
    }
    Short::new(&text)
}

#[inline]
fn next_digit(number: &mut u64) -> u8 {
    const BASE: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
    let at = usize::try_from(*number % 62).unwrap_or(0);
    *number /= 62;
    BASE.get(at).copied().unwrap_or(b'0')
}

fn hash(protocol: Protocol, low: Endpoint, high: Endpoint) -> u64 {
    let mut state = u64::from(protocol.number()) << 32 | u64::from(low.1) << 16 | u64::from(high.1);
    for address in [low.0, high.0] {
        let bits = match address {
            IpAddr::V4(v4) => v4.to_ipv6_mapped().to_bits(),
            IpAddr::V6(v6) => v6.to_bits(),
        };
        let bytes = bits.to_be_bytes();
        let (halves, _) = bytes.as_chunks::<8>();
        for half in halves {
            state = mix(state ^ u64::from_be_bytes(*half));
        }
    }
    state
}

/// The finaliser of `SplitMix64` (Steele, Lea, Flood 2014), with the constant of its steps.
const fn mix(state: u64) -> u64 {
    let state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let state = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let state = (state ^ (state >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    state ^ (state >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn both_directions_have_one_name_and_others_have_others() {
        let end = |last: u8, port| (IpAddr::from([10, 0, 0, last]), port);
        let name = uid(Protocol::Tcp, end(1, 40_000), end(2, 80));
        assert_eq!(name.as_bytes().len(), 12);
        assert!(name.as_bytes().iter().all(u8::is_ascii_alphanumeric));
        assert_eq!(name, uid(Protocol::Tcp, end(2, 80), end(1, 40_000)));
        assert_ne!(name, uid(Protocol::Udp, end(1, 40_000), end(2, 80)));
        assert_ne!(name, uid(Protocol::Tcp, end(1, 80), end(2, 40_000)));
        let mut names = HashSet::new();
        for host in 0..=255 {
            for port in 0..256 {
                let name = uid(Protocol::Tcp, end(host, 1024 + port), end(7, 443));
                names.insert(name.as_bytes().to_vec());
            }
        }
        assert_eq!(names.len(), 65_536);
    }

    #[test]
    fn names_do_not_change_between_versions() {
        let ends = [("192.0.2.1", 50_000), ("2001:db8::1", 443)];
        let [v4, v6] = ends.map(|(address, port)| (address.parse().unwrap(), port));
        let text = |name: Short| String::from_utf8(name.as_bytes().to_vec()).unwrap();
        assert_eq!(text(uid(Protocol::Tcp, v4, v4)), "C2FjGpHKAmHH");
        assert_eq!(text(uid(Protocol::Udp, v6, v6)), "C0pl4rtgPs0P");
    }
}
