//! A handshake without payload yet: who opened, and where the streams begin.
//!
//! A server can send two answers with different numbers, of which its client takes one: the other may
//! have an option that nobody agreed on, for which the client drops it. Where both were seen, the client's
//! acknowledgment tells which it is.

use linkweir_wire::SeqNumber;

use super::{Ends, Key};
use crate::hold::Stream;

/// Where the server's stream begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Beginning {
    /// It has not answered.
    Unknown,
    /// As its answer says.
    Said(SeqNumber),
    /// Its answers differ.
    Disputed,
    /// As the client acknowledged.
    Taken(SeqNumber),
}

/// A handshake that was seen.
#[derive(Debug, Clone, Copy)]
pub(crate) struct HalfOpen {
    pub(crate) key: Key,
    pub(crate) ends: Ends,
    client_first: SeqNumber,
    server_first: Beginning,
}

impl HalfOpen {
    /// A SYN; `client_first` is the number behind its own.
    pub(crate) const fn new(key: Key, ends: Ends, client_first: SeqNumber) -> Self {
        Self {
            key,
            ends,
            client_first,
            server_first: Beginning::Unknown,
        }
    }

    /// Whether a SYN is this one, sent again.
    pub(crate) fn is_repeated_by(&self, client_first: SeqNumber) -> bool {
        self.client_first == client_first
    }

    /// The server's answer; whether its client may take it.
    pub(crate) fn on_answer(&mut self, server_first: SeqNumber, ack: SeqNumber) -> bool {
        // RFC 9293 sec. 3.10.7.3: one that acknowledges another SYN is answered with a reset.
        if ack != self.client_first {
            return false;
        }
        self.server_first = match self.server_first {
            Beginning::Unknown => Beginning::Said(server_first),
            Beginning::Said(other) if other != server_first => Beginning::Disputed,
            Beginning::Taken(other) if other != server_first => return false,
            same => same,
        };
        true
    }

    /// The client goes on, and acknowledges the answer that it took.
    pub(crate) const fn on_client(&mut self, ack: SeqNumber) {
        if matches!(self.server_first, Beginning::Said(_) | Beginning::Disputed) {
            self.server_first = Beginning::Taken(ack);
        }
    }

    /// Whether it is not known yet where the server's stream begins, though it has answered.
    pub(crate) fn is_disputed(&self) -> bool {
        self.server_first == Beginning::Disputed
    }

    /// Whether both ends were seen.
    pub(crate) fn is_answered(&self) -> bool {
        self.server_first != Beginning::Unknown
    }

    /// The streams of client and server.
    pub(crate) fn streams(&self) -> [Stream; 2] {
        let server = match self.server_first {
            Beginning::Said(first) | Beginning::Taken(first) => Stream::starting_at(first),
            Beginning::Unknown | Beginning::Disputed => Stream::default(),
        };
        [Stream::starting_at(self.client_first), server]
    }
}
