//! What the general walk carries from header to header.

use super::cursor::Cursor;
use crate::{DecodeError, DecodeErrorKind, Layer, Network, Packet, Transport};

/// VLAN tags, MPLS labels, authentication headers and the like in one frame.
const MAX_TAGS: u8 = 16;

/// A part of an IP packet, as `decode()` met it first in a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Fragment<'a> {
    pub(crate) network: Network<'a>,
    /// Protocol behind the fragment header.
    pub(crate) protocol: u8,
    pub(crate) identification: u32,
    /// Place of the data in the packet, bytes.
    pub(crate) offset: u32,
    pub(crate) has_more: bool,
    /// The data as far as it was captured.
    pub(crate) data: &'a [u8],
    /// Bytes of data on the wire.
    pub(crate) len: u32,
    pub(crate) vlan: Option<u16>,
    /// IP tunnels that it is in.
    pub(crate) tunnels: u8,
}

/// How an IEEE 802.11 header stands in its frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum WirelessHeader {
    /// As on the air.
    Plain,
    /// Filled up to whole words of 4 bytes.
    Padded,
    /// As some access points send it through CAPWAP: the bytes of frame control and sequence control may be
    /// swapped.
    PerhapsSwapped,
}

/// How an ARCnet header is laid out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Arcnet {
    /// As on the wire, with the longer header of exception packets.
    Bsd,
    /// With an offset before the system code; the kernel has put exception packets right.
    Linux,
}

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
    Ieee80211(WirelessHeader),
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
    pub(super) tags: u8,
    pub(super) tunnels: u8,
    pub(super) max_tunnels: u8,
    pub(super) fault: Option<DecodeError>,
    pub(super) outer: Option<Packet<'a>>,
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
        if self.tunnels == self.max_tunnels {
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

    pub(super) fn packet(&self, transport: Transport<'a>) -> Packet<'a> {
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
}
