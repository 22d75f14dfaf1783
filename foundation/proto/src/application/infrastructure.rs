//! What networks need to run: keys, tunnels, routes, liveness, accounts, exports, time, calls of remote procedures.

use super::bytes::{be16, be24, be32, begins, byte, digits, first_line, is_text};
use super::{Application, Verdict, View};

/// Keys of `IPsec` (RFC 7296 section 3.1, RFC 2408 section 3.1): identifiers, next payload, version, exchange, flags,
/// length of the datagram; between translators behind four zeros (RFC 3948 section 2.2).
pub(super) fn ike(datagram: &[u8]) -> bool {
    let datagram = match datagram {
        [0, 0, 0, 0, rest @ ..] => rest,
        _ => datagram,
    };
    let (Some(fixed), Some(length)) = (datagram.get(16..20), be32(datagram, 24)) else {
        return false;
    };
    let is_fixed = match fixed {
        [0..=21 | 130..=132, 0x10, 1..=6 | 32..=33, flags] => flags & !7 == 0,
        [0 | 33..=54, 0x20, 34..=38 | 43..=44, flags] => flags & !0x38 == 0,
        _ => false,
    };
    let is_opened = datagram.get(..8).is_some_and(|opener| opener != [0; 8]);
    is_fixed && is_opened && usize::try_from(length).is_ok_and(|length| length == datagram.len())
}

/// Datagrams of networks.
pub(super) fn udp(datagram: &[u8], ports: [u16; 2]) -> Verdict {
    let has = |port: u16| ports.contains(&port);
    let when = Verdict::when;
    if has(319) || has(320) {
        return when(ptp(datagram), Application::Ptp);
    }
    if has(5351) {
        return when(port_mapping(datagram), Application::NatPmp);
    }
    let by_first = match datagram.first() {
        Some(0x00) if sflow(datagram) => Verdict::Is(Application::Sflow),
        Some(0x00) if ipfix(datagram) => Verdict::Is(Application::Ipfix),
        Some(0x00) if netflow(datagram) => Verdict::Is(Application::Netflow),
        Some(0x00) if has(646) => when(ldp(datagram), Application::Ldp),
        Some(0x00) if has(177) => when(xdmcp(datagram), Application::Xdmcp),
        Some(0x01 | 0x02) if has(520) => when(rip(datagram), Application::Rip),
        Some(0x00 | 0x01) if has(1985) || has(2029) => when(hsrp(datagram), Application::Hsrp),
        Some(0x01 | 0x02) if has(427) => when(slp(datagram), Application::Slp),
        Some(1..=5 | 11..=13 | 40..=45) if RADIUS.iter().any(|port| has(*port)) => {
            when(radius(datagram), Application::Radius)
        }
        Some(0x06) if has(623) || has(664) => when(rmcp(datagram), Application::Rmcp),
        Some(0x20..=0x3F) if has(3784) || has(4784) => when(bfd(datagram), Application::Bfd),
        Some(0x30..=0x37 | 0x40..=0x5F) if has(2123) || has(2152) => {
            when(gtp(datagram), Application::Gtp)
        }
        Some(0x0E | 0x0F | 0x2E | 0x2F | 0x4E | 0x4F) if has(3386) => {
            when(gtp_prime(datagram), Application::Gtp)
        }
        Some(0x38 | 0x40) => when(openvpn(datagram), Application::OpenVpn),
        Some(0xC8) => when(l2tp(datagram), Application::L2tp),
        Some(b'T') => when(
            datagram.starts_with(b"TS\xF0\x9F\x92\xAC"),
            Application::Tailscale,
        ),
        Some(b'D') => when(datagram.starts_with(b"DLEP"), Application::Dlep),
        _ => Verdict::No,
    };
    by_first
        .or(|| when(ike(datagram), Application::Ike))
        .or(|| rpc(datagram))
}

/// Ports of accounts: of RFC 2865, RFC 2866, those before them, and of RFC 5176.
const RADIUS: [u16; 5] = [1812, 1813, 1645, 1646, 3799];

/// A packet of RADIUS (RFC 2865 section 3): code, number, length, authenticator; attributes up to the end.
fn radius(datagram: &[u8]) -> bool {
    let length = be16(datagram, 2).map_or(0, usize::from);
    let Some(mut rest) = datagram.get(20..length).filter(|_| length <= 4096) else {
        return false;
    };
    while let Some(size) = byte(rest, 1) {
        if size < 2 {
            return false;
        }
        match rest.get(usize::from(size)..) {
            Some(next) => rest = next,
            None => return false,
        }
    }
    rest.is_empty()
}

/// A control packet of BFD (RFC 5880 section 4.1): version 1, its length, a multiplier and a discriminator that are not 0.
fn bfd(datagram: &[u8]) -> bool {
    let length = byte(datagram, 3).unwrap_or(0);
    length >= 24
        && usize::from(length) == datagram.len()
        && byte(datagram, 2) != Some(0)
        && be32(datagram, 4) != Some(0)
}

/// A message of the control plane of GTP (3GPP TS 29.060 section 6, TS 29.274 section 5.1): its length is that of the
/// datagram.
fn gtp(datagram: &[u8]) -> bool {
    let (Some(first), Some(kind), Some(length)) =
        (byte(datagram, 0), byte(datagram, 1), be16(datagram, 2))
    else {
        return false;
    };
    let length = usize::from(length);
    let is_length = match first {
        // Version 2 counts from behind the length, and has a number and perhaps a tunnel.
        0x40..=0x5F => {
            let least = if first & 8 == 0 { 4 } else { 8 };
            first & 3 == 0 && length >= least && length + 4 == datagram.len()
        }
        // Version 1 counts from behind its header of 8 bytes; with any of three flags it has four bytes more.
        0x30..=0x37 => (first & 7 == 0 || length >= 4) && length + 8 == datagram.len(),
        _ => false,
    };
    kind != 0 && is_length
}

/// A message of GTP' (3GPP TS 32.295 section 6.1.1), with a short header or one as long as that of version 0.
fn gtp_prime(datagram: &[u8]) -> bool {
    let length = be16(datagram, 2).map_or(0, usize::from);
    matches!(
        datagram,
        [
            0x0E | 0x0F | 0x2E | 0x2F | 0x4E | 0x4F,
            1..=7 | 240 | 241,
            ..
        ]
    ) && (length + 6 == datagram.len() || length + 20 == datagram.len())
}

/// A control message of L2TP (RFC 2661 section 3.1): flags T, L and S, version 2, its length, no tunnel in the first
/// one or a tunnel; then the type of the message.
fn l2tp(datagram: &[u8]) -> bool {
    let is_whole = be16(datagram, 2).is_some_and(|length| usize::from(length) == datagram.len());
    // AVP of 8 bytes, mandatory, of no vendor, attribute 0.
    let is_first = |avp: &[u8]| matches!(avp, [0x80, 8, 0, 0, 0, 0, 0, 1..=28, ..]);
    let body = datagram.get(12..).unwrap_or_default();
    datagram.starts_with(&[0xC8, 2]) && is_whole && (body.is_empty() || is_first(body))
}

/// The first packet of a client or of a server (`OpenVPN` protocol, "Reset packets"): type 7 or 8, a session; then,
/// behind the check sum where there is one with a number 1, no packet that is acknowledged and packet 0, or one.
fn openvpn(datagram: &[u8]) -> bool {
    let (Some(session), Some(kind)) = (datagram.get(1..9), byte(datagram, 0)) else {
        return false;
    };
    // Without check sum, and with those of 16 (MD5), 20 (SHA-1), 32 and 64 bytes.
    let behind = [0_usize, 16, 20, 32, 64].into_iter().find_map(|size| {
        let at = if size == 0 { 9 } else { 9 + size + 8 };
        let rest = datagram.get(at..)?;
        let is_numbered = size == 0 || be32(datagram, 9 + size) == Some(1);
        let is_reset = match kind >> 3 {
            7 => rest == [0; 5],
            // One packet is acknowledged: 0, of the session of the client.
            _ => rest.len() == 17 && rest.starts_with(&[1, 0, 0, 0, 0]) && rest.ends_with(&[0; 4]),
        };
        (is_numbered && is_reset).then_some(())
    });
    session != [0; 8] && behind.is_some()
}

/// The same over TCP, with its length in front.
pub(super) fn openvpn_stream(view: &View<'_>) -> Verdict {
    let length = be16(view.own, 0).map_or(0, usize::from);
    let packet = view.own.get(2..2 + length).unwrap_or_default();
    let is_its = matches!(packet.first(), Some(0x38 | 0x40)) && openvpn(packet);
    Verdict::when(is_its, Application::OpenVpn)
}

/// A datagram of sFlow (sFlow version 5, "Datagram format"): version, kind of the agent's address, and at most a few hundred samples.
fn sflow(datagram: &[u8]) -> bool {
    let samples = match be32(datagram, 4) {
        Some(1) => be32(datagram, 24),
        Some(2) => be32(datagram, 36),
        _ => None,
    };
    be32(datagram, 0) == Some(5) && samples.is_some_and(|samples| (1..=512).contains(&samples))
}

/// A message of IPFIX (RFC 7011 section 3.1): version 10, its length, then a set with its own.
fn ipfix(datagram: &[u8]) -> bool {
    let is_set = |at: usize| {
        let id = be16(datagram, at).is_some_and(|id| matches!(id, 2 | 3 | 256..));
        let length = be16(datagram, at + 2).map_or(0, usize::from);
        id && length >= 4 && at + length <= datagram.len()
    };
    be16(datagram, 0) == Some(10)
        && be16(datagram, 2).is_some_and(|length| usize::from(length) == datagram.len())
        && (datagram.len() == 16 || is_set(16))
}

/// An export of `NetFlow`: of version 5 (Cisco's "`NetFlow` export datagram format") header and records fill the datagram; of
/// version 9 (RFC 3954 section 5) its first set has an identifier and a length.
fn netflow(datagram: &[u8]) -> bool {
    let count = be16(datagram, 2).map_or(0, usize::from);
    match be16(datagram, 0) {
        Some(5) => (1..=30).contains(&count) && datagram.len() == 24 + 48 * count,
        Some(9) => {
            let set = be16(datagram, 20).is_some_and(|id| matches!(id, 0 | 1 | 256..));
            let length = be16(datagram, 22).map_or(0, usize::from);
            // A date behind 1996, and sets that are padded to words.
            let is_time = be32(datagram, 8).is_some_and(|seconds| seconds > 820_000_000);
            (1..=512).contains(&count)
                && set
                && is_time
                && length >= 8
                && length.is_multiple_of(4)
                && 20 + length <= datagram.len()
        }
        _ => false,
    }
}

/// A protocol data unit of LDP (RFC 5036 section 3.1): version 1, its length, identifier; then the type of a message.
fn ldp(bytes: &[u8]) -> bool {
    let (Some(1), Some(length), Some(message)) = (be16(bytes, 0), be16(bytes, 2), be16(bytes, 10))
    else {
        return false;
    };
    let kind = message & 0x7FFF;
    (14..=4096).contains(&length)
        && bytes.len() >= 4 + usize::from(length)
        && matches!(
            kind,
            0x0001 | 0x0100 | 0x0200 | 0x0201 | 0x0300 | 0x0301 | 0x0400..=0x0404
        )
}

/// The same over TCP, on its port.
pub(super) fn ldp_stream(view: &View<'_>) -> Verdict {
    Verdict::when(view.has_port(646) && ldp(view.own), Application::Ldp)
}

/// A packet of XDMCP (X Display Manager Control Protocol 1.1, section 3): version 1, operation, length of the rest.
fn xdmcp(datagram: &[u8]) -> bool {
    be16(datagram, 0) == Some(1)
        && be16(datagram, 2).is_some_and(|operation| (1..=13).contains(&operation))
        && be16(datagram, 4).is_some_and(|length| 6 + usize::from(length) == datagram.len())
}

/// A message of RIP (RFC 2453 section 3.6): command, version, zeros, entries of 20 bytes.
fn rip(datagram: &[u8]) -> bool {
    matches!(datagram, [1 | 2, 1 | 2, 0, 0, _, ..]) && (datagram.len() - 4).is_multiple_of(20)
}

/// A message of HSRP (RFC 2281 section 5; version 2 has it in an element of type 1 and length 40).
fn hsrp(datagram: &[u8]) -> bool {
    match datagram {
        [0, 0..=3, state, ..] => {
            let is_state = matches!(state, 0 | 1 | 2 | 4 | 8 | 16);
            is_state && matches!(datagram.len(), 16 | 20) && byte(datagram, 7) == Some(0)
        }
        [1, 40, 2, 0..=3, 0..=6, 4 | 6, ..] => datagram.len() >= 42,
        _ => false,
    }
}

/// A message of SLP (RFC 2608 section 8, RFC 2165 section 5): version, function, its length.
fn slp(datagram: &[u8]) -> bool {
    match datagram {
        [2, 1..=11, ..] => {
            be24(datagram, 2).is_some_and(|length| length as usize == datagram.len())
        }
        [1, 1..=10, ..] => {
            be16(datagram, 2).is_some_and(|length| usize::from(length) == datagram.len())
        }
        _ => false,
    }
}

/// A request or answer about a mapping of ports (NAT-PMP, RFC 6886 section 3: fixed lengths; PCP, RFC 6887 section 7:
/// at least 24 bytes in words).
fn port_mapping(datagram: &[u8]) -> bool {
    match (datagram, datagram.len()) {
        ([0, 0], 2) | ([0, 1..=2, 0, 0, ..], 12) => true,
        ([0, 128, 0, 0..=5, ..], 12) | ([0, 129..=130, 0, 0..=5, ..], 16) => true,
        ([2, operation, ..], 24..=1100) => {
            datagram.len().is_multiple_of(4) && matches!(operation & 0x7F, 0..=3)
        }
        _ => false,
    }
}

/// A message of RMCP (DMTF ASF 2.0 section 3.2.2; IPMI 2.0 section 13.1.3): version 6, reserved, number, class.
fn rmcp(datagram: &[u8]) -> bool {
    match datagram {
        // ASF: its enterprise.
        [6, 0, _, 6, 0, 0, 0x11, 0xBE, ..] => true,
        // IPMI: a session of version 1.5 or 2.0; and acknowledgments.
        [6, 0, _, 7, 0 | 1 | 2 | 4 | 5 | 6, ..] => datagram.len() >= 14,
        [6, 0, _, 0x86 | 0x87] => true,
        _ => false,
    }
}

/// A message of PTP (IEEE 1588-2008 section 13.3): type, version 2, its length, a reserved byte.
fn ptp(datagram: &[u8]) -> bool {
    let is_type = byte(datagram, 0).is_some_and(|kind| matches!(kind & 0x0F, 0..=3 | 8..=13));
    let is_version = byte(datagram, 1).is_some_and(|version| version & 0x0F == 2);
    let length = be16(datagram, 2).map_or(0, usize::from);
    is_type && is_version && (44..=datagram.len()).contains(&length)
}

/// A call or its reply (RFC 5531 section 9): version 2 of the protocol and a program with a version and a procedure;
/// the program that serves files is NFS (RFC 1813), others that are registered are RPC's.
fn rpc(message: &[u8]) -> Verdict {
    let (Some(0), Some(2)) = (be32(message, 4), be32(message, 8)) else {
        return Verdict::No;
    };
    let (Some(program), Some(version), Some(procedure), Some(flavor)) = (
        be32(message, 12),
        be32(message, 16),
        be32(message, 20),
        be32(message, 24),
    ) else {
        return Verdict::No;
    };
    let is_sane =
        (1..=4).contains(&version) && procedure <= 64 && (flavor <= 7 || flavor == 390_003);
    match program {
        100_003 if is_sane => Verdict::Is(Application::Nfs),
        100_000..=100_300 | 150_001 | 300_000..=300_999 | 390_000..=400_999 if is_sane => {
            Verdict::Is(Application::Rpc)
        }
        _ => Verdict::No,
    }
}

/// The same over TCP, behind the length of the last fragment (RFC 5531 section 11).
pub(super) fn rpc_stream(view: &View<'_>) -> Verdict {
    let is_sane = be32(view.own, 0).is_some_and(|mark| (0x8000_0028..=0x8020_0000).contains(&mark));
    let message = view.own.get(4..).unwrap_or_default();
    if is_sane { rpc(message) } else { Verdict::No }
}

/// Start of a control connection (RFC 2637 section 2.1): length 156, a message of control, its mark, type 1 or 2.
pub(super) fn pptp(view: &View<'_>) -> Verdict {
    let is_its = matches!(
        view.own,
        [0, 156, 0, 1, 0x1A, 0x2B, 0x3C, 0x4D, 0, 1 | 2, 0, 0, ..]
    );
    Verdict::when(is_its, Application::Pptp)
}

/// A packet of TACACS+ (RFC 8907 section 4.1): version 12.0 or 12.1, type, number, flags, session, length of the rest.
pub(super) fn tacacs(view: &View<'_>) -> Verdict {
    let own = view.own;
    let is_header = matches!(own, [0xC0 | 0xC1, 1..=3, 1 | 2, 0 | 1 | 4 | 5, ..]);
    let length = be32(own, 8).and_then(|length| usize::try_from(length).ok());
    let is_whole =
        length.is_some_and(|length| length.saturating_add(12) == own.len() && length > 0);
    Verdict::when(
        view.has_port(49) && is_header && is_whole,
        Application::Tacacs,
    )
}

/// HELLO (`OpenFlow` 1.3 section 7.5.1): version, type 0, its length; on its ports, for there is hardly more.
pub(super) fn openflow(view: &View<'_>) -> Verdict {
    let own = view.own;
    let is_hello = matches!(own, [1..=6, 0, 0, 8..=64, _, _, _, _, ..])
        && be16(own, 2).is_some_and(|length| length % 8 == 0);
    Verdict::when(
        view.has_port_of(&[6633, 6653]) && is_hello,
        Application::OpenFlow,
    )
}

/// Version, methods, and a request (RFC 1928 sections 3 and 4), or the request of version 4 and its answer
/// (the memo "SOCKS: A protocol for TCP proxy"): the answer of the server decides.
pub(super) fn socks(view: &View<'_>) -> Verdict {
    let (own, other) = (view.own, view.other);
    let is_its = match own {
        // The methods, and at most the choice of one.
        [5, count @ 1..=16, rest @ ..]
            if rest.len() == usize::from(*count) && matches!(other, [] | [5] | [5, 0..=9]) =>
        {
            return Verdict::More;
        }
        [5, count @ 1..=16, rest @ ..] => {
            let request = rest.get(usize::from(*count)..).unwrap_or_default();
            let is_request = |bytes: &[u8]| matches!(bytes, [5, 1..=3, 0, 1 | 3 | 4, _, ..]);
            // With a password between them (RFC 1929).
            let chosen = match other {
                [5, 0, ..] => is_request(request),
                [5, 2, ..] => {
                    matches!(request, [1, 1..=255, _, ..]) && matches!(other, [5, 2, 1, 0 | 1, ..])
                }
                _ => false,
            };
            chosen
                && rest
                    .iter()
                    .take(usize::from(*count))
                    .all(|method| matches!(method, 0..=9 | 0x80..))
        }
        [4, 1 | 2, _, _, _, _, _, _, name @ ..] => {
            matches!(other, [0, 0x5A..=0x5D, _, _, _, _, _, _]) && name.contains(&0)
        }
        _ => false,
    };
    Verdict::when(is_its, Application::Socks)
}

/// Local user, remote user, terminal and speed between zeros (RFC 1282), on its port.
pub(super) fn rlogin(view: &View<'_>) -> Verdict {
    let Some(rest) = view.own.strip_prefix(b"\0").filter(|_| view.has_port(513)) else {
        return Verdict::No;
    };
    let mut texts = rest.split(|byte| *byte == 0);
    let is_name = |text: Option<&[u8]>| text.is_some_and(|text| !text.is_empty() && is_text(text));
    let has_users = is_name(texts.next()) && is_name(texts.next());
    let terminal = texts.next().unwrap_or_default();
    let speed = terminal
        .rsplit(|byte| *byte == b'/')
        .next()
        .unwrap_or_default();
    Verdict::when(
        has_users && terminal.contains(&b'/') && !speed.is_empty() && digits(speed) == speed.len(),
        Application::Rlogin,
    )
}

/// Identification of a node (The tinc manual, "Authentication protocol"): `0`, a name, version 17.
pub(super) fn tinc(view: &View<'_>) -> Verdict {
    let Some(line) = first_line(view.own) else {
        return Verdict::No;
    };
    let mut words = line.split(|byte| *byte == b' ');
    let (zero, name, version) = (words.next(), words.next(), words.next());
    let is_name = name.is_some_and(|name| {
        !name.is_empty() && name.iter().all(|b| b.is_ascii_alphanumeric() || *b == b'_')
    });
    let is_version = version.is_some_and(|version| version == b"17" || version.starts_with(b"17."));
    Verdict::when(
        zero == Some(b"0") && is_name && is_version && words.next().is_none(),
        Application::Tinc,
    )
}

/// The banner of a node (Munin, "Protocol for data exchange").
pub(super) fn munin(view: &View<'_>) -> Verdict {
    begins(view.own, b"# munin node at ", Application::Munin)
}
