//! Makes a record of each session.

use std::collections::HashMap;
use std::net::SocketAddr;

use linkweir_record::{LoadBatch, LoadRow, RecordBatch as _};

use super::Roll;
use crate::outcome::{Exchange, SessionEnd};

/// What is kept of the first request of a session until the session ends.
#[derive(Debug, Clone, Copy)]
struct First {
    client_port: u16,
    response_time_ns: Option<u64>,
    service_time_ns: Option<u64>,
    first_byte_ns: Option<u64>,
}

/// Records of sessions that ended, and what is known of those that are open: at most one entry for each.
#[derive(Debug, Default)]
pub(super) struct Records {
    batch: LoadBatch,
    open: HashMap<u64, First>,
}

impl Records {
    /// A request is over; the first one of a session that was sent is kept.
    pub(super) fn exchange(&mut self, exchange: &Exchange, client_port: u16) {
        if exchange.sent.is_none() {
            return;
        }
        self.open.entry(exchange.session).or_insert_with(|| First {
            client_port,
            response_time_ns: exchange.response_time_ns(),
            service_time_ns: exchange.service_time_ns(),
            first_byte_ns: exchange.first_byte_ns(),
        });
    }

    /// A session is over.
    pub(super) fn session<R: Roll>(
        &mut self,
        end: &SessionEnd,
        roll: &R,
        group: &str,
        server: SocketAddr,
    ) {
        let first = self.open.remove(&end.session);
        let row = LoadRow {
            session: end.session,
            client_ip: roll.address(end.client),
            client_port: first.map_or(0, |first| first.client_port),
            server_ip: server.ip(),
            server_port: server.port(),
            planned_ts_ns: end.planned.as_nanos(),
            started_ts_ns: end.started.map(linkweir_wire::Timestamp::as_nanos),
            ended_ts_ns: end.ended.as_nanos(),
            response_time_ns: first.and_then(|first| first.response_time_ns),
            service_time_ns: first.and_then(|first| first.service_time_ns),
            first_byte_ns: first.and_then(|first| first.first_byte_ns),
            pages: end.pages,
            requests: end.requests,
            responses: end.responses,
            connections: end.connections,
            request_bytes: end.request_bytes,
            response_bytes: end.response_bytes,
            status_code: (end.last_status > 0).then_some(end.last_status),
            statuses: end.statuses,
            failure: end.failure.map_or("", crate::outcome::Failure::as_str),
        };
        self.batch.push(row, group.as_bytes());
    }

    /// Number of records that wait to be taken.
    pub(super) fn len(&self) -> usize {
        self.batch.len()
    }

    /// Whether no session is open.
    #[cfg(test)]
    pub(super) fn is_idle(&self) -> bool {
        self.open.is_empty()
    }

    /// Gives the records away and takes an empty batch for the next.
    pub(super) fn take(&mut self, into: &mut LoadBatch) {
        into.clear();
        std::mem::swap(&mut self.batch, into);
    }
}
