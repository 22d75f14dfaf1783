//! Layers 2 to 4: frames, packets, segments, sequence arithmetic, checksums and emit.
//!
//! [`decode()`] turns a captured frame into the innermost IP packet and its transport header, all of
//! them borrowed from the frame: nothing is copied or allocated. Plain Ethernet, IP and TCP take an
//! inlined path of a few nanoseconds; everything else (tags, tunnels, options, fragments, faults)
//! an out-of-line walk that is bounded by its nesting limits and by the length of the frame.
//!
//! A fragmented packet is reassembled by [`Fragments`].
//!
//! Lengths follow the headers and never the capture: Ethernet padding is no payload, and a segment
//! cut by the snap length still says how long it was on the wire.
#![forbid(unsafe_code)]

pub mod calendar;
pub mod checksum;
pub mod civil;
pub mod decode;
pub mod emit;
pub mod fault;
pub mod fragments;
pub mod link_type;
pub mod packet;
pub mod seq;
pub mod tcp;
pub mod time;

pub use decode::{decode, decode_outermost, decode_plain};
pub use fault::{DecodeError, DecodeErrorKind, DecodeFaults, Layer};
pub use fragments::{FragmentStats, Fragments, Joined};
pub use link_type::LinkType;
pub use packet::Udp;
pub use packet::{Network, Packet, Side, Transport};
pub use seq::SeqNumber;
pub use tcp::{Tcp, TcpFlags, TcpOption};
pub use time::{Timestamp, nanos};
