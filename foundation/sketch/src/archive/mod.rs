//! The ever-lasting archive: a file of constant size with rings of rows at several resolutions.
//!
//! Each level of the [`Ladder`] is a ring. A row holds the cells of all series over its time, and a
//! row of an upper level is the exact merge of all steps in it: its percentiles are those of all
//! values, where round-robin databases average percentiles.
//!
//! ```text
//! header    magic, version, step, ladder, catalogue, checksum; never changes
//! journal   number, places, checksum; one row per level as it will be
//! rings     per level its rows, row N in slot N modulo the length of the ring
//! ```
//!
//! **A write survives being killed at any moment.** [`Archive::put`] first writes the rows as they
//! will be into the journal, then its number and checksum, and only then the rows in their places.
//! A journal that is not whole is as if it had not been begun; one that is whole is written out
//! again when the file is opened, which is the same however often it is done. So only the step that
//! was being written can be lost. Every row has a checksum of its own, for what no program can
//! order: pages that a crash of the machine left out. A row found torn is made again from the level
//! below where that still has all of it, else given up.
//!
//! Nothing here does I/O: [`Archive`] works on a [`Memory`], [`Reader`] on a [`ReadAt`]. Everything
//! read is checked; a file can be refused, but not make the program fail.
//!
//! Source: the ladder is that of Tstat's `RRDtool` integration (Rossi, Mellia 2006, Fig. 1).

mod bytes;
mod header;
mod journal;
mod ladder;
mod reader;
mod row;
mod spread;
mod store;

#[cfg(test)]
mod tests;

pub use bytes::checksum;
pub use header::Refused;
pub use ladder::{Ladder, Level};
pub use reader::{ReadAt, ReadFault, Reader, Reading, RowPlace};
pub use row::{Cell, RowBuffer};
pub use spread::{Spread, Values};
pub use store::{Archive, Memory, Opened, Put, PutError};
