//! What is remembered of a flow's payload, and the slab that it stands in.

use std::net::IpAddr;

use linkweir_proto::application::{Application, UdpMemory};
use linkweir_record::flow::{FlowRow, FlowText};
use linkweir_table::Slab;
use linkweir_wire::Side;

use super::Shared;
use super::ed2k::Messages;
use super::gather::GatherId;
use super::handle::{Handle, MAX_STATES, Stage};
use super::handshake::Handshake;
use super::media::MediaId;
use super::sessions::{Quic, Records, SinceStart, TlsSession};
use super::texts::{Text, Texts};

/// The resolver that named the server, and when.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Naming {
    pub(super) resolver: IpAddr,
    pub(super) request_ns: Option<u64>,
    pub(super) response_ns: u64,
}

/// What one side sent.
#[derive(Debug, Default)]
pub(super) struct SideState {
    /// Bytes that wait for more.
    pub(super) gather: GatherId,
    /// Whether bytes after those that wait were lost.
    pub(super) is_cut: bool,
    /// TLS: where the records stand. Most flows are of something else: boxed.
    records: Option<Box<Records>>,
    /// eDonkey: where the messages stand.
    messages: Option<Box<Messages>>,
    /// QUIC version of its first long header.
    pub(super) quic_version: u32,
    /// UDP: streams of media of the flow; stands with the client, where there is room for it.
    media: MediaId,
}

impl SideState {
    /// Where the TLS records stand.
    #[inline]
    pub(super) fn records(&mut self) -> &mut Records {
        self.records.get_or_insert_default()
    }

    /// Where the eDonkey messages stand.
    pub(super) fn messages(&mut self) -> &mut Messages {
        self.messages.get_or_insert_default()
    }
}

/// What is remembered of one flow.
#[derive(Debug, Default)]
pub(super) struct State {
    pub(super) texts: Texts,
    pub(super) label: Option<Application>,
    pub(super) sides: [SideState; 2],
    pub(super) naming: Option<Box<Naming>>,
    /// Packets with payload while nothing was decided.
    pub(super) packets: u8,
    /// UDP: what the signatures remember meanwhile.
    pub(super) udp: UdpMemory,
    /// Tstat's class of the first request, and one.
    pub(super) http_type: u8,
    pub(super) http_requests: u32,
    pub(super) http_responses: u32,
    pub(super) http_status: u16,
    pub(super) tls: TlsSession,
    /// Most flows are of something else: boxed.
    quic: Option<Box<Quic>>,
    pub(super) ed2k: Option<Box<[u32; 5]>>,
}

impl State {
    #[inline]
    pub(super) const fn side(&self, side: Side) -> &SideState {
        let [client, server] = &self.sides;
        match side {
            Side::Client => client,
            Side::Server => server,
        }
    }

    #[inline]
    pub(super) const fn side_mut(&mut self, side: Side) -> &mut SideState {
        let [client, server] = &mut self.sides;
        match side {
            Side::Client => client,
            Side::Server => server,
        }
    }
}

impl State {
    /// Reads a word of each line that a segment needs.
    #[inline]
    pub(super) fn touch(&self) -> u64 {
        let [client, server] = &self.sides;
        u64::from(self.http_requests)
            ^ u64::from(client.is_cut)
            ^ u64::from(server.is_cut)
            ^ u64::from(self.texts.is_empty())
    }

    /// Streams of media.
    pub(super) const fn media(&self) -> MediaId {
        let [client, _] = &self.sides;
        client.media
    }

    /// Streams of media.
    pub(super) const fn media_mut(&mut self) -> &mut MediaId {
        let [client, _] = &mut self.sides;
        &mut client.media
    }

    /// Whether there is nothing to say of the flow but its label.
    pub(super) fn is_blank(&self) -> bool {
        self.naming.is_none()
            && self.texts.is_empty()
            && self.quic.is_none()
            && self.media() == MediaId::default()
            && !self.has_handshake()
    }

    /// Whether a hello of TLS was read: a name that did not come with it comes no more.
    pub(super) fn has_hello(&self) -> bool {
        let [client, server] = &self.sides;
        let read = |side: &SideState| side.records.as_ref().is_some_and(|one| one.version != 0);
        read(client) || read(server)
    }

    /// When a side began to send application data of TLS, nanoseconds since the first packet of the flow.
    pub(super) fn first_data(&self, side: Side) -> Option<u64> {
        self.side(side).records.as_ref()?.first_data.get()
    }

    /// The version of TLS that a side has offered or chosen; zero where it is not known.
    pub(super) fn tls_version(&self, side: Side) -> u16 {
        self.side(side)
            .records
            .as_ref()
            .map_or(0, |records| records.version)
    }

    /// What a record of the handshake says more; it stands with the client, where there is room for it.
    pub(super) fn handshake_mut(&mut self) -> Option<&mut Handshake> {
        let [client, _] = &mut self.sides;
        client.records.as_mut()?.handshake.as_deref_mut()
    }

    pub(super) fn has_handshake(&self) -> bool {
        let [client, _] = &self.sides;
        let records = client.records.as_ref();
        records.is_some_and(|records| records.handshake.is_some())
    }

    /// Begins a handshake, where none has begun.
    pub(super) fn begin_handshake(&mut self, begin: SinceStart) {
        let [client, _] = &mut self.sides;
        let begin = || Box::new(Handshake::at(begin));
        client.records().handshake.get_or_insert_with(begin);
    }

    /// Whether both sides speak QUIC and the client has gone on to packets behind the handshake.
    pub(super) fn is_past_quic_handshake(&self) -> bool {
        let has_short = self.quic.as_ref().is_some_and(|quic| quic.start.has_short);
        has_short && self.sides.iter().all(|side| side.quic_version != 0)
    }

    /// Whether both sides speak a version that has the spin bit.
    pub(super) fn may_spin(&self) -> bool {
        use linkweir_proto::quic::Version;
        let spins = |version| match Version::of(version) {
            Some(Version::Q050 | Version::T050 | Version::T051) | None => false,
            Some(_) => !Version::is_reserved(version),
        };
        let [client, server] = &self.sides;
        client.quic_version != 0 && spins(server.quic_version)
    }

    /// The flow continues a connection of this version.
    pub(super) fn continue_quic(&mut self, version: u32) {
        self.label = Some(Application::Quic);
        for side in &mut self.sides {
            side.quic_version = version;
        }
        self.quic_mut().is_migrated = true;
    }

    /// What is kept of QUIC; from the first datagram on.
    #[inline]
    pub(super) fn quic_mut(&mut self) -> &mut Quic {
        self.quic.get_or_insert_default()
    }

    /// Fills the columns that come from here.
    pub(super) fn fill(&self, row: &mut FlowRow) {
        row.http_t = u32::from(self.http_type);
        row.http_requests = self.http_requests;
        row.http_responses = self.http_responses;
        row.http_status = self.http_status;
        row.ed2k = self.ed2k.as_deref().copied().unwrap_or_default();
        self.tls.fill(row);
        let [client, server] = &self.sides;
        if let Some(records) = &client.records {
            records.fill(&mut row.client);
        }
        if let Some(records) = &server.records {
            records.fill(&mut row.server);
        }
        row.client.quic_version = client.quic_version;
        row.server.quic_version = server.quic_version;
        if let Some(quic) = &self.quic {
            row.has_zero_rtt = quic.start.has_zero_rtt;
            row.quic = Some(quic.row(self.may_spin()));
        }
        if let Some(naming) = &self.naming {
            row.dns_resolver = Some(naming.resolver);
            row.dns_request_ns = naming.request_ns;
            row.dns_response_ns = Some(naming.response_ns);
        }
    }

    /// The texts.
    pub(super) fn text(&self) -> FlowText<'_> {
        FlowText {
            sni: self.texts.get(Text::Sni),
            certificate_name: self.texts.get(Text::CertificateName),
            client_alpn: self.texts.get(Text::ClientAlpn),
            server_alpn: self.texts.get(Text::ServerAlpn),
            fqdn: self.texts.get(Text::Fqdn),
            http_host: self.texts.get(Text::HttpHost),
            quic_user_agent: self.texts.get(Text::UserAgent),
            ja4: self.texts.get(Text::Ja4),
        }
    }
}

/// States of flows.
#[derive(Debug)]
pub(super) struct States {
    states: Slab<State>,
    /// Flows that found no room.
    pub(super) refused: u64,
}

impl States {
    pub(super) fn new(capacity: usize) -> Self {
        let capacity = u32::try_from(capacity).unwrap_or(u32::MAX);
        Self {
            states: Slab::with_capacity(capacity.clamp(1, MAX_STATES)),
            refused: 0,
        }
    }

    #[inline]
    pub(super) fn get(&self, handle: Handle) -> Option<&State> {
        self.states.get(handle.index()?)
    }

    #[inline]
    pub(super) fn get_mut(&mut self, handle: Handle) -> Option<&mut State> {
        self.states.get_mut(handle.index()?)
    }

    /// States in use.
    pub(super) fn len(&self) -> usize {
        self.states.len()
    }

    /// The state of a flow; a new one where it has none. `None` where there is no room: the flow is
    /// then settled, so that it is not asked again.
    pub(super) fn take(&mut self, handle: &mut Handle) -> Option<&mut State> {
        let at = match handle.index() {
            Some(at) => at,
            None => {
                let Some(at) = self.states.take() else {
                    self.refused += 1;
                    handle.set_stage(Stage::Settled);
                    return None;
                };
                handle.set_index(Some(at));
                at
            }
        };
        self.states.get_mut(at)
    }

    /// Forgets the state of a flow; its stage stays in the handle.
    pub(super) fn release(&mut self, handle: &mut Handle, shared: &mut Shared) {
        let Some(at) = handle.index() else {
            return;
        };
        if let Some(state) = self.states.get_mut(at) {
            let mut texts = std::mem::take(&mut state.texts);
            texts.clear(&mut shared.budget);
            for side in &mut state.sides {
                shared.pool.release(&mut side.gather);
            }
            if let Some(quic) = &mut state.quic {
                shared.gathering.release(&mut quic.start);
            }
            shared.media.release(state.media_mut());
            *state = State {
                texts,
                ..State::default()
            };
            self.states.give_back(at);
        }
        handle.set_index(None);
        handle.set_waits(Side::Client, false);
        handle.set_waits(Side::Server, false);
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_state_stays_small() {
        assert!(
            size_of::<super::State>() <= 160,
            "{}",
            size_of::<super::State>()
        );
    }
}
