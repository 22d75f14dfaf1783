//! UDP: which signatures are tried for a datagram.

use super::udp_memory::{Candidate, Sureness, UdpMemory};
use super::{
    Application, Verdict, bittorrent, edonkey_udp, fasttrack, gnutella, industrial, infrastructure,
    media, names, programs, rtp, secure, services, utp,
};

/// Datagrams after which a flow is nothing that is known, or half as many where none fits anything: a call
/// may open with words of its own before its media come.
const MAX_DATAGRAMS: u8 = 16;
/// Datagrams of a flow that began with STUN after which nothing is added to its label: the way is opened
/// by some dozen, and media may come long behind the reports on it.
const STUN_MAX_DATAGRAMS: u8 = u8::MAX;

/// What a UDP flow carries, by one more of its datagrams.
///
/// Give the datagrams of both directions in their order, with the same `memory`, until the answer is
/// [`Verdict::Is`] or [`Verdict::No`]; it is within 255 datagrams.
#[must_use]
pub fn classify_udp(
    datagram: &[u8],
    is_from_client: bool,
    client_port: u16,
    server_port: u16,
    memory: &mut UdpMemory,
) -> Verdict {
    let ports = [client_port, server_port];
    let verdict = look_at(datagram, is_from_client, ports, memory);
    if let Verdict::Is(one) | Verdict::Likely(one) = verdict {
        debug_assert!(one.is_over_udp(), "{one:?} is over UDP too");
    }
    verdict
}

#[inline]
fn look_at(
    datagram: &[u8],
    is_from_client: bool,
    ports: [u16; 2],
    memory: &mut UdpMemory,
) -> Verdict {
    memory.datagrams = memory.datagrams.saturating_add(1);
    if let Some(so_far) = memory.so_far {
        return behind_stun(so_far, datagram, is_from_client, memory);
    }
    let Some(first) = datagram.first() else {
        return strange(memory);
    };
    let sure = match first >> 6 {
        2 => rtp::rtcp(datagram),
        3 => secure::quic(datagram),
        _ => Verdict::No,
    };
    if sure != Verdict::No {
        return sure;
    }
    let marked = match first {
        0x00 | 0x01 => {
            let on_port = ports.contains(&3478) || ports.contains(&3479);
            if let Verdict::Is(stun) = secure::stun(datagram, on_port) {
                memory.so_far = Some(stun);
                return Verdict::Likely(stun);
            }
            secure::wireguard(datagram).or(|| bittorrent::udp(datagram))
        }
        0x02 => secure::wireguard(datagram),
        0x04..=0x0F => secure::quic(datagram),
        0x14..=0x1A => secure::dtls(datagram).or(|| bittorrent::udp(datagram)),
        0x13 | b'd' | b'B' => bittorrent::udp(datagram),
        b'H' | b'M' | b'N' => services::ssdp(datagram, ports),
        0x27..=0x2F => fasttrack::udp(datagram),
        _ => Verdict::No,
    };
    let marked = marked
        .or(|| names::udp(datagram, ports))
        .or(|| services::udp(datagram, ports))
        .or(|| infrastructure::udp(datagram, ports))
        .or(|| industrial::udp(datagram, ports))
        .or(|| programs::udp(datagram, ports))
        .or(|| {
            if first.is_ascii_uppercase() {
                sip(datagram)
            } else {
                Verdict::No
            }
        });
    if let Verdict::Is(_) = marked {
        return marked;
    }
    by_votes(datagram, is_from_client, memory)
}

/// One more datagram of a flow that began with STUN: the first byte tells what shares a flow with it
/// (RFC 7983 section 7), the signature that it is that. What a relay carries in messages of TURN is not
/// looked into.
fn behind_stun(
    so_far: Application,
    datagram: &[u8],
    is_from_client: bool,
    memory: &mut UdpMemory,
) -> Verdict {
    let verdict = match datagram.first() {
        Some(20..=63) => secure::dtls(datagram),
        Some(128..=191) => rtp::rtcp(datagram).or(|| rtp::rtp(datagram, is_from_client, memory)),
        _ => Verdict::No,
    };
    let label = match verdict {
        Verdict::Is(more) => with(so_far, more),
        Verdict::Likely(_) | Verdict::More | Verdict::No => so_far,
    };
    memory.so_far = Some(label);
    // Media is what all that came before was for.
    let is_all = matches!(label, Application::StunRtp | Application::StunDtlsRtp);
    if is_all || memory.datagrams == STUN_MAX_DATAGRAMS {
        Verdict::Is(label)
    } else {
        Verdict::Likely(label)
    }
}

/// What a flow is that was `so_far` this and goes on as `more`.
const fn with(so_far: Application, more: Application) -> Application {
    use Application::{
        Dtls, Rtcp, Rtp, Stun, StunDtls, StunDtlsRtcp, StunDtlsRtp, StunRtcp, StunRtp,
    };
    match (so_far, more) {
        (Stun, Dtls) => StunDtls,
        (Stun, Rtcp) => StunRtcp,
        // Reports share a flow with the media that they are on (RFC 5761).
        (Stun | StunRtcp, Rtp) => StunRtp,
        (StunDtls, Rtcp) | (StunRtcp, Dtls) => StunDtlsRtcp,
        (StunDtls | StunDtlsRtcp, Rtp) => StunDtlsRtp,
        _ => so_far,
    }
}

/// A datagram is whole: what it does not say, the next will not add.
fn sip(datagram: &[u8]) -> Verdict {
    match media::sip_message(datagram) {
        Verdict::More => Verdict::No,
        decided => decided,
    }
}

/// Protocols that several datagrams have to agree on.
fn by_votes(datagram: &[u8], is_from_client: bool, memory: &mut UdpMemory) -> Verdict {
    let peer = match edonkey_udp::udp(datagram) {
        Sureness::None => gnutella::udp(datagram),
        sureness => sureness,
    };
    match peer {
        Sureness::Sure(application) => return Verdict::Is(application),
        Sureness::Likely(application, kind) => {
            return vote(memory, application, is_from_client, kind);
        }
        Sureness::None => {}
    }
    let voted = rtp::rtp(datagram, is_from_client, memory)
        .or(|| utp::utp(datagram, is_from_client, memory));
    match voted {
        Verdict::Is(_) | Verdict::Likely(_) => voted,
        Verdict::More => wait(memory),
        Verdict::No => strange(memory),
    }
}

/// A datagram that fits nothing: some may come before those that do, and between them.
const fn strange(memory: &mut UdpMemory) -> Verdict {
    memory.datagrams = memory.datagrams.saturating_add(1);
    wait(memory)
}

/// More, as long as it is worth it.
const fn wait(memory: &UdpMemory) -> Verdict {
    if memory.datagrams < MAX_DATAGRAMS {
        Verdict::More
    } else {
        Verdict::No
    }
}

/// A message that is likely of a peer-to-peer application.
///
/// Protocols that are not known may begin all their datagrams alike, so a second one says
/// something only where it is of another kind: a request and its answer, two steps of a search.
fn vote(
    memory: &mut UdpMemory,
    application: Application,
    is_from_client: bool,
    kind: u8,
) -> Verdict {
    let candidate = Candidate::Peer(application);
    if memory.candidate != candidate {
        memory.begin(candidate, is_from_client, 0, 0, kind);
    } else if memory.kind != kind {
        return Verdict::Is(application);
    }
    // Two sides that are likely of different applications never agree.
    wait(memory)
}
