//! Inspects two arbitrary streams as HTTP: every byte is text, part of a file or framing, files begin
//! and end in turn, and what is found does not depend on how the streams are cut.
//!
//! Input: records of the side, two bytes of length, lowest first, and that many bytes.

use linkweir_gateway::inspect::{ChatMessage, FileInfo, Found, Inspector, Invitation, Side};
use linkweir_proto::application::Application;

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

pub(crate) fn target(input: &[u8]) {
    let whole = run(input, usize::MAX);
    assert_eq!(run(input, 1), whole);
    assert_eq!(run(input, 13), whole);
}
