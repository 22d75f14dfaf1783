//! Gnutella 0.4 and 0.6, and the transfers it makes by HTTP.
//!
//! Source: "Gnutella 0.6" (draft of Klingberg and Manfredi, 2002).

use super::bytes::{begins, begins_any_case, byte, contains_any_case, digits, le32, line_so_far};
use super::{Application, Verdict, View};

const IS: Verdict = Verdict::Is(Application::Gnutella);

/// Handshakes and pushes.
pub(super) fn tcp(view: &View<'_>) -> Verdict {
    begins(view.own, b"GNUTELLA CONNECT/", Application::Gnutella)
        .or(|| begins(view.own, b"GNUTELLA/0.", Application::Gnutella))
        .or(|| push(view.own))
}

/// `GIV <index>:<identifier, 32 hexadecimal digits>/<name>`.
fn push(own: &[u8]) -> Verdict {
    const GIV: &[u8] = b"GIV ";
    let Some(rest) = own.strip_prefix(GIV) else {
        return if GIV.starts_with(own) {
            Verdict::More
        } else {
            Verdict::No
        };
    };
    let index = digits(rest);
    let Some(rest) = rest.get(index..).and_then(|rest| rest.strip_prefix(b":")) else {
        return if index == rest.len() {
            Verdict::More
        } else {
            Verdict::No
        };
    };
    let hex = rest.iter().take_while(|b| b.is_ascii_hexdigit()).count();
    match rest.get(hex) {
        Some(b'/') => Verdict::when(hex == 32 && index > 0, Application::Gnutella),
        None if hex <= 32 => Verdict::More,
        _ => Verdict::No,
    }
}

/// Files by their hash. `/get/` alone could be anything: the fields decide.
pub(super) fn target(target: &[u8]) -> Verdict {
    const BY_HASH: &[u8] = b"/uri-res/N2R?urn:sha1:";
    const SOME: usize = b"/uri-r".len();
    if begins_any_case(target, b"/URI-RES/N2R?URN:")
        || begins_any_case(target, b"/URI-RES/N2X?URN:")
    {
        IS
    } else if target.len() >= SOME && BY_HASH.starts_with(target) {
        Verdict::More
    } else {
        Verdict::No
    }
}

/// Header fields of its own.
pub(super) fn field(line: &[u8]) -> Verdict {
    let fields: [&[u8]; 6] = [
        b"X-GNUTELLA-",
        b"X-GNUTELLA:",
        b"X-QUEUE:",
        b"X-ULTRAPEER:",
        b"X-QUERY-ROUTING:",
        b"X-GTKG-",
    ];
    let is_its = fields.iter().any(|field| begins_any_case(line, field));
    Verdict::when(is_its, Application::Gnutella)
}

/// What its clients call themselves.
pub(super) fn agent(value: &[u8]) -> Verdict {
    let clients: &[&[u8]] = match value.first().map(u8::to_ascii_uppercase) {
        Some(b'B') => &[b"BEARSHARE"],
        Some(b'F') => &[b"FROSTWIRE"],
        Some(b'G') => &[b"GTK-GNUTELLA", b"GNUCLEUS", b"GNOTELLA"],
        Some(b'L') => &[b"LIMEWIRE"],
        Some(b'M') => &[b"MACTELLA", b"MORPHEUS"],
        Some(b'S') => &[b"SHAREAZA"],
        _ => &[],
    };
    let is_its = clients.iter().any(|client| begins_any_case(value, client));
    Verdict::when(is_its, Application::Gnutella)
}

/// Content types of its own.
pub(super) fn content(line: &[u8]) -> Verdict {
    let is_its = begins_any_case(line, b"CONTENT-TYPE: APPLICATION/X-GNUTELLA")
        || begins_any_case(line, b"CONTENT-URN: URN:");
    Verdict::when(is_its, Application::Gnutella)
}

/// Messages of 0.6 over UDP, and of Gnutella2 (`GND`).
pub(super) fn udp(datagram: &[u8]) -> Verdict {
    if datagram.starts_with(b"GND") {
        return gnutella2(datagram);
    }
    if datagram.starts_with(b"GNUTELLA ") {
        return Verdict::when(
            contains_any_case(line_so_far(datagram), b"HTTP"),
            Application::Gnutella,
        )
        .or(|| IS);
    }
    Verdict::when(is_message(datagram), Application::Gnutella)
}

/// `GND`, flags, sequence number, part and count of parts, which begin with one.
fn gnutella2(datagram: &[u8]) -> Verdict {
    let is_header = datagram.len() >= 8
        && byte(datagram, 3).is_some_and(|flags| flags & 0x0C == 0)
        && byte(datagram, 6).is_some_and(|part| part > 0);
    Verdict::when(is_header, Application::Gnutella)
}

/// Identifier (16 bytes), type (0x44 is that of its hash table, which has its version behind it), time to live, hops, length (lowest byte first) that is the rest of
/// the datagram.
fn is_message(datagram: &[u8]) -> bool {
    const HEADER: usize = 23;
    let Some((header, body)) = datagram.split_at_checked(HEADER) else {
        return false;
    };
    let is_known = matches!(
        byte(header, 16),
        Some(0x00 | 0x01 | 0x02 | 0x30 | 0x31 | 0x40 | 0x44 | 0x80 | 0x81)
    );
    let hops = |at| byte(header, at).is_some_and(|hops| hops <= 15);
    is_known
        && hops(17)
        && hops(18)
        && le32(header, 19).is_some_and(|length| length as usize == body.len())
        // Pings have no body: with an identifier of zeros it is anything.
        && header.iter().take(16).any(|byte| *byte != 0)
}
