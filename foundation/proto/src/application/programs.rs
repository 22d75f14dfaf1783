//! What programs and players open: repositories, displays, remote calls, chains of blocks, games, media.

use super::bytes::{be16, begins, begins_any_case, byte, digits, le16, line_so_far};
use super::{Application, Verdict, View};

/// The request of a client (gitprotocol-pack, "Git Transport"): a line with its length in four hexadecimal digits.
pub(super) fn git(view: &View<'_>) -> Verdict {
    let own = view.own;
    let is_length = own.len() >= 4 && own.iter().take(4).all(u8::is_ascii_hexdigit);
    let request = own.get(4..).unwrap_or_default();
    let services: [&[u8]; 3] = [
        b"git-upload-pack ",
        b"git-receive-pack ",
        b"git-upload-archive ",
    ];
    let is_request = services.iter().any(|service| request.starts_with(service));
    Verdict::when(is_length && is_request, Application::Git)
}

/// The greeting of both sides (rsync's `csprotocol.txt`).
pub(super) fn rsync(view: &View<'_>) -> Verdict {
    begins(view.own, b"@RSYNCD: ", Application::Rsync)
}

/// The greeting of a server and the answer to it (Subversion's `protocol`, section 2).
pub(super) fn svn(view: &View<'_>) -> Verdict {
    begins(view.own, b"( success ( ", Application::Svn).or(|| {
        let is_answer = view.own.starts_with(b"( 2 ( edit-pipeline ");
        Verdict::when(is_answer, Application::Svn)
    })
}

/// The first message of a client (X Window System Protocol, section 8, "Connection Setup"): order of bytes, version
/// 11.0, lengths of the name and the data of what authorises it.
pub(super) fn x11(view: &View<'_>) -> Verdict {
    let own = view.own;
    let read = match own.first() {
        Some(b'l') => le16,
        Some(b'B') => be16,
        _ => return Verdict::No,
    };
    let is_fixed = byte(own, 1) == Some(0) && read(own, 2) == Some(11) && read(own, 4) == Some(0);
    let (Some(name), Some(data)) = (read(own, 6), read(own, 8)) else {
        return Verdict::No;
    };
    Verdict::when(is_fixed && name <= 64 && data <= 256, Application::X11)
}

/// Bind, its answer, request or response (DCE 1.1: RPC, section 12.6.3): version 5, type, flags, representation of data, length.
pub(super) fn dcerpc(view: &View<'_>) -> Verdict {
    let own = view.own;
    let is_header = matches!(own, [5, 0 | 1, 0..=19, _, 0x10, 0, 0, 0, ..]);
    let (Some(length), Some(credentials)) = (le16(own, 8), le16(own, 10)) else {
        return Verdict::No;
    };
    Verdict::when(
        is_header && length >= 16 && credentials < length,
        Application::DceRpc,
    )
}

/// The same without connections (section 12.5): version 4, type, representation, and the length of the body.
pub(super) fn dcerpc_datagram(datagram: &[u8]) -> bool {
    const HEADER: usize = 80;
    let (Some([4, 0..=10, _, _, order, 0, 0]), Some(length)) =
        (datagram.get(..7), datagram.get(74..76))
    else {
        return false;
    };
    let length = match order {
        0x10 => le16(length, 0),
        0 => be16(length, 0),
        _ => None,
    };
    length.is_some_and(|length| HEADER + usize::from(length) == datagram.len())
}

/// A message of the network of blocks (Bitcoin protocol documentation, "Message structure"): the mark of a network, then `version`.
pub(super) fn bitcoin(view: &View<'_>) -> Verdict {
    let own = view.own;
    let is_mark = matches!(
        own,
        [0xF9, 0xBE, 0xB4, 0xD9, ..] | [0x0B, 0x11, 0x09, 0x07, ..] | [0xFA, 0xBF, 0xB5, 0xDA, ..]
    );
    let command = own.get(4..16).unwrap_or_default();
    Verdict::when(
        is_mark && command.starts_with(b"version\0"),
        Application::Bitcoin,
    )
}

/// Both halves of the handshake of `RLPx` (EIP-8): a length, then as many bytes, which begin with a point of the curve
/// that is not compressed.
pub(super) fn rlpx(view: &View<'_>) -> Verdict {
    let is_half = |bytes: &[u8]| {
        let length = be16(bytes, 0).map_or(0, usize::from);
        (200..=900).contains(&length) && byte(bytes, 2) == Some(4) && bytes.len() >= 2 + length
    };
    // What opens is sent alone: nothing can follow before the answer.
    let length = |bytes: &[u8]| be16(bytes, 0).map_or(0, usize::from) + 2;
    let is_alone = length(view.own) == view.own.len() || length(view.other) == view.other.len();
    Verdict::when(
        is_half(view.own) && is_half(view.other) && is_alone,
        Application::Ethereum,
    )
}

/// A packet of node discovery (devp2p, "Node Discovery Protocol v4"): hash, signature, type, and a list (RLP) that fills
/// the datagram and ends in a time, or has one in front of a number of record.
pub(super) fn discovery(datagram: &[u8]) -> bool {
    let (Some([0 | 1, 1..=6]), Some(list)) = (datagram.get(96..98), datagram.get(98..)) else {
        return false;
    };
    let content = match list {
        [short @ 0xC0..=0xF7, rest @ ..] if usize::from(short - 0xC0) == rest.len() => rest,
        [0xF8, length, rest @ ..] if usize::from(*length) == rest.len() => rest,
        [0xF9, high, low, rest @ ..]
            if usize::from(u16::from_be_bytes([*high, *low])) == rest.len() =>
        {
            rest
        }
        _ => return false,
    };
    // Seconds since 1970 in four bytes; behind them at most the number of the record (EIP-868).
    let tail = content
        .get(content.len().saturating_sub(14)..)
        .unwrap_or_default();
    tail.windows(2)
        .any(|pair| matches!(pair, [0x84, 0x55..=0x8F]))
}

/// Reading a directory of news, or posting (RFC 3977 section 5, RFC 4643): commands that others do not have, and the
/// greeting that says its protocol.
pub(super) fn nntp(view: &View<'_>) -> Verdict {
    let own = view.own;
    let commands: [&[u8]; 4] = [
        b"MODE READER",
        b"AUTHINFO USER ",
        b"AUTHINFO SASL ",
        b"LIST OVERVIEW.FMT",
    ];
    let is_command = commands.iter().any(|command| begins_any_case(own, command));
    Verdict::when(is_command, Application::Nntp)
}

/// A command of a gateway's control (RFC 3435 section 3.2.1): verb, number, end point, version.
pub(super) fn mgcp(datagram: &[u8]) -> bool {
    let verbs: [&[u8]; 9] = [
        b"EPCF ", b"CRCX ", b"MDCX ", b"DLCX ", b"RQNT ", b"NTFY ", b"AUEP ", b"AUCX ", b"RSIP ",
    ];
    let line = line_so_far(datagram);
    let number = line.get(5..).unwrap_or_default();
    verbs.iter().any(|verb| line.starts_with(verb))
        && matches!(digits(number), 1..=9)
        && line.windows(6).take(512).any(|window| window == b" MGCP ")
}

/// A message in text (RFC 3525 annex B.2, H.248.1): `MEGACO`, a version, the address of who sent it.
pub(super) fn megaco(datagram: &[u8]) -> bool {
    let version = datagram.strip_prefix(b"MEGACO/");
    version.is_some_and(|rest| matches!(digits(rest), 1..=2))
}

/// A call of H.323 (H.225.0 sections 7.2 and 7.3: Q.931 in TPKT): discriminator 8, a reference of two bytes, a message,
/// and in it the element for users.
pub(super) fn h323(view: &View<'_>) -> Verdict {
    let own = view.own;
    let is_header = matches!(
        own,
        [3, 0, _, _, 8, 2, _, _, 0x01 | 0x02 | 0x03 | 0x05 | 0x07, ..]
    );
    let length = be16(own, 2).map_or(0, usize::from);
    let message = own.get(9..length.min(own.len())).unwrap_or_default();
    // Tag, length in two bytes, discriminator of ASN.1's messages.
    let is_user = |part: &[u8]| matches!(part, [0x7E, 0..=3, _, 5]);
    Verdict::when(
        is_header && length >= 16 && message.windows(4).any(is_user),
        Application::H323,
    )
}

/// Datagrams of players and media.
pub(super) fn udp(datagram: &[u8], ports: [u16; 2]) -> Verdict {
    let when = Verdict::when;
    match datagram.first() {
        Some(0x04) => when(dcerpc_datagram(datagram), Application::DceRpc),
        Some(0x47) => when(transport_stream(datagram), Application::MpegTs),
        Some(0xFF) => when(source_engine(datagram), Application::SourceEngine),
        Some(b'M') if megaco(datagram) => Verdict::Is(Application::Megaco),
        Some(b'A' | b'C' | b'D' | b'E' | b'M' | b'N' | b'R') => {
            when(mgcp(datagram), Application::Mgcp)
        }
        Some(b'<') => when(ws_discovery(datagram, ports), Application::WsDiscovery),
        _ => Verdict::No,
    }
    .or(|| when(raknet(datagram), Application::RakNet))
    .or(|| when(discovery(datagram), Application::Ethereum))
}

/// Packets of a transport stream (ISO/IEC 13818-1 section 2.4.3): 188 bytes each, beginning with 0x47, without errors.
fn transport_stream(datagram: &[u8]) -> bool {
    const PACKET: usize = 188;
    datagram.len().is_multiple_of(PACKET)
        && datagram.len() >= 2 * PACKET
        && datagram
            .chunks(PACKET)
            .all(|packet| matches!(packet, [0x47, 0..=0x7F, ..]))
}

/// The question what a server plays (Valve's "Server queries", `A2S_INFO`), and its answer with the text behind the version.
fn source_engine(datagram: &[u8]) -> bool {
    datagram.starts_with(b"\xFF\xFF\xFF\xFFTSource Engine Query\0")
}

/// Messages outside of a connection (`RakNet`'s `MessageIdentifiers.h`): a type, and at its place the mark of them.
fn raknet(datagram: &[u8]) -> bool {
    const MARK: [u8; 16] = [
        0x00, 0xFF, 0xFF, 0x00, 0xFE, 0xFE, 0xFE, 0xFE, 0xFD, 0xFD, 0xFD, 0xFD, 0x12, 0x34, 0x56,
        0x78,
    ];
    let at = match datagram.first() {
        Some(0x05..=0x08 | 0x09 | 0x12 | 0x19) => 1,
        Some(0x01 | 0x02) => 9,
        Some(0x1C) => 17,
        _ => return false,
    };
    let found = |at: usize| datagram.get(at..at + 16) == Some(&MARK[..]);
    found(at) || at == 1 && found(2)
}

/// A message of WS-Discovery (WS-Discovery 1.1 section 3): an envelope of SOAP that names it.
fn ws_discovery(datagram: &[u8], ports: [u16; 2]) -> bool {
    let names: [&[u8]; 2] = [b"/ws/2005/04/discovery", b"/ws-dd/ns/discovery/"];
    let has = |name: &[u8]| {
        datagram
            .windows(name.len())
            .take(2048)
            .any(|window| window == name)
    };
    ports.contains(&3702) && names.iter().any(|name| has(name))
}
