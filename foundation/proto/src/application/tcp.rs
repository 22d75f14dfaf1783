//! TCP: which signatures are tried for which first byte.

use super::{
    Opening, Verdict, View, bittorrent, chat, databases, edonkey, fasttrack, gnutella, industrial,
    infrastructure, mail, media, messaging, msn, names, programs, rtp, secure, services, terminal,
    web,
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
        b'A' => messaging::amqp(view)
            .or(|| industrial::tcp(view))
            .or(|| programs::nntp(view))
            .or(|| msn::switchboard(view))
            .or(|| media::rtsp_request(view)),
        b'B' => programs::x11(view),
        b'C' => messaging::stomp(view)
            .or(|| messaging::nats(view))
            .or(|| databases::iscsi(view)),
        b'E' | b'F' | b'H' => industrial::tcp(view),
        b'G' => fasttrack::push(view)
            .or(|| gnutella::tcp(view))
            .or(|| media::rtsp_request(view)),
        b'I' => media::icy(view).or(|| messaging::nats(view)),
        b'L' | b'M' => programs::nntp(view),
        b'O' => industrial::tcp(view).or(|| media::rtsp_request(view)),
        b'D' | b'P' | b'T' => media::rtsp_request(view),
        b'R' => terminal::vnc(view)
            .or(|| media::rtsp_response(view))
            .or(|| media::rtsp_request(view)),
        b'S' => terminal::ssh(view)
            .or(|| messaging::stomp(view))
            .or(|| media::rtsp_request(view))
            .or(|| media::sip(view)),
        b'N' => chat::irc_notice(view).or(|| databases::nbd(view)),
        b'U' => msn::switchboard(view),
        b'V' => msn::version(view),
        b'Y' => chat::ymsg(view),
        b'Z' => messaging::zabbix(view),
        _ => Verdict::No,
    };
    special
        .or(|| web::http(view))
        .or(|| media::sip(view))
        .or(|| databases::by_length(view))
        .or(|| chat::irc(view))
        .or(|| mail::command(view))
}

/// Commands in small letters.
fn lower(view: &View<'_>) -> Verdict {
    let special = match view.own.first() {
        Some(b'l') => programs::x11(view),
        Some(b'c') => industrial::tcp(view)
            .or(|| databases::ceph(view))
            .or(|| databases::memcached(view)),
        Some(b'e' | b'h' | b'o') => industrial::tcp(view),
        Some(b'p') => industrial::tcp(view).or(|| databases::memcached(view)),
        Some(b'a' | b'g' | b'r' | b's' | b'v') => databases::memcached(view),
        _ => Verdict::No,
    };
    special
        .or(|| databases::by_length(view))
        .or(|| mail::command(view))
        .or(|| chat::irc(view))
}

/// Binary protocols, and text that begins with a sign or a digit.
fn other(first: u8, view: &View<'_>) -> Verdict {
    match first {
        0x00 => zero(view),
        0x01..=0x02 => secure::stun_stream(view)
            .or(|| small(view))
            .or(|| databases::by_length(view))
            .or(|| names::tcp(view))
            .or(|| rtp::tcp(view)),
        0x03 => terminal::rdp(view)
            .or(|| small(view))
            .or(|| media::rtmp(view))
            .or(|| names::tcp(view))
            .or(|| rtp::tcp(view)),
        0x04..=0x05 => small(view)
            .or(|| databases::by_length(view))
            .or(|| names::tcp(view))
            .or(|| rtp::tcp(view)),
        0x06 | 0xAA => industrial::tcp(view)
            .or(|| databases::by_length(view))
            .or(|| names::tcp(view)),
        0x0B => messaging::hl7(view)
            .or(|| programs::bitcoin(view))
            .or(|| databases::by_length(view)),
        0x10 => services::mqtt(view)
            .or(|| databases::by_length(view))
            .or(|| names::tcp(view)),
        0x12 => databases::tds(view)
            .or(|| messaging::ajp(view))
            .or(|| databases::by_length(view))
            .or(|| names::tcp(view)),
        0x13 => bittorrent::tcp(view)
            .or(|| databases::by_length(view))
            .or(|| names::tcp(view)),
        0x14 | 0x15 | 0x17 => secure::tls(view).or(|| databases::by_length(view)),
        b' ' | b'\t' | b'\r' | b'\n' => chat::xmpp(view),
        b'#' => infrastructure::munin(view),
        b'$' => chat::direct_connect(view),
        b'(' => programs::svn(view),
        b'+' => mail::pop3_greeting(view),
        b'*' => databases::redis(view).or(|| mail::imap_greeting(view)),
        b':' => chat::irc_server(view),
        b'<' => chat::xmpp(view),
        b'@' => programs::rsync(view),
        b'0'..=b'9' => programs::git(view)
            .or(|| infrastructure::tinc(view))
            .or(|| mail::numbered(view))
            .or(|| services::ldap(view))
            .or(|| databases::by_length(view)),
        0x80..=0x82 => secure::ssl2(view)
            .or(|| services::smb(view))
            .or(|| infrastructure::rpc_stream(view)),
        0xC0 | 0xC1 => infrastructure::tacacs(view).or(|| databases::by_length(view)),
        0xC5 | 0xD4 | 0xE3 => edonkey::tcp(view),
        0xF9 | 0xFA => programs::bitcoin(view).or(|| databases::by_length(view)),
        0xFF => terminal::telnet(view)
            .or(|| messaging::zeromq(view))
            .or(|| services::bgp(view)),
        _ => databases::by_length(view).or(|| names::tcp(view)),
    }
}

/// Lengths in network order, and numbers that have not counted far.
fn zero(view: &View<'_>) -> Verdict {
    services::smb(view)
        .or(|| services::postgres(view))
        .or(|| services::kerberos(view))
        .or(|| secure::stun_stream(view))
        .or(|| messaging::kafka(view))
        .or(|| databases::tns(view))
        .or(|| messaging::smpp(view))
        .or(|| infrastructure::pptp(view))
        .or(|| infrastructure::openvpn_stream(view))
        .or(|| databases::clickhouse(view))
        .or(|| infrastructure::ldp_stream(view))
        .or(|| infrastructure::rlogin(view))
        .or(|| industrial::modbus(view))
        .or(|| databases::by_length(view))
        .or(|| names::tcp(view))
        .or(|| rtp::tcp(view))
}

/// Versions and types that are small numbers.
fn small(view: &View<'_>) -> Verdict {
    let first = match view.own.first() {
        Some(0x01) => messaging::diameter(view)
            .or(|| messaging::dicom(view))
            .or(|| messaging::fastcgi(view))
            .or(|| programs::rlpx(view))
            .or(|| industrial::tcp(view)),
        Some(0x02) => messaging::dicom(view).or(|| programs::rlpx(view)),
        Some(0x03) => databases::cassandra(view)
            .or(|| industrial::tcp(view))
            .or(|| programs::h323(view)),
        Some(0x04) => databases::cassandra(view).or(|| infrastructure::socks(view)),
        Some(0x05) => databases::cassandra(view)
            .or(|| infrastructure::socks(view))
            .or(|| programs::dcerpc(view))
            .or(|| industrial::tcp(view)),
        _ => Verdict::No,
    };
    first
        .or(|| infrastructure::openflow(view))
        .or(|| industrial::modbus(view))
}
