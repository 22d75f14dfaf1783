//! `text/x-msmsgsinvite`: one client invites another to something outside of the session.

use super::FILE_TRANSFER;
use super::mime::{field, number};

/// What an invitation's message does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InvitationCommand {
    /// Offers.
    Invite,
    /// Agrees, or says where to connect to.
    Accept,
    /// Withdraws or declines.
    Cancel,
}

impl InvitationCommand {
    fn of(word: &[u8]) -> Option<Self> {
        let words: [(&[u8], Self); 3] = [
            (b"INVITE", Self::Invite),
            (b"ACCEPT", Self::Accept),
            (b"CANCEL", Self::Cancel),
        ];
        let mut words = words.into_iter();
        let found = words.find(|(name, _)| word.eq_ignore_ascii_case(name));
        found.map(|(_, command)| command)
    }
}

/// A message of an invitation. Absent texts are empty.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Invitation<'a> {
    /// What it does.
    pub command: InvitationCommand,
    /// What is the same in all messages of an invitation.
    pub cookie: &'a [u8],
    /// Whether it is the offer of a file.
    pub is_file: bool,
    /// Name of the file, UTF-8.
    pub file_name: &'a [u8],
    /// Its length, bytes.
    pub file_size: Option<u64>,
    /// Of the side that will listen: what the other one is to show when it connects.
    pub auth_cookie: &'a [u8],
}

impl<'a> Invitation<'a> {
    /// Reads the body of such a message; `None` without command or cookie.
    #[must_use]
    pub fn parse(body: &'a [u8]) -> Option<Self> {
        let text = |name: &[u8]| field(body, name).unwrap_or_default();
        let command = InvitationCommand::of(text(b"Invitation-Command"))?;
        let cookie = text(b"Invitation-Cookie");
        let file_name = text(b"Application-File");
        // Some clients leave the application's identifier out.
        let is_file =
            text(b"Application-GUID").eq_ignore_ascii_case(FILE_TRANSFER) || !file_name.is_empty();
        (!cookie.is_empty()).then_some(Self {
            command,
            cookie,
            is_file,
            file_name,
            file_size: number(text(b"Application-FileSize")),
            auth_cookie: text(b"AuthCookie"),
        })
    }
}
