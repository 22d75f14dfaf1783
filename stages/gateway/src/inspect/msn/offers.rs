//! Invitations to files: the offer has the name, the acceptance what the transfer will show.

use linkweir_proto::msn::{Invitation, InvitationCommand};

use super::People;
use crate::inspect::gather::bounded;
use crate::inspect::{FileInfo, Found, Invitation as Announcement, Side};

/// Offers that wait at a time; the oldest is forgotten.
const MAX_OFFERS: usize = 16;

/// The offers of a conversation that were neither accepted nor withdrawn.
#[derive(Debug, Default)]
pub(super) struct Offers {
    waiting: Vec<Offer>,
}

#[derive(Debug)]
struct Offer {
    cookie: Vec<u8>,
    sender: Side,
    name: Vec<u8>,
    size: Option<u64>,
    from: Vec<u8>,
    to: Vec<u8>,
}

impl Offer {
    fn file(&self) -> FileInfo<'_> {
        FileInfo {
            name: &self.name,
            announced_size: self.size,
            identifier: &self.cookie,
            from: &self.from,
            to: &self.to,
            ..FileInfo::default()
        }
    }
}

impl Offers {
    /// The body of a message about an invitation.
    pub(super) fn on_message<F: Found>(&mut self, people: &People<'_>, body: &[u8], found: &mut F) {
        let Some(message) = Invitation::parse(body) else {
            return;
        };
        let cookie = bounded(message.cookie);
        let at = self.waiting.iter().position(|offer| offer.cookie == cookie);
        match (message.command, at) {
            (InvitationCommand::Invite, _) if message.is_file => {
                let offer = Offer {
                    cookie: cookie.to_vec(),
                    sender: people.sender,
                    name: bounded(message.file_name).to_vec(),
                    size: message.file_size,
                    from: people.from.to_vec(),
                    to: people.to.to_vec(),
                };
                found.file_named(offer.sender, &offer.file());
                let is_full = self.waiting.len() >= MAX_OFFERS;
                if let Some(gone) = at.or(if is_full { Some(0) } else { None }) {
                    self.waiting.remove(gone);
                }
                self.waiting.push(offer);
            }
            // Only the side that will listen says by what it knows the other.
            (InvitationCommand::Accept, Some(at)) if !message.auth_cookie.is_empty() => {
                let offer = self.waiting.remove(at);
                let announcement = Announcement {
                    cookie: bounded(message.auth_cookie),
                    file: offer.file(),
                };
                found.invitation(offer.sender, &announcement);
            }
            (InvitationCommand::Cancel, Some(at)) => drop(self.waiting.remove(at)),
            _ => {}
        }
    }
}
