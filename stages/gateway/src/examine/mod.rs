//! What the policy makes of what an inspector finds in one connection.
//!
//! [`Examination::feed`] gives a packet's new bytes to the inspector and says what follows for the
//! packet: it passes, waits for a scan, or the connection is blocked.

mod choice;
mod found;
mod memory;
mod names;
mod transfer;

use std::sync::Arc;

use linkweir_engine::effect::{FileEnd, ScanReport, Ticket};
use linkweir_record::gateway::{GatewayEventKind, GatewayRow, GatewayText};

use crate::connection::key::Ends;
use crate::context::Context;
use crate::inspect::{Inspector, Side};
use crate::policy::{Fail, Hold, KeywordState, Label, OnMatch, Rule};
use choice::Choice;
use found::Findings;
use transfer::Transfer;
use transfer::Waiting;

/// Events of matches that one connection may cause where it goes on after them.
const MAX_MATCHES: u8 = 16;
/// Scans of one direction that may be awaited at once: on a line with a delay, windows come faster than their
/// scans are done one after the other.
const MAX_SCANS: usize = 4;
/// Why a file is not held until its verdict.
const NO_ROOM: &str = "no room to hold the file until its verdict (held-bytes)";
/// Bytes of a host or server name that are kept.
const MAX_HOST: usize = 255;
/// File names without bytes that are remembered, so that each is recorded once.
const MAX_NAMED: usize = 64;

/// What follows for a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// It passes.
    Pass,
    /// It passes when the next one comes: only the end of the connection ends the file, and the last
    /// packet must not go before the verdict.
    HoldLast,
    /// It is not looked at before a scan is done: enough of them are asked for.
    Wait,
    /// Nothing passes any more.
    Block(OnMatch),
}

/// A connection under inspection.
#[derive(Debug)]
pub(crate) struct Examination {
    /// The rule that holds for what no other one is for.
    pub(crate) rule: Arc<Rule>,
    /// Rules among which single requests choose, in their order, and that one behind them; empty where none do.
    rules: Vec<Arc<Rule>>,
    application: Arc<str>,
    ends: Ends,
    is_tcp: bool,
    inspector: Inspector,
    /// Bytes of memory that it was given for what it gathers.
    gathered: usize,
    /// Bytes that are not counted for the quota of the client yet.
    owed: u64,
    state: State,
}

/// What is found so far.
#[derive(Debug, Default)]
struct State {
    /// Of client and server.
    keywords: [Option<KeywordState>; 2],
    transfers: [Option<Box<Transfer>>; 2],
    /// Files that come beside those, by their streams; and the streams of those.
    beside: [Vec<(u32, Box<Transfer>)>; 2],
    streams: [u32; 2],
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
    /// Hashes of names that were recorded.
    named: Vec<u64>,
    /// Hash of the last name that matched before its file began: the same file is not recorded twice.
    matched: Option<u64>,
    blocked: Option<OnMatch>,
    /// Where rules ask for what requests say.
    choice: Option<Box<Choice>>,
    /// Whether an event said that something passes unseen.
    has_recorded_limit: bool,
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
        (ends, is_tcp): (Ends, bool),
        inspector: Inspector,
        host: &[u8],
    ) -> Self {
        let mut state = State::default();
        state.set_host(host);
        Self {
            rule,
            rules: Vec::new(),
            application,
            ends,
            is_tcp,
            inspector,
            gathered: 0,
            owed: 0,
            state,
        }
    }

    /// Lets each request choose among these rules; where none matches, its own rule holds.
    pub(crate) fn choose_by_request(&mut self, label: Label, mut rules: Vec<Arc<Rule>>) {
        rules.push(Arc::clone(&self.rule));
        self.state.choice = Some(Box::new(Choice::new(label, rules.len())));
        self.rules = rules;
    }

    /// The rule of what the client asked for last.
    pub(crate) fn present_rule(&self) -> &Rule {
        let choice = self.state.choice.as_ref();
        let chosen = choice.and_then(|choice| self.rules.get(choice.present()));
        chosen.unwrap_or(&self.rule)
    }

    /// What it is, the rule that holds unless a request or its response says otherwise, and the first that they may choose,
    /// where none has chosen.
    pub(crate) fn undecided(&self) -> Option<(Label, &Rule, Option<&Rule>)> {
        let choice = self.state.choice.as_ref()?;
        let may = choice.undecided()?;
        let (last, others) = self.rules.split_last()?;
        let possible = others.get(may).map(AsRef::as_ref);
        Some((choice.label(), last.as_ref(), possible))
    }

    /// Counts bytes for the quota of the client, at the latest when the connection ends. Whoever has none left goes no further.
    pub(crate) fn count_bytes(&mut self, bytes: u64, is_end: bool, ctx: &mut Context<'_>) {
        const USED_UP: &str = "the client has used up its quota";
        let rule = self.present_rule();
        let Some(quota) = rule.quota.filter(|quota| quota.bytes.is_some()) else {
            return;
        };
        let (number, policy) = (rule.number, Arc::clone(ctx.policy));
        self.owed += bytes;
        if self.owed < quota.step() && !is_end {
            return;
        }
        let owed = std::mem::take(&mut self.owed);
        let Some(table) = policy.quotas.as_ref().filter(|_| owed > 0) else {
            return;
        };
        if table.add(number, self.ends.client.0, (&quota, ctx.now), owed) && !is_end {
            self.block(USED_UP, ctx);
        }
    }

    /// All rules that may come to hold.
    fn all_rules(&self) -> impl Iterator<Item = &Arc<Rule>> {
        std::iter::once(&self.rule).chain(&self.rules)
    }

    /// How long scans may take, nanoseconds; 0 where nothing is scanned.
    pub(crate) fn scan_timeout_ns(&self) -> u64 {
        let scans = self.all_rules().filter_map(|rule| rule.inspect.scan);
        scans.map(|scan| scan.timeout_ns).max().unwrap_or(0)
    }

    /// Whether files may be held until their verdict.
    pub(crate) fn may_hold_files(&self) -> bool {
        let mut scans = self.all_rules().filter_map(|rule| rule.inspect.scan);
        scans.any(|scan| scan.hold == Hold::File)
    }

    /// Bytes of the stream are missing: what follows cannot be parsed. Files in transfer are cut.
    pub(crate) fn on_gap(&mut self, ctx: &mut Context<'_>) {
        self.inspector = Inspector::opaque();
        for side in [Side::Client, Side::Server] {
            self.findings(ctx).cut_files(side);
            *of(&mut self.state.keywords, side) = None;
        }
        self.count_gathered(ctx);
    }

    /// Counts what the inspector gathers. Where there is no memory for it, nothing is parsed any more.
    fn count_gathered(&mut self, ctx: &mut Context<'_>) {
        let now = self.inspector.gathered();
        if now == self.gathered {
            return;
        }
        *ctx.memory = ctx.memory.saturating_sub(self.gathered) + now;
        self.gathered = now;
        if *ctx.memory <= ctx.policy.limits.inspect_bytes {
            return;
        }
        self.record_limit(memory::NO_MEMORY, self.fails_closed(), ctx);
        self.on_gap(ctx);
        if self.fails_closed() {
            self.block(memory::NO_MEMORY, ctx);
        }
    }

    fn findings<'a, 'c>(&'a mut self, ctx: &'a mut Context<'c>) -> Findings<'a, 'c> {
        self.parts(ctx).1
    }

    fn parts<'a, 'c>(
        &'a mut self,
        ctx: &'a mut Context<'c>,
    ) -> (&'a mut Inspector, Findings<'a, 'c>) {
        let choice = self.state.choice.as_ref();
        let chosen = choice.and_then(|choice| self.rules.get(choice.present()));
        let findings = Findings {
            rule: chosen.unwrap_or(&self.rule),
            rules: &self.rules,
            application: &self.application,
            ends: self.ends,
            is_tcp: self.is_tcp,
            state: &mut self.state,
            ctx,
        };
        (&mut self.inspector, findings)
    }

    /// The next bytes of a side.
    pub(crate) fn feed(&mut self, sender: Side, bytes: &[u8], ctx: &mut Context<'_>) -> Outcome {
        let begin = ctx.watch.begin();
        if let Some(choice) = &mut self.state.choice {
            choice.begin(sender);
        }
        let (inspector, mut findings) = self.parts(ctx);
        inspector.feed(sender, bytes, &mut findings);
        self.count_gathered(ctx);
        ctx.watch.inspected(begin);
        self.outcome(sender)
    }

    /// How many of the next bytes of a side are counted and not read: of a body of which the rule wants to know nothing.
    pub(crate) fn unread(&self, sender: Side) -> u64 {
        let [client, server] = &self.state.transfers;
        let transfer = match sender {
            Side::Client => client,
            Side::Server => server,
        };
        let is_read = transfer.as_ref().is_some_and(|transfer| transfer.is_read());
        let choice = self.state.choice.as_ref();
        if is_read || choice.is_some_and(|choice| choice.counts_body()) {
            return 0;
        }
        // A rule that only counts.
        let looks = self.rule.inspect.keywords.is_some();
        if matches!(self.inspector, Inspector::Opaque) && !looks && self.rule.counts_bytes() {
            return u64::MAX;
        }
        self.inspector.body_left(sender)
    }

    /// The first file of a side that is held until its verdict, by its number.
    pub(crate) fn oldest_held(&mut self, sender: Side) -> Option<u32> {
        let open = self.state.open(sender);
        let open = open.filter(|file| file.is_held && file.scanning.is_some());
        let open = open.map(|file| file.number).min();
        let ended = of(&mut self.state.ended, sender).iter();
        let ended = ended.filter(|file| file.is_held).map(|file| file.number);
        ended.chain(open).min()
    }

    /// Whether a file of a side that is held has come to its end.
    pub(crate) fn awaits_verdict(&mut self, sender: Side) -> bool {
        let mut ended = of(&mut self.state.ended, sender).iter();
        ended.any(|file| file.is_held)
    }

    /// The last file of a side, as far as something of it is awaited, by its number.
    pub(crate) fn newest_file(&mut self, sender: Side) -> Option<u32> {
        self.state.files_of(sender).map(|file| file.number).max()
    }

    /// There is no room for the files of a side that are held: they go as they come, or not at all.
    pub(crate) fn hold_no_longer(&mut self, sender: Side, ctx: &mut Context<'_>) -> Outcome {
        for file in self.state.files_of(sender) {
            file.is_held = false;
        }
        self.record_limit(NO_ROOM, self.fails_closed(), ctx);
        if self.fails_closed() {
            self.block(NO_ROOM, ctx);
        }
        self.outcome(sender)
    }

    /// A side has sent all it will.
    pub(crate) fn finish(&mut self, sender: Side, ctx: &mut Context<'_>) -> Outcome {
        let begin = ctx.watch.begin();
        let (inspector, mut findings) = self.parts(ctx);
        inspector.finish(sender, &mut findings);
        findings.cut_files(sender);
        ctx.watch.inspected(begin);
        self.outcome(sender)
    }

    /// What follows for packets of a side.
    pub(crate) fn outcome(&mut self, sender: Side) -> Outcome {
        if let Some(action) = self.state.blocked {
            return Outcome::Block(action);
        }
        if of(&mut self.state.waiting, sender).len() >= MAX_SCANS {
            return Outcome::Wait;
        }
        let holds_last = of(&mut self.state.transfers, sender)
            .as_ref()
            .is_some_and(|transfer| transfer.must_hold_last());
        if holds_last {
            Outcome::HoldLast
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
    pub(crate) fn scan_now(&mut self, sender: Side, ctx: &mut Context<'_>) -> bool {
        self.findings(ctx).scan_now(sender)
    }

    /// The report of a scanner. `None` where it is not awaited.
    pub(crate) fn on_report(&mut self, report: &ScanReport, ctx: &mut Context<'_>) -> Option<Side> {
        self.findings(ctx).on_report(report)
    }

    /// The connection is over or blocked: files that have not ended are cut, and kept or not as the rule says.
    pub(crate) fn close(&mut self, ctx: &mut Context<'_>) {
        let blocked = self.state.blocked.is_some();
        let mut findings = self.findings(ctx);
        for side in [Side::Client, Side::Server] {
            findings.abandon(side, blocked);
        }
        self.inspector = Inspector::opaque();
        self.count_gathered(ctx);
    }

    /// Whether something could not be inspected and the rule lets nothing pass then.
    pub(crate) fn fails_closed(&self) -> bool {
        let mut rules = self.all_rules();
        rules.any(|rule| rule.fail == Fail::Closed)
    }

    /// Blocks the connection for a reason of the stage's.
    pub(crate) fn block(&mut self, why: &str, ctx: &mut Context<'_>) {
        let mut findings = self.findings(ctx);
        findings.block(OnMatch::Reject, why.as_bytes());
    }

    /// Records that a bound was reached, and whether the connection ends with it.
    ///
    /// Once: what follows is passed unseen as well.
    pub(crate) fn record_limit(&mut self, which: &str, is_blocked: bool, ctx: &mut Context<'_>) {
        if std::mem::replace(&mut self.state.has_recorded_limit, true) {
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
        self.findings(ctx).record(row, &text);
    }
}

impl State {
    /// The files of a side that have not ended.
    fn open(&mut self, side: Side) -> impl Iterator<Item = &mut Box<Transfer>> {
        let beside = of(&mut self.beside, side).iter_mut();
        let current = of(&mut self.transfers, side).iter_mut();
        current.chain(beside.map(|(_, file)| file))
    }

    /// All of its files that are not recorded yet.
    fn files_of(&mut self, side: Side) -> impl Iterator<Item = &mut Box<Transfer>> {
        let beside = of(&mut self.beside, side).iter_mut();
        let current = of(&mut self.transfers, side).iter_mut();
        let ended = of(&mut self.ended, side).iter_mut();
        current.chain(beside.map(|(_, file)| file)).chain(ended)
    }

    fn set_host(&mut self, host: &[u8]) {
        self.host.clear();
        self.host
            .extend_from_slice(host.get(..MAX_HOST).unwrap_or(host));
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
