//! A scripted server, rule by rule; and a model of one behind a bad line.
//!
//! What a connection costs.

use super::{Opening, TcpClients, TcpSettings};
use harness::{ACK, Ear, SYN, Seg, Wire, opening};
use linkweir_wire::{LinkType, SeqNumber, Timestamp, decode};
use std::net::SocketAddr;

mod channel;
mod closing;
mod handshake;
mod harness;
mod receiving;
mod sending;
mod strangers;

/// Makes a connection of a client with a server.
fn establish(tcp: &mut TcpClients, client: u32, now: Timestamp, wire: &mut Wire, ear: &mut Ear) {
    let opening = Opening {
        client,
        ..opening(true)
    };
    tcp.connect(&opening, now, wire).unwrap();
    let syn = wire.0.pop().unwrap();
    let answer = Seg {
        src: syn.dst,
        dst: syn.src,
        seq: SeqNumber(client),
        ack: syn.seq + 1,
        flags: SYN | ACK,
        window: 1000,
        options: vec![2, 4, 5, 180],
        payload: vec![],
    };
    let frame = answer.to_frame();
    let packet = decode(
        LinkType::ETHERNET,
        &frame,
        u32::try_from(frame.len()).unwrap(),
    )
    .unwrap();
    tcp.on_segment(&packet, client, now, now, wire, ear);
    wire.0.clear();
    ear.0.clear();
}

#[test]
fn an_idle_connection_takes_at_most_128_bytes() {
    const CONNECTIONS: u32 = 200_000;
    let settings = TcpSettings {
        max_connections: CONNECTIONS,
        ..TcpSettings::default()
    };
    // Four clients: 50,000 of their 64,512 ports.
    let mut tcp = TcpClients::new(settings, 1, 4);
    let empty = tcp.memory_bytes();
    let (mut wire, mut ear) = (Wire::default(), Ear::default());
    let now = Timestamp::from_nanos(1_790_000_000_000_000_000);
    for n in 0..CONNECTIONS {
        establish(&mut tcp, n % 4, now, &mut wire, &mut ear);
    }
    assert_eq!(tcp.open(), CONNECTIONS);
    assert_eq!(tcp.counts().established, u64::from(CONNECTIONS));
    assert_eq!(tcp.in_flight(), 0);
    let each = tcp.memory_bytes() / CONNECTIONS as usize;
    assert!(each <= 128, "{each} bytes, {empty} of them for all");
    // And they are all found.
    let remote: SocketAddr = opening(true).remote;
    assert_eq!(remote.port(), 80);
    tcp.on_tick(now + std::time::Duration::from_secs(5), &mut wire, &mut ear);
    assert_eq!(
        (wire.0.len(), ear.0.len()),
        (0, 0),
        "nothing is due of them"
    );
}
