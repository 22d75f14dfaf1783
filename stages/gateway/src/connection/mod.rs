//! What is known of a connection, from its first packet until it is decided and beyond.

mod half_open;
pub(crate) mod key;
mod opening;
mod plausible;
mod recent;
mod undecided;

pub(crate) use half_open::{HalfOpen, Handshakes};
pub(crate) use key::{Ends, Key, side_of_sender};
pub(crate) use opening::{Classified, Opening};
pub(crate) use plausible::{Plausible, Receiver};
pub(crate) use recent::RecentDecisions;
pub use undecided::Undecided;

use std::sync::Arc;

use linkweir_engine::effect::{Decision, Mark};
use linkweir_wire::Timestamp;

use crate::examine::Examination;
use crate::hold::Stream;
use crate::inspect::Side;
use crate::policy::{Label, Rule};
use crate::work::Answered;

/// How far a connection is.
#[derive(Debug)]
pub(crate) enum Phase {
    /// Its first bytes are gathered.
    Opening(Box<Opening>),
    /// It is the kernel's, with this mark, as soon as its receivers have acknowledged what it was decided by: what they drop
    /// decides nothing.
    Allowed(Mark),
    /// It is inspected.
    Inspected(Box<Examination>),
    /// Its client has got a response of the gateway; the server is rid of it.
    Answered(Box<Answered>),
}

/// A connection that is not the kernel's alone.
#[derive(Debug)]
pub(crate) struct Connection {
    pub(crate) key: Key,
    pub(crate) ends: Ends,
    pub(crate) phase: Phase,
    pub(crate) label: Label,
    /// The rule by which its datagrams pass while more of them are looked at: recorded and counted.
    pub(crate) passes_by: Option<Arc<Rule>>,
    /// Streams of client and server; those of UDP stay unused.
    pub(crate) streams: [Stream; 2],
    /// Whether both ends were seen to open it.
    pub(crate) has_handshake: bool,
    /// Of client and server, what identifies segments that their receiver ignores.
    pub(crate) plausible: [Plausible; 2],
    /// Packets and IP bytes before the decision.
    pub(crate) early_packets: u64,
    pub(crate) early_bytes: u64,
    pub(crate) last: Timestamp,
}

impl Connection {
    pub(crate) const fn stream(&mut self, side: Side) -> &mut Stream {
        let [client, server] = &mut self.streams;
        match side {
            Side::Client => client,
            Side::Server => server,
        }
    }

    pub(crate) fn holds_any(&self) -> bool {
        self.streams.iter().any(Stream::holds_any)
    }

    /// Whether both ends have sent all they will.
    pub(crate) fn is_finished(&self) -> bool {
        self.streams.iter().all(|stream| stream.is_finished)
    }
}

/// The decision that an action is to the kernel.
pub(crate) const fn decision_of(action: crate::policy::Action) -> Decision {
    match action {
        crate::policy::Action::Allow => Decision::Pass,
        crate::policy::Action::Drop => Decision::Drop,
        // An established connection cannot be moved to a proxy: it is the next one that goes there.
        crate::policy::Action::Reject | crate::policy::Action::Redirect => Decision::Reject,
        crate::policy::Action::Inspect => Decision::Inspect,
    }
}
