//! Datagrams of UDP flows, as `flows` takes them: signatures, QUIC, names, streams.

use std::net::Ipv4Addr;

use linkweir_flows::FlowsConfig;
use linkweir_flows::layer7::{Datagram, Ends, Handle, Layer7};
use linkweir_record::flow::{FlowBatch, FlowRow, SpinVerdict};
use linkweir_wire::Side;

/// Flows at once: one server, whose client has another port in each.
const FLOWS: usize = 4;

/// Takes arbitrary bytes as datagrams, each behind five bytes: which flow and which side, microseconds since the one
/// before, and its length. Whatever they are, the halves of a round trip add up, and the spin bit gives a figure only
/// with its verdict.
pub(crate) fn udp(input: &[u8]) {
    let mut layer7 = Layer7::new(&FlowsConfig::default());
    let mut handles = [Handle::default(); FLOWS];
    let mut out = FlowBatch::default();
    let mut ts_ns = 0;
    let mut rest = input;
    let ends = |flow: u8| Ends {
        client: (Ipv4Addr::new(10, 0, 0, 1).into(), 40_000 + u16::from(flow)),
        server: (Ipv4Addr::new(192, 0, 2, 1).into(), 443),
        start_ns: 0,
    };
    while let Some(([which, time @ .., high, low], behind)) = rest.split_first_chunk::<5>() {
        let len = usize::from(*high) << 8 | usize::from(*low);
        let (payload, next) = behind.split_at_checked(len).unwrap_or((behind, &[]));
        rest = next;
        ts_ns += u64::from(u16::from_be_bytes(*time)) * 1000;
        let flow = which & 3;
        let side = if which & 4 == 0 {
            Side::Client
        } else {
            Side::Server
        };
        let datagram = Datagram {
            payload,
            len: u32::try_from(payload.len()).unwrap_or(u32::MAX),
            ttl: 64,
            ts_ns,
        };
        if let Some(handle) = handles.get_mut(usize::from(flow)) {
            layer7.on_udp(handle, &ends(flow), side, &datagram, &mut out);
        }
        assert!(layer7.states() <= FLOWS);
    }
    for handle in handles {
        let mut row = FlowRow::default();
        layer7.fill(handle, &mut row);
        if let Some(quic) = row.quic {
            assert_eq!(
                quic.rtt_ns().is_some(),
                quic.initial_ns.is_some() && quic.handshake_ns.is_some()
            );
            assert_eq!(
                quic.spin.is_some(),
                quic.spin_verdict == Some(SpinVerdict::Ok)
            );
            assert!(quic.spin.is_none() || quic.rtt_ns().is_some() && quic.spin_count > 1);
        }
        layer7.release(handle);
    }
    assert_eq!(layer7.states(), 0);
}
