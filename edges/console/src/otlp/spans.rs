//! Transactions as spans, by the semantic conventions of HTTP servers, and the queue that they wait in.
//!
//! A span begins with the first packet of the request and ends with that of the response, with its last byte where that is
//! known (`--ttlb`). It is what passed the capture, beside what client and server say of themselves: a child of the
//! span that sent the request where the request has a `traceparent`, else the root of a trace of its own.
//!
//! Spans are written as they go on the wire where records come, at the cost of a record of text. The queue has room for
//! [`BATCHES`] batches of at most about [`BATCH_BYTES`]; what finds no room is counted, and nobody waits.

use std::fmt::Write as _;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};

use linkweir_engine::{Sink, SinkError};
use linkweir_record::{HttpBatch, HttpKind, HttpState, HttpTransaction, RecordBatch as _};

use super::wire::Message;

/// Batches that wait at most.
const BATCHES: usize = 64;
/// From how many bytes on a batch is closed.
pub(super) const BATCH_BYTES: usize = 128 * 1024;
/// Longest text of an attribute, bytes.
const MAX_TEXT: usize = 1024;
/// `SPAN_KIND_SERVER`.
const SERVER: u64 = 2;
/// `STATUS_CODE_ERROR`.
const ERROR: u64 = 2;
/// Methods that a span may be named by (RFC 9110 sec. 9, RFC 5789); others are `_OTHER`.
const METHODS: [&[u8]; 9] = [
    b"GET", b"HEAD", b"POST", b"PUT", b"DELETE", b"CONNECT", b"OPTIONS", b"TRACE", b"PATCH",
];

/// Spans that are ready to be sent: `ScopeSpans.spans`, one after the other.
#[derive(Debug, Default)]
pub(super) struct Ready {
    pub(super) fields: Vec<u8>,
    pub(super) count: u64,
}

#[derive(Debug)]
struct Shared {
    sender: SyncSender<Ready>,
    receiver: Mutex<Option<Receiver<Ready>>>,
    lost: AtomicU64,
    /// Spans that were handed over and of which nobody knows yet what became of them.
    waiting: AtomicU64,
}

/// Where spans wait for the exporter. A clone is another handle on the same.
#[derive(Debug, Clone)]
pub struct SpanQueue(Arc<Shared>);

impl Default for SpanQueue {
    fn default() -> Self {
        let (sender, receiver) = sync_channel(BATCHES);
        Self(Arc::new(Shared {
            sender,
            receiver: Mutex::new(Some(receiver)),
            lost: AtomicU64::new(0),
            waiting: AtomicU64::new(0),
        }))
    }
}

impl SpanQueue {
    /// A sink that makes a span of every transaction with a request. It never fails and never waits.
    #[must_use]
    pub fn sink(&self) -> Box<dyn Sink<HttpKind>> {
        Box::new(SpanSink {
            queue: self.clone(),
            batch: Message::default(),
            count: 0,
        })
    }

    /// What waits, for the one who sends it; `None` for a second one.
    pub(super) fn take(&self) -> Option<Receiver<Ready>> {
        let mut receiver = self
            .0
            .receiver
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        receiver.take()
    }

    /// Spans that found no room since the last call.
    pub(super) fn take_lost(&self) -> u64 {
        self.0.lost.swap(0, Ordering::Relaxed)
    }

    /// What became of so many is known now; false where they were given up before.
    pub(super) fn settle(&self, count: u64) -> bool {
        let less = |waiting: u64| waiting.checked_sub(count);
        let waiting = &self.0.waiting;
        waiting
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, less)
            .is_ok()
    }

    /// Spans that still wait; they are given up.
    pub(super) fn give_up(&self) -> u64 {
        self.0.waiting.swap(0, Ordering::Relaxed)
    }
}

#[derive(Debug)]
struct SpanSink {
    queue: SpanQueue,
    batch: Message,
    count: u64,
}

impl SpanSink {
    fn send(&mut self) {
        if self.count == 0 {
            return;
        }
        let ready = Ready {
            fields: std::mem::take(&mut self.batch.0),
            count: std::mem::take(&mut self.count),
        };
        let shared = &self.queue.0;
        shared.waiting.fetch_add(ready.count, Ordering::Relaxed);
        let sent = shared.sender.try_send(ready);
        if let Err(TrySendError::Full(ready) | TrySendError::Disconnected(ready)) = sent {
            self.queue.settle(ready.count);
            shared.lost.fetch_add(ready.count, Ordering::Relaxed);
        }
    }
}

impl Sink<HttpKind> for SpanSink {
    fn write(&mut self, batch: &HttpBatch) -> Result<(), SinkError> {
        for view in batch.views() {
            if let Some(start) = view.row.request_ts_ns {
                self.batch.within(2, |span| one_span(span, &view, start));
                self.count += 1;
            }
            if self.batch.0.len() >= BATCH_BYTES {
                self.send();
            }
        }
        Ok(())
    }

    fn flush(&mut self) -> Result<(), SinkError> {
        self.send();
        Ok(())
    }

    fn finish(&mut self) -> Result<(), SinkError> {
        self.send();
        Ok(())
    }
}

/// Mixes the bits of a number (`SplitMix64`).
const fn mixed(number: u64) -> u64 {
    let z = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// An identifier of a span: the same for the same transaction, wherever and however often it is read.
fn identifier(view: &HttpTransaction<'_>, start: u64) -> u64 {
    let row = view.row;
    let stream = view.web().and_then(|web| web.stream_id).unwrap_or(0);
    let ports = u64::from(row.client_port) << 16 | u64::from(row.server_port);
    let place = u64::from(row.flow_hash) << 32 | u64::from(stream);
    // Zero is no identifier.
    mixed(mixed(mixed(start) ^ place) ^ ports).max(1)
}

/// The bytes that hexadecimal digits stand for.
fn of_digits<const N: usize>(digits: &[u8]) -> Option<[u8; N]> {
    let mut bytes = [0; N];
    for (byte, pair) in bytes.iter_mut().zip(digits.chunks_exact(2)) {
        let pair = std::str::from_utf8(pair).ok()?;
        *byte = u8::from_str_radix(pair, 16).ok()?;
    }
    (digits.len() == 2 * N).then_some(bytes)
}

fn cut(text: &[u8]) -> &[u8] {
    text.get(..MAX_TEXT).unwrap_or(text)
}

fn one_span(out: &mut Message, view: &HttpTransaction<'_>, start: u64) {
    let row = view.row;
    let id = identifier(view, start);
    let traced = view
        .trace()
        .and_then(|(trace, parent)| Some((of_digits::<16>(trace)?, of_digits::<8>(parent)?)));
    if let Some((trace, parent)) = traced {
        out.bytes(1, &trace);
        out.bytes(4, &parent);
    } else {
        let trace = u128::from(id) << 64 | u128::from(mixed(id));
        out.bytes(1, &trace.to_be_bytes());
    }
    out.bytes(2, &id.to_be_bytes());
    let method = view.text.method;
    let name = match METHODS.iter().find(|known| **known == method) {
        Some(known) => known,
        None => &b"HTTP"[..],
    };
    out.text(5, name);
    out.number(6, SERVER);
    let last_byte = row.ttlb_ns.map(|length| start.saturating_add(length));
    let end = last_byte.or(row.response_ts_ns).unwrap_or(start).max(start);
    out.fixed(7, start);
    out.fixed(8, end);
    attributes(out, view, name);
    let error = match (row.status_code, row.state) {
        (Some(code @ 500..=599), _) => Some(code.to_string()),
        (_, HttpState::Unanswered) => Some("unanswered".to_owned()),
        _ => None,
    };
    if let Some(error) = error {
        out.attribute(9, "error.type", error.as_bytes());
        out.within(15, |status| status.number(3, ERROR));
    }
    if traced.is_some() {
        // The parent is elsewhere (`SPAN_FLAGS_CONTEXT_HAS_IS_REMOTE`, `..._IS_REMOTE`).
        out.fixed32(16, 0x300);
    }
}

fn attributes(out: &mut Message, view: &HttpTransaction<'_>, name: &[u8]) {
    let (row, text) = (view.row, view.text);
    if !text.method.is_empty() {
        if name == text.method {
            out.attribute(9, "http.request.method", text.method);
        } else {
            out.attribute(9, "http.request.method", b"_OTHER");
            out.attribute(9, "http.request.method_original", cut(text.method));
        }
    }
    if let Some(code) = row.status_code {
        out.integer(9, "http.response.status_code", u64::from(code));
    }
    let web = view.web();
    if !text.uri.is_empty() {
        let at = text.uri.iter().position(|byte| *byte == b'?');
        let (path, query) = text.uri.split_at(at.unwrap_or(text.uri.len()));
        out.attribute(9, "url.path", cut(path));
        if let Some(query) = query.get(1..) {
            out.attribute(9, "url.query", cut(query));
        }
    }
    let is_tls = web.is_some_and(|web| web.tls_version != 0);
    out.attribute(9, "url.scheme", if is_tls { b"https" } else { b"http" });
    let version = row.version_name();
    if !version.is_empty() {
        let version = version
            .strip_suffix(".0")
            .filter(|major| *major != "1")
            .unwrap_or(version);
        out.attribute(9, "network.protocol.name", b"http");
        out.attribute(9, "network.protocol.version", version.as_bytes());
    }
    let mut address = String::new();
    for (name, port_name, ip, port) in [
        (
            "client.address",
            "client.port",
            row.client_ip,
            row.client_port,
        ),
        (
            "network.local.address",
            "network.local.port",
            row.server_ip,
            row.server_port,
        ),
    ] {
        address.clear();
        // Writing to a String cannot fail.
        write!(address, "{}", ip.to_canonical()).ok();
        out.attribute(9, name, address.as_bytes());
        out.integer(9, port_name, u64::from(port));
    }
    let sni = web.map_or(&[][..], |web| web.sni);
    let host = if text.host.is_empty() { sni } else { text.host };
    if host.is_empty() {
        out.attribute(9, "server.address", address.as_bytes());
        out.integer(9, "server.port", u64::from(row.server_port));
    } else {
        let (host, port) = split_port(host, row.server_port);
        out.attribute(9, "server.address", cut(host));
        out.integer(9, "server.port", u64::from(port));
    }
    if !text.user_agent.is_empty() {
        out.attribute(9, "user_agent.original", cut(text.user_agent));
    }
    if let Some(bytes) = row.response_bytes {
        out.integer(9, "linkweir.response_bytes", bytes);
    }
    if row.retransmissions > 0 {
        out.integer(
            9,
            "linkweir.retransmissions",
            u64::from(row.retransmissions),
        );
    }
    if let Some(confidence) = web.and_then(|web| web.confidence) {
        out.attribute(9, "linkweir.confidence", confidence.as_str().as_bytes());
    }
}

/// Host and port of a `Host` field (RFC 9110 sec. 7.2).
fn split_port(host: &[u8], otherwise: u16) -> (&[u8], u16) {
    let Some(colon) = host.iter().rposition(|byte| *byte == b':') else {
        return (host, otherwise);
    };
    let (name, port) = host.split_at(colon);
    let port = port
        .get(1..)
        .and_then(|port| std::str::from_utf8(port).ok());
    let is_name = !name.contains(&b':') || name.ends_with(b"]");
    match port.and_then(|port| port.parse().ok()).filter(|_| is_name) {
        Some(port) => (name, port),
        None => (host, otherwise),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use linkweir_record::{HttpRow, Text};

    fn batch(count: u64) -> HttpBatch {
        let mut batch = HttpBatch::default();
        for n in 0..count {
            let row = HttpRow {
                request_ts_ns: Some(n),
                ..HttpRow::default()
            };
            let text = Text {
                method: b"GET",
                uri: &[b'/'; 1000],
                ..Text::default()
            };
            batch.push(row, &text);
        }
        batch
    }

    #[test]
    fn a_full_queue_loses_spans_and_counts_them() {
        let queue = SpanQueue::default();
        let mut sink = queue.sink();
        for _ in 0..200 {
            sink.write(&batch(100)).unwrap();
        }
        sink.finish().unwrap();
        let lost = queue.take_lost();
        let waiting = queue.take().unwrap();
        let kept: Vec<Ready> = waiting.try_iter().collect();
        let bytes: usize = kept.iter().map(|ready| ready.fields.len()).sum();
        assert_eq!(kept.len(), BATCHES);
        assert!(bytes <= BATCHES * (BATCH_BYTES + 4096), "{bytes}");
        assert!(lost > 0);
        let sum: u64 = kept.iter().map(|ready| ready.count).sum();
        assert_eq!(sum + lost, 20_000);
        assert!(queue.take().is_none());
    }

    #[test]
    fn ports_of_hosts() {
        for (host, want) in [
            (&b"shop.test"[..], (&b"shop.test"[..], 80)),
            (b"shop.test:8080", (b"shop.test", 8080)),
            (b"[2001:db8::1]:81", (b"[2001:db8::1]", 81)),
            (b"2001:db8::1", (b"2001:db8::1", 80)),
            (b"shop.test:x", (b"shop.test:x", 80)),
            (b":", (b":", 80)),
        ] {
            assert_eq!(split_port(host, 80), want);
        }
    }

    #[test]
    fn identifiers_from_digits() {
        assert_eq!(of_digits(b"00ff10"), Some([0, 255, 16]));
        assert_eq!(of_digits::<3>(b"00ff"), None);
        assert_eq!(of_digits::<2>(b"00gg"), None);
    }
}
