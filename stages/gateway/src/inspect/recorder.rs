//! For tests: writes down what an inspector finds, and gives it a connection in pieces.

use linkweir_proto::application::Application;

use super::{ChatMessage, FileInfo, Found, Inspector, Invitation, Side};

/// A file as it was reported.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct File {
    pub(super) name: String,
    pub(super) size: Option<u64>,
    pub(super) identifier: String,
    pub(super) from: String,
    pub(super) to: String,
}

impl File {
    fn of(file: &FileInfo<'_>) -> Self {
        Self {
            name: text(file.name),
            size: file.announced_size,
            identifier: text(file.identifier),
            from: text(file.from),
            to: text(file.to),
        }
    }
}

/// Something found. Texts are UTF-8, with a sign in place of what is not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Event {
    Message {
        sender: Side,
        from: String,
        to: String,
        text: String,
    },
    Named(Side, File),
    Begin(Side, File),
    End(Side, bool),
    Invited(Side, String, File),
    Malformed(Side, &'static str),
    Stream(Side, u32),
}

/// What was found: bytes put together, everything else in its order.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Recorder {
    pub(super) events: Vec<Event>,
    /// Text of the client and of the server.
    pub(super) texts: [Vec<u8>; 2],
    /// Bytes of files of the client and of the server.
    pub(super) data: [Vec<u8>; 2],
    /// What was offered elsewhere, by its cookie.
    pub(super) offers: Vec<(String, File)>,
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

const fn place(side: Side) -> usize {
    match side {
        Side::Client => 0,
        Side::Server => 1,
    }
}

impl Found for Recorder {
    fn text(&mut self, sender: Side, bytes: &[u8]) {
        self.texts[place(sender)].extend_from_slice(bytes);
    }

    fn host(&mut self, _host: &[u8]) {}

    fn stream(&mut self, sender: Side, stream: u32) {
        let event = Event::Stream(sender, stream);
        let last = self
            .events
            .iter()
            .rfind(|event| matches!(event, Event::Stream(side, _) if *side == sender));
        if last != Some(&event) {
            self.events.push(event);
        }
    }

    fn message(&mut self, sender: Side, message: &ChatMessage<'_>) {
        self.events.push(Event::Message {
            sender,
            from: text(message.from),
            to: text(message.to),
            text: text(message.text),
        });
    }

    fn file_named(&mut self, sender: Side, file: &FileInfo<'_>) {
        self.events.push(Event::Named(sender, File::of(file)));
    }

    fn file_begin(&mut self, sender: Side, file: &FileInfo<'_>) {
        self.events.push(Event::Begin(sender, File::of(file)));
    }

    fn file_data(&mut self, sender: Side, bytes: &[u8]) {
        self.data[place(sender)].extend_from_slice(bytes);
    }

    fn file_end(&mut self, sender: Side, is_complete: bool) {
        self.events.push(Event::End(sender, is_complete));
    }

    fn invitation(&mut self, sender: Side, invitation: &Invitation<'_>) {
        let cookie = text(invitation.cookie);
        let file = File::of(&invitation.file);
        self.offers.push((cookie.clone(), file.clone()));
        self.events.push(Event::Invited(sender, cookie, file));
    }

    fn invited(&mut self, cookie: &[u8], use_it: &mut dyn FnMut(&FileInfo<'_>)) {
        let offer = self
            .offers
            .iter()
            .find(|(known, _)| known.as_bytes() == cookie);
        if let Some((_, file)) = offer {
            use_it(&FileInfo {
                name: file.name.as_bytes(),
                announced_size: file.size,
                from: file.from.as_bytes(),
                to: file.to.as_bytes(),
                ..FileInfo::default()
            });
        }
    }

    fn malformed(&mut self, sender: Side, why: &'static str) {
        self.events.push(Event::Malformed(sender, why));
    }
}

impl Recorder {
    /// Gives a connection to a new inspector, each part of it in pieces of these lengths (in turn),
    /// and ends both sides.
    pub(super) fn watch(
        mut self,
        application: Application,
        connection: &[(Side, Vec<u8>)],
        pieces: &[usize],
    ) -> Self {
        let mut inspector = Inspector::of(Some(application));
        let mut lengths = pieces.iter().copied().cycle();
        for (sender, part) in connection {
            let mut rest = part.as_slice();
            while !rest.is_empty() {
                let length = lengths.next().unwrap_or(usize::MAX).clamp(1, rest.len());
                let (piece, behind) = rest.split_at(length);
                inspector.feed(*sender, piece, &mut self);
                rest = behind;
            }
        }
        inspector.finish(Side::Client, &mut self);
        inspector.finish(Side::Server, &mut self);
        self
    }

    /// What a connection that comes in whole parts gives.
    pub(super) fn of(application: Application, connection: &[(Side, Vec<u8>)]) -> Self {
        Self::default().watch(application, connection, &[])
    }

    /// All that a side sent, as it went in.
    pub(super) fn sent(connection: &[(Side, Vec<u8>)], side: Side) -> Vec<u8> {
        let parts = connection.iter().filter(|(sender, _)| *sender == side);
        parts.flat_map(|(_, bytes)| bytes.clone()).collect()
    }
}
