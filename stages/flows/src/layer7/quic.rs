//! QUIC within a flow: versions, what the client's first packets say, and whether it sends data
//! before the handshake.
//!
//! The hello is gathered from at most four Initial packets, in a bounded number of flows at once.
//! When both sides are known and the client has gone on to packets that cannot be read, the flow is
//! settled and costs nothing more.

use linkweir_proto::quic::{
    ClientInitials, Kind, LongHeader, Progress, parse_google_hello, public_version, user_agent,
};
use linkweir_proto::tls::{Carrier, parse_client_hello};
use linkweir_wire::Side;

use super::handle::{Handle, Stage};
use super::sessions::{GatheringId, QuicStart, SinceStart};
use super::state::State;
use super::texts::{Budget, Text};
use super::{Layer7, tls};

/// Packets that one datagram is taken to have.
const PACKETS_PER_DATAGRAM: usize = 4;
/// Datagrams after which a flow is settled in any case.
const MAX_DATAGRAMS: u8 = 32;
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
        side: Side,
        datagram: &[u8],
        now: SinceStart,
    ) {
        let Some(state) = self.slab.get_mut(*handle) else {
            return;
        };
        let shared = &mut self.shared;
        state.quic.datagrams = state.quic.datagrams.saturating_add(1);
        if let (Side::Client, Some(version)) = (side, public_version(datagram)) {
            state.side_mut(side).quic_version = version;
            google_hello(state, &mut shared.budget, datagram);
        }
        let mut rest = datagram;
        for _ in 0..PACKETS_PER_DATAGRAM {
            let Some(header) = LongHeader::parse(rest) else {
                break;
            };
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
                    Kind::Initial if !state.quic.is_done => {
                        initial(
                            state,
                            &mut shared.gathering,
                            &mut shared.budget,
                            rest,
                            &header,
                        );
                    }
                    Kind::ZeroRtt => state.quic.has_zero_rtt = true,
                    Kind::Unknown => google_hello(state, &mut shared.budget, rest),
                    _ => {}
                }
            }
            rest = rest.get(header.len..).unwrap_or_default();
        }
        let is_short = datagram.first().is_some_and(|first| first & 0x80 == 0);
        state.quic.has_short |= side == Side::Client && is_short;
        let mut is_understood = state.quic.is_done && state.is_past_quic_handshake();
        if let Some(handshake) = state.handshake_mut() {
            if is_short {
                handshake.on_data(side, now);
            }
            // Of the server's the first data is wanted too.
            is_understood &= handshake.data().iter().all(Option::is_some);
        }
        let quic = &state.quic;
        if is_understood || quic.datagrams >= MAX_DATAGRAMS {
            shared.gathering.release(&mut state.quic);
            self.settle(handle, Stage::Settled);
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
    let opening = &mut state.quic;
    if opening.gathering == GatheringId(0) {
        opening.gathering = gathering.take();
    }
    let Some(client) = gathering.get(opening.gathering) else {
        opening.is_done = true;
        return;
    };
    if client.on_packet(datagram, header) == Progress::More {
        return;
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
    gathering.release(&mut state.quic);
}

/// A hello of Google's, if the bytes have one.
fn google_hello(state: &mut State, budget: &mut Budget, bytes: &[u8]) {
    if let Some(hello) = parse_google_hello(bytes) {
        state.quic.is_done = true;
        state.texts.set(Text::Sni, hello.server_name, budget);
        state.texts.set(Text::UserAgent, hello.user_agent, budget);
    }
}
