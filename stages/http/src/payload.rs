//! What the TCP payload of a trace without HTTP is: estimated from a sample, at no cost where there is HTTP.

use linkweir_engine::Batch;
use linkweir_wire::{Tcp, Transport, decode};

/// Frames of one batch that are looked at.
const SAMPLE: usize = 64;
/// Frames that are looked at in all.
const ENOUGH: u64 = 1 << 16;
/// Ports that are distinguished.
const PORTS: usize = 16;

/// TCP payload by server port and kind, from a sample; merges by addition.
///
/// With more than sixteen ports the least gives way to a new one, which takes over its bytes: a port with
/// most of the payload is there and not below its share.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PayloadSample {
    frames: u64,
    bytes: u64,
    ports: [Port; PORTS],
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Port {
    number: u16,
    bytes: u64,
    kind: Option<&'static str>,
}

/// Where most of the payload was.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MostPayload {
    /// The port of the server.
    pub port: u16,
    /// What it is, where its bytes say so.
    pub kind: Option<&'static str>,
    /// Its bytes, as sampled.
    pub bytes: u64,
    /// All bytes, as sampled.
    pub of: u64,
}

impl PayloadSample {
    /// Looks at some frames of a batch.
    #[cold]
    pub(crate) fn observe(&mut self, batch: &Batch<'_>) {
        if self.frames >= ENOUGH {
            return;
        }
        let stride = (batch.len() / SAMPLE).max(1);
        for frame in batch.frames().step_by(stride) {
            self.frames += 1;
            if let Ok(packet) = decode(frame.link, frame.bytes, frame.wire_len)
                && let Transport::Tcp(tcp) = packet.transport
                && tcp.payload_len > 0
            {
                let bytes = u64::from(tcp.payload_len).saturating_mul(stride as u64);
                self.bytes = self.bytes.saturating_add(bytes);
                self.add(Port {
                    number: tcp.src_port().min(tcp.dst_port()),
                    bytes,
                    kind: kind(&tcp),
                });
            }
        }
    }

    fn add(&mut self, port: Port) {
        let place = self.ports.iter().position(|one| one.number == port.number);
        let least = || {
            let ports = self.ports.iter().enumerate();
            ports.min_by_key(|(_, one)| one.bytes).map(|(at, _)| at)
        };
        let Some(one) = place.or_else(least).and_then(|at| self.ports.get_mut(at)) else {
            return;
        };
        if one.number != port.number {
            (one.number, one.kind) = (port.number, None);
        }
        one.bytes = one.bytes.saturating_add(port.bytes);
        one.kind = one.kind.or(port.kind);
    }

    /// Adds the sample of another stage.
    pub fn merge(&mut self, other: &Self) {
        self.frames = self.frames.saturating_add(other.frames);
        self.bytes = self.bytes.saturating_add(other.bytes);
        for port in other.ports.iter().filter(|port| port.bytes > 0) {
            self.add(*port);
        }
    }

    /// The port that has more than half of the payload.
    #[must_use]
    pub fn most(&self) -> Option<MostPayload> {
        let port = self.ports.iter().max_by_key(|port| port.bytes)?;
        (port.bytes > self.bytes / 2).then_some(MostPayload {
            port: port.number,
            kind: port.kind,
            bytes: port.bytes.min(self.bytes),
            of: self.bytes,
        })
    }
}

/// What a segment's payload begins with, where that is plain.
fn kind(tcp: &Tcp<'_>) -> Option<&'static str> {
    match *tcp.payload {
        // A record: its type, version 3.x, a length (RFC 8446 sec. 5.1).
        [20..=23, 3, 0..=4, ..] => Some("TLS"),
        [b'S', b'S', b'H', b'-', ..] => Some("SSH"),
        // RFC 9113 sec. 3.4.
        [
            b'P',
            b'R',
            b'I',
            b' ',
            b'*',
            b' ',
            b'H',
            b'T',
            b'T',
            b'P',
            b'/',
            b'2',
            ..,
        ] => Some("HTTP/2"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use linkweir_testkit::conversation::Conversation;
    use linkweir_testkit::memory::drive;
    use linkweir_wire::LinkType;

    use super::*;
    use crate::{HttpConfig, HttpStage};

    fn sample(talks: &[Conversation]) -> PayloadSample {
        let frames: Vec<_> = talks.iter().flat_map(Conversation::frames).collect();
        let mut stage = HttpStage::new(&HttpConfig::default());
        drive(&mut stage, &frames, LinkType::ETHERNET, &[]);
        *stage.payload()
    }

    fn tls(port: u16) -> Conversation {
        let client = "192.0.2.1:50000".parse().unwrap();
        let server = format!("198.51.100.2:{port}").parse().unwrap();
        let mut talk = Conversation::between(client, server);
        talk.handshake()
            .client_sends([&[22, 3, 1, 0, 200][..], &[7; 200]].concat())
            .server_sends([&[22, 3, 3, 16, 0][..], &[7; 9000]].concat());
        talk
    }

    #[test]
    fn most_of_it_is_named() {
        let most = sample(&[tls(443)]).most().unwrap();
        assert_eq!((most.port, most.kind), (443, Some("TLS")));
        assert_eq!((most.bytes, most.of), (9210, 9210));
        assert_eq!(sample(&[]).most(), None);
        let mut sum = sample(&[tls(443)]);
        sum.merge(&sample(&[tls(8443)]));
        assert_eq!(sum.most(), None, "half each");
        sum.merge(&sample(&[tls(443)]));
        assert_eq!(sum.most().map(|most| most.port), Some(443));
    }

    #[test]
    fn where_there_is_http_nothing_is_sampled() {
        let mut talk = Conversation::v4(40_000);
        talk.client_sends("GET / HTTP/1.1\r\nHost: a.example\r\n\r\n");
        assert_eq!(sample(&[talk, tls(443)]), PayloadSample::default());
    }

    #[test]
    fn many_ports_do_not_hide_the_one() {
        let mut talks: Vec<_> = (1..40).map(tls).collect();
        talks.extend((0..60).map(|_| tls(443)));
        assert_eq!(sample(&talks).most().map(|most| most.port), Some(443));
    }
}
