//! Link types: what the first byte of a frame is.

use std::fmt;

/// A link type as capture files write it (`LINKTYPE_*` of the pcap registry).
///
/// Source: the registry of link-layer header types of the tcpdump group.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct LinkType(pub u16);

impl LinkType {
    /// Those that [`decode`](crate::decode()) knows.
    pub const DECODED: [Self; 26] = [
        Self::NULL,
        Self::ETHERNET,
        Self::PPP,
        Self::RAW_BSD,
        Self::RAW_OPENBSD,
        Self::PPP_HDLC,
        Self::PPP_ETHER,
        Self::RAW,
        Self::CISCO_HDLC,
        Self::LOOP,
        Self::LINUX_SLL,
        Self::IPV4,
        Self::IPV6,
        Self::LINUX_SLL2,
        Self::IEEE802_11,
        Self::IEEE802_11_RADIOTAP,
        Self::IEEE802_11_PRISM,
        Self::IEEE802_11_AVS,
        Self::PPI,
        Self::NFLOG,
        Self::FRELAY,
        Self::MFR,
        Self::SLIP,
        Self::FDDI,
        Self::ARCNET_BSD,
        Self::ARCNET_LINUX,
    ];

    /// BSD loopback: four bytes of address family in the writer's byte order.
    pub const NULL: Self = Self(0);
    /// Ethernet II and IEEE 802.3.
    pub const ETHERNET: Self = Self(1);
    /// ARCnet as BSD writes it.
    pub const ARCNET_BSD: Self = Self(7);
    /// SLIP behind a header of 16 bytes.
    pub const SLIP: Self = Self(8);
    /// PPP, with or without the HDLC address and control bytes.
    pub const PPP: Self = Self(9);
    /// FDDI.
    pub const FDDI: Self = Self(10);
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
    /// IEEE 802.11.
    pub const IEEE802_11: Self = Self(105);
    /// Frame Relay.
    pub const FRELAY: Self = Self(107);
    /// OpenBSD loopback: four bytes of address family in network byte order.
    pub const LOOP: Self = Self(108);
    /// Linux "cooked" capture, version 1.
    pub const LINUX_SLL: Self = Self(113);
    /// IEEE 802.11 behind the header of Prism cards.
    pub const IEEE802_11_PRISM: Self = Self(119);
    /// IEEE 802.11 behind a radiotap header.
    pub const IEEE802_11_RADIOTAP: Self = Self(127);
    /// ARCnet as Linux writes it.
    pub const ARCNET_LINUX: Self = Self(129);
    /// IEEE 802.11 behind an AVS header.
    pub const IEEE802_11_AVS: Self = Self(163);
    /// Multilink Frame Relay (FRF.16.1).
    pub const MFR: Self = Self(182);
    /// Per-packet information, and behind it a frame of any link type.
    pub const PPI: Self = Self(192);
    /// Raw IPv4.
    pub const IPV4: Self = Self(228);
    /// Raw IPv6.
    pub const IPV6: Self = Self(229);
    /// Attributes of netfilter's log.
    pub const NFLOG: Self = Self(239);
    /// Linux "cooked" capture, version 2.
    pub const LINUX_SLL2: Self = Self(276);
}

/// Names of link types, by number: those that are decoded, and others that one meets.
///
/// Source: the registry of link-layer header types of the tcpdump group.
const NAMES: &[(u16, &str)] = &[
    (0, "BSD loopback"),
    (1, "Ethernet"),
    (3, "AX.25"),
    (6, "IEEE 802.5 Token Ring"),
    (7, "ARCnet"),
    (8, "SLIP"),
    (9, "PPP"),
    (10, "FDDI"),
    (12, "raw IP"),
    (14, "raw IP"),
    (50, "PPP in HDLC framing"),
    (51, "PPPoE"),
    (99, "Symantec firewall"),
    (100, "ATM (RFC 1483)"),
    (101, "raw IP"),
    (104, "Cisco HDLC"),
    (105, "IEEE 802.11"),
    (106, "ATM classical IP"),
    (107, "Frame Relay"),
    (108, "OpenBSD loopback"),
    (109, "IPsec of OpenBSD"),
    (113, "Linux cooked"),
    (114, "LocalTalk"),
    (117, "OpenBSD pf log"),
    (119, "IEEE 802.11 with Prism header"),
    (122, "IP over Fibre Channel"),
    (123, "ATM of SunATM"),
    (127, "IEEE 802.11 with radiotap"),
    (129, "ARCnet of Linux"),
    (130, "Juniper MLPPP"),
    (131, "Juniper MLFR"),
    (132, "Juniper encryption services"),
    (133, "Juniper GGSN"),
    (134, "Juniper MFR"),
    (135, "Juniper ATM2"),
    (136, "Juniper services"),
    (137, "Juniper ATM1"),
    (138, "IP over IEEE 1394"),
    (139, "MTP2 with pseudo-header"),
    (140, "SS7 MTP2"),
    (141, "SS7 MTP3"),
    (142, "SS7 SCCP"),
    (143, "DOCSIS"),
    (144, "IrDA of Linux"),
    (163, "IEEE 802.11 with AVS header"),
    (165, "BACnet MS/TP"),
    (166, "PPP of pppd"),
    (169, "GPRS LLC"),
    (177, "LAPD of Linux"),
    (178, "Juniper Ethernet"),
    (179, "Juniper PPP"),
    (180, "Juniper Frame Relay"),
    (181, "Juniper Cisco HDLC"),
    (182, "Multilink Frame Relay"),
    (187, "Bluetooth HCI H4"),
    (189, "USB of Linux"),
    (192, "PPI"),
    (195, "IEEE 802.15.4"),
    (197, "Endace ERF"),
    (201, "Bluetooth HCI H4 with direction"),
    (204, "PPP with direction"),
    (205, "Cisco HDLC with direction"),
    (206, "Frame Relay with direction"),
    (209, "IPMB of Linux"),
    (215, "IEEE 802.15.4 with PHY"),
    (220, "USB of Linux, padded"),
    (227, "CAN of SocketCAN"),
    (228, "raw IPv4"),
    (229, "raw IPv6"),
    (230, "IEEE 802.15.4 without FCS"),
    (231, "D-Bus"),
    (239, "NFLOG"),
    (240, "netANALYZER"),
    (243, "MPEG-2 transport stream"),
    (247, "InfiniBand"),
    (248, "SCTP"),
    (249, "USBPcap"),
    (251, "Bluetooth LE"),
    (252, "exported PDUs of Wireshark"),
    (253, "netlink"),
    (254, "Bluetooth of Linux"),
    (256, "Bluetooth LE with PHY"),
    (258, "Apple PKTAP"),
    (271, "vsock"),
    (272, "Nordic BLE sniffer"),
    (276, "Linux cooked, version 2"),
    (280, "ELEE lawful interception"),
    (281, "Broadcom switch tag"),
    (282, "Broadcom switch tag, prepended"),
    (283, "IEEE 802.15.4 TAP"),
    (284, "Marvell DSA"),
    (285, "Marvell EDSA"),
];

impl LinkType {
    /// Its name; nothing for numbers that one does not meet.
    #[must_use]
    pub fn name(self) -> Option<&'static str> {
        let place = NAMES.binary_search_by_key(&self.0, |&(number, _)| number);
        place
            .ok()
            .and_then(|at| NAMES.get(at))
            .map(|&(_, name)| name)
    }
}

/// The name, or the number where there is none.
impl fmt::Display for LinkType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name() {
            Some(name) => f.write_str(name),
            None if (147..=162).contains(&self.0) => {
                write!(f, "private (DLT_USER{})", self.0 - 147)
            }
            None => write!(f, "link type {}", self.0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_in_order_and_numbers_stand_for_what_has_none() {
        assert!(NAMES.windows(2).all(|pair| pair[0].0 < pair[1].0));
        assert_eq!(LinkType(127).to_string(), "IEEE 802.11 with radiotap");
        assert_eq!(LinkType(150).to_string(), "private (DLT_USER3)");
        assert_eq!(LinkType(60_000).to_string(), "link type 60000");
    }
}
