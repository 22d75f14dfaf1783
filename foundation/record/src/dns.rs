//! `dns_query`: one record per query of DNS and its response.

use std::net::{IpAddr, Ipv6Addr};

use crate::flow::Protocol;
use crate::http::HttpState;
use crate::line::{Cell, ENDS, LineCell};
use crate::remembered;
use crate::rows::Rows;
use crate::schema::{
    Endpoint, Field, RecordBatch, RecordKind, Value, ZeekColumn, columns, opt, text,
};

/// The numbers of a query and its response (RFC 1035 sec. 4.1.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DnsQueryRow {
    /// Address and port of who asked.
    pub client: Endpoint,
    /// Address and port of who answered, or should have.
    pub server: Endpoint,
    /// What it went over.
    pub protocol: Protocol,
    /// When the query was seen, nanoseconds since the epoch.
    pub query_ts_ns: Option<u64>,
    /// When the response was seen, nanoseconds since the epoch.
    pub response_ts_ns: Option<u64>,
    /// What became of it.
    pub state: HttpState,
    /// What query and response have in common.
    pub id: u16,
    /// Type and class of the question, where there was one.
    pub question: Option<(u16, u16)>,
    /// The word of flags in the header of the response, of the query where there is none.
    pub flags: u16,
    /// Entries in the question and answer sections of the response.
    pub counts: Option<[u16; 2]>,
    /// Times that the query was sent again before its response.
    pub retransmissions: u16,
    /// Bytes of the response.
    pub response_bytes: Option<u32>,
    /// The flow's, as in its record.
    pub flow_id: u64,
}

impl Default for DnsQueryRow {
    fn default() -> Self {
        let nobody = (IpAddr::V6(Ipv6Addr::UNSPECIFIED), 0);
        Self {
            client: nobody,
            server: nobody,
            protocol: Protocol::Udp,
            query_ts_ns: None,
            response_ts_ns: None,
            state: HttpState::Complete,
            id: 0,
            question: None,
            flags: 0,
            counts: None,
            retransmissions: 0,
            response_bytes: None,
            flow_id: 0,
        }
    }
}

impl DnsQueryRow {
    /// Nanoseconds from the first query to the response; zero where the capture saw them the other way round.
    #[must_use]
    pub fn response_time_ns(&self) -> Option<u64> {
        Some(self.response_ts_ns?.saturating_sub(self.query_ts_ns?))
    }

    /// How the response came out (RCODE).
    #[must_use]
    pub fn response_code(&self) -> Option<u16> {
        self.response_ts_ns.map(|_| self.flags & 0xF)
    }

    /// A flag of the header, by its place in the word.
    const fn flag(&self, place: u16) -> Value<'static> {
        Value::U64((self.flags >> place & 1) as u64)
    }

    /// Whether the server did not even repeat the question.
    fn is_rejected(&self) -> bool {
        self.response_code().is_some_and(|code| code != 0)
            && self.counts.is_some_and(|[questions, _]| questions == 0)
    }
}

/// The texts of a query: the name asked for, and of the records of the answer section what they say and how many
/// seconds they may be kept, each joined by commas.
pub type DnsTexts<'a> = [&'a [u8]; 3];

/// One query, borrowed from its batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DnsQuery<'a> {
    /// Its numbers.
    pub row: &'a DnsQueryRow,
    /// Its texts.
    pub texts: DnsTexts<'a>,
}

impl<'a> DnsQuery<'a> {
    const fn text(&self, at: usize) -> &'a [u8] {
        let [name, answers, ttls] = self.texts;
        match at {
            0 => name,
            1 => answers,
            _ => ttls,
        }
    }
}

/// Queries in the order in which they ended.
#[derive(Debug, Clone, Default)]
pub struct DnsBatch(Rows<DnsQueryRow, 3>);

impl DnsBatch {
    /// Appends a query.
    pub fn push(&mut self, row: DnsQueryRow, texts: DnsTexts<'_>) {
        self.0.push(row, texts);
    }
}

impl RecordBatch<DnsKind> for DnsBatch {
    #[inline]
    fn len(&self) -> usize {
        self.0.len()
    }

    #[inline]
    fn get(&self, at: usize) -> Option<DnsQuery<'_>> {
        let (row, texts) = self.0.get(at)?;
        Some(DnsQuery { row, texts })
    }

    fn clear(&mut self) {
        self.0.clear();
    }

    fn push_view(&mut self, view: &DnsQuery<'_>) {
        self.push(*view.row, view.texts);
    }

    fn memory_bytes(&self) -> usize {
        self.0.memory_bytes()
    }
}

/// The kind `dns_query`.
#[derive(Debug, Clone, Copy)]
pub struct DnsKind;

/// A type of records or questions by its mnemonic (IANA registry "Resource Record (RR) TYPEs").
#[must_use]
pub const fn type_name(kind: u16) -> Option<&'static str> {
    Some(match kind {
        1 => "A",
        2 => "NS",
        5 => "CNAME",
        6 => "SOA",
        10 => "NULL",
        12 => "PTR",
        13 => "HINFO",
        15 => "MX",
        16 => "TXT",
        17 => "RP",
        24 => "SIG",
        25 => "KEY",
        28 => "AAAA",
        29 => "LOC",
        32 => "NB",
        33 => "SRV",
        35 => "NAPTR",
        36 => "KX",
        37 => "CERT",
        39 => "DNAME",
        41 => "OPT",
        42 => "APL",
        43 => "DS",
        44 => "SSHFP",
        45 => "IPSECKEY",
        46 => "RRSIG",
        47 => "NSEC",
        48 => "DNSKEY",
        49 => "DHCID",
        50 => "NSEC3",
        51 => "NSEC3PARAM",
        52 => "TLSA",
        53 => "SMIMEA",
        59 => "CDS",
        60 => "CDNSKEY",
        61 => "OPENPGPKEY",
        62 => "CSYNC",
        63 => "ZONEMD",
        64 => "SVCB",
        65 => "HTTPS",
        99 => "SPF",
        249 => "TKEY",
        250 => "TSIG",
        251 => "IXFR",
        252 => "AXFR",
        255 => "ANY",
        256 => "URI",
        257 => "CAA",
        32768 => "TA",
        32769 => "DLV",
        _ => return None,
    })
}

/// A class by its mnemonic (IANA registry "DNS CLASSes").
#[must_use]
pub const fn class_name(class: u16) -> Option<&'static str> {
    Some(match class {
        1 => "IN",
        3 => "CH",
        4 => "HS",
        254 => "NONE",
        255 => "ANY",
        _ => return None,
    })
}

/// A response code by its name (IANA registry "DNS RCODEs").
#[must_use]
pub const fn code_name(code: u16) -> Option<&'static str> {
    Some(match code {
        0 => "NOERROR",
        1 => "FORMERR",
        2 => "SERVFAIL",
        3 => "NXDOMAIN",
        4 => "NOTIMP",
        5 => "REFUSED",
        6 => "YXDOMAIN",
        7 => "YXRRSET",
        8 => "NXRRSET",
        9 => "NOTAUTH",
        10 => "NOTZONE",
        11 => "DSOTYPENI",
        _ => return None,
    })
}

fn word(name: Option<&'static str>) -> Value<'static> {
    name.map_or(Value::Null, Value::Word)
}

/// The highest bit is not part of a class in multicast DNS (RFC 6762 sec. 5.4).
const CLASS: u16 = 0x7FFF;

columns!(FIELDS, read_column, v: DnsQuery, {
    query_ts_ns: TimeNs, "ns since 1970", None, "First packet of the query; empty for an orphan." => v.row.query_ts_ns.map_or(Value::Null, Value::TimeNs);
    response_ts_ns: TimeNs, "ns since 1970", None, "Packet of the response; empty for an unanswered query." => v.row.response_ts_ns.map_or(Value::Null, Value::TimeNs);
    response_time_ns: SpanNs, "ns", None, "From the first packet of the query to the response." => v.row.response_time_ns().map_or(Value::Null, Value::SpanNs);
    client_ip: Ip, "", Some(8), "Address that sent the query." => Value::Ip(v.row.client.0);
    client_port: Port, "", Some(7), "Port that sent the query." => Value::Port(v.row.client.1);
    server_ip: Ip, "", Some(12), "Address that the query was sent to." => Value::Ip(v.row.server.0);
    server_port: Port, "", Some(11), "Port that the query was sent to." => Value::Port(v.row.server.1);
    protocol: Word, "", Some(4), "udp or tcp." => Value::Word(v.row.protocol.as_str());
    state: Word, "", None, "complete, unanswered or orphan." => Value::Word(v.row.state.as_str());
    id: U16, "", None, "Identifier that query and response have in common." => Value::U64(u64::from(v.row.id));
    query: Text, "", None, "Name asked for, in lower case." => text(v.text(0));
    qtype: U16, "", None, "Type asked for." => opt(v.row.question.map(|(kind, _)| u64::from(kind)));
    qtype_name: Word, "", None, "Type asked for, by its mnemonic; empty where IANA has none." => word(v.row.question.and_then(|(kind, _)| type_name(kind)));
    qclass: U16, "", None, "Class asked for." => opt(v.row.question.map(|(_, class)| u64::from(class & CLASS)));
    qclass_name: Word, "", None, "Class asked for, by its mnemonic." => word(v.row.question.and_then(|(_, class)| class_name(class & CLASS)));
    opcode: U16, "", None, "Kind of query: 0 is a standard one." => Value::U64(u64::from(v.row.flags >> 11 & 0xF));
    rcode: U16, "", None, "Response code; empty without a response." => opt(v.row.response_code().map(u64::from));
    rcode_name: Word, "", None, "Response code by its name, for example NXDOMAIN." => word(v.row.response_code().and_then(code_name));
    aa: U16, "", None, "1 where the answer is authoritative." => v.row.flag(10);
    tc: U16, "", None, "1 where the message is truncated." => v.row.flag(9);
    rd: U16, "", None, "1 where recursion is desired." => v.row.flag(8);
    ra: U16, "", None, "1 where recursion is available." => v.row.flag(7);
    z: U16, "", None, "The three bits behind these: reserved, authentic data, checking disabled." => Value::U64(u64::from(v.row.flags >> 4 & 7));
    answer_count: U16, "", None, "Records in the answer section, as the header has them." => opt(v.row.counts.map(|[_, answers]| u64::from(answers)));
    answers: Text, "", None, "What the records of the answer section say, joined by commas (inside, a comma is \\x2c and a backslash \\x5c): addresses, names, texts; of other types the mnemonic." => text(v.text(1));
    ttls: Text, "s", None, "How long the records of the answer section may be kept, joined by commas." => text(v.text(2));
    rejected: U16, "", None, "1 where the response has a code and no question." => Value::U64(u64::from(v.row.is_rejected()));
    retransmissions: U16, "", None, "Times that the query was sent again before its response." => Value::U64(u64::from(v.row.retransmissions));
    response_bytes: U32, "bytes", None, "Length of the response." => opt(v.row.response_bytes.map(u64::from));
    flow_id: U64, "", Some(148), "Names the flow, as in its record." => Value::U64(v.row.flow_id);
    community_id: Text, "", None, "Community ID (version 1, seed 0): the name that other monitors give the flow too." => remembered::community_id(v.row.protocol, [v.row.client, v.row.server]);
    uid: Text, "", None, "Name of the connection by its addresses, ports and protocol, for joins with other records; later connections of the same ports have the same." => remembered::uid_of(v.row.protocol, [v.row.client, v.row.server]);
});

impl RecordKind for DnsKind {
    type View<'a> = DnsQuery<'a>;
    type Batch = DnsBatch;
    const NAME: &'static str = "dns_query";
    const VERSION: u16 = 2;
    const ZEEK_PATH: &'static str = "dns";

    fn fields() -> &'static [Field] {
        FIELDS
    }

    #[inline]
    fn value<'a>(view: &DnsQuery<'a>, column: usize) -> Value<'a>
    where
        'a: 'a,
    {
        read_column(view, column)
    }

    fn text_line() -> &'static [&'static str] {
        &[
            "client_ip",
            "client_port",
            "server_ip",
            "server_port",
            "protocol",
            "query_ts_ns",
            "response_time_ns",
            "qtype_name",
            "query",
            "rcode_name",
            "answers",
        ]
    }

    fn line() -> &'static [LineCell] {
        const CELLS: &[LineCell] = &[
            LineCell::new("time", 12, Cell::Moment(&["query_ts_ns"])),
            ENDS,
            LineCell::new("response", 8, Cell::Span("response_time_ns")),
            LineCell::optional("", 10, Cell::Bar("response_time_ns")),
            LineCell::new(
                "code",
                8,
                Cell::Outcome {
                    of: &["rcode_name", "state"],
                    good: &["NOERROR", "complete"],
                },
            ),
            LineCell::new("type", 5, Cell::First(&["qtype_name"])),
            LineCell::new("query", 20, Cell::Texts(&["query", "answers"], " ")),
        ];
        CELLS
    }

    fn zeek_columns() -> &'static [(&'static str, ZeekColumn)] {
        const fn column(name: &'static str, kind: &'static str) -> ZeekColumn {
            ZeekColumn { name, kind }
        }
        const COLUMNS: &[(&str, ZeekColumn)] = &[
            ("query_ts_ns", column("ts", "time")),
            ("uid", column("uid", "string")),
            ("client_ip", column("id.orig_h", "addr")),
            ("client_port", column("id.orig_p", "port")),
            ("server_ip", column("id.resp_h", "addr")),
            ("server_port", column("id.resp_p", "port")),
            ("protocol", column("proto", "enum")),
            ("id", column("trans_id", "count")),
            ("response_time_ns", column("rtt", "interval")),
            ("query", column("query", "string")),
            ("qclass", column("qclass", "count")),
            ("qclass_name", column("qclass_name", "string")),
            ("qtype", column("qtype", "count")),
            ("qtype_name", column("qtype_name", "string")),
            ("rcode", column("rcode", "count")),
            ("rcode_name", column("rcode_name", "string")),
            ("aa", column("AA", "bool")),
            ("tc", column("TC", "bool")),
            ("rd", column("RD", "bool")),
            ("ra", column("RA", "bool")),
            ("z", column("Z", "count")),
            ("answers", column("answers", "vector[string]")),
            ("ttls", column("TTLs", "vector[interval]")),
            ("rejected", column("rejected", "bool")),
            // Ours, behind Zeek's.
            ("state", column("state", "string")),
            ("retransmissions", column("retransmissions", "count")),
            ("flow_id", column("flow_id", "count")),
            ("community_id", column("community_id", "string")),
        ];
        COLUMNS
    }

    fn time_ns(view: &DnsQuery<'_>) -> u64 {
        let times = view.row.query_ts_ns.or(view.row.response_ts_ns);
        times.unwrap_or_default()
    }

    #[inline]
    fn endpoints(view: &DnsQuery<'_>) -> [Endpoint; 2] {
        [view.row.client, view.row.server]
    }

    /// Several of one flow may begin at the same time.
    #[inline]
    fn subject(view: &DnsQuery<'_>) -> u64 {
        Self::time_ns(view) ^ u64::from(view.row.id).rotate_left(40)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_is_a_column() {
        let names: Vec<_> = FIELDS.iter().map(|field| field.name).collect();
        for name in DnsKind::text_line() {
            assert!(names.contains(name), "{name}");
        }
        for (name, _) in DnsKind::zeek_columns() {
            assert!(names.contains(name), "{name}");
        }
    }

    #[test]
    fn a_response_says_its_code_and_flags() {
        let mut batch = DnsBatch::default();
        let row = DnsQueryRow {
            query_ts_ns: Some(1_000),
            response_ts_ns: Some(3_500),
            question: Some((28, 0x8001)),
            flags: 0x8583,
            counts: Some([0, 0]),
            ..DnsQueryRow::default()
        };
        batch.push(row, [b"a.example", b"", b""]);
        let view = batch.get(0).unwrap();
        let value = |name: &str| DnsKind::value(&view, DnsKind::column(name).unwrap());
        assert_eq!(value("response_time_ns"), Value::SpanNs(2_500));
        assert_eq!(value("qtype_name"), Value::Word("AAAA"));
        assert_eq!(value("qclass_name"), Value::Word("IN"));
        assert_eq!(value("rcode_name"), Value::Word("NXDOMAIN"));
        let flags = ["aa", "tc", "rd", "ra", "z", "rejected"].map(value);
        assert_eq!(flags, [1, 0, 1, 1, 0, 1].map(Value::U64));
        assert_eq!(value("query"), Value::Text(b"a.example"));
        assert_eq!(value("answers"), Value::Null);
    }

    #[test]
    fn without_a_response_there_is_no_code() {
        let row = DnsQueryRow {
            query_ts_ns: Some(1),
            state: HttpState::Unanswered,
            flags: 0x0100,
            ..DnsQueryRow::default()
        };
        assert_eq!((row.response_code(), row.response_time_ns()), (None, None));
        assert!(!row.is_rejected());
    }
}
