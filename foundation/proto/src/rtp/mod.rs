//! RTP and RTCP (RFC 3550): the header of a packet of media, and the reports of a compound packet.
//!
//! Whether a flow is of RTP at all, [`crate::application`] tells from several of its datagrams; a single one says
//! too little. What is read here is of a flow that was recognised.

mod control;
#[cfg(test)]
mod tests;

pub use control::{Block, Blocks, Compound, Control, SenderInfo};

/// Bytes of a header without sources and extension.
const HEADER: usize = 12;

/// The header of a packet of media.
///
/// Source: RFC 3550 section 5.1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MediaPacket {
    /// Payload type (RFC 3551 section 6): 0 to 127.
    pub kind: u8,
    /// Sequence number.
    pub sequence: u16,
    /// Timestamp, in units of the clock of the payload type.
    pub timestamp: u32,
    /// Synchronisation source.
    pub source: u32,
    /// Bytes in front of the payload: header, contributing sources, extension.
    pub header_len: usize,
}

impl MediaPacket {
    /// The header that a datagram begins with. `None`: shorter than one, or of another version.
    ///
    /// Of a datagram that was cut within its extension, the part of that which is there counts.
    #[inline]
    #[must_use]
    pub fn parse(datagram: &[u8]) -> Option<Self> {
        let &[first, second, s1, s2, t1, t2, t3, t4, x1, x2, x3, x4] =
            datagram.first_chunk::<HEADER>()?;
        if first >> 6 != 2 {
            return None;
        }
        let mut header_len = HEADER + 4 * usize::from(first & 0xF);
        if first & 0x10 != 0 {
            // Section 5.3.1: two bytes of the profile's, and the length in words.
            let words = datagram
                .get(header_len + 2..header_len + 4)
                .and_then(|at| at.first_chunk());
            let words = words.map_or(0, |words| u16::from_be_bytes(*words));
            header_len += 4 + 4 * usize::from(words);
        }
        Some(Self {
            kind: second & 0x7F,
            sequence: u16::from_be_bytes([s1, s2]),
            timestamp: u32::from_be_bytes([t1, t2, t3, t4]),
            source: u32::from_be_bytes([x1, x2, x3, x4]),
            header_len,
        })
    }

    /// Bytes of payload in a datagram of `len` bytes, padding included; zero where the header claims more
    /// than there is.
    #[must_use]
    pub fn payload_len(&self, len: u32) -> u32 {
        let header = u32::try_from(self.header_len).unwrap_or(u32::MAX);
        len.saturating_sub(header)
    }
}

/// Ticks per second of the clock of a payload type; `None` for dynamic types, whose clock only the
/// signalling knows.
///
/// Source: RFC 3551 section 6, tables 4 and 5.
#[must_use]
pub const fn clock_rate(kind: u8) -> Option<u32> {
    Some(match kind {
        0 | 3 | 4 | 5 | 7 | 8 | 9 | 12 | 13 | 15 | 18 | 19 => 8_000,
        6 => 16_000,
        10 | 11 => 44_100,
        14 | 25 | 26 | 28 | 31..=34 => 90_000,
        16 => 11_025,
        17 => 22_050,
        _ => return None,
    })
}

/// Whether a datagram of version 2 is of RTCP and not of RTP, where both share a flow.
///
/// Source: RFC 5761 section 4.
#[inline]
#[must_use]
pub fn is_control(datagram: &[u8]) -> bool {
    matches!(datagram, [first, 192..=223, ..] if first >> 6 == 2)
}
