//! BitTorrent: peers (BEP 3), trackers by HTTP and UDP (BEP 15), the hash table (BEP 5).

use super::bytes::{be32, begins, begins_any_case, digits};
use super::{Application, Verdict, View};

const IS: Verdict = Verdict::Is(Application::BitTorrent);

/// How the handshake of peers begins (BEP 3).
const HANDSHAKE: &[u8] = b"\x13BitTorrent protocol";

/// The handshake of peers.
pub(super) fn tcp(view: &View<'_>) -> Verdict {
    begins(view.own, HANDSHAKE, Application::BitTorrent)
}

/// Whether the handshake of a BitTorrent peer stands anywhere in these bytes: peers that first exchange
/// keys (MSE) and then go on in clear have it behind some hundred random bytes.
///
/// For flows without a label: in others it may be what somebody writes about.
#[must_use]
pub fn has_bittorrent_handshake(bytes: &[u8]) -> bool {
    memchr::memmem::find(bytes, HANDSHAKE).is_some()
}

/// Requests to a tracker (BEP 3), and to a web seed (BEP 17): a file by its hash, and a path or a field
/// that goes with it.
pub(super) fn is_target(target: &[u8]) -> bool {
    let end = target
        .iter()
        .position(|b| matches!(b, b' ' | b'\r' | b'\n'));
    let target = end.and_then(|end| target.get(..end)).unwrap_or(target);
    let question = memchr::memchr(b'?', target).unwrap_or(target.len());
    let (path, query) = target.split_at_checked(question).unwrap_or_default();
    // The rest of the query may follow in another segment; `info_hash` is the first of all clients.
    let has = |names: &[&[u8]]| {
        query
            .split(|b| matches!(b, b'?' | b'&'))
            .any(|field| names.iter().any(|name| begins_any_case(field, name)))
    };
    let paths: [&[u8]; 4] = [b"/announce", b"/scrape", b"/announce.php", b"/scrape.php"];
    has(&[b"INFO_HASH="])
        && (paths.iter().any(|known| path.ends_with(known))
            || has(&[b"PEER_ID=", b"UPLOADED=", b"PIECE="]))
}

/// Hash table, tracker and local discovery.
pub(super) fn udp(datagram: &[u8]) -> Verdict {
    match datagram.first() {
        Some(b'd') => hash_table(datagram),
        Some(b'B') => Verdict::when(
            datagram.starts_with(b"BT-SEARCH * HTTP/1.1\r\n"),
            Application::BitTorrent,
        ),
        Some(0x13) => Verdict::when(datagram.starts_with(HANDSHAKE), Application::BitTorrent),
        Some(0x00) => connect(datagram),
        _ => Verdict::No,
    }
}

/// A dictionary with `a` (arguments), `r` (response) or `e` (error), or `ip` before one of them
/// (BEP 42), of the shape that the hash table has.
fn hash_table(datagram: &[u8]) -> Verdict {
    let starts: [&[u8]; 6] = [
        b"d1:ad2:id20:",
        b"d1:rd2:id20:",
        b"d2:ip6:",
        b"d2:ip18:",
        b"d1:eli20",
        b"d1:ad4:",
    ];
    let is_start = starts.iter().any(|start| datagram.starts_with(start));
    // The names of transaction and type stand in every message; what is cut has the former at least.
    let ends = |end: &[u8]| datagram.windows(end.len()).rev().take(80).any(|w| w == end);
    let is_sure = datagram.starts_with(b"d1:ad2:id20:")
        || datagram.starts_with(b"d1:rd2:id20:")
        || is_answer_with_question(datagram);
    Verdict::when(
        is_sure || is_start && ends(b"1:y1:"),
        Application::BitTorrent,
    )
}

/// An answer that repeats the name of the question: `d1:q9:find_node1:rd2:id20:`.
fn is_answer_with_question(datagram: &[u8]) -> bool {
    let Some(question) = datagram.strip_prefix(b"d1:q") else {
        return false;
    };
    let count = digits(question);
    let length = question
        .get(..count)
        .filter(|digits| (1..=2).contains(&digits.len()))
        .map_or(0, |digits| {
            digits
                .iter()
                .fold(0, |number, digit| number * 10 + usize::from(digit - b'0'))
        });
    let name = question
        .get(count..)
        .and_then(|rest| rest.strip_prefix(b":"));
    name.and_then(|name| name.get(length..))
        .is_some_and(|rest| length > 0 && rest.starts_with(b"1:rd2:id20:"))
}

/// BEP 15: the request for a connection carries a fixed number.
fn connect(datagram: &[u8]) -> Verdict {
    let is_connect = datagram.len() >= 16
        && be32(datagram, 0) == Some(0x0000_0417)
        && be32(datagram, 4) == Some(0x2710_1980)
        && be32(datagram, 8) == Some(0);
    if is_connect { IS } else { Verdict::No }
}
