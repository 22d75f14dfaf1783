//! What is remembered between the datagrams of a flow.

use super::name::Application;

/// How sure one datagram of a peer-to-peer protocol is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sureness {
    /// It is enough: of random datagrams less than one in 10^9 fits.
    Sure(Application),
    /// Two messages of different kinds are.
    Likely(Application, u8),
    /// It is none.
    None,
}

impl Sureness {
    /// Likely, where the condition holds; `kind` is the message's.
    pub(super) const fn likely(holds: bool, application: Application, kind: u8) -> Self {
        if holds {
            Self::Likely(application, kind)
        } else {
            Self::None
        }
    }
}

/// What a flow may be, that several datagrams have to agree on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Candidate {
    #[default]
    None,
    Rtp,
    Utp,
    Peer(Application),
}

/// What `classify_udp` remembers of a flow: at most 16 bytes, all zero where there is nothing yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct UdpMemory {
    /// Source of RTP, time of uTP.
    pub(super) number: u32,
    /// Sequence number of RTP, connection of uTP.
    pub(super) sequence: u16,
    pub(super) candidate: Candidate,
    /// Payload type of RTP, whether a SYN of uTP was seen, kind of a peer's message.
    pub(super) kind: u8,
    pub(super) votes: u8,
    /// Which side the above is from.
    pub(super) is_from_client: bool,
    /// Datagrams seen; those that fit nothing count twice.
    pub(super) datagrams: u8,
    /// What a flow that began with STUN carries, as far as it was seen.
    pub(super) so_far: Option<Application>,
}

const _: () = assert!(size_of::<UdpMemory>() <= 16);

impl UdpMemory {
    /// Whether the flow began with STUN: what goes on in it shares it.
    #[must_use]
    pub const fn began_with_stun(&self) -> bool {
        self.so_far.is_some()
    }

    /// Whether datagrams so far look like RTP, and not enough of them to be sure.
    #[must_use]
    pub fn may_be_rtp(&self) -> bool {
        self.candidate == Candidate::Rtp
    }

    /// Takes a datagram as the first of a candidate.
    pub(super) const fn begin(
        &mut self,
        candidate: Candidate,
        is_from_client: bool,
        number: u32,
        sequence: u16,
        kind: u8,
    ) {
        *self = Self {
            number,
            sequence,
            candidate,
            kind,
            votes: 1,
            is_from_client,
            ..*self
        };
    }
}
