//! Handshakes of TLS, where records of them are asked for.

use linkweir_proto::quic::{Frame, Frames, InitialKeys, Kind, LongHeader, Version};
use linkweir_proto::tls::{ServerHello, first_certificate, parse_server_hello};
use linkweir_record::Anonymizer;
use linkweir_record::flow::Protocol;
use linkweir_record::tls::{TlsBatch, TlsRow, TlsText};
use linkweir_wire::Side;

use super::Ends;
use super::certificate::Certificate;
use super::sessions::SinceStart;
use super::state::State;
use super::texts::Text;
use crate::key::FlowKey;

/// The curve of a `ServerKeyExchange` is one with a name (RFC 8422 sec. 5.4).
const NAMED_CURVE: u8 = 3;

/// What is kept of a handshake beside what a flow's record has.
#[derive(Debug, Default)]
pub(super) struct Handshake {
    /// When the first record was seen.
    begin: SinceStart,
    suite: Option<u16>,
    group: Option<u16>,
    alert: Option<u8>,
    certificate: Option<Certificate>,
    is_written: bool,
    /// Of QUIC: the keys of the server's first packets, and when client and server began to send data.
    initial: Option<Box<InitialKeys>>,
    data: [SinceStart; 2],
}

impl Handshake {
    pub(super) fn at(begin: SinceStart) -> Self {
        Self {
            begin,
            ..Self::default()
        }
    }

    /// A packet of QUIC with a long header, at the start of `packet`. The keys of the first ones follow from the id that
    /// the client chose for the server, or the server in a Retry (RFC 9001 sec. 5.2).
    pub(super) fn on_quic(&mut self, side: Side, packet: &[u8], header: &LongHeader<'_>) {
        match (header.kind, side) {
            (Kind::Initial, Side::Client) if self.initial.is_none() => {
                let keys = Version::of(header.version)
                    .and_then(|version| InitialKeys::server(version, header.destination_id));
                self.initial = keys.map(Box::new);
            }
            (Kind::Retry, Side::Server) => self.initial = None,
            (Kind::Initial, Side::Server) if self.suite.is_none() => {
                let keys = self.initial.take();
                if let Some(keys) = &keys {
                    let _is_of_others = keys.open(packet, header, |frames| self.on_frames(frames));
                }
                self.initial = keys;
            }
            _ => {}
        }
    }

    /// Frames of the server's first packet: its hello is in one piece, as far as what is read of it.
    fn on_frames(&mut self, frames: &[u8]) {
        for frame in Frames::of(frames) {
            if let Frame::Crypto { offset: 0, bytes } = frame
                && let Some(hello) = parse_server_hello(bytes).seen()
            {
                self.on_server_hello(&hello);
            }
        }
    }

    /// A packet of QUIC behind the handshake.
    pub(super) fn on_data(&mut self, side: Side, now: SinceStart) {
        if let Some(first) = self.data.get_mut(usize::from(side == Side::Server))
            && first.get().is_none()
        {
            *first = now;
        }
    }

    /// When client and server began to send data in QUIC.
    pub(super) fn data(&self) -> [Option<u64>; 2] {
        self.data.map(SinceStart::get)
    }

    /// What the server has chosen.
    pub(super) fn on_server_hello(&mut self, hello: &ServerHello<'_>) {
        if !hello.is_retry {
            self.suite = Some(hello.suite);
            self.group = hello.group.or(self.group);
        }
    }

    /// The body of a `ServerKeyExchange`, as far as it is there.
    pub(super) const fn on_key_exchange(&mut self, body: &[u8]) {
        if let [NAMED_CURVE, high, low, ..] = body {
            self.group = Some(u16::from_be_bytes([*high, *low]));
        }
    }

    /// A `Certificate` of the server.
    pub(super) fn on_certificate(&mut self, message: &[u8]) {
        if self.certificate.is_none() {
            self.certificate = first_certificate(message).and_then(Certificate::parse);
        }
    }

    /// An alert that is not encrypted.
    pub(super) const fn on_alert(&mut self, description: u8) {
        self.alert = Some(description);
    }
}

/// Writes handshakes.
#[derive(Debug)]
pub(super) struct Handshakes {
    pub(super) anonymizer: Option<Anonymizer>,
}

impl Handshakes {
    /// Writes the handshake of a flow once: when both sides have sent data, or the flow `is_over`.
    pub(super) fn write(
        &self,
        state: &mut State,
        ends: &Ends,
        protocol: Protocol,
        is_over: bool,
        out: &mut TlsBatch,
    ) {
        let (data, version) = match protocol {
            // QUIC has TLS 1.3 (RFC 9001 sec. 4.2), and packets with a short header are behind the handshake.
            Protocol::Udp => {
                let handshake = state.handshake_mut();
                (handshake.map(|of| of.data()).unwrap_or_default(), 0x0304)
            }
            Protocol::Tcp => {
                let versions = [Side::Server, Side::Client].map(|side| state.tls_version(side));
                let version = versions.into_iter().find(|version| *version != 0);
                let data = [Side::Client, Side::Server].map(|side| state.first_data(side));
                (data, version.unwrap_or_default())
            }
        };
        let is_established = data.iter().all(Option::is_some);
        let (resumed, has_ech) = (state.tls.resumed, state.tls.has_ech);
        let Some(handshake) = state.handshake_mut() else {
            return;
        };
        if handshake.is_written || !(is_established || is_over) {
            return;
        }
        handshake.is_written = true;
        if version == 0 {
            // No hello was seen: there is nothing to say.
            return;
        }
        let begin = handshake.begin.get().unwrap_or_default();
        let certificate = handshake.certificate.take().unwrap_or_default();
        let has_certificate = certificate != Certificate::default();
        let mut row = TlsRow {
            client: ends.client,
            server: ends.server,
            protocol,
            begin_ns: ends.start_ns.saturating_add(begin),
            handshake_ns: match data {
                [Some(client), Some(server)] => Some(client.max(server).saturating_sub(begin)),
                _ => None,
            },
            version,
            suite: handshake.suite,
            group: handshake.group,
            resumed,
            is_established,
            has_ech,
            alert: handshake.alert,
            validity: has_certificate.then_some(certificate.validity),
            flow_id: FlowKey::between(ends.client, ends.server, protocol).id(ends.start_ns),
        };
        if let Some(anonymizer) = &self.anonymizer {
            for end in [&mut row.client, &mut row.server] {
                end.0 = anonymizer.replace(end.0);
            }
        }
        let text = TlsText {
            sni: state.texts.get(Text::Sni),
            client_alpn: state.texts.get(Text::ClientAlpn),
            alpn: state.texts.get(Text::ServerAlpn),
            subject: certificate.subject.as_bytes(),
            issuer: certificate.issuer.as_bytes(),
            names: certificate.names.as_bytes(),
            ja4: state.texts.get(Text::Ja4),
        };
        out.push(row, &text);
    }
}
