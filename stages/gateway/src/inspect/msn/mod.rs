//! MSN Messenger (MSNP): chat messages, and invitations to files.
//!
//! Every byte is text. Lines tell who takes part; the payloads of messages are gathered, at most 64 KiB
//! of each, and read when they are whole. Two things are text once more, since no keyword would be
//! found in them otherwise: a body in base64, decoded, and where a message in several parts is cut,
//! some bytes of both sides.

mod chunks;
mod session;

use linkweir_proto::msn::{
    Base64, Command, Invitation, InvitationCommand, MimeMessage, Payload, SlpFile,
};

use self::chunks::Chunks;
use self::session::Session;
use super::gather::{LineBuffer, LineState, MAX_KEPT, Message, bounded};
use super::{ChatMessage, FileInfo, Found, Side};
use crate::inspect::Invitation as Announcement;

/// State of the connection.
#[derive(Debug, Default)]
pub struct MsnInspector {
    client: Direction,
    server: Direction,
    session: Session,
    offers: Offers,
    is_opaque: bool,
}

/// What is coming from one side.
#[derive(Debug, Default)]
struct Direction {
    /// The line, and while its payload comes the one in front of that.
    line: LineBuffer,
    payload: Message,
    is_payload: bool,
    chunks: Chunks,
}

impl MsnInspector {
    /// The next bytes of a side.
    pub fn feed<F: Found>(&mut self, sender: Side, mut bytes: &[u8], found: &mut F) {
        while !bytes.is_empty() {
            if self.is_opaque {
                found.text(sender, bytes);
                return;
            }
            bytes = if self.direction(sender).is_payload {
                self.take_payload(sender, bytes, found)
            } else {
                self.take_line(sender, bytes, found)
            };
        }
    }

    const fn direction(&mut self, sender: Side) -> &mut Direction {
        match sender {
            Side::Client => &mut self.client,
            Side::Server => &mut self.server,
        }
    }

    fn take_line<'a, F: Found>(
        &mut self,
        sender: Side,
        bytes: &'a [u8],
        found: &mut F,
    ) -> &'a [u8] {
        let (taken, rest, state) = self.direction(sender).line.take(bytes);
        found.text(sender, taken);
        match state {
            LineState::Partial => {}
            LineState::Whole => self.on_line(sender, found),
            LineState::TooLong => self.give_up(sender, "a line of MSNP is too long", found),
        }
        rest
    }

    fn on_line<F: Found>(&mut self, sender: Side, found: &mut F) {
        let mut line = std::mem::take(&mut self.direction(sender).line);
        match Command::parse(line.line()) {
            None if line.line().is_empty() => line.clear(),
            None => return self.give_up(sender, "not a command of MSNP", found),
            Some(command) => match command.payload() {
                Payload::Unknown => {
                    return self.give_up(sender, "a message of MSNP without its length", found);
                }
                Payload::None | Payload::Length(0) => {
                    self.session.on_command(sender, &command);
                    line.clear();
                }
                Payload::Length(length) => {
                    let is_mime = matches!(command.verb(), b"MSG" | b"UUM" | b"UBM");
                    let direction = self.direction(sender);
                    let keep = if is_mime { MAX_KEPT } else { 0 };
                    direction.payload.begin(u64::from(length), keep);
                    direction.is_payload = true;
                }
            },
        }
        self.direction(sender).line = line;
    }

    fn take_payload<'a, F: Found>(
        &mut self,
        sender: Side,
        bytes: &'a [u8],
        found: &mut F,
    ) -> &'a [u8] {
        let direction = self.direction(sender);
        let (taken, rest) = direction.payload.take(bytes);
        found.text(sender, taken);
        if direction.payload.is_whole() {
            direction.is_payload = false;
            let mut line = std::mem::take(&mut direction.line);
            let mut payload = std::mem::take(&mut direction.payload);
            if let Some(command) = Command::parse(line.line()) {
                self.on_message(sender, &command, payload.bytes(), found);
            }
            line.clear();
            payload.begin(0, 0);
            let direction = self.direction(sender);
            direction.line = line;
            direction.payload = payload;
        }
        rest
    }

    /// A payload is whole; of those that are no messages nothing was kept.
    fn on_message<F: Found>(
        &mut self,
        sender: Side,
        command: &Command<'_>,
        payload: &[u8],
        found: &mut F,
    ) {
        if payload.is_empty() {
            return;
        }
        let message = MimeMessage::parse(payload);
        if sender == Side::Client
            && let Some(handle) = message.field(b"TypingUser")
        {
            self.session.learn_own(handle);
        }
        // The server says who sends, the client knows himself.
        let from = match sender {
            Side::Client => self.session.own().to_vec(),
            Side::Server => {
                let handle = session::handle(command.argument(0).unwrap_or_default());
                self.session.add(handle);
                handle.to_vec()
            }
        };
        let to = match command.verb() {
            b"UUM" => session::handle(command.argument(1).unwrap_or_default()).to_vec(),
            _ => self.session.others_than(&from),
        };
        let people = People {
            sender,
            from: &from,
            to: &to,
        };
        let media_type = message.media_type();
        let is = |name: &[u8]| media_type.eq_ignore_ascii_case(name);
        if is(b"text/plain") || media_type.is_empty() {
            self.on_chat(&people, &message, found);
        } else if is(b"text/x-msmsgsinvite") {
            self.offers.on_message(&people, message.body, found);
        } else if is(b"application/x-msnmsgrp2p")
            && let Some(file) = SlpFile::parse(message.body)
        {
            on_slp(&people, &file, found);
        }
    }

    fn on_chat<F: Found>(&mut self, people: &People<'_>, message: &MimeMessage<'_>, found: &mut F) {
        let mut decoded = Vec::new();
        let text = if message.is_base64() {
            decoded.extend(Base64::new(message.body));
            found.text(people.sender, &decoded);
            decoded.as_slice()
        } else {
            message.body
        };
        let is_first = !message.media_type().is_empty();
        let chunks = &mut self.direction(people.sender).chunks;
        let belongs = chunks.on_part(message, text, |joint| found.text(people.sender, joint));
        if is_first || belongs {
            let chat = ChatMessage {
                from: people.from,
                to: people.to,
                text,
            };
            found.message(people.sender, &chat);
        }
    }

    fn give_up<F: Found>(&mut self, sender: Side, why: &'static str, found: &mut F) {
        *self = Self {
            is_opaque: true,
            ..Self::default()
        };
        found.malformed(sender, why);
    }
}

/// Who sends a message to whom.
struct People<'a> {
    sender: Side,
    from: &'a [u8],
    to: &'a [u8],
}

fn on_slp<F: Found>(people: &People<'_>, file: &SlpFile<'_>, found: &mut F) {
    let name: String = file.name().collect();
    if !name.is_empty() {
        let info = FileInfo {
            name: bounded(name.as_bytes()),
            announced_size: file.size(),
            from: people.from,
            to: people.to,
            ..FileInfo::default()
        };
        found.file_named(people.sender, &info);
    }
}

// Invitations to files: the offer has the name, the acceptance what the transfer will show.

/// Offers that wait at a time; the oldest is forgotten.
const MAX_OFFERS: usize = 16;

/// The offers of a conversation that were neither accepted nor withdrawn.
#[derive(Debug, Default)]
struct Offers {
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
    fn on_message<F: Found>(&mut self, people: &People<'_>, body: &[u8], found: &mut F) {
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

#[cfg(test)]
mod tests;
