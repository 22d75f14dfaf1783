//! A packet that was in parts: its headers are written in front of the data that was gathered.

use crate::decode::decode;
use crate::{DecodeError, LinkType, Network, Packet, Timestamp};

/// Longest IP header that is written: of version 6, and its fragment header.
const IP_HEAD: usize = 48;
/// Ethernet header with a VLAN tag (IEEE 802.1Q).
const TAGGED_LEN: u32 = 18;
const TAGGED: usize = TAGGED_LEN as usize;
/// Room in front of the data.
pub(super) const HEAD: usize = TAGGED + IP_HEAD;

/// A packet that was in parts.
#[derive(Debug, Clone, Copy)]
pub struct Joined<'a> {
    /// The packet; of one that never became whole its start, which is a fragment still.
    pub packet: Result<Packet<'a>, DecodeError>,
    /// Its bytes, from the IP header on.
    pub bytes: &'a [u8],
    /// It as a frame, for [`decode()`]: the packet alone, or in Ethernet with the VLAN tag of its parts.
    pub frame: (LinkType, &'a [u8], u32),
    /// When the last of its parts came.
    pub timestamp: Timestamp,
}

/// The header of a first fragment.
#[derive(Debug, Clone, Copy)]
pub(super) enum Head {
    V4([u8; 20]),
    V6([u8; 40]),
}

impl Head {
    pub(super) const fn of(network: &Network<'_>) -> Option<Self> {
        match *network {
            Network::V4(header) => Some(Self::V4(*header)),
            Network::V6(header) => Some(Self::V6(*header)),
            Network::None => None,
        }
    }

    /// Writes a header in front of `len` bytes of data; where it begins, and the length with it.
    pub(super) fn write(
        self,
        buffer: &mut [u8],
        protocol: u8,
        len: u32,
        has_more: bool,
    ) -> (usize, u32) {
        let len16 = |len: u32| u16::try_from(len).unwrap_or(0).to_be_bytes();
        let mut head = [0; IP_HEAD];
        let header_len = match self {
            Self::V4(mut header) => {
                // Without options, which say nothing of what is carried.
                header[0] = 0x45;
                [header[2], header[3]] = len16(len.saturating_add(20));
                [header[6], header[7]] = [if has_more { 0x20 } else { 0 }, 0];
                if let Some(place) = head.last_chunk_mut() {
                    *place = header;
                }
                20
            }
            Self::V6(mut header) if has_more => {
                [header[4], header[5]] = len16(len.saturating_add(8));
                header[6] = 44;
                let [place @ .., a, _, _, b, _, _, _, _] = &mut head;
                *place = header;
                (*a, *b) = (protocol, 1);
                48
            }
            Self::V6(mut header) => {
                [header[4], header[5]] = len16(len);
                header[6] = protocol;
                if let Some(place) = head.last_chunk_mut() {
                    *place = header;
                }
                40
            }
        };
        let place = buffer.get_mut(TAGGED..);
        if let Some(place) = place.and_then(<[u8]>::first_chunk_mut) {
            *place = head;
        }
        (
            HEAD - header_len,
            len.saturating_add(u32::try_from(header_len).unwrap_or(0)),
        )
    }

    /// Writes an Ethernet header with a tag in front of the packet that begins at `start`.
    pub(super) fn tag(self, buffer: &mut [u8], start: usize, vlan: u16) {
        let ethertype: u16 = match self {
            Self::V4(_) => 0x0800,
            Self::V6(_) => 0x86dd,
        };
        let place = buffer.get_mut(..start);
        if let Some([.., a, b, c, d, e, f]) = place {
            let ([vlan_high, vlan_low], [type_high, type_low]) =
                (vlan.to_be_bytes(), ethertype.to_be_bytes());
            [*a, *b, *c, *d, *e, *f] = [0x81, 0, vlan_high, vlan_low, type_high, type_low];
        }
    }
}

/// A packet that was put together, or the start of one.
#[derive(Debug)]
pub(super) struct Whole {
    pub(super) buffer: Vec<u8>,
    pub(super) start: usize,
    /// On the wire, header and all.
    pub(super) len: u32,
    pub(super) vlan: Option<u16>,
    pub(super) tunnels: u8,
    pub(super) at: Timestamp,
}

impl Whole {
    /// Where it begins, and its length.
    pub(super) const fn place(&self) -> (usize, u32) {
        (self.start, self.len)
    }

    pub(super) fn give(&self, each: &mut impl FnMut(Joined<'_>)) {
        let bytes = self.buffer.get(self.start..).unwrap_or_default();
        let packet = decode(LinkType::RAW, bytes, self.len).map(|packet| Packet {
            vlan: packet.vlan.or(self.vlan),
            tunnels: packet.tunnels.saturating_add(self.tunnels),
            ..packet
        });
        let tagged = self.start.saturating_sub(TAGGED);
        let tagged = self.vlan.and_then(|_| self.buffer.get(tagged..));
        let frame = match tagged {
            Some(tagged) => (
                LinkType::ETHERNET,
                tagged,
                self.len.saturating_add(TAGGED_LEN),
            ),
            None => (LinkType::RAW, bytes, self.len),
        };
        each(Joined {
            packet,
            bytes,
            frame,
            timestamp: self.at,
        });
    }
}
