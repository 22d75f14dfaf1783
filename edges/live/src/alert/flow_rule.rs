//! The grammar of rules of flows; see `flow.rs`.

use super::flow::{FlowMetric, FlowThing, Stat, part};
use super::rule::{Metric, Parser, RuleError, Thing, quantile};
use crate::api::FlowOf;

impl Parser<'_> {
    /// What a rule in the words of flows measures.
    pub(super) fn flow_metric(&mut self) -> Result<Metric, RuleError> {
        const EXPECTED: &str = "what to measure: `p95 of rtt`, `mean of throughput`, `retransmissions share`, \
                                `flows rate`, `active flows`, drops, `table fill`...";
        let first = self.next(EXPECTED)?;
        let word = first.text.to_ascii_lowercase();
        let stat = match word.as_str() {
            "min" => Some(Stat::Min),
            "mean" => Some(Stat::Mean),
            "max" => Some(Stat::Max),
            _ => quantile(&word).map(Stat::Quantile),
        };
        if let Some(stat) = stat {
            let column = self.column();
            if !self.keyword("of") {
                return self.fault(column, "expected `of`, as in `p95 of rtt`");
            }
            return Ok(Metric::Flow(FlowMetric::Of(stat, self.quantity()?)));
        }
        let column = self.column();
        let is_about = |parser: &mut Self, noun: &str| {
            if parser.keyword(noun) {
                Ok(())
            } else {
                parser.fault(column, format!("expected `{noun}`"))
            }
        };
        let rate = match word.as_str() {
            "drops" => return Ok(Metric::Drops),
            "table" => return is_about(self, "fill").map(|()| Metric::TableFill),
            "active" => {
                return is_about(self, "flows").map(|()| Metric::Flow(FlowMetric::Active));
            }
            "new" => {
                is_about(self, "flows")?;
                Some(Metric::Flow(FlowMetric::Rate(FlowThing::NewFlows)))
            }
            "flows" => Some(Metric::Flow(FlowMetric::Rate(FlowThing::Flows))),
            "resets" => Some(Metric::Flow(FlowMetric::Rate(FlowThing::Resets))),
            "unanswered" => Some(Metric::Flow(FlowMetric::Rate(FlowThing::Unanswered))),
            "retransmissions" => Some(Metric::Flow(FlowMetric::Rate(FlowThing::Retransmissions))),
            "packets" => Some(Metric::Rate(Thing::Packets)),
            "bits" => Some(Metric::Rate(Thing::Bits)),
            _ => None,
        };
        let share = part(&word);
        let column = self.column();
        if let Some(rate) = rate
            && self.keyword("rate")
        {
            return Ok(rate);
        }
        if let Some(part) = share
            && self.keyword("share")
        {
            return Ok(Metric::Flow(FlowMetric::Share(part)));
        }
        let message = match (rate, share) {
            (Some(_), Some(_)) => "expected `rate` or `share`".to_owned(),
            (Some(_), None) => "expected `rate`".to_owned(),
            (None, Some(_)) => "expected `share`".to_owned(),
            (None, None) => {
                let message = format!("expected {EXPECTED}, found `{}`", first.text);
                return self.fault(first.column, message);
            }
        };
        self.fault(column, message)
    }

    fn quantity(&mut self) -> Result<FlowOf, RuleError> {
        const EXPECTED: &str =
            "`rtt`, `server rtt`, `client rtt`, `handshake`, `throughput` or `duration`";
        let word = self.next(EXPECTED)?;
        let half = match word.text.to_ascii_lowercase().as_str() {
            "rtt" => return Ok(FlowOf::Rtt),
            "handshake" => return Ok(FlowOf::Handshake),
            "throughput" => return Ok(FlowOf::Throughput),
            "duration" => return Ok(FlowOf::Duration),
            "server" => FlowOf::ServerRtt,
            "client" => FlowOf::ClientRtt,
            other => {
                return self.fault(word.column, format!("expected {EXPECTED}, found `{other}`"));
            }
        };
        let column = self.column();
        if self.keyword("rtt") {
            Ok(half)
        } else {
            self.fault(column, "expected `rtt`")
        }
    }
}
