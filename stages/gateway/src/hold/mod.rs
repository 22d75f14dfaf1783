//! In-order delivery of a stream to its inspector, and packets that wait: the paper's Q1 and Q2
//! (sec. 3.4), kept by id in user space, so that the kernel stays as it is.
//!
//! One idea is added to the paper's: a receiver cannot read beyond a gap. So a segment behind one is released
//! at once, and only a copy of its bytes is kept; what waits is the segment that fills the gap, until all
//! that becomes readable with it was inspected. Selective and duplicate acknowledgments and timestamps are
//! as on a bare line then.
//!
//! A [`Stream`] is one direction of a TCP connection. It says where a segment stands, and keeps
//!
//! * the bytes of segments [`Ahead`] of a gap, which have passed
//! * packets *delivered* but not yet released: those whose verdict is awaited
//! * segments in a *queue* behind a verdict, in the order in which they came (Q2)
//! * the bytes that were released and that their receiver has not [acknowledged](Unacked): what is sent again
//!   with other bytes would be read by whoever has dropped the first ones

mod ahead;
mod budget;
mod relay;
mod stream;
mod unacked;

use ahead::Ahead;
pub(crate) use budget::{Budget, Source};
pub(crate) use stream::{Position, Segment, Stream};
use unacked::Unacked;
