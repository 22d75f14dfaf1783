//! Segments that offload has joined, taken apart again.
//!
//! A server on this machine, or a card that receives, hands over up to 64 KiB as one frame. On the line
//! of a client it would be many: they are lost one by one, and each takes its time.

use std::net::SocketAddr;

use linkweir_wire::emit::TcpFrame;
use linkweir_wire::{Packet, SeqNumber, TcpFlags, Transport};

use crate::frames::Frames;

/// IPv4 and IPv6 without options, and TCP.
const V4_HEADERS: usize = 20 + 20;
const V6_HEADERS: usize = 40 + 20;

/// Appends the segments that a joined one stands for: frames whose packets are at most `mtu` bytes
/// long. Returns false, and appends nothing, where the packet is no longer than that or not TCP.
///
/// All have the options and the acknowledgment of the joined one; PSH and FIN are on the last, CWR on
/// the first (RFC 3168 sec. 6.1.2), as where a card takes a frame apart.
pub fn take_apart(packet: &Packet<'_>, mtu: u16, out: &mut Frames) -> bool {
    let Transport::Tcp(tcp) = packet.transport else {
        return false;
    };
    let headers = match packet.network.version() {
        4 => V4_HEADERS,
        _ => V6_HEADERS,
    };
    // At least a byte each, whatever the MTU.
    let room = usize::from(mtu)
        .saturating_sub(headers + tcp.options.len())
        .max(1);
    if tcp.payload.len() <= room {
        return false;
    }
    let vlan = packet.vlan;
    let whole = TcpFrame {
        vlans: vlan.as_slice(),
        ttl: packet.network.ttl(),
        ack: tcp.ack(),
        window: tcp.window(),
        options: tcp.options,
        ..TcpFrame::new(
            SocketAddr::new(packet.network.src(), tcp.src_port()),
            SocketAddr::new(packet.network.dst(), tcp.dst_port()),
        )
    };
    let first_identification = packet.network.identification().unwrap_or(0);
    let count = tcp.payload.len().div_ceil(room);
    let mut seq = tcp.seq();
    for (number, payload) in tcp.payload.chunks(room).enumerate() {
        let mut flags = tcp.flags();
        if number + 1 < count {
            flags = without(flags, TcpFlags::PSH.0 | TcpFlags::FIN.0);
        }
        if number > 0 {
            flags = without(flags, TcpFlags::CWR.0);
        }
        let segment = TcpFrame {
            seq,
            flags,
            identification: u16::try_from(number)
                .map_or(0, |number| first_identification.wrapping_add(number)),
            payload,
            ..whole
        };
        out.push_with(|bytes| segment.append_to(bytes));
        let len = u32::try_from(payload.len()).unwrap_or(0);
        seq = SeqNumber(seq.0.wrapping_add(len));
    }
    true
}

const fn without(flags: TcpFlags, bits: u8) -> TcpFlags {
    TcpFlags(flags.0 & !bits)
}

#[cfg(test)]
mod tests {
    use linkweir_wire::{LinkType, checksum, decode};
    use proptest::prelude::*;

    use super::*;

    fn read(frame: &[u8]) -> Packet<'_> {
        decode(
            LinkType::ETHERNET,
            frame,
            u32::try_from(frame.len()).unwrap(),
        )
        .unwrap()
    }

    #[test]
    fn what_fits_is_left_alone() {
        let (client, server) = (
            "10.0.0.2:40000".parse().unwrap(),
            "10.0.0.1:80".parse().unwrap(),
        );
        let frame = TcpFrame {
            payload: &[7; 1460],
            ..TcpFrame::new(server, client)
        }
        .to_vec();
        let mut out = Frames::default();
        assert!(!take_apart(&read(&frame), 1500, &mut out));
        assert!(take_apart(&read(&frame), 1499, &mut out));
        assert_eq!(
            out.iter().map(<[u8]>::len).collect::<Vec<_>>(),
            [14 + 1499, 14 + 41]
        );
    }

    proptest! {
        #[test]
        fn the_parts_are_the_whole(
            len in 1_usize..30_000,
            mtu in 60_u16..9000,
            seq: u32,
            is_v6: bool,
            vlan in prop::option::of(1_u16..4095),
            has_options: bool,
        ) {
            let (server, client) = if is_v6 { ("[fd00::1]:80", "[fd00::2]:40000") } else { ("10.0.0.1:80", "10.0.0.2:40000") };
            let payload: Vec<u8> = (0..len).map(|n| n.to_le_bytes()[0]).collect();
            let vlan = vlan.into_iter().collect::<Vec<u16>>();
            let options: &[u8] = if has_options { &[1, 1, 8, 10, 0, 0, 0, 1, 0, 0, 0, 2] } else { &[] };
            let frame = TcpFrame {
                seq: SeqNumber(seq),
                ack: SeqNumber(99),
                window: 501,
                flags: TcpFlags(TcpFlags::ACK.0 | TcpFlags::PSH.0 | TcpFlags::FIN.0 | TcpFlags::CWR.0),
                payload: &payload,
                options,
                vlans: &vlan,
                ttl: 61,
                ..TcpFrame::new(server.parse().unwrap(), client.parse().unwrap())
            }
            .to_vec();
            let whole = read(&frame);
            let mut out = Frames::default();
            if !take_apart(&whole, mtu, &mut out) {
                prop_assert!(frame.len() - 14 - 4 * vlan.len() <= usize::from(mtu));
                return Ok(());
            }
            let (mut came, mut next, count) = (Vec::new(), seq, out.len());
            for (number, part) in out.iter().enumerate() {
                prop_assert!(part.len() - 14 - 4 * vlan.len() <= usize::from(mtu).max(73));
                let packet = read(part);
                let Transport::Tcp(tcp) = packet.transport else { panic!("no segment") };
                prop_assert_eq!(checksum::verify_tcp(&packet.network, &tcp), Some(true));
                prop_assert_eq!((packet.network.src(), packet.network.dst()), (whole.network.src(), whole.network.dst()));
                prop_assert_eq!((packet.vlan, packet.network.ttl()), (whole.vlan, 61));
                prop_assert_eq!((tcp.seq().0, tcp.ack().0, tcp.window(), tcp.options), (next, 99, 501, options));
                let has = |flag: TcpFlags| tcp.flags().0 & flag.0 != 0;
                let (is_first, is_last) = (number == 0, number + 1 == count);
                prop_assert_eq!((has(TcpFlags::CWR), has(TcpFlags::PSH), has(TcpFlags::FIN)), (is_first, is_last, is_last));
                next = next.wrapping_add(tcp.payload_len);
                came.extend_from_slice(tcp.payload);
            }
            prop_assert_eq!(came, payload);
        }
    }
}
