//! Address resolution of IPv4 over Ethernet.
//!
//! Source: RFC 826; RFC 5227 (probes and announcements).
//!
//! Ethernet headers, with the VLAN tag of the population where it has one.

use std::net::Ipv4Addr;

/// Its Ethernet type.
pub(super) const ETHERTYPE: u16 = 0x0806;

/// `ar$hrd` Ethernet, `ar$pro` IPv4, and their lengths.
const HEADER: [u8; 6] = [0, 1, 0x08, 0, 6, 4];

/// `ar$op`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Operation {
    Request,
    Reply,
}

/// A packet of the protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Arp {
    pub(super) operation: Operation,
    pub(super) sender_mac: [u8; 6],
    pub(super) sender: Ipv4Addr,
    pub(super) target_mac: [u8; 6],
    pub(super) target: Ipv4Addr,
}

impl Arp {
    /// Reads a packet; what follows it is padding. `None` where it is cut, or of another kind of
    /// address or operation.
    pub(super) fn read(payload: &[u8]) -> Option<Self> {
        let (&header, rest) = payload.split_first_chunk::<6>()?;
        let (&operation, rest) = rest.split_first_chunk::<2>()?;
        let (&sender_mac, rest) = rest.split_first_chunk::<6>()?;
        let (&sender, rest) = rest.split_first_chunk::<4>()?;
        let (&target_mac, rest) = rest.split_first_chunk::<6>()?;
        let &target = rest.first_chunk::<4>()?;
        let operation = match u16::from_be_bytes(operation) {
            1 => Operation::Request,
            2 => Operation::Reply,
            _ => return None,
        };
        (header == HEADER).then_some(Self {
            operation,
            sender_mac,
            sender: sender.into(),
            target_mac,
            target: target.into(),
        })
    }

    /// Appends the packet.
    pub(super) fn append_to(&self, out: &mut Vec<u8>) {
        let operation: u16 = match self.operation {
            Operation::Request => 1,
            Operation::Reply => 2,
        };
        out.extend_from_slice(&HEADER);
        out.extend_from_slice(&operation.to_be_bytes());
        out.extend_from_slice(&self.sender_mac);
        out.extend_from_slice(&self.sender.octets());
        out.extend_from_slice(&self.target_mac);
        out.extend_from_slice(&self.target.octets());
    }
}

/// `ff:ff:ff:ff:ff:ff`.
pub(super) const BROADCAST: [u8; 6] = [0xff; 6];

/// IEEE 802.1Q.
const VLAN: u16 = 0x8100;
const VLAN_ID: u16 = 0x0fff;

/// A frame of the VLAN that was asked for.
#[derive(Debug, Clone, Copy)]
pub(super) struct Link<'a> {
    pub(super) dst: [u8; 6],
    pub(super) src: [u8; 6],
    pub(super) ethertype: u16,
    pub(super) payload: &'a [u8],
}

impl<'a> Link<'a> {
    /// Reads a frame; `None` where it is cut or of another VLAN. The tag of VLAN 0 is none (IEEE
    /// 802.1Q sec. 6.9.1: it carries a priority only).
    #[inline]
    pub(super) fn read(frame: &'a [u8], vlan: Option<u16>) -> Option<Self> {
        let (&dst, rest) = frame.split_first_chunk::<6>()?;
        let (&src, rest) = rest.split_first_chunk::<6>()?;
        let (&ethertype, rest) = rest.split_first_chunk::<2>()?;
        let (id, ethertype, payload) = match u16::from_be_bytes(ethertype) {
            VLAN => {
                let (&tag, rest) = rest.split_first_chunk::<2>()?;
                let (&inner, rest) = rest.split_first_chunk::<2>()?;
                let id = u16::from_be_bytes(tag) & VLAN_ID;
                (id, u16::from_be_bytes(inner), rest)
            }
            plain => (0, plain, rest),
        };
        (id == vlan.unwrap_or(0)).then_some(Self {
            dst,
            src,
            ethertype,
            payload,
        })
    }
}

/// Appends the header of a frame.
pub(super) fn write(
    out: &mut Vec<u8>,
    dst: [u8; 6],
    src: [u8; 6],
    vlan: Option<u16>,
    ethertype: u16,
) {
    out.extend_from_slice(&dst);
    out.extend_from_slice(&src);
    if let Some(id) = vlan {
        out.extend_from_slice(&VLAN.to_be_bytes());
        out.extend_from_slice(&(id & VLAN_ID).to_be_bytes());
    }
    out.extend_from_slice(&ethertype.to_be_bytes());
}

/// Whether an address can be that of one host: neither a group's nor none at all.
pub(super) fn is_host(mac: [u8; 6]) -> bool {
    let [first, ..] = mac;
    first & 1 == 0 && mac != [0; 6]
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_request_as_a_host_sends_it() {
        let bytes = [
            0, 1, 8, 0, 6, 4, 0, 1, 2, 0, 0, 0, 0, 1, 10, 0, 0, 1, 0, 0, 0, 0, 0, 0, 10, 0, 0, 2,
        ];
        let arp = Arp::read(&bytes).unwrap();
        assert_eq!(arp.operation, Operation::Request);
        assert_eq!(arp.sender_mac, [2, 0, 0, 0, 0, 1]);
        assert_eq!(
            (arp.sender, arp.target),
            ([10, 0, 0, 1].into(), [10, 0, 0, 2].into())
        );
        let mut out = Vec::new();
        arp.append_to(&mut out);
        assert_eq!(out, bytes);
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_or_refused(mut bytes in prop::collection::vec(any::<u8>(), 0..64), is_near: bool) {
            if is_near && bytes.len() >= 8 {
                bytes[..7].copy_from_slice(&[0, 1, 8, 0, 6, 4, 0]);
                bytes[7] = bytes[7] % 2 + 1;
            }
            if let Some(arp) = Arp::read(&bytes) {
                let mut out = Vec::new();
                arp.append_to(&mut out);
                prop_assert_eq!(&out[..], &bytes[..28]);
            } else {
                prop_assert!(!is_near || bytes.len() < 28);
            }
        }
    }
}
