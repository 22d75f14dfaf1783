//! `gateway_event`: what the gateway decided, found and recorded, one record each.
//!
//! Source: the management objectives of the P2P Proxy (Tsai 2005, sec. 2.3, Table 2): filtering,
//! auditing of messages and files, virus scanning.

use std::net::{IpAddr, Ipv6Addr};

use crate::escape::hex;
use crate::line::{Cell, ENDS, LineCell};
use crate::place::Place;
use crate::schema::{
    Endpoint, Field, RecordBatch, RecordKind, Value, ZeekColumn, columns, opt, text,
};

/// What happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Hash)]
pub enum GatewayEventKind {
    /// A connection was decided: by which rule, as which application.
    #[default]
    Decided,
    /// A connection was dropped or reset because of what it carried; `detail` says by what.
    Blocked,
    /// A keyword was found.
    Keyword,
    /// A file name matched a rule.
    FileName,
    /// The scanner found something.
    Infected,
    /// The scanner could not say; `action` is what the policy does then.
    Unscanned,
    /// A chat message (audit).
    Message,
    /// A transferred file, at its end (audit).
    File,
    /// A bound was reached: packets or bytes held, connections; `detail` says which.
    Limit,
    /// A malformed message of an application; its inspection ends there.
    Malformed,
    /// Packets passed that nobody looked at, because a queue of the kernel was full and fails open; `rule` is one
    /// that was void meanwhile. It is about no connection.
    Unseen,
}

impl GatewayEventKind {
    /// All of them.
    pub const ALL: &'static [Self] = &[
        Self::Decided,
        Self::Blocked,
        Self::Keyword,
        Self::FileName,
        Self::Infected,
        Self::Unscanned,
        Self::Message,
        Self::File,
        Self::Limit,
        Self::Malformed,
        Self::Unseen,
    ];

    /// The word in the `event` field.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Decided => "decided",
            Self::Blocked => "blocked",
            Self::Keyword => "keyword",
            Self::FileName => "file_name",
            Self::Infected => "infected",
            Self::Unscanned => "unscanned",
            Self::Message => "message",
            Self::File => "file",
            Self::Limit => "limit",
            Self::Malformed => "malformed",
            Self::Unseen => "unseen",
        }
    }

    /// Whether it is about a connection, which has addresses and an application.
    #[must_use]
    pub const fn has_connection(self) -> bool {
        !matches!(self, Self::Unseen)
    }
}

/// The numbers of an event: everything of fixed size.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GatewayRow {
    /// When, nanoseconds since the epoch.
    pub ts_ns: u64,
    /// What happened.
    pub event: GatewayEventKind,
    /// Who opened the connection, where the event is about one; IPv4 as the mapped address.
    pub client_ip: IpAddr,
    /// Who accepted it.
    pub server_ip: IpAddr,
    /// Port of the client.
    pub client_port: u16,
    /// Port of the server.
    pub server_port: u16,
    /// `tcp` or `udp`.
    pub protocol: &'static str,
    /// What is done: `allow`, `drop`, `reject`, `inspect`; empty where nothing follows.
    pub action: &'static str,
    /// Who sent what the event is about: `client`, `server`, or empty.
    pub sender_side: &'static str,
    /// Verdict on a file: `clean`, `infected`, `unscanned`, `blocked`, `passed` (not to be scanned);
    /// empty where there is no file.
    pub verdict: &'static str,
    /// Bytes of the file or message.
    pub size: Option<u64>,
    /// Bytes that the protocol announced for the file.
    pub announced_size: Option<u64>,
    /// Whether all of the file came from its sender; of one that was blocked its receiver has less.
    pub is_complete: Option<bool>,
    /// SHA-256 of the file as it passed by.
    pub sha256: Option<[u8; 32]>,
    /// Where client and server are.
    pub places: [Place; 2],
    /// Whether the `ClientHello` has the extension of an encrypted one (RFC 9849); `None` where none was seen.
    pub has_ech: Option<bool>,
}

impl Default for GatewayRow {
    fn default() -> Self {
        let nobody = IpAddr::V6(Ipv6Addr::UNSPECIFIED);
        Self {
            ts_ns: 0,
            event: GatewayEventKind::Decided,
            client_ip: nobody,
            server_ip: nobody,
            client_port: 0,
            server_port: 0,
            protocol: "",
            action: "",
            sender_side: "",
            verdict: "",
            size: None,
            announced_size: None,
            is_complete: None,
            sha256: None,
            places: [Place::default(); 2],
            has_ech: None,
        }
    }
}

/// The texts of an event; empty where there is none. Those from the network are bytes as they came.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct GatewayText<'a> {
    /// Name of the application.
    pub application: &'a [u8],
    /// Name of the rule.
    pub rule: &'a [u8],
    /// Name of the file.
    pub file_name: &'a [u8],
    /// The keyword, the virus, the reason.
    pub detail: &'a [u8],
    /// Who sends a message or file, as the protocol names him.
    pub from: &'a [u8],
    /// Who gets it.
    pub to: &'a [u8],
    /// Text of a message.
    pub message: &'a [u8],
    /// Host or TLS server name.
    pub host: &'a [u8],
    /// Name under which the file is kept in the directory of the rule.
    pub stored: &'a [u8],
    /// Of a decision: the conditions of the rule that matched, each with the value that it matched.
    pub why: &'a [u8],
}

const TEXTS: usize = 10;

impl<'a> GatewayText<'a> {
    const fn parts(&self) -> [&'a [u8]; TEXTS] {
        [
            self.application,
            self.rule,
            self.file_name,
            self.detail,
            self.from,
            self.to,
            self.message,
            self.host,
            self.stored,
            self.why,
        ]
    }

    const fn from_parts(parts: [&'a [u8]; TEXTS]) -> Self {
        let [
            application,
            rule,
            file_name,
            detail,
            from,
            to,
            message,
            host,
            stored,
            why,
        ] = parts;
        Self {
            application,
            rule,
            file_name,
            detail,
            from,
            to,
            message,
            host,
            stored,
            why,
        }
    }
}

/// One event, borrowed from its batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GatewayEvent<'a> {
    /// Its numbers.
    pub row: &'a GatewayRow,
    /// Its texts.
    pub text: GatewayText<'a>,
    /// `row.sha256` in hexadecimal digits; empty where there is none.
    pub sha256: &'a [u8],
}

/// End offsets of the texts and the digits of a row in the arena, and where the first starts.
#[derive(Debug, Clone, Copy, Default)]
struct Span {
    start: u32,
    ends: [u32; TEXTS + 1],
}

/// Events in the order in which they happened.
#[derive(Debug, Clone, Default)]
pub struct GatewayBatch {
    rows: Vec<GatewayRow>,
    spans: Vec<Span>,
    arena: Vec<u8>,
}

impl GatewayBatch {
    /// Appends an event.
    ///
    /// A batch holds 4 GiB of text; what does not fit is recorded with empty text.
    pub fn push(&mut self, row: GatewayRow, text: &GatewayText<'_>) {
        let start = u32::try_from(self.arena.len()).unwrap_or(u32::MAX);
        let mut span = Span {
            start,
            ends: [start; TEXTS + 1],
        };
        let mut digits = [0_u8; 64];
        let digits = row
            .sha256
            .map_or(&[][..], |hash| hexadecimal(&hash, &mut digits));
        let parts = text.parts();
        let parts = parts.iter().copied().chain([digits]);
        for (end, part) in span.ends.iter_mut().zip(parts) {
            self.arena.extend_from_slice(part);
            *end = u32::try_from(self.arena.len()).unwrap_or(start);
        }
        self.rows.push(row);
        self.spans.push(span);
    }
}

fn hexadecimal<'a>(bytes: &[u8; 32], out: &'a mut [u8; 64]) -> &'a [u8] {
    for (byte, pair) in bytes.iter().zip(out.as_chunks_mut::<2>().0) {
        *pair = hex(*byte);
    }
    out
}

impl RecordBatch<GatewayKind> for GatewayBatch {
    fn len(&self) -> usize {
        self.rows.len()
    }

    fn get(&self, at: usize) -> Option<GatewayEvent<'_>> {
        let row = self.rows.get(at)?;
        let span = self.spans.get(at)?;
        let mut from = span.start as usize;
        let mut parts = span.ends.map(|end| {
            let part = self.arena.get(from..end as usize).unwrap_or_default();
            from = end as usize;
            part
        });
        let sha256 = std::mem::take(parts.last_mut()?);
        let (texts, _) = parts.split_first_chunk::<TEXTS>()?;
        Some(GatewayEvent {
            row,
            text: GatewayText::from_parts(*texts),
            sha256,
        })
    }

    fn clear(&mut self) {
        self.rows.clear();
        self.spans.clear();
        self.arena.clear();
    }

    fn push_view(&mut self, view: &GatewayEvent<'_>) {
        self.push(*view.row, &view.text);
    }

    fn memory_bytes(&self) -> usize {
        self.rows.len() * (size_of::<GatewayRow>() + size_of::<Span>()) + self.arena.len()
    }
}

/// The kind `gateway_event`.
#[derive(Debug, Clone, Copy)]
pub struct GatewayKind;

fn word(word: &'static str) -> Value<'static> {
    if word.is_empty() {
        Value::Null
    } else {
        Value::Word(word)
    }
}

/// What a connection has.
fn of_connection<'a>(event: &GatewayEvent<'_>, value: Value<'a>) -> Value<'a> {
    if event.row.event.has_connection() {
        value
    } else {
        Value::Null
    }
}

columns!(FIELDS, read_column, v: GatewayEvent, {
    ts_ns: TimeNs, "ns since 1970", Some(156), "When it happened." => Value::TimeNs(v.row.ts_ns);
    event: Word, "", None, "decided, blocked, keyword, file_name, infected, unscanned, message, file, limit, malformed or unseen." => Value::Word(v.row.event.as_str());
    client_ip: Ip, "", Some(8), "Address that opened the connection; null of unseen, which is about none." => of_connection(v, Value::Ip(v.row.client_ip));
    client_port: Port, "", Some(7), "Its port." => of_connection(v, Value::Port(v.row.client_port));
    server_ip: Ip, "", Some(12), "Address that accepted it." => of_connection(v, Value::Ip(v.row.server_ip));
    server_port: Port, "", Some(11), "Its port." => of_connection(v, Value::Port(v.row.server_port));
    protocol: Word, "", Some(4), "tcp or udp." => word(v.row.protocol);
    application: Text, "", Some(96), "Application, unknown where no signature matched, null where no rule needs it; several are joined by commas, as stun,dtls." => text(v.text.application);
    rule: Text, "", None, "Rule of the policy that decided; of unseen, one with fail = \"closed\"." => text(v.text.rule);
    action: Word, "", None, "allow, drop, reject, inspect or redirect: what is done." => word(v.row.action);
    sender: Word, "", None, "Who sent what the event is about: client or server." => word(v.row.sender_side);
    host: Text, "", Some(460), "Host field or TLS server name." => text(v.text.host);
    file_name: Text, "", None, "Name of the file as the protocol gave it." => text(v.text.file_name);
    size: U64, "bytes", None, "Bytes of the file or message that came from its sender, without their coding." => opt(v.row.size);
    announced_size: U64, "bytes", None, "Bytes of the file as the protocol announced them." => opt(v.row.announced_size);
    complete: Word, "", None, "Whether all of the file came from its sender: true or false. Of one that was blocked its receiver has less." => match v.row.is_complete {
        None => Value::Null,
        Some(true) => Value::Word("true"),
        Some(false) => Value::Word("false"),
    };
    sha256: Text, "hexadecimal", None, "SHA-256 of the bytes of the file that came from its sender, without their coding." => text(v.sha256);
    verdict: Word, "", None, "On a file: clean, infected, unscanned, blocked, or passed where it was not to be scanned." => word(v.row.verdict);
    detail: Text, "", None, "The keyword, the name of the virus, the pattern or the reason." => text(v.text.detail);
    from: Text, "", None, "Who sends the message or file, as the protocol names him." => text(v.text.from);
    to: Text, "", None, "Who gets it." => text(v.text.to);
    message: Text, "", None, "Text of a chat message." => text(v.text.message);
    stored: Text, "", None, "Name under which the file is kept in the directory for recorded files or the quarantine." => text(v.text.stored);
    client_country: Text, "", None, "Country of the address of the client (geoip), by its two letters (ISO 3166-1)." => v.row.places[0].country();
    client_asn: U32, "", None, "Number of the autonomous system of the client (geoip)." => v.row.places[0].asn();
    server_country: Text, "", None, "Country of the address of the server (geoip)." => v.row.places[1].country();
    server_asn: U32, "", None, "Number of the autonomous system of the server (geoip)." => v.row.places[1].asn();
    why: Text, "", None, "Of a decision: the conditions of the rule that matched, each as key=value with the pattern that matched it in brackets; `no rule matches` of the default." => text(v.text.why);
    ech: Word, "", None, "Whether the ClientHello has the extension encrypted_client_hello (RFC 9849): true or false; null where none was seen. Some clients send it with random bytes." => match v.row.has_ech {
        None => Value::Null,
        Some(true) => Value::Word("true"),
        Some(false) => Value::Word("false"),
    };
});

impl RecordKind for GatewayKind {
    type View<'a> = GatewayEvent<'a>;
    type Batch = GatewayBatch;
    const NAME: &'static str = "gateway_event";
    const VERSION: u16 = 2;
    const ZEEK_PATH: &'static str = "notice";

    fn fields() -> &'static [Field] {
        FIELDS
    }

    #[inline]
    fn value<'a>(view: &GatewayEvent<'a>, column: usize) -> Value<'a>
    where
        'a: 'a,
    {
        read_column(view, column)
    }

    fn text_line() -> &'static [&'static str] {
        &[
            "ts_ns",
            "event",
            "action",
            "application",
            "rule",
            "client_ip",
            "client_port",
            "server_ip",
            "server_port",
            "file_name",
            "size",
            "verdict",
            "detail",
            "from",
            "to",
            "message",
        ]
    }

    fn line() -> &'static [LineCell] {
        const CELLS: &[LineCell] = &[
            LineCell::new("time", 12, Cell::Moment(&["ts_ns"])),
            ENDS,
            LineCell::new(
                "event",
                9,
                Cell::Outcome {
                    of: &["event"],
                    good: &["decided", "file", "message"],
                },
            ),
            LineCell::new("action", 7, Cell::First(&["action"])),
            LineCell::new("application", 11, Cell::First(&["application"])),
            LineCell::new("rule", 10, Cell::First(&["rule"])),
            LineCell::new(
                "what",
                20,
                Cell::Texts(&["host", "file_name", "detail", "message"], " "),
            ),
        ];
        CELLS
    }

    fn zeek_columns() -> &'static [(&'static str, ZeekColumn)] {
        const fn column(name: &'static str, kind: &'static str) -> ZeekColumn {
            ZeekColumn { name, kind }
        }
        const COLUMNS: &[(&str, ZeekColumn)] = &[
            ("ts_ns", column("ts", "time")),
            ("client_ip", column("id.orig_h", "addr")),
            ("client_port", column("id.orig_p", "port")),
            ("server_ip", column("id.resp_h", "addr")),
            ("server_port", column("id.resp_p", "port")),
            ("protocol", column("proto", "enum")),
            ("event", column("note", "enum")),
            ("detail", column("msg", "string")),
            ("file_name", column("sub", "string")),
            ("action", column("actions", "set[enum]")),
            ("application", column("service", "string")),
            ("rule", column("rule", "string")),
            ("sha256", column("sha256", "string")),
            ("verdict", column("verdict", "string")),
            ("from", column("from", "string")),
            ("to", column("to", "string")),
            ("message", column("message", "string")),
            ("client_country", column("client_country", "string")),
            ("client_asn", column("client_asn", "count")),
            ("server_country", column("server_country", "string")),
            ("server_asn", column("server_asn", "count")),
        ];
        COLUMNS
    }

    fn time_ns(view: &GatewayEvent<'_>) -> u64 {
        view.row.ts_ns
    }

    #[inline]
    fn endpoints(view: &GatewayEvent<'_>) -> [Endpoint; 2] {
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
    fn an_event_comes_back_as_it_went_in() {
        let mut batch = GatewayBatch::default();
        let row = GatewayRow {
            ts_ns: 7,
            event: GatewayEventKind::File,
            sha256: Some([0xa5; 32]),
            is_complete: Some(true),
            ..GatewayRow::default()
        };
        let text = GatewayText {
            file_name: b"song.mp3",
            stored: b"1-song.mp3",
            ..GatewayText::default()
        };
        batch.push(GatewayRow::default(), &GatewayText::default());
        batch.push(row, &text);
        let event = batch.get(1).expect("the second event");
        assert_eq!((*event.row, event.text), (row, text));
        let column = |name| {
            let at = GatewayKind::column(name).expect("a column of this name");
            GatewayKind::value(&event, at)
        };
        assert_eq!(column("sha256"), Value::Text("a5".repeat(32).as_bytes()));
        assert_eq!(column("complete"), Value::Word("true"));
        assert_eq!(column("message"), Value::Null);
        let mut copy = GatewayBatch::default();
        copy.push_view(&event);
        assert_eq!(copy.get(0).map(|event| event.text), Some(text));
    }
}
