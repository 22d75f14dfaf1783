//! The payload of flows: application, names, and what HTTP, TLS, QUIC, eDonkey and RTP say of
//! themselves.
//!
//! Stands behind transport tracking: the stage gives the payload of a TCP flow in stream order and
//! the datagrams of a UDP flow, and asks for the columns when it writes a record. State is taken
//! when there is something to remember, and is bounded: a quarter of the flows may have some, their
//! texts share a budget, and bytes that wait for more (heads and hellos that span segments) stand
//! in a bounded pool. What finds no room is counted.
//!
//! Cost: a segment in the middle of an HTTP body is the test of its first bytes; a segment within
//! a TLS record and a datagram of QUIC one look at the state of the flow; a flow that is settled
//! nothing, for [`Layer7::wants`] says so and the stage keeps the answer.

mod certificate;
pub mod dns_cache;
mod dns_lines;
mod ed2k;
mod gather;
mod handle;
mod handshake;
mod http;
mod label;
mod media;
mod migration;
mod opening;
mod queries;
mod quic;
mod round_trips;
mod sessions;
mod spin;
mod state;
mod texts;
mod tls;

use std::net::IpAddr;

use dns_cache::DnsCache;
use gather::Pool;
use handle::Stage;
use handshake::Handshakes;
use linkweir_proto::application::Application;
use linkweir_proto::dns::{PORT, take_framed};
use linkweir_record::flow::{FlowBatch, FlowRow, FlowText, Protocol};
use linkweir_wire::Side;
use queries::Queries;
use sessions::SinceStart;
use state::{Naming, State, States};
use texts::{Budget, Text};

use crate::config::FlowsConfig;
use crate::step::{L7Class, sites};

pub use dns_cache::DnsCounters;
pub use handle::Handle;

/// States at most: this share of the flows.
const FLOWS_PER_STATE: usize = 4;
/// Bytes of text for each state, on average: names are 20 to 60 bytes long.
const TEXT_PER_STATE: usize = 128;
/// Directions whose bytes wait for more, at the same time.
const MAX_WAITING: u32 = 4096;

/// The ends of a flow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ends {
    /// Address and port of the client.
    pub client: (IpAddr, u16),
    /// Address and port of the server.
    pub server: (IpAddr, u16),
    /// First packet of the flow, nanoseconds since the epoch.
    pub start_ns: u64,
}

/// What found no room, by cause.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Layer7Counters {
    /// Flows whose payload was not looked at: all states were in use.
    pub states_refused: u64,
    /// Texts that were not kept: the budget was used up.
    pub texts_refused: u64,
    /// Heads and hellos that were not gathered: all buffers were in use.
    pub gathers_refused: u64,
    /// Datagrams of RTP and RTCP that were not measured: too many streams.
    pub streams_refused: u64,
    /// Queries of DNS that left before their response: too many waited.
    pub queries_evicted: u64,
}

/// Payload of one segment.
#[derive(Debug, Clone, Copy)]
struct Segment<'a> {
    ends: &'a Ends,
    side: Side,
    /// What was captured of it.
    payload: &'a [u8],
    /// Bytes at its end that were not captured (snap length).
    missing: u32,
    ts_ns: u64,
}

/// A datagram of UDP.
#[derive(Debug, Clone, Copy)]
pub struct Datagram<'a> {
    /// What was captured of its payload.
    pub payload: &'a [u8],
    /// Bytes of its payload as sent.
    pub len: u32,
    /// Time to live or hop limit.
    pub ttl: u8,
    /// When it was seen, nanoseconds since the epoch.
    pub ts_ns: u64,
}

/// What the states share.
#[derive(Debug)]
struct Shared {
    pool: Pool,
    budget: Budget,
    gathering: quic::Gathering,
    /// Made when the first id of a server was seen.
    connections: Option<Box<migration::Connections>>,
    seed: u64,
    media: media::MediaPool,
    with_messages: bool,
    /// Where records of handshakes are asked for.
    handshakes: Option<Handshakes>,
}

/// The payload of all flows of a worker.
#[derive(Debug)]
pub struct Layer7 {
    slab: States,
    shared: Shared,
    dns: DnsCache,
    /// Where records of queries are asked for.
    queries: Option<Box<Queries>>,
}

impl Layer7 {
    /// Nothing seen yet; `max_flows` of the settings gives the bounds.
    #[must_use]
    pub fn new(config: &FlowsConfig) -> Self {
        let states = (config.max_flows / FLOWS_PER_STATE).max(64);
        Self {
            slab: States::new(states),
            shared: Shared {
                pool: Pool::new(
                    u32::try_from(states).map_or(MAX_WAITING, |states| states.min(MAX_WAITING)),
                ),
                budget: Budget::new(states.saturating_mul(TEXT_PER_STATE)),
                gathering: quic::Gathering::default(),
                connections: None,
                seed: config.hash_seed,
                media: media::MediaPool::new(states, config),
                with_messages: config.with_messages,
                handshakes: config.with_handshakes.then(|| Handshakes {
                    anonymizer: config.anonymizer.clone(),
                }),
            },
            dns: DnsCache::new(
                if config.with_names {
                    dns_cache::ENTRIES
                } else {
                    1
                },
                config.hash_seed,
            ),
            queries: config.with_queries.then(|| Box::new(Queries::new(config))),
        }
    }

    /// What found no room so far.
    #[must_use]
    pub fn counters(&self) -> Layer7Counters {
        Layer7Counters {
            states_refused: self.slab.refused,
            texts_refused: self.shared.budget.refused,
            gathers_refused: self.shared.pool.refused + self.shared.gathering.refused,
            streams_refused: self.shared.media.refused,
            queries_evicted: self.queries.as_ref().map_or(0, |queries| queries.evicted),
        }
    }

    /// What was heard of DNS.
    #[must_use]
    pub const fn dns_counters(&self) -> DnsCounters {
        self.dns.counters()
    }

    /// Flows that have state.
    #[must_use]
    pub fn states(&self) -> usize {
        self.slab.len()
    }

    /// New payload of a TCP flow in stream order: called once for each segment that brings new
    /// bytes, with those. `payload` may be shorter than `payload_len` (snap length). Heads of HTTP
    /// messages go to `out` where they are asked for.
    #[inline]
    #[expect(
        clippy::too_many_arguments,
        reason = "a segment has these parts; a struct would be built for each"
    )]
    pub fn on_tcp(
        &mut self,
        handle: &mut Handle,
        ends: &Ends,
        side: Side,
        payload: &[u8],
        payload_len: u32,
        ts_ns: u64,
        out: &mut FlowBatch,
    ) {
        let segment = Segment {
            ends,
            side,
            payload,
            missing: payload_len.saturating_sub(u32::try_from(payload.len()).unwrap_or(u32::MAX)),
            ts_ns,
        };
        self.on_segment(handle, &segment, out);
    }

    #[inline]
    fn on_segment(&mut self, handle: &mut Handle, segment: &Segment<'_>, out: &mut FlowBatch) {
        match handle.stage() {
            Stage::Http => self.on_http(handle, segment, out),
            Stage::Opening => self.on_opening(handle, segment, out),
            Stage::Tls => self.on_tls(*handle, segment, out),
            Stage::Ed2k => self.on_ed2k(*handle, segment),
            Stage::Dns => self.on_dns_stream(segment, out),
            Stage::Quic | Stage::Spin | Stage::Media | Stage::Settled | Stage::Labelled => {}
        }
    }

    /// A gap of so many bytes in one direction of a TCP flow.
    pub fn lost(&mut self, handle: Handle, side: Side, bytes: u32) {
        let Some(state) = self.slab.get_mut(handle) else {
            return;
        };
        match handle.stage() {
            // What comes behind the gap does not continue what waits; in a body nothing does.
            Stage::Http if !handle.waits(side) => {}
            Stage::Opening | Stage::Http => state.side_mut(side).is_cut = true,
            Stage::Tls => tls::lost(state, &mut self.shared, side, bytes),
            Stage::Ed2k => state.side_mut(side).messages().pass(bytes),
            Stage::Quic
            | Stage::Spin
            | Stage::Dns
            | Stage::Media
            | Stage::Settled
            | Stage::Labelled => {}
        }
    }

    /// A datagram of a UDP flow.
    pub fn on_udp(
        &mut self,
        handle: &mut Handle,
        ends: &Ends,
        side: Side,
        datagram: &Datagram<'_>,
        out: &mut FlowBatch,
    ) {
        let Datagram { payload, ts_ns, .. } = *datagram;
        if payload.is_empty() {
            return;
        }
        match handle.stage() {
            Stage::Opening => self.on_udp_opening(handle, ends, side, datagram, out),
            Stage::Quic => {
                let now = SinceStart::at(ts_ns.saturating_sub(ends.start_ns));
                self.on_quic(handle, ends, side, payload, now);
            }
            Stage::Spin => {
                let now = SinceStart::at(ts_ns.saturating_sub(ends.start_ns));
                self.on_spin(*handle, side, payload, now);
            }
            Stage::Dns => self.on_dns(ends, Protocol::Udp, side, payload, ts_ns, out),
            Stage::Media => self.on_media(*handle, side, datagram),
            Stage::Http | Stage::Tls | Stage::Ed2k | Stage::Settled | Stage::Labelled => {}
        }
    }

    /// Whether more payload of this side can still change anything for the flow.
    ///
    /// Once `false`, it stays `false`.
    #[inline]
    #[must_use]
    pub fn wants(&self, handle: Handle, _side: Side) -> bool {
        !matches!(handle.stage(), Stage::Settled | Stage::Labelled)
    }

    /// A new flow: looks the server's name up in what was resolved.
    pub fn opened(&mut self, handle: &mut Handle, ends: &Ends) {
        let Some(named) = self.dns.lookup(ends.client.0, ends.server.0) else {
            return;
        };
        let Some(state) = self.slab.take(handle) else {
            return;
        };
        state.naming = Some(Box::new(Naming {
            resolver: named.resolver,
            request_ns: named.request_ns,
            response_ns: named.response_ns,
        }));
        let budget = &mut self.shared.budget;
        state.texts.set(Text::Fqdn, named.name, budget);
    }

    /// Reads a word of the state of a flow that has one, so that it is in the cache when it is needed.
    #[inline]
    #[must_use]
    pub fn touch(&self, handle: Handle) -> u64 {
        self.slab.get(handle).map_or(0, State::touch)
    }

    /// What the flow carries, where it is recognised.
    #[must_use]
    pub fn application(&self, handle: Handle) -> Option<Application> {
        self.slab
            .get(handle)
            .map_or_else(|| handle.label(), |state| state.label)
    }

    /// The class by which its packets count: that of its application, and of its site where that is
    /// known by now.
    #[must_use]
    pub fn class(&self, handle: Handle) -> L7Class {
        let Some(application) = self.application(handle) else {
            return L7Class::UNKNOWN;
        };
        let class = L7Class(u8::try_from(application.tstat_l7()).unwrap_or(49));
        let Some(state) = self.slab.get(handle) else {
            return class;
        };
        match application {
            Application::Tls => {
                let server_name = state.texts.get(Text::Sni);
                if server_name.is_empty() && !state.has_hello() {
                    return class;
                }
                L7Class::tls(sites::tls_class(server_name))
            }
            Application::Http => match state.http_type.checked_sub(1) {
                Some(site) => L7Class::http(site),
                // Requests go another way.
                None if state.http_responses > 0 => L7Class::http(0),
                None => class,
            },
            _ => class,
        }
    }

    /// Fills the layer-7 columns of a record but its texts.
    ///
    /// Counters are those of the whole flow so far.
    pub fn fill(&self, handle: Handle, row: &mut FlowRow) {
        let Some(state) = self.slab.get(handle) else {
            label::fill(handle.label(), row);
            return;
        };
        label::fill(state.label, row);
        state.fill(row);
        for head in self.waiting(handle, state) {
            http::count_waiting(head, row);
        }
    }

    /// The texts of a record.
    #[must_use]
    pub fn text(&self, handle: Handle) -> FlowText<'_> {
        let Some(state) = self.slab.get(handle) else {
            return FlowText::default();
        };
        let mut text = state.text();
        for head in self.waiting(handle, state) {
            if text.http_host.is_empty() {
                text.http_host = http::host_of_waiting(head);
            }
        }
        text
    }

    /// Heads that wait for their end, also where a field that they still lack may say what the flow is.
    fn waiting<'a>(&'a self, handle: Handle, state: &'a State) -> impl Iterator<Item = &'a [u8]> {
        let is_open = handle.stage() == Stage::Opening && state.label == Some(Application::Http);
        let is_http = handle.stage() == Stage::Http;
        [Side::Client, Side::Server]
            .into_iter()
            .filter(move |side| is_open || is_http && handle.waits(*side))
            .map(|side| self.shared.pool.bytes(state.side(side).gather))
    }

    /// Writes the handshake of a flow that has ended, where it was not written before.
    pub fn end_handshake(
        &mut self,
        handle: Handle,
        ends: &Ends,
        protocol: Protocol,
        out: &mut FlowBatch,
    ) {
        if let (Some(handshakes), Some(state)) =
            (&self.shared.handshakes, self.slab.get_mut(handle))
        {
            handshakes.write(state, ends, protocol, true, &mut out.handshakes);
        }
    }

    /// When the query that waits for longest is to be written without a response.
    #[must_use]
    pub fn queries_due(&self) -> Option<u64> {
        self.queries.as_ref()?.due()
    }

    /// Writes the queries that have waited for too long; all that wait where no time is given.
    pub fn end_queries(&mut self, now_ns: Option<u64>, out: &mut FlowBatch) {
        let Some(queries) = &mut self.queries else {
            return;
        };
        match now_ns {
            Some(now_ns) => queries.expire(now_ns, &mut out.queries),
            None => queries.finish(&mut out.queries),
        }
    }

    /// The flow is no more.
    pub fn release(&mut self, handle: Handle) {
        let mut handle = handle;
        self.slab.release(&mut handle, &mut self.shared);
    }

    /// A question or answer of DNS (the payload of a datagram to or from port 53): only the names
    /// are taken. For the flows of other workers: those of this one are heard by
    /// [`Layer7::on_udp`].
    pub fn learn_names(
        &mut self,
        client: IpAddr,
        client_port: u16,
        resolver: IpAddr,
        payload: &[u8],
        is_from_port: bool,
        ts_ns: u64,
    ) {
        // What comes from port 53 and is not an answer, or the reverse, names no server.
        if is_answer(payload) == is_from_port {
            self.dns.hear(client, client_port, resolver, payload, ts_ns);
        }
    }
}

// DNS within a flow: its messages go to the cache of names.

/// Whether a message says of itself that it answers (RFC 1035 sec. 4.1.1: QR).
fn is_answer(message: &[u8]) -> bool {
    message.get(2).is_some_and(|flags| flags & 0x80 != 0)
}

impl Layer7 {
    /// A message of DNS in a flow. The end that answers is the resolver: a flow whose question was not seen
    /// has its ends the wrong way round.
    fn on_dns(
        &mut self,
        ends: &Ends,
        protocol: Protocol,
        side: Side,
        message: &[u8],
        ts_ns: u64,
        out: &mut FlowBatch,
    ) {
        let is_as_opened = is_answer(message) == (side == Side::Server);
        // Of a stream whose messages are cut by segments, the rest may look like one.
        if protocol == Protocol::Tcp && !is_as_opened && ends.server.1 == PORT {
            return;
        }
        let (client, server) = if is_as_opened {
            (ends.client, ends.server)
        } else {
            (ends.server, ends.client)
        };
        self.dns.hear(client.0, client.1, server.0, message, ts_ns);
        let ends = Ends {
            client,
            server,
            ..*ends
        };
        if self.shared.with_messages {
            dns_lines::push(&ends, message, ts_ns, out);
        }
        if let Some(queries) = &mut self.queries {
            queries.hear(&ends, protocol, message, ts_ns, &mut out.queries);
        }
    }

    /// Payload of DNS over TCP (RFC 1035 sec. 4.2.2): the messages that are whole within a segment,
    /// as nearly all are.
    fn on_dns_stream(&mut self, segment: &Segment<'_>, out: &mut FlowBatch) {
        let mut rest = segment.payload;
        while let Some((message, behind)) = take_framed(rest) {
            let (ends, side) = (segment.ends, segment.side);
            self.on_dns(ends, Protocol::Tcp, side, message, segment.ts_ns, out);
            rest = behind;
        }
    }
}

#[cfg(test)]
mod tests;
