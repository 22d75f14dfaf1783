//! From paired (or lonely) halves to records: filters, anonymised addresses, counters.

use linkweir_record::{Anonymizer, HttpBatch, HttpRow, HttpState, Source, Text, Web};

use crate::body::{Bodies, BodyEnd};
use crate::config::HttpConfig;
use crate::key::Connection;
use crate::stats::HttpStats;
use crate::web::Connections;

/// A request as a record needs it; texts borrow from the packet or from the pool.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RequestParts<'a> {
    pub(crate) connection: Connection,
    pub(crate) ts_ns: u64,
    pub(crate) vlan: Option<u16>,
    pub(crate) bytes: Option<u64>,
    pub(crate) minor: u8,
    pub(crate) interim_responses: u16,
    pub(crate) retransmissions: u16,
    pub(crate) method: &'a [u8],
    pub(crate) target: &'a [u8],
    pub(crate) host: &'a [u8],
    pub(crate) user_agent: &'a [u8],
}

/// A final response as a record needs it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ResponseParts<'a> {
    pub(crate) connection: Connection,
    pub(crate) ts_ns: u64,
    pub(crate) vlan: Option<u16>,
    pub(crate) bytes: Option<u64>,
    pub(crate) minor: u8,
    pub(crate) retransmissions: u16,
    pub(crate) status_code: u16,
    pub(crate) reason_phrase: &'a [u8],
    pub(crate) content_type: &'a [u8],
}

/// Everything behind the table: what turns halves into records and counts them.
#[derive(Debug)]
pub(crate) struct Output {
    filter: Filter,
    anonymizer: Option<Anonymizer>,
    pub(crate) stats: HttpStats,
    pub(crate) bodies: Option<Bodies>,
    /// Connections of HTTP/2 and TLS.
    pub(crate) web: Connections,
}

/// Which records are wanted.
#[derive(Debug)]
struct Filter {
    host: Vec<u8>,
    url: Vec<u8>,
}

impl Filter {
    #[inline]
    fn passes(&self, text: &Text<'_>) -> bool {
        (self.host.is_empty() && self.url.is_empty()) || self.passes_slowly(text)
    }

    fn passes_slowly(&self, text: &Text<'_>) -> bool {
        let contains = |whole: &[u8], part: &[u8]| {
            part.is_empty() || memchr::memmem::find(whole, part).is_some()
        };
        // Host names have no case (RFC 9110 sec. 4.2.3); paths have.
        contains(&text.host.to_ascii_lowercase(), &self.host)
            && (contains(text.uri, &self.url)
                || contains(&[text.host, text.uri].concat(), &self.url))
    }
}

impl Output {
    pub(crate) fn new(config: &HttpConfig) -> Self {
        Self {
            filter: Filter {
                host: config.host_contains.to_ascii_lowercase(),
                url: config.url_contains.clone(),
            },
            anonymizer: config.anonymizer.clone(),
            stats: HttpStats::default(),
            bodies: config
                .ttlb
                .then(|| Bodies::new(config.max_pending, config.hash_seed)),
            web: Connections::new(config),
        }
    }

    /// Writes a record of HTTP/1.x, unless the filters hold it back.
    #[inline]
    pub(crate) fn record(&mut self, row: HttpRow, text: &Text<'_>, out: &mut HttpBatch) {
        if self.anonymizer.is_none() && self.web.is_empty() {
            self.stats.count_record(row.version, Source::Clear);
            if self.filter.passes(text) {
                out.push(row, text);
            } else {
                self.stats.filtered += 1;
            }
            return;
        }
        self.record_web(row, text, None, out);
    }

    /// Writes a record with what only HTTP/2 and TLS have, unless the filters hold it back.
    pub(crate) fn record_web(
        &mut self,
        mut row: HttpRow,
        text: &Text<'_>,
        web: Option<&Web<'_>>,
        out: &mut HttpBatch,
    ) {
        let label = match web {
            Some(web) => Some(*web),
            None => self.web.label(&row),
        };
        let source = label.map_or(Source::Clear, |web| web.source);
        self.stats.count_record(row.version, source);
        if !self.filter.passes(text) {
            self.stats.filtered += 1;
            return;
        }
        let mut push = |row, text: &Text<'_>, web: Option<Web<'_>>| match web {
            Some(web) => out.push_web(row, text, &web),
            None => out.push(row, text),
        };
        let Some(anonymizer) = &self.anonymizer else {
            return push(row, text, label);
        };
        let sni = label.and_then(|web| anonymizer.replace_host(web.sni));
        let label = label.map(|web| Web {
            sni: sni.as_deref().unwrap_or(web.sni),
            ..web
        });
        row.client_ip = anonymizer.replace(row.client_ip);
        row.server_ip = anonymizer.replace(row.server_ip);
        // The hash of the real addresses would give them away, and so would a host that is one.
        let connection = Connection {
            client: (row.client_ip, row.client_port),
            server: (row.server_ip, row.server_port),
        };
        row.flow_hash = connection.flow_hash();
        let Some(host) = anonymizer.replace_host(text.host) else {
            return push(row, text, label);
        };
        let uri = match memchr::memmem::find(text.uri, text.host) {
            Some(at) if text.uri.first() != Some(&b'/') => {
                let (before, rest) = text.uri.split_at(at);
                [
                    before,
                    &host,
                    rest.get(text.host.len()..).unwrap_or_default(),
                ]
                .concat()
            }
            _ => text.uri.to_vec(),
        };
        let text = Text {
            host: &host,
            uri: &uri,
            ..*text
        };
        push(row, &text, label);
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
        self.stats.transactions += 1;
        self.stats
            .response_time
            .record(response.ts_ns.saturating_sub(request.ts_ns));
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

/// A row that says who talked to whom.
#[inline]
pub(crate) fn row_of(connection: &Connection) -> HttpRow {
    HttpRow {
        client_ip: connection.client.0,
        client_port: connection.client.1,
        server_ip: connection.server.0,
        server_port: connection.server.1,
        flow_hash: connection.flow_hash(),
        ..HttpRow::default()
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
