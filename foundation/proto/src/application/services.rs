//! Services of hosts and networks whose first bytes are plain: shares, databases, directories,
//! time, configuration, management.

use super::bytes::{be16, be32, begins, begins_any_case, byte, digits, is_text, le32};
use super::{Application, Verdict, View};

/// SMB 1, 2 and 3 (MS-SMB2 section 2.1): a length, then its mark; before it, on port 139, the
/// session of NetBIOS (RFC 1002 section 4.3).
pub(super) fn smb(view: &View<'_>) -> Verdict {
    let own = view.own;
    if own.len() < 8 && own.first() == Some(&0) && view.has_port_of(&[139, 445]) {
        return Verdict::More;
    }
    let is_mark = matches!(own.get(4..8), Some(b"\xFFSMB" | b"\xFESMB" | b"\xFDSMB"));
    if own.first() == Some(&0) && is_mark {
        return Verdict::Is(Application::Smb);
    }
    let is_session = own.starts_with(&[0x81, 0, 0, 0x44, 0x20]);
    let is_answer = own == [0x82, 0, 0, 0];
    Verdict::when(
        view.has_port(139) && (is_session || is_answer),
        Application::NetBios,
    )
}

/// The start-up message of version 3 with the user, or the request for TLS before it
/// (PostgreSQL's documentation, section 55.7).
pub(super) fn postgres(view: &View<'_>) -> Verdict {
    let own = view.own;
    let (Some(length), Some(code)) = (be32(own, 0), be32(own, 4)) else {
        return Verdict::No;
    };
    let is_start = code == 0x0003_0000
        && (9..=2048).contains(&length)
        && own.get(8..).is_some_and(|rest| {
            rest.starts_with(b"user\0") || rest.windows(6).take(256).any(|w| w == b"\0user\0")
        });
    let is_request = length == 8 && matches!(code, 80_877_103 | 80_877_104);
    let is_cancel = length == 16 && code == 80_877_102;
    Verdict::when(is_start || is_request || is_cancel, Application::Postgres)
}

/// The server's greeting (MySQL's documentation, `HandshakeV10`): length, number 0, version 10, the
/// server's version ending in a zero.
pub(super) fn mysql(view: &View<'_>) -> Verdict {
    let own = view.own;
    let (Some(length), Some(0), Some(10)) = (le32(own, 0), byte(own, 3), byte(own, 4)) else {
        return Verdict::No;
    };
    // The highest byte is the number, which is 0.
    let version = own.get(5..).unwrap_or_default();
    let Some(end) = memchr::memchr(0, version) else {
        return Verdict::No;
    };
    let version = version.get(..end).unwrap_or_default();
    let is_version = (3..=60).contains(&end)
        && digits(version) > 0
        && version.contains(&b'.')
        && is_text(version);
    Verdict::when(
        is_version && (40..=512).contains(&length),
        Application::MySql,
    )
}

/// CONNECT (MQTT 3.1, 3.1.1 and 5, section 3.1): the length, then the name of the protocol.
pub(super) fn mqtt(view: &View<'_>) -> Verdict {
    let own = view.own;
    let size = own
        .iter()
        .skip(1)
        .take(4)
        .take_while(|b| **b & 0x80 != 0)
        .count()
        + 1;
    let Some(rest) = own.get(1 + size..) else {
        return Verdict::More;
    };
    begins(rest, b"\0\x04MQTT", Application::Mqtt)
        .or(|| begins(rest, b"\0\x06MQIsdp", Application::Mqtt))
}

/// OPEN (RFC 4271 section 4.1): sixteen bytes of ones, a length, type 1 to 5.
pub(super) fn bgp(view: &View<'_>) -> Verdict {
    let own = view.own;
    let ones = own.iter().take(16).take_while(|b| **b == 0xFF).count();
    if ones < 16 {
        return if ones == own.len() {
            Verdict::More
        } else {
            Verdict::No
        };
    }
    let (Some(length), Some(kind)) = (be16(own, 16), byte(own, 18)) else {
        return Verdict::More;
    };
    Verdict::when(
        (19..=4096).contains(&length) && matches!(kind, 1..=5),
        Application::Bgp,
    )
}

/// ASN.1 `SEQUENCE` of an identifier and an operation (RFC 4511 section 4.1.1); off its port, one whose
/// content is what the operation has.
pub(super) fn ldap(view: &View<'_>) -> Verdict {
    let on_port = view.has_port_of(&[389, 3268]);
    Verdict::when(ldap_message(view.own, on_port), Application::Ldap)
}

fn ldap_message(bytes: &[u8], on_port: bool) -> bool {
    let Some([2, size @ 1..=4, rest @ ..]) = asn1(bytes, 0x30) else {
        return false;
    };
    let operation = rest.get(usize::from(*size)..).unwrap_or_default();
    // Bind, unbind, search, modify, ..., extended requests and their answers.
    let Some(kind @ (0x60..=0x6E | 0x42 | 0x4A | 0x50 | 0x73 | 0x77..=0x79)) = byte(operation, 0)
    else {
        return false;
    };
    on_port || asn1(operation, kind).is_some_and(|content| is_ldap_content(kind, content))
}

/// How the content of an operation begins.
fn is_ldap_content(kind: u8, content: &[u8]) -> bool {
    match kind {
        // Version and name (RFC 4511 section 4.2).
        0x60 => matches!(content, [2, 1, 2 | 3, 4, ..]),
        // Base, scope, what to do with aliases, limit of size (section 4.5.1).
        0x63 => {
            let behind = asn1(content, 4).and_then(|base| {
                let length = byte(content, 1).filter(|length| *length < 0x80)?;
                base.get(usize::from(length)..)
            });
            matches!(behind, Some([0x0A, 1, 0..=3, 0x0A, 1, 0..=3, 2, 1..=4, ..]))
        }
        // Results: code, name (section 4.1.9).
        0x61 | 0x65 | 0x67 | 0x69 | 0x6B | 0x6D | 0x78 => {
            matches!(content, [0x0A, 1, 0..=0x7F, 4, 0..=0x7F, ..])
        }
        // An operation's number in dotted form (section 4.12).
        0x77 => {
            let name = content.get(2..2 + usize::from(byte(content, 1).unwrap_or(0)));
            byte(content, 0) == Some(0x80)
                && name.is_some_and(|name| {
                    name.len() > 4 && name.iter().all(|b| b.is_ascii_digit() || *b == b'.')
                })
        }
        _ => false,
    }
}

/// The content of an ASN.1 value with this tag (definite length, X.690 section 8.1.3), as far as it
/// is there.
fn asn1(bytes: &[u8], tag: u8) -> Option<&[u8]> {
    let (first, rest) = bytes.split_first()?;
    if *first != tag {
        return None;
    }
    let (length, rest) = rest.split_first()?;
    match length {
        0..=0x7F => Some(rest),
        0x81 => rest.get(1..),
        0x82 => rest.get(2..),
        0x84 => rest.get(4..),
        _ => None,
    }
}

/// Kerberos over TCP (RFC 4120 section 7.2.2): the length, then a message.
pub(super) fn kerberos(view: &View<'_>) -> Verdict {
    let Some(message) = view.own.get(4..).filter(|_| view.has_port(88)) else {
        return Verdict::No;
    };
    Verdict::when(kerberos_message(message), Application::Kerberos)
}

/// AS-REQ to KRB-ERROR, then the sequence with version 5 in it (RFC 4120 section 5.4.1).
fn kerberos_message(bytes: &[u8]) -> bool {
    let kind = bytes.first().copied().unwrap_or(0);
    matches!(kind, 0x6A..=0x6F | 0x74..=0x76 | 0x7E)
        && asn1(bytes, kind)
            .and_then(|body| asn1(body, 0x30))
            .is_some_and(|body| matches!(body, [0xA0 | 0xA1, 3, 2, 1, 5, ..]))
}

/// Datagrams of services that have a mark, or a shape on their port.
pub(super) fn udp(datagram: &[u8], ports: [u16; 2]) -> Verdict {
    let has = |port: u16| ports.contains(&port);
    let is = Verdict::Is;
    if dhcp(datagram) || (has(546) || has(547)) && dhcp6(datagram) {
        return is(Application::Dhcp);
    }
    if snmp(datagram) {
        return is(Application::Snmp);
    }
    if has(123) && ntp(datagram) {
        return is(Application::Ntp);
    }
    if (has(514) || has(601)) && syslog(datagram) {
        return is(Application::Syslog);
    }
    if has(69) && tftp(datagram) {
        return is(Application::Tftp);
    }
    if ldap_message(datagram, has(389)) {
        return is(Application::Ldap);
    }
    if has(88) && kerberos_message(datagram) {
        return is(Application::Kerberos);
    }
    Verdict::No
}

/// BOOTP's shape with the cookie of DHCP (RFC 2131 section 3).
fn dhcp(datagram: &[u8]) -> bool {
    matches!(byte(datagram, 0), Some(1 | 2)) && be32(datagram, 236) == Some(0x6382_5363)
}

/// DHCP for IPv6 (RFC 8415 sections 7.3, 8 and 9): a type, a transaction, and options; what a relay
/// sends has a hop count and two addresses in place of the transaction.
fn dhcp6(datagram: &[u8]) -> bool {
    let (fixed, is_relay) = match byte(datagram, 0) {
        Some(12 | 13) => (1 + 1 + 16 + 16, true),
        // Leasequery, failover and registration of addresses among them.
        Some(1..=37) => (1 + 3, false),
        _ => return false,
    };
    let Some(mut rest) = datagram.get(fixed..) else {
        return false;
    };
    // The most hops of RFC 8415 are 8, of RFC 3315 32.
    if is_relay && byte(datagram, 1).is_none_or(|hops| hops > 32) {
        return false;
    }
    let mut options = 0;
    while let (Some(code), Some(length)) = (be16(rest, 0), be16(rest, 2)) {
        if !(1..=1024).contains(&code) {
            return false;
        }
        options += 1;
        // The last may be cut by the capture's snap length.
        rest = rest.get(4 + usize::from(length)..).unwrap_or_default();
    }
    options > 0 && rest.is_empty()
}

/// Versions 1, 2c (with a community) and 3 (RFC 1157 section 4, RFC 1901, RFC 3412 section 6).
fn snmp(datagram: &[u8]) -> bool {
    let Some([2, 1, version, kind, rest @ ..]) = asn1(datagram, 0x30) else {
        return false;
    };
    match (version, kind) {
        (0 | 1, 4) => {
            let Some((length, rest)) = rest.split_first() else {
                return false;
            };
            // Behind the community comes the operation.
            let operation = byte(rest, usize::from(*length));
            *length < 0x80 && matches!(operation, Some(0xA0..=0xA8))
        }
        // Global data: a sequence with the number of the message.
        (3, 0x30) => matches!(rest, [_, 2, 1..=4, ..]),
        _ => false,
    }
}

/// Versions 1 to 4 with the modes of clients, servers, peers and broadcasts (RFC 5905 section 7.3),
/// and the messages of control (mode 6) and monitoring (mode 7).
fn ntp(datagram: &[u8]) -> bool {
    let Some(first) = byte(datagram, 0) else {
        return false;
    };
    let (version, mode) = (first >> 3 & 7, first & 7);
    let is_version = matches!(version, 1..=4);
    match mode {
        1..=5 => is_version && datagram.len() >= 48 && byte(datagram, 1).is_some_and(|s| s <= 16),
        6 => is_version && datagram.len() >= 12,
        7 => is_version && datagram.len() >= 8,
        _ => false,
    }
}

/// `<priority>` and text (RFC 3164 section 4.1.1).
fn syslog(datagram: &[u8]) -> bool {
    let Some(rest) = datagram.strip_prefix(b"<") else {
        return false;
    };
    let length = digits(rest);
    matches!(length, 1..=3)
        && byte(rest, length) == Some(b'>')
        && rest.get(length..).is_some_and(|text| {
            text.len() > 1 && is_text(text.get(..text.len().min(16)).unwrap_or(text))
        })
}

/// A request: name and mode, both ending in zero (RFC 1350 section 5).
fn tftp(datagram: &[u8]) -> bool {
    let Some(rest) = datagram.get(2..) else {
        return false;
    };
    let mut texts = rest.split(|byte| *byte == 0);
    let (name, mode) = (
        texts.next().unwrap_or_default(),
        texts.next().unwrap_or_default(),
    );
    matches!(be16(datagram, 0), Some(1 | 2))
        && !name.is_empty()
        && (mode.eq_ignore_ascii_case(b"octet") || mode.eq_ignore_ascii_case(b"netascii"))
}

/// Discovery of UPnP (UPnP Device Architecture 2.0 section 1): HTTP in datagrams. A device may answer
/// from another port than the one it was asked at; its answer has its type and its name.
pub(super) fn ssdp(datagram: &[u8], ports: [u16; 2]) -> Verdict {
    let has_field = |name: &[u8]| {
        let mut lines = datagram.split(|byte| *byte == b'\n').skip(1).take(32);
        lines.any(|line| begins_any_case(line, name))
    };
    let is_its = datagram.starts_with(b"M-SEARCH * HTTP/1.")
        || datagram.starts_with(b"NOTIFY * HTTP/1.")
        || datagram.starts_with(b"HTTP/1.1 200 ")
            && (ports.contains(&1900) || has_field(b"ST:") && has_field(b"USN:"));
    Verdict::when(is_its, Application::Ssdp)
}
