//! What becomes of a stream of HTTP/2 or HTTP/3: its events, if its response has any, and its record.

use linkweir_record::{HttpRow, HttpState, Text, Web};
use linkweir_wire::Side;

use super::{Ear, Stream};
use crate::events::{Events, Format};
use crate::records::row_of;

/// The events of a response.
#[derive(Debug)]
pub(super) struct Measured {
    events: Events,
    /// Losses of the server's direction so far.
    losses: u64,
}

impl Measured {
    pub(super) fn new(format: Format, losses: u64) -> Self {
        Self {
            events: Events::new(format),
            losses,
        }
    }

    /// The content has ended.
    pub(super) fn end(&mut self) {
        self.events.end();
    }

    /// Content, of which `len` bytes were on the wire, behind so many losses of the server's direction.
    pub(super) fn content(&mut self, bytes: &[u8], len: u32, losses: u64, ts_ns: u64) {
        if losses > self.losses {
            self.losses = losses;
            self.events.miss(None);
        }
        self.events.content(bytes, ts_ns);
        let missing = len.saturating_sub(u32::try_from(bytes.len()).unwrap_or(len));
        if missing > 0 {
            self.events.miss(Some(missing));
        }
    }
}

impl Ear<'_> {
    /// The record of a stream that is over.
    pub(super) fn write(&mut self, stream: &Stream, end_ns: Option<u64>) {
        let (request, response) = (stream.request, stream.response);
        if request.is_none() && response.is_none() {
            return;
        }
        let mut scratch = std::mem::take(&mut self.common.scratch);
        let whole = self.common.texts.read(&stream.text, &mut scratch);
        let mut rest = whole;
        let parts = stream.lens.map(|len| {
            let (part, behind) = rest.split_at(usize::from(len).min(rest.len()));
            rest = behind;
            part
        });
        let [method, uri, host, user_agent, fields] = parts;
        let type_len = usize::from(stream.type_len).min(rest.len());
        let (content_type, answer_fields) = rest.split_at(type_len);
        let stats = &mut self.records.stats;
        if request.is_some() && !stream.is_counted {
            stats.requests += 1;
            match method {
                [] => stats.count_other_methods(1),
                method => stats.count_method(method),
            }
        }
        if response.is_some() {
            stats.responses += 1;
            if let Some(code) = stream.status {
                stats.count_status(code);
            }
        }
        let state = match (request, response) {
            (Some(request), Some(response)) => {
                stats.transactions += 1;
                let took = response.from_ns.saturating_sub(request.from_ns);
                stats.response_time.record(took);
                HttpState::Complete
            }
            (_, None) => {
                stats.unanswered += 1;
                HttpState::Unanswered
            }
            (None, _) => {
                stats.orphans += 1;
                HttpState::Orphan
            }
        };
        let is_partial = [request, response]
            .iter()
            .flatten()
            .any(|message| message.is_partial);
        stats.unknown_names += u64::from(is_partial);
        let row = HttpRow {
            request_ts_ns: request.map(|request| request.from_ns),
            response_ts_ns: response.map(|response| response.from_ns),
            ttlb_ns: end_ns
                .zip(request)
                .filter(|_| response.is_some())
                .map(|(end_ns, request)| end_ns.saturating_sub(request.from_ns)),
            request_bytes: request.map(|request| request.bytes),
            response_bytes: response.map(|response| response.bytes),
            status_code: stream.status,
            interim_responses: stream.interim,
            vlan: stream.vlan,
            version: self.version,
            state,
            ..row_of(&self.connection)
        };
        let text = Text {
            method,
            uri,
            host,
            user_agent,
            content_type,
            ..Text::default()
        };
        let events = stream.events.as_deref().map(|measured| {
            let events = &measured.events;
            let columns = events.columns(row.request_ts_ns);
            let stats = &mut self.records.stats.streams;
            stats.count(&columns, &events.times, host);
            columns
        });
        let web = Web {
            is_partial,
            events,
            stream_id: Some(stream.id),
            grpc: stream.call.as_ref().map(|call| call.finish()),
            fields: [fields, answer_fields],
            ..*self.web
        };
        self.records.record_web(row, &text, Some(web), self.out);
        self.common.scratch = scratch;
    }

    /// Content of a stream is missing, nobody knows what.
    pub(in crate::web) fn miss(&mut self, id: u32) {
        if self.side == Side::Server
            && let Ok(at) = self.streams.find(id)
            && let Some(stream) = self.streams.waiting.get_mut(at)
            && let Some(measured) = &mut stream.events
        {
            measured.events.miss(None);
        }
    }
}
