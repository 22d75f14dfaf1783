//! Ethernet headers, with the VLAN tag of the population where it has one.

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
