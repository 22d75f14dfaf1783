//! Gnutella 0.4 and 0.6, and the transfers it makes by HTTP.
//!
//! Source: "Gnutella 0.6" (draft of Klingberg and Manfredi, 2002).

use super::bytes::{begins, begins_any_case, byte, digits};
use super::udp_memory::Sureness;
use super::{Application, Verdict, View};

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

/// Files by their SHA-1, 32 digits of base 32 ("HTTP Extensions for Gnutella", HUGE 0.94), which
/// another hash may follow.
pub(super) fn is_target(target: &[u8]) -> bool {
    const DIGITS: usize = 32;
    let Some(urn) = by_name(target) else {
        return false;
    };
    let kinds: [&[u8]; 2] = [b"SHA1:", b"BITPRINT:"];
    let hash = kinds
        .iter()
        .find(|kind| begins_any_case(urn, kind))
        .and_then(|kind| urn.get(kind.len()..))
        .unwrap_or_default();
    let is_digit = |b: &u8| b.is_ascii_alphabetic() || matches!(b, b'2'..=b'7');
    hash.iter().take_while(|b| is_digit(b)).count() == DIGITS
        // The target goes on, or ends.
        && hash.len() > DIGITS
}

/// Files by their index (`/get/<index>/<name>`) or a name of any kind: other programs have these too.
pub(super) fn may_be_target(target: &[u8]) -> bool {
    let by_index = |target: &[u8]| {
        let index = target.strip_prefix(b"/get/")?;
        let length = digits(index);
        (length > 0 && byte(index, length) == Some(b'/')).then_some(())
    };
    by_name(target).is_some() || by_index(target).is_some()
}

/// Behind `urn:` of a target that asks for a resource by its name (RFC 2169 section 2).
fn by_name(target: &[u8]) -> Option<&[u8]> {
    let starts: [&[u8]; 2] = [b"/URI-RES/N2R?URN:", b"/URI-RES/N2X?URN:"];
    let start = starts.iter().find(|start| begins_any_case(target, start))?;
    target.get(start.len()..)
}

/// Header fields of its own.
pub(super) fn is_field(line: &[u8]) -> bool {
    let fields: [&[u8]; 5] = [
        b"X-GNUTELLA-",
        b"X-GNUTELLA:",
        b"X-ULTRAPEER:",
        b"X-QUERY-ROUTING:",
        b"X-GTKG-",
    ];
    fields.iter().any(|field| begins_any_case(line, field)) || is_queue(line)
}

/// The version that a client queues with, or its place in the queue.
fn is_queue(line: &[u8]) -> bool {
    const QUEUE: &[u8] = b"X-QUEUE:";
    if !begins_any_case(line, QUEUE) {
        return false;
    }
    let value = line.get(QUEUE.len()..).unwrap_or_default().trim_ascii();
    matches!(value, [b'0'..=b'9', b'.', b'0'..=b'9', ..]) || begins_any_case(value, b"POSITION=")
}

/// What its clients call themselves.
pub(super) fn is_agent(value: &[u8]) -> bool {
    let clients: &[&[u8]] = match value.first().map(u8::to_ascii_uppercase) {
        Some(b'B') => &[b"BEARSHARE"],
        Some(b'F') => &[b"FROSTWIRE"],
        Some(b'G') => &[b"GTK-GNUTELLA", b"GNUCLEUS", b"GNOTELLA", b"GNUTELLA"],
        Some(b'L') => &[b"LIMEWIRE"],
        Some(b'M') => &[b"MACTELLA", b"MORPHEUS"],
        Some(b'S') => &[b"SHAREAZA"],
        _ => &[],
    };
    clients.iter().any(|client| begins_any_case(value, client))
}

/// Content types of its own.
pub(super) fn is_content(line: &[u8]) -> bool {
    begins_any_case(line, b"CONTENT-TYPE: APPLICATION/X-GNUTELLA")
        || begins_any_case(line, b"CONTENT-URN: URN:")
}

/// Messages of 0.6 over UDP, and of Gnutella2 (`GND`).
pub(super) fn udp(datagram: &[u8]) -> Sureness {
    if let Some(rest) = datagram.strip_prefix(b"GND") {
        return gnutella2(rest);
    }
    if datagram.starts_with(b"GNUTELLA ") {
        return Sureness::Sure(Application::Gnutella);
    }
    message(datagram)
}

/// Behind `GND`: flags (1: deflated, 2: wants an acknowledgement; the others of the low nibble are none,
/// those of the high one may be ignored), sequence number, part and count of parts, which begin with one; the first part begins with a packet, an acknowledgement has none.
fn gnutella2(rest: &[u8]) -> Sureness {
    let Some((&[flags, _, _, part, parts], body)) = rest.split_first_chunk() else {
        return Sureness::None;
    };
    // A packet's lengths of length and name, and its name in capital letters and digits.
    let is_packet = body.split_first().is_some_and(|(control, behind)| {
        let (length, name) = (usize::from(control >> 6), usize::from(control >> 3 & 7) + 1);
        let name = behind.get(length..length + name).unwrap_or_default();
        !name.is_empty()
            && name
                .iter()
                .all(|b| b.is_ascii_uppercase() || b.is_ascii_digit())
    });
    let is_sound =
        flags & 0x0C == 0 && part > 0 && (part <= parts || parts == 0 && body.is_empty());
    if is_sound && flags & 1 == 0 && part == 1 && is_packet {
        Sureness::Sure(Application::Gnutella)
    } else {
        // Parts, and acknowledgements, which have no count.
        let kind = u8::from(parts == 0) + 2 * part.min(100);
        Sureness::likely(is_sound, Application::Gnutella, kind)
    }
}

/// Identifier (16 bytes), type, time to live, hops, length (lowest byte first) that is the rest of
/// the datagram; a body of the shape that its type has.
fn message(datagram: &[u8]) -> Sureness {
    let Some((id, rest)) = datagram.split_first_chunk::<16>() else {
        return Sureness::None;
    };
    let Some((&[kind, ttl, hops, length @ ..], body)) = rest.split_first_chunk::<7>() else {
        return Sureness::None;
    };
    // Padding and counters end in zeros too: an identifier is random, and a message that goes on lives.
    let [first, ..] = id;
    let is_alive = if kind == DHT {
        ttl <= 15 && hops <= 15
    } else {
        ttl > 0 && ttl <= 15 && hops <= 15
    };
    let is_message = id.iter().any(|byte| byte != first)
        && is_alive
        && u32::from_le_bytes(length) as usize == body.len();
    if !is_message {
        return Sureness::None;
    }
    if has_shape(kind, body) {
        Sureness::Sure(Application::Gnutella)
    } else {
        let is_known = matches!(kind, 0x00 | 0x01 | 0x02 | 0x30 | 0x31 | 0x40 | 0x80 | 0x81);
        Sureness::likely(is_known, Application::Gnutella, kind)
    }
}

/// Type of the messages of the hash table, whose version stands in place of time to live and hops.
const DHT: u8 = 0x44;

/// Whether a body is what the type says.
fn has_shape(kind: u8, body: &[u8]) -> bool {
    // Extensions (GGEP): a mark, then the length of the first one's name and the name.
    let is_extension = |at: usize| {
        byte(body, at) == Some(0xC3)
            && byte(body, at + 1).is_some_and(|flags| flags & 0x10 == 0 && flags & 0xF != 0)
            && byte(body, at + 2).is_some_and(|letter| letter.is_ascii_graphic())
    };
    let is_vendor = |at: usize| {
        body.get(at..at + 4)
            .is_some_and(|vendor| vendor.iter().all(u8::is_ascii_uppercase))
    };
    match kind {
        // A ping alone has no body.
        0x00 => is_extension(0),
        // A pong: port, address, files, kilobytes.
        0x01 => body.len() == 14 || is_extension(14),
        0x31 => is_vendor(0) && body.len() >= 8,
        // Operation, then the vendor of the node, its version, its identifier of 20 bytes.
        DHT => matches!(byte(body, 0), Some(1..=8)) && is_vendor(1) && body.len() >= 27,
        // Flags, then what is looked for, which ends in zero.
        0x80 => body.len() > 3 && body.get(2..).is_some_and(|text| text.contains(&0)),
        // A count, then port, address, speed, results, and the identifier of the peer that has them.
        0x81 => matches!(byte(body, 0), Some(1..)) && body.len() > 11 + 16,
        _ => false,
    }
}
