//! Bytes of packets by their headers.

use linkweir_engine::Frame;
use linkweir_wire::{Network, Tcp};

/// No frame is longer, also not before a card cuts it into segments (Linux: 512 KiB, BIG TCP).
const LONGEST: u32 = 1 << 20;

/// Bytes that a frame had on the wire. A capture that says more than is possible is not believed: of
/// packets whose length field is empty that number would count as their payload.
#[inline]
pub(crate) fn wire_len(frame: &Frame<'_>) -> u32 {
    let captured = u32::try_from(frame.bytes.len()).unwrap_or(u32::MAX);
    frame.wire_len.min(LONGEST.max(captured))
}

/// Bytes of a TCP header and its payload.
#[inline]
pub(crate) fn tcp_len(tcp: &Tcp<'_>) -> u32 {
    let [.., offset, _, _, _, _, _, _, _] = *tcp.header();
    u32::from(offset >> 4) * 4 + tcp.payload_len
}

/// Bytes of an IP packet by its header; of one whose length field is empty (captured before the card
/// cut it into segments) by what it carries.
#[inline]
pub(crate) fn ip_len(network: &Network<'_>, transport_len: u32) -> u32 {
    match network {
        Network::V4(h) => {
            let [first, _, a, b, ..] = **h;
            match u16::from_be_bytes([a, b]) {
                0 => u32::from(first & 15) * 4 + transport_len,
                len => u32::from(len),
            }
        }
        Network::V6(h) => {
            let [_, _, _, _, a, b, ..] = **h;
            match u16::from_be_bytes([a, b]) {
                0 => 40 + transport_len,
                len => 40 + u32::from(len),
            }
        }
        Network::None => transport_len,
    }
}
