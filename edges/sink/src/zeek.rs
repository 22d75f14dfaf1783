//! `zeek` and `zeek-json`: the log Zeek writes of the same subject, for `zeek-cut` and for what reads
//! Zeek's logs.
//!
//! Columns, their order and their types are the kind's [`RecordKind::zeek_columns`]: all that Zeek has,
//! of which those that we cannot tell are never set, and ours behind them. Both forms write the same
//! [`Cell`]s.
//!
//! Source: Zeek's ASCII log writer and its JSON formatter; `HTTP::Info` and `Conn::Info` in its
//! documentation.

use std::net::IpAddr;

use linkweir_record::{RecordKind, Short, Value};
use linkweir_wire::civil::date_time;

use crate::escape::{is_unprintable, push_digits, push_hex, push_hex_escaped};
use crate::format::Encoder;
use crate::jsonl::push_string;
use crate::number::{push_ip, push_seconds6, push_u64};

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
    /// A class of DNS, by Zeek's name for it.
    DnsClass,
    /// A version of TLS, by Zeek's name for it.
    TlsVersion,
    /// Several texts, joined by commas.
    Texts,
    /// Several numbers of seconds, joined by commas.
    Intervals,
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
                "qclass_name" => Shape::DnsClass,
                "version" if K::ZEEK_PATH == "ssl" => Shape::TlsVersion,
                "answers" => Shape::Texts,
                "TTLs" => Shape::Intervals,
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
    Short(Short),
    Texts(&'a [u8]),
    Intervals(&'a [u8]),
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
        (Value::Text(text), Shape::Texts) => Cell::Texts(text),
        (Value::Text(text), Shape::Intervals) => Cell::Intervals(text),
        (Value::Text(text), _) => Cell::Text(text),
        (Value::Short(short), _) => Cell::Short(short),
        (Value::Word(word), Shape::Service { protocol }) => service_of::<K>(view, word, protocol),
        (Value::Word(word), Shape::Protocol) => protocol(word),
        (Value::Word(word), Shape::DnsClass) => Cell::Word(dns_class(word)),
        (Value::Word(word), Shape::TlsVersion) => Cell::Word(tls_version(word)),
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

/// Zeek's name of a class.
fn dns_class(word: &'static str) -> &'static str {
    match word {
        "IN" => "C_INTERNET",
        "CH" => "C_CHAOS",
        "HS" => "C_HESIOD",
        "NONE" => "C_NONE",
        "ANY" => "C_ANY",
        _ => word,
    }
}

/// Zeek's name of a version.
fn tls_version(word: &'static str) -> &'static str {
    match word {
        "ssl2" => "SSLv2",
        "ssl3" => "SSLv3",
        "1.0" => "TLSv10",
        "1.1" => "TLSv11",
        "1.2" => "TLSv12",
        "1.3" => "TLSv13",
        _ => word,
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

/// `2026-11-21-02-17-48`, UTC.
pub(super) fn zeek_date(nanos: u64) -> String {
    let seconds = nanos / 1_000_000_000;
    let [year, month, day, hour, minute, second] = date_time(seconds.cast_signed());
    format!("{year:04}-{month:02}-{day:02}-{hour:02}-{minute:02}-{second:02}")
}

/// Writes Zeek's header and lines.
///
/// Times and intervals are seconds with six decimals. `-` is a value that is not there, `(empty)` an
/// empty one; text that is itself `-` or `(empty)`, and tabs, line feeds, backslashes and bytes outside
/// printable ASCII are `\xHH`; in a vector also commas.
#[derive(Debug)]
pub(crate) struct ZeekEncoder {
    /// What follows the time of `#open`.
    names_and_types: String,
    columns: Vec<Column>,
}

impl ZeekEncoder {
    pub(crate) fn new<K: RecordKind>(has_internal_networks: bool) -> Self {
        let list = |read: fn(&linkweir_record::ZeekColumn) -> &'static str| {
            K::zeek_columns()
                .iter()
                .map(|(_, column)| read(column))
                .collect::<Vec<_>>()
                .join("\t")
        };
        Self {
            names_and_types: format!(
                "\n#fields\t{}\n#types\t{}\n",
                list(|column| column.name),
                list(|column| column.kind),
            ),
            columns: columns::<K>(has_internal_networks),
        }
    }
}

#[inline]
const fn is_special(byte: u8) -> bool {
    is_unprintable(byte) | (byte == b'\\')
}

fn push_text(out: &mut Vec<u8>, bytes: &[u8], is_list: bool) {
    if matches!(bytes, b"-" | b"(empty)")
        && let Some((first, rest)) = bytes.split_first()
    {
        // Zeek escapes the first byte of text that would read as "unset" or "empty".
        push_hex(out, *first);
        out.extend_from_slice(rest);
        return;
    }
    if is_list {
        push_hex_escaped(out, bytes, |b| is_special(b) | (b == b','));
    } else {
        push_hex_escaped(out, bytes, is_special);
    }
}

/// Seconds with six decimals, as intervals are.
fn push_intervals(out: &mut Vec<u8>, joined: &[u8]) {
    for (at, seconds) in joined.split(|byte| *byte == b',').enumerate() {
        if at > 0 {
            out.push(b',');
        }
        out.extend_from_slice(seconds);
        out.extend_from_slice(b".000000");
    }
}

impl<K: RecordKind> Encoder<K> for ZeekEncoder {
    fn header(&self, now_ns: u64, out: &mut Vec<u8>) {
        out.extend_from_slice(
            b"#separator \\x09\n#set_separator\t,\n#empty_field\t(empty)\n#unset_field\t-\n#path\t",
        );
        out.extend_from_slice(K::ZEEK_PATH.as_bytes());
        out.extend_from_slice(b"\n#open\t");
        out.extend_from_slice(zeek_date(now_ns).as_bytes());
        out.extend_from_slice(self.names_and_types.as_bytes());
    }

    fn record(&mut self, view: &K::View<'_>, out: &mut Vec<u8>) {
        for (at, column) in self.columns.iter().enumerate() {
            if at > 0 {
                out.push(b'\t');
            }
            match cell::<K>(view, column) {
                Cell::Unset => out.push(b'-'),
                Cell::Number(number) => push_u64(out, number),
                Cell::Time(nanos) => push_seconds6(out, nanos),
                Cell::Bool(is_true) => out.push(if is_true { b'T' } else { b'F' }),
                Cell::Uid(number) => push_uid(out, number),
                Cell::Address(address) => push_ip(out, address),
                Cell::Text(b"") => out.extend_from_slice(b"(empty)"),
                Cell::Text(bytes) => push_text(out, bytes, column.is_list),
                Cell::Short(short) => push_text(out, short.as_bytes(), false),
                Cell::Texts(bytes) => push_text(out, bytes, false),
                Cell::Intervals(bytes) => push_intervals(out, bytes),
                Cell::Word(word) => out.extend_from_slice(word.as_bytes()),
                Cell::Bytes(bytes) => push_digits(out, bytes),
            }
        }
        out.push(b'\n');
    }

    fn footer(&self, now_ns: u64, out: &mut Vec<u8>) {
        out.extend_from_slice(format!("#close\t{}\n", zeek_date(now_ns)).as_bytes());
    }
}

/// Writes objects; no header, no footer.
///
/// Keys are Zeek's (`"id.orig_h"`, flat); what is not there has no key. Times are seconds since 1970 and
/// intervals seconds, as numbers with six decimals; vectors and sets are arrays. Text that is not UTF-8 is
/// written by the rule of `jsonl`, which is Zeek's too.
#[derive(Debug)]
pub(crate) struct ZeekJsonEncoder {
    columns: Vec<Column>,
}

impl ZeekJsonEncoder {
    pub(crate) fn new<K: RecordKind>(has_internal_networks: bool) -> Self {
        Self {
            columns: columns::<K>(has_internal_networks),
        }
    }
}

impl<K: RecordKind> Encoder<K> for ZeekJsonEncoder {
    fn record(&mut self, view: &K::View<'_>, out: &mut Vec<u8>) {
        let mut lead = b'{';
        for column in &self.columns {
            let cell = cell::<K>(view, column);
            if cell == Cell::Unset {
                continue;
            }
            out.extend_from_slice(&[lead, b'"']);
            lead = b',';
            out.extend_from_slice(column.name.as_bytes());
            out.extend_from_slice(b"\":");
            if column.is_list {
                out.push(b'[');
            }
            push_cell(out, cell);
            if column.is_list {
                out.push(b']');
            }
        }
        out.extend_from_slice(if lead == b'{' { b"{}\n" } else { b"}\n" });
    }
}

fn push_cell(out: &mut Vec<u8>, cell: Cell<'_>) {
    let quoted = |out: &mut Vec<u8>, push: &dyn Fn(&mut Vec<u8>)| {
        out.push(b'"');
        push(out);
        out.push(b'"');
    };
    match cell {
        Cell::Unset => out.extend_from_slice(b"null"),
        Cell::Number(number) => push_u64(out, number),
        Cell::Time(nanos) => push_seconds6(out, nanos),
        Cell::Bool(is_true) => out.extend_from_slice(if is_true { b"true" } else { b"false" }),
        Cell::Uid(number) => quoted(out, &|out| push_uid(out, number)),
        Cell::Address(address) => quoted(out, &|out| push_ip(out, address)),
        Cell::Text(bytes) => push_string(out, bytes),
        Cell::Short(short) => push_string(out, short.as_bytes()),
        Cell::Texts(bytes) => {
            for (at, text) in bytes.split(|byte| *byte == b',').enumerate() {
                if at > 0 {
                    out.push(b',');
                }
                push_string(out, text);
            }
        }
        Cell::Intervals(bytes) => push_intervals(out, bytes),
        Cell::Word(word) => push_string(out, word.as_bytes()),
        Cell::Bytes(bytes) => quoted(out, &|out| push_digits(out, bytes)),
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
        assert_eq!((dns_class("IN"), dns_class("7")), ("C_INTERNET", "7"));
        assert_eq!(tls_version("1.3"), "TLSv13");
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

    #[test]
    fn dates() {
        assert_eq!(zeek_date(0), "1970-01-01-00-00-00");
        assert_eq!(zeek_date(951_782_400_000_000_000), "2000-02-29-00-00-00");
        assert_eq!(zeek_date(1_700_000_000_999_999_999), "2023-11-14-22-13-20");
        assert_eq!(zeek_date(u64::MAX), "2554-07-21-23-34-33");
    }

    #[test]
    fn text_that_looks_like_nothing() {
        let made = |text: &[u8], is_list| {
            let mut out = Vec::new();
            push_text(&mut out, text, is_list);
            String::from_utf8(out).unwrap()
        };
        assert_eq!(made(b"-", false), "\\x2d");
        assert_eq!(made(b"(empty)", false), "\\x28empty)");
        assert_eq!(made(b"a\tb\\\xff,", false), "a\\x09b\\x5c\\xff,");
        assert_eq!(made(b"a,b", true), "a\\x2cb");
        assert_eq!(made(b"--", false), "--");
    }
}
