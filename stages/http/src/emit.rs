//! From paired (or lonely) halves to records.

use linkweir_proto::http1::BodyLength;
use linkweir_record::{HttpBatch, HttpRow, HttpState, Text, Web};
use linkweir_stream::Segment;

use crate::body::{Bodies, BodyEnd};
use crate::config::HttpConfig;
use crate::events::{Content, Events, Format};
use crate::records::{Records, RequestParts, ResponseParts, row_of};
use crate::web::Connections;

/// Everything behind the table: what turns halves into records and counts them.
#[derive(Debug)]
pub(crate) struct Output {
    pub(crate) records: Records,
    /// With time to last byte; else from the first stream on.
    pub(crate) bodies: Option<Bodies>,
    /// Whether all records wait for the end of their bodies, not only those of streams.
    pub(crate) holds_all: bool,
    max_pending: usize,
    seed: u64,
    /// Connections of HTTP/2 and TLS.
    pub(crate) web: Connections,
}

impl Output {
    pub(crate) fn new(config: &HttpConfig) -> Self {
        Self {
            records: Records::new(config),
            bodies: config
                .ttlb
                .then(|| Bodies::new(config.max_pending, config.hash_seed)),
            holds_all: config.ttlb,
            max_pending: config.max_pending,
            seed: config.hash_seed,
            web: Connections::new(config),
        }
    }

    /// Writes a record of HTTP/1.x, with the header fields that are kept, unless the filters hold it back.
    #[inline]
    pub(crate) fn record(
        &mut self,
        row: HttpRow,
        text: &Text<'_>,
        fields: [&[u8]; 2],
        out: &mut HttpBatch,
    ) {
        let has_fields = fields.iter().any(|values| !values.is_empty());
        if self.web.is_empty() && self.records.keeps_addresses() && !has_fields {
            return self.records.record_clear(row, text, out);
        }
        let mut label = self.web.label(&row);
        if has_fields {
            label.get_or_insert_default().fields = fields;
        }
        self.records.record_web(row, text, label, out);
    }

    /// A response that is a stream begins, of which `begun` is there; nothing where not `all` of it comes here, or there
    /// are too many.
    #[cold]
    pub(crate) fn begin_stream(
        &mut self,
        format: Format,
        length: BodyLength,
        begun: &Segment<'_>,
        all: bool,
    ) -> Option<Box<Content>> {
        if !all {
            self.records.stats.streams.unmeasured += 1;
            return None;
        }
        let (max_pending, seed) = (self.max_pending, self.seed);
        let bodies = self
            .bodies
            .get_or_insert_with(|| Bodies::new(max_pending, seed));
        if !bodies.has_room_for_stream() {
            self.records.stats.streams.unmeasured += 1;
            return None;
        }
        let mut content = Box::new(Content::new(format, length, begun.seq));
        if begun.len > 0 {
            bodies.begin_content(&mut content, begun);
        }
        Some(content)
    }

    /// Writes the record of a stream of HTTP/1.x.
    pub(crate) fn record_stream(
        &mut self,
        row: HttpRow,
        text: &Text<'_>,
        fields: [&[u8]; 2],
        events: &Events,
        out: &mut HttpBatch,
    ) {
        let columns = events.columns(row.request_ts_ns);
        let stats = &mut self.records.stats;
        stats.streams.count(&columns, &events.times, text.host);
        let label = self.web.label(&row).unwrap_or_default();
        let label = Web {
            events: Some(columns),
            fields,
            ..label
        };
        self.records.record_web(row, text, Some(label), out);
    }

    /// A request and its final response; with time to last byte the record waits for the body, and that of a stream for
    /// its events. Whether a stream goes on from here.
    #[inline]
    pub(crate) fn complete(
        &mut self,
        request: &RequestParts<'_>,
        response: &ResponseParts<'_>,
        end: BodyEnd,
        content: Option<Box<Content>>,
        out: &mut HttpBatch,
    ) -> bool {
        let mut row = request_row(request);
        row.response_ts_ns = Some(response.ts_ns);
        row.response_bytes = response.bytes;
        row.status_code = Some(response.status_code);
        row.version = (1, response.minor);
        row.retransmissions = request
            .retransmissions
            .saturating_add(response.retransmissions);
        row.vlan = request.vlan.or(response.vlan);
        row.state = HttpState::Complete;
        let stats = &mut self.records.stats;
        stats.transactions += 1;
        let took = response.ts_ns.saturating_sub(request.ts_ns);
        stats.response_time.record(took);
        let text = Text {
            reason_phrase: response.reason_phrase,
            content_type: response.content_type,
            ..request_text(request)
        };
        let fields = [request.fields, response.fields];
        match &mut self.bodies {
            Some(bodies) if self.holds_all || content.is_some() => {
                let is_stream = content.is_some();
                match bodies.hold(row, &text, fields, end, content) {
                    None => return is_stream,
                    Some((row, None)) => self.record(row, &text, fields, out),
                    Some((row, Some(content))) => {
                        self.record_stream(row, &text, fields, &content.events, out);
                    }
                }
            }
            _ => self.record(row, &text, fields, out),
        }
        false
    }

    /// A request and its final response, which came first: what followed its head has passed.
    pub(crate) fn complete_late(
        &mut self,
        request: &RequestParts<'_>,
        response: &ResponseParts<'_>,
        end: BodyEnd,
        out: &mut HttpBatch,
    ) {
        if Format::of(response.content_type, b"").is_some() {
            self.records.stats.streams.unmeasured += 1;
        }
        self.complete(request, response, end, None, out);
    }

    /// A request that nothing answered.
    pub(crate) fn unanswered(&mut self, request: &RequestParts<'_>, out: &mut HttpBatch) {
        let mut row = request_row(request);
        row.state = HttpState::Unanswered;
        self.record(row, &request_text(request), [request.fields, &[]], out);
    }

    /// A final response that nothing asked for.
    pub(crate) fn orphan(&mut self, response: &ResponseParts<'_>, out: &mut HttpBatch) {
        let row = HttpRow {
            response_ts_ns: Some(response.ts_ns),
            response_bytes: response.bytes,
            status_code: Some(response.status_code),
            retransmissions: response.retransmissions,
            vlan: response.vlan,
            version: (1, response.minor),
            state: HttpState::Orphan,
            ..row_of(&response.connection)
        };
        let text = Text {
            reason_phrase: response.reason_phrase,
            content_type: response.content_type,
            ..Text::default()
        };
        self.record(row, &text, [&[], response.fields], out);
    }
}

#[inline]
fn request_row(request: &RequestParts<'_>) -> HttpRow {
    HttpRow {
        request_ts_ns: Some(request.ts_ns),
        request_bytes: request.bytes,
        interim_responses: request.interim_responses,
        retransmissions: request.retransmissions,
        vlan: request.vlan,
        version: (1, request.minor),
        ..row_of(&request.connection)
    }
}

#[inline]
fn request_text<'a>(request: &RequestParts<'a>) -> Text<'a> {
    Text {
        method: request.method,
        uri: request.target,
        host: request.host,
        user_agent: request.user_agent,
        ..Text::default()
    }
}
