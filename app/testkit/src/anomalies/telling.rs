//! Telling a case: handshake, a few round trips to warm up, and what happens then.

use super::options::{Options, Version};
use super::path::{HALF, Order, Packet, Path};
use super::{Case, Classified, Columns, Label};
use crate::capture_writer::CapturedFrame;
use crate::conversation::Side;
use linkweir_record::flow::Anomaly;
use linkweir_wire::emit::TcpFrame;
use linkweir_wire::{SeqNumber, TcpFlags};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// A millisecond, in the unit of scripts.
pub(super) const MS: u64 = 1_000;
/// Bytes of a full segment.
pub(super) const FULL: u32 = 1_000;
/// What the sender has sent before things happen: five segments, each acknowledged.
const WARM: i64 = 5_000;
/// When things happen, behind the handshake.
const BEGIN: u64 = 150 * MS;

/// Which packets of the two sides the capture point sees.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Seen {
    Both,
    /// Only those of the sender: routes differ.
    Sender,
    /// Only those of the receiver.
    Receiver,
}

/// A case that is being told. Times are microseconds from where things begin to happen, offsets
/// count the sender's bytes from there.
#[derive(Debug)]
pub(super) struct Telling {
    name: &'static str,
    path: Path,
    labels: Vec<Label>,
    begin: u64,
    end: u64,
    seen: Seen,
}

impl Telling {
    /// A connection without handshake.
    fn bare(name: &'static str, options: Options) -> Self {
        Self {
            name,
            path: Path {
                options,
                orders: Vec::new(),
                ack_delay: 0,
                windows: Vec::new(),
            },
            labels: Vec::new(),
            begin: 0,
            end: 0,
            seen: Seen::Both,
        }
    }

    /// Handshake, a question of the receiver and five segments of the sender.
    pub(super) fn new(name: &'static str, options: Options) -> Self {
        let mut telling = Self::bare(name, options);
        telling.control(0, Side::Client, TcpFlags::SYN);
        telling.control(10 * MS, Side::Server, TcpFlags::SYN | TcpFlags::ACK);
        telling.warm_up(20 * MS);
        telling
    }

    /// The same, where the client's SYN (or the server's, with ACK) is lost and comes again a second later.
    pub(super) fn with_syn_lost(name: &'static str, options: Options, whose: Side) -> Self {
        let mut telling = Self::bare(name, options);
        let mut at = HALF;
        telling.control(at, Side::Client, TcpFlags::SYN);
        if whose == Side::Client {
            telling.lost();
            at += 1_000 * MS;
            telling.control(at, Side::Client, TcpFlags::SYN);
        }
        at += 10 * MS;
        telling.control(at, Side::Server, TcpFlags::SYN | TcpFlags::ACK);
        if whose == Side::Server {
            telling.lost();
            at += 1_000 * MS;
            telling.control(at, Side::Server, TcpFlags::SYN | TcpFlags::ACK);
        }
        telling.warm_up(at + 10 * MS);
        telling
    }

    /// The same, where the client sends its first 100 bytes with the SYN (RFC 7413).
    pub(super) fn with_data_on_syn(name: &'static str, options: Options) -> Self {
        let mut telling = Self::bare(name, options);
        telling.order(Order {
            len: 100,
            ..telling.plain(0, Side::Client, TcpFlags::SYN, -1)
        });
        telling.control(10 * MS, Side::Server, TcpFlags::SYN | TcpFlags::ACK);
        let next = if options.sender == Side::Client {
            100
        } else {
            0
        };
        telling.acknowledge(20 * MS, Side::Client, 100);
        telling.begin = 30 * MS;
        telling.bytes(telling.begin, options.sender, next, FULL);
        telling.begin += 20 * MS;
        telling
    }

    /// The ACK of the handshake, and what follows; then things begin.
    fn warm_up(&mut self, at: u64) {
        self.acknowledge(at, Side::Client, 0);
        self.bytes(at + 11 * MS, self.receiver(), 0, 100);
        for segment in 0..5_u8 {
            let at = at + 30 * MS + u64::from(segment) * 20 * MS;
            self.bytes(
                at,
                self.sender(),
                i64::from(segment) * i64::from(FULL),
                FULL,
            );
        }
        self.begin = at + BEGIN - 20 * MS;
    }

    pub(super) const fn options(&self) -> Options {
        self.path.options
    }

    const fn sender(&self) -> Side {
        self.path.options.sender
    }

    const fn receiver(&self) -> Side {
        match self.sender() {
            Side::Client => Side::Server,
            Side::Server => Side::Client,
        }
    }

    const fn plain(&self, at: u64, from: Side, flags: TcpFlags, offset: i64) -> Order {
        Order {
            at: HALF + at,
            from,
            flags,
            offset,
            len: 0,
            lost: false,
            late: 0,
            held: 0,
            copy_of: None,
        }
    }

    fn order(&mut self, order: Order) {
        self.end = self.end.max(order.at);
        self.path.orders.push(order);
    }

    fn control(&mut self, at: u64, from: Side, flags: TcpFlags) {
        self.order(self.plain(at, from, flags, -1));
    }

    fn acknowledge(&mut self, at: u64, from: Side, offset: i64) {
        self.order(self.plain(at, from, TcpFlags::ACK, offset));
    }

    fn bytes(&mut self, at: u64, from: Side, offset: i64, len: u32) {
        let order = self.plain(at, from, TcpFlags::ACK | TcpFlags::PSH, offset);
        self.order(Order { len, ..order });
    }

    /// Bytes of the sender pass.
    pub(super) fn data(&mut self, at: u64, offset: i64, len: u32) -> &mut Self {
        self.bytes(self.begin + at, self.sender(), WARM + offset, len);
        self
    }

    /// A full segment of the sender passes.
    pub(super) fn full(&mut self, at: u64, offset: i64) -> &mut Self {
        self.data(at, offset, FULL)
    }

    /// An empty old segment of the sender passes, as keep-alives and probes of windows are.
    pub(super) fn empty_old(&mut self, at: u64, offset: i64) -> &mut Self {
        self.acknowledge(self.begin + at, self.sender(), WARM + offset);
        self
    }

    /// The receiver tells its window.
    pub(super) fn update(&mut self, at: u64) -> &mut Self {
        self.acknowledge(self.begin + at, self.receiver(), 100);
        self
    }

    /// The receiver's window from a time (at the receiver) on.
    pub(super) fn window(&mut self, at: u64, bytes: u16) -> &mut Self {
        self.path.windows.push((HALF + self.begin + at, bytes));
        self
    }

    /// The last packet is lost behind the capture point.
    pub(super) fn lost(&mut self) -> &mut Self {
        self.last(|order| order.lost = true)
    }

    /// The last packet was sent earlier than those around it: the network held it before the
    /// capture point.
    pub(super) fn late(&mut self, by: u64) -> &mut Self {
        self.last(|order| order.late = by)
    }

    /// The network holds the last packet behind the capture point.
    pub(super) fn held(&mut self, by: u64) -> &mut Self {
        self.last(|order| order.held = by)
    }

    fn last(&mut self, change: impl FnOnce(&mut Order)) -> &mut Self {
        if let Some(order) = self.path.orders.last_mut() {
            change(order);
        }
        self
    }

    /// The network doubles the last packet.
    pub(super) fn doubled(&mut self, after: u64) -> &mut Self {
        let original = self.path.orders.len().saturating_sub(1);
        if let Some(order) = self.path.orders.last().copied() {
            self.order(Order {
                at: order.at + after,
                copy_of: Some(original),
                ..order
            });
        }
        self
    }

    /// The receiver acknowledges every second segment, or after this time.
    pub(super) fn delays_acks(&mut self, by: u64) -> &mut Self {
        self.path.ack_delay = by;
        self
    }

    pub(super) fn sees(&mut self, seen: Seen) -> &mut Self {
        self.seen = seen;
        self
    }

    /// One segment of the sender is to be classified so.
    pub(super) fn is(&mut self, truth: Anomaly) -> &mut Self {
        self.label(Some(truth))
    }

    /// One segment of the sender is suspicious and harmless.
    pub(super) fn is_nothing(&mut self) -> &mut Self {
        self.label(None)
    }

    fn label(&mut self, truth: Classified) -> &mut Self {
        self.labels.push(Label {
            truth,
            tolerated: Vec::new(),
            tstat: vec![truth],
        });
        self
    }

    /// Where a condition holds, the capture does not show the truth, and this will do as well.
    pub(super) fn or(&mut self, condition: bool, will_do: &[Classified]) -> &mut Self {
        if condition && let Some(label) = self.labels.last_mut() {
            label.tolerated.extend(will_do);
        }
        self
    }

    /// What the published rules say.
    pub(super) fn tstat(&mut self, says: Anomaly) -> &mut Self {
        self.tstat_one_of(&[Some(says)])
    }

    /// The published rules say one of these; which, depends on how lists of segments are merged.
    pub(super) fn tstat_one_of(&mut self, says: &[Classified]) -> &mut Self {
        if let Some(label) = self.labels.last_mut() {
            label.tstat = says.to_vec();
        }
        self
    }

    /// What the published rules say of a segment that was seen before: where the identification
    /// never changes they take it for a copy.
    pub(super) fn tstat_seen(&mut self, says: Anomaly) -> &mut Self {
        let is_constant = self.options().is_constant_id();
        self.tstat(if is_constant {
            Anomaly::NetworkDuplicate
        } else {
            says
        })
    }

    /// Both sides close; then the case is complete. `port` is the client's.
    pub(super) fn told(&mut self, port: u16, start_ns: u64) -> Case {
        let at = self.end - HALF + 30 * MS;
        let of = |orders: &[Order], side: Side| {
            let ends = orders.iter().filter(|o| o.from == side);
            ends.map(|o| o.offset + i64::from(o.len)).max().unwrap_or(0)
        };
        for (side, at) in [(self.receiver(), at), (self.sender(), at + 10 * MS)] {
            let has_fin = |o: &Order| o.from == side && o.flags.contains(TcpFlags::FIN);
            if !self.path.orders.iter().any(has_fin) {
                let offset = of(&self.path.orders, side).max(0);
                self.order(self.plain(at, side, TcpFlags::FIN | TcpFlags::ACK, offset));
            }
        }
        self.written(port, start_ns)
    }

    /// The sender's FIN, behind so many bytes.
    pub(super) fn fin(&mut self, at: u64, offset: i64) -> &mut Self {
        let flags = TcpFlags::FIN | TcpFlags::ACK;
        self.order(self.plain(self.begin + at, self.sender(), flags, WARM + offset));
        self
    }

    fn written(&self, port: u16, start_ns: u64) -> Case {
        let options = self.options();
        let mut passed = self.path.run();
        passed.sort_by_key(|(at, ..)| *at);
        let shown = match self.seen {
            Seen::Both => None,
            Seen::Sender => Some(self.sender()),
            Seen::Receiver => Some(self.receiver()),
        };
        passed.retain(|(_, _, packet)| {
            shown.is_none_or(|side| (side == Side::Client) == packet.from_client)
        });
        let ends = Ends::new(options, port);
        let frames = passed
            .iter()
            .map(|(at, _, packet)| {
                let bytes = ends.frame(packet);
                CapturedFrame {
                    timestamp_ns: start_ns + at * 1_000,
                    interface: 0,
                    wire_len: u32::try_from(bytes.len()).unwrap_or(u32::MAX),
                    bytes,
                }
            })
            .collect();
        let of = |client| {
            passed
                .iter()
                .map(|p| &p.2)
                .filter(move |p| p.from_client == client)
        };
        Case {
            name: self.name,
            options,
            port,
            is_one_way: self.seen != Seen::Both,
            frames,
            labels: self.labels.clone(),
            client: Columns::of(of(true)),
            server: Columns::of(of(false)),
        }
    }
}

/// Addresses and first sequence numbers.
struct Ends {
    options: Options,
    client: SocketAddr,
    server: SocketAddr,
    client_first: u32,
    server_first: u32,
}

impl Ends {
    fn new(options: Options, port: u16) -> Self {
        let (client, server) = match options.version {
            Version::V4 => (
                IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1)),
                IpAddr::V4(Ipv4Addr::new(198, 51, 100, 2)),
            ),
            Version::V6 => (
                IpAddr::V6(Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1)),
                IpAddr::V6(Ipv6Addr::new(0x2001, 0xdb8, 1, 0, 0, 0, 0, 2)),
            ),
        };
        // The sender's number 0 is in the middle of the first segment of the case, the receiver's
        // in the middle of its question.
        let first = |side| match (options.wraps, options.sender == side) {
            (false, _) if side == Side::Client => 1_001,
            (false, _) => 500_001,
            (true, true) => 0_u32.wrapping_sub(5_500),
            (true, false) => 0_u32.wrapping_sub(50),
        };
        Self {
            options,
            client: SocketAddr::new(client, port),
            server: SocketAddr::new(server, 80),
            client_first: first(Side::Client),
            server_first: first(Side::Server),
        }
    }

    fn frame(&self, packet: &Packet) -> Vec<u8> {
        let ends = [
            (self.client, self.client_first),
            (self.server, self.server_first),
        ];
        let [from, to] = if packet.from_client {
            ends
        } else {
            let [client, server] = ends;
            [server, client]
        };
        let number = |first: u32, offset: i64| {
            let low = u32::try_from(offset.rem_euclid(1 << 32)).unwrap_or(0);
            SeqNumber(first.wrapping_add(low))
        };
        let options = self.options_of(packet, |offset| number(to.1, offset));
        let payload = vec![b'x'; usize::try_from(packet.len).unwrap_or(0)];
        TcpFrame {
            identification: packet.identification,
            seq: number(from.1, packet.offset),
            // A SYN that arrives as the SYN-ACK leaves is acknowledged by it.
            ack: packet
                .ack
                .or_else(|| TcpFlags(packet.flags).contains(TcpFlags::ACK).then_some(0))
                .map_or(SeqNumber(0), |ack| number(to.1, ack)),
            flags: TcpFlags(packet.flags),
            window: packet.window,
            options: &options,
            payload: &payload,
            ..TcpFrame::new(from.0, to.0)
        }
        .to_vec()
    }

    fn options_of(&self, packet: &Packet, number: impl Fn(i64) -> SeqNumber) -> Vec<u8> {
        let is_syn = TcpFlags(packet.flags).contains(TcpFlags::SYN);
        let mut options = Vec::new();
        if is_syn {
            options.extend([2, 4, 0x05, 0xb4]);
            if self.options.sack {
                options.extend([1, 1, 4, 2]);
            }
        }
        if self.options.timestamps {
            options.extend([1, 1, 8, 10]);
            options.extend(packet.timestamps.0.to_be_bytes());
            options.extend(packet.timestamps.1.to_be_bytes());
        }
        if !packet.blocks.is_empty() && !is_syn {
            let length = 2 + 8 * u8::try_from(packet.blocks.len()).unwrap_or(3);
            options.extend([1, 1, 5, length]);
            for (from, to) in &packet.blocks {
                options.extend(number(*from).0.to_be_bytes());
                options.extend(number(*to).0.to_be_bytes());
            }
        }
        options
    }
}
