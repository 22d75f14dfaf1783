//! Link types: what the first byte of a frame is.

/// A link type as capture files write it (`LINKTYPE_*` of the pcap registry).
///
/// Source: the registry of link-layer header types of the tcpdump group.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct LinkType(pub u16);

impl LinkType {
    /// BSD loopback: four bytes of address family in the writer's byte order.
    pub const NULL: Self = Self(0);
    /// Ethernet II and IEEE 802.3.
    pub const ETHERNET: Self = Self(1);
    /// PPP, with or without the HDLC address and control bytes.
    pub const PPP: Self = Self(9);
    /// Raw IP as some BSD writers number it.
    pub const RAW_BSD: Self = Self(12);
    /// Raw IP as OpenBSD numbers it.
    pub const RAW_OPENBSD: Self = Self(14);
    /// PPP in HDLC-like framing (RFC 1662).
    pub const PPP_HDLC: Self = Self(50);
    /// PPP over Ethernet session frames, from the PPPoE header on.
    pub const PPP_ETHER: Self = Self(51);
    /// Raw IP: version 4 or 6 by the first nibble.
    pub const RAW: Self = Self(101);
    /// Cisco HDLC.
    pub const CISCO_HDLC: Self = Self(104);
    /// OpenBSD loopback: four bytes of address family in network byte order.
    pub const LOOP: Self = Self(108);
    /// Linux "cooked" capture, version 1.
    pub const LINUX_SLL: Self = Self(113);
    /// Raw IPv4.
    pub const IPV4: Self = Self(228);
    /// Raw IPv6.
    pub const IPV6: Self = Self(229);
    /// Linux "cooked" capture, version 2.
    pub const LINUX_SLL2: Self = Self(276);
}
