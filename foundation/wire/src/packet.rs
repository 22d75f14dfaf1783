//! A decoded packet: the innermost IP header and the transport header in it.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::{DecodeError, DecodeFaults, Tcp};

/// What [`decode`](crate::decode()) found in a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Packet<'a> {
    /// The innermost IP header.
    pub network: Network<'a>,
    /// What it carries.
    pub transport: Transport<'a>,
    /// Identifier of the outermost VLAN tag (12 bits).
    pub vlan: Option<u16>,
    /// IP tunnels that were opened on the way.
    pub tunnels: u8,
    /// Whether it is a part of an IP packet, or in one: [`Fragments`](crate::Fragments) makes it whole.
    pub is_fragment: bool,
    /// Whether the part with its first byte is in another frame.
    pub is_later_fragment: bool,
    /// What was wrong although the packet stands: the inside of a tunnel did not decode (the packet
    /// is then the tunnel's own), a length field promised more than the packet around it has (the
    /// payload is then what was there), or more than the record says of the frame (the length is then
    /// that of the field, and the rest was cut).
    pub fault: Option<DecodeError>,
}

impl Packet<'_> {
    /// The packet of a decoded frame; its fault, or why there is no packet, is counted.
    #[inline]
    pub fn counted(decoded: Result<Self, DecodeError>, faults: &mut DecodeFaults) -> Option<Self> {
        match decoded {
            Ok(packet) => {
                if let Some(fault) = &packet.fault {
                    faults.note(fault);
                }
                Some(packet)
            }
            Err(fault) => {
                faults.record(&fault);
                None
            }
        }
    }
}

/// An end of a connection or flow, or the direction of what it sends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Side {
    /// Who opened it; where that was not seen, who seems to have.
    Client,
    /// Who accepted it.
    Server,
}

impl Side {
    /// The other end.
    #[inline]
    #[must_use]
    pub const fn other(self) -> Self {
        match self {
            Self::Client => Self::Server,
            Self::Server => Self::Client,
        }
    }

    /// The name in records.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Client => "client",
            Self::Server => "server",
        }
    }
}

/// An IP header, without options and extension headers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Network<'a> {
    /// Internet Protocol version 4 (RFC 791).
    V4(&'a [u8; 20]),
    /// Internet Protocol version 6 (RFC 8200).
    V6(&'a [u8; 40]),
    /// The frame carries no IP.
    None,
}

impl Network<'_> {
    /// Source address; `0.0.0.0` where there is no IP.
    #[inline]
    #[must_use]
    pub const fn src(&self) -> IpAddr {
        match *self {
            Self::V4(h) => v4([h[12], h[13], h[14], h[15]]),
            Self::V6(h) => v6([
                h[8], h[9], h[10], h[11], h[12], h[13], h[14], h[15], h[16], h[17], h[18], h[19],
                h[20], h[21], h[22], h[23],
            ]),
            Self::None => IpAddr::V4(Ipv4Addr::UNSPECIFIED),
        }
    }

    /// Destination address; `0.0.0.0` where there is no IP.
    #[inline]
    #[must_use]
    pub const fn dst(&self) -> IpAddr {
        match *self {
            Self::V4(h) => v4([h[16], h[17], h[18], h[19]]),
            Self::V6(h) => v6([
                h[24], h[25], h[26], h[27], h[28], h[29], h[30], h[31], h[32], h[33], h[34], h[35],
                h[36], h[37], h[38], h[39],
            ]),
            Self::None => IpAddr::V4(Ipv4Addr::UNSPECIFIED),
        }
    }

    /// Time to live or hop limit; zero where there is no IP.
    #[inline]
    #[must_use]
    pub const fn ttl(&self) -> u8 {
        match *self {
            Self::V4(h) => h[8],
            Self::V6(h) => h[7],
            Self::None => 0,
        }
    }

    /// The protocol field: of version 6 the *first* next-header value; zero where there is no IP.
    #[inline]
    #[must_use]
    pub const fn protocol(&self) -> u8 {
        match *self {
            Self::V4(h) => h[9],
            Self::V6(h) => h[6],
            Self::None => 0,
        }
    }

    /// Type of service or traffic class: DSCP and ECN; zero where there is no IP.
    #[inline]
    #[must_use]
    pub const fn traffic_class(&self) -> u8 {
        match *self {
            Self::V4(h) => h[1],
            Self::V6(h) => (h[0] << 4) | (h[1] >> 4),
            Self::None => 0,
        }
    }

    /// The identification field of version 4, by which duplicates of a packet are reported from
    /// retransmissions of its segment.
    #[inline]
    #[must_use]
    pub const fn identification(&self) -> Option<u16> {
        match *self {
            Self::V4(h) => Some(u16::from_be_bytes([h[4], h[5]])),
            Self::V6(_) | Self::None => None,
        }
    }

    /// 4, 6, or 0 where there is no IP.
    #[inline]
    #[must_use]
    pub const fn version(&self) -> u8 {
        match *self {
            Self::V4(_) => 4,
            Self::V6(_) => 6,
            Self::None => 0,
        }
    }
}

#[inline]
const fn v4(octets: [u8; 4]) -> IpAddr {
    let [a, b, c, d] = octets;
    IpAddr::V4(Ipv4Addr::new(a, b, c, d))
}

#[inline]
const fn v6(octets: [u8; 16]) -> IpAddr {
    IpAddr::V6(Ipv6Addr::from_bits(u128::from_be_bytes(octets)))
}

/// What the innermost IP packet carries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Transport<'a> {
    /// A TCP segment; of a fragmented packet its first fragment.
    Tcp(Tcp<'a>),
    /// A UDP datagram; of a fragmented packet its first fragment.
    Udp(Udp<'a>),
    /// A fragment that does not hold the whole transport header.
    Fragment,
    /// A message of `ICMPv6`, by its type (RFC 4443 sec. 2.1).
    Icmp6(u8),
    /// Another protocol, by its number.
    Other(u8),
    /// No IP: the Ethernet type, or 0 where the link layer has none.
    NotIp(u16),
}

// UDP datagrams. Source: RFC 768.

/// A UDP datagram: its header and what was captured of its payload.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Udp<'a> {
    pub(crate) header: &'a [u8; 8],
    /// The payload as far as it was captured.
    pub payload: &'a [u8],
    /// Bytes of payload on the wire; of a first fragment, those in the fragment.
    pub payload_len: u32,
}

impl<'a> Udp<'a> {
    /// The header as it stands in the frame.
    #[inline]
    #[must_use]
    pub const fn header(&self) -> &'a [u8; 8] {
        self.header
    }

    /// Source port.
    #[inline]
    #[must_use]
    pub const fn src_port(&self) -> u16 {
        u16::from_be_bytes([self.header[0], self.header[1]])
    }

    /// Destination port.
    #[inline]
    #[must_use]
    pub const fn dst_port(&self) -> u16 {
        u16::from_be_bytes([self.header[2], self.header[3]])
    }

    /// The length field: header and payload, in bytes.
    #[inline]
    #[must_use]
    pub const fn length(&self) -> u16 {
        u16::from_be_bytes([self.header[4], self.header[5]])
    }

    /// The checksum field; zero says that the sender made none.
    #[inline]
    #[must_use]
    pub const fn checksum(&self) -> u16 {
        u16::from_be_bytes([self.header[6], self.header[7]])
    }
}
