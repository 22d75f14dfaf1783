//! Who of several equal workers gets a frame.

use linkweir_wire::{LinkType, Network, Packet, Tcp, Transport, decode, decode_plain};

use crate::Frame;
use crate::hash::{eq3_balance, flow_hash};

/// Chooses a shard for every frame of a trace, seen in capture order.
///
/// The frame goes to shard `hash % shards`. What must meet in one worker (both halves of a
/// transaction, all packets of a flow) gets the same hash.
pub trait Splitter {
    /// The hash of this frame.
    fn hash(&mut self, frame: &Frame<'_>) -> u32;

    /// The hash of this frame, or nothing where every worker gets a copy of it: what names servers, and
    /// later IP fragments, which belong where the first fragment of their packet went. One that ends in its
    /// transport header goes by the addresses alone, so its packet may not meet those of its connection.
    #[inline]
    fn route(&mut self, frame: &Frame<'_>) -> Option<u32> {
        Some(self.hash(frame))
    }
}

/// The shard of a hash; 0 where there are none to choose from.
#[inline]
#[must_use]
pub const fn shard_of(hash: u32, shards: u32) -> u32 {
    match hash.checked_rem(shards) {
        Some(shard) => shard,
        None => 0,
    }
}

/// Packets of one flow to one worker: a symmetric hash of addresses and ports.
///
/// Frames without TCP or UDP go by their addresses, those without IP to shard 0.
#[derive(Debug, Clone, Copy, Default)]
pub struct FlowSplitter;

impl Splitter for FlowSplitter {
    #[inline]
    fn hash(&mut self, frame: &Frame<'_>) -> u32 {
        with_packet(frame, hash_of_flow).unwrap_or(0)
    }

    #[inline]
    fn route(&mut self, frame: &Frame<'_>) -> Option<u32> {
        with_packet(frame, |packet| {
            (!packet.is_later_fragment).then(|| hash_of_flow(packet))
        })
        .unwrap_or(Some(0))
    }
}

#[inline]
fn hash_of_flow(packet: &Packet<'_>) -> u32 {
    let (src, dst) = match &packet.transport {
        Transport::Tcp(tcp) => (tcp.src_port(), tcp.dst_port()),
        Transport::Udp(udp) => (udp.src_port(), udp.dst_port()),
        _ => (0, 0),
    };
    flow_hash((packet.network.src(), src), (packet.network.dst(), dst))
}

/// Like [`FlowSplitter`], and what names servers goes to all: DNS over UDP, so that every worker
/// knows the names that another one's flows resolved.
#[derive(Debug, Clone, Copy, Default)]
pub struct NamedFlowSplitter;

/// Port of the domain name system (RFC 1035 sec. 4.2).
const DNS: u16 = 53;

impl Splitter for NamedFlowSplitter {
    #[inline]
    fn hash(&mut self, frame: &Frame<'_>) -> u32 {
        FlowSplitter.hash(frame)
    }

    #[inline]
    fn route(&mut self, frame: &Frame<'_>) -> Option<u32> {
        with_packet(frame, |packet| {
            let is_for_all = match &packet.transport {
                Transport::Udp(udp) => udp.src_port() == DNS || udp.dst_port() == DNS,
                _ => packet.is_later_fragment,
            };
            (!is_for_all).then(|| hash_of_flow(packet))
        })
        .unwrap_or(Some(0))
    }
}

/// Eq. (3) on every packet by itself, without memory: what the kernel's program computes.
///
/// A segment whose payload begins with `HTTP` counts as from the server, one that begins with an
/// upper-case letter as from the client; any other as from the side with the lower port.
#[derive(Debug, Clone, Copy, Default)]
pub struct TransactionSplitter;

impl Splitter for TransactionSplitter {
    #[inline]
    fn hash(&mut self, frame: &Frame<'_>) -> u32 {
        with_packet(frame, |packet| match &packet.transport {
            Transport::Tcp(tcp) => transaction_hash(&packet.network, tcp),
            Transport::Udp(udp) => flow_hash(
                (packet.network.src(), udp.src_port()),
                (packet.network.dst(), udp.dst_port()),
            ),
            _ => flow_hash((packet.network.src(), 0), (packet.network.dst(), 0)),
        })
        .unwrap_or(0)
    }
}

/// Eq. (3) of a segment; see [`TransactionSplitter`].
#[inline]
#[must_use]
pub fn transaction_hash(network: &Network<'_>, tcp: &Tcp<'_>) -> u32 {
    eq3_balance(
        (network.src(), tcp.src_port()),
        (network.dst(), tcp.dst_port()),
        link_number(tcp),
    )
}

/// The number that a transaction's halves have in common (Eq. (2)): the sequence number of a segment
/// from the server, the acknowledgment number of one from the client; see [`TransactionSplitter`].
#[inline]
#[must_use]
pub fn link_number(tcp: &Tcp<'_>) -> u32 {
    let is_server = match tcp.payload.first_chunk::<4>() {
        Some(b"HTTP") => true,
        Some([b'A'..=b'Z', ..]) => false,
        _ => tcp.src_port() < tcp.dst_port(),
    };
    let link = if is_server { tcp.seq() } else { tcp.ack() };
    link.0
}

#[inline]
fn with_packet<T>(frame: &Frame<'_>, then: impl FnOnce(&Packet<'_>) -> T) -> Option<T> {
    if frame.link == LinkType::ETHERNET
        && let Some(packet) = decode_plain(frame.bytes, frame.wire_len)
    {
        return Some(then(&packet));
    }
    decode(frame.link, frame.bytes, frame.wire_len)
        .ok()
        .map(|packet| then(&packet))
}

#[cfg(test)]
mod tests {
    use linkweir_wire::emit::{TcpFrame, UdpFrame, fragments, wrap};
    use linkweir_wire::{LinkType, Timestamp};

    use super::*;

    fn frame(bytes: &[u8]) -> Frame<'_> {
        Frame {
            timestamp: Timestamp::ZERO,
            bytes,
            wire_len: 0,
            link: LinkType::ETHERNET,
            interface: 0,
        }
    }

    #[test]
    fn later_fragments_and_names_go_to_all_and_the_first_fragment_with_its_flow() {
        let (a, b) = ("192.0.2.1:40000", "198.51.100.2:80");
        let (a, b) = (a.parse().unwrap(), b.parse().unwrap());
        let segment = TcpFrame {
            payload: &[7; 100],
            ..TcpFrame::new(a, b)
        };
        let whole = segment.to_vec();
        let hash = FlowSplitter.hash(&frame(&whole));
        assert_eq!(FlowSplitter.route(&frame(&whole)), Some(hash));
        let parts = fragments(&segment.to_packet(), 1, 48);
        for (place, part) in parts.iter().enumerate() {
            let bytes = wrap::ethernet(0x0800, part);
            let expected = (place == 0).then_some(hash);
            assert_eq!(FlowSplitter.route(&frame(&bytes)), expected);
            assert_eq!(NamedFlowSplitter.route(&frame(&bytes)), expected);
        }
        let mut resolver = b;
        resolver.set_port(DNS);
        let query = UdpFrame::new(a, resolver).to_vec();
        assert_eq!(NamedFlowSplitter.route(&frame(&query)), None);
        assert!(FlowSplitter.route(&frame(&query)).is_some());
    }
}
