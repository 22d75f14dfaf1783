//! RTSP, SIP, RTMP, ICY.

use super::bytes::{be32, begins, begins_any_case, byte, first_line, line_so_far};
use super::{Application, Verdict, View};

/// `<method> rtsp://... RTSP/1.0` (RFC 2326 section 6.1, RFC 7826 section 7.1); a server asks too.
pub(super) fn rtsp_request(view: &View<'_>) -> Verdict {
    let line = line_so_far(view.own);
    let methods: [&[u8]; 12] = [
        b"OPTIONS",
        b"DESCRIBE",
        b"SETUP",
        b"PLAY",
        b"PLAY_NOTIFY",
        b"PAUSE",
        b"ANNOUNCE",
        b"RECORD",
        b"REDIRECT",
        b"TEARDOWN",
        b"SET_PARAMETER",
        b"GET_PARAMETER",
    ];
    let Some(blank) = memchr::memchr(b' ', line) else {
        let may_become = methods.iter().any(|method| method.starts_with(line));
        return if may_become {
            Verdict::More
        } else {
            Verdict::No
        };
    };
    let method = line.get(..blank).unwrap_or_default();
    if !methods.contains(&method) {
        return Verdict::No;
    }
    let target = line.get(blank + 1..).unwrap_or_default();
    let is_version = line.ends_with(b" RTSP/1.0") || line.ends_with(b" RTSP/2.0");
    if begins_any_case(target, b"RTSP://") || is_version {
        Verdict::Is(Application::Rtsp)
    } else if b"rtsp://".starts_with(target) {
        Verdict::More
    } else {
        Verdict::No
    }
}

/// `RTSP/1.0 200` (RFC 2326 section 7.1).
pub(super) fn rtsp_response(view: &View<'_>) -> Verdict {
    begins(view.own, b"RTSP/1.0 ", Application::Rtsp)
        .or(|| begins(view.own, b"RTSP/2.0 ", Application::Rtsp))
}

/// `<method> sip:... SIP/2.0` or `SIP/2.0 <code>` (RFC 3261 section 7).
pub(super) fn sip(view: &View<'_>) -> Verdict {
    sip_message(view.own)
}

/// A message of SIP, also in a datagram.
pub(super) fn sip_message(own: &[u8]) -> Verdict {
    let status = begins(own, b"SIP/2.0 ", Application::Sip);
    if status != Verdict::No {
        return status;
    }
    let methods: [&[u8]; 14] = [
        b"INVITE ",
        b"ACK ",
        b"BYE ",
        b"CANCEL ",
        b"REGISTER ",
        b"OPTIONS ",
        b"PRACK ",
        b"SUBSCRIBE ",
        b"NOTIFY ",
        b"PUBLISH ",
        b"INFO ",
        b"REFER ",
        b"MESSAGE ",
        b"UPDATE ",
    ];
    let Some(method) = methods.iter().find(|method| own.starts_with(method)) else {
        return Verdict::No;
    };
    let target = own.get(method.len()..).unwrap_or_default();
    if begins_any_case(target, b"SIP:") || begins_any_case(target, b"SIPS:") {
        return Verdict::Is(Application::Sip);
    }
    match first_line(own) {
        Some(line) => Verdict::when(line.ends_with(b" SIP/2.0"), Application::Sip),
        None if target.len() < 5 => Verdict::More,
        None => Verdict::No,
    }
}

/// `ICY 200 OK`, the answer of SHOUTcast.
pub(super) fn icy(view: &View<'_>) -> Verdict {
    begins(view.own, b"ICY ", Application::Icy)
}

/// The handshake of RTMP 1.0 (section 5.2): version 3, then 1,536 bytes that begin with a time and
/// zeros, or with the version of the player where the handshake is signed.
pub(super) fn rtmp(view: &View<'_>) -> Verdict {
    const HANDSHAKE: usize = 1 + 1536;
    let own = view.own;
    let Some(zero) = be32(own, 5) else {
        return if byte(own, 0) == Some(3) {
            Verdict::More
        } else {
            Verdict::No
        };
    };
    // Versions of players and servers: four small numbers.
    let is_version = zero.to_be_bytes().iter().all(|byte| *byte < 0x80) && own.len() > 9;
    if zero != 0 && !is_version {
        return Verdict::No;
    }
    if zero != 0 && !view.has_port(1935) {
        // Without the zeros, both sides must have the size of the handshake.
        let is_answered = view.other.first() == Some(&3) && view.other.len() >= HANDSHAKE;
        if own.len() >= HANDSHAKE && is_answered {
            return Verdict::Is(Application::Rtmp);
        }
        let may_become = own.len() < HANDSHAKE && matches!(view.other.first(), None | Some(&3));
        return if may_become {
            Verdict::More
        } else {
            Verdict::No
        };
    }
    if own.len() >= HANDSHAKE || view.has_port(1935) {
        return Verdict::Is(Application::Rtmp);
    }
    Verdict::More
}
