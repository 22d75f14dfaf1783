//! One packet, one report or one timeout of one connection.

mod relay;
mod reply;
mod segments;

pub(crate) use reply::Answered;

use std::sync::Arc;

use linkweir_engine::effect::{
    Answer, Decision, Mark, QueuedPacket, Reset, ScanReport, Ticket, Verdict,
};

use linkweir_wire::{SeqNumber, Tcp};

use crate::connection::{Classified, Connection, Opening, Phase, Receiver, decision_of};
use crate::context::Context;
use crate::examine::{Examination, Outcome};
use crate::hold::{Segment, Stream};
use crate::inspect::{Inspector, Side};
use crate::policy::{Action, Label, OnMatch, Rule, Shown};

/// Whether the stage keeps a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Disposition {
    /// It goes on.
    Kept,
    /// It is the kernel's alone, or over; packets that still come get this mark.
    Over(Mark),
}

/// One connection and what the stage lends to it.
pub(crate) struct Work<'a> {
    pub(crate) conn: &'a mut Connection,
    pub(crate) ctx: Context<'a>,
    /// Set where a packet began to wait.
    pub(crate) begins_to_wait: bool,
}

impl Work<'_> {
    /// The mark of a connection that is not decided for good.
    fn mark(&self) -> Option<Mark> {
        match &self.conn.phase {
            Phase::Opening(_) | Phase::Allowed(_) => None,
            Phase::Inspected(exam) => Some(inspected(exam.present_rule())),
            Phase::Answered(answered) => Some(answered.mark),
        }
    }

    /// A SYN or RST of a connection that is followed, or a segment of which the kernel copied only a part.
    pub(crate) fn on_control(
        &mut self,
        side: Side,
        segment: &Segment<'_>,
        is_reset: bool,
        is_whole: bool,
    ) -> Disposition {
        let mark = self.mark();
        if !is_whole {
            return self.give_up_with(
                segment,
                "a packet is longer than what the kernel hands over",
            );
        }
        if is_reset && self.resets_relayed(side, segment) {
            return self.end_relayed(segment);
        }
        let stream = self.conn.stream(side);
        // One that its receiver ignores (RFC 5961 sec. 3.2) must not end the inspection.
        let is_accepted = is_reset && stream.is_known() && segment.seq == stream.released();
        self.ctx.accept(segment.id, segment.mark, mark);
        if !is_accepted {
            return Disposition::Kept;
        }
        self.close();
        // Nothing may follow: an end that did not take the reset would go on unseen.
        let mark = mark.map_or(
            Mark {
                decision: Decision::Undecided,
                rule: 0,
            },
            |mark| Mark {
                decision: Decision::Reject,
                ..mark
            },
        );
        // What is held has no receiver any more.
        for stream in &mut self.conn.streams {
            let answers = &mut self.ctx.effects.answers;
            stream.answer_all(Verdict::Drop, self.ctx.budget, answers, |_| None);
        }
        Disposition::Over(mark)
    }

    /// A packet that cannot be inspected, and with it its connection.
    pub(crate) fn give_up_with(&mut self, segment: &Segment<'_>, why: &str) -> Disposition {
        let disposition = self.give_up(why);
        self.answer(segment, disposition);
        disposition
    }

    /// Answers a packet as what has become of its connection says.
    pub(crate) fn answer(&mut self, segment: &Segment<'_>, disposition: Disposition) {
        let (verdict, mark) = match disposition {
            Disposition::Kept => (Verdict::Accept, self.mark()),
            Disposition::Over(mark) => match mark.decision {
                Decision::Drop | Decision::Reject => (Verdict::Repeat, Some(mark)),
                Decision::Undecided | Decision::Pass | Decision::Inspect => {
                    (Verdict::Accept, Some(mark))
                }
            },
        };
        let marks = self.ctx.policy.marks;
        self.ctx.effects.answers.push(Answer {
            id: segment.id,
            verdict,
            mark: mark.map(|mark| marks.replace(segment.mark, mark)),
        });
    }

    pub(crate) const fn is_inspected(&self) -> bool {
        matches!(self.conn.phase, Phase::Inspected(_))
    }

    /// Whether the receiver takes a segment. One that it ignores is dropped where it carries anything.
    pub(crate) fn takes(&mut self, side: Side, tcp: &Tcp<'_>) -> bool {
        let sent = self.conn.stream(side.other()).next();
        let next = self.conn.stream(side).next();
        let [client, server] = &mut self.conn.plausible;
        let (own, other) = match side {
            Side::Client => (client, server),
            Side::Server => (server, client),
        };
        let edge = other.edge();
        own.takes(tcp, Receiver { sent, next, edge })
    }

    /// Drops a segment that its receiver ignores, or that must not come.
    pub(crate) fn drop_implausible(&mut self, segment: &Segment<'_>) {
        self.ctx.stats.implausible += 1;
        self.ctx.drop(segment.id);
    }

    /// Counts a packet: to its application, or to the connection while that is not known.
    pub(crate) fn count(&mut self, bytes: u64) {
        let (packets, sum) = match self.conn.phase {
            Phase::Opening(_) => (&mut self.conn.early_packets, &mut self.conn.early_bytes),
            Phase::Inspected(_) | Phase::Allowed(_) | Phase::Answered(_) => {
                let counts = self.ctx.labels.of(self.conn.label);
                (&mut counts.packets, &mut counts.bytes)
            }
        };
        *packets += 1;
        *sum += bytes;
        if let Phase::Inspected(exam) = &mut self.conn.phase {
            exam.count_bytes(bytes, false, &mut self.ctx);
        }
    }

    /// The first scan that packets of a side wait for.
    fn awaited(&mut self, side: Side) -> Option<Ticket> {
        match &mut self.conn.phase {
            Phase::Opening(_) | Phase::Allowed(_) | Phase::Answered(_) => None,
            Phase::Inspected(exam) => exam.oldest_scan(side),
        }
    }

    fn outcome(&mut self, side: Side) -> Outcome {
        match &mut self.conn.phase {
            Phase::Opening(_) | Phase::Allowed(_) | Phase::Answered(_) => Outcome::Pass,
            Phase::Inspected(exam) => exam.outcome(side),
        }
    }

    /// What follows for the packets of a side that were delivered.
    fn apply(&mut self, side: Side, outcome: Outcome) -> Disposition {
        match outcome {
            Outcome::Block(action) => return self.block(action),
            _ if self.must_relay(side) => self.relay(side),
            Outcome::Pass => self.release(side, 0),
            Outcome::HoldLast => self.release(side, 1),
            // What waits for none of the scans that are awaited goes.
            Outcome::Wait => self.release(side, 0),
        }
        self.disposition()
    }

    /// Over, where both ends have sent all and nothing waits.
    fn disposition(&mut self) -> Disposition {
        if !self.conn.is_finished() || self.conn.holds_any() {
            return Disposition::Kept;
        }
        let mark = self.mark().unwrap_or(Mark {
            decision: Decision::Undecided,
            rule: 0,
        });
        self.close();
        Disposition::Over(mark)
    }

    fn release(&mut self, side: Side, keep: usize) {
        let mark = self.mark();
        let marks = self.ctx.policy.marks;
        let new = |old| {
            let new = marks.replace(old, mark?);
            (new != old).then_some(new)
        };
        let awaited = self.awaited(side);
        let answers = &mut self.ctx.effects.answers;
        let [client, server] = &mut self.conn.streams;
        let stream = match side {
            Side::Client => client,
            Side::Server => server,
        };
        stream.release((keep, awaited), self.ctx.budget, answers, new);
    }

    /// The application is known, or will not be.
    fn decide(&mut self, side: Side, label: Label, shown: &Shown, is_fin: bool) -> Disposition {
        let (ends, is_tcp) = (self.conn.ends, self.conn.key.is_tcp);
        let policy = Arc::clone(self.ctx.policy);
        let rule = policy.rule(label, &ends, shown);
        let reads_requests = is_tcp && policy.reads_requests(label, &ends, shown);
        let before = std::mem::replace(&mut self.conn.label, label);
        let passed_by = self.conn.passes_by.take();
        let counts = self.ctx.labels.of(label);
        counts.packets += std::mem::take(&mut self.conn.early_packets);
        let early_bytes = std::mem::take(&mut self.conn.early_bytes);
        counts.bytes += early_bytes;
        let stays = reads_requests || rule.counts_bytes() && !rule.action.stops();
        match passed_by {
            Some(by) if by.number == rule.number && before == label => {}
            Some(_) => {
                self.ctx.labels.of(before).blocked += u64::from(rule.action.stops());
                self.ctx.record_again((ends, is_tcp), label, rule, shown);
            }
            None if !reads_requests => {
                self.ctx.record_decided((ends, is_tcp), label, rule, shown);
            }
            // Each request is decided.
            None => {}
        }
        if rule.action != Action::Inspect && !stays {
            let mark = Mark {
                decision: decision_of(rule.action),
                rule: rule.number,
            };
            let is_received = self.conn.streams.iter().all(Stream::is_acknowledged);
            if rule.action == Action::Allow && !is_received && policy.is_strict(&ends) {
                self.conn.phase = Phase::Allowed(mark);
                return self.read_on(side, Outcome::Pass);
            }
            self.answer_all(mark);
            return Disposition::Over(mark);
        }
        let inspector = match label {
            // Datagrams are no stream, and a rule that only counts reads nothing.
            Label::Known(application)
                if is_tcp && (reads_requests || rule.action == Action::Inspect) =>
            {
                Inspector::of(Some(application))
            }
            _ => Inspector::opaque(),
        };
        let mut exam = Examination::new(
            Arc::clone(rule),
            policy.name(label).into(),
            (ends, is_tcp),
            inspector,
            &shown.server_name,
        );
        if reads_requests {
            let rules = policy.rules_of_requests(label, &ends, shown);
            exam.choose_by_request(label, rules.cloned().collect());
        }
        exam.count_bytes(early_bytes, false, &mut self.ctx);
        let phase = Phase::Inspected(Box::new(exam));
        let Phase::Opening(opening) = std::mem::replace(&mut self.conn.phase, phase) else {
            return Disposition::Kept;
        };
        self.catch_up(side, &opening, is_fin)
    }

    /// Gives the inspector what was seen before the decision (the paper's "specific packet", sec. 3.2).
    fn catch_up(&mut self, side: Side, opening: &Opening, is_fin: bool) -> Disposition {
        let Phase::Inspected(exam) = &mut self.conn.phase else {
            return Disposition::Kept;
        };
        for sender in [Side::Client, Side::Server] {
            let bytes = opening.bytes(sender);
            if !bytes.is_empty() {
                exam.feed(sender, bytes, &mut self.ctx);
            }
        }
        let mut outcome = exam.outcome(side);
        if is_fin && !matches!(outcome, Outcome::Block(_)) {
            outcome = exam.finish(side, &mut self.ctx);
        }
        self.read_on(side, outcome)
    }

    /// Nothing of the connection passes any more.
    fn block(&mut self, action: OnMatch) -> Disposition {
        if let Some(disposition) = self.reply() {
            return disposition;
        }
        let decision = match action {
            OnMatch::Drop => Decision::Drop,
            OnMatch::Reject | OnMatch::Event => Decision::Reject,
        };
        self.ctx.labels.of(self.conn.label).blocked += 1;
        let rule = self.mark().map_or(0, |mark| mark.rule);
        let mark = Mark { decision, rule };
        self.close();
        self.answer_all(mark);
        Disposition::Over(mark)
    }

    /// Answers all that is held for a decision; both ends of a rejected TCP connection get a RST.
    fn answer_all(&mut self, mark: Mark) {
        let verdict = match mark.decision {
            Decision::Drop | Decision::Reject => Verdict::Repeat,
            Decision::Undecided | Decision::Pass | Decision::Inspect => Verdict::Accept,
        };
        if mark.decision == Decision::Reject && self.conn.key.is_tcp {
            let next = [Side::Client, Side::Server].map(|side| self.expected(side));
            if let [Some(client_next), Some(server_next)] = next {
                self.ctx.effects.resets.push(Reset {
                    client: self.conn.ends.address(Side::Client),
                    server: self.conn.ends.address(Side::Server),
                    client_next,
                    server_next,
                });
            }
        }
        let marks = self.ctx.policy.marks;
        let new = |old| Some(marks.replace(old, mark));
        for stream in &mut self.conn.streams {
            stream.answer_all(verdict, self.ctx.budget, &mut self.ctx.effects.answers, new);
        }
    }

    /// The next byte that the receiver of a side expects: by what was released, or else by what it has acknowledged.
    fn expected(&mut self, side: Side) -> Option<SeqNumber> {
        let stream = self.conn.stream(side);
        if stream.is_known() {
            Some(stream.released())
        } else {
            self.plausible(side.other()).newest_ack()
        }
    }

    /// Ends the files that are in transfer.
    fn close(&mut self) {
        if let Phase::Inspected(exam) = &mut self.conn.phase {
            exam.count_bytes(0, true, &mut self.ctx);
            exam.close(&mut self.ctx);
        }
    }

    /// A datagram of a side.
    pub(crate) fn on_datagram(
        &mut self,
        side: Side,
        packet: &QueuedPacket<'_>,
        bytes: &[u8],
    ) -> Disposition {
        let ends = self.conn.ends;
        match &mut self.conn.phase {
            Phase::Opening(opening) => {
                let begin = self.ctx.watch.begin();
                let classified = opening.on_datagram(side, bytes, ends, self.ctx.policy);
                self.ctx.watch.classified(begin);
                match classified {
                    Classified::More(..) | Classified::Hidden(_) => {
                        self.ctx.accept(packet.id, packet.mark, None);
                    }
                    Classified::Passes(label, shown) => {
                        self.pass_on(label, &shown);
                        self.ctx.accept(packet.id, packet.mark, None);
                    }
                    Classified::Is(label, shown) => {
                        return self.decide_datagram(side, packet, bytes, label, &shown);
                    }
                }
                Disposition::Kept
            }
            Phase::Inspected(_) | Phase::Allowed(_) | Phase::Answered(_) => {
                self.inspect_datagram(side, packet, bytes)
            }
        }
    }

    /// A rule allows what the datagrams are so far, while more of them are looked at.
    fn pass_on(&mut self, label: Label, shown: &Shown) {
        let ends = self.conn.ends;
        let policy = Arc::clone(self.ctx.policy);
        let rule = policy.rule(label, &ends, shown);
        self.ctx
            .record_decided((ends, self.conn.key.is_tcp), label, rule, shown);
        self.conn.label = label;
        self.conn.passes_by = Some(Arc::clone(rule));
    }

    fn decide_datagram(
        &mut self,
        side: Side,
        packet: &QueuedPacket<'_>,
        bytes: &[u8],
        label: Label,
        shown: &Shown,
    ) -> Disposition {
        // No stream holds anything: what follows is the packet's own answer.
        let disposition = self.decide(side, label, shown, false);
        match disposition {
            Disposition::Over(mark) => {
                self.ctx.answer_decided(packet, mark);
                disposition
            }
            Disposition::Kept => self.inspect_datagram(side, packet, bytes),
        }
    }

    fn inspect_datagram(
        &mut self,
        side: Side,
        packet: &QueuedPacket<'_>,
        bytes: &[u8],
    ) -> Disposition {
        let Phase::Inspected(exam) = &mut self.conn.phase else {
            return Disposition::Kept;
        };
        let outcome = exam.feed(side, bytes, &mut self.ctx);
        if let Outcome::Block(action) = outcome {
            let disposition = self.block(action);
            if let Disposition::Over(mark) = disposition {
                self.ctx.answer_decided(packet, mark);
            }
            return disposition;
        }
        let mark = self.mark();
        self.ctx.accept(packet.id, packet.mark, mark);
        Disposition::Kept
    }

    /// The report of a scanner.
    pub(crate) fn on_report(&mut self, report: &ScanReport) -> Disposition {
        let Phase::Inspected(exam) = &mut self.conn.phase else {
            return Disposition::Kept;
        };
        let Some(side) = exam.on_report(report, &mut self.ctx) else {
            return Disposition::Kept;
        };
        let outcome = exam.outcome(side);
        let disposition = self.read_on(side, outcome);
        if disposition == Disposition::Kept {
            return self.pump(side);
        }
        disposition
    }

    /// The stream cannot be followed any more: what waits passes unseen, or nothing does, as the rule
    /// says. One that is not decided yet is unknown, unless a rule that lets nothing pass unseen may be for it.
    fn give_up(&mut self, why: &str) -> Disposition {
        let ends = self.conn.ends;
        let Phase::Inspected(exam) = &mut self.conn.phase else {
            let is_closed = self.ctx.policy.may_fail_closed();
            self.ctx.record_undecided(ends, is_closed, why);
            if is_closed {
                return self.block(OnMatch::Reject);
            }
            if let Phase::Allowed(mark) = self.conn.phase {
                self.answer_all(mark);
                return Disposition::Over(mark);
            }
            return self.decide(Side::Client, Label::Unknown, &Shown::default(), false);
        };
        // What the gateway has acknowledged itself is not sent again by the sender.
        let is_relayed = self.conn.streams.iter().any(Stream::is_relayed);
        let is_blocked = exam.fails_closed() || is_relayed;
        exam.record_limit(why, is_blocked, &mut self.ctx);
        if is_blocked {
            exam.block(why, &mut self.ctx);
            return self.block(OnMatch::Reject);
        }
        exam.on_gap(&mut self.ctx);
        for side in [Side::Client, Side::Server] {
            self.conn.stream(side).skip_gap(self.ctx.budget);
            let outcome = self.outcome(side);
            let mut disposition = self.read_on(side, outcome);
            if disposition == Disposition::Kept {
                disposition = self.pump(side);
            }
            if disposition != Disposition::Kept {
                return disposition;
            }
        }
        Disposition::Kept
    }

    /// Counts what has passed by a rule while more was looked at, to its application and for the quota of its client.
    fn count_passed(&mut self, rule: Arc<Rule>) {
        let counts = self.ctx.labels.of(self.conn.label);
        let bytes = std::mem::take(&mut self.conn.early_bytes);
        counts.packets += std::mem::take(&mut self.conn.early_packets);
        counts.bytes += bytes;
        if rule.counts_bytes() {
            let whose = (self.conn.ends, self.conn.key.is_tcp);
            let name = self.ctx.policy.name(self.conn.label).into();
            let mut exam = Examination::new(rule, name, whose, Inspector::opaque(), b"");
            exam.count_bytes(bytes, true, &mut self.ctx);
        }
    }

    /// The stage forgets the connection: its table is full, or nothing came for long.
    pub(crate) fn forget(&mut self) -> Mark {
        let must_fail = match &self.conn.phase {
            Phase::Opening(_) => {
                match self.conn.passes_by.clone() {
                    Some(rule) => self.count_passed(rule),
                    None => self.ctx.stats.undecided += 1,
                }
                false
            }
            Phase::Allowed(_) | Phase::Answered(_) => false,
            Phase::Inspected(exam) => {
                exam.fails_closed() && self.conn.holds_any()
                    || self.conn.streams.iter().any(Stream::is_relayed)
            }
        };
        self.close();
        let mark = match self.mark() {
            Some(mark) if must_fail => Mark {
                decision: Decision::Reject,
                ..mark
            },
            Some(mark) => mark,
            None => Mark {
                decision: Decision::Undecided,
                rule: 0,
            },
        };
        self.answer_all(mark);
        mark
    }
}

/// The mark of a connection that is inspected by a rule.
pub(crate) fn inspected(rule: &Rule) -> Mark {
    Mark {
        decision: Decision::Inspect,
        rule: rule.number,
    }
}
