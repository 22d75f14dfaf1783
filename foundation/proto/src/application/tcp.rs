//! TCP: which signatures are tried for which first byte.

use super::{
    Opening, Verdict, View, bittorrent, chat, edonkey, fasttrack, gnutella, mail, media, msn,
    names, rtp, secure, services, terminal, web,
};

/// What a TCP flow carries, by the first bytes of both sides.
///
/// [`Verdict::No`] only when both sides have spoken: most protocols show on one side already, and
/// the other may be the one. The caller ends the wait (first 8 packets, 2 KB).
#[inline]
#[must_use]
pub fn classify_tcp(opening: &Opening<'_>) -> Verdict {
    let ports = [opening.client_port, opening.server_port];
    let client = side(&View {
        own: opening.client,
        other: opening.server,
        ports,
    });
    if let Verdict::Is(_) = client {
        return client;
    }
    let server = side(&View {
        own: opening.server,
        other: opening.client,
        ports,
    });
    match (client, server) {
        (_, Verdict::Is(_)) => server,
        (Verdict::Likely(_), _) => client,
        (_, Verdict::Likely(_)) => server,
        (Verdict::No, Verdict::No) => Verdict::No,
        _ => Verdict::More,
    }
}

/// What one side's bytes say.
#[inline]
fn side(view: &View<'_>) -> Verdict {
    match view.own.first() {
        None => Verdict::More,
        Some(b'A'..=b'Z') => upper(view),
        Some(b'a'..=b'z') => lower(view),
        Some(0x16) => secure::tls(view),
        Some(first) => other(*first, view),
    }
}

/// Commands in capital letters: most text protocols.
fn upper(view: &View<'_>) -> Verdict {
    let Some(first) = view.own.first() else {
        return Verdict::More;
    };
    let special = match first {
        b'A' => msn::switchboard(view).or(|| media::rtsp_request(view)),
        b'G' => fasttrack::push(view)
            .or(|| gnutella::tcp(view))
            .or(|| media::rtsp_request(view)),
        b'I' => media::icy(view),
        b'O' | b'D' | b'P' | b'T' => media::rtsp_request(view),
        b'R' => terminal::vnc(view)
            .or(|| media::rtsp_response(view))
            .or(|| media::rtsp_request(view)),
        b'S' => terminal::ssh(view)
            .or(|| media::rtsp_request(view))
            .or(|| media::sip(view)),
        b'N' => chat::irc_notice(view),
        b'U' => msn::switchboard(view),
        b'V' => msn::version(view),
        b'Y' => chat::ymsg(view),
        _ => Verdict::No,
    };
    special
        .or(|| web::http(view))
        .or(|| media::sip(view))
        .or(|| services::mysql(view))
        .or(|| chat::irc(view))
        .or(|| mail::command(view))
}

/// Commands in small letters.
fn lower(view: &View<'_>) -> Verdict {
    services::mysql(view)
        .or(|| mail::command(view))
        .or(|| chat::irc(view))
}

/// Binary protocols, and text that begins with a sign or a digit.
fn other(first: u8, view: &View<'_>) -> Verdict {
    match first {
        0x00 => services::smb(view)
            .or(|| services::postgres(view))
            .or(|| services::kerberos(view))
            .or(|| secure::stun_stream(view))
            .or(|| names::tcp(view))
            .or(|| rtp::tcp(view)),
        0x01..=0x02 => secure::stun_stream(view)
            .or(|| services::mysql(view))
            .or(|| names::tcp(view))
            .or(|| rtp::tcp(view)),
        0x03 => terminal::rdp(view)
            .or(|| media::rtmp(view))
            .or(|| names::tcp(view))
            .or(|| rtp::tcp(view)),
        0x04..=0x05 => services::mysql(view)
            .or(|| names::tcp(view))
            .or(|| rtp::tcp(view)),
        0x10 => services::mqtt(view)
            .or(|| services::mysql(view))
            .or(|| names::tcp(view)),
        0x13 => bittorrent::tcp(view)
            .or(|| services::mysql(view))
            .or(|| names::tcp(view)),
        0x14 | 0x15 | 0x17 => secure::tls(view).or(|| services::mysql(view)),
        b' ' | b'\t' | b'\r' | b'\n' => chat::xmpp(view),
        b'$' => chat::direct_connect(view),
        b'+' => mail::pop3_greeting(view),
        b'*' => mail::imap_greeting(view),
        b':' => chat::irc_server(view),
        b'<' => chat::xmpp(view),
        b'0'..=b'9' => mail::numbered(view)
            .or(|| services::ldap(view))
            .or(|| services::mysql(view)),
        0x80..=0x82 => secure::ssl2(view).or(|| services::smb(view)),
        0xC5 | 0xD4 | 0xE3 => edonkey::tcp(view),
        0xFF => terminal::telnet(view).or(|| services::bgp(view)),
        _ => services::mysql(view).or(|| names::tcp(view)),
    }
}
