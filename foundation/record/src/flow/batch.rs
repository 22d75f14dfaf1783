//! Many flows, and what comes with them.

use super::row::{MESSAGE_TEXTS, Message, MessageRow};
use super::{DNS_TEXTS, DnsRow, FlowKind, FlowRow, StreamRow};
use crate::dns::DnsBatch;
use crate::rows::Span;
use crate::schema::RecordBatch;
use crate::tls::TlsBatch;

/// The texts of a flow; empty where unknown. Bytes as they came from the network.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct FlowText<'a> {
    /// Server name of a TLS or QUIC `ClientHello` (RFC 6066).
    pub sni: &'a [u8],
    /// Common name of the server's certificate.
    pub certificate_name: &'a [u8],
    /// Application protocols that the client offered, joined by commas (RFC 7301).
    pub client_alpn: &'a [u8],
    /// The one that the server chose.
    pub server_alpn: &'a [u8],
    /// The name that the client last resolved to the server's address.
    pub fqdn: &'a [u8],
    /// Host of the first HTTP request.
    pub http_host: &'a [u8],
    /// User agent in the transport parameters of QUIC.
    pub quic_user_agent: &'a [u8],
    /// JA4 of the client.
    pub ja4: &'a [u8],
}

/// Texts of a flow.
const TEXTS: usize = 8;

/// One flow, borrowed from its batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Flow<'a> {
    /// Its numbers.
    pub row: &'a FlowRow,
    /// Its texts.
    pub text: FlowText<'a>,
}

/// A question or record of DNS, borrowed from its batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DnsLine<'a> {
    /// The fixed part.
    pub row: &'a DnsRow,
    /// The name asked for, and the name that it stands for; empty where there is none.
    pub texts: [&'a [u8]; DNS_TEXTS],
}

/// Flows in the order in which they ended, with the HTTP heads seen meanwhile (where asked for) and
/// the steps that ended.
#[derive(Debug, Clone, Default)]
pub struct FlowBatch {
    rows: Vec<FlowRow>,
    spans: Vec<Span<TEXTS>>,
    messages: Vec<MessageRow>,
    message_spans: Vec<Span<MESSAGE_TEXTS>>,
    streams: Vec<StreamRow>,
    dns: Vec<DnsRow>,
    dns_spans: Vec<Span<DNS_TEXTS>>,
    arena: Vec<u8>,
    steps: Vec<std::sync::Arc<linkweir_sketch::Step>>,
    /// Queries of DNS that ended, where they are asked for.
    pub queries: DnsBatch,
    /// Handshakes of TLS that ended, where they are asked for.
    pub handshakes: TlsBatch,
}

impl FlowBatch {
    /// Appends a flow.
    pub fn push(&mut self, row: FlowRow, text: &FlowText<'_>) {
        let texts = [
            text.sni,
            text.certificate_name,
            text.client_alpn,
            text.server_alpn,
            text.fqdn,
            text.http_host,
            text.quic_user_agent,
            text.ja4,
        ];
        self.rows.push(row);
        self.spans.push(Span::fill(&mut self.arena, texts));
    }

    /// Appends the head of an HTTP message.
    pub fn push_message(&mut self, row: MessageRow, texts: [&[u8]; MESSAGE_TEXTS]) {
        self.messages.push(row);
        self.message_spans.push(Span::fill(&mut self.arena, texts));
    }

    /// Appends a question or record of DNS.
    pub fn push_dns(&mut self, row: DnsRow, texts: [&[u8]; DNS_TEXTS]) {
        self.dns.push(row);
        self.dns_spans.push(Span::fill(&mut self.arena, texts));
    }

    /// The questions and records of DNS, in the order in which they were seen.
    pub fn dns(&self) -> impl ExactSizeIterator<Item = DnsLine<'_>> {
        let all = self.dns.iter().zip(&self.dns_spans);
        all.map(|(row, span)| DnsLine {
            row,
            texts: span.texts(&self.arena),
        })
    }

    /// How many there are of them.
    #[inline]
    #[must_use]
    pub const fn dns_count(&self) -> usize {
        self.dns.len()
    }

    /// The fixed parts of the questions and records from number `from` on.
    pub fn dns_from(&mut self, from: usize) -> &mut [DnsRow] {
        self.dns.get_mut(from..).unwrap_or_default()
    }

    /// Appends a stream of media, or of reports on one, of a flow that has ended.
    pub fn push_stream(&mut self, row: StreamRow) {
        self.streams.push(row);
    }

    /// The streams of the flows that ended, in their order.
    #[must_use]
    pub fn streams(&self) -> &[StreamRow] {
        &self.streams
    }

    /// Appends a step that has ended.
    pub fn push_step(&mut self, step: linkweir_sketch::Step) {
        self.steps.push(std::sync::Arc::new(step));
    }

    /// The heads of HTTP messages, in the order in which they were seen.
    pub fn messages(&self) -> impl Iterator<Item = Message<'_>> {
        self.messages
            .iter()
            .zip(&self.message_spans)
            .map(|(row, span)| Message {
                row,
                texts: span.texts(&self.arena),
            })
    }

    /// Number of heads of HTTP messages.
    #[inline]
    #[must_use]
    pub const fn message_count(&self) -> usize {
        self.messages.len()
    }

    /// The fixed parts of the messages from number `from` on.
    pub fn messages_from(&mut self, from: usize) -> &mut [MessageRow] {
        self.messages.get_mut(from..).unwrap_or_default()
    }

    /// The steps that ended, in order; of each shard its own.
    #[must_use]
    pub fn steps(&self) -> &[std::sync::Arc<linkweir_sketch::Step>] {
        &self.steps
    }
}

impl RecordBatch<FlowKind> for FlowBatch {
    #[inline]
    fn len(&self) -> usize {
        self.rows.len()
    }

    /// Whether there is nothing at all: no flow, and nothing that comes with flows.
    fn is_empty(&self) -> bool {
        self.rows.is_empty()
            && self.messages.is_empty()
            && self.streams.is_empty()
            && self.dns.is_empty()
            && self.steps.is_empty()
            && self.queries.is_empty()
            && self.handshakes.is_empty()
    }

    #[inline]
    fn get(&self, at: usize) -> Option<Flow<'_>> {
        let row = self.rows.get(at)?;
        let [
            sni,
            certificate_name,
            client_alpn,
            server_alpn,
            fqdn,
            http_host,
            quic_user_agent,
            ja4,
        ] = self.spans.get(at)?.texts(&self.arena);
        let text = FlowText {
            sni,
            certificate_name,
            client_alpn,
            server_alpn,
            fqdn,
            http_host,
            quic_user_agent,
            ja4,
        };
        Some(Flow { row, text })
    }

    fn clear(&mut self) {
        self.rows.clear();
        self.spans.clear();
        self.messages.clear();
        self.message_spans.clear();
        self.streams.clear();
        self.dns.clear();
        self.dns_spans.clear();
        self.arena.clear();
        self.steps.clear();
        self.queries.clear();
        self.handshakes.clear();
    }

    fn push_view(&mut self, view: &Flow<'_>) {
        self.push(*view.row, &view.text);
    }

    fn memory_bytes(&self) -> usize {
        self.rows.len() * (size_of::<FlowRow>() + size_of::<Span<TEXTS>>())
            + self.messages.len() * (size_of::<MessageRow>() + size_of::<Span<MESSAGE_TEXTS>>())
            + self.streams.len() * size_of::<StreamRow>()
            + self.dns.len() * (size_of::<DnsRow>() + size_of::<Span<DNS_TEXTS>>())
            + self.arena.len()
            + self.queries.memory_bytes()
            + self.handshakes.memory_bytes()
    }

    /// A step takes 150 to 600 kB.
    fn is_bulky(&self) -> bool {
        !self.steps.is_empty()
    }
}
