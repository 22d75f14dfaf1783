//! What the stage lends to one connection while it works on it.

use std::sync::Arc;

use linkweir_engine::Effects;
use linkweir_engine::effect::{Answer, Decision, FileId, Mark, QueuedPacket, Ticket, Verdict};
use linkweir_record::GatewayKind;
use linkweir_record::gateway::{GatewayEventKind, GatewayRow, GatewayText};
use linkweir_wire::Timestamp;

use crate::connection::key::Ends;
use crate::hold::Budget;
use crate::invitations::Invitations;
use crate::policy::{Action, Label, Policy, Rule, Shown, Why};
use crate::stats::{Labels, Stats};
use crate::steps::Watch;

/// Numbers that are never used twice: those of a worker begin with its own.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Ids {
    worker: u8,
    next: u64,
}

impl Ids {
    pub(crate) const fn of_worker(worker: u8) -> Self {
        Self { worker, next: 0 }
    }

    const fn take(&mut self) -> u64 {
        self.next += 1;
        ((self.worker as u64) << 56) | self.next
    }

    pub(crate) const fn ticket(&mut self) -> Ticket {
        Ticket(self.take())
    }

    pub(crate) const fn file(&mut self) -> FileId {
        FileId(self.take())
    }

    /// The worker and the number of a file: `0-17`.
    pub(crate) fn file_suffix(&self, id: FileId) -> String {
        format!("{}-{}", self.worker, id.0 & ((1 << 56) - 1))
    }
}

/// The time, and where effects, numbers and counters go.
#[derive(Debug)]
pub(crate) struct Context<'a> {
    pub(crate) now: Timestamp,
    pub(crate) policy: &'a Arc<Policy>,
    pub(crate) budget: &'a mut Budget,
    pub(crate) effects: &'a mut Effects<GatewayKind>,
    pub(crate) ids: &'a mut Ids,
    pub(crate) stats: &'a mut Stats,
    pub(crate) labels: &'a mut Labels,
    pub(crate) invitations: &'a Invitations,
    /// Scans that were requested since this was last emptied.
    pub(crate) requested: &'a mut Vec<Ticket>,
    /// Bytes of memory that files under inspection use now.
    pub(crate) memory: &'a mut usize,
    pub(crate) watch: &'a mut Watch,
}

impl Context<'_> {
    /// A packet passes, with this mark over its own.
    pub(crate) fn accept(&mut self, packet: u32, old: u32, mark: Option<Mark>) {
        let mark = mark.and_then(|mark| self.changed(old, mark));
        self.effects.answers.push(Answer {
            id: packet,
            verdict: Verdict::Accept,
            mark,
        });
    }

    pub(crate) fn drop(&mut self, packet: u32) {
        self.effects.answers.push(Answer {
            id: packet,
            verdict: Verdict::Drop,
            mark: None,
        });
    }

    /// The mark that a packet gets, where it has another.
    fn changed(&self, old: u32, mark: Mark) -> Option<u32> {
        let new = self.policy.marks.replace(old, mark);
        (new != old).then_some(new)
    }

    /// Answers a packet of a decided connection.
    pub(crate) fn answer_decided(&mut self, packet: &QueuedPacket<'_>, mark: Mark) {
        let verdict = match mark.decision {
            Decision::Drop | Decision::Reject => {
                // A packet that comes back has met no rule of ours: it would come for ever.
                if self.policy.marks.read(packet.mark).decision == mark.decision {
                    return self.drop(packet.id);
                }
                Verdict::Repeat
            }
            Decision::Undecided | Decision::Pass | Decision::Inspect => Verdict::Accept,
        };
        let mark = self.changed(packet.mark, mark);
        self.effects.answers.push(Answer {
            id: packet.id,
            verdict,
            mark,
        });
    }

    /// Writes an event; time, ends and protocol are filled in here.
    pub(crate) fn record(
        &mut self,
        ends: Ends,
        is_tcp: bool,
        row: GatewayRow,
        text: &GatewayText<'_>,
    ) {
        let row = GatewayRow {
            ts_ns: self.now.as_nanos(),
            client_ip: ends.client.0,
            client_port: ends.client.1,
            server_ip: ends.server.0,
            server_port: ends.server.1,
            places: ends.places,
            protocol: if is_tcp { "tcp" } else { "udp" },
            ..row
        };
        self.stats.count_event(row.event);
        self.effects.records.push(row, text);
    }

    /// Records a connection that cannot be inspected before it was decided.
    pub(crate) fn record_undecided(&mut self, ends: Ends, is_blocked: bool, why: &str) {
        let row = GatewayRow {
            event: if is_blocked {
                GatewayEventKind::Blocked
            } else {
                GatewayEventKind::Limit
            },
            action: if is_blocked { "reject" } else { "allow" },
            ..GatewayRow::default()
        };
        let policy = Arc::clone(self.policy);
        let text = GatewayText {
            application: policy.name(Label::Unknown).as_bytes(),
            detail: why.as_bytes(),
            ..GatewayText::default()
        };
        self.record(ends, true, row, &text);
    }

    /// Records a decision and counts it.
    pub(crate) fn record_decided(
        &mut self,
        (ends, is_tcp): (Ends, bool),
        label: Label,
        rule: &Rule,
        shown: &Shown,
    ) {
        self.count_decided(label, rule.action);
        self.record_again((ends, is_tcp), label, rule, shown);
    }

    /// Records a decision of a connection that is counted.
    pub(crate) fn record_again(
        &mut self,
        (ends, is_tcp): (Ends, bool),
        label: Label,
        rule: &Rule,
        shown: &Shown,
    ) {
        let mut why = Vec::new();
        let name = self.policy.name(label);
        self.explain(rule, name, &ends, (label, shown), &mut why);
        self.record_decision((ends, is_tcp), Some(label), rule, shown, &why);
    }

    /// Records and counts a decision by the addresses and the time alone.
    pub(crate) fn record_unclassified(&mut self, (ends, is_tcp): (Ends, bool), rule: &Rule) {
        const NOT_CLASSIFIED: &[u8] = b"not classified: no rule needs it";
        let (label, shown) = (Label::Unknown, Shown::default());
        self.count_decided(label, rule.action);
        let mut why = Vec::new();
        self.explain(rule, "", &ends, (label, &shown), &mut why);
        if !why.is_empty() {
            why.extend_from_slice(b"; ");
        }
        why.extend_from_slice(NOT_CLASSIFIED);
        self.record_decision((ends, is_tcp), None, rule, &shown, &why);
    }

    /// Says which conditions of a rule matched before the first request, or that there is no such rule.
    pub(crate) fn explain(
        &self,
        rule: &Rule,
        name: &str,
        ends: &Ends,
        what: (Label, &Shown),
        why: &mut Vec<u8>,
    ) {
        if rule.number == self.policy.default.number {
            why.extend_from_slice(b"no rule matches");
        } else {
            rule.explain(name, ends, what, &mut Why::to(why));
        }
    }

    /// Counts a connection that was decided.
    pub(crate) fn count_decided(&mut self, label: Label, action: Action) {
        let counts = self.labels.of(label);
        counts.connections += 1;
        *match action {
            Action::Allow => &mut counts.allowed,
            Action::Drop => &mut counts.dropped,
            Action::Reject | Action::Redirect => &mut counts.rejected,
            Action::Inspect => &mut counts.inspected,
        } += 1;
    }

    /// Records a decision, and which conditions of its rule matched.
    pub(crate) fn record_decision(
        &mut self,
        (ends, is_tcp): (Ends, bool),
        label: Option<Label>,
        rule: &Rule,
        shown: &Shown,
        why: &[u8],
    ) {
        let policy = Arc::clone(self.policy);
        let application = label.map_or("", |label| policy.name(label));
        let row = GatewayRow {
            event: GatewayEventKind::Decided,
            action: rule.action.as_str(),
            has_ech: shown.has_ech,
            ..GatewayRow::default()
        };
        let text = GatewayText {
            application: application.as_bytes(),
            rule: rule.name.as_bytes(),
            host: &shown.server_name,
            why,
            ..GatewayText::default()
        };
        self.record(ends, is_tcp, row, &text);
    }
}
