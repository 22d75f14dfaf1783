//! `zeek` and `zeek-json`: the log Zeek writes of the same subject, for `zeek-cut` and for what reads
//! Zeek's logs.
//!
//! Columns, their order and their types are the kind's [`RecordKind::zeek_columns`]: all that Zeek has,
//! of which those that we cannot tell are never set, and ours behind them. Both forms write the same
//! [`Cell`]s.
//!
//! Source: Zeek's ASCII log writer and its JSON formatter; `HTTP::Info` and `Conn::Info` in its
//! documentation.

mod date;
mod json;
mod tsv;

use std::net::IpAddr;

use linkweir_record::{RecordKind, Value};

pub(crate) use json::ZeekJsonEncoder;
pub(crate) use tsv::ZeekEncoder;

/// How a column is made from a value, beyond the value's type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Shape {
    Plain,
    /// The moment of the record, which Zeek never leaves unset.
    Moment,
    Uid,
    /// 1 and 0 are true and false.
    Bool,
    /// An application by Zeek's name for it; what is not recognised is not there. With the field that
    /// says over what it goes, where there is one.
    Service {
        protocol: Option<usize>,
    },
    /// A media type without its parameters, as Zeek has it.
    MimeType,
    /// The number of a protocol.
    Protocol,
}

/// One column: where its value comes from, and what becomes of it.
#[derive(Debug, Clone, Copy)]
struct Column {
    name: &'static str,
    /// Nothing for what we cannot tell.
    field: Option<usize>,
    shape: Shape,
    /// Whether Zeek has several values there.
    is_list: bool,
}

/// The columns of a kind; what is local is unset unless `has_internal_networks`.
fn columns<K: RecordKind>(has_internal_networks: bool) -> Vec<Column> {
    let columns = K::zeek_columns().iter();
    let is_told = |name| has_internal_networks || !matches!(name, "local_orig" | "local_resp");
    columns
        .map(|(field, column)| Column {
            name: column.name,
            field: K::column(field).filter(|_| is_told(column.name)),
            shape: match column.name {
                "ts" => Shape::Moment,
                "uid" => Shape::Uid,
                "service" => Shape::Service {
                    protocol: K::column("protocol"),
                },
                "resp_mime_types" => Shape::MimeType,
                "ip_proto" => Shape::Protocol,
                _ if column.kind == "bool" => Shape::Bool,
                _ => Shape::Plain,
            },
            is_list: column.kind.starts_with("vector[") || column.kind.starts_with("set["),
        })
        .collect()
}

/// What stands in a column of a record.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Cell<'a> {
    Unset,
    Number(u64),
    /// Nanoseconds: a moment since the epoch, or a span.
    Time(u64),
    Bool(bool),
    Uid(u64),
    Address(IpAddr),
    Text(&'a [u8]),
    Word(&'static str),
    Bytes(&'a [u8]),
}

/// Reads a column.
#[inline]
fn cell<'a, K: RecordKind>(view: &K::View<'a>, column: &Column) -> Cell<'a>
where
    'a: 'a,
{
    let value = column.field.map_or(Value::Null, |at| K::value(view, at));
    match (value, column.shape) {
        (Value::Null, Shape::Moment) => Cell::Time(K::time_ns(view)),
        (Value::Null, _) => Cell::Unset,
        (Value::U64(number), Shape::Uid) => Cell::Uid(number),
        (Value::U64(number), Shape::Bool) => Cell::Bool(number != 0),
        (Value::U64(number), _) => Cell::Number(number),
        (Value::TimeNs(time) | Value::SpanNs(time) | Value::Millis(time), _) => Cell::Time(time),
        (Value::Ip(address), _) => Cell::Address(address),
        (Value::Port(port), _) => Cell::Number(u64::from(port)),
        (Value::Text(text), Shape::MimeType) => media_type(text),
        (Value::Text(text), _) => Cell::Text(text),
        (Value::Word(word), Shape::Service { protocol }) => service_of::<K>(view, word, protocol),
        (Value::Word(word), Shape::Protocol) => protocol(word),
        (Value::Word(word), _) => Cell::Word(word),
        (Value::Bytes(bytes), _) => Cell::Bytes(bytes),
    }
}

/// The type in front of the parameters of a `Content-Type` field.
fn media_type(field: &[u8]) -> Cell<'_> {
    let kind = field.split(|byte| *byte == b';').next().unwrap_or_default();
    match kind.trim_ascii() {
        [] => Cell::Unset,
        kind => Cell::Text(kind),
    }
}

/// Out of line: a column of many, and [`cell`] is made for all.
#[inline(never)]
fn service_of<K: RecordKind>(
    view: &K::View<'_>,
    word: &'static str,
    protocol: Option<usize>,
) -> Cell<'static> {
    let protocol = protocol.map(|at| K::value(view, at));
    let [(_, one), (_, other)] = K::endpoints(view);
    service(word, protocol == Some(Value::Word("udp")), [one, other])
}

/// Port of NetBIOS names (RFC 1002 sec. 4.2).
const NETBIOS_NAMES: u16 = 137;

/// Zeek's name of an application: that of the analyzer which confirms it, in lower case. Where Zeek has
/// none, it is ours.
///
/// Source: `ANALYZER_*` of its `Analyzer::Tag`, and the ports of which it registers them: those of its
/// DNS analyzer are also the ports of multicast DNS, LLMNR and NetBIOS names.
fn service(word: &'static str, is_udp: bool, ports: [u16; 2]) -> Cell<'static> {
    Cell::Word(match word {
        "unknown" => return Cell::Unset,
        "tls" => "ssl",
        "vnc" => "rfb",
        "mdns" | "llmnr" => "dns",
        "netbios" if is_udp && ports.contains(&NETBIOS_NAMES) => "dns",
        "ldap" if is_udp => "ldap_udp",
        "ldap" => "ldap_tcp",
        "kerberos" if is_udp => "krb",
        "kerberos" => "krb_tcp",
        _ => word,
    })
}

/// The number IANA gave a protocol.
fn protocol(word: &str) -> Cell<'static> {
    match word {
        "tcp" => Cell::Number(6),
        "udp" => Cell::Number(17),
        _ => Cell::Unset,
    }
}

/// A `C` and the number in base 62: stable for what the number names.
fn push_uid(out: &mut Vec<u8>, mut number: u64) {
    const DIGITS: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
    out.push(b'C');
    loop {
        let digit = usize::try_from(number % 62).unwrap_or(0);
        out.push(DIGITS.get(digit).copied().unwrap_or(b'0'));
        number /= 62;
        if number == 0 {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use linkweir_record::{FlowKind, HttpKind};

    #[test]
    fn uids_differ() {
        let made = |n| {
            let mut out = Vec::new();
            push_uid(&mut out, n);
            String::from_utf8(out).unwrap()
        };
        assert_eq!(made(0), "C0");
        assert_eq!(made(61), "Cz");
        assert_eq!(made(62), "C01");
        assert_ne!(made(u64::from(u32::MAX)), made(u64::from(u32::MAX) - 1));
    }

    /// Analyzers have the names of Zeek's own; of those that are two, the transport decides.
    #[test]
    fn services_have_the_names_of_zeek_s_analyzers() {
        use linkweir_record::flow::{FlowText, Protocol};
        use linkweir_record::{FlowBatch, FlowRow, RecordBatch};

        let columns = columns::<FlowKind>(true);
        let column = columns.iter().find(|column| column.name == "service");
        let written = |application, protocol, port| {
            let mut flows = FlowBatch::default();
            let mut row = FlowRow {
                application,
                protocol,
                ..FlowRow::default()
            };
            row.server.port = port;
            flows.push(row, &FlowText::default());
            match cell::<FlowKind>(&flows.get(0).unwrap(), column.unwrap()) {
                Cell::Word(word) => word,
                other => panic!("{other:?}"),
            }
        };
        assert_eq!(written("netbios", Protocol::Udp, 137), "dns");
        assert_eq!(written("netbios", Protocol::Udp, 138), "netbios");
        for (application, tcp, udp) in [
            ("ldap", "ldap_tcp", "ldap_udp"),
            ("kerberos", "krb_tcp", "krb"),
            ("tls", "ssl", "ssl"),
            ("vnc", "rfb", "rfb"),
            ("dns", "dns", "dns"),
            ("mdns", "dns", "dns"),
            ("llmnr", "dns", "dns"),
            // Zeek has no analyzer of these.
            ("edonkey", "edonkey", "edonkey"),
            // Of several, as Zeek joins them.
            ("stun,dtls", "stun,dtls", "stun,dtls"),
        ] {
            assert_eq!(written(application, Protocol::Tcp, 9), tcp);
            assert_eq!(written(application, Protocol::Udp, 9), udp);
        }
    }

    #[test]
    fn words_as_zeek_has_them() {
        let service = |word| service(word, false, [40_000, 443]);
        assert_eq!(service("tls"), Cell::Word("ssl"));
        assert_eq!(service("dns"), Cell::Word("dns"));
        assert_eq!(service("unknown"), Cell::Unset);
        assert_eq!(
            media_type(b"text/html; charset=utf-8"),
            Cell::Text(b"text/html")
        );
        assert_eq!(media_type(b" ; x"), Cell::Unset);
        assert_eq!(protocol("udp"), Cell::Number(17));
    }

    /// The columns of Zeek 8, in its order, before any of ours.
    #[test]
    fn zeek_s_columns_come_first_and_in_its_order() {
        let http = "ts uid id.orig_h id.orig_p id.resp_h id.resp_p trans_depth method host uri referrer \
                    version user_agent origin request_body_len response_body_len status_code status_msg \
                    info_code info_msg tags username password proxied orig_fuids orig_filenames \
                    orig_mime_types resp_fuids resp_filenames resp_mime_types";
        let http_types = "time string addr port addr port count string string string string string string \
                          string count count count string count string set[enum] string string \
                          set[string] vector[string] vector[string] vector[string] vector[string] \
                          vector[string] vector[string]";
        let conn = "ts uid id.orig_h id.orig_p id.resp_h id.resp_p proto service duration orig_bytes \
                    resp_bytes conn_state local_orig local_resp missed_bytes history orig_pkts \
                    orig_ip_bytes resp_pkts resp_ip_bytes tunnel_parents ip_proto";
        let conn_types = "time string addr port addr port enum string interval count count string bool bool \
                          count string count count count count set[string] count";
        let check = |columns: &[(&str, linkweir_record::ZeekColumn)], names: &str, types: &str| {
            let wanted = names.split_whitespace().zip(types.split_whitespace());
            let ours = columns.iter().map(|(_, column)| (column.name, column.kind));
            let ours: Vec<_> = ours.collect();
            let zeek: Vec<_> = wanted.collect();
            assert_eq!(ours.get(..zeek.len()), Some(zeek.as_slice()));
            let mut sorted: Vec<_> = ours.iter().map(|(name, _)| name).collect();
            sorted.sort_unstable();
            sorted.dedup();
            assert_eq!(sorted.len(), ours.len(), "a name stands twice");
        };
        check(HttpKind::zeek_columns(), http, http_types);
        check(FlowKind::zeek_columns(), conn, conn_types);
    }
}
