//! Content codings and the inspectors of the gateway on arbitrary streams.

use linkweir_gateway::inspect::{
    ChatMessage, Coding, DecodeError, DecodeLimit, Decoder, FileInfo, Found, Inspector, Invitation,
    Side,
};
use linkweir_proto::application::Application;

const TOTAL: u64 = 300_000;

fn decode(coding: Coding, bytes: &[u8], cut: usize) -> (Vec<u8>, Result<(), DecodeError>, bool) {
    // The ratio counts what was read when a piece came out: it may depend on the cuts.
    let limit = DecodeLimit {
        total: TOTAL,
        ratio: u32::MAX,
    };
    let mut decoder = Decoder::new(coding, limit);
    let mut decoded = Vec::new();
    let mut result = Ok(());
    for piece in bytes.chunks(cut) {
        result = decoder.push(piece, &mut |bytes| decoded.extend_from_slice(bytes));
        if result.is_err() {
            break;
        }
    }
    assert_eq!(decoder.decoded_bytes(), decoded.len() as u64);
    (decoded, result, decoder.is_at_end())
}

/// Takes content codings off arbitrary bytes: within the bound, and the same however they are cut.
///
/// Input: the coding, the size of the pieces, the coded bytes.
pub(crate) fn decoder(input: &[u8]) {
    let Some((&[coding, cut], bytes)) = input.split_first_chunk::<2>() else {
        return;
    };
    let coding = match coding % 3 {
        0 => Coding::Gzip,
        1 => Coding::Deflate,
        _ => Coding::Identity,
    };
    let whole = decode(coding, bytes, usize::MAX);
    assert!(whole.0.len() as u64 <= TOTAL);
    assert_eq!(decode(coding, bytes, usize::from(cut) + 1), whole);
    let bomb = DecodeLimit {
        total: TOTAL,
        ratio: 20,
    };
    let mut decoder = Decoder::new(coding, bomb);
    let _ = decoder.push(bytes, &mut |_| ());
    assert!(decoder.decoded_bytes() <= DecodeLimit::FREE.max(20 * bytes.len() as u64));
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Event {
    Text(Vec<u8>),
    Data(Vec<u8>),
    Other(String),
}

/// Findings by who was feeding, and the faults apart: where in a text one is seen depends on cuts.
#[derive(Debug, Default, PartialEq, Eq)]
struct Findings {
    events: [Vec<Event>; 2],
    faults: Vec<(Side, &'static str)>,
    passed: [usize; 2],
    is_open: [bool; 2],
    feeding: usize,
}

impl Findings {
    fn push(&mut self, event: Event) {
        let events = &mut self.events[self.feeding];
        match (events.last_mut(), event) {
            (Some(Event::Text(before)), Event::Text(more))
            | (Some(Event::Data(before)), Event::Data(more)) => {
                before.extend(more);
            }
            (_, event) => events.push(event),
        }
    }
    fn sent_by(&self, sender: Side) {
        assert_eq!(self.feeding, usize::from(sender == Side::Server));
    }
}

impl Found for Findings {
    fn text(&mut self, sender: Side, bytes: &[u8]) {
        self.sent_by(sender);
        self.passed[self.feeding] += bytes.len();
        self.push(Event::Text(bytes.to_vec()));
    }
    fn host(&mut self, host: &[u8]) {
        self.push(Event::Other(format!("host {}", host.escape_ascii())));
    }
    fn message(&mut self, _: Side, _: &ChatMessage<'_>) {
        panic!("HTTP has no messages");
    }
    fn file_named(&mut self, sender: Side, file: &FileInfo<'_>) {
        self.push(Event::Other(format!("{sender:?} {file:?}")));
    }
    fn file_begin(&mut self, sender: Side, file: &FileInfo<'_>) {
        self.sent_by(sender);
        assert!(!std::mem::replace(&mut self.is_open[self.feeding], true));
        self.push(Event::Other(format!("begin {file:?}")));
    }
    fn file_data(&mut self, sender: Side, bytes: &[u8]) {
        self.sent_by(sender);
        assert!(self.is_open[self.feeding]);
        self.passed[self.feeding] += bytes.len();
        self.push(Event::Data(bytes.to_vec()));
    }
    fn file_end(&mut self, sender: Side, is_complete: bool) {
        self.sent_by(sender);
        assert!(std::mem::replace(&mut self.is_open[self.feeding], false));
        self.push(Event::Other(format!("end {is_complete}")));
    }
    fn invitation(&mut self, _: Side, _: &Invitation<'_>) {
        panic!("HTTP has no invitations");
    }
    fn invited(&mut self, _: &[u8], _: &mut dyn FnMut(&FileInfo<'_>)) {
        panic!("HTTP has no invitations");
    }
    fn malformed(&mut self, sender: Side, why: &'static str) {
        self.faults.push((sender, why));
    }
}

/// Feeds the records, each in pieces of `cut` bytes.
fn run(input: &[u8], cut: usize) -> Findings {
    let mut inspector = Inspector::of(Some(Application::Http));
    let mut findings = Findings::default();
    let mut fed = [0; 2];
    let mut rest = input;
    while let Some((&[side, lo, hi], after)) = rest.split_first_chunk::<3>() {
        let len = usize::from(u16::from_le_bytes([lo, hi])).min(after.len());
        let (bytes, after) = after.split_at(len);
        rest = after;
        findings.feeding = usize::from(side & 1);
        let sender = if side & 1 == 0 {
            Side::Client
        } else {
            Side::Server
        };
        for piece in bytes.chunks(cut) {
            inspector.feed(sender, piece, &mut findings);
        }
        fed[findings.feeding] += len;
    }
    for (feeding, sender) in [Side::Client, Side::Server].into_iter().enumerate() {
        findings.feeding = feeding;
        inspector.finish(sender, &mut findings);
    }
    assert!(findings.faults.len() <= 1);
    assert_eq!(findings.is_open, [false; 2]);
    assert!(
        findings
            .passed
            .iter()
            .zip(fed)
            .all(|(passed, fed)| *passed <= fed)
    );
    findings
}

/// Inspects two arbitrary streams as HTTP: every byte is text, part of a file or framing, files begin
/// and end in turn, and what is found does not depend on how the streams are cut.
///
/// Input: records of the side, two bytes of length, lowest first, and that many bytes.
pub(crate) fn http(input: &[u8]) {
    let whole = run(input, usize::MAX);
    assert_eq!(run(input, 1), whole);
    assert_eq!(run(input, 13), whole);
}

/// Findings of HTTP/2: files by stream, which begin and end in turn.
#[derive(Debug, Default)]
struct Streams {
    current: [u32; 2],
    open: std::collections::BTreeSet<(bool, u32)>,
    passed: usize,
    faults: usize,
}

impl Streams {
    fn file(&self, sender: Side) -> (bool, u32) {
        let is_server = sender == Side::Server;
        (is_server, self.current[usize::from(is_server)])
    }
}

impl Found for Streams {
    fn text(&mut self, _: Side, _: &[u8]) {}
    fn host(&mut self, _: &[u8]) {}
    fn message(&mut self, _: Side, _: &ChatMessage<'_>) {
        panic!("HTTP has no messages");
    }
    fn file_named(&mut self, _: Side, _: &FileInfo<'_>) {}
    fn stream(&mut self, sender: Side, stream: u32) {
        self.current[usize::from(sender == Side::Server)] = stream;
    }
    fn file_begin(&mut self, sender: Side, _: &FileInfo<'_>) {
        let file = self.file(sender);
        assert!(self.open.insert(file));
    }
    fn file_data(&mut self, sender: Side, bytes: &[u8]) {
        self.passed += bytes.len();
        assert!(self.open.contains(&self.file(sender)));
    }
    fn file_end(&mut self, sender: Side, _: bool) {
        let file = self.file(sender);
        assert!(self.open.remove(&file));
    }
    fn invitation(&mut self, _: Side, _: &Invitation<'_>) {
        panic!("HTTP has no invitations");
    }
    fn invited(&mut self, _: &[u8], _: &mut dyn FnMut(&FileInfo<'_>)) {
        panic!("HTTP has no invitations");
    }
    fn malformed(&mut self, _: Side, _: &'static str) {
        self.faults += 1;
    }
}

/// Inspects two arbitrary streams as HTTP/2: files of streams begin and end in turn, and at most one thing is malformed.
///
/// Input: as that of [`http`].
pub(crate) fn http2(input: &[u8]) {
    let mut inspector = Inspector::of(Some(Application::Http2));
    let mut streams = Streams::default();
    let mut rest = input;
    let mut fed = 0;
    while let Some((&[side, lo, hi], after)) = rest.split_first_chunk::<3>() {
        let len = usize::from(u16::from_le_bytes([lo, hi])).min(after.len());
        let (bytes, after) = after.split_at(len);
        rest = after;
        fed += len;
        let sender = if side & 1 == 0 {
            Side::Client
        } else {
            Side::Server
        };
        inspector.feed(sender, bytes, &mut streams);
    }
    for sender in [Side::Client, Side::Server] {
        inspector.finish(sender, &mut streams);
    }
    assert!(streams.faults <= 1);
    assert!(streams.open.is_empty() && streams.passed <= fed);
}

const APPLICATIONS: [Application; 4] = [
    Application::Msn,
    Application::MsnFtp,
    Application::EDonkey,
    Application::BitTorrent,
];
/// Longest part: the byte in front gives its length in steps.
const STEP: usize = 16;

/// Gives arbitrary connections to the inspectors of the gateway: the first byte says which one and
/// how the parts are cut, then come parts, each with a byte that says who sends it and how long it is.
/// However they are cut, the same is found, and every byte is text or a file's at most once.
pub(crate) fn peers(input: &[u8]) {
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
