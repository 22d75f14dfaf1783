//! What rules can measure of flows.
//!
//! ```text
//! metric   = stat "of" quantity | thing "rate" | part "share" | "active" "flows" | "drops" | "table" "fill"
//! stat     = "p" 1-99 [ "." digits ] | "p999" | "p9999" | "min" | "mean" | "max"
//! quantity = "rtt" | "server" "rtt" | "client" "rtt" | "handshake" | "throughput" | "duration"
//! thing    = "flows" | "new" "flows" | "resets" | "unanswered" | "retransmissions" | "packets" | "bits"
//! part     = "retransmissions" | "reordering" | "resets" | "unanswered" | a class of anomalies
//! scope    = "name" name | "server" address[:port] | "client" address | "application" name
//! ```

use linkweir_record::flow::Anomaly;
use linkweir_sketch::LogLinear;

use super::watch::{Measured, Numbers};
use super::{Metric, Sample, measure_run};
use crate::api::{FlowEnds, FlowOf, Word as _};
use crate::text::to_f64;

/// A figure of a distribution.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Stat {
    /// What this share (0 to 1) of samples did not exceed.
    Quantile(f64),
    /// Smallest.
    Min,
    /// Mean.
    Mean,
    /// Largest.
    Max,
}

/// What of flows can be counted per second.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FlowThing {
    /// Flows that ended.
    Flows,
    /// Flows that began (of the whole run only).
    NewFlows,
    /// TCP flows that were reset.
    Resets,
    /// TCP flows that were never answered.
    Unanswered,
    /// TCP segments sent again.
    Retransmissions,
}

/// What of flows can be a share of a whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FlowPart {
    /// Segments sent again, of TCP segments with payload.
    Retransmissions,
    /// Segments of one class of anomalies, of TCP segments with payload.
    Anomaly(Anomaly),
    /// Reset, of TCP flows that ended.
    Resets,
    /// Never answered, of TCP flows that ended.
    Unanswered,
}

/// What a rule measures of flows.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum FlowMetric {
    /// A figure of a distribution over flows.
    Of(Stat, FlowOf),
    /// So many a second.
    Rate(FlowThing),
    /// A share, percent.
    Share(FlowPart),
    /// Flows in the table (of the whole run only).
    Active,
}

impl FlowMetric {
    pub(super) const fn unit(self) -> &'static str {
        match self {
            Self::Of(_, FlowOf::Throughput) => "bit/s",
            Self::Of(..) => "ns",
            Self::Rate(_) => "/s",
            Self::Share(_) => "%",
            Self::Active => "",
        }
    }

    pub(super) const fn has_scope(self) -> bool {
        !matches!(self, Self::Active | Self::Rate(FlowThing::NewFlows))
    }
}

/// The part of that name.
pub(super) fn part(word: &str) -> Option<FlowPart> {
    Some(match word {
        "retransmissions" => FlowPart::Retransmissions,
        "resets" => FlowPart::Resets,
        "unanswered" => FlowPart::Unanswered,
        class => FlowPart::Anomaly(Anomaly::ALL.into_iter().find(|a| a.as_str() == class)?),
    })
}

/// What the flows of a scope came to in an interval.
#[derive(Debug, Clone)]
pub struct FlowNumbers {
    /// Flows that entered the table.
    pub new_flows: u64,
    /// TCP flows that ended.
    pub ended_tcp: u64,
    /// UDP flows that ended.
    pub ended_udp: u64,
    /// TCP flows that ended and whose first packet was not seen.
    pub midstream: u64,
    /// What became of those that ended.
    pub ends: FlowEnds,
    /// Packets.
    pub packets: u64,
    /// Bytes of IP packets.
    pub bytes: u64,
    /// TCP segments with payload.
    pub data_segments: u64,
    /// TCP segments with payload seen before.
    pub retransmissions: u64,
    /// TCP payload, each byte once.
    pub payload_bytes: u64,
    /// TCP payload seen before.
    pub retransmitted_bytes: u64,
    /// TCP segments that came late.
    pub out_of_order: u64,
    /// Announcements of a window of zero.
    pub zero_windows: u64,
    /// Out-of-sequence segments by class.
    pub anomalies: [u64; Anomaly::COUNT],
    /// In the order of [`FlowOf::ALL`](crate::api::Word::ALL).
    pub distributions: [LogLinear; 6],
}

impl Default for FlowNumbers {
    fn default() -> Self {
        Self {
            new_flows: 0,
            ended_tcp: 0,
            ended_udp: 0,
            midstream: 0,
            ends: FlowEnds::default(),
            packets: 0,
            bytes: 0,
            data_segments: 0,
            retransmissions: 0,
            payload_bytes: 0,
            retransmitted_bytes: 0,
            out_of_order: 0,
            zero_windows: 0,
            anomalies: [0; Anomaly::COUNT],
            distributions: std::array::from_fn(|_| LogLinear::new()),
        }
    }
}

/// A distribution of nothing, where there is none.
static NOTHING: LogLinear = LogLinear::new();

impl FlowNumbers {
    /// The distribution of a quantity.
    #[must_use]
    pub fn distribution(&self, of: FlowOf) -> &LogLinear {
        self.distributions.get(of.position()).unwrap_or(&NOTHING)
    }

    /// Counts a sample.
    pub(crate) fn sample(&mut self, of: FlowOf, value: u64) {
        if let Some(values) = self.distributions.get_mut(of.position()) {
            values.record(value);
        }
    }

    /// Adds those of another interval.
    pub(crate) fn merge(&mut self, other: &Self) {
        self.new_flows = self.new_flows.saturating_add(other.new_flows);
        self.ended_tcp = self.ended_tcp.saturating_add(other.ended_tcp);
        self.ended_udp = self.ended_udp.saturating_add(other.ended_udp);
        self.midstream = self.midstream.saturating_add(other.midstream);
        self.ends.add(&other.ends);
        self.packets = self.packets.saturating_add(other.packets);
        self.bytes = self.bytes.saturating_add(other.bytes);
        self.data_segments = self.data_segments.saturating_add(other.data_segments);
        self.retransmissions = self.retransmissions.saturating_add(other.retransmissions);
        self.payload_bytes = self.payload_bytes.saturating_add(other.payload_bytes);
        self.retransmitted_bytes = self
            .retransmitted_bytes
            .saturating_add(other.retransmitted_bytes);
        self.out_of_order = self.out_of_order.saturating_add(other.out_of_order);
        self.zero_windows = self.zero_windows.saturating_add(other.zero_windows);
        for (mine, theirs) in self.anomalies.iter_mut().zip(&other.anomalies) {
            *mine = mine.saturating_add(*theirs);
        }
        for (mine, theirs) in self.distributions.iter_mut().zip(&other.distributions) {
            mine.merge(theirs);
        }
    }

    /// Segments of a class.
    fn anomaly(&self, class: Anomaly) -> u64 {
        self.anomalies
            .get(class as usize)
            .copied()
            .unwrap_or_default()
    }
}

impl Measured for FlowNumbers {
    fn measure(&self, metric: Metric, numbers: &Numbers<'_>) -> Sample<'_> {
        let Metric::Flow(metric) = metric else {
            return measure_run(metric, numbers);
        };
        match metric {
            FlowMetric::Of(stat, of) => Sample::Values(stat, self.distribution(of)),
            FlowMetric::Rate(thing) => {
                let count = match thing {
                    FlowThing::Flows => self.ended_tcp.saturating_add(self.ended_udp),
                    FlowThing::NewFlows => self.new_flows,
                    FlowThing::Resets => self.ends.reset,
                    FlowThing::Unanswered => self.ends.unanswered,
                    FlowThing::Retransmissions => self.retransmissions,
                };
                numbers.rate(count)
            }
            FlowMetric::Share(part) => {
                let (part, whole) = match part {
                    FlowPart::Retransmissions => (self.retransmissions, self.data_segments),
                    FlowPart::Anomaly(class) => (self.anomaly(class), self.data_segments),
                    FlowPart::Resets => (self.ends.reset, self.ended_tcp),
                    FlowPart::Unanswered => (self.ends.unanswered, self.ended_tcp),
                };
                Sample::Share { part, whole }
            }
            FlowMetric::Active => Sample::Figure(Some(to_f64(numbers.table.entries))),
        }
    }
}
