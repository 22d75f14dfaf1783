//! Databases and caches, and what stores blocks: by the first message of a client, or the greeting of a server.

use super::bytes::{be16, be32, begins, byte, digits, first_line, is_text, le32};
use super::services::mysql;
use super::{Application, Verdict, View};

/// Protocols whose first byte is the low byte of a length, so that it says nothing: MySQL, `MongoDB`.
pub(super) fn by_length(view: &View<'_>) -> Verdict {
    mysql(view).or(|| mongodb(view))
}

/// The header of a message (`MongoDB` Wire Protocol, "Standard Message Header"): length, number, number that is
/// answered, operation; a first message answers none, and an answer of the server one.
fn mongodb(view: &View<'_>) -> Verdict {
    const OP_REPLY: u32 = 1;
    const OP_QUERY: u32 = 2004;
    const OP_COMPRESSED: u32 = 2012;
    const OP_MSG: u32 = 2013;
    let own = view.own;
    let Some(operation @ (OP_REPLY | OP_QUERY | OP_COMPRESSED | OP_MSG)) = le32(own, 12) else {
        return Verdict::No;
    };
    let (Some(length), Some(answered)) = (le32(own, 0), le32(own, 8)) else {
        return Verdict::No;
    };
    let body = own.get(16..).unwrap_or_default();
    let is_body = match operation {
        // Flags, then the name of the collection of commands.
        OP_QUERY => {
            answered == 0
                && body
                    .get(4..)
                    .is_some_and(|name| name.starts_with(b"admin.$cmd\0"))
        }
        // Three flags exist; the first section is a document.
        OP_MSG => {
            le32(body, 0).is_some_and(|flags| flags & !0x0001_0003 == 0) && byte(body, 4) == Some(0)
        }
        // The operation that is compressed, and by what: not, snappy, zlib, zstd.
        OP_COMPRESSED => le32(body, 0) == Some(OP_MSG) && byte(body, 8).is_some_and(|by| by <= 3),
        // Flags, no cursor, from the first, one document.
        _ => {
            answered != 0
                && body.get(4..20) == Some(&[0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0])
        }
    };
    Verdict::when(
        is_body && (26..=48_000_000).contains(&length),
        Application::MongoDb,
    )
}

/// A command as an array of bulk strings (RESP, "Sending commands to a Redis server").
pub(super) fn redis(view: &View<'_>) -> Verdict {
    let Some(rest) = view.own.strip_prefix(b"*") else {
        return Verdict::No;
    };
    let count = digits(rest);
    let Some(rest) = rest.get(count..).filter(|_| (1..=4).contains(&count)) else {
        return Verdict::No;
    };
    let Some(rest) = rest.strip_prefix(b"\r\n$") else {
        return if b"\r\n$".starts_with(rest) {
            Verdict::More
        } else {
            Verdict::No
        };
    };
    let length = digits(rest);
    match rest.get(length..).unwrap_or_default() {
        [] | [b'\r'] if length <= 4 => Verdict::More,
        // The name of a command.
        [b'\r', b'\n', rest @ ..] if (1..=4).contains(&length) => Verdict::when(
            rest.first().is_none_or(u8::is_ascii_alphabetic),
            Application::Redis,
        ),
        _ => Verdict::No,
    }
}

/// A command of storage, or a request together with its answer (memcached's `protocol.txt`).
pub(super) fn memcached(view: &View<'_>) -> Verdict {
    let Some(line) = first_line(view.own).filter(|line| is_text(line)) else {
        return Verdict::No;
    };
    let mut words = line.split(|byte| *byte == b' ');
    let verb = words.next().unwrap_or_default();
    let is_its = match verb {
        // Key, flags, time, bytes.
        b"set" | b"add" | b"replace" | b"append" | b"prepend" | b"cas" => {
            let key = words.next().unwrap_or_default();
            let numbers = [words.next(), words.next(), words.next()];
            let is_number = |word: Option<&[u8]>| {
                word.is_some_and(|word| !word.is_empty() && digits(word) == word.len())
            };
            !key.is_empty() && numbers.into_iter().all(is_number)
        }
        b"get" | b"gets" => {
            words.next().is_some_and(|key| !key.is_empty())
                && (view.other.starts_with(b"VALUE ") || view.other == b"END\r\n")
        }
        b"stats" => view.other.starts_with(b"STAT "),
        b"version" => view.other.starts_with(b"VERSION "),
        _ => false,
    };
    Verdict::when(is_its, Application::Memcached)
}

/// STARTUP, or on its port OPTIONS, which has no body (CQL binary protocol v4, sections 2 and 4.1).
pub(super) fn cassandra(view: &View<'_>) -> Verdict {
    let own = view.own;
    let (Some(3..=5), Some(0..=0x10), Some(opcode), Some(length)) =
        (byte(own, 0), byte(own, 1), byte(own, 4), be32(own, 5))
    else {
        return Verdict::No;
    };
    let body = own.get(9..).unwrap_or_default();
    let is_its = match opcode {
        // A map of strings; its first is most often the version, in any case it has one.
        1 => {
            (22..=1024).contains(&length)
                && body
                    .windows(13)
                    .take(512)
                    .any(|window| window == b"\0\x0BCQL_VERSION")
        }
        5 => length == 0 && own.len() == 9 && view.has_port(9042),
        _ => false,
    };
    Verdict::when(is_its, Application::Cassandra)
}

/// PRELOGIN (MS-TDS sections 2.2.3.1 and 2.2.6.5): type 18, the last packet, its length; then the option of the
/// version, behind a list of options that ends at the place which it names.
pub(super) fn tds(view: &View<'_>) -> Verdict {
    let own = view.own;
    let (Some(0x12), Some(1), Some(length)) = (byte(own, 0), byte(own, 1), be16(own, 2)) else {
        return Verdict::No;
    };
    let (Some(window), Some(0), Some(offset), Some(size)) =
        (byte(own, 7), byte(own, 8), be16(own, 9), be16(own, 11))
    else {
        return Verdict::No;
    };
    let end = byte(own, 8 + usize::from(offset).saturating_sub(1));
    Verdict::when(
        window == 0 && size == 6 && offset % 5 == 1 && end == Some(0xFF) && length > offset,
        Application::Tds,
    )
}

/// CONNECT of Oracle Net: length, type 1, and the description of the connection, which is text in brackets
/// (Oracle Net Services Reference, "Local Naming Parameters").
pub(super) fn tns(view: &View<'_>) -> Verdict {
    let own = view.own;
    let (Some(length), Some(0), Some(1), Some(0)) =
        (be16(own, 0), be16(own, 2), byte(own, 4), byte(own, 5))
    else {
        return Verdict::No;
    };
    // Where the text is, and how long.
    let (Some(size), Some(at)) = (be16(own, 24), be16(own, 26)) else {
        return Verdict::No;
    };
    let text = own.get(usize::from(at)..).unwrap_or_default();
    let is_text = text.starts_with(b"(DESCRIPTION=") || text.starts_with(b"(CONNECT_DATA=");
    let fills = u32::from(at) + u32::from(size) == u32::from(length);
    // A long description follows in a packet of its own.
    Verdict::when(
        at >= 28 && (is_text && fills || size > 230 && at == length),
        Application::Tns,
    )
}

/// Hello of a client (ClickHouse's native protocol, "Client packets"): packet 0, the client's name, its length in front.
pub(super) fn clickhouse(view: &View<'_>) -> Verdict {
    let own = view.own;
    let name = own.get(2..).unwrap_or_default();
    let is_length = matches!((byte(own, 0), byte(own, 1)), (Some(0), Some(10..=127)));
    Verdict::when(
        is_length && name.starts_with(b"ClickHouse "),
        Application::ClickHouse,
    )
}

/// A login request (RFC 7143 section 11.12): opcode 3, immediate; its text names the initiator.
pub(super) fn iscsi(view: &View<'_>) -> Verdict {
    let own = view.own;
    let is_login = matches!(own, [0x43, _, 0, 0, 0, ..]);
    let text = own.get(48..).unwrap_or_default();
    let has_name = || {
        text.windows(14)
            .take(512)
            .any(|window| window == b"InitiatorName=")
    };
    Verdict::when(is_login && has_name(), Application::Iscsi)
}

/// The greeting of a server (NBD protocol, "Handshake phase").
pub(super) fn nbd(view: &View<'_>) -> Verdict {
    begins(view.own, b"NBDMAGICIHAVEOPT", Application::Nbd).or(|| {
        begins(
            view.own,
            b"NBDMAGIC\x00\x00\x42\x02\x81\x86\x12\x53",
            Application::Nbd,
        )
    })
}

/// The banner of both sides (Ceph messenger v1 and v2, "Banner").
pub(super) fn ceph(view: &View<'_>) -> Verdict {
    begins(view.own, b"ceph v027", Application::Ceph)
        .or(|| begins(view.own, b"ceph v2\n", Application::Ceph))
}
