//! Bounded tables for state that the network decides the size of.
//!
//! [`Table`] is a preallocated hash table whose entries also stand in order of age, so that the
//! oldest can leave when it is full and timeouts cost nothing until they are due. [`TextPool`]
//! holds the texts of entries in chunks. [`SeenCache`] remembers fingerprints for a while and
//! forgets the oldest. [`Wheel`] says which entries are due. None of them grows, allocates after it is warm, or asks for the time.
#![forbid(unsafe_code)]

mod keyed;
mod seen;
mod text;
mod wheel;

pub use keyed::{Id, Table};
pub use seen::{Seen, SeenCache};
pub use text::{TextChain, TextPool};
pub use wheel::{Timer, Timers, Wheel};
