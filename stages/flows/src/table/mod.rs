//! Where the flows are: a slab, an index by hash, and a wheel of what is due.

mod index;
mod slab;
mod wheel;

pub(crate) use index::Index;
pub(crate) use slab::{Slab, SlotId};
pub(crate) use wheel::{Link, Links, Wheel};
