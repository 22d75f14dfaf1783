//! The five-tuple, the same for both directions, and who opened.

use std::net::{IpAddr, SocketAddr};

use linkweir_engine::hash::flow_hash;
use linkweir_record::Place;

use crate::inspect::Side;

/// Addresses, ports and protocol of a connection, whichever way a packet goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Key {
    low: (IpAddr, u16),
    high: (IpAddr, u16),
    pub(crate) is_tcp: bool,
}

impl Key {
    pub(crate) fn new(src: (IpAddr, u16), dst: (IpAddr, u16), is_tcp: bool) -> Self {
        let (low, high) = if src <= dst { (src, dst) } else { (dst, src) };
        Self { low, high, is_tcp }
    }

    pub(crate) const fn hash(&self) -> u32 {
        flow_hash(self.low, self.high) ^ self.is_tcp as u32
    }
}

/// Who opened a connection and who accepted it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Ends {
    pub(crate) client: (IpAddr, u16),
    pub(crate) server: (IpAddr, u16),
    /// Where the policy's database has client and server; nowhere without one.
    pub(crate) places: [Place; 2],
    /// When it began, in minutes of the week by local time, where a rule of the policy asks for it.
    pub(crate) minute: u16,
    /// Rules whose quota the client has used up, by the bits of the quotas.
    pub(crate) used_up: u64,
}

impl Ends {
    /// Those of a connection, of which it is not known where they are.
    pub(crate) fn opened_by(sender: (IpAddr, u16), receiver: (IpAddr, u16), who: Side) -> Self {
        let (client, server) = match who {
            Side::Client => (sender, receiver),
            Side::Server => (receiver, sender),
        };
        Self {
            client,
            server,
            places: Default::default(),
            minute: 0,
            used_up: 0,
        }
    }

    /// The side of an end.
    pub(crate) fn side(&self, sender: (IpAddr, u16)) -> Side {
        if sender == self.client {
            Side::Client
        } else {
            Side::Server
        }
    }

    /// The address of a side.
    pub(crate) fn address(&self, side: Side) -> SocketAddr {
        match side {
            Side::Client => self.client.into(),
            Side::Server => self.server.into(),
        }
    }
}

/// The side of a sender in a connection that was picked up midstream: the lower port is the server's,
/// where it is one of the well-known.
pub(crate) const fn side_of_sender(sender: u16, receiver: u16) -> Side {
    if sender < 1024 && receiver >= 1024 {
        Side::Server
    } else {
        Side::Client
    }
}
