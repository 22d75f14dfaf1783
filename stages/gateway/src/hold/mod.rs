//! In-order delivery of a stream to its inspector, and packets that wait: the paper's Q1 and Q2
//! (sec. 3.4), kept by id in user space, so that the kernel stays as it is.
//!
//! A [`Stream`] is one direction of a TCP connection. It says where a segment stands, and keeps
//!
//! * segments *ahead* of a gap, with their payload, until the gap is filled (Q2)
//! * segments *behind a wait*, with their payload: they came while a verdict was awaited
//! * packets *delivered* but not yet let go: the one whose verdict is awaited

mod stream;

pub(crate) use stream::{Budget, Place, Segment, Stream};
