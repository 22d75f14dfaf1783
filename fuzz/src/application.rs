//! Classifies arbitrary openings: the first byte is what the ports are, the second and third how long
//! the client's part is. An answer about a side stays what it is when the other side is known to be
//! silent, and datagrams end the wait.

use linkweir_proto::application::{Opening, UdpMemory, Verdict, classify_tcp, classify_udp};

const PORTS: [u16; 16] = [
    0, 21, 25, 53, 80, 110, 123, 143, 389, 443, 1863, 1900, 1935, 3389, 5353, 40_000,
];

pub(crate) fn target(input: &[u8]) {
    let Some((&[ports, high, low], payload)) = input.split_first_chunk() else {
        return;
    };
    let (client_port, server_port) = (
        PORTS[usize::from(ports >> 4)],
        PORTS[usize::from(ports & 15)],
    );
    let at = usize::from(u16::from_be_bytes([high, low])).min(payload.len());
    let (client, server) = payload.split_at(at);
    let opening = Opening {
        client,
        server,
        client_port,
        server_port,
    };
    let verdict = classify_tcp(&opening);
    assert_eq!(verdict, classify_tcp(&opening));
    if client.is_empty() && server.is_empty() {
        assert_eq!(verdict, Verdict::More);
    }
    let mut memory = UdpMemory::default();
    for round in 0..300 {
        let is_from_client = round % 2 == 0;
        let datagram = if is_from_client { client } else { server };
        match classify_udp(
            datagram,
            is_from_client,
            client_port,
            server_port,
            &mut memory,
        ) {
            Verdict::More => assert!(round < 20, "waits for ever"),
            Verdict::Likely(_) => assert!(round < 254, "waits for ever"),
            Verdict::Is(_) | Verdict::No => break,
        }
    }
}
