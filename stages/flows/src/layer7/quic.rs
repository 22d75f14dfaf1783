//! QUIC within a flow: versions, what the client's first packets say, and whether it sends data
//! before the handshake.
//!
//! The hello is gathered from at most four Initial packets, in a bounded number of flows at once.
//! When both sides are known and the client has gone on to packets that cannot be read, of these only the first
//! byte is looked at: it has the spin bit. A flow of a version without it is settled and costs nothing more.

use linkweir_proto::quic::{
    ClientInitials, Kind, LongHeader, Progress, parse_google_hello, public_version, user_agent,
};
use linkweir_proto::tls::{Carrier, parse_client_hello};
use linkweir_wire::Side;

use super::handle::{Handle, Stage};
use super::migration::Connections;
use super::round_trips::Kinds;
use super::sessions::{GatheringId, Quic, QuicStart, SinceStart};
use super::state::State;
use super::texts::{Budget, Text};
use super::{Ends, Layer7, tls};

/// Packets that one datagram is taken to have.
const PACKETS_PER_DATAGRAM: usize = 4;
/// Datagrams after which a flow is settled in any case.
const MAX_DATAGRAMS: u8 = 32;
/// Of the first byte, that the header is long.
const LONG: u8 = 0x80;
/// Of the first byte, the bit that is always set but where the peers agreed otherwise.
const FIXED: u8 = 0x40;
/// The shortest packet with a short header: its first byte, a number of four bytes with what is protected, a tag.
const MIN_SHORT: usize = 21;
/// Flows whose hello is gathered at the same time: 8 KiB each.
const MAX_GATHERING: usize = 1024;

/// Hellos that are being gathered.
#[derive(Debug, Default)]
pub(super) struct Gathering {
    clients: Vec<Box<ClientInitials>>,
    free: Vec<GatheringId>,
    /// Times that no place was free.
    pub(super) refused: u64,
}

impl Gathering {
    fn get(&mut self, id: GatheringId) -> Option<&mut ClientInitials> {
        let at = (id.0 as usize).checked_sub(1)?;
        self.clients.get_mut(at).map(AsMut::as_mut)
    }

    fn take(&mut self) -> GatheringId {
        if let Some(id) = self.free.pop() {
            return id;
        }
        if self.clients.len() >= MAX_GATHERING {
            self.refused += 1;
            return GatheringId(0);
        }
        self.clients.push(Box::default());
        GatheringId(u32::try_from(self.clients.len()).unwrap_or(0))
    }

    /// Places that are not free.
    #[cfg(test)]
    pub(super) const fn in_use(&self) -> usize {
        self.clients.len() - self.free.len()
    }

    /// Gives the place of a flow back.
    pub(super) fn release(&mut self, opening: &mut QuicStart) {
        let id = std::mem::take(&mut opening.gathering);
        if let Some(client) = self.get(id) {
            client.clear();
            self.free.push(id);
        }
    }
}

impl Layer7 {
    /// The payload of a datagram of a QUIC flow.
    pub(super) fn on_quic(
        &mut self,
        handle: &mut Handle,
        ends: &Ends,
        side: Side,
        datagram: &[u8],
        now: SinceStart,
    ) {
        let Some(state) = self.slab.get_mut(*handle) else {
            return;
        };
        let shared = &mut self.shared;
        let start = &mut state.quic_mut().start;
        start.datagrams = start.datagrams.saturating_add(1);
        if let (Side::Client, Some(version)) = (side, public_version(datagram)) {
            state.side_mut(side).quic_version = version;
            google_hello(state, &mut shared.budget, datagram);
        }
        let mut rest = datagram;
        let mut kinds = Kinds::default();
        for _ in 0..PACKETS_PER_DATAGRAM {
            let Some(header) = LongHeader::parse(rest) else {
                break;
            };
            kinds.add(header.kind);
            if side == Side::Server && header.kind == Kind::Handshake && !state.quic_mut().has_id {
                state.quic_mut().has_id = true;
                let make = || Box::new(Connections::new(shared.seed));
                let connections = shared.connections.get_or_insert_with(make);
                connections.add(ends.server, ends.client, header.source_id, header.version);
            }
            let version = &mut state.side_mut(side).quic_version;
            if *version == 0 {
                *version = header.version;
            }
            if shared.handshakes.is_some() {
                if side == Side::Client && header.kind == Kind::Initial {
                    state.begin_handshake(now);
                }
                if let Some(handshake) = state.handshake_mut() {
                    handshake.on_quic(side, rest, &header);
                }
            }
            if side == Side::Client {
                match header.kind {
                    Kind::Initial if !state.quic_mut().start.is_done => {
                        initial(
                            state,
                            &mut shared.gathering,
                            &mut shared.budget,
                            rest,
                            &header,
                        );
                    }
                    Kind::ZeroRtt => state.quic_mut().start.has_zero_rtt = true,
                    Kind::Unknown => google_hello(state, &mut shared.budget, rest),
                    _ => {}
                }
            }
            rest = rest.get(header.len..).unwrap_or_default();
        }
        let is_short = datagram.first().is_some_and(|first| first & LONG == 0);
        let quic = state.quic_mut();
        quic.start.has_short |= side == Side::Client && is_short;
        let start = quic.start;
        quic.trips.on_datagram(side, kinds, start.is_read, now);
        quic.on_short(side, datagram, rest, now);
        let mut is_understood = start.is_done && state.is_past_quic_handshake();
        if let Some(handshake) = state.handshake_mut() {
            if is_short {
                handshake.on_data(side, now);
            }
            // Of the server's the first data is wanted too.
            is_understood &= handshake.data().iter().all(Option::is_some);
        }
        let spins = state.may_spin();
        let quic = state.quic_mut();
        if is_understood || quic.start.datagrams >= MAX_DATAGRAMS {
            shared.gathering.release(&mut quic.start);
            let stage = if spins { Stage::Spin } else { Stage::Settled };
            self.settle(handle, stage);
        }
    }

    /// The payload of a datagram behind the handshake.
    #[inline]
    pub(super) fn on_spin(&mut self, handle: Handle, side: Side, datagram: &[u8], now: SinceStart) {
        if let Some(state) = self.slab.get_mut(handle) {
            state.quic_mut().on_short(side, datagram, datagram, now);
        }
    }
}

impl Quic {
    /// The packet with a short header in a datagram: all of it, or what is left `behind` others.
    #[inline]
    fn on_short(&mut self, side: Side, datagram: &[u8], behind: &[u8], now: SinceStart) {
        let Some(first) = behind.first().copied() else {
            return;
        };
        // Behind others there may be padding, whose bytes are zero; alone, a peer may have allowed any value of the
        // fixed bit (RFC 9287).
        let is_packet = first & FIXED != 0 || behind.len() == datagram.len();
        if first & LONG == 0 && is_packet && behind.len() >= MIN_SHORT {
            let rtt_ns = self.trips.rtt_ns();
            self.spin.on_short(side, first, now, rtt_ns);
        }
    }
}

/// An Initial packet of the client.
fn initial(
    state: &mut State,
    gathering: &mut Gathering,
    budget: &mut Budget,
    datagram: &[u8],
    header: &LongHeader<'_>,
) {
    let opening = &mut state.quic_mut().start;
    if opening.gathering == GatheringId(0) {
        opening.gathering = gathering.take();
    }
    let Some(client) = gathering.get(opening.gathering) else {
        opening.is_done = true;
        return;
    };
    match client.on_packet(datagram, header) {
        Progress::More => return,
        Progress::Whole => opening.is_read = true,
        Progress::Over => {}
    }
    opening.is_done = true;
    if let Some(hello) = parse_client_hello(client.hello()).seen() {
        state.texts.set(Text::Sni, hello.server_name, budget);
        let agent = user_agent(hello.quic_parameters).unwrap_or_default();
        state.texts.set(Text::UserAgent, agent, budget);
        state.tls.has_ech |= hello.has_ech;
        tls::set_alpn(state, budget, Text::ClientAlpn, hello.alpn);
        tls::set_ja4(state, budget, Carrier::Quic, client.hello());
    } else {
        google_hello(state, budget, client.hello());
    }
    gathering.release(&mut state.quic_mut().start);
}

/// A hello of Google's, if the bytes have one.
fn google_hello(state: &mut State, budget: &mut Budget, bytes: &[u8]) {
    if let Some(hello) = parse_google_hello(bytes) {
        state.quic_mut().start.is_done = true;
        state.texts.set(Text::Sni, hello.server_name, budget);
        state.texts.set(Text::UserAgent, hello.user_agent, budget);
    }
}
