//! Numbers, times and addresses as text, without the formatting machinery: these are half of the
//! work of writing a record.

use std::io::Write;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use linkweir_wire::civil::date_time;

/// `0.` to `255.`, padded with zeros to four bytes, and the length with the dot.
const OCTETS: [([u8; 4], u8); 256] = {
    let mut table = [([0; 4], 2); 256];
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
                ([t, o, b'.', 0], 3)
            } else {
                ([o, b'.', 0, 0], 2)
            };
        }
        n += 1;
    }
    table
};

/// The eight decimal digits of a number below 10^8, the first one in the lowest byte; as values, not
/// yet as characters. Three multiplications for all digits instead of a division for each pair.
#[inline]
const fn eight_digits(number: u32) -> u64 {
    const fn split(
        halves: u64,
        reciprocal: u64,
        shift: u32,
        mask: u64,
        base: u64,
        lane: u32,
    ) -> u64 {
        let high = ((halves * reciprocal) >> shift) & mask;
        high | ((halves - base * high) << lane)
    }
    let (high, low) = (number / 10_000, number % 10_000);
    let fours = high as u64 | ((low as u64) << 32);
    let twos = split(fours, 10_486, 20, 0x7f_0000_007f, 100, 16);
    split(twos, 103, 10, 0x000f_000f_000f_000f, 10, 8)
}

const ASCII_ZEROS: u64 = 0x3030_3030_3030_3030;

/// A decimal number. Most counters of most records have one digit.
#[inline]
pub fn push_u64(out: &mut Vec<u8>, value: u64) {
    match u8::try_from(value) {
        Ok(digit @ 0..10) => out.push(b'0' + digit),
        _ => push_long(out, value),
    }
}

/// A decimal number of any length.
#[inline]
fn push_long(out: &mut Vec<u8>, value: u64) {
    match u32::try_from(value) {
        Ok(small @ 0..100_000_000) => {
            let digits = eight_digits(small);
            // All digits but the last may be leading zeros.
            let zeros = (digits | 1 << 56).trailing_zeros() / 8;
            let text = (digits | ASCII_ZEROS) >> (zeros * 8);
            let len = out.len() + 8 - zeros as usize;
            out.extend_from_slice(&text.to_le_bytes());
            out.truncate(len);
        }
        _ => out.extend_from_slice(itoa::Buffer::new().format(value).as_bytes()),
    }
}

/// A point and nine decimals as characters: ten bytes, the first one lowest.
#[inline]
const fn nine_decimals(nanos: u32) -> u128 {
    let first = b'0' as u32 + nanos / 100_000_000;
    let rest = eight_digits(nanos % 100_000_000) | ASCII_ZEROS;
    b'.' as u128 | (first as u128) << 8 | (rest as u128) << 16
}

#[inline]
fn split(nanos: u64) -> (u64, u32) {
    let rest = nanos % 1_000_000_000;
    (nanos / 1_000_000_000, u32::try_from(rest).unwrap_or(0))
}

/// Moments with nine decimals, most of which are in the same second as the one before.
#[derive(Debug)]
pub(crate) struct Moments {
    second: u64,
    /// The ten digits of the second and the point, in the first eleven bytes.
    text: [u8; 12],
}

impl Moments {
    pub(crate) const fn new() -> Self {
        Self {
            second: u64::MAX,
            text: [0; 12],
        }
    }

    /// Seconds with nine decimals.
    #[inline]
    pub(crate) fn push(&mut self, out: &mut Vec<u8>, nanos: u64) {
        let (second, rest) = split(nanos);
        if second != self.second {
            return self.push_new(out, nanos);
        }
        let [.., first] = &mut self.text;
        let hundreds = u8::try_from(rest / 100_000_000).unwrap_or(0);
        *first = b'0' + hundreds;
        let digits = eight_digits(rest % 100_000_000) | ASCII_ZEROS;
        out.extend_from_slice(&self.text);
        out.extend_from_slice(&digits.to_le_bytes());
    }

    #[cold]
    fn push_new(&mut self, out: &mut Vec<u8>, nanos: u64) {
        let start = out.len();
        push_seconds9(out, nanos);
        if let Some(text) = out.get(start..).filter(|text| text.len() == 20)
            && let Some((head, _)) = text.split_first_chunk::<12>()
        {
            (self.second, self.text) = (nanos / 1_000_000_000, *head);
        }
    }
}

/// Seconds with nine decimals.
#[inline]
pub(crate) fn push_seconds9(out: &mut Vec<u8>, nanos: u64) {
    let (seconds, rest) = split(nanos);
    let decimals = nine_decimals(rest);
    match u32::try_from(seconds) {
        // A span.
        Ok(seconds @ 0..10) => {
            let text = u128::from(u32::from(b'0') | seconds) | decimals << 8;
            let len = out.len() + 11;
            out.extend_from_slice(&text.to_le_bytes());
            out.truncate(len);
        }
        // A moment between 2001 and 2106.
        Ok(seconds @ 1_000_000_000..) => {
            let (high, low) = (seconds / 100_000_000, seconds % 100_000_000);
            let high = u128::from((high / 10) | (high % 10) << 8 | 0x3030);
            let low = u128::from(eight_digits(low) | ASCII_ZEROS);
            let text = high | low << 16 | decimals << 80;
            // Four of the ten bytes after the seconds do not fit into the first sixteen.
            let rest = decimals >> 48;
            let len = out.len() + 20;
            out.extend_from_slice(&text.to_le_bytes());
            out.extend_from_slice(&rest.to_le_bytes());
            out.truncate(len);
        }
        _ => {
            push_u64(out, seconds);
            let len = out.len() + 10;
            out.extend_from_slice(&decimals.to_le_bytes());
            out.truncate(len);
        }
    }
}

/// Seconds with six decimals, cut off (not rounded) as Zeek and tcpdump do.
#[inline]
pub fn push_seconds6(out: &mut Vec<u8>, nanos: u64) {
    push_seconds9(out, nanos);
    out.truncate(out.len().saturating_sub(3));
}

/// Nanoseconds as milliseconds with six decimals.
#[inline]
pub fn push_millis6(out: &mut Vec<u8>, nanos: u64) {
    push_u64(out, nanos / 1_000_000);
    // Eight digits, of which the first two are zeros: the point stands in place of the second.
    let digits = eight_digits(u32::try_from(nanos % 1_000_000).unwrap_or_default());
    let text = (digits | ASCII_ZEROS) >> 8 & !0xff | u64::from(b'.');
    let len = out.len() + 7;
    out.extend_from_slice(&text.to_le_bytes());
    out.truncate(len);
}

/// A moment by ISO 8601 with nine decimals, UTC: `2026-11-21T02:17:48.123456789Z`.
pub(crate) fn push_moment(out: &mut Vec<u8>, nanos: u64) {
    let (seconds, rest) = split(nanos);
    push_date_time(out, seconds, &format_args!("{rest:09}"));
}

/// A moment as syslog has it, with six decimals (RFC 5424 sec. 6.2.3): `2026-11-21T02:17:48.123456Z`.
pub(crate) fn push_rfc3339(out: &mut Vec<u8>, nanos: u64) {
    let (seconds, rest) = split(nanos);
    push_date_time(out, seconds, &format_args!("{:06}", rest / 1_000));
}

fn push_date_time(out: &mut Vec<u8>, seconds: u64, decimals: &std::fmt::Arguments<'_>) {
    let [year, month, day, h, m, s] = date_time(seconds.cast_signed());
    // Writing to a vector cannot fail.
    let _unfailing = write!(
        out,
        "{year:04}-{month:02}-{day:02}T{h:02}:{m:02}:{s:02}.{decimals}Z"
    );
}

/// An address as RFC 5952 writes it; an IPv4-mapped one as IPv4.
#[inline]
pub fn push_ip(out: &mut Vec<u8>, address: IpAddr) {
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
    // Each octet brings its digits and a dot to where it starts; the last dot is cut off.
    let mut text = 0_u128;
    let mut at = 0_u32;
    for octet in address.octets() {
        let (digits, len) = OCTETS.get(usize::from(octet)).copied().unwrap_or_default();
        text |= u128::from(u32::from_le_bytes(digits)) << (at * 8);
        at += u32::from(len);
    }
    let len = out.len() + at as usize - 1;
    out.extend_from_slice(&text.to_le_bytes());
    out.truncate(len);
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
        assert_eq!(made(|o| push_millis6(o, 0)), "0.000000");
        assert_eq!(
            made(|o| push_millis6(o, 1_795_222_198_122_187_988)),
            "1795222198122.187988"
        );
        assert_eq!(made(|o| push_millis6(o, 10_000_203)), "10.000203");
    }

    proptest! {
        #[test]
        fn moments_are_seconds_whatever_came_before(nanos in prop::collection::vec(prop_oneof![
            1_700_000_000_000_000_000..1_700_000_002_000_000_000_u64, any::<u64>(), 0..3_000_000_000_u64
        ], 1..20)) {
            let mut moments = Moments::new();
            for n in nanos {
                let with = made(|out| moments.push(out, n));
                prop_assert_eq!(with, made(|out| push_seconds9(out, n)));
            }
        }
    }

    #[test]
    fn moments_are_iso_8601() {
        let moment = |nanos| made(|out| push_moment(out, nanos));
        assert_eq!(moment(0), "1970-01-01T00:00:00.000000000Z");
        assert_eq!(
            moment(1_700_000_000_000_000_007),
            "2023-11-14T22:13:20.000000007Z"
        );
        assert_eq!(moment(u64::MAX), "2554-07-21T23:34:33.709551615Z");
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
