//! `load_session`: one record per session of the load generator.
//!
//! Source: the reporting database of the Raw Packet Sender (Hryn, Jerzak, Chydzinski 2004, Table 1),
//! which stores when each session starts and ends; the planned time beside the actual one is what
//! keeps response times free of coordinated omission.

use std::net::{IpAddr, Ipv6Addr};

use crate::line::{Cell, ENDS, LineCell};
use crate::schema::{
    Endpoint, Field, RecordBatch, RecordKind, Value, ZeekColumn, columns, opt, text,
};

/// A session: everything of fixed size.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LoadRow {
    /// Number of the session, from 0 on in the order of the schedule.
    pub session: u64,
    /// Address of the emulated client.
    pub client_ip: IpAddr,
    /// Port of the connection of the first request; 0 where none was sent.
    pub client_port: u16,
    /// Address of the server.
    pub server_ip: IpAddr,
    /// Port of the server.
    pub server_port: u16,
    /// When the schedule wanted it, nanoseconds since the epoch.
    pub planned_ts_ns: u64,
    /// When its first SYN was sent.
    pub started_ts_ns: Option<u64>,
    /// When it was over.
    pub ended_ts_ns: u64,
    /// First request: from when the schedule wanted it to the last byte of its response.
    pub response_time_ns: Option<u64>,
    /// First request: from its first byte to the last byte of its response.
    pub service_time_ns: Option<u64>,
    /// First request: from its first byte to the first segment of its response.
    pub first_byte_ns: Option<u64>,
    /// Pages that were complete, with all their objects.
    pub pages: u32,
    /// Requests that were sent.
    pub requests: u32,
    /// Complete responses.
    pub responses: u32,
    /// Connections that were opened.
    pub connections: u32,
    /// Bytes of requests.
    pub request_bytes: u64,
    /// Bytes of responses.
    pub response_bytes: u64,
    /// Status code of the last complete response.
    pub status_code: Option<u16>,
    /// Complete responses by class: 1xx to 5xx.
    pub statuses: [u32; 5],
    /// The first cause of failure; empty where the session did all that its script says.
    pub failure: &'static str,
}

impl Default for LoadRow {
    fn default() -> Self {
        let nobody = IpAddr::V6(Ipv6Addr::UNSPECIFIED);
        Self {
            session: 0,
            client_ip: nobody,
            client_port: 0,
            server_ip: nobody,
            server_port: 0,
            planned_ts_ns: 0,
            started_ts_ns: None,
            ended_ts_ns: 0,
            response_time_ns: None,
            service_time_ns: None,
            first_byte_ns: None,
            pages: 0,
            requests: 0,
            responses: 0,
            connections: 0,
            request_bytes: 0,
            response_bytes: 0,
            status_code: None,
            statuses: [0; 5],
            failure: "",
        }
    }
}

impl LoadRow {
    /// How late the session began; `None` where it never did.
    #[must_use]
    pub fn lag_ns(&self) -> Option<u64> {
        Some(self.started_ts_ns?.saturating_sub(self.planned_ts_ns))
    }

    /// From when the schedule wanted it to its end.
    #[must_use]
    pub const fn duration_ns(&self) -> u64 {
        self.ended_ts_ns.saturating_sub(self.planned_ts_ns)
    }

    const fn state(&self) -> &'static str {
        if self.failure.is_empty() {
            "completed"
        } else {
            "failed"
        }
    }

    fn class(&self, at: usize) -> Value<'static> {
        Value::U64(u64::from(self.statuses.get(at).copied().unwrap_or(0)))
    }
}

/// One session, borrowed from its batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LoadSession<'a> {
    /// Its numbers.
    pub row: &'a LoadRow,
    /// Name of the group of its client; empty where there are no groups.
    pub group: &'a [u8],
}

/// Sessions in the order in which they ended.
#[derive(Debug, Clone, Default)]
pub struct LoadBatch {
    rows: Vec<LoadRow>,
    /// Where the name of the group of each row lies in `names`.
    spans: Vec<(u32, u32)>,
    names: Vec<u8>,
}

impl LoadBatch {
    /// Appends a session.
    ///
    /// A group that follows itself takes no room for its name. A batch holds 4 GiB of names; what does
    /// not fit is recorded without one.
    pub fn push(&mut self, row: LoadRow, group: &[u8]) {
        let span = match self.spans.last().copied() {
            Some(last) if self.name(last) == group => last,
            _ => self.keep(group).unwrap_or((0, 0)),
        };
        self.rows.push(row);
        self.spans.push(span);
    }

    fn keep(&mut self, name: &[u8]) -> Option<(u32, u32)> {
        let from = u32::try_from(self.names.len()).ok()?;
        let to = from.checked_add(u32::try_from(name.len()).ok()?)?;
        self.names.extend_from_slice(name);
        Some((from, to))
    }

    fn name(&self, (from, to): (u32, u32)) -> &[u8] {
        self.names
            .get(from as usize..to as usize)
            .unwrap_or_default()
    }
}

impl RecordBatch<LoadKind> for LoadBatch {
    fn len(&self) -> usize {
        self.rows.len()
    }

    fn get(&self, at: usize) -> Option<LoadSession<'_>> {
        Some(LoadSession {
            row: self.rows.get(at)?,
            group: self.name(*self.spans.get(at)?),
        })
    }

    fn clear(&mut self) {
        self.rows.clear();
        self.spans.clear();
        self.names.clear();
    }

    fn push_view(&mut self, view: &LoadSession<'_>) {
        self.push(*view.row, view.group);
    }

    fn memory_bytes(&self) -> usize {
        self.rows.len() * (size_of::<LoadRow>() + size_of::<(u32, u32)>()) + self.names.len()
    }
}

/// The kind `load_session`.
#[derive(Debug, Clone, Copy)]
pub struct LoadKind;

fn time(moment: Option<u64>) -> Value<'static> {
    moment.map_or(Value::Null, Value::TimeNs)
}

fn span(nanos: Option<u64>) -> Value<'static> {
    nanos.map_or(Value::Null, Value::SpanNs)
}

columns!(FIELDS, read_column, v: LoadSession, {
    session: U64, "", None, "Number of the session, from 0 on in the order of the schedule." => Value::U64(v.row.session);
    state: Word, "", None, "completed: it did all that its script says; or failed." => Value::Word(v.row.state());
    failure: Word, "", None, "First cause of failure: refused, connect_timeout, reset, closed_early, send_timeout, response_timeout, malformed, wrong_length, no_port, no_room, unreachable or run_ended." => match v.row.failure {
        "" => Value::Null,
        cause => Value::Word(cause),
    };
    client_ip: Ip, "", Some(8), "Address of the emulated client." => Value::Ip(v.row.client_ip);
    client_port: Port, "", Some(7), "Port of the connection of the first request." => match v.row.client_port {
        0 => Value::Null,
        port => Value::Port(port),
    };
    server_ip: Ip, "", Some(12), "Address of the server." => Value::Ip(v.row.server_ip);
    server_port: Port, "", Some(11), "Port of the server." => Value::Port(v.row.server_port);
    client_group: Text, "", None, "Group of the client." => text(v.group);
    planned_ts_ns: TimeNs, "ns since 1970", None, "When the schedule wanted the session." => Value::TimeNs(v.row.planned_ts_ns);
    started_ts_ns: TimeNs, "ns since 1970", Some(156), "When its first SYN was sent; empty where none was." => time(v.row.started_ts_ns);
    ended_ts_ns: TimeNs, "ns since 1970", Some(157), "When it was over." => Value::TimeNs(v.row.ended_ts_ns);
    lag_ns: SpanNs, "ns", None, "How much later than planned it started." => span(v.row.lag_ns());
    duration_ns: SpanNs, "ns", None, "From when the schedule wanted it to its end." => Value::SpanNs(v.row.duration_ns());
    response_time_ns: SpanNs, "ns", None, "First request: from when the schedule wanted it to the last byte of its response." => span(v.row.response_time_ns);
    service_time_ns: SpanNs, "ns", None, "First request: from its first byte to the last byte of its response." => span(v.row.service_time_ns);
    first_byte_ns: SpanNs, "ns", None, "First request: from its first byte to the first segment of its response." => span(v.row.first_byte_ns);
    pages: U32, "", None, "Pages that were complete, with all their objects." => Value::U64(u64::from(v.row.pages));
    requests: U32, "", None, "Requests that were sent." => Value::U64(u64::from(v.row.requests));
    responses: U32, "", None, "Complete responses." => Value::U64(u64::from(v.row.responses));
    connections: U32, "", None, "Connections that were opened." => Value::U64(u64::from(v.row.connections));
    request_bytes: U64, "bytes", None, "Bytes of requests." => Value::U64(v.row.request_bytes);
    response_bytes: U64, "bytes", None, "Bytes of responses, heads and bodies as on the wire." => Value::U64(v.row.response_bytes);
    status_code: U16, "", Some(457), "Status code of the last complete response." => opt(v.row.status_code.map(u64::from));
    responses_1xx: U32, "", None, "Complete responses with a status of 1xx." => v.row.class(0);
    responses_2xx: U32, "", None, "The same for 2xx." => v.row.class(1);
    responses_3xx: U32, "", None, "The same for 3xx." => v.row.class(2);
    responses_4xx: U32, "", None, "The same for 4xx." => v.row.class(3);
    responses_5xx: U32, "", None, "The same for 5xx." => v.row.class(4);
});

impl RecordKind for LoadKind {
    type View<'a> = LoadSession<'a>;
    type Batch = LoadBatch;
    const NAME: &'static str = "load_session";
    const ZEEK_PATH: &'static str = "load";

    fn fields() -> &'static [Field] {
        FIELDS
    }

    #[inline]
    fn value<'a>(view: &LoadSession<'a>, column: usize) -> Value<'a>
    where
        'a: 'a,
    {
        read_column(view, column)
    }

    fn text_line() -> &'static [&'static str] {
        &[
            "session",
            "client_ip",
            "client_port",
            "server_ip",
            "server_port",
            "planned_ts_ns",
            "started_ts_ns",
            "ended_ts_ns",
            "response_time_ns",
            "state",
            "failure",
            "status_code",
            "requests",
            "responses",
            "response_bytes",
            "client_group",
        ]
    }

    fn line() -> &'static [LineCell] {
        const CELLS: &[LineCell] = &[
            LineCell::new(
                "time",
                12,
                Cell::Moment(&["started_ts_ns", "planned_ts_ns"]),
            ),
            ENDS,
            LineCell::new(
                "status",
                6,
                Cell::Outcome {
                    of: &["failure", "status_code"],
                    good: &[],
                },
            ),
            LineCell::new("response", 8, Cell::Span("response_time_ns")),
            LineCell::optional("", 10, Cell::Bar("response_time_ns")),
            LineCell::new("responses", 9, Cell::Counts(["requests", "responses"])),
            LineCell::new("group", 8, Cell::First(&["client_group"])),
        ];
        CELLS
    }

    fn zeek_columns() -> &'static [(&'static str, ZeekColumn)] {
        const fn column(name: &'static str, kind: &'static str) -> ZeekColumn {
            ZeekColumn { name, kind }
        }
        const COLUMNS: &[(&str, ZeekColumn)] = &[
            ("planned_ts_ns", column("ts", "time")),
            ("session", column("uid", "string")),
            ("client_ip", column("id.orig_h", "addr")),
            ("client_port", column("id.orig_p", "port")),
            ("server_ip", column("id.resp_h", "addr")),
            ("server_port", column("id.resp_p", "port")),
            ("started_ts_ns", column("started", "time")),
            ("duration_ns", column("duration", "interval")),
            ("lag_ns", column("lag", "interval")),
            ("response_time_ns", column("response_time", "interval")),
            ("service_time_ns", column("service_time", "interval")),
            ("state", column("state", "string")),
            ("failure", column("failure", "string")),
            ("status_code", column("status_code", "count")),
            ("pages", column("pages", "count")),
            ("requests", column("requests", "count")),
            ("responses", column("responses", "count")),
            ("connections", column("connections", "count")),
            ("request_bytes", column("orig_bytes", "count")),
            ("response_bytes", column("resp_bytes", "count")),
            ("client_group", column("group", "string")),
        ];
        COLUMNS
    }

    fn time_ns(view: &LoadSession<'_>) -> u64 {
        view.row.planned_ts_ns
    }

    #[inline]
    fn endpoints(view: &LoadSession<'_>) -> [Endpoint; 2] {
        [
            (view.row.client_ip, view.row.client_port),
            (view.row.server_ip, view.row.server_port),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_comes_back_as_it_went_in() {
        let failed = LoadRow {
            session: 3,
            planned_ts_ns: 100,
            started_ts_ns: Some(107),
            ended_ts_ns: 150,
            statuses: [0, 2, 0, 1, 0],
            failure: "reset",
            ..LoadRow::default()
        };
        let mut batch = LoadBatch::default();
        batch.push(LoadRow::default(), b"dsl");
        batch.push(failed, b"dsl");
        batch.push(LoadRow::default(), b"");
        assert_eq!(batch.names, b"dsl");
        let groups: Vec<&[u8]> = batch.views().map(|view| view.group).collect();
        assert_eq!(groups, [&b"dsl"[..], b"dsl", b""]);
        let view = batch.get(1).expect("the second session");
        assert_eq!(*view.row, failed);
        let column = |name| {
            let at = LoadKind::column(name).expect("a column of this name");
            LoadKind::value(&view, at)
        };
        assert_eq!(column("lag_ns"), Value::SpanNs(7));
        assert_eq!(column("duration_ns"), Value::SpanNs(50));
        assert_eq!(column("state"), Value::Word("failed"));
        assert_eq!(column("responses_2xx"), Value::U64(2));
        assert_eq!(column("responses_4xx"), Value::U64(1));
        assert_eq!(column("client_port"), Value::Null);
        assert_eq!(column("response_time_ns"), Value::Null);
        let mut copy = LoadBatch::default();
        copy.push_view(&view);
        assert_eq!(copy.get(0), batch.get(1));
    }

    #[test]
    fn every_named_column_exists() {
        let named = LoadKind::zeek_columns().iter().map(|(name, _)| name);
        for name in named.chain(LoadKind::text_line()) {
            assert!(LoadKind::column(name).is_some(), "{name}");
        }
    }
}
