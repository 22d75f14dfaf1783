//! `http_transaction`: one record per HTTP transaction.
//!
//! Source: the record of `HTTPanalyzer` (Vega et al. 2017, sec. 2.1.1), and what its users asked for.

mod row;

pub use row::{HttpRow, HttpState};

use crate::flow::Protocol;
use crate::header::{self, HeaderNames, Slot};
use crate::line::{Cell, ENDS, LineCell};
use crate::place::Place;
use crate::remembered;
use crate::schema::{
    Endpoint, Field, RecordBatch, RecordKind, Value, ZeekColumn, columns, opt, text,
};
use crate::web::{Events, Grpc, Source, Web, WebAt, WebRow};

/// The texts of a transaction; empty where unknown. Bytes as they came from the network.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Text<'a> {
    /// Request method.
    pub method: &'a [u8],
    /// Request target as sent (`uri`).
    pub uri: &'a [u8],
    /// `Host` field, or the authority of an absolute-form target.
    pub host: &'a [u8],
    /// `User-Agent` field.
    pub user_agent: &'a [u8],
    /// Reason phrase of the final response.
    pub reason_phrase: &'a [u8],
    /// `Content-Type` field of the final response.
    pub content_type: &'a [u8],
}

/// One transaction, borrowed from its batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HttpTransaction<'a> {
    /// Its numbers.
    pub row: &'a HttpRow,
    /// Its texts.
    pub text: Text<'a>,
    /// What only HTTP/2 and TLS have, where it is of one: see [`HttpTransaction::web`].
    web: Option<WebAt<'a>>,
}

/// End offsets of the six texts of a row in the batch's arena, and where the first starts; the number of its
/// [`WebRow`] plus one, or zero.
#[derive(Debug, Clone, Copy, Default)]
struct Span {
    start: u32,
    ends: [u32; 6],
    web: u32,
}

/// Transactions in the order they were finished.
#[derive(Debug, Clone, Default)]
pub struct HttpBatch {
    rows: Vec<HttpRow>,
    spans: Vec<Span>,
    webs: Vec<WebRow>,
    arena: Vec<u8>,
}

impl HttpBatch {
    /// Appends a transaction.
    ///
    /// A batch holds 4 GiB of text; what does not fit is recorded with empty text.
    #[inline]
    pub fn push(&mut self, row: HttpRow, text: &Text<'_>) {
        let start = u32::try_from(self.arena.len()).unwrap_or(u32::MAX);
        let mut ends = [start; 6];
        let parts = [
            text.method,
            text.uri,
            text.host,
            text.user_agent,
            text.reason_phrase,
            text.content_type,
        ];
        for (end, part) in ends.iter_mut().zip(parts) {
            self.arena.extend_from_slice(part);
            *end = u32::try_from(self.arena.len()).unwrap_or(start);
        }
        self.rows.push(row);
        self.spans.push(Span {
            start,
            ends,
            web: 0,
        });
    }

    /// Appends a transaction of HTTP/2 or of TLS; as [`HttpBatch::push`].
    pub fn push_web(&mut self, row: HttpRow, text: &Text<'_>, web: &Web<'_>) {
        self.push(row, text);
        let Some(span) = self.spans.last_mut() else {
            return;
        };
        let start = span.ends[5];
        let mut ends = [start; 4];
        let [request, response] = web.fields;
        for (end, part) in ends.iter_mut().zip([web.sni, web.alpn, request, response]) {
            self.arena.extend_from_slice(part);
            *end = u32::try_from(self.arena.len()).unwrap_or(start);
        }
        let web = Web {
            sni: &[],
            alpn: &[],
            fields: [&[]; 2],
            ..*web
        };
        self.webs.push(WebRow { web, start, ends });
        span.web = u32::try_from(self.webs.len()).unwrap_or_default();
    }
}

impl RecordBatch<HttpKind> for HttpBatch {
    #[inline]
    fn len(&self) -> usize {
        self.rows.len()
    }

    #[inline]
    fn get(&self, at: usize) -> Option<HttpTransaction<'_>> {
        let row = self.rows.get(at)?;
        let span = self.spans.get(at)?;
        let mut from = span.start as usize;
        let mut next = |end: u32| {
            let part = self.arena.get(from..end as usize).unwrap_or_default();
            from = end as usize;
            part
        };
        let [a, b, c, d, e, f] = span.ends;
        let web = match span.web {
            0 => None,
            number => self.webs.get(number as usize - 1).map(|row| WebAt {
                row,
                arena: &self.arena,
            }),
        };
        let text = Text {
            method: next(a),
            uri: next(b),
            host: next(c),
            user_agent: next(d),
            reason_phrase: next(e),
            content_type: next(f),
        };
        Some(HttpTransaction { row, text, web })
    }

    fn clear(&mut self) {
        self.rows.clear();
        self.spans.clear();
        self.webs.clear();
        self.arena.clear();
    }

    fn push_view(&mut self, view: &HttpTransaction<'_>) {
        match view.web() {
            None => self.push(*view.row, &view.text),
            Some(web) => self.push_web(*view.row, &view.text, &web),
        }
    }

    fn copy_from(&mut self, other: &Self) {
        self.rows.clone_from(&other.rows);
        self.spans.clone_from(&other.spans);
        self.webs.clone_from(&other.webs);
        self.arena.clone_from(&other.arena);
    }

    fn memory_bytes(&self) -> usize {
        self.rows.len() * (size_of::<HttpRow>() + size_of::<Span>())
            + self.webs.len() * size_of::<WebRow>()
            + self.arena.len()
    }
}

/// The kind `http_transaction`.
#[derive(Debug, Clone, Copy)]
pub struct HttpKind;

impl HttpRow {
    /// The HTTP version as records have it.
    #[must_use]
    pub const fn version_name(&self) -> &'static str {
        match self.version {
            (1, 0) => "1.0",
            (1, 1) => "1.1",
            (1, _) => "1.x",
            (0, 9) => "0.9",
            (2, _) => "2",
            (3, _) => "3",
            (0, 0) => "",
            _ => "other",
        }
    }
}

impl<'a> HttpTransaction<'a> {
    /// What only HTTP/2 and TLS have, where it is of one.
    #[must_use]
    pub fn web(&self) -> Option<Web<'a>> {
        let at = self.web?;
        Some(Web {
            sni: at.sni(),
            alpn: at.alpn(),
            fields: at.fields(),
            ..at.row.web
        })
    }

    /// Header fields that are kept of the request and of the final response, by [`header::push`].
    #[must_use]
    pub fn fields(&self) -> [&'a [u8]; 2] {
        self.web.map_or([&[]; 2], |web| web.fields())
    }

    /// Trace and parent of the request's `traceparent` field (W3C Trace Context), 32 and 16 hexadecimal digits; `None`
    /// where it has none or a void one.
    #[must_use]
    pub fn trace(&self) -> Option<(&'a [u8], &'a [u8])> {
        header::trace_digits(self.fields()[0])
    }

    /// What it went over: HTTP/3 over UDP.
    const fn protocol(&self) -> Protocol {
        match self.row.version {
            (3, _) => Protocol::Udp,
            _ => Protocol::Tcp,
        }
    }

    const fn source(&self) -> Source {
        match self.web {
            None => Source::Clear,
            Some(web) => web.row.web.source,
        }
    }

    /// Where client and server are, where a database was asked.
    #[must_use]
    pub fn places(&self) -> Option<&'a [Place; 2]> {
        Some(&self.web?.row.web.places)
    }

    fn ja4(&self) -> &'a [u8] {
        let ja4 = self.web.and_then(|web| web.row.web.ja4.as_ref());
        ja4.map_or(&[], |ja4| ja4)
    }

    fn confidence(&self) -> Option<&'static str> {
        Some(self.web?.row.web.confidence?.as_str())
    }

    const fn names(&self) -> &'static str {
        match self.web {
            Some(web) if web.row.web.is_partial => "partial",
            _ => "whole",
        }
    }

    fn of_grpc(&self, value: impl FnOnce(&Grpc) -> Option<u64>) -> Option<u64> {
        value(self.web?.row.web.grpc.as_ref()?)
    }

    fn of_events(&self, value: impl FnOnce(&Events) -> Option<u64>) -> Option<u64> {
        value(self.web?.row.web.events.as_ref()?)
    }

    fn event_gap(&self, at: usize) -> Value<'a> {
        self.of_events(|events| events.gaps_ns?.get(at).copied())
            .map_or(Value::Null, Value::SpanNs)
    }

    fn buffered(&self) -> Option<&'static str> {
        let is_buffered = self.web?.row.web.events.as_ref()?.is_buffered?;
        Some(if is_buffered { "yes" } else { "no" })
    }
}

columns!(FIELDS, read_column, v: HttpTransaction, {
    client_ip: Ip, "", Some(8), "Address that sent the request." => Value::Ip(v.row.client_ip);
    client_port: Port, "", Some(7), "TCP port that sent the request." => Value::Port(v.row.client_port);
    server_ip: Ip, "", Some(12), "Address that sent the response." => Value::Ip(v.row.server_ip);
    server_port: Port, "", Some(11), "TCP port that sent the response." => Value::Port(v.row.server_port);
    request_ts_ns: TimeNs, "ns since 1970", Some(156), "First packet of the request; empty for an orphan." => v.row.request_ts_ns.map_or(Value::Null, Value::TimeNs);
    response_ts_ns: TimeNs, "ns since 1970", Some(157), "First packet of the final response; empty for an unanswered request." => v.row.response_ts_ns.map_or(Value::Null, Value::TimeNs);
    response_time_ns: SpanNs, "ns", None, "From the first packet of the request to the first packet of the final response." => v.row.response_time_ns().map_or(Value::Null, Value::SpanNs);
    status_code: U16, "", Some(457), "Status code of the final response." => opt(v.row.status_code.map(u64::from));
    reason_phrase: Text, "", Some(470), "Reason phrase of the final response." => text(v.text.reason_phrase);
    method: Text, "", Some(459), "Request method." => text(v.text.method);
    user_agent: Text, "", Some(468), "User-Agent field of the request." => text(v.text.user_agent);
    host: Text, "", Some(460), "Host field of the request, or the authority of an absolute-form target; of an estimate, the server name of TLS." => text(v.text.host);
    uri: Text, "", Some(461), "Request target as sent." => text(v.text.uri);
    version: Word, "", Some(462), "HTTP version of the response, or of the request where there is none." => Value::Word(v.row.version_name());
    state: Word, "", None, "complete, unanswered or orphan." => Value::Word(v.row.state.as_str());
    request_bytes: U64, "bytes", None, "Request head and declared body; empty where the length is not declared. HTTP/2 and HTTP/3: header blocks as sent, and content." => opt(v.row.request_bytes);
    response_bytes: U64, "bytes", None, "Final response head and declared body; empty where the length is not declared. HTTP/2 and HTTP/3: header blocks as sent, and content." => opt(v.row.response_bytes);
    ttlb_ns: SpanNs, "ns", None, "From the first packet of the request to the packet with the last byte of the response (of HTTP/1.x with --ttlb, or of a stream)." => v.row.ttlb_ns.map_or(Value::Null, Value::SpanNs);
    content_type: Text, "", None, "Content-Type field of the final response." => text(v.text.content_type);
    interim_responses: U16, "", None, "1xx responses before the final one." => Value::U64(u64::from(v.row.interim_responses));
    retransmissions: U16, "", None, "Retransmitted heads of this transaction seen before the record was written." => Value::U64(u64::from(v.row.retransmissions));
    vlan: U16, "", Some(58), "Outermost VLAN id." => opt(v.row.vlan.map(u64::from));
    flow_hash: U32, "", None, "Symmetric hash of addresses and ports: the same for both directions." => Value::U64(u64::from(v.row.flow_hash));
    http_version: Word, "", None, "HTTP version, as version." => Value::Word(v.row.version_name());
    source: Word, "", None, "Where it was read: clear, keys (in TLS, with the secrets of a key log), or estimate (from the lengths of TLS records)." => Value::Word(v.source().as_str());
    names: Word, "", None, "whole, or partial: empty texts may be unknown, because the connection was joined late or packets are missing." => Value::Word(v.names());
    stream_id: U32, "", None, "Stream of HTTP/2 or HTTP/3." => opt(v.web.and_then(|web| web.row.web.stream_id).map(u64::from));
    tls_version: Word, "", None, "TLS version; empty without TLS." => v.web.map_or(Value::Null, |web| crate::tls::version(web.row.web.tls_version));
    sni: Text, "", None, "Server name that the client asked for in TLS." => text(v.web.map_or(&[], |web| web.sni()));
    alpn: Text, "", None, "Application protocol that was negotiated in TLS." => text(v.web.map_or(&[], |web| web.alpn()));
    grpc_status: U32, "", None, "Status of a gRPC call, from the trailers, or what a client takes the RST_STREAM of the server for; empty where there was none." => opt(v.of_grpc(|grpc| grpc.status.map(u64::from)));
    grpc_messages_c: U64, "", None, "Messages of a gRPC call from the client." => opt(v.of_grpc(|grpc| Some(grpc.messages[0]?.0)));
    grpc_messages_s: U64, "", None, "Messages of a gRPC call from the server." => opt(v.of_grpc(|grpc| Some(grpc.messages[1]?.0)));
    grpc_bytes_c: U64, "bytes", None, "Length of the messages of a gRPC call from the client." => opt(v.of_grpc(|grpc| Some(grpc.messages[0]?.1)));
    grpc_bytes_s: U64, "bytes", None, "Length of the messages of a gRPC call from the server." => opt(v.of_grpc(|grpc| Some(grpc.messages[1]?.1)));
    grpc_timeout_ns: SpanNs, "ns", None, "Timeout that the client gave a gRPC call." => v.of_grpc(|grpc| grpc.timeout_ns).map_or(Value::Null, Value::SpanNs);
    grpc_first_ns: SpanNs, "ns", None, "From the first packet of the request to the first message of the server in a gRPC call." => v.of_grpc(|grpc| Some(grpc.answered_ns?[0])).map_or(Value::Null, Value::SpanNs);
    grpc_last_ns: SpanNs, "ns", None, "From the first packet of the request to the last message of the server in a gRPC call." => v.of_grpc(|grpc| Some(grpc.answered_ns?[1])).map_or(Value::Null, Value::SpanNs);
    confidence: Word, "", None, "Of an estimate: exact, likely, or cannot_tell (then without a response time)." => v.confidence().map_or(Value::Null, Value::Word);
    ja4: Text, "", None, "JA4 of the client: fingerprint of what it offers in its ClientHello; empty where that was not seen whole." => text(v.ja4());
    rtt_ns: SpanNs, "ns", None, "Round trip from the capture to the server: from the SYN of the connection to the SYN with ACK; of QUIC, from the Initial of the client to that of the server, whose handshake is part of it." => v.row.rtt_ns.map_or(Value::Null, |rtt_ns| Value::SpanNs(u64::from(rtt_ns)));
    server_time_ns: SpanNs, "ns", None, "Response time less rtt_ns: what the server took, and the client to send the content of the request; empty if rtt_ns is longer." => v.row.server_time_ns().map_or(Value::Null, Value::SpanNs);
    community_id: Text, "", None, "Community ID (version 1, seed 0): the name that other monitors give the flow too." => remembered::community_id(v.protocol(), HttpKind::endpoints(v));
    uid: Text, "", None, "Name of the connection by its addresses, ports and protocol, for joins with other records; later connections of the same ports have the same." => remembered::uid_of(v.protocol(), HttpKind::endpoints(v));
    client_country: Text, "", None, "Country of the address of the client (--geoip), by its two letters (ISO 3166-1)." => v.places().map_or(Value::Null, |places| places[0].country());
    client_asn: U32, "", None, "Number of the autonomous system of the client (--geoip)." => v.places().map_or(Value::Null, |places| places[0].asn());
    server_country: Text, "", None, "Country of the address of the server (--geoip)." => v.places().map_or(Value::Null, |places| places[1].country());
    server_asn: U32, "", None, "Number of the autonomous system of the server (--geoip)." => v.places().map_or(Value::Null, |places| places[1].asn());
    first_event_ns: SpanNs, "ns", None, "Of a stream: from the first packet of the request to the packet that completes the first event." => v.of_events(|events| events.first_ns).map_or(Value::Null, Value::SpanNs);
    events: U32, "", None, "Events of a stream: of text/event-stream, lines of JSON, messages of the server in WebSocket; of an estimate, writes of the server behind the head." => opt(v.of_events(|events| Some(u64::from(events.count))));
    event_gap_p50_ns: SpanNs, "ns", None, "Median time between the events of a stream; empty below two." => v.event_gap(0);
    event_gap_p99_ns: SpanNs, "ns", None, "99th percentile of the times between the events of a stream; empty below two." => v.event_gap(1);
    event_gap_max_ns: SpanNs, "ns", None, "Longest time between two events of a stream; empty below two." => v.event_gap(2);
    coalesced: U32, "", None, "Events of a stream that came with the packet that completed the one before: their gap is 0." => opt(v.of_events(|events| Some(u64::from(events.coalesced))));
    stalls: U32, "", None, "Gaps in a stream of over 500 ms and of over ten times its median gap." => opt(v.of_events(|events| Some(u64::from(events.stalls))));
    buffered: Word, "", None, "yes or no: whether the events of a stream have waited for one another, as behind a proxy that buffers; empty where that cannot be said." => v.buffered().map_or(Value::Null, Value::Word);
    trace_id: Text, "", None, "Trace of the request, from its traceparent field (W3C Trace Context): 32 hexadecimal digits; empty where that is void." => header::trace(v.fields()[0]).0;
    parent_id: Text, "", None, "Span that sent the request, from its traceparent field: 16 hexadecimal digits." => header::trace(v.fields()[0]).1;
    forwarded_for: Text, "", None, "X-Forwarded-For field of the request as sent, at most 1,024 bytes." => text(header::find(v.fields()[0], Slot::Forwarded));
} else added);

/// The value of a column that the run has added, by its number among them.
#[inline]
fn added<'a>(view: &HttpTransaction<'a>, number: usize) -> Value<'a> {
    // Formats also ask for a column behind the last where there is nothing.
    match view.web {
        None => Value::Null,
        Some(web) => header::added(web.fields(), number),
    }
}

impl HttpKind {
    /// Adds the columns of header fields that a run chooses, `req_NAME` and `resp_NAME` of each, behind the others and to the end
    /// of the process. To be called before an output is opened or a filter is read; `false` where others were chosen before.
    #[must_use]
    pub fn choose_headers(names: &HeaderNames) -> bool {
        header::add_columns(names, FIELDS, Self::zeek_columns())
    }
}

impl RecordKind for HttpKind {
    type View<'a> = HttpTransaction<'a>;
    type Batch = HttpBatch;
    const NAME: &'static str = "http_transaction";
    const VERSION: u16 = 3;
    const ZEEK_PATH: &'static str = "http";
    /// HTTP/1.x in clear, HTTP/2 or TLS, gRPC, estimates, and streams of any of them.
    const SHAPES: usize = 5;

    #[inline]
    fn shape(view: &HttpTransaction<'_>) -> usize {
        match view.web {
            None => 0,
            Some(web) if web.row.web.events.is_some() => 4,
            Some(web) if web.row.web.confidence.is_some() => 3,
            Some(web) => 1 + usize::from(web.row.web.grpc.is_some()),
        }
    }

    #[inline]
    fn has_column(shape: usize, column: usize) -> bool {
        let is_of_stream =
            (Column::first_event_ns as usize..Column::trace_id as usize).contains(&column);
        if shape == 4 || is_of_stream {
            return shape == 4;
        }
        let last = match shape {
            0 => Column::names,
            1 | 3 => Column::alpn,
            _ => Column::grpc_last_ns,
        };
        column <= last as usize
            || (Column::rtt_ns as usize..Column::client_country as usize).contains(&column)
            || (shape > 0 && column >= Column::client_country as usize)
            || (shape == 3 && column == Column::confidence as usize)
            || (shape > 0 && column == Column::ja4 as usize)
            || column >= FIELDS.len()
    }

    fn fields() -> &'static [Field] {
        header::fields(FIELDS)
    }

    #[inline]
    fn value<'a>(view: &HttpTransaction<'a>, column: usize) -> Value<'a>
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
            "request_ts_ns",
            "response_ts_ns",
            "response_time_ns",
            "reason_phrase",
            "status_code",
            "method",
            "user_agent",
            "host",
            "uri",
        ]
    }

    fn line() -> &'static [LineCell] {
        const CELLS: &[LineCell] = &[
            LineCell::new(
                "time",
                12,
                Cell::Moment(&["request_ts_ns", "response_ts_ns"]),
            ),
            ENDS,
            LineCell::new(
                "status",
                6,
                Cell::Outcome {
                    of: &["status_code", "state"],
                    good: &["complete"],
                },
            ),
            LineCell::new("response", 8, Cell::Span("response_time_ns")),
            LineCell::optional("", 10, Cell::Bar("response_time_ns")),
            // Of an estimate, which has no method, how sure it is.
            LineCell::new("method", 7, Cell::First(&["method", "confidence"])),
            LineCell::new("URL", 20, Cell::Texts(&["host", "uri"], "")),
        ];
        CELLS
    }

    fn zeek_columns() -> &'static [(&'static str, ZeekColumn)] {
        const fn column(name: &'static str, kind: &'static str) -> ZeekColumn {
            ZeekColumn { name, kind }
        }
        const COLUMNS: &[(&str, ZeekColumn)] = &[
            ("request_ts_ns", column("ts", "time")),
            ("uid", column("uid", "string")),
            ("client_ip", column("id.orig_h", "addr")),
            ("client_port", column("id.orig_p", "port")),
            ("server_ip", column("id.resp_h", "addr")),
            ("server_port", column("id.resp_p", "port")),
            ("", column("trans_depth", "count")),
            ("method", column("method", "string")),
            ("host", column("host", "string")),
            ("uri", column("uri", "string")),
            ("", column("referrer", "string")),
            ("version", column("version", "string")),
            ("user_agent", column("user_agent", "string")),
            ("", column("origin", "string")),
            ("", column("request_body_len", "count")),
            ("", column("response_body_len", "count")),
            ("status_code", column("status_code", "count")),
            ("reason_phrase", column("status_msg", "string")),
            ("", column("info_code", "count")),
            ("", column("info_msg", "string")),
            ("", column("tags", "set[enum]")),
            ("", column("username", "string")),
            ("", column("password", "string")),
            ("", column("proxied", "set[string]")),
            ("", column("orig_fuids", "vector[string]")),
            ("", column("orig_filenames", "vector[string]")),
            ("", column("orig_mime_types", "vector[string]")),
            ("", column("resp_fuids", "vector[string]")),
            ("", column("resp_filenames", "vector[string]")),
            ("content_type", column("resp_mime_types", "vector[string]")),
            // Ours, behind Zeek's.
            ("response_time_ns", column("response_time", "interval")),
            ("ttlb_ns", column("ttlb", "interval")),
            ("state", column("state", "string")),
            ("request_bytes", column("request_bytes", "count")),
            ("response_bytes", column("response_bytes", "count")),
            ("content_type", column("content_type", "string")),
            ("interim_responses", column("interim_responses", "count")),
            ("retransmissions", column("retransmissions", "count")),
            ("vlan", column("vlan", "int")),
            ("source", column("source", "string")),
            ("confidence", column("confidence", "string")),
            ("rtt_ns", column("rtt", "interval")),
            ("server_time_ns", column("server_time", "interval")),
            ("ja4", column("ja4", "string")),
            ("community_id", column("community_id", "string")),
            ("client_country", column("client_country", "string")),
            ("client_asn", column("client_asn", "count")),
            ("server_country", column("server_country", "string")),
            ("server_asn", column("server_asn", "count")),
            ("first_event_ns", column("first_event", "interval")),
            ("events", column("events", "count")),
            ("event_gap_p50_ns", column("event_gap_p50", "interval")),
            ("event_gap_p99_ns", column("event_gap_p99", "interval")),
            ("event_gap_max_ns", column("event_gap_max", "interval")),
            ("coalesced", column("coalesced", "count")),
            ("stalls", column("stalls", "count")),
            ("buffered", column("buffered", "string")),
            ("trace_id", column("trace_id", "string")),
            ("parent_id", column("parent_id", "string")),
            ("forwarded_for", column("forwarded_for", "string")),
        ];
        header::zeek(COLUMNS)
    }

    fn time_ns(view: &HttpTransaction<'_>) -> u64 {
        view.row
            .request_ts_ns
            .or(view.row.response_ts_ns)
            .unwrap_or_default()
    }

    #[inline]
    fn endpoints(view: &HttpTransaction<'_>) -> [Endpoint; 2] {
        [
            (view.row.client_ip, view.row.client_port),
            (view.row.server_ip, view.row.server_port),
        ]
    }
}
