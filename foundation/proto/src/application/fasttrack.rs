//! FastTrack (KaZaA): its transfers are HTTP, the link to its supernodes is enciphered.
//!
//! Source: giFT-FastTrack and mldonkey, by what their clients send. Must be tried before HTTP.

use super::bytes::{begins_any_case, digits, first_line};
use super::{Application, Verdict, View};

/// The side that cannot be reached offers its file: `GIVE <id>`.
pub(super) fn push(view: &View<'_>) -> Verdict {
    const GIVE: &[u8] = b"GIVE ";
    let Some(id) = view.own.strip_prefix(GIVE) else {
        return if GIVE.starts_with(view.own) {
            Verdict::More
        } else {
            Verdict::No
        };
    };
    match (digits(id), first_line(view.own)) {
        (8..=11, Some(line)) => Verdict::when(
            line.len() == GIVE.len() + digits(id),
            Application::FastTrack,
        ),
        (0..=11, None) if digits(id) == id.len() => Verdict::More,
        _ => Verdict::No,
    }
}

/// `/.hash=` and the 40 hexadecimal digits of a file's hash.
pub(super) fn is_target(target: &[u8]) -> bool {
    const DIGITS: usize = 40;
    let hash = target.strip_prefix(b"/.hash=").unwrap_or_default();
    hash.iter().take_while(|b| b.is_ascii_hexdigit()).count() == DIGITS
        // The target goes on, or ends.
        && hash.len() > DIGITS
}

/// Header fields of its own.
pub(super) fn is_field(line: &[u8]) -> bool {
    begins_any_case(line, b"X-KAZAA")
}

/// What its clients call themselves.
pub(super) fn is_agent(value: &[u8]) -> bool {
    begins_any_case(value, b"KAZAA") || begins_any_case(value, b"PEERENABLER/")
}

/// Datagrams between supernodes end with the name of the network.
pub(super) fn udp(datagram: &[u8]) -> Verdict {
    Verdict::when(datagram.ends_with(b"KaZaA\0"), Application::FastTrack)
}
