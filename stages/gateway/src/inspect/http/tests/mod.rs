mod conversations;
mod framing;
mod heads;
mod peers;

use super::HttpInspector;
use crate::inspect::{ChatMessage, Coding, FileInfo, Found, Invitation, Side};

/// [`FileInfo`] that owns its texts.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct File {
    name: String,
    announced_size: Option<u64>,
    host: String,
    identifier: String,
    from: String,
    to: String,
    coding: Coding,
    is_until_close: bool,
}

impl File {
    fn new(name: &str, host: &str) -> Self {
        Self {
            name: name.to_owned(),
            host: host.to_owned(),
            ..Self::default()
        }
    }

    fn of(file: &FileInfo<'_>) -> Self {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        Self {
            name: text(file.name),
            announced_size: file.announced_size,
            host: text(file.host),
            identifier: text(file.identifier),
            from: text(file.from),
            to: text(file.to),
            coding: file.coding,
            is_until_close: file.is_until_close,
        }
    }
}

/// What was found, with neighbouring bytes joined.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Event {
    Text(Vec<u8>),
    Host(String),
    Named(Side, File),
    Begin(File),
    Data(Vec<u8>),
    End(bool),
    Malformed(&'static str),
}

/// Findings by the side whose bytes they are of.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Findings {
    client: Vec<Event>,
    server: Vec<Event>,
}

impl Findings {
    fn of(&mut self, side: Side) -> &mut Vec<Event> {
        match side {
            Side::Client => &mut self.client,
            Side::Server => &mut self.server,
        }
    }

    fn push(&mut self, side: Side, event: Event) {
        let events = self.of(side);
        // Where in a text it is seen to be malformed depends on the cuts: it is noted last.
        if matches!(events.last(), Some(Event::Malformed(_))) {
            assert!(matches!(event, Event::Text(_)), "after its end: {event:?}");
            let malformed = events.pop();
            self.push(side, event);
            self.of(side).extend(malformed);
            return;
        }
        match (events.last_mut(), event) {
            (Some(Event::Text(before)), Event::Text(more))
            | (Some(Event::Data(before)), Event::Data(more)) => before.extend(more),
            (_, Event::Text(bytes) | Event::Data(bytes)) if bytes.is_empty() => {}
            (_, event) => events.push(event),
        }
    }
}

/// An inspector and what it has found.
#[derive(Debug)]
pub(super) struct Bench {
    inspector: HttpInspector,
    findings: Findings,
    /// Who is being fed.
    feeding: Side,
    /// Most bytes that were on the heap after a feed.
    peak: usize,
}

impl Default for Bench {
    fn default() -> Self {
        Self {
            inspector: HttpInspector::default(),
            findings: Findings::default(),
            feeding: Side::Client,
            peak: 0,
        }
    }
}

impl Bench {
    fn feed(&mut self, side: Side, bytes: &[u8]) {
        self.feeding = side;
        let mut inspector = std::mem::take(&mut self.inspector);
        inspector.feed(side, bytes, self);
        self.peak = self.peak.max(inspector.held_bytes());
        self.inspector = inspector;
    }

    fn finish(&mut self) {
        for side in [Side::Client, Side::Server] {
            self.feeding = side;
            let mut inspector = std::mem::take(&mut self.inspector);
            inspector.finish(side, self);
            self.inspector = inspector;
        }
    }

    fn push(&mut self, sender: Side, event: Event) {
        assert_eq!(sender, self.feeding, "{event:?}");
        self.findings.push(sender, event);
    }
}

impl Found for Bench {
    fn text(&mut self, sender: Side, bytes: &[u8]) {
        self.push(sender, Event::Text(bytes.to_vec()));
    }
    fn host(&mut self, host: &[u8]) {
        let host = String::from_utf8_lossy(host).into_owned();
        self.push(self.feeding, Event::Host(host));
    }
    fn message(&mut self, _: Side, _: &ChatMessage<'_>) {
        panic!("HTTP has no messages");
    }
    fn file_named(&mut self, sender: Side, file: &FileInfo<'_>) {
        self.push(self.feeding, Event::Named(sender, File::of(file)));
    }
    fn file_begin(&mut self, sender: Side, file: &FileInfo<'_>) {
        self.push(sender, Event::Begin(File::of(file)));
    }
    fn file_data(&mut self, sender: Side, bytes: &[u8]) {
        self.push(sender, Event::Data(bytes.to_vec()));
    }
    fn file_end(&mut self, sender: Side, is_complete: bool) {
        self.push(sender, Event::End(is_complete));
    }
    fn invitation(&mut self, _: Side, _: &Invitation<'_>) {
        panic!("HTTP has no invitations");
    }
    fn invited(&mut self, _: &[u8], _: &mut dyn FnMut(&FileInfo<'_>)) {
        panic!("HTTP has no invitations");
    }
    fn malformed(&mut self, sender: Side, why: &'static str) {
        self.push(sender, Event::Malformed(why));
    }
}

/// What is found in a conversation: all of each entry at once, and then byte by byte, which must be
/// the same. The connection ends afterwards.
pub(super) fn inspect(conversation: &[(Side, &[u8])]) -> Findings {
    let run = |cut: usize| {
        let mut bench = Bench::default();
        for (side, bytes) in conversation {
            for piece in bytes.chunks(cut) {
                bench.feed(*side, piece);
            }
        }
        bench.finish();
        bench.findings
    };
    let whole = run(usize::MAX);
    assert_eq!(run(1), whole);
    assert_eq!(run(7), whole);
    whole
}

/// The files that a side sends, each with its bytes and whether it was complete.
pub(super) fn files(events: &[Event]) -> Vec<(File, Vec<u8>, bool)> {
    let mut files = Vec::new();
    for event in events {
        match event {
            Event::Begin(file) => files.push((file.clone(), Vec::new(), false)),
            Event::Data(bytes) => files.last_mut().expect("a file").1.extend(bytes),
            Event::End(is_complete) => files.last_mut().expect("a file").2 = *is_complete,
            _ => {}
        }
    }
    files
}

/// All text, joined.
pub(super) fn text(events: &[Event]) -> Vec<u8> {
    let texts = events.iter().filter_map(|event| match event {
        Event::Text(bytes) => Some(&bytes[..]),
        _ => None,
    });
    texts.collect::<Vec<_>>().concat()
}

/// Why the inspection ended, where it did.
pub(super) fn faults(findings: &Findings) -> Vec<(Side, &'static str)> {
    let of = |side, events: &[Event]| -> Vec<_> {
        let faults = events.iter().filter_map(|event| match event {
            Event::Malformed(why) => Some((side, *why)),
            _ => None,
        });
        faults.collect()
    };
    [
        of(Side::Client, &findings.client),
        of(Side::Server, &findings.server),
    ]
    .concat()
}
