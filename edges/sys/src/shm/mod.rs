//! A ring of bytes in shared memory: one writer, one reader, in one process or in two.
//!
//! The memory is two `memfd`s: it has no name in any file system, so that nothing is left behind when
//! a process is killed, and goes when the last process that maps it goes.
//!
//! ```text
//! data     [ mirror of itself: mapped twice in a row, so that no piece ever wraps ]
//!          written by the writer only: sealed, whoever else gets it can map it for reading only
//! control  one page of atomics: positions, who sleeps, how it ended, counters of both sides
//! ```
//! What each side trusts: nothing. A position of the other side that cannot be is an error
//! ([`Corrupt`]); bounds come from the own mapping; the sizes of both files are sealed, so that no
//! access can fault.
//!
//! # The bytes under a reader
//! [`RingReader::readable`] lends bytes that the writer's process could change if it ignored the protocol.
//! Within one process it cannot: only [`RingWriter`] has the memory writable, and it reserves only
//! what the reader has released. Another process is outside of what the language can promise, as it
//! is with every mapped file; whoever takes a ring from another process makes sure that it runs for
//! the same user, who could change this process' memory anyway.

mod cursor;
mod memory;
mod ring;

pub use cursor::Corrupt;
pub use ring::{
    ABANDONED, FINISHED, READER_NOTES, RUNNING, RingKeeper, RingReader, RingWriter, WRITER_NOTES,
};
