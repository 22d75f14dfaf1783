//! FastTrack (KaZaA): its transfers are HTTP, the link to its supernodes is enciphered.
//!
//! Source: giFT-FastTrack and mldonkey, by what their clients send. Must be tried before HTTP.

use super::bytes::{begins_any_case, digits, first_line};
use super::{Application, Verdict, View};

const IS: Verdict = Verdict::Is(Application::FastTrack);

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

/// `/.hash=` and 40 hexadecimal digits.
pub(super) fn target(target: &[u8]) -> Verdict {
    const HASH: &[u8] = b"/.hash=";
    /// That many digits decide.
    const ENOUGH: usize = 8;
    let Some(hash) = target.strip_prefix(HASH) else {
        let may_become = target.starts_with(b"/.") && HASH.starts_with(target);
        return if may_become {
            Verdict::More
        } else {
            Verdict::No
        };
    };
    let hex = hash.iter().take_while(|b| b.is_ascii_hexdigit()).count();
    if hex >= ENOUGH {
        IS
    } else if hex == hash.len() {
        Verdict::More
    } else {
        Verdict::No
    }
}

/// Header fields of its own.
pub(super) fn field(line: &[u8]) -> Verdict {
    Verdict::when(begins_any_case(line, b"X-KAZAA"), Application::FastTrack)
}

/// What its clients call themselves.
pub(super) fn agent(value: &[u8]) -> Verdict {
    let is_its = begins_any_case(value, b"KAZAA") || begins_any_case(value, b"PEERENABLER/");
    Verdict::when(is_its, Application::FastTrack)
}

/// Datagrams between supernodes end with the name of the network.
pub(super) fn udp(datagram: &[u8]) -> Verdict {
    Verdict::when(datagram.ends_with(b"KaZaA\0"), Application::FastTrack)
}
