//! The general path: one header per turn until an IP packet is reached.

use super::cursor::Cursor;
use super::state::{Fragment, Next, Step, Walk};
use super::{ip, link, media, transport, tunnel, wireless};
use crate::{DecodeError, DecodeErrorKind, LinkType, Network, Packet, Transport};

/// IP tunnels in one frame.
const MAX_TUNNELS: u8 = 8;

impl<'a> Walk<'a> {
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
    const fn through(max_tunnels: u8) -> Self {
        Self {
            network: Network::None,
            vlan: None,
            in_fragment: false,
            fragment: None,
            tags: 0,
            tunnels: 0,
            max_tunnels,
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
