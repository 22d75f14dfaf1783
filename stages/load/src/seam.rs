//! What the rooms of this crate say to one another.

use linkweir_wire::Timestamp;
use linkweir_wire::emit::TcpFrame;

/// A client: its place in the population, from 0 on.
pub type Client = u32;

/// Names a connection from [`connect`](crate::tcp::TcpClients::connect) to its
/// [`TcpEvent::Closed`]; a number that is used again has another generation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ConnId {
    /// Slot in the slab of connections.
    pub slot: u32,
    /// How often the slot has been used.
    pub generation: u32,
}

/// Takes the segments that a TCP client sends. The frame has addresses, ports and all of TCP; whoever
/// takes it fills in what belongs to the link (MAC addresses, VLAN, time to live) and decides when it
/// leaves.
pub trait SegmentOut {
    /// Takes a segment of `client`.
    fn segment(&mut self, client: Client, frame: &TcpFrame<'_>, now: Timestamp);
}

/// What happens on a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TcpEvent<'a> {
    /// The handshake is complete (RFC 9293 sec. 3.5).
    Connected {
        /// Nanoseconds from the first SYN to the SYN ACK.
        handshake_ns: u64,
        /// SYNs that were sent again.
        syn_retransmissions: u32,
    },
    /// The next bytes of the stream, in order, each once.
    Data(&'a [u8]),
    /// All that was given to [`send`](crate::tcp::TcpClients::send) has been acknowledged.
    Sent,
    /// The server has finished its stream (FIN, in order); ours may still be open.
    PeerFinished,
    /// The connection is no more; the last event of its id.
    Closed(CloseReason),
}

/// Why a connection is no more.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum CloseReason {
    /// Both sides have finished.
    Finished,
    /// A RST answered the SYN (RFC 9293 sec. 3.10.7.3).
    Refused,
    /// A RST ended it later.
    Reset,
    /// No SYN ACK came.
    ConnectTimeout,
    /// Data or FIN was never acknowledged.
    SendTimeout,
    /// [`abort`](crate::tcp::TcpClients::abort) was called.
    Aborted,
}

/// Hears what happens on connections. It must not call back: it notes what it wants done.
pub trait Listener {
    /// An event of a connection; `user` is the number that was given to
    /// [`connect`](crate::tcp::TcpClients::connect). `at` is when the segment arrived, as the kernel
    /// saw it.
    fn on_event(&mut self, conn: ConnId, user: u32, event: TcpEvent<'_>, at: Timestamp);
}
