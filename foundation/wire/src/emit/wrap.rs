//! Putting packets and frames into link layers, tags and tunnels.
//!
//! Each function takes the inside and gives the outside, so that a stack is written inside out:
//! `ethernet(0x0800, &ip(a, b, 47, &gre(0x6558, Gre::default(), &frame)))`.

use std::net::IpAddr;

use super::{DST_MAC, SRC_MAC, put};
use crate::checksum;

/// The length of `bytes` for a 16-bit field; 0 where it does not fit.
fn len16(bytes: &[u8]) -> u16 {
    u16::try_from(bytes.len()).unwrap_or(0)
}

fn join(parts: &[&[u8]]) -> Vec<u8> {
    parts.concat()
}

/// An Ethernet II frame.
#[must_use]
pub fn ethernet(ethertype: u16, packet: &[u8]) -> Vec<u8> {
    join(&[&DST_MAC, &SRC_MAC, &ethertype.to_be_bytes(), packet])
}

/// An IEEE 802.3 frame with LLC and SNAP, padded to 60 bytes.
#[must_use]
pub fn ieee_802_3(ethertype: u16, packet: &[u8]) -> Vec<u8> {
    let len = len16(packet).saturating_add(8).to_be_bytes();
    let llc = [0xaa, 0xaa, 3, 0, 0, 0];
    let mut frame = join(&[
        &DST_MAC,
        &SRC_MAC,
        &len,
        &llc,
        &ethertype.to_be_bytes(),
        packet,
    ]);
    frame.resize(frame.len().max(60), 0);
    frame
}

/// The frame with one more tag, outermost, of type `tpid` (0x8100, 0x88a8, 0x9100, 0x9200).
#[must_use]
pub fn vlan(tpid: u16, id: u16, frame: &[u8]) -> Vec<u8> {
    let (addresses, rest) = frame.split_at_checked(12).unwrap_or((frame, &[]));
    let tag = (id & 0x0fff).to_be_bytes();
    join(&[addresses, &tpid.to_be_bytes(), &tag, rest])
}

/// A label stack, outermost first (Ethernet type 0x8847, IP protocol 137).
#[must_use]
pub fn mpls(labels: &[u32], packet: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    for (place, label) in labels.iter().enumerate() {
        let bottom = u32::from(place + 1 == labels.len());
        let entry = (label & 0x000f_ffff) << 12 | bottom << 8 | 64;
        out.extend_from_slice(&entry.to_be_bytes());
    }
    out.extend_from_slice(packet);
    out
}

/// An Ethernet pseudo-wire with control word (RFC 4448), to go below [`mpls`] labels.
#[must_use]
pub fn pseudo_wire(frame: &[u8]) -> Vec<u8> {
    join(&[&[0; 4], frame])
}

/// PPP without address and control; `protocol` is 0x0021 for IPv4, 0x0057 for IPv6.
#[must_use]
pub fn ppp(protocol: u16, packet: &[u8]) -> Vec<u8> {
    join(&[&protocol.to_be_bytes(), packet])
}

/// PPP in HDLC-like framing.
#[must_use]
pub fn ppp_hdlc(protocol: u16, packet: &[u8]) -> Vec<u8> {
    join(&[&[0xff, 3], &protocol.to_be_bytes(), packet])
}

/// A PPPoE session packet around [`ppp`] (Ethernet type 0x8864).
#[must_use]
pub fn pppoe(session: u16, ppp: &[u8]) -> Vec<u8> {
    let len = len16(ppp).to_be_bytes();
    join(&[&[0x11, 0], &session.to_be_bytes(), &len, ppp])
}

/// Cisco HDLC.
#[must_use]
pub fn cisco_hdlc(ethertype: u16, packet: &[u8]) -> Vec<u8> {
    join(&[&[0x0f, 0], &ethertype.to_be_bytes(), packet])
}

/// Linux cooked capture, version 1, of an Ethernet interface.
#[must_use]
pub fn linux_sll(ethertype: u16, packet: &[u8]) -> Vec<u8> {
    let header = [0, 0, 0, 1, 0, 6, 2, 0, 0, 0, 0, 1, 0, 0];
    join(&[&header, &ethertype.to_be_bytes(), packet])
}

/// Linux cooked capture, version 2, of an Ethernet interface.
#[must_use]
pub fn linux_sll2(ethertype: u16, packet: &[u8]) -> Vec<u8> {
    let header = [0, 0, 0, 0, 0, 2, 0, 1, 0, 6, 2, 0, 0, 0, 0, 1, 0, 0];
    join(&[&ethertype.to_be_bytes(), &header, packet])
}

/// BSD loopback; `family` is written in network byte order (swap it for the other).
#[must_use]
pub fn null(family: u32, packet: &[u8]) -> Vec<u8> {
    join(&[&family.to_be_bytes(), packet])
}

/// An IP packet around any protocol; IP in IP and 6in4 are protocols 4 and 41.
#[must_use]
pub fn ip(src: IpAddr, dst: IpAddr, protocol: u8, payload: &[u8]) -> Vec<u8> {
    let (src, dst) = super::one_family(src, dst);
    let header = super::Header {
        src,
        dst,
        protocol,
        ttl: 64,
        identification: 0,
        payload_len: payload.len(),
    };
    let mut out = Vec::new();
    header.append_to(&mut out);
    out.extend_from_slice(payload);
    out
}

/// The optional fields of a GRE header.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Gre {
    /// Whether there is a checksum.
    pub checksum: bool,
    /// Key (RFC 2890).
    pub key: Option<u32>,
    /// Sequence number (RFC 2890).
    pub sequence: Option<u32>,
}

/// GRE version 0 (IP protocol 47).
#[must_use]
pub fn gre(ethertype: u16, fields: Gre, inner: &[u8]) -> Vec<u8> {
    let bit = |is_there: bool, bit: u16| if is_there { bit } else { 0 };
    let flags = bit(fields.checksum, 0x8000)
        | bit(fields.key.is_some(), 0x2000)
        | bit(fields.sequence.is_some(), 0x1000);
    let mut out = join(&[&flags.to_be_bytes(), &ethertype.to_be_bytes()]);
    if fields.checksum {
        out.extend_from_slice(&[0; 4]);
    }
    for field in [fields.key, fields.sequence].into_iter().flatten() {
        out.extend_from_slice(&field.to_be_bytes());
    }
    out.extend_from_slice(inner);
    if fields.checksum {
        let checksum = checksum::of(&out);
        put(&mut out, 4, checksum);
    }
    out
}

/// Enhanced GRE of PPTP (RFC 2637) around PPP (IP protocol 47).
#[must_use]
pub fn gre_pptp(call: u16, sequence: u32, ppp: &[u8]) -> Vec<u8> {
    let len = len16(ppp).to_be_bytes();
    let head = [0x30, 0x01, 0x88, 0x0b];
    join(&[
        &head,
        &len,
        &call.to_be_bytes(),
        &sequence.to_be_bytes(),
        ppp,
    ])
}

/// ERSPAN type I: GRE without sequence number, no header of its own.
#[must_use]
pub fn erspan_1(frame: &[u8]) -> Vec<u8> {
    gre(0x88be, Gre::default(), frame)
}

/// ERSPAN type II in GRE.
#[must_use]
pub fn erspan_2(sequence: u32, frame: &[u8]) -> Vec<u8> {
    let header = [0x10, 0, 0, 1, 0, 0, 0, 0];
    let fields = Gre {
        sequence: Some(sequence),
        ..Gre::default()
    };
    gre(0x88be, fields, &join(&[&header, frame]))
}

/// ERSPAN type III in GRE, with or without the platform sub-header.
#[must_use]
pub fn erspan_3(sequence: u32, has_subheader: bool, frame: &[u8]) -> Vec<u8> {
    let header = [0x20, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, u8::from(has_subheader)];
    let subheader: &[u8] = if has_subheader { &[0; 8] } else { &[] };
    let fields = Gre {
        sequence: Some(sequence),
        ..Gre::default()
    };
    gre(0x22eb, fields, &join(&[&header, subheader, frame]))
}

/// VXLAN around a frame (UDP port 4789).
#[must_use]
pub fn vxlan(network_id: u32, frame: &[u8]) -> Vec<u8> {
    let id = (network_id << 8).to_be_bytes();
    join(&[&[0x08, 0, 0, 0], &id, frame])
}

/// Geneve (UDP port 6081); `options` are whole 4-byte units, at most 63.
#[must_use]
pub fn geneve(network_id: u32, options: &[[u8; 4]], ethertype: u16, inner: &[u8]) -> Vec<u8> {
    let options = options.get(..63).unwrap_or(options);
    let units = u8::try_from(options.len()).unwrap_or(63);
    let id = (network_id << 8).to_be_bytes();
    let head = [units, 0];
    join(&[
        &head,
        &ethertype.to_be_bytes(),
        &id,
        options.as_flattened(),
        inner,
    ])
}

/// GTP-U user data (UDP port 2152); each extension is a type and a body of 2 bytes.
#[must_use]
pub fn gtp_u(tunnel_id: u32, extensions: &[(u8, [u8; 2])], packet: &[u8]) -> Vec<u8> {
    let mut fields = Vec::new();
    if let Some(&(first, _)) = extensions.first() {
        fields.extend_from_slice(&[0, 0, 0, first]);
        let following = extensions.iter().skip(1).map(|&(kind, _)| kind).chain([0]);
        for (&(_, [a, b]), next) in extensions.iter().zip(following) {
            fields.extend_from_slice(&[1, a, b, next]);
        }
    }
    let flags = if fields.is_empty() { 0x30 } else { 0x34 };
    let len = u16::try_from(fields.len() + packet.len()).unwrap_or(0);
    let id = tunnel_id.to_be_bytes();
    join(&[&[flags, 255], &len.to_be_bytes(), &id, &fields, packet])
}

/// Teredo around an IPv6 packet (UDP port 3544), with the headers of RFC 4380 sec. 5.1.1.
#[must_use]
pub fn teredo(authentication: bool, origin: bool, packet: &[u8]) -> Vec<u8> {
    let authentication: &[u8] = if authentication {
        &[0, 1, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8, 0]
    } else {
        &[]
    };
    let origin: &[u8] = if origin {
        &[0, 0, 1, 2, 3, 4, 5, 6]
    } else {
        &[]
    };
    join(&[authentication, origin, packet])
}
