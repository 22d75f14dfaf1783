//! Names, addresses, discovery, directories: ports and types as they come.

use super::*;

fn udp_from_to(datagram: &[u8], ports: (u16, u16)) -> Verdict {
    classify_udp(datagram, true, ports.0, ports.1, &mut UdpMemory::default())
}

fn llmnr(flags: u16, name: &str) -> Vec<u8> {
    let mut message = vec![0x12, 0x34];
    message.extend(flags.to_be_bytes());
    message.extend([0, 1, 0, 0, 0, 0, 0, 0, u8::try_from(name.len()).unwrap()]);
    message.extend(name.as_bytes());
    message.extend([0, 0, 1, 0, 1]);
    message
}

#[test]
fn llmnr_has_names_in_utf_8_and_goes_over_tcp() {
    for name in ["wpad", "b\u{fc}ro", "\u{30d7}\u{30ea}\u{30f3}\u{30bf}"] {
        // A question, one that tells of a conflict, an answer.
        for flags in [0x0000, 0x0400, 0x8000] {
            let message = llmnr(flags, name);
            let verdict = udp_from_to(&message, (50_123, 5355));
            assert_eq!(verdict, Verdict::Is(A::Llmnr), "{name} {flags:x}");
            let stream = [&[0, u8::try_from(message.len()).unwrap()][..], &message].concat();
            assert_eq!(tcp_on(&stream, b"", 5355), Verdict::Is(A::Llmnr), "{name}");
            assert_eq!(tcp_on(&stream[..9], b"", 5355), Verdict::More);
        }
    }
    let broken = [&llmnr(0, "wpad")[..12], b"\x02\xff\xfe\0\0\x01\0\x01"].concat();
    assert_ne!(udp_from_to(&broken, (50_123, 5355)), Verdict::Is(A::Llmnr));
}

#[test]
fn dns_is_dns_whatever_port_it_is_asked_from() {
    for port in [5353, 5355, 137, 138, 40_000] {
        let verdict = udp_from_to(&dns_query(), (port, 53));
        assert_eq!(verdict, Verdict::Is(A::Dns), "{port}");
        let verdict = udp_from_to(&dns_query(), (53, port));
        assert_eq!(verdict, Verdict::Is(A::Dns), "{port}");
    }
    assert_eq!(
        udp_from_to(&dns_query(), (5353, 5353)),
        Verdict::Is(A::Mdns)
    );
}

#[test]
fn dhcp_for_ipv6_has_relays_and_many_types() {
    let option = [0, 1, 0, 4, 1, 2, 3, 4];
    for kind in 1..=37_u8 {
        let mut message = vec![kind];
        if matches!(kind, 12 | 13) {
            message.push(1);
            message.extend([0x20; 32]);
        } else {
            message.extend([7; 3]);
        }
        message.extend(option);
        // From a relay, which has the server's port or any.
        for ports in [(546, 547), (547, 546), (547, 547), (50_123, 547)] {
            let verdict = udp_from_to(&message, ports);
            assert_eq!(verdict, Verdict::Is(A::Dhcp), "{kind} {ports:?}");
        }
        message.extend([0, 0, 0, 0]);
        assert_ne!(udp_from_to(&message, (547, 547)), Verdict::Is(A::Dhcp));
    }
    assert_ne!(
        udp_from_to(&[38, 0, 0, 1, 0, 1, 0, 0], (546, 547)),
        Verdict::Is(A::Dhcp)
    );
}

#[test]
fn datagrams_of_netbios_may_lack_their_port() {
    let name = [&[32][..], &[b'C'; 32], &[0]].concat();
    for (kind, behind) in [
        (0x10, &[0, 68, 0, 0][..]),
        (0x11, &[0, 68, 0, 0]),
        (0x14, &[]),
    ] {
        let header = [kind, 2, 0x12, 0x34, 10, 0, 0, 1];
        for port in [[0, 0], [0, 138], [0x9C, 0x40]] {
            let datagram = [&header[..], &port, behind, &name, &name].concat();
            let verdict = udp_from_to(&datagram, (0, 138));
            assert_eq!(verdict, Verdict::Is(A::NetBios), "{kind:x} {port:?}");
        }
    }
    assert_ne!(
        udp_from_to(&[0x11; 82], (138, 138)),
        Verdict::Is(A::NetBios)
    );
}

#[test]
fn devices_answer_from_other_ports() {
    let answer = b"HTTP/1.1 200 OK\r\nCACHE-CONTROL: max-age=1800\r\nST: upnp:rootdevice\r\nUSN: uuid:a::upnp:rootdevice\r\n\r\n";
    assert_eq!(udp_from_to(answer, (40_000, 50_123)), Verdict::Is(A::Ssdp));
    let other = b"HTTP/1.1 200 OK\r\nServer: a\r\n\r\n";
    assert_ne!(udp_from_to(other, (40_000, 50_123)), Verdict::Is(A::Ssdp));
}

#[test]
fn directories_are_known_off_their_port() {
    let messages: [&[u8]; 5] = [
        b"\x30\x0c\x02\x01\x01\x60\x07\x02\x01\x03\x04\0\x80\0",
        b"\x30\x84\0\0\0\x10\x02\x01\x01\x61\x84\0\0\0\x07\x0a\x01\0\x04\0\x04\0",
        b"\x30\x25\x02\x01\x01\x63\x20\x04\x00\x0a\x01\0\x0a\x01\0\x02\x01\0\x02\x01\0\x01\x01\0\x87\x0bobjectclass\x30\0",
        b"\x30\x2a\x02\x02\x01\x02\x63\x24\x04\x04dc=a\x0a\x01\x02\x0a\x01\x03\x02\x01\0\x02\x01\0\x01\x01\0\x87\x0bobjectclass\x30\0",
        b"\x30\x1d\x02\x01\x01\x77\x18\x80\x161.3.6.1.4.1.1466.20037",
    ];
    for message in messages {
        let shown = message.escape_ascii();
        assert_eq!(tcp(message, b""), Verdict::Is(A::Ldap), "{shown}");
        assert_eq!(udp(message), Verdict::Is(A::Ldap), "{shown}");
    }
    // The shape alone is anything in ASN.1; on its port it is enough.
    let delete = b"\x30\x09\x02\x01\x05\x4a\x04dc=a";
    assert_ne!(tcp(delete, b"abcdefg"), Verdict::Is(A::Ldap));
    assert_eq!(tcp_on(delete, b"", 389), Verdict::Is(A::Ldap));
}
