//! What packets take at each step, of one in [`ONE_OF`]: the others cost a division of their number.

use std::collections::HashMap;

use linkweir_engine::Effects;
use linkweir_engine::effect::{Answer, QueuedPacket};
use linkweir_gateway::{GatewayStage, Step, StepTimes};
use linkweir_record::GatewayKind;
use linkweir_sys::wait::monotonic_ns;
use linkweir_wire::Timestamp;

/// One packet of so many is timed, by the number that the kernel gave it. A prime, so that it stands at every
/// place of the 32 packets that are received together.
pub(super) const ONE_OF: u32 = 61;
/// Timed packets that may be held at once; of more the way is not followed to its end.
const MOST: usize = 4096;
/// Times that wait for the thread that counts them.
const WAITING: usize = 8192;

/// A timed packet without an answer.
#[derive(Debug, Clone, Copy)]
struct Held {
    received_ns: u64,
    since_ns: u64,
}

/// Times the packets of one worker.
#[derive(Debug, Default)]
pub(super) struct StepTimer {
    held: HashMap<u32, Held>,
    /// Answered, and not yet sent: when it was received, and when it was answered.
    answered: Vec<(u64, u64)>,
    times: Vec<(Step, u64)>,
}

impl StepTimer {
    /// Whether a packet is timed.
    pub(super) const fn is_timed(id: u32) -> bool {
        id.is_multiple_of(ONE_OF)
    }

    /// Gives a packet that is timed to the stage; `received_ns` is when it came, by the monotonic clock.
    pub(super) fn on_packet(
        &mut self,
        packet: &QueuedPacket<'_>,
        (received_ns, now): (u64, Timestamp),
        stage: &mut GatewayStage,
        effects: &mut Effects<GatewayKind>,
    ) {
        let before = effects.answers.len();
        let begin_ns = monotonic_ns();
        let took = stage.on_packet_timed(packet, now, effects, monotonic_ns);
        let end_ns = monotonic_ns();
        let within = took.classify_ns.unwrap_or(0) + took.inspect_ns.unwrap_or(0);
        let mut record = |step, nanos| self.times.push((step, nanos));
        record(Step::Queue, begin_ns.saturating_sub(received_ns));
        let whole = end_ns.saturating_sub(begin_ns);
        record(Step::Track, whole.saturating_sub(within));
        took.classify_ns
            .into_iter()
            .for_each(|nanos| record(Step::Classify, nanos));
        took.inspect_ns
            .into_iter()
            .for_each(|nanos| record(Step::Inspect, nanos));
        let answers = effects.answers.get(before..).unwrap_or_default();
        if answers.iter().any(|answer| answer.id == packet.id) {
            self.answered.push((received_ns, end_ns));
        } else if self.held.len() < MOST {
            let held = Held {
                received_ns,
                since_ns: end_ns,
            };
            self.held.insert(packet.id, held);
        }
    }

    /// These answers are about to be sent.
    pub(super) fn on_answers(&mut self, answers: &[Answer]) {
        if self.held.is_empty() {
            return;
        }
        let timed = answers.iter().filter(|answer| Self::is_timed(answer.id));
        let mut now = None;
        for answer in timed {
            let Some(held) = self.held.remove(&answer.id) else {
                continue;
            };
            let now = *now.get_or_insert_with(monotonic_ns);
            let nanos = now.saturating_sub(held.since_ns);
            self.times.push((Step::Hold, nanos));
            self.answered.push((held.received_ns, now));
        }
    }

    /// All answers are with the kernel.
    pub(super) fn on_sent(&mut self) {
        if self.answered.is_empty() {
            return;
        }
        let now = monotonic_ns();
        for (received_ns, answered_ns) in self.answered.drain(..) {
            let verdict = now.saturating_sub(answered_ns);
            self.times.push((Step::Verdict, verdict));
            let total = now.saturating_sub(received_ns);
            self.times.push((Step::Total, total));
        }
    }

    /// Whether what was measured should be counted soon.
    pub(super) const fn is_full(&self) -> bool {
        self.times.len() >= WAITING
    }

    /// Counts what was measured.
    pub(super) fn count(&mut self, into: &mut StepTimes) {
        for (step, nanos) in self.times.drain(..) {
            into.record(step, nanos);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use linkweir_engine::effect::Verdict;

    fn answer(id: u32) -> Answer {
        Answer {
            id,
            verdict: Verdict::Accept,
            mark: None,
        }
    }

    #[test]
    fn the_parts_of_a_packet_that_was_held_are_its_whole() {
        let mut timer = StepTimer::default();
        let begin = monotonic_ns();
        timer.held.insert(
            2 * ONE_OF,
            Held {
                received_ns: begin,
                since_ns: begin,
            },
        );
        timer.on_answers(&[answer(1), answer(ONE_OF)]);
        timer.on_sent();
        assert!(timer.times.is_empty() && timer.held.len() == 1);
        timer.on_answers(&[answer(2 * ONE_OF)]);
        timer.on_sent();
        let mut times = StepTimes::default();
        timer.count(&mut times);
        let sums: HashMap<_, _> = times
            .iter()
            .filter(|(_, times)| !times.is_empty())
            .map(|(step, times)| (step.as_str(), times.sum()))
            .collect();
        assert_eq!(sums["hold"] + sums["verdict"], sums["total"]);
        assert_eq!(sums.len(), 3);
        assert!(timer.held.is_empty() && timer.times.is_empty());
    }

    /// 32 packets come together.
    #[test]
    fn timed_packets_stand_at_every_place() {
        let ids = (0..32 * ONE_OF).filter(|id| StepTimer::is_timed(*id));
        let places: std::collections::HashSet<_> = ids.map(|id| id % 32).collect();
        assert_eq!(places.len(), 32);
    }
}
