//! Putting packets into the link layers of other media, as captures hold them.
//!
//! As in [`wrap`](super::wrap), each function takes the inside and gives the outside.

use super::{DST_MAC, SRC_MAC};

/// LLC and SNAP around a packet, as IEEE 802.11, FDDI and others carry it.
#[must_use]
pub fn snap(ethertype: u16, packet: &[u8]) -> Vec<u8> {
    let head = [0xaa, 0xaa, 3, 0, 0, 0];
    [&head[..], &ethertype.to_be_bytes(), packet].concat()
}

/// What a header of IEEE 802.11 holds besides two addresses.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Wlan {
    /// Whether it has a quality-of-service field.
    pub has_qos: bool,
    /// Whether it has four addresses, as between access points.
    pub has_four_addresses: bool,
    /// Whether it is filled up to whole words.
    pub is_padded: bool,
    /// Whether it says that the body is encrypted.
    pub is_protected: bool,
    /// Whether the packet stands in an aggregate (A-MSDU) of one.
    pub is_aggregate: bool,
}

/// A data frame of IEEE 802.11 around [`snap`].
#[must_use]
pub fn ieee_802_11(form: Wlan, llc: &[u8]) -> Vec<u8> {
    let control = if form.has_qos { 0x88 } else { 0x08 };
    let direction = if form.has_four_addresses { 0x03 } else { 0x01 };
    let protected = if form.is_protected { 0x40 } else { 0 };
    let mut out = vec![control, direction | protected, 0, 0];
    out.extend_from_slice(&[DST_MAC, SRC_MAC, DST_MAC].concat());
    // Sequence 1, fragment 0.
    out.extend_from_slice(&[0x10, 0]);
    if form.has_four_addresses {
        out.extend_from_slice(&SRC_MAC);
    }
    if form.has_qos {
        out.extend_from_slice(&[if form.is_aggregate { 0x80 } else { 0 }, 0]);
    }
    if form.is_padded {
        out.resize(out.len().next_multiple_of(4), 0);
    }
    if form.is_aggregate {
        let len = u16::try_from(llc.len()).unwrap_or(0).to_be_bytes();
        out.extend_from_slice(&[&DST_MAC[..], &SRC_MAC, &len].concat());
    }
    out.extend_from_slice(llc);
    out
}

/// Radiotap with time and flags around [`ieee_802_11`]; `words` more say that there are other fields.
#[must_use]
pub fn radiotap(words: u8, is_padded: bool, frame: &[u8]) -> Vec<u8> {
    let more = |place: u8| if place < words { 0x80 } else { 0 };
    let mut out = vec![0, 0, 0, 0, 3, 0, 0, more(0)];
    for place in 1..=words {
        out.extend_from_slice(&[0, 0, 0, more(place)]);
    }
    out.resize(out.len().next_multiple_of(8) + 8, 0);
    out.push(if is_padded { 0x20 } else { 0 });
    let len = u16::try_from(out.len()).unwrap_or(0).to_le_bytes();
    if let Some(field) = out.get_mut(2..4) {
        field.copy_from_slice(&len);
    }
    out.extend_from_slice(frame);
    out
}

/// The header of Prism cards around [`ieee_802_11`].
#[must_use]
pub fn prism(frame: &[u8]) -> Vec<u8> {
    let mut head = vec![0; 144];
    if let Some(start) = head.first_chunk_mut::<8>() {
        *start = [0x44, 0, 0, 0, 144, 0, 0, 0];
    }
    [&head, frame].concat()
}

/// The AVS header around [`ieee_802_11`].
#[must_use]
pub fn avs(frame: &[u8]) -> Vec<u8> {
    let start = [0x80, 0x21, 0x10, 1, 0, 0, 0, 64];
    [&start[..], &[0; 56], frame].concat()
}

/// Per-packet information without fields around a frame of a link type.
#[must_use]
pub fn ppi(link: u16, frame: &[u8]) -> Vec<u8> {
    [&[0, 0, 8, 0], &u32::from(link).to_le_bytes()[..], frame].concat()
}

/// An FDDI frame around [`snap`].
#[must_use]
pub fn fddi(llc: &[u8]) -> Vec<u8> {
    [&[0x50][..], &DST_MAC, &SRC_MAC, llc].concat()
}

/// ARCnet as BSD writes it; `code` is 0xd4 for IPv4 and 0xc4 for IPv6 (RFC 1201), 0xf0 of RFC 1051.
#[must_use]
pub fn arcnet(code: u8, packet: &[u8]) -> Vec<u8> {
    let split: &[u8] = if code == 0xf0 { &[] } else { &[0, 0, 1] };
    [&[1, 2, code], split, packet].concat()
}

/// ARCnet as Linux writes it.
#[must_use]
pub fn arcnet_linux(code: u8, packet: &[u8]) -> Vec<u8> {
    let mut frame = arcnet(code, packet);
    frame.splice(2..2, [0, 0]);
    frame
}

/// Frame Relay with the protocol identifier of IPv4 (0xcc) or IPv6 (0x8e).
#[must_use]
pub fn frame_relay(identifier: u8, packet: &[u8]) -> Vec<u8> {
    [&[0x18, 0x41, 3, identifier], packet].concat()
}

/// Frame Relay with SNAP (RFC 2427 sec. 4.1); `organisation` 00-80-c2 and number 7 are a bridged frame.
#[must_use]
pub fn frame_relay_snap(organisation: [u8; 3], number: u16, inner: &[u8]) -> Vec<u8> {
    let head = [0x18, 0x41, 3, 0, 0x80];
    [&head, &organisation[..], &number.to_be_bytes(), inner].concat()
}

/// Frame Relay as Cisco fills it: an Ethernet type behind the address.
#[must_use]
pub fn frame_relay_cisco(ethertype: u16, packet: &[u8]) -> Vec<u8> {
    [&[0x18, 0x41][..], &ethertype.to_be_bytes(), packet].concat()
}

/// Multilink Frame Relay around a whole [`frame_relay`] frame.
#[must_use]
pub fn multilink_frame_relay(frame: &[u8]) -> Vec<u8> {
    [&[0xc0, 1], frame].concat()
}

/// SLIP as captures write it.
#[must_use]
pub fn slip(packet: &[u8]) -> Vec<u8> {
    let mut head = [0; 16];
    head[1] = 0x40;
    [&head, packet].concat()
}

/// An entry of netfilter's log: its packet header, a mark, and the packet.
#[must_use]
pub fn nflog(family: u8, ethertype: u16, is_little: bool, packet: &[u8]) -> Vec<u8> {
    let number = |value: u16| match is_little {
        true => value.to_le_bytes(),
        false => value.to_be_bytes(),
    };
    let mut out = vec![family, 0, 0, 5];
    let mut put = |kind: u16, body: &[u8]| {
        let len = u16::try_from(4 + body.len()).unwrap_or(0);
        out.extend_from_slice(&[number(len), number(kind)].concat());
        out.extend_from_slice(body);
        out.resize(out.len().next_multiple_of(4), 0);
    };
    let [hi, lo] = ethertype.to_be_bytes();
    put(1, &[hi, lo, 0, 0]);
    put(10, b"prefix\0");
    put(9, packet);
    out
}

/// Cisco FabricPath around an Ethernet frame.
#[must_use]
pub fn fabricpath(frame: &[u8]) -> Vec<u8> {
    super::wrap::ethernet(0x8903, &[&[0x04, 0x60], frame].concat())
}

/// VXLAN-GPE (UDP port 4790); `protocol` is 1 for IPv4, 2 for IPv6, 3 for Ethernet.
#[must_use]
pub fn vxlan_gpe(network_id: u32, protocol: u8, inner: &[u8]) -> Vec<u8> {
    let id = (network_id << 8).to_be_bytes();
    [&[0x0c, 0, 0, protocol], &id[..], inner].concat()
}

/// CAPWAP data (UDP port 5247) around an Ethernet frame or a native one of IEEE 802.11.
#[must_use]
pub fn capwap(is_native: bool, frame: &[u8]) -> Vec<u8> {
    let binding = 0x02 | u8::from(is_native);
    [&[0, 0x10, binding, 0, 0, 0, 0, 0], frame].concat()
}

/// AYIYA (UDP port 5072) around an IP packet of protocol number 4 or 41.
#[must_use]
pub fn ayiya(protocol: u8, packet: &[u8]) -> Vec<u8> {
    // An identity of 16 bytes, a signature of 20.
    let head = [0x44, 0x52, 0x11, protocol, 0, 0, 0, 1];
    [&head, &[0; 36][..], packet].concat()
}
