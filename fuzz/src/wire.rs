//! Decodes arbitrary frames of every link type and reads all there is in them.
//!
//! Input: a byte that chooses the link type, two bytes that say how much longer the frame was on
//! the wire than it was captured (big endian), the frame.

use std::hint::black_box;

use linkweir_wire::{
    DecodeFaults, Fragments, LinkType, Packet, TcpOption, Timestamp, Transport, checksum, decode,
};

pub(crate) fn target(input: &[u8]) {
    let Some((&[link, hi, lo], frame)) = input.split_first_chunk::<3>() else {
        return;
    };
    let known = LinkType::DECODED;
    let link = known
        .get(usize::from(link) % (known.len() + 1))
        .copied()
        .unwrap_or(LinkType(u16::MAX));
    let captured = u32::try_from(frame.len()).expect("a small input");
    let wire_len = captured + u32::from(u16::from_be_bytes([hi, lo]));
    let mut fragments = Fragments::default();
    for _ in 0..2 {
        fragments.on_frame((link, frame, wire_len), Timestamp::ZERO, |_| {});
    }
    fragments.finish(|joined| {
        if let Ok(packet) = joined.packet {
            read(&packet, u32::MAX);
        }
    });
    match decode(link, frame, wire_len) {
        Ok(packet) => {
            // A packet that was reassembled has been in the tunnels of its fragments too.
            assert!(packet.tunnels <= 8);
            read(&packet, wire_len);
        }
        Err(error) => {
            assert!(error.offset <= wire_len);
            let mut faults = DecodeFaults::default();
            faults.record(&error);
            assert_eq!(faults.iter().count(), 1);
            black_box(error.to_string());
        }
    }
}

/// Every accessor; and what holds for every packet.
fn read(packet: &Packet<'_>, wire_len: u32) {
    let network = &packet.network;
    black_box((
        network.src(),
        network.dst(),
        network.ttl(),
        network.protocol(),
    ));
    black_box((
        network.traffic_class(),
        network.identification(),
        network.version(),
    ));
    assert!(packet.vlan.is_none_or(|id| id < 4096));
    if let Some(fault) = packet.fault {
        assert!(fault.offset <= wire_len);
        black_box(fault.to_string());
    }
    // Of a frame that was cut and its record rewritten, or that is a part of what its link layer has split, the length
    // is that of the IP header.
    let longest = wire_len.max(1 << 16);
    match packet.transport {
        Transport::Tcp(tcp) => {
            assert!(tcp.payload.len() <= tcp.payload_len as usize);
            assert!(tcp.payload_len < longest);
            black_box((
                tcp.src_port(),
                tcp.dst_port(),
                tcp.seq(),
                tcp.ack(),
                tcp.flags(),
            ));
            black_box((
                tcp.window(),
                tcp.checksum(),
                tcp.urgent_pointer(),
                tcp.sequence_len(),
            ));
            for option in tcp.options() {
                if let TcpOption::Sack(blocks) = option {
                    assert!(blocks.count() <= 4);
                }
            }
            black_box(checksum::verify_tcp(network, &tcp));
        }
        Transport::Udp(udp) => {
            assert!(udp.payload.len() <= udp.payload_len as usize);
            assert!(udp.payload_len < longest);
            black_box((udp.src_port(), udp.dst_port(), udp.length()));
            black_box(checksum::verify_udp(network, &udp));
        }
        Transport::Fragment | Transport::Icmp6(_) | Transport::Other(_) | Transport::NotIp(_) => {}
    }
}
