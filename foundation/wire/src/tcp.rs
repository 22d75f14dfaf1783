//! TCP segments: header fields and options. Source: RFC 9293 sec. 3.1.

use std::ops::BitOr;

use crate::SeqNumber;

/// A TCP segment: its header, options and what was captured of its payload.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tcp<'a> {
    pub(crate) header: &'a [u8; 20],
    /// The options as they stand, as far as they were captured; read them with [`Tcp::options`].
    pub options: &'a [u8],
    /// The payload as far as it was captured.
    pub payload: &'a [u8],
    /// Bytes of payload on the wire by the IP length; of a first fragment, those in the fragment.
    pub payload_len: u32,
}

impl<'a> Tcp<'a> {
    /// The fixed header as it stands in the frame.
    #[inline]
    #[must_use]
    pub const fn header(&self) -> &'a [u8; 20] {
        self.header
    }

    /// Source port.
    #[inline]
    #[must_use]
    pub const fn src_port(&self) -> u16 {
        u16::from_be_bytes([self.header[0], self.header[1]])
    }

    /// Destination port.
    #[inline]
    #[must_use]
    pub const fn dst_port(&self) -> u16 {
        u16::from_be_bytes([self.header[2], self.header[3]])
    }

    /// `SEG.SEQ`.
    #[inline]
    #[must_use]
    pub const fn seq(&self) -> SeqNumber {
        let h = self.header;
        SeqNumber(u32::from_be_bytes([h[4], h[5], h[6], h[7]]))
    }

    /// `SEG.ACK`; means something only with [`TcpFlags::ACK`].
    #[inline]
    #[must_use]
    pub const fn ack(&self) -> SeqNumber {
        let h = self.header;
        SeqNumber(u32::from_be_bytes([h[8], h[9], h[10], h[11]]))
    }

    /// The control bits.
    #[inline]
    #[must_use]
    pub const fn flags(&self) -> TcpFlags {
        TcpFlags(self.header[13])
    }

    /// The window field, unscaled.
    #[inline]
    #[must_use]
    pub const fn window(&self) -> u16 {
        u16::from_be_bytes([self.header[14], self.header[15]])
    }

    /// The checksum field.
    #[inline]
    #[must_use]
    pub const fn checksum(&self) -> u16 {
        u16::from_be_bytes([self.header[16], self.header[17]])
    }

    /// The urgent pointer; means something only with [`TcpFlags::URG`].
    #[inline]
    #[must_use]
    pub const fn urgent_pointer(&self) -> u16 {
        u16::from_be_bytes([self.header[18], self.header[19]])
    }

    /// `SEG.LEN`: octets of sequence space, that is payload and SYN and FIN.
    ///
    /// Source: RFC 9293 sec. 3.4.
    #[inline]
    #[must_use]
    pub const fn sequence_len(&self) -> u32 {
        let flags = self.flags().0;
        let controls = (flags & 1) + ((flags >> 1) & 1);
        self.payload_len.wrapping_add(controls as u32)
    }

    /// The options, in order; stops at the end-of-list option and at the first malformed one.
    #[inline]
    #[must_use]
    pub const fn options(&self) -> TcpOptions<'a> {
        TcpOptions { rest: self.options }
    }
}

/// The control bits of a segment.
///
/// Source: RFC 9293 sec. 3.1.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct TcpFlags(pub u8);

impl TcpFlags {
    /// No more data from the sender.
    pub const FIN: Self = Self(0x01);
    /// Synchronise sequence numbers.
    pub const SYN: Self = Self(0x02);
    /// Reset the connection.
    pub const RST: Self = Self(0x04);
    /// Push.
    pub const PSH: Self = Self(0x08);
    /// The acknowledgment field is significant.
    pub const ACK: Self = Self(0x10);
    /// The urgent pointer is significant.
    pub const URG: Self = Self(0x20);
    /// ECN echo (RFC 3168).
    pub const ECE: Self = Self(0x40);
    /// Congestion window reduced (RFC 3168).
    pub const CWR: Self = Self(0x80);

    /// Whether all bits of `other` are set.
    #[inline]
    #[must_use]
    pub const fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// Whether any bit of `other` is set.
    #[inline]
    #[must_use]
    pub const fn intersects(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }
}

impl BitOr for TcpFlags {
    type Output = Self;
    #[inline]
    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

/// One option of a segment; padding (no-operation, end of list) is not shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum TcpOption<'a> {
    /// Maximum segment size in bytes (RFC 9293 sec. 3.7.1).
    MaximumSegmentSize(u16),
    /// Window scale as sent; a receiver uses at most 14 (RFC 7323 sec. 2.3).
    WindowScale(u8),
    /// Selective acknowledgments may be sent (RFC 2018 sec. 2).
    SackPermitted,
    /// Selective acknowledgment blocks (RFC 2018 sec. 3).
    Sack(SackBlocks<'a>),
    /// Timestamps (RFC 7323 sec. 3.2).
    Timestamps {
        /// `TSval`.
        value: u32,
        /// `TSecr`.
        echo: u32,
    },
    /// Any other kind, or a known kind with a length it must not have.
    Other {
        /// Option kind.
        kind: u8,
        /// The bytes after kind and length.
        data: &'a [u8],
    },
}

/// Iterator over the options of a segment: at most 40 steps.
#[derive(Debug, Clone)]
pub struct TcpOptions<'a> {
    rest: &'a [u8],
}

impl<'a> Iterator for TcpOptions<'a> {
    type Item = TcpOption<'a>;

    fn next(&mut self) -> Option<TcpOption<'a>> {
        // Every turn takes at least one byte, so the loop ends with the options.
        while let Some((&kind, rest)) = self.rest.split_first() {
            self.rest = &[];
            match kind {
                0 => return None,
                1 => self.rest = rest,
                _ => {
                    let (&len, rest) = rest.split_first()?;
                    let (data, rest) = rest.split_at_checked(usize::from(len).checked_sub(2)?)?;
                    self.rest = rest;
                    return Some(option(kind, data));
                }
            }
        }
        None
    }
}

const fn option(kind: u8, data: &[u8]) -> TcpOption<'_> {
    match (kind, data) {
        (2, &[a, b]) => TcpOption::MaximumSegmentSize(u16::from_be_bytes([a, b])),
        (3, &[shift]) => TcpOption::WindowScale(shift),
        (4, &[]) => TcpOption::SackPermitted,
        (5, blocks) if blocks.len() % 8 == 0 && !blocks.is_empty() => {
            TcpOption::Sack(SackBlocks { rest: blocks })
        }
        (8, &[a, b, c, d, e, f, g, h]) => TcpOption::Timestamps {
            value: u32::from_be_bytes([a, b, c, d]),
            echo: u32::from_be_bytes([e, f, g, h]),
        },
        _ => TcpOption::Other { kind, data },
    }
}

/// Iterator over selective acknowledgment blocks: `(left edge, right edge)`, right exclusive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SackBlocks<'a> {
    rest: &'a [u8],
}

impl Iterator for SackBlocks<'_> {
    type Item = (SeqNumber, SeqNumber);

    fn next(&mut self) -> Option<Self::Item> {
        let (&[a, b, c, d, e, f, g, h], rest) = self.rest.split_first_chunk::<8>()?;
        self.rest = rest;
        Some((
            SeqNumber(u32::from_be_bytes([a, b, c, d])),
            SeqNumber(u32::from_be_bytes([e, f, g, h])),
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::{SeqNumber, TcpFlags, TcpOption, TcpOptions};

    #[test]
    fn options_of_a_syn_and_of_a_sack() {
        let syn = [
            2, 4, 5, 0xb4, 4, 2, 8, 10, 0, 0, 0, 1, 0, 0, 0, 2, 1, 3, 3, 7,
        ];
        let all: Vec<_> = TcpOptions { rest: &syn }.collect();
        assert_eq!(
            all,
            [
                TcpOption::MaximumSegmentSize(1460),
                TcpOption::SackPermitted,
                TcpOption::Timestamps { value: 1, echo: 2 },
                TcpOption::WindowScale(7),
            ]
        );
        let sack = [1, 1, 5, 10, 0, 0, 0, 9, 0, 0, 1, 0, 0, 99, 99];
        let mut options = TcpOptions { rest: &sack };
        let Some(TcpOption::Sack(mut blocks)) = options.next() else {
            panic!("no sack option");
        };
        assert_eq!(blocks.next(), Some((SeqNumber(9), SeqNumber(256))));
        assert_eq!(blocks.next(), None);
        assert_eq!(options.next(), None, "end of list hides what follows");
    }

    #[test]
    fn malformed_options_end_the_list() {
        for bytes in [&[2_u8][..], &[2, 0], &[2, 1], &[2, 5, 0, 0], &[8, 255, 1]] {
            assert_eq!(TcpOptions { rest: bytes }.next(), None, "{bytes:?}");
        }
        assert_eq!(
            TcpOptions { rest: &[2, 3, 9] }.next(),
            Some(TcpOption::Other {
                kind: 2,
                data: &[9]
            })
        );
        assert_eq!(
            TcpOptions { rest: &[5, 2] }.next(),
            Some(TcpOption::Other { kind: 5, data: &[] })
        );
    }

    #[test]
    fn flags() {
        let synack = TcpFlags::SYN | TcpFlags::ACK;
        assert!(synack.contains(TcpFlags::SYN));
        assert!(!TcpFlags::SYN.contains(synack));
        assert!(TcpFlags::SYN.intersects(synack));
    }
}
