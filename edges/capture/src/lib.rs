//! Capture files of every format and compression, as one [`Source`](linkweir_engine::Source).
//!
//! ```text
//! path, directory, `-` ─► decompress ─► Window (one buffer) ─► format index ─► BPF ─► Batch
//! ```
//! Frames borrow from the read buffer; nothing is copied or allocated per packet. A format is a
//! state machine over bytes (the directory `format`): it neither reads nor waits, so any way of cutting the
//! input gives the same frames. Whatever a file says, memory is one chunk plus one maximal frame
//! (plus the window of its compression).
//!
//! A damaged file gives everything before the damage, then one [`Fault`](linkweir_engine::Fault)
//! with the offset of the first byte that could not be used; the next file follows.
#![forbid(unsafe_code)]

pub mod chosen;
mod decompress;
pub mod files;
mod filter;
mod format;
mod inputs;
pub mod live;
mod pipe;
mod plain;
mod window;

pub use files::{CaptureFiles, FilePiece, ReadOptions};
pub use format::OnSecrets;
pub use inputs::{Input, files_below};
pub use live::{Fanout, LiveCapture, LiveOptions, LiveSource};
pub use plain::plain;
