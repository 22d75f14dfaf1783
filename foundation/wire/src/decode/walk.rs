//! The general path: one header per turn until an IP packet is told.

use super::cursor::Cursor;
use super::media::{self, Arcnet};
use super::wireless::{self, Header};
use super::{ip, link, transport, tunnel};
use crate::fragments::Fragment;
use crate::{DecodeError, DecodeErrorKind, Layer, LinkType, Network, Packet, Transport};

/// VLAN tags, MPLS labels, authentication headers and the like in one frame.
const MAX_TAGS: u8 = 16;
/// IP tunnels in one frame.
const MAX_TUNNELS: u8 = 8;

/// What the bytes at the cursor are.
#[derive(Debug, Clone, Copy)]
pub(super) enum Next {
    Ethernet,
    LinuxSll,
    LinuxSll2,
    Null,
    Pppoe,
    Ppp,
    CiscoHdlc,
    Llc,
    Snap,
    Ieee80211(Header),
    Radiotap,
    Prism,
    Avs,
    Ppi,
    Nflog,
    FrameRelay,
    MultilinkFrameRelay,
    Slip,
    Fddi,
    Arcnet(Arcnet),
    Mpls,
    Ip,
    Ipv4,
    Ipv6,
    EtherType(u16),
    Protocol(u8),
    Gre,
    Vxlan,
    VxlanGpe,
    Geneve,
    GtpU,
    Teredo,
    Capwap,
    Ayiya,
}

/// The outcome of reading one header.
#[derive(Debug, Clone, Copy)]
pub(super) enum Step<'a> {
    Into(Next, Cursor<'a>),
    Done(Transport<'a>),
}

/// What the walk carries from header to header.
#[derive(Debug)]
pub(super) struct Walk<'a> {
    pub(super) network: Network<'a>,
    pub(super) vlan: Option<u16>,
    /// Inside the first fragment of a packet, lengths may well point beyond its end.
    pub(super) in_fragment: bool,
    /// The first fragment that was met.
    pub(super) fragment: Option<Fragment<'a>>,
    tags: u8,
    pub(super) tunnels: u8,
    most_tunnels: u8,
    fault: Option<DecodeError>,
    outer: Option<Packet<'a>>,
}

impl<'a> Walk<'a> {
    /// Counts a tag or another header that can repeat.
    pub(super) fn tag(&mut self, layer: Layer, at: Cursor<'_>) -> Result<(), DecodeError> {
        if self.tags == MAX_TAGS {
            return Err(at.error(layer, DecodeErrorKind::TooDeep));
        }
        self.tags = self.tags.saturating_add(1);
        Ok(())
    }

    /// Opens a tunnel; `carrier` is what the packet is if the inside does not decode.
    pub(super) fn tunnel(
        &mut self,
        carrier: Transport<'a>,
        layer: Layer,
        at: Cursor<'_>,
    ) -> Result<(), DecodeError> {
        self.outer = Some(self.packet(carrier));
        if self.tunnels == self.most_tunnels {
            return Err(at.error(layer, DecodeErrorKind::TooDeep));
        }
        self.tunnels = self.tunnels.saturating_add(1);
        Ok(())
    }

    /// Keeps the first thing that is wrong with a packet that stands.
    #[cold]
    pub(super) fn note(&mut self, fault: DecodeError) {
        if !self.in_fragment {
            self.fault.get_or_insert(fault);
        }
    }

    /// Ends `at` after `len` bytes, the value of a length field of `layer`.
    pub(super) fn limit(&mut self, at: Cursor<'a>, len: u32, layer: Layer) -> Cursor<'a> {
        if len > at.wire {
            self.note(at.beyond_end(layer, len));
        }
        at.limit(len)
    }

    fn packet(&self, transport: Transport<'a>) -> Packet<'a> {
        Packet {
            network: self.network,
            transport,
            vlan: self.vlan,
            tunnels: self.tunnels,
            is_fragment: self.fragment.is_some(),
            is_later_fragment: self.fragment.is_some_and(|fragment| fragment.offset > 0),
            fault: self.fault,
        }
    }

    fn step(&mut self, next: Next, at: Cursor<'a>) -> Result<Step<'a>, DecodeError> {
        match next {
            Next::Ethernet => link::ethernet(self, at),
            Next::LinuxSll => link::linux_sll(at),
            Next::LinuxSll2 => link::linux_sll2(at),
            Next::Null => link::null(at),
            Next::Pppoe => link::pppoe(self, at),
            Next::Ppp => link::ppp(at),
            Next::CiscoHdlc => link::cisco_hdlc(at),
            Next::Llc => link::llc(at),
            Next::Snap => link::snap(self, at),
            Next::Ieee80211(form) => wireless::ieee_802_11(self, form, at),
            Next::Radiotap => wireless::radiotap(self, at),
            Next::Prism => wireless::prism(self, at),
            Next::Avs => wireless::avs(self, at),
            Next::Ppi => wireless::ppi(self, at),
            Next::Nflog => media::nflog(self, at),
            Next::FrameRelay => media::frame_relay(self, at),
            Next::MultilinkFrameRelay => media::multilink_frame_relay(self, at),
            Next::Slip => media::slip(at),
            Next::Fddi => media::fddi(at),
            Next::Arcnet(form) => media::arcnet(self, form, at),
            Next::Mpls => link::mpls(self, at),
            Next::EtherType(ethertype) => link::ethertype(self, ethertype, at),
            Next::Ip => ip::by_version(at),
            Next::Ipv4 => ip::v4(self, at),
            Next::Ipv6 => ip::v6(self, at),
            Next::Protocol(protocol) => transport::protocol(self, protocol, at),
            Next::Gre => tunnel::gre(self, at),
            Next::Vxlan => tunnel::vxlan(at),
            Next::Geneve => tunnel::geneve(at),
            Next::GtpU => tunnel::gtp_u(self, at),
            Next::Teredo => tunnel::teredo(at),
            Next::VxlanGpe => tunnel::vxlan_gpe(at),
            Next::Capwap => tunnel::capwap(self, at),
            Next::Ayiya => tunnel::ayiya(at),
        }
    }
}

/// Decodes any frame. See [`decode`](super::decode()).
#[inline(never)]
pub(super) fn walk(link: LinkType, frame: &[u8], wire_len: u32) -> Result<Packet<'_>, DecodeError> {
    Walk::through(MAX_TUNNELS).run(link, frame, wire_len)
}

/// See [`decode_outermost`](super::decode_outermost).
#[inline(never)]
pub(super) fn outermost(
    link: LinkType,
    frame: &[u8],
    wire_len: u32,
) -> Result<Packet<'_>, DecodeError> {
    let mut packet = Walk::through(0).run(link, frame, wire_len)?;
    let is_tunnel = |fault: DecodeError| matches!(fault.kind, DecodeErrorKind::TooDeep);
    packet.fault = packet.fault.filter(|fault| !is_tunnel(*fault));
    Ok(packet)
}

/// The first IP fragment on the way of a frame; see [`Fragments`](crate::Fragments).
pub(super) fn fragment(link: LinkType, frame: &[u8], wire_len: u32) -> Option<Fragment<'_>> {
    let mut walk = Walk::through(MAX_TUNNELS);
    // What is inside a part of a packet may well be wrong.
    let _packet = walk.run(link, frame, wire_len);
    walk.fragment
}

impl<'a> Walk<'a> {
    /// A walk through so many tunnels at most.
    const fn through(most_tunnels: u8) -> Self {
        Self {
            network: Network::None,
            vlan: None,
            in_fragment: false,
            fragment: None,
            tags: 0,
            tunnels: 0,
            most_tunnels,
            fault: None,
            outer: None,
        }
    }

    fn run(
        &mut self,
        link: LinkType,
        frame: &'a [u8],
        wire_len: u32,
    ) -> Result<Packet<'a>, DecodeError> {
        let mut at = Cursor::new(frame, wire_len);
        let mut next = link::first(link, at)?;
        loop {
            match self.step(next, at) {
                Ok(Step::Into(inner, rest)) => (next, at) = (inner, rest),
                Ok(Step::Done(transport)) => {
                    // A tunnel that carries no IP is a packet of its own.
                    return Ok(match (transport, self.outer) {
                        (Transport::NotIp(_), Some(outer)) => outer,
                        _ => self.packet(transport),
                    });
                }
                // What is inside is read when the packet is whole.
                Err(_) if self.fragment.is_some() => {
                    return Ok(self.packet(Transport::Fragment));
                }
                Err(error) => {
                    let mut outer = self.outer.ok_or(error)?;
                    outer.fault.get_or_insert(error);
                    return Ok(outer);
                }
            }
        }
    }
}
