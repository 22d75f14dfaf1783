//! What rules can measure of the events of a gateway.
//!
//! ```text
//! metric = thing "rate" | "drops"
//! thing  = "events" | "blocked" | a kind of event: "infected", "keyword", "unscanned"...
//!        | "packets" | "bits"
//! scope  = "application" name | "server" address[:port] | "client" address
//! ```
//! `blocked` is every connection that is stopped: dropped or rejected by a rule, or cut off for what
//! it carries.

use linkweir_record::gateway::{GatewayEvent, GatewayEventKind};
use linkweir_sketch::LogLinear;

use super::rule::{Metric, Parser, RuleError, Thing};
use super::watch::{Measured, Numbers};
use super::{Sample, measure_run};

/// What of a gateway can be counted per second.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GatewayThing {
    /// Events of all kinds.
    Events,
    /// Connections that are stopped.
    Stopped,
    /// Events of one kind.
    Kind(GatewayEventKind),
}

/// What the events of a scope came to in an interval.
#[derive(Debug, Clone, Default)]
pub struct GatewayNumbers {
    /// In the order of [`GatewayEventKind::ALL`].
    pub kinds: [u64; GatewayEventKind::ALL.len()],
    /// Connections that a rule dropped or rejected.
    pub refused: u64,
    /// Bytes of the files of events `file`.
    pub transferred_bytes: u64,
    /// Sizes of those files, bytes.
    pub file_size: LogLinear,
}

/// Whether an event says that a rule drops or rejects its connection.
pub(crate) fn is_refusal(event: &GatewayEvent<'_>) -> bool {
    event.row.event == GatewayEventKind::Decided && matches!(event.row.action, "drop" | "reject")
}

impl GatewayNumbers {
    /// Counts an event.
    pub(crate) fn count(&mut self, event: &GatewayEvent<'_>) {
        let row = event.row;
        let at = GatewayEventKind::ALL
            .iter()
            .position(|kind| *kind == row.event);
        if let Some(count) = at.and_then(|at| self.kinds.get_mut(at)) {
            *count += 1;
        }
        self.refused += u64::from(is_refusal(event));
        // A file that was only named has no size.
        if let (GatewayEventKind::File, Some(size)) = (row.event, row.size) {
            self.transferred_bytes = self.transferred_bytes.saturating_add(size);
            self.file_size.record(size);
        }
    }

    /// Adds those of another interval.
    pub(crate) fn merge(&mut self, other: &Self) {
        for (mine, theirs) in self.kinds.iter_mut().zip(&other.kinds) {
            *mine += theirs;
        }
        self.refused += other.refused;
        self.transferred_bytes = self
            .transferred_bytes
            .saturating_add(other.transferred_bytes);
        self.file_size.merge(&other.file_size);
    }

    /// Events of all kinds.
    #[must_use]
    pub fn events(&self) -> u64 {
        self.kinds.iter().sum()
    }

    /// Events of a kind.
    #[must_use]
    pub fn kind(&self, kind: GatewayEventKind) -> u64 {
        let all = GatewayEventKind::ALL.iter().zip(&self.kinds);
        all.filter(|(one, _)| **one == kind)
            .map(|(_, count)| *count)
            .sum()
    }
}

impl Measured for GatewayNumbers {
    fn measure(&self, metric: Metric, numbers: &Numbers<'_>) -> Sample<'_> {
        let Metric::Gateway(thing) = metric else {
            return measure_run(metric, numbers);
        };
        let count = match thing {
            GatewayThing::Events => self.events(),
            GatewayThing::Stopped => self.refused + self.kind(GatewayEventKind::Blocked),
            GatewayThing::Kind(kind) => self.kind(kind),
        };
        numbers.rate(count)
    }
}

impl Parser<'_> {
    /// What a rule in the words of a gateway measures.
    pub(super) fn gateway_metric(&mut self) -> Result<Metric, RuleError> {
        const EXPECTED: &str = "what to measure: `infected rate`, `blocked rate`, `keyword rate`, \
                                `events rate`, `packets rate`, `bits rate` or drops";
        let first = self.next(EXPECTED)?;
        let word = first.text.to_ascii_lowercase();
        let kind = |word: &str| {
            let mut kinds = GatewayEventKind::ALL.iter();
            kinds.find(|kind| kind.as_str() == word).copied()
        };
        let metric = match word.as_str() {
            "drops" => return Ok(Metric::Drops),
            "events" => Metric::Gateway(GatewayThing::Events),
            "blocked" => Metric::Gateway(GatewayThing::Stopped),
            "packets" => Metric::Rate(Thing::Packets),
            "bits" => Metric::Rate(Thing::Bits),
            other => match kind(other) {
                Some(kind) => Metric::Gateway(GatewayThing::Kind(kind)),
                None => {
                    let message = format!("expected {EXPECTED}, found `{}`", first.text);
                    return self.fault(first.column, message);
                }
            },
        };
        let column = self.column();
        if self.keyword("rate") {
            Ok(metric)
        } else {
            self.fault(column, "expected `rate`")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::alert::{Rule, Scope, Watch};
    use crate::api::{Dropped, TableState};

    #[test]
    fn rules_of_a_gateway() {
        let rule = Rule::of_gateway("infected rate of client 10.0.0.7 > 0 /s").expect("a rule");
        assert_eq!(
            rule.metric,
            Metric::Gateway(GatewayThing::Kind(GatewayEventKind::Infected))
        );
        assert_eq!(rule.scope, Scope::Client([10, 0, 0, 7].into()));
        assert_eq!(rule.min_samples, 0, "a rate of nothing is a rate");
        let application =
            Rule::of_gateway("Blocked rate of application MSN > 5 /s for 2 intervals");
        let application = application.expect("a rule");
        assert_eq!(application.scope, Scope::Application("msn".into()));
        assert_eq!(application.metric, Metric::Gateway(GatewayThing::Stopped));
        for (rule, column, message) in [
            ("p95 > 1 ms", 1, "expected what to measure: `infected rate`"),
            ("table fill > 1 %", 1, "expected what to measure"),
            ("infected share > 1 %", 10, "expected `rate`"),
            (
                "infected rate of host a > 1 /s",
                18,
                "expected `application`, `server` or `client`",
            ),
            ("drops of client 10.0.0.1 > 1", 7, "for the whole run only"),
            ("infected rate > 1 %", 19, "expected `/s`"),
        ] {
            let error = Rule::of_gateway(rule).expect_err(rule);
            assert!(error.message.contains(message), "{rule}: {error}");
            assert_eq!(error.column, column, "{rule}: {error}");
        }
    }

    #[test]
    fn values() {
        let mut scope = GatewayNumbers {
            refused: 6,
            ..GatewayNumbers::default()
        };
        for (kind, count) in GatewayEventKind::ALL.iter().zip(&mut scope.kinds) {
            *count = match kind {
                GatewayEventKind::Decided => 20,
                GatewayEventKind::Blocked => 4,
                GatewayEventKind::Infected => 2,
                _ => 0,
            };
        }
        let dropped = Dropped {
            kernel: 3,
            ..Dropped::default()
        };
        let numbers = Numbers {
            interval_s: 2.0,
            t_ms: 0,
            packets: 100,
            bytes: 1_000,
            dropped: &dropped,
            table: TableState::default(),
        };
        for (rule, want) in [
            ("infected rate > 1 /s", 1.0),
            ("blocked rate > 1 /s", 5.0),
            ("events rate > 1 /s", 13.0),
            ("message rate > 1 /s", 0.0),
            ("packets rate > 1 /s", 50.0),
            ("drops > 1", 3.0),
        ] {
            let mut watch = Watch::new(Rule::of_gateway(rule).expect(rule));
            watch.interval(&scope, &numbers);
            assert_eq!(watch.status().value, Some(want), "{rule}");
        }
    }
}
