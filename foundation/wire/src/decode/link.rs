//! Link layers and what stands between them and IP: tags, labels, PPP.

use super::cursor::Cursor;
use super::state::{Arcnet, Next, Step, Walk, WirelessHeader};
use crate::{DecodeError, DecodeErrorKind, Layer, LinkType, Transport};

type Result<'a> = std::result::Result<Step<'a>, DecodeError>;

/// Below this, the type field of a frame is a length (IEEE 802.3 clause 3.2.6).
const FIRST_ETHERTYPE: u16 = 0x0600;
const MAX_802_3_LEN: u16 = 1500;

/// What the first byte of a frame of this link type is.
pub(super) fn first(link: LinkType, at: Cursor<'_>) -> std::result::Result<Next, DecodeError> {
    Ok(match link {
        LinkType::ETHERNET => Next::Ethernet,
        LinkType::LINUX_SLL => Next::LinuxSll,
        LinkType::LINUX_SLL2 => Next::LinuxSll2,
        LinkType::NULL | LinkType::LOOP => Next::Null,
        LinkType::RAW | LinkType::RAW_BSD | LinkType::RAW_OPENBSD => Next::Ip,
        LinkType::IPV4 => Next::Ipv4,
        LinkType::IPV6 => Next::Ipv6,
        LinkType::PPP | LinkType::PPP_HDLC => Next::Ppp,
        LinkType::PPP_ETHER => Next::Pppoe,
        LinkType::CISCO_HDLC => Next::CiscoHdlc,
        LinkType::IEEE802_11 => Next::Ieee80211(WirelessHeader::Plain),
        LinkType::IEEE802_11_RADIOTAP => Next::Radiotap,
        LinkType::IEEE802_11_PRISM => Next::Prism,
        LinkType::IEEE802_11_AVS => Next::Avs,
        LinkType::PPI => Next::Ppi,
        LinkType::NFLOG => Next::Nflog,
        LinkType::FRELAY => Next::FrameRelay,
        LinkType::MFR => Next::MultilinkFrameRelay,
        LinkType::SLIP => Next::Slip,
        LinkType::FDDI => Next::Fddi,
        LinkType::ARCNET_BSD => Next::Arcnet(Arcnet::Bsd),
        LinkType::ARCNET_LINUX => Next::Arcnet(Arcnet::Linux),
        LinkType(other) => {
            let kind = DecodeErrorKind::UnsupportedLinkType(other);
            return Err(at.error(Layer::Link, kind));
        }
    })
}

/// Ethernet: 6 bytes destination, 6 bytes source, type or length.
pub(super) fn ethernet<'a>(walk: &mut Walk<'a>, at: Cursor<'a>) -> Result<'a> {
    let (header, rest) = at.take::<14>(Layer::Ethernet)?;
    type_or_length(walk, u16::from_be_bytes([header[12], header[13]]), rest)
}

/// The field after the addresses or after a tag.
fn type_or_length<'a>(walk: &mut Walk<'a>, field: u16, rest: Cursor<'a>) -> Result<'a> {
    if field >= FIRST_ETHERTYPE {
        ethertype(walk, field, rest)
    } else if field <= MAX_802_3_LEN {
        let body = walk.limit(rest, u32::from(field), Layer::Ethernet);
        Ok(Step::Into(Next::Llc, body))
    } else {
        Ok(Step::Done(Transport::NotIp(field)))
    }
}

/// What an Ethernet type announces; also used by everything else that carries one.
pub(super) fn ethertype<'a>(walk: &mut Walk<'a>, ethertype: u16, at: Cursor<'a>) -> Result<'a> {
    Ok(match ethertype {
        0x0800 => Step::Into(Next::Ipv4, at),
        0x86dd => Step::Into(Next::Ipv6, at),
        0x8100 | 0x88a8 | 0x9100 | 0x9200 => return vlan(walk, at),
        // A provider backbone's service tag, then a customer's frame (IEEE 802.1Q clause 9.7).
        0x88e7 => {
            walk.tag(Layer::Vlan, at)?;
            Step::Into(Next::Ethernet, at.skip_all(Layer::Vlan, 4)?)
        }
        // FabricPath: a tag of 2 bytes between its own addresses and a frame with those of the hosts.
        0x8903 => {
            walk.tag(Layer::FabricPath, at)?;
            Step::Into(Next::Ethernet, at.skip_all(Layer::FabricPath, 2)?)
        }
        // A VN-Tag: interfaces of a switch, no VLAN (IEEE 802.1BR's predecessor).
        0x8926 => {
            walk.tag(Layer::Vlan, at)?;
            let (tag, rest) = at.take::<6>(Layer::Vlan)?;
            return behind_tag(walk, u16::from_be_bytes([tag[4], tag[5]]), rest);
        }
        0x8847 | 0x8848 => Step::Into(Next::Mpls, at),
        0x8864 => Step::Into(Next::Pppoe, at),
        0x880b => Step::Into(Next::Ppp, at),
        // Transparent Ethernet bridging (RFC 1701); each turn counts, for it can repeat.
        0x6558 => {
            walk.tag(Layer::Ethernet, at)?;
            Step::Into(Next::Ethernet, at)
        }
        other => Step::Done(Transport::NotIp(other)),
    })
}

/// A tag: priority and identifier, then the type or length it hid (IEEE 802.1Q clause 9.6).
fn vlan<'a>(walk: &mut Walk<'a>, at: Cursor<'a>) -> Result<'a> {
    walk.tag(Layer::Vlan, at)?;
    let (tag, rest) = at.take::<4>(Layer::Vlan)?;
    let id = u16::from_be_bytes([tag[0], tag[1]]) & 0x0fff;
    walk.vlan.get_or_insert(id);
    behind_tag(walk, u16::from_be_bytes([tag[2], tag[3]]), rest)
}

/// The field a tag hid; a type is left to the next turn, so that tags do not nest calls.
fn behind_tag<'a>(walk: &mut Walk<'a>, field: u16, rest: Cursor<'a>) -> Result<'a> {
    if field >= FIRST_ETHERTYPE {
        Ok(Step::Into(Next::EtherType(field), rest))
    } else {
        type_or_length(walk, field, rest)
    }
}

/// IEEE 802.2: service access points, control, and SNAP where they are `aa aa 03`.
pub(super) fn llc(at: Cursor<'_>) -> Result<'_> {
    let (header, rest) = at.take::<3>(Layer::Llc)?;
    match header {
        [0xaa, 0xaa, 3] => Ok(Step::Into(Next::Snap, rest)),
        // IP straight over LLC.
        [6, 6, 3] => Ok(Step::Into(Next::Ipv4, rest)),
        _ => Ok(Step::Done(Transport::NotIp(0))),
    }
}

/// SNAP: an organisation's number and one of its own (IEEE 802 clause 9.5).
pub(super) fn snap<'a>(walk: &mut Walk<'a>, at: Cursor<'a>) -> Result<'a> {
    let (snap, rest) = at.take::<5>(Layer::Llc)?;
    let [organisation @ .., hi, lo] = snap;
    let number = u16::from_be_bytes([*hi, *lo]);
    Ok(match (organisation, number) {
        // RFC 1042, and IEEE 802.1H for bridged frames.
        ([0, 0, 0] | [0, 0, 0xf8], ethertype) => Step::Into(Next::EtherType(ethertype), rest),
        // A bridged Ethernet frame, with and without its checksum (RFC 2427 sec. 4.2).
        ([0, 0x80, 0xc2], 1 | 7) => {
            walk.tag(Layer::Llc, at)?;
            Step::Into(Next::Ethernet, rest)
        }
        _ => Step::Done(Transport::NotIp(0)),
    })
}

/// Linux cooked capture: packet type, hardware type, address length, address, protocol.
///
/// Source: `LINKTYPE_LINUX_SLL` of the tcpdump group.
pub(super) fn linux_sll(at: Cursor<'_>) -> Result<'_> {
    let (header, rest) = at.take::<16>(Layer::LinuxSll)?;
    let hardware = u16::from_be_bytes([header[2], header[3]]);
    let protocol = u16::from_be_bytes([header[14], header[15]]);
    Ok(cooked(hardware, protocol, rest))
}

/// Linux cooked capture, version 2: protocol first, and the interface.
///
/// Source: `LINKTYPE_LINUX_SLL2` of the tcpdump group.
pub(super) fn linux_sll2(at: Cursor<'_>) -> Result<'_> {
    let (header, rest) = at.take::<20>(Layer::LinuxSll2)?;
    let protocol = u16::from_be_bytes([header[0], header[1]]);
    let hardware = u16::from_be_bytes([header[8], header[9]]);
    Ok(cooked(hardware, protocol, rest))
}

const fn cooked(hardware: u16, protocol: u16, rest: Cursor<'_>) -> Step<'_> {
    const ARPHRD_NETLINK: u16 = 824;
    const ETH_P_802_2: u16 = 4;
    match (hardware, protocol) {
        // The field is a netlink family there.
        (ARPHRD_NETLINK, _) => Step::Done(Transport::NotIp(0)),
        (_, ETH_P_802_2) => Step::Into(Next::Llc, rest),
        _ => Step::Into(Next::EtherType(protocol), rest),
    }
}

/// BSD loopback: an address family in the byte order of the machine that wrote it.
pub(super) fn null(at: Cursor<'_>) -> Result<'_> {
    let (family, rest) = at.take::<4>(Layer::Null)?;
    // Families are small numbers, so the byte order shows.
    let family = match u32::from_be_bytes(*family) {
        small @ 0..=0xffff => small,
        _ => u32::from_le_bytes(*family),
    };
    Ok(match family {
        2 => Step::Into(Next::Ipv4, rest),
        // AF_INET6 of Linux, NetBSD and OpenBSD, FreeBSD, Darwin.
        10 | 24 | 28 | 30 => Step::Into(Next::Ipv6, rest),
        _ => Step::Done(Transport::NotIp(0)),
    })
}

/// PPP over Ethernet: version and type, code, session, length of what follows.
///
/// Source: RFC 2516 sec. 4.
pub(super) fn pppoe<'a>(walk: &mut Walk<'a>, at: Cursor<'a>) -> Result<'a> {
    walk.tag(Layer::Pppoe, at)?;
    let (header, rest) = at.take::<6>(Layer::Pppoe)?;
    if header[0] != 0x11 {
        return Err(at.error(Layer::Pppoe, DecodeErrorKind::BadVersion(header[0])));
    }
    if header[1] != 0 {
        return Ok(Step::Done(Transport::NotIp(0x8864)));
    }
    let len = u32::from(u16::from_be_bytes([header[4], header[5]]));
    Ok(Step::Into(Next::Ppp, walk.limit(rest, len, Layer::Pppoe)))
}

/// PPP: address and control where they are, then the protocol in one byte or two.
///
/// Source: RFC 1661 sec. 2 and 6.5, RFC 1662 sec. 3.1.
pub(super) fn ppp(at: Cursor<'_>) -> Result<'_> {
    let (&[address], _) = at.take::<1>(Layer::Ppp)?;
    let body = match address {
        0xff | 0x0f | 0x8f => {
            let (&[_, control], rest) = at.take::<2>(Layer::Ppp)?;
            match (address, control) {
                (0xff, 3) => rest,
                // Cisco HDLC under the same link type.
                (0x0f | 0x8f, 0) => return Ok(Step::Into(Next::CiscoHdlc, at)),
                _ => at,
            }
        }
        _ => at,
    };
    let (&[first], rest) = body.take::<1>(Layer::Ppp)?;
    let (protocol, rest) = if first & 1 == 1 {
        (u16::from(first), rest)
    } else {
        let (protocol, rest) = body.take::<2>(Layer::Ppp)?;
        (u16::from_be_bytes(*protocol), rest)
    };
    Ok(match protocol {
        0x0021 => Step::Into(Next::Ipv4, rest),
        0x0057 => Step::Into(Next::Ipv6, rest),
        0x0281 | 0x0283 => Step::Into(Next::Mpls, rest),
        _ => Step::Done(Transport::NotIp(0)),
    })
}

/// Cisco HDLC: address, control, Ethernet type.
pub(super) fn cisco_hdlc(at: Cursor<'_>) -> Result<'_> {
    let (header, rest) = at.take::<4>(Layer::CiscoHdlc)?;
    let ethertype = u16::from_be_bytes([header[2], header[3]]);
    Ok(Step::Into(Next::EtherType(ethertype), rest))
}

/// An MPLS label stack, down to the entry with the bottom bit (RFC 3032 sec. 2.1).
pub(super) fn mpls<'a>(walk: &mut Walk<'a>, mut at: Cursor<'a>) -> Result<'a> {
    loop {
        walk.tag(Layer::Mpls, at)?;
        let (entry, rest) = at.take::<4>(Layer::Mpls)?;
        at = rest;
        if entry[2] & 1 == 1 {
            return below_mpls(at);
        }
    }
}

/// Labels do not say what they carry: the first nibble tells IP from a pseudo-wire
/// (RFC 4928 sec. 3, RFC 4385 sec. 3).
fn below_mpls(at: Cursor<'_>) -> Result<'_> {
    let (&[first], _) = at.take::<1>(Layer::Mpls)?;
    // A pseudo-wire without control word starts with an address, whose first nibble is anything;
    // an Ethernet type in its place tells.
    Ok(match first >> 4 {
        4 if first & 0x0f >= 5 && !is_ethernet(at) => Step::Into(Next::Ipv4, at),
        6 if !is_ethernet(at) => Step::Into(Next::Ipv6, at),
        0 if is_ethernet(at.skip(4)) => Step::Into(Next::Ethernet, at.skip(4)),
        _ if is_ethernet(at) => Step::Into(Next::Ethernet, at),
        _ => Step::Done(Transport::NotIp(0x8847)),
    })
}

/// Whether an Ethernet header with a type that we follow, and the right nibble behind it, is here.
fn is_ethernet(at: Cursor<'_>) -> bool {
    let Some(head) = at.peek::<15>() else {
        return false;
    };
    match (u16::from_be_bytes([head[12], head[13]]), head[14]) {
        (0x0800, first) => first >> 4 == 4,
        (0x86dd, first) => first >> 4 == 6,
        (0x8864, first) => first == 0x11,
        (0x8100 | 0x88a8 | 0x8847, _) => true,
        _ => false,
    }
}
