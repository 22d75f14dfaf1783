//! Connections of QUIC that the secrets of a key log open: HTTP/3.

use linkweir_keys::{About, QuicConnection, StreamListener, StreamPart};
use linkweir_proto::http2::direction::Listener as _;
use linkweir_proto::quic::{InitialKeys, Kind, LongHeader, Version};
use linkweir_record::{HttpBatch, Source, Web};
use linkweir_table::Table;
use linkweir_wire::Side;

use super::http3::{self, Http3};
use super::streams::Listening;
use super::{Connections, Reading, Tools, columns};
use crate::key::Connection;
use crate::matcher::Matcher;

/// Connections that are followed at once.
const MAX_CONNECTIONS: usize = 16_384;
/// The least datagram with the first packet of a client (RFC 9000 sec. 14.1).
pub(crate) const LEAST_FIRST: usize = 1200;

/// A connection that is followed.
#[derive(Debug)]
struct Followed {
    quic: QuicConnection,
    http3: Http3,
    /// Bytes of it that are counted.
    held: usize,
}

/// What the table has of a connection.
#[derive(Debug)]
pub(super) struct Entry {
    /// Client first.
    connection: Connection,
    changed_ns: u64,
    state: Option<Box<Followed>>,
}

/// A table for them: memory is reserved, not touched.
pub(super) fn table() -> Table<Entry> {
    Table::with_capacity(MAX_CONNECTIONS)
}

impl Connections {
    /// Whether secrets have opened a connection of QUIC.
    pub(crate) fn has_opened_quic(&self, direction: &Connection) -> bool {
        if self.quic.is_empty() {
            return false;
        }
        let is_it = |entry: &Entry| entry.connection.sender(direction).is_some();
        let found = self.quic.find(direction.file_under(self.seed), is_it);
        let state = found.and_then(|id| self.quic.get(id)?.state.as_deref());
        state.is_some_and(|followed| followed.quic.counters().opened > 0)
    }
}

impl Matcher {
    /// Whether datagrams are looked at by secrets.
    pub(crate) fn reads_datagrams(&self) -> bool {
        self.may_join && self.output.web.has_keys()
    }

    /// A datagram from the client of `direction`, which may be a server.
    #[cold]
    pub(crate) fn on_datagram(
        &mut self,
        direction: Connection,
        bytes: &[u8],
        ts_ns: u64,
        vlan: Option<u16>,
        out: &mut HttpBatch,
    ) {
        self.advance(ts_ns, out);
        let web = &mut self.output.web;
        let (hash, reversed) = (direction.file_under(web.seed), direction.reversed());
        let found = web.quic.find(hash, |entry| {
            entry.connection == direction || entry.connection == reversed
        });
        let id = match found {
            Some(id) => id,
            None if is_first(bytes) => {
                if web.quic.is_full() || web.held > super::MAX_BYTES {
                    let Some((oldest, _)) = self.output.web.quic.oldest() else {
                        return;
                    };
                    self.output.records.stats.followed_evicted += 1;
                    self.end_quic(oldest, out);
                    return self.on_datagram(direction, bytes, ts_ns, vlan, out);
                }
                let entry = Entry {
                    connection: direction,
                    changed_ns: ts_ns,
                    state: Some(Box::new(Followed {
                        quic: QuicConnection::new(),
                        http3: Http3::new(),
                        held: 0,
                    })),
                };
                web.ensure_tools();
                self.output.records.stats.followed += 1;
                match self.output.web.quic.insert(hash, entry) {
                    Ok(id) => id,
                    Err(_) => return,
                }
            }
            None => return,
        };
        let web = &mut self.output.web;
        let Some(entry) = web.quic.get_mut(id) else {
            return;
        };
        entry.changed_ns = entry.changed_ns.max(ts_ns);
        let side = match entry.connection == direction {
            true => Side::Client,
            false => Side::Server,
        };
        let connection = entry.connection;
        let Some(mut followed) = entry.state.take() else {
            return;
        };
        web.quic.refresh(id);
        self.with_tools(|matcher, tools| {
            let Some(keys) = matcher.output.web.keys.clone() else {
                return;
            };
            let mut scratch = std::mem::take(&mut tools.reading.sealed.scratch);
            let Followed { quic, http3, .. } = &mut *followed;
            let mut listener = Http3Ear {
                http3,
                tools,
                matcher,
                out,
                connection,
                vlan,
            };
            quic.datagram(side, bytes, ts_ns, &keys, &mut scratch, &mut listener);
            tools.reading.sealed.scratch = scratch;
        });
        let held = followed.quic.held() + followed.http3.held();
        let web = &mut self.output.web;
        web.held = (web.held + held).saturating_sub(followed.held);
        followed.held = held;
        let is_closed = followed.quic.is_closed;
        if let Some(entry) = web.quic.get_mut(id) {
            entry.state = Some(followed);
        }
        if is_closed {
            self.end_quic(id, out);
        }
    }

    /// Ends the streams of a connection where nothing has happened since `limit_ns`.
    fn end_http3(&mut self, id: linkweir_table::Id, limit_ns: u64, out: &mut HttpBatch) {
        let entry = self.output.web.quic.get_mut(id);
        let Some(entry) = entry else {
            return;
        };
        let connection = entry.connection;
        let Some(mut followed) = entry.state.take() else {
            return;
        };
        self.with_tools(|matcher, tools| {
            let Followed { quic, http3, .. } = &mut *followed;
            let listening = Listening {
                common: &mut tools.reading.common,
                records: &mut matcher.output.records,
                out,
                connection,
                vlan: None,
                side: Side::Server,
                losses: 0,
                version: (3, 0),
                web: &columns(quic.about()),
            };
            listening.ear(&mut http3.streams).end_before(limit_ns);
        });
        if let Some(entry) = self.output.web.quic.get_mut(id) {
            entry.state = Some(followed);
        }
    }

    /// A connection is forgotten; what waits of it counts.
    fn end_quic(&mut self, id: linkweir_table::Id, out: &mut HttpBatch) {
        self.end_http3(id, u64::MAX, out);
        let web = &mut self.output.web;
        let Some(followed) = web.quic.remove(id).and_then(|entry| entry.state) else {
            return;
        };
        web.held = web.held.saturating_sub(followed.held);
        let stats = &mut self.output.records.stats;
        stats.count_secrets(followed.quic.counters());
    }

    /// Ends connections that have been silent since `silent_ns`, and streams since `limit_ns`.
    pub(super) fn expire_quic(
        &mut self,
        silent_ns: Option<u64>,
        limit_ns: u64,
        out: &mut HttpBatch,
    ) {
        while let Some((id, entry)) = self.output.web.quic.oldest()
            && silent_ns.is_some_and(|silent| entry.changed_ns <= silent)
        {
            self.end_quic(id, out);
        }
        // Once around: the order of age stays.
        for _ in 0..self.output.web.quic.len() {
            let Some((id, _)) = self.output.web.quic.oldest() else {
                break;
            };
            self.output.web.quic.refresh(id);
            self.end_http3(id, limit_ns, out);
        }
    }

    /// The input has ended.
    pub(super) fn close_quic(&mut self, out: &mut HttpBatch) {
        while let Some((id, _)) = self.output.web.quic.oldest() {
            self.end_quic(id, out);
        }
    }

    fn with_tools(&mut self, step: impl FnOnce(&mut Self, &mut Tools)) {
        if let Some(mut tools) = self.output.web.tools.take() {
            step(self, &mut tools);
            self.output.web.tools = Some(tools);
        }
    }
}

/// Whether a datagram begins a connection: it has the first packet of a client, which opens with the keys that follow
/// from it alone.
pub(crate) fn is_first(bytes: &[u8]) -> bool {
    if bytes.len() < LEAST_FIRST {
        return false;
    }
    let Some(header) = LongHeader::parse(bytes).filter(|header| header.kind == Kind::Initial)
    else {
        return false;
    };
    let version = Version::of(header.version);
    let keys = version.and_then(|version| InitialKeys::client(version, header.destination_id));
    keys.is_some_and(|keys| keys.open(bytes, &header, |_| ()).is_some())
}

/// Who listens to the streams.
struct Http3Ear<'a> {
    http3: &'a mut Http3,
    tools: &'a mut Tools,
    matcher: &'a mut Matcher,
    out: &'a mut HttpBatch,
    connection: Connection,
    vlan: Option<u16>,
}

impl StreamListener for Http3Ear<'_> {
    fn stream(&mut self, about: &About, side: Side, part: &StreamPart<'_>) {
        // What the two ends agreed on may be another protocol.
        if !(about.alpn.is_empty() || about.alpn.starts_with(b"h3")) {
            return;
        }
        let Tools { late, reading } = &mut *self.tools;
        let Reading {
            strings, common, ..
        } = reading;
        let listening = Listening {
            common,
            records: &mut self.matcher.output.records,
            out: self.out,
            connection: self.connection,
            vlan: self.vlan,
            side,
            losses: 0,
            version: (3, 0),
            web: &columns(about),
        };
        http3::take(self.http3, part, late, strings, listening);
    }

    fn reset(&mut self, side: Side, id: u64, error: u64, ts_ns: u64) {
        let Ok(id) = u32::try_from(id) else {
            return;
        };
        let Tools { reading, .. } = &mut *self.tools;
        let listening = Listening {
            common: &mut reading.common,
            records: &mut self.matcher.output.records,
            out: self.out,
            connection: self.connection,
            vlan: self.vlan,
            side,
            losses: 0,
            version: (3, 0),
            web: &Web {
                source: Source::Keys,
                ..Web::default()
            },
        };
        let error = u32::try_from(error).unwrap_or(u32::MAX);
        let mut ear = listening.ear(&mut self.http3.streams);
        ear.reset(id, error, ts_ns);
    }
}
