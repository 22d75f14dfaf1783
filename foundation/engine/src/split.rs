//! Which of several equal workers gets a frame.

use linkweir_wire::{LinkType, Network, Packet, Tcp, Transport, decode, decode_plain};

use crate::Frame;
use crate::hash::{eq3_balance, flow_hash};

/// Where a frame goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Route {
    /// To the shard of this hash.
    To(u32),
    /// To all shards, a copy each: it names servers.
    All,
    /// Nowhere by itself: it is a part of an IP packet, which goes where it belongs when it is whole.
    Part,
}

/// Chooses a shard for every packet of a trace, seen in capture order.
///
/// The packet goes to shard `hash % shards`. What must meet in one worker (both halves of a
/// transaction, all packets of a flow) gets the same hash.
pub trait Splitter {
    /// The hash of a packet, or nothing where every worker gets a copy of it.
    fn packet(&mut self, packet: &Packet<'_>) -> Option<u32>;

    /// Where a frame goes.
    #[inline]
    fn route(&mut self, frame: &Frame<'_>) -> Route {
        let to = |hash: Option<u32>| hash.map_or(Route::All, Route::To);
        if frame.link == LinkType::ETHERNET
            && let Some(packet) = decode_plain(frame.bytes, frame.wire_len)
        {
            return to(self.packet(&packet));
        }
        match decode(frame.link, frame.bytes, frame.wire_len) {
            Ok(packet) if packet.is_fragment => Route::Part,
            Ok(packet) => to(self.packet(&packet)),
            Err(_) => Route::To(0),
        }
    }

    /// The hash of what is in this frame alone; 0 where that is nothing, or for all.
    #[inline]
    fn hash(&mut self, frame: &Frame<'_>) -> u32 {
        with_packet(frame, |packet| self.packet(packet))
            .flatten()
            .unwrap_or(0)
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
    fn packet(&mut self, packet: &Packet<'_>) -> Option<u32> {
        Some(hash_of_flow(packet))
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
    fn packet(&mut self, packet: &Packet<'_>) -> Option<u32> {
        let is_for_all = match &packet.transport {
            Transport::Udp(udp) => udp.src_port() == DNS || udp.dst_port() == DNS,
            _ => false,
        };
        (!is_for_all).then(|| hash_of_flow(packet))
    }
}

/// Eq. (3) on every packet by itself, without memory: what the kernel's program computes.
///
/// A segment whose payload begins with `HTTP` counts as from the server, one that begins with an
/// upper-case letter as from the client; any other as from the side with the lower port. The parts of a packet
/// go by its addresses, so that they meet.
#[derive(Debug, Clone, Copy, Default)]
pub struct TransactionSplitter;

impl Splitter for TransactionSplitter {
    #[inline]
    fn packet(&mut self, packet: &Packet<'_>) -> Option<u32> {
        let network = &packet.network;
        Some(match &packet.transport {
            Transport::Tcp(tcp) => transaction_hash(network, tcp),
            _ => hash_of_flow(packet),
        })
    }

    #[inline]
    fn hash(&mut self, frame: &Frame<'_>) -> u32 {
        let hash = with_packet(frame, |packet| {
            if packet.is_fragment {
                Some(hash_of_addresses(&packet.network))
            } else {
                self.packet(packet)
            }
        });
        hash.flatten().unwrap_or(0)
    }
}

/// The hash by which the parts of a packet are distributed where they are not reassembled before.
#[inline]
#[must_use]
pub fn hash_of_addresses(network: &Network<'_>) -> u32 {
    flow_hash((network.src(), 0), (network.dst(), 0))
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
    use linkweir_wire::Timestamp;
    use linkweir_wire::emit::{TcpFrame, UdpFrame, fragments, wrap};

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
    fn parts_of_packets_wait_and_names_go_to_all() {
        let (a, b) = ("192.0.2.1:40000", "198.51.100.2:80");
        let (a, b) = (a.parse().unwrap(), b.parse().unwrap());
        let segment = TcpFrame {
            payload: &[7; 100],
            ..TcpFrame::new(a, b)
        };
        let whole = segment.to_vec();
        let hash = FlowSplitter.hash(&frame(&whole));
        assert_eq!(FlowSplitter.route(&frame(&whole)), Route::To(hash));
        for part in fragments(&segment.to_packet(), 1, 48) {
            let bytes = wrap::ethernet(0x0800, &part);
            assert_eq!(FlowSplitter.route(&frame(&bytes)), Route::Part);
            assert_eq!(NamedFlowSplitter.route(&frame(&bytes)), Route::Part);
            assert_eq!(TransactionSplitter.route(&frame(&bytes)), Route::Part);
        }
        let mut resolver = b;
        resolver.set_port(DNS);
        let query = UdpFrame::new(a, resolver).to_vec();
        assert_eq!(NamedFlowSplitter.route(&frame(&query)), Route::All);
        assert!(matches!(FlowSplitter.route(&frame(&query)), Route::To(_)));
    }
}
