//! A capture of very many TCP connections at once, in the worst order for caches: each packet is of
//! a connection chosen by chance.
//!
//! Each connection is SYN, SYN-ACK, ACK, `exchanges` times request, ACK, response, ACK, and two FINs:
//! 6 + 4 x `exchanges` packets; a new one begins where one ends. The file is written as it comes, so
//! memory holds the connections that are open only.

use linkweir_wire::emit::TcpFrame;
use linkweir_wire::{SeqNumber, TcpFlags};
use std::io::{self, Write};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

/// What the capture is like.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ManyFlows {
    /// Connections.
    pub flows: u32,
    /// Connections at once.
    pub concurrent: u32,
    /// Requests and responses of each.
    pub exchanges: u32,
    /// Microseconds between two packets.
    pub gap_us: u32,
    /// Microseconds more behind the last packet of a connection.
    pub pause_us: u32,
    /// Of a hundred connections, those of which the capture has one direction only, as where routes are
    /// asymmetric: in turns that of the client and that of the server.
    pub one_way_per_cent: u32,
    /// Bytes of each packet that the capture has.
    pub snaplen: u32,
    /// What chance begins with: the same gives the same file.
    pub seed: u64,
}

impl Default for ManyFlows {
    /// 200,000 connections, 50,000 at once, two exchanges each, a microsecond between two packets:
    /// 2.8 million packets.
    fn default() -> Self {
        Self {
            flows: 200_000,
            concurrent: 50_000,
            exchanges: 2,
            gap_us: 1,
            pause_us: 0,
            one_way_per_cent: 0,
            snaplen: 65_535,
            seed: 7,
        }
    }
}

/// When captures begin, microseconds since the epoch.
const START_US: u64 = 1_700_000_000_000_000;
const REQUEST: &[u8] =
    b"GET /index.html?id=12345 HTTP/1.1\r\nHost: www.example.test\r\nUser-Agent: gen/1\r\n\r\n";
const RESPONSE_HEAD: &[u8] =
    b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 400\r\n\r\n";
const BODY: usize = 400;
/// Servers; clients are spread over four networks.
const SERVERS: u64 = 4_000;
/// Connections of a client before the next one has its turn.
const PER_CLIENT: u32 = 200;

/// The step at which requests begin, and the one of the first FIN.
const FIRST_REQUEST: u8 = 3;
const FIRST_FIN: u8 = 7;
const LAST: u8 = 9;

/// What the capture has of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Seen {
    Both,
    Client,
    Server,
}

/// One connection: 32 bytes.
#[derive(Debug, Clone, Copy)]
struct Open {
    client: Ipv4Addr,
    server: Ipv4Addr,
    port: u16,
    identification: u16,
    client_next: u32,
    server_next: u32,
    exchanges: u32,
    step: u8,
    seen: Seen,
}

/// Chance: xorshift64* (Vigna 2016), enough for choosing.
#[derive(Debug, Clone, Copy)]
struct Chance(u64);

impl Chance {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 8
    }

    fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound.max(1)
    }

    fn word(&mut self) -> u32 {
        u32::try_from(self.next() & 0xffff_ffff).unwrap_or(0)
    }
}

impl ManyFlows {
    /// Packets that [`ManyFlows::write`] writes.
    #[must_use]
    pub fn packets(&self) -> u64 {
        let exchanges = u64::from(self.exchanges.max(1));
        let packets = |number: u32| match self.seen(number) {
            Seen::Both => 6 + 4 * exchanges,
            Seen::Client => 4 + 2 * exchanges,
            Seen::Server => 2 + 2 * exchanges,
        };
        // What is seen of them repeats with every two hundred.
        let some = |flows: u32| (1..=flows).map(packets).sum::<u64>();
        u64::from(self.flows / 200) * some(200) + some(self.flows % 200)
    }

    /// Seconds from the first to the last packet, about.
    #[must_use]
    pub fn seconds(&self) -> f64 {
        let packets = 6.0 + 4.0 * f64::from(self.exchanges.max(1));
        let each = packets * f64::from(self.gap_us) + f64::from(self.pause_us);
        f64::from(self.flows) * each * 1e-6
    }

    const fn seen(&self, number: u32) -> Seen {
        match (
            number % 100 < self.one_way_per_cent,
            number.is_multiple_of(2),
        ) {
            (false, _) => Seen::Both,
            (true, true) => Seen::Client,
            (true, false) => Seen::Server,
        }
    }

    /// Writes the capture: classic pcap, little-endian, microseconds, Ethernet.
    ///
    /// # Errors
    /// The output takes no more.
    pub fn write(&self, mut output: impl Write) -> io::Result<()> {
        output.write_all(&crate::capture_writer::pcap(
            &[],
            crate::capture_writer::PcapVariant {
                snaplen: self.snaplen,
                ..crate::capture_writer::PcapVariant::usual(linkweir_wire::LinkType::ETHERNET)
            },
        ))?;
        // Zero would stay zero.
        let mut chance = Chance(self.seed | (1 << 63));
        let mut made = 0;
        let mut open: Vec<Open> = Vec::new();
        while made < self.concurrent.min(self.flows) {
            open.push(self.connection(&mut made, &mut chance));
        }
        let mut response = RESPONSE_HEAD.to_vec();
        response.resize(RESPONSE_HEAD.len() + BODY, 0);
        let mut record = Vec::new();
        let mut now = START_US;
        while !open.is_empty() {
            let at = chance.below(open.len() as u64);
            let at = usize::try_from(at).unwrap_or(0);
            let Some(connection) = open.get_mut(at) else {
                break;
            };
            now += u64::from(self.gap_us);
            if connection.put_packet(now, &response, self.snaplen, &mut record) {
                output.write_all(&record)?;
            }
            if connection.is_over() {
                now += u64::from(self.pause_us);
                if made < self.flows {
                    *connection = self.connection(&mut made, &mut chance);
                } else {
                    open.swap_remove(at);
                }
            }
        }
        output.flush()
    }

    fn connection(&self, made: &mut u32, chance: &mut Chance) -> Open {
        *made += 1;
        let host = (*made / PER_CLIENT) & 0xffff;
        let network = u32::try_from(chance.below(4)).unwrap_or(0) << 16;
        let server = u32::try_from(chance.below(SERVERS)).unwrap_or(0);
        let port = 1024 + (u64::from(*made) * 7) % 60_000;
        Open {
            client: Ipv4Addr::from_bits(0x0a00_0000 | network | host),
            server: Ipv4Addr::from_bits(0xc612_0000 | server),
            port: u16::try_from(port).unwrap_or(1024),
            identification: u16::try_from(chance.below(65_536)).unwrap_or(0),
            client_next: chance.word(),
            server_next: chance.word(),
            exchanges: self.exchanges.max(1),
            step: 0,
            seen: self.seen(*made),
        }
    }
}

impl Open {
    const fn is_over(&self) -> bool {
        self.step > LAST
    }

    /// Makes the next packet, as a record of the file. Whether the capture has it.
    fn put_packet(
        &mut self,
        now_us: u64,
        response: &[u8],
        snaplen: u32,
        record: &mut Vec<u8>,
    ) -> bool {
        let (syn, fin, ack) = (TcpFlags::SYN, TcpFlags::FIN, TcpFlags::ACK);
        let push = ack | TcpFlags::PSH;
        let (by_client, flags, payload): (bool, TcpFlags, &[u8]) = match self.step {
            0 => (true, syn, &[]),
            1 => (false, syn | ack, &[]),
            3 => (true, push, REQUEST),
            4 => (false, ack, &[]),
            5 => (false, push, response),
            7 => (true, fin | ack, &[]),
            8 => (false, fin | ack, &[]),
            // 2, 6 and 9.
            _ => (true, ack, &[]),
        };
        let client = SocketAddr::new(IpAddr::V4(self.client), self.port);
        let server = SocketAddr::new(IpAddr::V4(self.server), 80);
        self.identification = self.identification.wrapping_add(1);
        let millis = u32::try_from((now_us / 1000) & 0xffff_ffff).unwrap_or(0);
        let mut options = [1, 1, 8, 10, 0, 0, 0, 0, 0, 0, 0, 0];
        let times = millis.to_be_bytes().into_iter();
        let times = times.chain(millis.wrapping_sub(5).to_be_bytes());
        for (byte, value) in options.iter_mut().skip(4).zip(times) {
            *byte = value;
        }
        let (src, dst, seq, acknowledged) = if by_client {
            (client, server, self.client_next, self.server_next)
        } else {
            (server, client, self.server_next, self.client_next)
        };
        let has_ack = flags.contains(ack);
        let frame = TcpFrame {
            identification: self.identification,
            seq: SeqNumber(seq),
            ack: SeqNumber(if has_ack { acknowledged } else { 0 }),
            flags,
            window: 64_240,
            options: &options,
            payload,
            ..TcpFrame::new(src, dst)
        };
        record.clear();
        record.resize(16, 0);
        frame.append_to(record);
        let length = u32::try_from(record.len() - 16).unwrap_or(0);
        let seconds = u32::try_from(now_us / 1_000_000).unwrap_or(0);
        let micros = u32::try_from(now_us % 1_000_000).unwrap_or(0);
        let captured = length.min(snaplen);
        record.truncate(16 + usize::try_from(captured).unwrap_or(usize::MAX - 16));
        let header = [seconds, micros, captured, length];
        for (field, value) in record.chunks_exact_mut(4).zip(header) {
            field.copy_from_slice(&value.to_le_bytes());
        }
        let takes =
            u32::try_from(payload.len()).unwrap_or(0) + u32::from(flags.intersects(syn | fin));
        let next = if by_client {
            &mut self.client_next
        } else {
            &mut self.server_next
        };
        *next = next.wrapping_add(takes);
        self.step += 1;
        if self.step == FIRST_FIN {
            self.exchanges -= 1;
            if self.exchanges > 0 {
                self.step = FIRST_REQUEST;
            }
        }
        match self.seen {
            Seen::Both => true,
            Seen::Client => by_client,
            Seen::Server => !by_client,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use linkweir_wire::{LinkType, Transport, decode};
    use std::collections::HashMap;

    const SMALL: ManyFlows = ManyFlows {
        flows: 500,
        concurrent: 100,
        exchanges: 2,
        gap_us: 3,
        pause_us: 0,
        one_way_per_cent: 0,
        snaplen: 65_535,
        seed: 7,
    };

    fn written(of: ManyFlows) -> Vec<u8> {
        let mut file = Vec::new();
        of.write(&mut file).unwrap();
        file
    }

    #[test]
    fn each_connection_is_whole() {
        let file = written(SMALL);
        let mut rest = &file[24..];
        let mut packets = 0;
        let mut steps: HashMap<_, (u64, u64)> = HashMap::new();
        while !rest.is_empty() {
            let length = u32::from_le_bytes(rest[8..12].try_into().unwrap());
            let end = 16 + usize::try_from(length).unwrap();
            let packet = decode(LinkType::ETHERNET, &rest[16..end], length).unwrap();
            let Transport::Tcp(tcp) = packet.transport else {
                panic!("no TCP")
            };
            let (low, high) = (
                tcp.src_port().min(tcp.dst_port()),
                tcp.src_port().max(tcp.dst_port()),
            );
            assert_eq!(low, 80);
            // The port tells connections apart where they are few.
            let step = steps.entry(high).or_default();
            step.0 += 1;
            step.1 += u64::from(tcp.payload_len);
            packets += 1;
            rest = &rest[end..];
        }
        assert_eq!(packets, SMALL.packets());
        assert_eq!(steps.len(), 500);
        let bytes = 2 * (REQUEST.len() + RESPONSE_HEAD.len() + BODY) as u64;
        assert!(steps.values().all(|step| *step == (14, bytes)));
    }

    #[test]
    fn of_some_connections_only_one_direction_is_there() {
        let shape = ManyFlows {
            one_way_per_cent: 54,
            snaplen: 80,
            ..SMALL
        };
        let file = written(shape);
        let mut rest = &file[24..];
        let mut packets = 0;
        let mut sides: HashMap<u16, [bool; 2]> = HashMap::new();
        while !rest.is_empty() {
            let word = |at: usize| u32::from_le_bytes(rest[at..at + 4].try_into().unwrap());
            let (captured, length) = (word(8), word(12));
            assert_eq!(captured, length.min(80));
            let end = 16 + usize::try_from(captured).unwrap();
            let packet = decode(LinkType::ETHERNET, &rest[16..end], length).unwrap();
            let Transport::Tcp(tcp) = packet.transport else {
                panic!("no TCP")
            };
            let (client, side) = match tcp.dst_port() {
                80 => (tcp.src_port(), 0),
                port => (port, 1),
            };
            sides.entry(client).or_default()[side] = true;
            packets += 1;
            rest = &rest[end..];
        }
        assert_eq!(packets, shape.packets());
        let count = |seen: [bool; 2]| sides.values().filter(|sides| **sides == seen).count();
        assert_eq!(
            [[true, true], [true, false], [false, true]].map(count),
            [230, 135, 135]
        );
    }

    #[test]
    fn the_same_seed_gives_the_same_file() {
        assert_eq!(written(SMALL), written(SMALL));
        assert_ne!(written(SMALL), written(ManyFlows { seed: 8, ..SMALL }));
    }
}
