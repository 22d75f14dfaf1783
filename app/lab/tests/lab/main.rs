//! The scenarios of the laboratory.
#![allow(
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a helper that fails is a failed test"
)]

mod ends;
mod failover;
mod loss;
mod overload;
mod p2p;
mod web;

use std::path::{Path, PathBuf};

use linkweir_testkit::ran::{self, Ran, ended};

/// The laboratory's own program.
const LAB: &str = env!("CARGO_BIN_EXE_linkweir-lab");

/// The program beside it, as where they are installed: it starts the laboratory, which runs its commands.
fn linkweir() -> PathBuf {
    let path = Path::new(LAB).with_file_name("linkweir");
    let how = "build both: cargo build -p linkweir -p linkweir-lab";
    assert!(path.is_file(), "{} is missing; {how}", path.display());
    path
}

/// Runs `linkweir` with these words.
fn run(words: &[&str]) -> Ran {
    ended(ran::command(linkweir()).args(words).output().unwrap())
}
