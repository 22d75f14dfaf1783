//! What the stage lends to one connection while it works on it.

use std::sync::Arc;

use linkweir_engine::Effects;
use linkweir_engine::effect::{Answer, Decision, Mark, QueuedPacket, Ticket, Verdict};
use linkweir_record::GatewayKind;
use linkweir_record::gateway::{GatewayEventKind, GatewayRow, GatewayText};
use linkweir_wire::Timestamp;

use crate::connection::Ends;
use crate::examine::{Desk, Ids};
use crate::hold::Budget;
use crate::invitations::Invitations;
use crate::policy::{Action, Label, Policy, Rule};
use crate::stats::{Labels, Stats};

/// What the stage lends to one connection.
pub(crate) struct Room<'a> {
    pub(crate) now: Timestamp,
    pub(crate) policy: &'a Arc<Policy>,
    pub(crate) budget: &'a mut Budget,
    pub(crate) effects: &'a mut Effects<GatewayKind>,
    pub(crate) ids: &'a mut Ids,
    pub(crate) stats: &'a mut Stats,
    pub(crate) labels: &'a mut Labels,
    pub(crate) invitations: &'a Invitations,
    pub(crate) asked: &'a mut Vec<Ticket>,
    pub(crate) memory: &'a mut usize,
}

impl Room<'_> {
    pub(crate) fn desk(&mut self, ends: Ends, is_tcp: bool) -> Desk<'_> {
        Desk {
            now: self.now,
            policy: self.policy,
            ends,
            is_tcp,
            effects: self.effects,
            ids: self.ids,
            stats: self.stats,
            invitations: self.invitations,
            asked: self.asked,
            memory: self.memory,
        }
    }

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

    /// Tells of a connection that cannot be looked at before it was decided.
    pub(crate) fn tell_undecided(&mut self, ends: Ends, is_blocked: bool, why: &str) {
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
        self.desk(ends, true).tell(row, &text);
    }

    /// Tells of a decision and counts it.
    pub(crate) fn decided(
        &mut self,
        ends: Ends,
        is_tcp: bool,
        label: Label,
        rule: &Rule,
        server_name: &[u8],
    ) {
        let counts = self.labels.of(label);
        counts.connections += 1;
        *match rule.action {
            Action::Allow => &mut counts.allowed,
            Action::Drop => &mut counts.dropped,
            Action::Reject => &mut counts.rejected,
            Action::Inspect => &mut counts.inspected,
        } += 1;
        let policy = Arc::clone(self.policy);
        let row = GatewayRow {
            event: GatewayEventKind::Decided,
            action: rule.action.as_str(),
            ..GatewayRow::default()
        };
        let text = GatewayText {
            application: policy.name(label).as_bytes(),
            rule: rule.name.as_bytes(),
            host: server_name,
            ..GatewayText::default()
        };
        self.desk(ends, is_tcp).tell(row, &text);
    }
}
