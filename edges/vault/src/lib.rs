//! Files recorded from the traffic, and the quarantine: bounded, and each either whole or said to be
//! a part.
//!
//! ```text
//! queue thread ─ VaultClient::submit ─► bounded queue ─► thread `vault` ─► .NAME.partial ─► NAME
//!                                                                         .NAME.json.partial ─► NAME.json
//! ```
//! A file is written as `.NAME.partial`, mode 0600, and gets its own name when it ends, in the directory
//! or in the quarantine (mode 0400). Nothing that is there already is ever replaced: a name that is
//! taken gets `-2`, `-3` and so on at its end. Beside each file is `NAME.json`, which says where it
//! comes from.
//!
//! # What holds whatever happens
//! - A file under its own name has its `NAME.json` beside it, and is complete or said to be a part.
//! - A part is a beginning: after bytes that were lost nothing more is written.
//! - What is infected is in the quarantine or nowhere.
//! - Trouble with the disk costs files, counted by cause, and never the run.
//!
//! # What a killed run leaves
//! A `.NAME.partial` of an earlier run becomes `NAME` when the next one starts, and its `NAME.json`
//! says `"end":"interrupted"`; [`VaultOptions::stale`] can have it deleted instead. One that was on its
//! way to the quarantine gets there. An empty one, and one of which nothing says where it comes from,
//! is deleted. A lock on the directory keeps a second run out, so that nobody's live files are taken for
//! stale ones.
#![forbid(unsafe_code)]

mod budget;
mod client;
mod directory;
mod file;
mod intake;
mod keeper;
mod name;
mod options;
mod publish;
mod sidecar;
mod stale;
mod status;
mod vault;

pub use client::VaultClient;
pub use options::{Stale, VaultOptions, WhenFull};
pub use status::{Loss, LossCause, Losses, VaultStatus};
pub use vault::{Vault, VaultError};
