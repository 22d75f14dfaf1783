//! `--pcap-secrets`: the secrets of the connections whose packets are written.

use std::collections::VecDeque;
use std::sync::Arc;

use linkweir_capture::chosen::Secrets;
use linkweir_engine::Frame;
use linkweir_keys::LiveLog;
use linkweir_proto::quic::{ClientInitials, Kind, LongHeader, Progress};
use linkweir_proto::tls::client_random;
use linkweir_wire::{Transport, decode};

use super::PacketArgs;
use crate::passive::args::InputArgs;

/// Connections of QUIC whose hello is not whole; the oldest leave.
const MAX_OPEN: usize = 64;
/// Of a record of TLS.
const RECORD_HEADER: usize = 5;

/// What the flag asks for.
pub(super) fn of(args: &PacketArgs, input: &InputArgs) -> Option<Box<dyn Secrets>> {
    let log = Arc::clone(&input.secrets);
    let open = VecDeque::new();
    (args.pcap_secrets).then(|| Box::new(Begins { log, open }) as Box<dyn Secrets>)
}

/// Finds the hello of a client, and its secrets.
#[derive(Debug)]
struct Begins {
    log: Arc<LiveLog>,
    /// By the port of the client and the id that it chose for the server.
    open: VecDeque<((u16, Vec<u8>), ClientInitials)>,
}

impl Secrets for Begins {
    fn before(&mut self, frame: &Frame<'_>) -> Option<String> {
        let packet = decode(frame.link, frame.bytes, frame.wire_len).ok()?;
        let random = match &packet.transport {
            Transport::Tcp(tcp) => client_random(tcp.payload.get(RECORD_HEADER..)?)?,
            Transport::Udp(udp) => self.on_datagram(udp.src_port(), udp.payload)?,
            _ => return None,
        };
        self.log.lines(&random)
    }
}

impl Begins {
    fn on_datagram(&mut self, port: u16, payload: &[u8]) -> Option<[u8; 32]> {
        let header = LongHeader::parse(payload).filter(|header| header.kind == Kind::Initial)?;
        let is_it =
            |(key, _): &((u16, Vec<u8>), _)| key.0 == port && key.1 == header.destination_id;
        let at = self.open.iter().position(is_it).unwrap_or_else(|| {
            if self.open.len() >= MAX_OPEN {
                self.open.pop_front();
            }
            let key = (port, header.destination_id.to_vec());
            self.open.push_back((key, ClientInitials::new()));
            self.open.len() - 1
        });
        let (_, initials) = self.open.get_mut(at)?;
        let progress = initials.on_packet(payload, &header);
        let random = client_random(initials.hello());
        if random.is_some() || progress != Progress::More {
            self.open.remove(at);
        }
        random
    }
}
