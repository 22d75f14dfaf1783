//! Marks of many connections.

use std::net::{SocketAddr, UdpSocket};

use linkweir_netfilter::conntrack::{ConntrackError, clear_marks, count_marks};
use linkweir_sys::privileges::Restrict;

use super::lane::{is_inside, rule, run};

/// Of each version; more than the kernel tells in one part.
const CONNECTIONS: u64 = 3000;

fn say_to_many(host: &str) {
    let socket = UdpSocket::bind(format!("{host}:0")).unwrap();
    for port in 10_000..10_000 + CONNECTIONS {
        let to: SocketAddr = format!("{host}:{port}").parse().unwrap();
        // Nobody listens, and an earlier datagram's refusal may be told here.
        drop(socket.send_to(b"x", to));
        drop(socket.send_to(b"x", to));
    }
}

#[test]
fn only_the_bits_that_are_ours_are_cleared() {
    if !is_inside("kernel::conntrack::only_the_bits_that_are_ours_are_cleared") {
        return;
    }
    assert_eq!(clear_marks(u32::MAX).unwrap(), 0, "nothing is tracked yet");
    run("ip", "link set lo up");
    rule("OUTPUT -p udp -j CONNMARK --set-mark 0x00a10005");
    rule("OUTPUT -p udp --dport 10000:10999 -j CONNMARK --set-mark 0x00000005");
    say_to_many("127.0.0.1");
    say_to_many("[::1]");
    run("iptables", "-w -t mangle -F OUTPUT");
    run("ip6tables", "-w -t mangle -F OUTPUT");
    let ours = 0x0fff_0000;
    let marked = 2 * (CONNECTIONS - 1000);
    let counts = count_marks(ours).unwrap();
    assert_eq!(counts.get(&0x00a1_0000), Some(&marked));
    assert_eq!(counts.get(&0), Some(&2000));
    assert_eq!(clear_marks(0x000f_0000).unwrap(), marked);
    assert_eq!(
        count_marks(u32::MAX)
            .unwrap()
            .into_iter()
            .collect::<Vec<_>>(),
        [(0x0000_0005, 2000), (0x00a0_0005, marked)]
    );
    assert_eq!(clear_marks(ours).unwrap(), marked);
    assert_eq!(clear_marks(ours).unwrap(), 0);
    assert_eq!(
        count_marks(u32::MAX).unwrap().get(&5),
        Some(&(2 * CONNECTIONS))
    );
    let refused = std::thread::spawn(|| {
        Restrict::default().apply().unwrap();
        clear_marks(1).unwrap_err()
    });
    let refused = refused.join().unwrap();
    assert!(matches!(refused, ConntrackError::NotPermitted), "{refused}");
}
