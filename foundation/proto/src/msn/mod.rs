//! MSN Messenger (MSNP): command lines, and the MIME messages that follow some of them.
//!
//! Sources: draft-movva-msn-messenger-protocol-00 (MSNP2); for later versions and for invitations the
//! public documentation of the protocol (hypothetic.org, "MSN Messenger Protocol"). A command is a
//! line; the payload of a command is counted, never searched for its end.

mod base64;
mod command;
mod invitation;
mod mime;
mod slp;

pub use base64::Base64;
pub use command::{Command, Payload};
pub use invitation::{Invitation, InvitationCommand};
pub use mime::{MimeMessage, field};
pub use slp::SlpFile;

/// What names the transfer of a file in invitations, in both of their forms.
const FILE_TRANSFER: &[u8] = b"{5D3E02AB-6190-11D3-BBBB-00C04F795683}";

#[cfg(test)]
mod tests;
