//! What the policy makes of what an inspector finds in one connection.
//!
//! [`Examination::feed`] gives a packet's new bytes to the inspector and says what follows for the
//! packet: it passes, waits for a scan, or the connection is blocked.

mod desk;
mod found;
mod memory;
mod scanning;
mod transfer;

pub(crate) use desk::{Desk, Ids};

use std::sync::Arc;

use linkweir_engine::effect::{FileEnd, ScanReport, Ticket};
use linkweir_record::gateway::{GatewayEventKind, GatewayRow, GatewayText};

use crate::inspect::{Inspector, Side};
use crate::policy::{Fail, KeywordState, OnMatch, Rule};
use found::Findings;
use scanning::Waiting;
use transfer::Transfer;

/// Events of matches that one connection may cause where it goes on after them.
const MOST_MATCHES: u8 = 16;
/// Scans of one direction that may be awaited at once: on a line with a delay, windows come faster than their
/// scans are done one after the other.
const MOST_SCANS: usize = 4;
/// Why a file is not held until its verdict.
const NO_ROOM: &str = "no room to hold the file until its verdict (held-bytes)";
/// Bytes of a host or server name that are kept.
const MOST_HOST: usize = 255;
/// File names without bytes that are remembered, so that each is told once.
const MOST_NAMED: usize = 64;

/// What follows for a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// It passes.
    Pass,
    /// It passes when the next one comes: only the end of the connection ends the file, and the last
    /// packet must not go before the verdict.
    Lag,
    /// It is not looked at before a scan is done: enough of them are asked for.
    Wait,
    /// Nothing passes any more.
    Block(OnMatch),
}

/// A connection under inspection.
#[derive(Debug)]
pub(crate) struct Examination {
    pub(crate) rule: Arc<Rule>,
    pub(crate) application: Arc<str>,
    inspector: Inspector,
    /// Bytes of memory that it was given for what it gathers.
    gathered: usize,
    state: State,
}

/// What is found so far.
#[derive(Debug, Default)]
struct State {
    /// Of client and server.
    words: [Option<KeywordState>; 2],
    transfers: [Option<Box<Transfer>>; 2],
    waiting: [Vec<Waiting>; 2],
    /// The last scans that were asked for.
    last_scans: [Option<Ticket>; 2],
    /// Files that have ended and of which scans are outstanding.
    #[expect(clippy::vec_box, reason = "they move here as they are, and are large")]
    ended: [Vec<Box<Transfer>>; 2],
    /// Files so far.
    files: u32,
    host: Vec<u8>,
    matches: u8,
    /// Hashes of names that were told.
    named: Vec<u64>,
    /// Hash of the last name that matched before its file began: the same file is not told twice.
    matched: Option<u64>,
    blocked: Option<OnMatch>,
    /// Whether it was told that something passes unseen.
    limit_told: bool,
}

/// The element of a side.
const fn of<T>(pair: &mut [T; 2], side: Side) -> &mut T {
    let [client, server] = pair;
    match side {
        Side::Client => client,
        Side::Server => server,
    }
}

impl Examination {
    pub(crate) fn new(
        rule: Arc<Rule>,
        application: Arc<str>,
        inspector: Inspector,
        host: &[u8],
    ) -> Self {
        let mut state = State::default();
        state.set_host(host);
        Self {
            rule,
            application,
            inspector,
            gathered: 0,
            state,
        }
    }

    /// Bytes of the stream are missing: what follows cannot be parsed. Files in transfer are cut.
    pub(crate) fn on_gap(&mut self, desk: &mut Desk<'_>) {
        self.inspector = Inspector::opaque();
        for side in [Side::Client, Side::Server] {
            self.findings(desk).cut_file(side);
            *of(&mut self.state.words, side) = None;
        }
        self.count_gathered(desk);
    }

    /// Counts what the inspector gathers. Where there is no memory for it, nothing is parsed any more.
    fn count_gathered(&mut self, desk: &mut Desk<'_>) {
        let now = self.inspector.gathered();
        if now == self.gathered {
            return;
        }
        *desk.memory = desk.memory.saturating_sub(self.gathered) + now;
        self.gathered = now;
        if *desk.memory <= desk.policy.limits.inspect_bytes {
            return;
        }
        self.tell_limit(memory::NO_MEMORY, self.fails_closed(), desk);
        self.on_gap(desk);
        if self.fails_closed() {
            self.block(memory::NO_MEMORY, desk);
        }
    }

    fn findings<'a, 'd>(&'a mut self, desk: &'a mut Desk<'d>) -> Findings<'a, 'd> {
        Findings {
            rule: &self.rule,
            application: &self.application,
            state: &mut self.state,
            desk,
        }
    }

    /// The next bytes of a side.
    pub(crate) fn feed(&mut self, sender: Side, bytes: &[u8], desk: &mut Desk<'_>) -> Outcome {
        let mut findings = Findings {
            rule: &self.rule,
            application: &self.application,
            state: &mut self.state,
            desk,
        };
        self.inspector.feed(sender, bytes, &mut findings);
        self.count_gathered(desk);
        self.outcome(sender)
    }

    /// How many of the next bytes of a side are counted and not read: of a body of which the rule wants to know nothing.
    pub(crate) fn unread(&self, sender: Side) -> u64 {
        let [client, server] = &self.state.transfers;
        let transfer = match sender {
            Side::Client => client,
            Side::Server => server,
        };
        if transfer.as_ref().is_some_and(|transfer| transfer.is_read()) {
            return 0;
        }
        self.inspector.body_left(sender)
    }

    /// The first file of a side that is held until its verdict, by its number.
    pub(crate) fn oldest_held(&mut self, sender: Side) -> Option<u32> {
        let current = of(&mut self.state.transfers, sender).iter();
        let current = current.filter(|file| file.scanning.is_some());
        let ended = of(&mut self.state.ended, sender).iter();
        let held = current.chain(ended).filter(|file| file.is_held);
        held.map(|file| file.number).min()
    }

    /// Whether a file of a side that is held has come to its end.
    pub(crate) fn awaits_verdict(&mut self, sender: Side) -> bool {
        let mut ended = of(&mut self.state.ended, sender).iter();
        ended.any(|file| file.is_held)
    }

    /// The last file of a side, as far as something of it is awaited, by its number.
    pub(crate) fn newest_file(&mut self, sender: Side) -> Option<u32> {
        let current = of(&mut self.state.transfers, sender).iter();
        let ended = of(&mut self.state.ended, sender).iter();
        current.chain(ended).map(|file| file.number).max()
    }

    /// There is no room for the files of a side that are held: they go as they come, or not at all.
    pub(crate) fn hold_no_longer(&mut self, sender: Side, desk: &mut Desk<'_>) -> Outcome {
        let current = of(&mut self.state.transfers, sender).iter_mut();
        let ended = of(&mut self.state.ended, sender).iter_mut();
        for file in current.chain(ended) {
            file.is_held = false;
        }
        self.tell_limit(NO_ROOM, self.fails_closed(), desk);
        if self.fails_closed() {
            self.block(NO_ROOM, desk);
        }
        self.outcome(sender)
    }

    /// A side has sent all it will.
    pub(crate) fn finish(&mut self, sender: Side, desk: &mut Desk<'_>) -> Outcome {
        let mut findings = Findings {
            rule: &self.rule,
            application: &self.application,
            state: &mut self.state,
            desk,
        };
        self.inspector.finish(sender, &mut findings);
        findings.cut_file(sender);
        self.outcome(sender)
    }

    /// What follows for packets of a side.
    pub(crate) fn outcome(&mut self, sender: Side) -> Outcome {
        if let Some(action) = self.state.blocked {
            return Outcome::Block(action);
        }
        if of(&mut self.state.waiting, sender).len() >= MOST_SCANS {
            return Outcome::Wait;
        }
        let is_lagging = of(&mut self.state.transfers, sender)
            .as_ref()
            .is_some_and(|transfer| transfer.must_lag());
        if is_lagging {
            Outcome::Lag
        } else {
            Outcome::Pass
        }
    }

    /// The last scan that was asked for of what a side sends: a packet that was fed goes when it is done, and those
    /// before it.
    pub(crate) fn last_scan(&mut self, sender: Side) -> Option<Ticket> {
        *of(&mut self.state.last_scans, sender)
    }

    /// The first scan that is awaited of what a side sends.
    pub(crate) fn oldest_scan(&mut self, sender: Side) -> Option<Ticket> {
        let waiting = of(&mut self.state.waiting, sender).iter();
        waiting.map(|wait| wait.ticket).min()
    }

    /// Scans what came of a side's file so far. Whether there is anything to wait for.
    pub(crate) fn scan_now(&mut self, sender: Side, desk: &mut Desk<'_>) -> bool {
        self.findings(desk).scan_now(sender)
    }

    /// A scanner has said what it found. `None` where nobody waits for it.
    pub(crate) fn on_report(&mut self, report: &ScanReport, desk: &mut Desk<'_>) -> Option<Side> {
        self.findings(desk).on_report(report)
    }

    /// The connection is over or blocked: files that have not ended are cut, and kept or not as the rule says.
    pub(crate) fn close(&mut self, desk: &mut Desk<'_>) {
        let blocked = self.state.blocked.is_some();
        let mut findings = self.findings(desk);
        for side in [Side::Client, Side::Server] {
            findings.abandon(side, blocked);
        }
        self.inspector = Inspector::opaque();
        self.count_gathered(desk);
    }

    /// Whether something could not be looked at and the rule lets nothing pass then.
    pub(crate) fn fails_closed(&self) -> bool {
        self.rule.fail == Fail::Closed
    }

    /// Blocks the connection for a reason of the stage's.
    pub(crate) fn block(&mut self, why: &str, desk: &mut Desk<'_>) {
        let mut findings = self.findings(desk);
        findings.block(OnMatch::Reject, why.as_bytes());
    }

    /// Tells that a bound was reached, and whether the connection ends with it.
    ///
    /// Once: what follows is passed unseen as well.
    pub(crate) fn tell_limit(&mut self, which: &str, is_blocked: bool, desk: &mut Desk<'_>) {
        if std::mem::replace(&mut self.state.limit_told, true) {
            return;
        }
        let row = GatewayRow {
            event: GatewayEventKind::Limit,
            action: if is_blocked { "reject" } else { "allow" },
            ..GatewayRow::default()
        };
        let text = GatewayText {
            detail: which.as_bytes(),
            ..GatewayText::default()
        };
        self.findings(desk).tell(row, &text);
    }
}

impl State {
    fn set_host(&mut self, host: &[u8]) {
        self.host.clear();
        self.host
            .extend_from_slice(host.get(..MOST_HOST).unwrap_or(host));
    }
}

/// What becomes of a file that is not kept for its own sake.
const fn end_of(rule: &Rule, is_complete: bool) -> FileEnd {
    match (rule.inspect.record, is_complete) {
        (true, true) => FileEnd::Keep,
        (true, false) => FileEnd::KeepPart,
        (false, _) => FileEnd::Discard,
    }
}
