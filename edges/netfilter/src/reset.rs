//! Tearing down TCP connections of others: a reset to each end, in the name of the other.
//!
//! A reset counts where its sequence number is exactly the one that end expects next; any other is at
//! best answered with a challenge (RFC 5961 sec. 3.2). All synchronized states take one with the
//! ACK bit (RFC 9293 sec. 3.10.7.4), and SYN-SENT only such a one, which acknowledges its SYN
//! (sec. 3.10.7.3).
//!
//! A packet sent here passes the hooks OUTPUT and POSTROUTING and never FORWARD, so it is not queued.

use std::io;
use std::net::{IpAddr, SocketAddr};

use linkweir_engine::{OwnSegment, Reset};
use linkweir_sys::raw_ip::{IpVersion, RawIpSocket};
use linkweir_wire::emit::TcpFrame;
use linkweir_wire::{SeqNumber, TcpFlags};
use thiserror::Error;

/// Resets cannot be sent.
#[derive(Debug, Error)]
#[error("cannot open a raw socket to send resets: {source}{}", hint(source))]
pub struct ResetError {
    /// Why.
    source: io::Error,
}

fn hint(error: &io::Error) -> &'static str {
    if error.kind() == io::ErrorKind::PermissionDenied {
        "; it needs CAP_NET_RAW and, for the mark, CAP_NET_ADMIN: run as root"
    } else {
        ""
    }
}

/// What was counted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ResetCounts {
    /// Packets sent: two for a connection.
    pub sent: u64,
    /// Segments of files that were held until their verdict, and acknowledgments of them; pages for clients, and what ends
    /// their connections.
    pub segments: u64,
    /// Packets that could not be sent: no route, dropped by a rule, no IPv6.
    pub failed: u64,
}

/// Sends resets. Opened with `CAP_NET_RAW`; sending needs no privilege any more.
#[derive(Debug)]
pub struct ResetSender {
    v4: RawIpSocket,
    v6: Option<RawIpSocket>,
    /// The packet on its way; kept for its memory.
    packet: Vec<u8>,
    counts: ResetCounts,
    last_error: Option<io::Error>,
}

impl ResetSender {
    /// Opens what it needs. Every packet gets `mark`, so that rules can tell it from those of the
    /// connection. A rule in POSTROUTING that saves marks to connections saves this one too: take
    /// bits that it leaves out, or let it pass over packets with this mark.
    ///
    /// # Errors
    /// Without `CAP_NET_RAW`. A kernel without IPv6 is none: see [`ResetCounts::failed`].
    pub fn open(mark: Option<u32>) -> Result<Self, ResetError> {
        let open = |version| {
            let socket = RawIpSocket::open(version)?;
            if let Some(mark) = mark {
                socket.set_mark(mark)?;
            }
            Ok(socket)
        };
        let v4 = open(IpVersion::V4).map_err(|source| ResetError { source })?;
        let v6 = match open(IpVersion::V6) {
            Ok(socket) => Some(socket),
            Err(source) if source.kind() == io::ErrorKind::PermissionDenied => {
                return Err(ResetError { source });
            }
            Err(_) => None,
        };
        Ok(Self {
            v4,
            v6,
            packet: Vec::with_capacity(MAX_PACKET_BYTES),
            counts: ResetCounts::default(),
            last_error: None,
        })
    }

    /// Sends a reset to each end of a connection.
    pub fn send(&mut self, reset: &Reset) {
        for segment in both(reset) {
            if self.send_frame(&segment) {
                self.counts.sent += 1;
            }
        }
    }

    /// Sends a segment in the name of an end.
    pub fn send_segment(&mut self, segment: &OwnSegment) {
        let mut options = Vec::new();
        if let Some((value, echo)) = segment.timestamps {
            options.extend([1, 1, 8, 10]);
            options.extend(value.to_be_bytes());
            options.extend(echo.to_be_bytes());
        }
        let mut flags = TcpFlags::ACK;
        if !segment.payload.is_empty() {
            flags = flags | TcpFlags::PSH;
        }
        if segment.is_fin {
            flags = flags | TcpFlags::FIN;
        }
        if segment.is_reset {
            flags = flags | TcpFlags::RST;
        }
        let frame = TcpFrame {
            seq: segment.seq,
            ack: segment.ack,
            flags,
            window: segment.window,
            options: &options,
            payload: &segment.payload,
            ..TcpFrame::new(plain(segment.from), plain(segment.to))
        };
        if self.send_frame(&frame) {
            self.counts.segments += 1;
        }
    }

    /// Whether it was sent; why not is kept.
    fn send_frame(&mut self, frame: &TcpFrame<'_>) -> bool {
        self.packet.clear();
        frame.append_packet_to(&mut self.packet);
        let socket = match IpVersion::of(frame.dst.ip()) {
            IpVersion::V4 => Some(&self.v4),
            IpVersion::V6 => self.v6.as_ref(),
        };
        let sent = match socket {
            Some(socket) => socket.send(&self.packet, frame.dst),
            None => Err(io::ErrorKind::Unsupported.into()),
        };
        sent.map_err(|error| {
            self.counts.failed += 1;
            self.last_error = Some(error);
        })
        .is_ok()
    }

    /// What was counted.
    #[must_use]
    pub const fn counts(&self) -> ResetCounts {
        self.counts
    }

    /// Why the last packet that failed did; once.
    pub fn take_error(&mut self) -> Option<io::Error> {
        self.last_error.take()
    }
}

/// An IPv6 header and a TCP header without options.
const MAX_PACKET_BYTES: usize = 60;

/// The two segments: to the server in the name of the client, and the other way round.
fn both(reset: &Reset) -> [TcpFrame<'static>; 2] {
    let (client, server) = (plain(reset.client), plain(reset.server));
    [
        segment(client, server, reset.client_next, reset.server_next),
        segment(server, client, reset.server_next, reset.client_next),
    ]
}

fn segment(src: SocketAddr, dst: SocketAddr, seq: SeqNumber, ack: SeqNumber) -> TcpFrame<'static> {
    TcpFrame {
        seq,
        ack,
        flags: TcpFlags::RST | TcpFlags::ACK,
        window: 0,
        ..TcpFrame::new(src, dst)
    }
}

/// An IPv4 address that is written as one of IPv6 is sent to as what it is.
fn plain(address: SocketAddr) -> SocketAddr {
    match address.ip().to_canonical() {
        ip @ IpAddr::V4(_) => SocketAddr::new(ip, address.port()),
        IpAddr::V6(_) => address,
    }
}

#[cfg(test)]
mod tests {
    use linkweir_wire::{LinkType, Transport, decode};

    use super::*;

    fn reset(client: &str, server: &str) -> Reset {
        Reset {
            client: client.parse().unwrap(),
            server: server.parse().unwrap(),
            client_next: SeqNumber(1000),
            server_next: SeqNumber(u32::MAX),
        }
    }

    #[test]
    fn each_end_gets_what_it_expects_from_the_other() {
        for (client, server) in [
            ("192.0.2.1:4000", "192.0.2.2:80"),
            ("[2001:db8::1]:4000", "[2001:db8::2]:80"),
        ] {
            let asked = reset(client, server);
            let [to_server, to_client] = both(&asked);
            for (sent, src, dst, seq, ack) in [
                (to_server, asked.client, asked.server, 1000, u32::MAX),
                (to_client, asked.server, asked.client, u32::MAX, 1000),
            ] {
                let bytes = sent.to_packet();
                let wire_len = u32::try_from(bytes.len()).unwrap();
                let packet = decode(LinkType::RAW, &bytes, wire_len).unwrap();
                assert_eq!(
                    (packet.network.src(), packet.network.dst()),
                    (src.ip(), dst.ip())
                );
                let Transport::Tcp(tcp) = packet.transport else {
                    panic!("{packet:?}");
                };
                assert_eq!((tcp.src_port(), tcp.dst_port()), (src.port(), dst.port()));
                assert_eq!((tcp.seq(), tcp.ack()), (SeqNumber(seq), SeqNumber(ack)));
                assert_eq!(tcp.flags(), TcpFlags::RST | TcpFlags::ACK);
                assert_eq!((tcp.window(), tcp.payload_len), (0, 0));
            }
        }
    }

    #[test]
    fn a_mapped_address_is_one_of_version_4() {
        let asked = reset("[::ffff:192.0.2.1]:4000", "[::ffff:192.0.2.2]:80");
        let [to_server, _] = both(&asked);
        assert_eq!(to_server.dst, "192.0.2.2:80".parse().unwrap());
        assert_eq!(to_server.to_packet().len(), 40);
    }
}
