//! Counters that move with every packet.
//!
//! Every value has its own place in an array; bins and moments are made of them when the step ends,
//! so that they are exact and cost nothing before.

use linkweir_record::flow::Protocol;
use linkweir_sketch::Step;
use linkweir_sketch::cells::{Direction, SeriesId, Transport as Layer4};
use linkweir_sketch::step::{HistogramId, HistogramSet};
use linkweir_wire::{Network, Packet, TcpFlags, Transport};

use super::ids::{ByDirection, ids};
use super::{L7Class, sites};

/// Lengths below this have their own place: all of Ethernet without jumbo frames.
const LENGTHS: usize = 2048;
const DIRECTIONS: [Direction; 4] = [
    Direction::In,
    Direction::Out,
    Direction::Loc,
    Direction::Ext,
];
const LAYERS: [Layer4; 4] = [Layer4::Tcp, Layer4::Udp, Layer4::Icmp, Layer4::Other];

/// What the packets of the current step were, by direction.
#[derive(Debug)]
pub(super) struct PacketCounts {
    directions: Vec<Counts>,
}

impl Default for PacketCounts {
    fn default() -> Self {
        Self {
            directions: vec![Counts::EMPTY; DIRECTIONS.len()],
        }
    }
}

/// Packets by a value of their IP header.
#[derive(Debug, Clone)]
struct Headers {
    lengths: [u64; LENGTHS],
    protocols: [u64; 256],
    ttls: [u64; 256],
    /// Type of service; of version 6 there is no histogram.
    tos: [u64; 256],
    packets: [u64; 4],
    bytes: [u64; 4],
}

impl Headers {
    const EMPTY: Self = Self {
        lengths: [0; LENGTHS],
        protocols: [0; 256],
        ttls: [0; 256],
        tos: [0; 256],
        packets: [0; 4],
        bytes: [0; 4],
    };
}

#[inline]
fn count<const N: usize>(places: &mut [u64; N], at: usize, by: u64) {
    if let Some(place) = places.get_mut(at) {
        *place = place.wrapping_add(by);
    }
}

/// What the packets of one direction were.
#[derive(Debug, Clone)]
struct Counts {
    v4: Headers,
    v6: Headers,
    tcp_classes: [u64; L7Class::PLACES],
    udp_classes: [u64; L7Class::COUNT],
    tcp_src: Ports,
    tcp_dst: Ports,
    syn_src: Ports,
    syn_dst: Ports,
    udp_dst: Ports,
    icmp6_types: [u64; 256],
}

impl Counts {
    const EMPTY: Self = Self {
        v4: Headers::EMPTY,
        v6: Headers::EMPTY,
        tcp_classes: [0; L7Class::PLACES],
        udp_classes: [0; L7Class::COUNT],
        tcp_src: Ports::EMPTY,
        tcp_dst: Ports::EMPTY,
        syn_src: Ports::EMPTY,
        syn_dst: Ports::EMPTY,
        udp_dst: Ports::EMPTY,
        icmp6_types: [0; 256],
    };
}

/// Packets by port: 256 kB once there is one.
#[derive(Debug, Clone)]
struct Ports {
    counts: Vec<u32>,
    /// Ports whose counter was full, with what it held.
    full: Vec<u16>,
}

impl Ports {
    const EMPTY: Self = Self {
        counts: Vec::new(),
        full: Vec::new(),
    };

    #[inline]
    fn count(&mut self, port: u16) {
        match self.counts.get_mut(usize::from(port)) {
            Some(count) if *count < u32::MAX => *count += 1,
            _ => self.count_slowly(port),
        }
    }

    #[cold]
    fn count_slowly(&mut self, port: u16) {
        if self.counts.is_empty() {
            self.counts.resize(1 << 16, 0);
        }
        if let Some(count) = self.counts.get_mut(usize::from(port)) {
            if *count == u32::MAX {
                self.full.push(port);
                *count = 0;
            }
            *count += 1;
        }
    }

    fn drain(&mut self, id: HistogramId, into: &mut HistogramSet) {
        for port in self.full.drain(..) {
            into.add_n(id, u64::from(port), u64::from(u32::MAX));
        }
        for (port, count) in (0..).zip(&mut self.counts) {
            if *count > 0 {
                into.add_n(id, port, u64::from(std::mem::take(count)));
            }
        }
    }
}

impl PacketCounts {
    /// Counts a packet. Lengths that have no place of their own go to `step` at once.
    #[inline]
    pub(super) fn count(
        &mut self,
        packet: &Packet<'_>,
        src_internal: bool,
        dst_internal: bool,
        ip_len: u32,
        step: &mut Step,
    ) {
        let direction = Direction::of(src_internal, dst_internal);
        let Some(counts) = self.directions.get_mut(direction as usize) else {
            return;
        };
        let protocol = packet.network.protocol();
        let layer = match &packet.transport {
            Transport::Tcp(tcp) => {
                let (src, dst) = (tcp.src_port(), tcp.dst_port());
                counts.tcp_src.count(src);
                counts.tcp_dst.count(dst);
                let flags = tcp.flags();
                if flags.contains(TcpFlags::SYN) && !flags.contains(TcpFlags::ACK) {
                    counts.syn_src.count(src);
                    counts.syn_dst.count(dst);
                }
                Layer4::Tcp
            }
            Transport::Udp(udp) => {
                counts.udp_dst.count(udp.dst_port());
                Layer4::Udp
            }
            Transport::Icmp6(kind) => {
                count(&mut counts.icmp6_types, usize::from(*kind), 1);
                Layer4::Icmp
            }
            _ => layer_of(protocol),
        };
        let (headers, len) = match packet.network {
            Network::V4(_) => (&mut counts.v4, ip_len),
            // Tstat counts what follows the first header.
            Network::V6(_) => (&mut counts.v6, ip_len.saturating_sub(40)),
            Network::None => return,
        };
        count(&mut headers.packets, layer as usize, 1);
        count(&mut headers.bytes, layer as usize, u64::from(ip_len));
        count(&mut headers.protocols, usize::from(protocol), 1);
        count(&mut headers.ttls, usize::from(packet.network.ttl()), 1);
        let tos = packet.network.traffic_class();
        count(&mut headers.tos, usize::from(tos), 1);
        match headers.lengths.get_mut(len as usize) {
            Some(place) => *place = place.wrapping_add(1),
            None => count_long(packet, direction, len, step),
        }
    }

    /// Counts the bytes of a packet of a flow for its class.
    #[inline]
    pub(super) fn count_class(
        &mut self,
        protocol: Protocol,
        class: L7Class,
        src_internal: bool,
        dst_internal: bool,
        ip_len: u32,
    ) {
        let direction = Direction::of(src_internal, dst_internal);
        if let Some(counts) = self.directions.get_mut(direction as usize) {
            let (place, bytes) = (usize::from(class.number()), u64::from(ip_len));
            match protocol {
                Protocol::Tcp => count(&mut counts.tcp_classes, place, bytes),
                Protocol::Udp => count(&mut counts.udp_classes, place, bytes),
            }
        }
    }

    /// Puts everything into the step and begins at zero.
    pub(super) fn drain(&mut self, step: &mut Step) {
        for (direction, counts) in DIRECTIONS.into_iter().zip(&mut self.directions) {
            drain_direction(direction, counts, step);
        }
    }
}

/// What a protocol number says where there is no transport header.
const fn layer_of(protocol: u8) -> Layer4 {
    match protocol {
        6 => Layer4::Tcp,
        17 => Layer4::Udp,
        1 | 58 => Layer4::Icmp,
        _ => Layer4::Other,
    }
}

#[cold]
fn count_long(packet: &Packet<'_>, direction: Direction, len: u32, step: &mut Step) {
    let ids = ids();
    let family = match packet.network.version() {
        6 => ids.ip6_plen,
        _ => ids.ip_len,
    };
    step.histograms.add(family.get(direction), u64::from(len));
}

fn drain_direction(direction: Direction, counts: &mut Counts, step: &mut Step) {
    let ids = ids();
    for (at, layer) in LAYERS.into_iter().enumerate() {
        let of = |places: &[u64; 4]| places.get(at).copied().unwrap_or_default();
        let (v4, v6) = (of(&counts.v4.bytes), of(&counts.v6.bytes));
        let packets = of(&counts.v4.packets) + of(&counts.v6.packets);
        step.cells.add(SeriesId::packets(layer, direction), packets);
        step.cells.add(SeriesId::bytes(layer, direction), v4 + v6);
        // Tstat's classes are TCP, UDP and others of version 4, then of version 6.
        let class = at.min(2) as u64;
        let l3 = [
            (class, v4, of(&counts.v4.packets)),
            (class + 3, v6, of(&counts.v6.packets)),
        ];
        for (class, bytes, packets) in l3 {
            step.histograms
                .add_n(ids.l3_bitrate.get(direction), class, bytes);
            step.histograms
                .add_n(ids.l3_protocol.get(direction), class, packets);
        }
        for family in ids.ip_bitrate {
            let id = family.get(direction);
            // TCP, UDP, ICMP, and the total.
            if at < 3 {
                step.histograms.add_n(id, at as u64, v4 + v6);
            }
            step.histograms.add_n(id, 3, v4 + v6);
        }
    }
    let into = &mut step.histograms;
    for (places, id) in [
        (counts.v4.lengths.as_mut_slice(), ids.ip_len.get(direction)),
        (&mut counts.v4.protocols, ids.ip_protocol.get(direction)),
        (&mut counts.v4.ttls, ids.ip_ttl.get(direction)),
        (&mut counts.v4.tos, ids.ip_tos.get(direction)),
        (&mut counts.v6.lengths, ids.ip6_plen.get(direction)),
        (&mut counts.v6.protocols, ids.ip6_protocol.get(direction)),
        (&mut counts.v6.ttls, ids.ip6_hop_limit.get(direction)),
        (&mut counts.icmp6_types, ids.icmpv6_type.get(direction)),
    ] {
        drain_places(places, id, into);
    }
    for family in ids.udp_bitrate {
        for (class, bytes) in (0..).zip(&counts.udp_classes) {
            into.add_n(family.get(direction), class, *bytes);
        }
    }
    for (class, bytes) in (0..).map(L7Class).zip(&counts.tcp_classes) {
        drain_class(class, *bytes, direction, into);
    }
    counts.tcp_classes.fill(0);
    counts.udp_classes.fill(0);
    for headers in [&mut counts.v4, &mut counts.v6] {
        headers.packets.fill(0);
        headers.bytes.fill(0);
        headers.tos.fill(0);
    }
    for (ports, family) in [
        (&mut counts.tcp_src, ids.tcp_port_src),
        (&mut counts.tcp_dst, ids.tcp_port_dst),
        (&mut counts.syn_src, ids.tcp_port_synsrc),
        (&mut counts.syn_dst, ids.tcp_port_syndst),
        (&mut counts.udp_dst, ids.udp_port_dst),
    ] {
        ports.drain(family.get(direction), into);
    }
}

/// Bytes of TCP of a class, and of the class of sites that it names.
fn drain_class(class: L7Class, bytes: u64, direction: Direction, into: &mut HistogramSet) {
    if bytes == 0 {
        return;
    }
    let ids = ids();
    let mut add = |family: ByDirection, class: u8| {
        into.add_n(family.get(direction), u64::from(class), bytes);
    };
    for family in ids.tcp_bitrate {
        add(family, class.application());
    }
    if let Some(class) = class.tls_class() {
        add(ids.tls_bitrate, class);
    }
    if let Some(class) = class.http_class() {
        for family in ids.http_bitrate {
            add(family, sites::counted(class));
        }
        add(ids.web_bitrate, sites::web_category(class));
    }
}

fn drain_places(places: &mut [u64], id: HistogramId, into: &mut HistogramSet) {
    for (value, count) in (0..).zip(places) {
        into.add_n(id, value, std::mem::take(count));
    }
}
