//! Messages, queues and calls between programs.

use super::bytes::{be16, be24, be32, begins, byte, is_text};
use super::{Application, Verdict, View};

/// The header of the protocol, of either side: `AMQP`, an identifier and a version (AMQP 0-9-1 section 4.2.2, AMQP 1.0
/// section 2.2).
pub(super) fn amqp(view: &View<'_>) -> Verdict {
    let versions: [&[u8]; 7] = [
        b"AMQP\0\0\x09\x01",
        b"AMQP\x01\x01\0\x09",
        b"AMQP\x01\x01\x08\0",
        b"AMQP\x01\x01\0\x0A",
        b"AMQP\0\x01\0\0",
        b"AMQP\x02\x01\0\0",
        b"AMQP\x03\x01\0\0",
    ];
    any_of(view.own, &versions, Application::Amqp)
}

/// What `own` begins with one of, or may yet.
fn any_of(own: &[u8], patterns: &[&[u8]], application: Application) -> Verdict {
    let each = patterns
        .iter()
        .map(|pattern| begins(own, pattern, application));
    each.into_iter()
        .reduce(|so_far, next| {
            if next == Verdict::No || matches!(so_far, Verdict::Is(_)) {
                so_far
            } else {
                next
            }
        })
        .unwrap_or(Verdict::No)
}

/// CONNECT and its answer (STOMP 1.2, "Connecting"): the command is a line, and a header follows it.
pub(super) fn stomp(view: &View<'_>) -> Verdict {
    let own = view.own;
    let commands: [&[u8]; 3] = [b"CONNECTED", b"CONNECT", b"STOMP"];
    let Some(rest) = commands
        .iter()
        .find_map(|command| own.strip_prefix(*command))
    else {
        let may_become = commands.iter().any(|command| command.starts_with(own));
        return if may_become {
            Verdict::More
        } else {
            Verdict::No
        };
    };
    let rest = match rest {
        [] | [b'\r'] => return Verdict::More,
        [b'\r', b'\n', rest @ ..] | [b'\n', rest @ ..] => rest,
        _ => return Verdict::No,
    };
    let headers: [&[u8]; 9] = [
        b"accept-version:",
        b"host:",
        b"login:",
        b"passcode:",
        b"heart-beat:",
        b"version:",
        b"session:",
        b"server:",
        b"client-id:",
    ];
    any_of(rest, &headers, Application::Stomp)
}

/// INFO of a server, CONNECT of a client: each with an object of JSON (NATS client protocol).
pub(super) fn nats(view: &View<'_>) -> Verdict {
    any_of(view.own, &[b"INFO {\"", b"CONNECT {\""], Application::Nats)
}

/// A request (Kafka protocol guide, "Request header"): length, key and version of the operation, number, name of
/// the client.
pub(super) fn kafka(view: &View<'_>) -> Verdict {
    let own = view.own;
    let (Some(length), Some(key @ 0..=92), Some(version @ 0..=20), Some(number), Some(size)) = (
        be32(own, 0),
        be16(own, 4),
        be16(own, 6),
        be32(own, 8),
        be16(own, 12),
    ) else {
        return Verdict::No;
    };
    let name = own.get(14..14 + usize::from(size)).unwrap_or_default();
    // Numbers count up, names are words; only the first requests of a connection are of interest.
    let is_name = (2..=255).contains(&size)
        && name.len() == usize::from(size)
        && name.iter().all(u8::is_ascii_graphic);
    let is_first =
        matches!(key, 0..=3 | 8..=12 | 17..=20 | 22 | 36 | 60 | 71..=72 | 80) && version <= 20;
    Verdict::when(
        is_first
            && is_name
            && number <= 0xFFFF
            && (10 + u32::from(size)..=1 << 20).contains(&length),
        Application::Kafka,
    )
}

/// The greeting of both sides (ZMTP 3.1, RFC 23 and 37 of ZeroMQ): signature, version, name of the mechanism.
pub(super) fn zeromq(view: &View<'_>) -> Verdict {
    let own = view.own;
    let (Some(0xFF), Some(0x7F), Some(major)) = (byte(own, 0), byte(own, 9), byte(own, 10)) else {
        let may_become = own.len() < 11 && own.starts_with(b"\xFF\0\0\0\0");
        return if may_become {
            Verdict::More
        } else {
            Verdict::No
        };
    };
    let is_signature = own.get(1..8) == Some(&[0; 7]);
    let is_mechanism = || {
        let name = own.get(12..).unwrap_or_default();
        [&b"NULL\0"[..], b"PLAIN\0", b"CURVE\0", b"GSSAPI\0"]
            .iter()
            .any(|known| name.starts_with(known) || name.is_empty())
    };
    Verdict::when(
        is_signature && (major == 1 || major == 3 && is_mechanism()),
        Application::ZeroMq,
    )
}

/// Bind of a client, and its answer (SMPP 3.4 section 4.1): length, operation, status, number, then a name that ends in a zero.
pub(super) fn smpp(view: &View<'_>) -> Verdict {
    let own = view.own;
    let (Some(length), Some(operation), Some(status), Some(number)) =
        (be32(own, 0), be32(own, 4), be32(own, 8), be32(own, 12))
    else {
        return Verdict::No;
    };
    let is_bind = matches!(operation & 0x7FFF_FFFF, 1 | 2 | 9);
    let name = own.get(16..).unwrap_or_default();
    let end = name.iter().take(16).position(|byte| *byte == 0);
    let is_name = end.is_some_and(|end| end > 0 && is_text(name.get(..end).unwrap_or_default()));
    Verdict::when(
        is_bind
            && status == 0
            && (1..=0xFFFF).contains(&number)
            && (18..=512).contains(&length)
            && is_name,
        Application::Smpp,
    )
}

/// A message (RFC 6733 sections 3 and 4.1): version 1, its length, flags, command; then an attribute that messages
/// begin with.
pub(super) fn diameter(view: &View<'_>) -> Verdict {
    let own = view.own;
    let (Some(1), Some(length), Some(flags), Some(command)) =
        (byte(own, 0), be24(own, 1), byte(own, 4), be24(own, 5))
    else {
        return Verdict::No;
    };
    let (Some(attribute), Some(0x40)) = (be32(own, 20), byte(own, 24)) else {
        return Verdict::No;
    };
    let is_header = length % 4 == 0 && (28..=65_536).contains(&length) && flags & 0x0F == 0;
    // Session, origin, result: what the grammar of nearly every command begins with.
    let is_body = matches!(attribute, 263 | 264 | 268) && (257..=8_388_800).contains(&command);
    Verdict::when(is_header && is_body, Application::Diameter)
}

/// A message behind its frame (HL7 version 2, "Minimal Lower Layer Protocol"): 0x0B, then the segment `MSH`.
pub(super) fn hl7(view: &View<'_>) -> Verdict {
    begins(view.own, b"\x0BMSH|^~\\&", Application::Hl7)
}

/// A-ASSOCIATE-RQ or -AC (DICOM PS3.8 sections 9.3.2 and 9.3.3): length, version 1, names, and the context of DICOM.
pub(super) fn dicom(view: &View<'_>) -> Verdict {
    let own = view.own;
    let is_header = matches!(own, [1 | 2, 0, _, _, _, _, 0, 1, 0, 0, ..]);
    let context = own.get(74..).unwrap_or_default();
    Verdict::when(
        is_header && context.starts_with(b"\x10\0\0\x151.2.840.10008.3.1.1.1"),
        Application::Dicom,
    )
}

/// A request that begins (`FastCGI` specification, sections 3.3 and 5.1): version, type, number, eight bytes, a role.
pub(super) fn fastcgi(view: &View<'_>) -> Verdict {
    let own = view.own;
    let is_begin = matches!(
        own,
        [
            1,
            1,
            _,
            _,
            0,
            8,
            0..=7,
            0,
            0,
            1..=3,
            0..=1,
            0,
            0,
            0,
            0,
            0,
            ..
        ]
    );
    Verdict::when(is_begin, Application::FastCgi)
}

/// A request forwarded to a container (`AJPv13`, "Forward Request"): mark, length, type 2, a method, the version of HTTP.
pub(super) fn ajp(view: &View<'_>) -> Verdict {
    let own = view.own;
    let is_header = matches!(own, [0x12, 0x34, _, _, 2, 1..=28, ..]);
    let version = own.get(6..).unwrap_or_default();
    Verdict::when(
        is_header && version.starts_with(b"\0\x08HTTP/1."),
        Application::Ajp,
    )
}

/// A message of agent or server (Zabbix, "Header"): mark, flags.
pub(super) fn zabbix(view: &View<'_>) -> Verdict {
    match view.own {
        [b'Z', b'B', b'X', b'D', flags, ..] => {
            Verdict::when(matches!(flags, 1..=7), Application::Zabbix)
        }
        own if b"ZBXD".starts_with(own) => Verdict::More,
        _ => Verdict::No,
    }
}
