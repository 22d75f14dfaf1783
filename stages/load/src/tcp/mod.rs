//! The client side of TCP for very many connections, as a state machine: segments and time come in,
//! segments and events go out. Source: RFC 9293, and those named where they are followed.
//!
//! **What it does.** The states of a client (simultaneous open is not supported: it is counted and
//! dropped), every order of closing, half-closed connections, TIME-WAIT. Maximum segment size,
//! window scale, timestamps with PAWS (RFC 7323), selective acknowledgments in both directions
//! (RFC 2018, the simple form of RFC 6675), retransmission timer (RFC 6298), congestion control
//! (RFC 5681, 6582, 6928), delayed acknowledgments, probes of closed windows, and the answers of
//! RFC 5961 to strangers. It has no Nagle algorithm, no ECN, no keep-alive, no urgent data and no
//! path MTU discovery: the path is known.
//!
//! **What it costs.** An established connection with nothing under way takes 112 bytes and 11 for
//! its place in the index. What is under way takes a place in a pool while it is. A lookup misses the
//! cache twice: the place in the index, the connection. Memory is reserved when it begins; no
//! segment allocates.
//!
//! **Receiving.** Data in order goes to the listener straight from the packet, so the window is
//! always the same. What arrives ahead of a gap is held in a pool with a bound in total and for each
//! connection; what finds no room is dropped and counted, and the server sends it again.
//!
//! **The same on two hosts.** The port, the initial sequence number and the SYN's options follow from
//! the seed, the client, how often it connected and the time given: see [`TcpClients::syn_only`].

mod clients;
mod connection;
mod demultiplex;
mod emit;
mod flight;
mod keys;
mod opening;
mod reassembly;
mod receive;
mod rto;
mod run;
mod segment;
mod settings;
mod stack;
#[cfg(test)]
mod tests;
mod time_wait;
mod timeout;
mod transmit;

pub use clients::TcpClients;
pub use demultiplex::Heard;
pub use opening::{ConnectError, Opening};
pub use settings::{TcpCounts, TcpSettings};
