//! Plants, buildings, vehicles: what controllers and meters speak.

use super::bytes::{be16, be32, byte, le16, le32};
use super::{Application, Verdict, View};

/// TCP: which of them is chosen by the first byte.
pub(super) fn tcp(view: &View<'_>) -> Verdict {
    let own = view.own;
    match own.first() {
        Some(0x03) => s7(own),
        Some(0x05) => Verdict::when(dnp3(own), Application::Dnp3),
        Some(b'h') => iec104(own),
        Some(b'c' | b'e' | b'o' | b'p') => enip(own),
        Some(b'A' | b'E' | b'H' | b'O') => opcua(own),
        Some(b'F') => fins(own),
        Some(0x01) => Verdict::when(
            view.has_port(5094) && framed(own, 6, hart),
            Application::HartIp,
        ),
        Some(0x06) => Verdict::when(framed(own, 4, knx), Application::Knx),
        Some(0xAA) => Verdict::when(framed(own, 2, c37118), Application::C37118),
        _ => Verdict::No,
    }
}

/// What a stream begins with, where it is whole: its length is at this place.
fn framed(own: &[u8], at: usize, is_its: fn(&[u8]) -> bool) -> bool {
    let length = be16(own, at).map_or(0, usize::from);
    own.get(..length).is_some_and(is_its)
}

/// Modbus over TCP (MODBUS Messaging on TCP/IP V1.0b, section 3.1.3): a number, protocol 0, the length of the
/// rest, unit, function. So little only on its port.
pub(super) fn modbus(view: &View<'_>) -> Verdict {
    let own = view.own;
    let (Some(0), Some(length @ 2..=254), Some(function)) =
        (be16(own, 2), be16(own, 4), byte(own, 7))
    else {
        return Verdict::No;
    };
    let is_whole = own.len() >= 6 + usize::from(length);
    // Functions, and the exceptions of them.
    let is_function = matches!(function & 0x7F, 1..=8 | 11 | 12 | 15..=17 | 20..=24 | 43 | 90);
    Verdict::when(
        view.has_port(502) && is_whole && is_function,
        Application::Modbus,
    )
}

/// A link frame of DNP3 (IEEE 1815, section 9.2): mark, length, control, two addresses, and the check sum of these.
fn dnp3(bytes: &[u8]) -> bool {
    let (Some([0x05, 0x64, 5..=255, ..]), Some(sum)) = (bytes.get(..8), le16(bytes, 8)) else {
        return false;
    };
    // x^16 + x^13 + x^12 + x^11 + x^10 + x^8 + x^6 + x^5 + x^2 + 1, the lowest bit first, inverted.
    let head = bytes.iter().take(8);
    let crc = head.fold(0_u16, |crc, byte| {
        (0..8).fold(crc ^ u16::from(*byte), |crc, _| {
            if crc & 1 == 0 {
                crc >> 1
            } else {
                crc >> 1 ^ 0xA6BC
            }
        })
    });
    !crc == sum
}

/// S7 (protocol 0x32) in data of COTP in TPKT (RFC 1006 section 6, ISO 8073): at once, or behind the request for a
/// connection.
fn s7(own: &[u8]) -> Verdict {
    let packet = |bytes: &[u8]| {
        matches!(bytes, [3, 0, _, _, ..])
            .then(|| be16(bytes, 2))
            .flatten()
    };
    let Some(length @ 7..=8192) = packet(own) else {
        return Verdict::No;
    };
    let data = match (byte(own, 4), byte(own, 5)) {
        (Some(2), Some(0xF0)) => own,
        (Some(header @ 6..=64), Some(0xE0 | 0xD0)) if u16::from(header) + 5 == length => {
            let behind = own.get(usize::from(length)..).unwrap_or_default();
            if behind.len() < 8 {
                return if behind.is_empty() || behind.starts_with(&[3]) {
                    Verdict::More
                } else {
                    Verdict::No
                };
            }
            behind
        }
        _ => return Verdict::No,
    };
    // Jobs, acknowledgments, user data.
    let is_s7 =
        packet(data).is_some() && matches!(data.get(4..9), Some([2, 0xF0, 0x80, 0x32, 1..=3 | 7]));
    Verdict::when(is_s7, Application::S7)
}

/// A frame of IEC 60870-5-104 (section 5.1): start, length 4, one of the six control functions, nothing else.
fn iec104(own: &[u8]) -> Verdict {
    let is_u = matches!(
        own,
        [
            0x68,
            4,
            0x07 | 0x0B | 0x13 | 0x23 | 0x43 | 0x83,
            0,
            0,
            0,
            ..
        ]
    );
    Verdict::when(
        is_u && (own.len() == 6 || own.get(6) == Some(&0x68)),
        Application::Iec104,
    )
}

/// Encapsulation of EtherNet/IP (CIP Networks Library volume 2, section 2-3): command, length, session, status 0,
/// context, options 0.
fn enip(own: &[u8]) -> Verdict {
    let (Some(command), Some(length), Some(session), Some(0), Some(0)) = (
        le16(own, 0),
        le16(own, 2),
        le32(own, 4),
        le32(own, 8),
        le32(own, 20),
    ) else {
        return Verdict::No;
    };
    let body = own.get(24..).unwrap_or_default();
    let is_its = match command {
        // ListIdentity: the question is empty, the answer has items.
        0x63 => session == 0 && (length == 0 || body.len() == usize::from(length)),
        // RegisterSession: version 1, no options.
        0x65 => length == 4 && body.starts_with(&[1, 0, 0, 0]),
        // SendRRData, SendUnitData: interface 0.
        0x6F | 0x70 => session != 0 && length >= 16 && le32(body, 0) == Some(0),
        _ => false,
    };
    Verdict::when(is_its, Application::Enip)
}

/// A message of OPC UA's connection protocol (OPC 10000-6, section 7.1.2): type, `F`, its length.
fn opcua(own: &[u8]) -> Verdict {
    let (Some(kind), Some(length)) = (own.get(..4), le32(own, 4)) else {
        return Verdict::No;
    };
    let is_its = match kind {
        // Version, four sizes, the address of the server.
        b"HELF" => {
            let text = own.get(32..).unwrap_or_default();
            (32..=4128).contains(&length) && (text.is_empty() || text.starts_with(b"opc."))
        }
        b"ACKF" => length == 28,
        b"ERRF" => (16..=4128).contains(&length),
        // The channel, then the address of its security policy, its length in front.
        b"OPNF" => own
            .get(16..)
            .is_some_and(|policy| policy.starts_with(b"http://opcfoundation.org/")),
        _ => false,
    };
    Verdict::when(is_its, Application::OpcUa)
}

/// A frame of FINS over TCP (Omron W421, section 7-4): mark, length, command below 7, no error.
fn fins(own: &[u8]) -> Verdict {
    let is_its = own.starts_with(b"FINS")
        && be32(own, 4).is_some_and(|length| (8..=4096).contains(&length))
        && be32(own, 8).is_some_and(|command| command <= 6);
    Verdict::when(is_its, Application::Fins)
}

/// Datagrams of those.
pub(super) fn udp(datagram: &[u8], ports: [u16; 2]) -> Verdict {
    let has = |port: u16| ports.contains(&port);
    let when = Verdict::when;
    match datagram.first() {
        Some(0x05) => when(dnp3(datagram), Application::Dnp3),
        Some(0x81) => when(bacnet(datagram), Application::Bacnet),
        Some(0x06) => when(knx(datagram), Application::Knx),
        Some(0x01) => when(has(5094) && hart(datagram), Application::HartIp),
        Some(b'c') => match enip(datagram) {
            // A question is 24 bytes, mostly of zeros.
            Verdict::Is(_) if has(44818) => Verdict::Is(Application::Enip),
            _ => Verdict::No,
        },
        Some(0xAA) => when(c37118(datagram), Application::C37118),
        Some(b'R') => when(rtps(datagram), Application::Rtps),
        Some(0x40..=0x7F) if has(5683) => when(coap(datagram), Application::Coap),
        _ => Verdict::No,
    }
    .or(|| when(some_ip(datagram), Application::SomeIp))
}

/// BACnet/IP (ASHRAE 135 annex J.2): type, function, length of the datagram; what carries a message has its version, 1.
fn bacnet(datagram: &[u8]) -> bool {
    let (Some(function), Some(length)) = (byte(datagram, 1), be16(datagram, 2)) else {
        return false;
    };
    let network = match function {
        // Forwarded: with the address of who sent it.
        0x04 => 10,
        0x09..=0x0B => 4,
        // Results and tables.
        0x00..=0x03 | 0x05..=0x08 | 0x0C => {
            return usize::from(length) == datagram.len() && length >= 6;
        }
        _ => return false,
    };
    usize::from(length) == datagram.len() && byte(datagram, network) == Some(1)
}

/// A frame of KNXnet/IP (KNX standard 3/8/1, section 2.2): header of 6 bytes, version 1.0, a service, length.
fn knx(datagram: &[u8]) -> bool {
    matches!(datagram, [6, 0x10, 2..=5, _, ..])
        && be16(datagram, 2).is_some_and(|service| {
            matches!(service, 0x0201..=0x020C | 0x0310..=0x0311 | 0x0420..=0x0425 | 0x0530..=0x0533)
        })
        && be16(datagram, 4).is_some_and(|length| usize::from(length) == datagram.len())
}

/// A message of HART-IP (HCF specification 085, section 10): version 1, type, identifier, status, number, length.
fn hart(datagram: &[u8]) -> bool {
    matches!(datagram, [1, 0..=2 | 15, 0..=4, _, ..])
        && be16(datagram, 6).is_some_and(|length| usize::from(length) == datagram.len())
}

/// A frame of synchrophasors (IEEE C37.118.2 section 6.2): mark, type and version, length, and its check sum at the end.
fn c37118(datagram: &[u8]) -> bool {
    let (Some([0xAA, kind]), Some(length)) = (datagram.get(..2), be16(datagram, 2)) else {
        return false;
    };
    let length = usize::from(length);
    let (Some(body), true) = (
        datagram.get(..length.saturating_sub(2)),
        length == datagram.len(),
    ) else {
        return false;
    };
    // CRC-CCITT, from ones.
    let crc = body.iter().fold(0xFFFF_u16, |crc, byte| {
        (0..8).fold(crc ^ u16::from(*byte) << 8, |crc, _| {
            if crc & 0x8000 == 0 {
                crc << 1
            } else {
                crc << 1 ^ 0x1021
            }
        })
    });
    kind >> 4 <= 5 && (16..=65_000).contains(&length) && be16(datagram, length - 2) == Some(crc)
}

/// A message of RTPS (OMG DDSI-RTPS 2.5, section 9.4.4): mark, version 2, a vendor.
fn rtps(datagram: &[u8]) -> bool {
    datagram.len() >= 20
        && matches!(
            datagram.get(..7),
            Some([b'R', b'T', b'P', b'S', 1..=2, 0..=9, 1])
        )
}

/// A message of CoAP (RFC 7252 section 3): version 1, a code that exists, and options up to the end or the mark
/// before the payload.
fn coap(datagram: &[u8]) -> bool {
    let (Some(first), Some(code)) = (byte(datagram, 0), byte(datagram, 1)) else {
        return false;
    };
    let token = usize::from(first & 0x0F);
    let is_code = match code >> 5 {
        0 => matches!(code & 0x1F, 0..=7),
        2 => code & 0x1F <= 5 || code & 0x1F == 31,
        4 => code & 0x1F <= 15,
        5 => code & 0x1F <= 8,
        _ => false,
    };
    if first >> 6 != 1 || token > 8 || !is_code {
        return false;
    }
    let Some(mut rest) = datagram.get(4 + token..) else {
        return false;
    };
    if code == 0 {
        return token == 0 && rest.is_empty();
    }
    while let [head, behind @ ..] = rest {
        if *head == 0xFF {
            return !behind.is_empty();
        }
        let mut extra = 0;
        let mut length = usize::from(head & 0x0F);
        for nibble in [head >> 4, head & 0x0F] {
            let size = match nibble {
                13 => 1,
                14 => 2,
                15 => return false,
                _ => 0,
            };
            extra += size;
        }
        if head & 0x0F == 13 {
            length = 13 + usize::from(byte(behind, extra - 1).unwrap_or(0));
        } else if head & 0x0F == 14 {
            length = 269 + usize::from(be16(behind, extra - 2).unwrap_or(0));
        }
        let Some(next) = behind.get(extra + length..) else {
            return false;
        };
        rest = next;
    }
    true
}

/// A message of SOME/IP (AUTOSAR `PRS_SOMEIP`, section 4.1): identifier, length of the rest, request, protocol version 1,
/// interface, type, code. Its length and version make it certain.
fn some_ip(datagram: &[u8]) -> bool {
    let length = be32(datagram, 4).and_then(|length| usize::try_from(length).ok());
    let Some([1, _, kind, code]) = datagram.get(12..16) else {
        return false;
    };
    length.and_then(|length| length.checked_add(8)) == Some(datagram.len())
        && matches!(kind, 0..=2 | 0x80 | 0x81)
        && *code <= 0x5E
}
