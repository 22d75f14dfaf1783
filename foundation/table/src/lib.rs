//! Bounded tables for state that the network decides the size of.
//!
//! [`Table`] is a preallocated hash table whose entries also stand in order of age, so that the
//! oldest can leave when it is full and timeouts cost nothing until they are due. [`Slab`]
//! keeps items by number, [`Index`] finds those numbers by hash, [`Chunks`] holds bytes of any length. [`Wheel`]
//! says which entries are due. What has a capacity neither grows nor allocates once it is warm; none asks for the time.
#![forbid(unsafe_code)]

mod chunks;
mod index;
mod keyed;
mod slab;
mod wheel;

pub use chunks::{Chain, Chunks};
pub use index::Index;
pub use keyed::{Id, Table};
pub use slab::{NONE, Pieces, Slab, Slots};
pub use wheel::{Timed, Timer, Timers, Wheel};
