//! Files recorded from the traffic, and the quarantine: bounded, and each either whole or marked as a
//! part.
//!
//! ```text
//! FileStoreClient::submit ─► bounded queue ─► thread `vault` ─► .NAME.partial ─► NAME
//!                                                              .NAME.json.partial ─► NAME.json
//! ```
//! A file is written as `.NAME.partial`, mode 0600, and gets its own name when it ends, in the directory
//! or in the quarantine (mode 0400). Nothing that is there already is ever replaced: a name that is
//! taken gets `-2`, `-3` and so on at its end. Beside each file is `NAME.json`, which says where it
//! comes from.
//!
//! # What holds whatever happens
//! - A file under its own name has its `NAME.json` beside it, and is complete or marked as a part.
//! - A part is a beginning: after bytes that were lost nothing more is written.
//! - What is infected is in the quarantine or nowhere.
//! - Trouble with the disk costs files, counted by cause, and never the run.
//!
//! # What a killed run leaves
//! A `.NAME.partial` of an earlier run becomes `NAME` when the next one starts, and its `NAME.json`
//! says `"end":"interrupted"`; [`FileStoreOptions::stale`] can have it deleted instead. One that was on its
//! way to the quarantine gets there. An empty one, and one of which nothing says where it comes from,
//! is deleted. A lock on the directory keeps a second run out, so that the files of a live run are not taken for stale
//! ones.
#![forbid(unsafe_code)]

mod budget;
mod directory;
mod file;
mod name;
mod options;
mod queue;
mod recover;
mod sidecar;
mod status;
mod store;
mod writer;

pub use options::{FileStoreOptions, Stale, WhenFull};
pub use queue::FileStoreClient;
pub use status::{FileStoreStatus, Loss, LossCause, Losses};
pub use store::{FileStore, FileStoreError};
