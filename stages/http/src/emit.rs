//! From paired (or lonely) halves to records.

use linkweir_record::{HttpBatch, HttpRow, HttpState, Text};

use crate::body::{Bodies, BodyEnd};
use crate::config::HttpConfig;
use crate::records::{Records, RequestParts, ResponseParts, row_of};
use crate::web::Connections;

/// Everything behind the table: what turns halves into records and counts them.
#[derive(Debug)]
pub(crate) struct Output {
    pub(crate) records: Records,
    pub(crate) bodies: Option<Bodies>,
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
            web: Connections::new(config),
        }
    }

    /// Writes a record of HTTP/1.x, unless the filters hold it back.
    #[inline]
    pub(crate) fn record(&mut self, row: HttpRow, text: &Text<'_>, out: &mut HttpBatch) {
        if self.web.is_empty() && self.records.keeps_addresses() {
            return self.records.record_clear(row, text, out);
        }
        let label = self.web.label(&row);
        self.records.record_web(row, text, label, out);
    }

    /// A request and its final response; with time to last byte the record waits for the body.
    #[inline]
    pub(crate) fn complete(
        &mut self,
        request: &RequestParts<'_>,
        response: &ResponseParts<'_>,
        end: BodyEnd,
        out: &mut HttpBatch,
    ) {
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
        match &mut self.bodies {
            None => self.record(row, &text, out),
            Some(bodies) => {
                if let Some(row) = bodies.hold(row, &text, end) {
                    self.record(row, &text, out);
                }
            }
        }
    }

    /// A request that nothing answered.
    pub(crate) fn unanswered(&mut self, request: &RequestParts<'_>, out: &mut HttpBatch) {
        let mut row = request_row(request);
        row.state = HttpState::Unanswered;
        self.record(row, &request_text(request), out);
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
        self.record(row, &text, out);
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
