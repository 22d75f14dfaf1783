//! Gives arbitrary connections to the inspectors of the gateway: the first byte says which one and
//! how the parts are cut, then come parts, each with a byte that says who sends it and how long it is.
//! However they are cut, the same is found, and every byte is text or a file's at most once.

use linkweir_gateway::inspect::{ChatMessage, FileInfo, Found, Inspector, Invitation, Side};
use linkweir_proto::application::Application;

const APPLICATIONS: [Application; 4] = [
    Application::Msn,
    Application::MsnFtp,
    Application::EDonkey,
    Application::BitTorrent,
];
/// Longest part: the byte in front gives its length in steps.
const STEP: usize = 16;

pub(crate) fn target(input: &[u8]) {
    let Some((&how, parts)) = input.split_first() else {
        return;
    };
    let application = APPLICATIONS[usize::from(how & 3)];
    // Trackers speak HTTP, which has a target of its own.
    let first = parts.iter().skip_while(|head| **head < 2).nth(1);
    if application == Application::BitTorrent && matches!(first, Some(b'G' | b'H' | b'P')) {
        return;
    }
    let whole = watch(application, parts, usize::MAX);
    let cut = watch(application, parts, 1 + usize::from(how >> 2));
    assert_eq!(whole, cut);
    // Text that is decoded, or joined over a cut, comes once more; only MSN has such.
    if application != Application::Msn {
        assert!(whole.bytes.iter().map(Vec::len).sum::<usize>() <= parts.len());
    }
    assert!(whole.malformed <= 1 && whole.begun == whole.ended);
}

/// What was found.
#[derive(Debug, Default, PartialEq, Eq)]
struct Seen {
    /// Text of the client, of the server, bytes of files of either.
    bytes: [Vec<u8>; 4],
    messages: Vec<(Vec<u8>, Vec<u8>, Vec<u8>)>,
    names: Vec<(Vec<u8>, Option<u64>)>,
    cookies: Vec<Vec<u8>>,
    begun: usize,
    ended: usize,
    malformed: usize,
}

impl Found for Seen {
    fn text(&mut self, sender: Side, bytes: &[u8]) {
        self.bytes[usize::from(sender == Side::Server)].extend_from_slice(bytes);
    }

    fn host(&mut self, _host: &[u8]) {}

    fn message(&mut self, _sender: Side, message: &ChatMessage<'_>) {
        let parts = [message.from, message.to, message.text].map(<[u8]>::to_vec);
        self.messages.push(parts.into());
    }

    fn file_named(&mut self, _sender: Side, file: &FileInfo<'_>) {
        assert!(file.name.len() <= 1024);
        self.names.push((file.name.to_vec(), file.announced_size));
    }

    fn file_begin(&mut self, _sender: Side, file: &FileInfo<'_>) {
        self.begun += 1;
        self.names.push((file.name.to_vec(), file.announced_size));
    }

    fn file_data(&mut self, sender: Side, bytes: &[u8]) {
        assert!(self.begun > self.ended, "bytes of no file");
        self.bytes[2 + usize::from(sender == Side::Server)].extend_from_slice(bytes);
    }

    fn file_end(&mut self, _sender: Side, _is_complete: bool) {
        self.ended += 1;
    }

    fn invitation(&mut self, _sender: Side, invitation: &Invitation<'_>) {
        self.cookies.push(invitation.cookie.to_vec());
    }

    fn invited(&mut self, _cookie: &[u8], use_it: &mut dyn FnMut(&FileInfo<'_>)) {
        use_it(&FileInfo {
            name: b"offered",
            ..FileInfo::default()
        });
    }

    fn malformed(&mut self, _sender: Side, _why: &'static str) {
        self.malformed += 1;
    }
}

/// Gives the parts to an inspector, in pieces of at most this length.
fn watch(application: Application, mut parts: &[u8], piece: usize) -> Seen {
    let mut seen = Seen::default();
    let mut inspector = Inspector::of(Some(application));
    while let Some((&head, rest)) = parts.split_first() {
        let sender = if head & 1 == 0 {
            Side::Client
        } else {
            Side::Server
        };
        let length = (usize::from(head >> 1) * STEP).min(rest.len());
        let (part, behind) = rest.split_at(length);
        for bytes in part.chunks(piece.min(part.len()).max(1)) {
            inspector.feed(sender, bytes, &mut seen);
        }
        parts = behind;
    }
    inspector.finish(Side::Client, &mut seen);
    inspector.finish(Side::Server, &mut seen);
    seen
}
