//! What application a flow carries, from its first bytes.
//!
//! Signatures come before ports: a port only decides between protocols whose first bytes are alike
//! (a `220` greeting on 21 or on 25), or confirms bytes that are too few to be sure. What is not sure
//! is [`Verdict::No`]: a label that is wrong is worse than none.
//!
//! [`classify_tcp`] sees what both sides sent first, and knows either side alone, so that captures
//! of one direction and flows whose opening was reversed are labelled too. [`classify_udp`] sees one
//! datagram at a time; protocols without a signature (RTP, uTP) need several that agree, for which
//! the caller keeps an [`UdpMemory`] of 16 bytes. A flow that begins with STUN is what it goes on as,
//! too (`stun,dtls,rtp`).
//!
//! Cost: the first byte chooses which signatures are tried, mostly one or two compares; nothing is
//! allocated. Sources: the RFC or specification named at each signature.

mod bittorrent;
mod bytes;
mod chat;
mod databases;
mod edonkey;
mod edonkey_udp;
mod fasttrack;
mod gnutella;
mod industrial;
mod infrastructure;
mod mail;
mod media;
mod messaging;
mod msn;
mod name;
mod names;
mod programs;
mod rtp;
mod secure;
mod services;
mod tcp;
mod terminal;
mod udp;
mod udp_memory;
mod utp;
mod web;

pub use bittorrent::has_bittorrent_handshake;
pub use name::Application;
pub use tcp::classify_tcp;
pub use udp::classify_udp;
pub use udp_memory::UdpMemory;

/// The first bytes of a TCP flow.
#[derive(Debug, Clone, Copy)]
pub struct Opening<'a> {
    /// What the client sent, in stream order; up to 2 KB are useful. May be empty, may grow.
    pub client: &'a [u8],
    /// What the server sent, likewise.
    pub server: &'a [u8],
    /// Port of the client.
    pub client_port: u16,
    /// Port of the server.
    pub server_port: u16,
}

/// What the first bytes say.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// It is this.
    Is(Application),
    /// It is this, unless more of the same head says that it is another, or later datagrams that it goes
    /// on as another too.
    Likely(Application),
    /// More bytes or datagrams may decide.
    More,
    /// Nothing that is known, whatever comes.
    No,
}

impl Verdict {
    /// `application`, where the condition holds.
    #[inline]
    const fn when(holds: bool, application: Application) -> Self {
        if holds {
            Self::Is(application)
        } else {
            Self::No
        }
    }

    /// This, or where it is no, what the next signature says.
    #[inline]
    fn or(self, next: impl FnOnce() -> Self) -> Self {
        match self {
            Self::No => next(),
            decided => decided,
        }
    }
}

/// An opening as one of its sides sees it.
#[derive(Debug, Clone, Copy)]
struct View<'a> {
    /// What this side sent; never empty.
    own: &'a [u8],
    /// What the other side sent.
    other: &'a [u8],
    ports: [u16; 2],
}

impl View<'_> {
    /// Whether one of the ends has this port.
    #[inline]
    const fn has_port(&self, port: u16) -> bool {
        let [a, b] = self.ports;
        a == port || b == port
    }

    /// Whether one of the ends has one of these ports.
    #[inline]
    fn has_port_of(&self, ports: &[u16]) -> bool {
        ports.iter().any(|port| self.has_port(*port))
    }
}

#[cfg(test)]
mod tests;
