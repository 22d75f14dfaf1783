//! The Internet checksum: of headers, of segments, and its update in place.
//!
//! Source: RFC 1071 (the sum), RFC 1624 (the update), RFC 9293 sec. 3.1 and RFC 8200 sec. 8.1 (the
//! pseudo-header).

use std::net::IpAddr;

use crate::{Network, Tcp, Udp};

const TCP: u8 = 6;
const UDP: u8 = 17;

/// A running one's-complement sum of 16-bit words.
///
/// Holds the sum of at least 2^32 words without loss, more than any packet has.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Sum(u64);

impl Sum {
    /// The empty sum.
    #[must_use]
    pub const fn new() -> Self {
        Self(0)
    }

    /// Adds bytes that start at an even place; an odd last byte is padded with zero.
    #[must_use]
    pub fn bytes(mut self, bytes: &[u8]) -> Self {
        // 32 bits at a time: the carries fold together in the end (RFC 1071 sec. 2).
        let (words, tail) = bytes.as_chunks::<4>();
        for &word in words {
            self.0 = self.0.wrapping_add(u64::from(u32::from_be_bytes(word)));
        }
        match *tail {
            [a] => self.word(u16::from_be_bytes([a, 0])),
            [a, b] => self.word(u16::from_be_bytes([a, b])),
            [a, b, c] => self
                .word(u16::from_be_bytes([a, b]))
                .word(u16::from_be_bytes([c, 0])),
            _ => self,
        }
    }

    /// Adds one word.
    #[must_use]
    pub const fn word(self, word: u16) -> Self {
        Self(self.0.wrapping_add(word as u64))
    }

    /// Adds the pseudo-header of a segment of `len` bytes between addresses of one family.
    #[must_use]
    pub fn pseudo_header(self, src: IpAddr, dst: IpAddr, protocol: u8, len: u32) -> Self {
        let with_addresses = match (src, dst) {
            (IpAddr::V4(src), IpAddr::V4(dst)) => self.bytes(&src.octets()).bytes(&dst.octets()),
            (src, dst) => self.bytes(&v6_octets(src)).bytes(&v6_octets(dst)),
        };
        with_addresses
            .bytes(&len.to_be_bytes())
            .word(u16::from(protocol))
    }

    /// The checksum: the complement of the folded sum. Zero where the bytes held a valid one.
    #[must_use]
    pub const fn finish(self) -> u16 {
        let mut sum = self.0;
        // Four foldings take any 64-bit value below 2^16.
        sum = (sum & 0xffff_ffff) + (sum >> 32);
        sum = (sum & 0xffff_ffff) + (sum >> 32);
        sum = (sum & 0xffff) + (sum >> 16);
        sum = (sum & 0xffff) + (sum >> 16);
        sum = (sum & 0xffff) + (sum >> 16);
        let [.., hi, lo] = sum.to_be_bytes();
        !u16::from_be_bytes([hi, lo])
    }
}

pub(crate) const fn v6_octets(address: IpAddr) -> [u8; 16] {
    match address {
        IpAddr::V4(v4) => v4.to_ipv6_mapped().octets(),
        IpAddr::V6(v6) => v6.octets(),
    }
}

/// The checksum of `bytes`; zero where they contain a valid one.
#[must_use]
pub fn of(bytes: &[u8]) -> u16 {
    Sum::new().bytes(bytes).finish()
}

/// The checksum field of a TCP or UDP `segment` whose own field is zero.
///
/// Of UDP a computed zero is sent as `0xffff`, for zero says "none" (RFC 768).
#[must_use]
pub fn of_segment(src: IpAddr, dst: IpAddr, protocol: u8, segment: &[u8]) -> u16 {
    let len = u32::try_from(segment.len()).unwrap_or(u32::MAX);
    let sum = Sum::new().pseudo_header(src, dst, protocol, len);
    match sum.bytes(segment).finish() {
        0 if protocol == UDP => 0xffff,
        checksum => checksum,
    }
}

/// The checksum after one covered word went from `old` to `new`.
///
/// Source: RFC 1624 sec. 3, Eq. 3: `HC' = ~(~HC + ~m + m')`.
#[must_use]
pub const fn update(checksum: u16, old: u16, new: u16) -> u16 {
    Sum::new().word(!checksum).word(!old).word(new).finish()
}

/// The checksum after covered bytes at an even place went from `old` to `new`, of one length.
#[must_use]
pub fn update_bytes(checksum: u16, old: &[u8], new: &[u8]) -> u16 {
    // The complement of the old words is the complement of their sum (RFC 1624 sec. 3).
    Sum::new().word(!checksum).word(of(old)).bytes(new).finish()
}

/// Whether the checksum of a segment holds; nothing where that cannot be told: bytes of it were not
/// captured, it is a first fragment, or stands behind IPv6 extension headers.
///
/// A segment that left this very machine often has none yet (checksum offload).
#[must_use]
pub fn verify_tcp(network: &Network<'_>, tcp: &Tcp<'_>) -> Option<bool> {
    let options_len = (usize::from(tcp.header()[12] >> 4) * 4).checked_sub(20)?;
    if tcp.options.len() != options_len || tcp.payload.len() != tcp.payload_len as usize {
        return None;
    }
    let len = tcp
        .payload_len
        .checked_add(u32::try_from(options_len).ok()?)?;
    let sum = pseudo_header(network, TCP, len.checked_add(20)?)?
        .bytes(tcp.header())
        .bytes(tcp.options)
        .bytes(tcp.payload);
    Some(sum.finish() == 0)
}

/// Whether the checksum of a datagram holds; nothing where it has none or, as for
/// [`verify_tcp`], that cannot be told.
#[must_use]
pub fn verify_udp(network: &Network<'_>, udp: &Udp<'_>) -> Option<bool> {
    if udp.checksum() == 0 || udp.payload.len() != udp.payload_len as usize {
        return None;
    }
    let sum = pseudo_header(network, UDP, udp.payload_len.checked_add(8)?)?
        .bytes(udp.header())
        .bytes(udp.payload);
    Some(sum.finish() == 0)
}

fn pseudo_header(network: &Network<'_>, protocol: u8, len: u32) -> Option<Sum> {
    match network {
        Network::None => None,
        // A first fragment has the checksum of the whole packet.
        Network::V4(header) if header[6] & 0x20 != 0 => None,
        // So it may be behind extension headers, or a route's last hop is the destination summed.
        Network::V6(header) if header[6] != protocol => None,
        Network::V4(_) | Network::V6(_) => {
            Some(Sum::new().pseudo_header(network.src(), network.dst(), protocol, len))
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{Sum, of, update, update_bytes};

    /// The definition, word by word with end-around carry.
    fn by_definition(bytes: &[u8]) -> u16 {
        let mut sum = 0_u16;
        for pair in bytes.chunks(2) {
            let word = u16::from_be_bytes([pair[0], pair.get(1).copied().unwrap_or(0)]);
            let (wrapped, carry) = sum.overflowing_add(word);
            sum = wrapped + u16::from(carry);
        }
        !sum
    }

    #[test]
    fn example_of_rfc_1071() {
        let bytes = [0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7];
        assert_eq!(of(&bytes), !0xddf2);
        assert_eq!(of(&[]), 0xffff);
    }

    #[test]
    fn example_of_rfc_1624() {
        // Sec. 4: the update gives 0x0000 where older formulas gave 0xffff.
        assert_eq!(update(0xdd2f, 0x5555, 0x3285), 0x0000);
    }

    proptest! {
        #[test]
        fn equals_the_definition(bytes: Vec<u8>) {
            prop_assert_eq!(of(&bytes), by_definition(&bytes));
        }

        #[test]
        fn splits_at_even_places(bytes: Vec<u8>, at: u8) {
            let (head, tail) = bytes.split_at((usize::from(at) & !1).min(bytes.len() & !1));
            prop_assert_eq!(Sum::new().bytes(head).bytes(tail).finish(), of(&bytes));
        }

        #[test]
        fn update_equals_a_new_sum(mut bytes in proptest::collection::vec(1_u8.., 12), new: [u8; 4]) {
            let before = of(&bytes);
            let old = [bytes[4], bytes[5], bytes[6], bytes[7]];
            bytes[4..8].copy_from_slice(&new);
            prop_assert_eq!(update_bytes(before, &old, &new), of(&bytes));
            let by_words = update(before, u16::from_be_bytes([old[0], old[1]]), u16::from_be_bytes([new[0], new[1]]));
            let by_words = update(by_words, u16::from_be_bytes([old[2], old[3]]), u16::from_be_bytes([new[2], new[3]]));
            prop_assert_eq!(by_words, of(&bytes));
        }
    }
}
