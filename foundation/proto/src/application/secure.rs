//! TLS and SSL over TCP; DTLS, QUIC, STUN and WireGuard over UDP.

use super::bytes::{be16, be24, be32, byte, le32};
use super::{Application, Verdict, View};

/// The longest record: 2^14 bytes and what encryption adds (RFC 5246 section 6.2.3).
const RECORD: u16 = (1 << 14) + 2048;

/// HTTPS, submission, DNS, directories, mail and push services over TLS.
const TLS_PORTS: [u16; 9] = [443, 465, 636, 853, 993, 995, 5061, 5223, 5228];

/// The minor version of a record: 0 is SSL 3.
fn version_of(record: &[u8]) -> Option<u8> {
    byte(record, 2)
}

/// A record of handshake messages.
const HANDSHAKE: u8 = 22;

/// The length of a TLS record whose header `bytes` begin with. Of a first one servers do not look at the minor version
/// (RFC 8446 section 5.1).
fn record(bytes: &[u8]) -> Option<(u8, usize)> {
    let &[kind, 3, minor, high, low] = bytes.first_chunk()? else {
        return None;
    };
    let length = u16::from_be_bytes([high, low]);
    let is_sane = matches!(kind, 20..=24)
        && (minor <= 4 || kind == HANDSHAKE)
        && (1..=RECORD).contains(&length);
    is_sane.then_some((kind, usize::from(length)))
}

/// What is behind records of handshake messages that are empty, which servers pass over.
fn behind_empty_records(mut own: &[u8]) -> &[u8] {
    while let [HANDSHAKE, 3, _, 0, 0, rest @ ..] = own {
        own = rest;
    }
    own
}

/// TLS: a hello, or where the beginning was not seen, two records in a row.
pub(super) fn tls(view: &View<'_>) -> Verdict {
    let own = behind_empty_records(view.own);
    if own.len() < 5 {
        let may_become = matches!(
            own,
            [] | [_] | [_, 3] | [_, 3, 0..=4, ..] | [HANDSHAKE, 3, ..]
        );
        return if may_become {
            Verdict::More
        } else {
            Verdict::No
        };
    }
    let Some((kind, length)) = record(own) else {
        return Verdict::No;
    };
    if kind == HANDSHAKE {
        let Some(message) = byte(own, 5) else {
            return Verdict::More;
        };
        let Some(body) = be24(own, 6) else {
            return Verdict::More;
        };
        // Client hello, server hello, hello request (RFC 8446 section 4, RFC 5246 section 7.4); a
        // hello may span records.
        let is_hello = matches!(message, 1 | 2) && (38..=1 << 17).contains(&body)
            || message == 0 && body == 0 && length == 4;
        if is_hello {
            return match own.get(9..11) {
                Some([3, 0..=4]) => Verdict::Is(Application::Tls),
                Some(_) => Verdict::No,
                None => Verdict::More,
            };
        }
    }
    // A fatal alert as the only answer to a hello.
    if kind == 21
        && length == 2
        && matches!(byte(own, 5), Some(1 | 2))
        && record(view.other).is_some()
    {
        return Verdict::Is(Application::Tls);
    }
    match own.get(5 + length..) {
        Some(next) if next.len() >= 5 => Verdict::when(record(next).is_some(), Application::Tls),
        // Records of both sides.
        _ if record(view.other).is_some() => Verdict::Is(Application::Tls),
        // The end of a connection whose beginning was not seen: one record, nothing else.
        Some([]) if view.has_port_of(&TLS_PORTS) && version_of(own) != Some(0) => {
            Verdict::Is(Application::Tls)
        }
        _ if view.other.len() >= 5 && own.len() > 5 + length => Verdict::No,
        _ => Verdict::More,
    }
}

/// The hello of SSL 2 that clients of SSL 3 and TLS sent for a while (RFC 5246 appendix E.2).
pub(super) fn ssl2(view: &View<'_>) -> Verdict {
    let own = view.own;
    let (Some(length), Some(version)) = (be16(own, 0), be16(own, 3)) else {
        return Verdict::No;
    };
    let length = usize::from(length & 0x7FFF);
    let (ciphers, session, challenge) = (be16(own, 5), be16(own, 7), be16(own, 9));
    let (Some(ciphers), Some(session), Some(challenge)) = (ciphers, session, challenge) else {
        return Verdict::No;
    };
    let is_hello = byte(own, 2) == Some(1)
        && matches!(version, 0x0002 | 0x0300..=0x0303)
        && ciphers > 0
        && ciphers % 3 == 0
        && matches!(session, 0 | 16)
        && (16..=32).contains(&challenge)
        && length == 9 + usize::from(ciphers) + usize::from(session) + usize::from(challenge);
    Verdict::when(is_hello, Application::Tls)
}

/// DTLS (RFC 6347 section 4.1; RFC 9147 section 7: 26, acknowledgements): records that fill the datagram,
/// the first of them of a handshake or with the numbers of a connection under way.
pub(super) fn dtls(datagram: &[u8]) -> Verdict {
    const HEADER: usize = 13;
    let mut rest = datagram;
    let mut records = 0;
    while let (Some(kind), Some(version), Some(epoch), Some(length)) =
        (byte(rest, 0), be16(rest, 1), be16(rest, 3), be16(rest, 11))
    {
        let is_sane = matches!(kind, 20..=26)
            && matches!(version, 0xFEFF | 0xFEFD | 0xFEFC | 0x0100)
            && length <= RECORD
            && length > 0
            // A connection has a few epochs and no 2^32 records in one.
            && epoch < 256
            && be16(rest, 5) == Some(0)
            // A handshake of the first epoch begins with a type that exists.
            && (kind != 22 || epoch > 0 || matches!(byte(rest, HEADER), Some(0..=20)));
        if !is_sane {
            break;
        }
        records += 1;
        match rest.get(HEADER + usize::from(length)..) {
            Some(next) => rest = next,
            // Cut by the capture's snap length.
            None => rest = &[],
        }
    }
    // What may follow is a record of DTLS 1.3 with its short header (RFC 9147 section 4).
    let is_filled = rest.is_empty() || records > 0 && rest.first().is_some_and(|b| b >> 5 == 1);
    Verdict::when(records > 0 && is_filled, Application::Dtls)
}

/// QUIC: an Initial, 0-RTT, Handshake or Retry packet, or a negotiation of versions (RFC 9000
/// section 17.2); Google's QUIC with its version in sight.
pub(super) fn quic(datagram: &[u8]) -> Verdict {
    let (Some(flags), Some(version)) = (byte(datagram, 0), be32(datagram, 1)) else {
        return Verdict::No;
    };
    if flags & 0x80 == 0 {
        return google_quic(flags, datagram);
    }
    let Some(destination) = byte(datagram, 5) else {
        return Verdict::No;
    };
    let source = byte(datagram, 6 + usize::from(destination));
    let is_known = match version {
        // The versions of the RFCs 9000 and 9369, of drafts and of mvfst; `Q` or `T` and digits.
        1 | 0x6B33_43CF | 0x7090_01F0 | 0xFF02_0000 => true,
        0xFF00_0001..=0xFF00_00FF | 0xFACE_B000..=0xFACE_B00F => true,
        _ => is_google(version),
    };
    if version == 0 {
        // A list of versions, of which one is known or reserved (RFC 9000 section 15).
        let list = source
            .and_then(|source| datagram.get(7 + usize::from(destination) + usize::from(source)..));
        let is_list = list.is_some_and(|list| {
            !list.is_empty()
                && list.len() % 4 == 0
                && list.chunks_exact(4).any(|v| {
                    be32(v, 0).is_some_and(|v| {
                        matches!(v, 1 | 0x6B33_43CF | 0xFF00_0001..=0xFF00_00FF) || is_google(v)
                    })
                })
        });
        return Verdict::when(is_list && destination <= 20, Application::Quic);
    }
    // Connection identifiers of at most 20 bytes; in Google's the two lengths share a byte.
    // Versions that no one speaks, sent to see that the other side negotiates (RFC 9000 section 15);
    // a client's first datagram is filled up (section 14.1).
    let is_reserved =
        version & 0x0F0F_0F0F == 0x0A0A_0A0A && destination >= 8 && datagram.len() >= 1200;
    let has_identifiers =
        destination <= 20 && source.is_some_and(|source| source <= 20) || is_google(version);
    Verdict::when(
        (is_known || is_reserved) && has_identifiers && (flags & 0x40 != 0 || is_google(version)),
        Application::Quic,
    )
}

/// `Q043`, `T051` and the like.
const fn is_google(version: u32) -> bool {
    let [letter, a, b, c] = version.to_be_bytes();
    matches!(letter, b'Q' | b'T') && a == b'0' && b.is_ascii_digit() && c.is_ascii_digit()
}

/// Google's QUIC up to 43: flags, connection identifier of 8 bytes, version.
fn google_quic(flags: u8, datagram: &[u8]) -> Verdict {
    let has_version = flags & 0x01 != 0 && flags & 0xC0 == 0 && flags & 0x0C != 0;
    let version = be32(datagram, 9);
    Verdict::when(
        has_version && version.is_some_and(is_google) && datagram.len() > 14,
        Application::Quic,
    )
}

/// STUN (RFC 8489 section 5): the cookie; without it (RFC 3489) only a request and its answer whose
/// attributes fill the datagram, on its port or the
/// alternate one (RFC 5780 section 3).
pub(super) fn stun(datagram: &[u8], on_port: bool) -> Verdict {
    const HEADER: usize = 20;
    const COOKIE: u32 = 0x2112_A442;
    let (Some(kind), Some(length), Some(cookie)) =
        (be16(datagram, 0), be16(datagram, 2), be32(datagram, 4))
    else {
        return Verdict::No;
    };
    let length = usize::from(length);
    if kind & 0xC000 != 0 || length % 4 != 0 || datagram.len() < HEADER {
        return Verdict::No;
    }
    if cookie == COOKIE {
        return Verdict::when(length <= 2048, Application::Stun);
    }
    let is_binding = matches!(kind, 0x0001 | 0x0101 | 0x0111);
    let is_filled = datagram.len() == HEADER + length;
    Verdict::when(
        is_binding
            && is_filled
            && on_port
            && has_attributes(datagram.get(HEADER..).unwrap_or_default()),
        Application::Stun,
    )
}

/// STUN over TCP (RFC 8489 section 6.2.2), also with its length in front, as between peers (RFC 6544
/// section 3).
pub(super) fn stun_stream(view: &View<'_>) -> Verdict {
    let framed = view.own.get(2..).unwrap_or_default();
    let is_framed = || {
        let length = be16(framed, 2).map_or(0, |length| usize::from(length) + 20);
        be16(view.own, 0).is_some_and(|frame| usize::from(frame) == length)
            && stun(framed, false) == Verdict::Is(Application::Stun)
    };
    let is_its = stun(view.own, false) == Verdict::Is(Application::Stun) || is_framed();
    Verdict::when(is_its, Application::Stun)
}

/// Attributes (type, length, value) that fill the bytes.
fn has_attributes(mut rest: &[u8]) -> bool {
    while !rest.is_empty() {
        let Some(length) = be16(rest, 2) else {
            return false;
        };
        match rest.get(4 + usize::from(length).next_multiple_of(4)..) {
            Some(next) => rest = next,
            None => return false,
        }
    }
    true
}

/// WireGuard: initiation and response have their own lengths, data counts from zero.
pub(super) fn wireguard(datagram: &[u8]) -> Verdict {
    let is_its = match le32(datagram, 0) {
        Some(1) => datagram.len() == 148,
        Some(2) => datagram.len() == 92,
        _ => false,
    };
    Verdict::when(is_its, Application::WireGuard)
}
