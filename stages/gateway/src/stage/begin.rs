//! How connections begin: handshakes, and the first payload.

use std::net::IpAddr;
use std::sync::Arc;

use linkweir_engine::Effects;
use linkweir_engine::effect::{Answer, Decision, Mark, QueuedPacket, Reset, Verdict};
use linkweir_record::GatewayKind;
use linkweir_table::Id;
use linkweir_wire::{SeqNumber, Tcp, TcpFlags, Timestamp};

use super::{Arrived, GatewayStage};
use crate::connection::{Connection, Ends, HalfOpen, Opening, Phase, decision_of, side_of_sender};
use crate::examine::Examination;
use crate::inspect::{Inspector, Side};
use crate::policy::{Fail, Label};

/// Why a connection is followed from its middle on.
const NOT_SEEN: &str = "the beginning of the connection was not seen";
/// Why no more than keywords are looked for in a connection.
const FORGOTTEN: &str =
    "silent beyond idle-timeout, or the gateway was started again: not followed any more";

impl GatewayStage {
    /// Whether a SYN of a connection that is known opens another one between the same ports: the
    /// kernel has no mark of it any more, or nothing was sent yet and the number is another.
    pub(super) fn begins_anew(&self, id: Id, seq: SeqNumber) -> bool {
        self.connections.get(id).is_some_and(|conn| {
            let [client, _] = &conn.streams;
            let first = SeqNumber(seq.0.wrapping_add(1));
            match conn.phase {
                Phase::Inspected(_) | Phase::Answered(_) => true,
                Phase::Opening(_) | Phase::Allowed(_) => {
                    client.is_known() && client.released() != first
                }
            }
        })
    }

    /// A SYN, or the answer to one.
    pub(super) fn on_handshake(
        &mut self,
        arrived: &Arrived<'_>,
        tcp: &Tcp<'_>,
        effects: &mut Effects<GatewayKind>,
    ) {
        let Arrived {
            packet,
            src,
            dst,
            key,
            hash,
            now,
        } = *arrived;
        let known = self.handshakes.find(&key, hash);
        if tcp.flags().contains(TcpFlags::ACK) {
            // Data in it neither (RFC 7413): its place is not sure, and it comes again.
            let takes = known.is_none_or(|half| {
                half.ends.side(src) == Side::Server && tcp.payload_len == 0 && half.on_answer(tcp)
            });
            if !takes {
                return self.drop_implausible(packet, now, effects);
            }
            return self
                .shared
                .context(now, effects)
                .accept(packet.id, packet.mark, None);
        }
        if known.is_some_and(|half| half.ends.side(src) == Side::Server) {
            // Both ends would open it (RFC 9293 sec. 3.5): without this one it is the client's.
            return self.drop_implausible(packet, now, effects);
        }
        let mut ends = Ends::opened_by(src, dst, Side::Client);
        self.shared.locate(&mut ends, now);
        ends.used_up |= self.shared.policy.opens(&ends, now);
        if self.is_decided_by_ends(arrived, ends, effects) {
            return;
        }
        if tcp.payload_len > 0 {
            // TCP Fast Open (RFC 7413): without an answer the client goes on without data in its SYN.
            let answer = Answer {
                id: packet.id,
                verdict: Verdict::Drop,
                mark: None,
            };
            return effects.answers.push(answer);
        }
        let known = self.handshakes.find(&key, hash);
        // What was answered is still so.
        if known.is_none_or(|half| !half.is_repeated_by(tcp)) {
            self.handshakes.begin(hash, HalfOpen::new(key, ends, tcp));
        }
        self.shared
            .context(now, effects)
            .accept(packet.id, packet.mark, None);
    }

    /// Decides a connection with its first packet, where its ends and the time say it all.
    fn is_decided_by_ends(
        &mut self,
        arrived: &Arrived<'_>,
        ends: Ends,
        effects: &mut Effects<GatewayKind>,
    ) -> bool {
        let Arrived { key, hash, now, .. } = *arrived;
        let policy = Arc::clone(&self.shared.policy);
        let Some(rule) = policy.rule_of_any(&ends) else {
            return false;
        };
        let mark = Mark {
            decision: decision_of(rule.action),
            rule: rule.number,
        };
        self.recent.remember(key, hash, mark, now);
        let mut ctx = self.shared.context(now, effects);
        ctx.record_unclassified((ends, key.is_tcp), rule);
        ctx.answer_decided(arrived.packet, mark);
        true
    }

    /// Drops a segment that its receiver ignores.
    pub(super) fn drop_implausible(
        &mut self,
        packet: &QueuedPacket<'_>,
        now: Timestamp,
        effects: &mut Effects<GatewayKind>,
    ) {
        self.shared.stats.implausible += 1;
        self.shared.context(now, effects).drop(packet.id);
    }

    /// A connection from its first packet with payload on. `None` where the packet was answered.
    pub(super) fn open(
        &mut self,
        arrived: &Arrived<'_>,
        effects: &mut Effects<GatewayKind>,
    ) -> Option<Id> {
        let Arrived {
            packet,
            src,
            dst,
            key,
            hash,
            now,
        } = *arrived;
        let was = self.shared.policy.marks.read(packet.mark);
        let half = self.handshakes.take(&key, hash);
        let (mut ends, mut streams) = half.map_or_else(
            || {
                let side = side_of_sender(src.1, dst.1);
                (Ends::opened_by(src, dst, side), Default::default())
            },
            |half| (half.ends, half.streams()),
        );
        // Also behind a handshake: the policy may be another one by now.
        self.shared.locate(&mut ends, now);
        if half.is_none() {
            ends.used_up |= self.shared.policy.opens(&ends, now);
        }
        let has_handshake = half.is_some_and(|half| half.is_answered());
        let mut phase = Phase::Opening(Box::<Opening>::default());
        if was.decision == Decision::Inspect {
            // An inspected connection that is not known: this program was started again, or forgot it.
            self.shared.stats.resumed += 1;
            let policy = Arc::clone(&self.shared.policy);
            let rule = policy.numbered(was.rule).unwrap_or(&policy.default);
            let name = policy.name(Label::Unknown).into();
            let whose = (ends, key.is_tcp);
            let mut exam =
                Examination::new(Arc::clone(rule), name, whose, Inspector::opaque(), b"");
            let is_closed = rule.fail == Fail::Closed;
            exam.record_limit(FORGOTTEN, is_closed, &mut self.shared.context(now, effects));
            if is_closed {
                let mark = Mark {
                    decision: Decision::Reject,
                    rule: was.rule,
                };
                self.recent.remember(key, hash, mark, now);
                self.shared
                    .context(now, effects)
                    .answer_decided(packet, mark);
                return None;
            }
            phase = Phase::Inspected(Box::new(exam));
        } else if half.is_none() && self.is_decided_by_ends(arrived, ends, effects) {
            return None;
        } else if key.is_tcp && !has_handshake {
            // What came before is unknown.
            self.shared.stats.resumed += 1;
            let is_closed = self.shared.policy.default.fail == Fail::Closed;
            let mut ctx = self.shared.context(now, effects);
            ctx.record_undecided(ends, is_closed, NOT_SEEN);
            if is_closed {
                let mark = Mark {
                    decision: Decision::Reject,
                    rule: self.shared.policy.default.number,
                };
                self.recent.remember(key, hash, mark, now);
                self.shared
                    .context(now, effects)
                    .answer_decided(packet, mark);
                return None;
            }
        }
        if self.connections.is_full()
            && let Some(oldest) = self.connections.oldest().map(|(id, _)| id)
        {
            self.shared.stats.evicted += 1;
            self.forget(oldest, now, effects);
        }
        if key.is_tcp {
            let [client, server] = &mut streams;
            client.join(self.shared.budget.join(ends.client.0));
            server.join(self.shared.budget.join(ends.server.0));
        }
        let connection = Connection {
            key,
            ends,
            phase,
            label: Label::Unknown,
            passes_by: None,
            streams,
            has_handshake,
            plausible: half.map(|half| half.plausible).unwrap_or_default(),
            early_packets: 0,
            early_bytes: 0,
            last: now,
        };
        self.connections.insert(hash, connection).ok()
    }
}

/// Ends a connection that is picked up midstream and may not go on. The kernel's answer to the segment
/// reaches its sender alone; the other end would wait for ever.
pub(super) fn cut_in_the_middle(src: (IpAddr, u16), dst: (IpAddr, u16), tcp: &Tcp<'_>) -> Reset {
    let side = side_of_sender(src.1, dst.1);
    let ends = Ends::opened_by(src, dst, side);
    let (client_next, server_next) = match side {
        Side::Client => (tcp.seq(), tcp.ack()),
        Side::Server => (tcp.ack(), tcp.seq()),
    };
    Reset {
        client: ends.address(Side::Client),
        server: ends.address(Side::Server),
        client_next,
        server_next,
    }
}
