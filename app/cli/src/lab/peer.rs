//! `linkweir lab-peer`: a peer of old file sharing or chat, a process of its own in its namespace.

use std::process::ExitCode;

use clap::Args;
use linkweir_lab::p2p;

/// A peer of FastTrack, Gnutella, MSN, MSNFTP or eDonkey for one transfer or one conversation.
///
/// `linkweir lab` starts it; it is no part of what users and scripts may rely on.
#[derive(Debug, Args)]
pub(crate) struct PeerArgs {
    /// What it does, with whom: words of the test kit's `peers`.
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, required = true)]
    words: Vec<String>,
}

/// Does it; its exit codes are its own.
pub(crate) fn run(args: &PeerArgs) -> ExitCode {
    p2p::speak(&args.words).into()
}
