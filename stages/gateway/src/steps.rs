//! What a packet takes at each step of its way through the gateway (paper sec. 5.3, Fig. 9).
//!
//! The stage has no clock: whoever has one lends it for a packet ([`GatewayStage::on_packet_timed`](crate::GatewayStage::on_packet_timed)),
//! and the stage says what it took for classifying and inspecting. All else is measured around the stage.

use linkweir_sketch::LogLinear;

/// A step. Those of a packet follow one another and are together its [`Step::Total`]; [`Step::Scan`] goes on
/// while the packet is held.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// From its receipt from the kernel until the stage takes it: behind others that came with it.
    Queue,
    /// Decoding, its connection, its place in the stream, the rule.
    Track,
    /// The signatures, over the first payloads of a connection.
    Classify,
    /// Parsers, keywords, names, and copies for scanner and file store.
    Inspect,
    /// Of a packet that is not answered at once: behind a gap, for a scan.
    Hold,
    /// From its answer until the kernel has it: with the answers to others that came with it.
    Verdict,
    /// All of these.
    Total,
    /// From asking the scanner to its report.
    Scan,
}

impl Step {
    /// All of them, in order.
    pub const ALL: [Self; 8] = [
        Self::Queue,
        Self::Track,
        Self::Classify,
        Self::Inspect,
        Self::Hold,
        Self::Verdict,
        Self::Total,
        Self::Scan,
    ];

    /// Its name.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Queue => "queue",
            Self::Track => "track",
            Self::Classify => "classify",
            Self::Inspect => "inspect",
            Self::Hold => "hold",
            Self::Verdict => "verdict",
            Self::Total => "total",
            Self::Scan => "scan",
        }
    }
}

/// Times by step, nanoseconds; they merge by addition.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct StepTimes([LogLinear; Step::ALL.len()]);

impl StepTimes {
    /// Counts one.
    pub fn record(&mut self, step: Step, nanos: u64) {
        if let Some(times) = self.0.get_mut(step as usize) {
            times.record(nanos);
        }
    }

    /// Adds those of another worker.
    pub fn merge(&mut self, other: &Self) {
        for (mine, theirs) in self.0.iter_mut().zip(&other.0) {
            mine.merge(theirs);
        }
    }

    /// By step, in order.
    pub fn iter(&self) -> impl Iterator<Item = (Step, &LogLinear)> {
        Step::ALL.into_iter().zip(&self.0)
    }
}

/// What a packet took within the stage, nanoseconds; `None` where it did not come to the step.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Took {
    /// In [`Step::Classify`].
    pub classify_ns: Option<u64>,
    /// In [`Step::Inspect`].
    pub inspect_ns: Option<u64>,
}

/// Looks at the lent clock, where there is one.
#[derive(Debug, Default)]
pub(crate) struct Watch {
    stamp: Option<fn() -> u64>,
    took: Took,
}

impl Watch {
    pub(crate) fn start(&mut self, stamp: fn() -> u64) {
        self.stamp = Some(stamp);
    }

    pub(crate) fn stop(&mut self) -> Took {
        std::mem::take(self).took
    }

    /// The time now, where it is wanted.
    #[inline]
    pub(crate) fn begin(&self) -> Option<u64> {
        self.stamp.map(|stamp| stamp())
    }

    /// Something was classified since `begin`.
    #[inline]
    pub(crate) fn classified(&mut self, begin: Option<u64>) {
        if let Some(nanos) = self.since(begin) {
            *self.took.classify_ns.get_or_insert(0) += nanos;
        }
    }

    /// Something was inspected since `begin`.
    #[inline]
    pub(crate) fn inspected(&mut self, begin: Option<u64>) {
        if let Some(nanos) = self.since(begin) {
            *self.took.inspect_ns.get_or_insert(0) += nanos;
        }
    }

    fn since(&self, begin: Option<u64>) -> Option<u64> {
        Some(self.begin()?.saturating_sub(begin?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_watch_without_a_clock_measures_nothing() {
        let mut watch = Watch::default();
        let begin = watch.begin();
        watch.inspected(begin);
        assert_eq!(watch.stop(), Took::default());
    }

    #[test]
    fn times_of_workers_add_up() {
        let mut one = StepTimes::default();
        one.record(Step::Queue, 5);
        let mut other = StepTimes::default();
        other.record(Step::Queue, 7);
        other.record(Step::Scan, 1_000_000);
        one.merge(&other);
        let counts: Vec<_> = one
            .iter()
            .filter(|(_, times)| !times.is_empty())
            .map(|(step, times)| (step.as_str(), times.count(), times.sum()))
            .collect();
        assert_eq!(counts, [("queue", 2, 12), ("scan", 1, 1_000_000)]);
    }
}
