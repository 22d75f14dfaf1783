//! How a frame lies in a ring: a header of 24 bytes, the captured bytes, zeros up to eight.

use linkweir_engine::Frame;
use linkweir_wire::{LinkType, Timestamp};

/// Bytes of the header.
pub(crate) const HEADER: usize = 24;
/// The last header word is this, exclusive-or the low half of the frame's position: what was
/// overwritten or is read at a wrong place does not look like a header.
const MARK: u32 = 0x7765_6972;

/// What a header says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Header {
    pub(crate) timestamp: Timestamp,
    pub(crate) captured_len: u32,
    pub(crate) wire_len: u32,
    pub(crate) link: LinkType,
    pub(crate) interface: u16,
}

/// Bytes a frame of `captured_len` bytes takes.
#[inline]
pub(crate) const fn room(captured_len: usize) -> usize {
    (HEADER + captured_len).next_multiple_of(8)
}

#[expect(
    clippy::cast_possible_truncation,
    reason = "the low half is what is wanted"
)]
#[inline]
const fn mark(position: u64) -> u32 {
    position as u32 ^ MARK
}

/// Writes a frame into `room`, which is at `position` and as long as [`room`] says.
///
/// Nothing where the room does not fit the frame.
#[inline]
pub(crate) fn encode(frame: &Frame<'_>, position: u64, room: &mut [u8]) -> Option<()> {
    let (header, rest) = room.split_first_chunk_mut::<HEADER>()?;
    let (body, padding) = rest.split_at_mut_checked(frame.bytes.len())?;
    let len = u32::try_from(frame.bytes.len()).ok()?;
    let mut words = header.as_chunks_mut::<8>().0.iter_mut();
    let wire = u64::from(frame.wire_len) << 32;
    let last = u64::from(mark(position)) << 32
        | u64::from(frame.interface) << 16
        | u64::from(frame.link.0);
    *words.next()? = frame.timestamp.as_nanos().to_le_bytes();
    *words.next()? = (wire | u64::from(len)).to_le_bytes();
    *words.next()? = last.to_le_bytes();
    body.copy_from_slice(frame.bytes);
    padding.fill(0);
    Some(())
}

/// The header at the start of `bytes`, which are at `position`; nothing where there is none, or the
/// frame would end behind `bytes`.
#[inline]
pub(crate) fn decode(bytes: &[u8], position: u64) -> Option<Header> {
    let (words, _) = bytes.as_chunks::<8>();
    let [timestamp, lens, last, ..] = words else {
        return None;
    };
    let timestamp = u64::from_le_bytes(*timestamp);
    let [a, b, c, d, e, f, g, h] = *lens;
    let [i, j, k, l, m @ ..] = *last;
    let captured_len = u32::from_le_bytes([a, b, c, d]);
    let is_whole = room(captured_len as usize) <= bytes.len();
    (is_whole && u32::from_le_bytes(m) == mark(position)).then(|| Header {
        timestamp: Timestamp::from_nanos(timestamp),
        captured_len,
        wire_len: u32::from_le_bytes([e, f, g, h]),
        link: LinkType(u16::from_le_bytes([i, j])),
        interface: u16::from_le_bytes([k, l]),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_goes_in_comes_out() {
        let frame = Frame {
            timestamp: Timestamp::from_nanos(u64::MAX - 3),
            bytes: b"0123456789",
            wire_len: 0x0102_0304,
            link: LinkType::LINUX_SLL2,
            interface: 9,
        };
        let mut bytes = vec![0xff; room(10)];
        assert_eq!(bytes.len(), 40);
        encode(&frame, 77, &mut bytes).unwrap();
        assert_eq!(&bytes[HEADER..], b"0123456789\0\0\0\0\0\0");
        let header = decode(&bytes, 77).unwrap();
        let expected = Header {
            timestamp: frame.timestamp,
            captured_len: 10,
            wire_len: frame.wire_len,
            link: frame.link,
            interface: 9,
        };
        assert_eq!(header, expected);
        assert_eq!(decode(&bytes, 85), None, "another place");
        assert_eq!(decode(&bytes[..32], 77), None, "cut");
        assert_eq!(decode(&bytes[..20], 77), None, "cut in the header");
        bytes[8..12].fill(0xff);
        assert_eq!(decode(&bytes, 77), None, "four gigabytes");
        assert_eq!(encode(&frame, 0, &mut [0; 30]), None);
    }
}
