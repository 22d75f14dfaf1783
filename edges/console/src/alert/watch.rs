//! Where the rules stand: their states and the changes.

use linkweir_sketch::LogLinear;
use serde::Serialize;

use super::rule::{Metric, Part, Rule, Thing};
use crate::api::{AlertState, AlertStatus, Dropped, TableState};
use crate::text::{percent, to_f64};

/// What the transactions of a scope came to in an interval.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ScopeNumbers {
    /// Requests whose fate became known.
    pub requests: u64,
    /// Final responses.
    pub responses: u64,
    /// Requests without a response.
    pub unanswered: u64,
    /// Responses without a request.
    pub orphans: u64,
    /// Retransmitted heads.
    pub retransmissions: u64,
    /// Responses with 4xx.
    pub errors_4xx: u64,
    /// Responses with 5xx.
    pub errors_5xx: u64,
    /// Response times, nanoseconds.
    pub response_time: LogLinear,
}

/// The numbers of a closed interval for one rule.
#[derive(Debug, Clone, Copy)]
pub struct Numbers<'a> {
    /// Length of the interval, seconds.
    pub interval_s: f64,
    /// End of the interval, milliseconds since the epoch.
    pub t_ms: u64,
    /// Packets of the run.
    pub packets: u64,
    /// Bytes of the run.
    pub bytes: u64,
    /// What was lost.
    pub dropped: &'a Dropped,
    /// Fill of the table.
    pub table: TableState,
}

/// A rule began to fire or was resolved.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct AlertEvent {
    /// What is watched: an interface, a file.
    pub source: String,
    /// The rule, its new state, value and limit.
    #[serde(flatten)]
    pub status: AlertStatus,
    /// End of the interval that brought the change, milliseconds since the epoch.
    pub t_ms: u64,
}

impl std::fmt::Display for AlertEvent {
    /// One line for the log: `alert firing: p95 > 500 ms (812.4 ms)`.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let status = &self.status;
        write!(f, "alert {}: {}", status.state.as_str(), status.rule)?;
        match status.value {
            Some(value) => write!(f, " ({})", human(value, status.unit)),
            None => write!(f, " (too few samples)"),
        }
    }
}

/// A value with its unit, as a person writes it.
pub(crate) fn human(value: f64, unit: &str) -> String {
    match unit {
        "ns" if value >= 1e9 => format!("{:.3} s", value / 1e9),
        "ns" if value >= 1e6 => format!("{:.1} ms", value / 1e6),
        "ns" if value >= 1e3 => format!("{:.1} us", value / 1e3),
        "ns" => format!("{value:.0} ns"),
        "%" => format!("{value:.2} %"),
        "b/s" if value >= 1e9 => format!("{:.2} Gb/s", value / 1e9),
        "b/s" if value >= 1e6 => format!("{:.2} Mb/s", value / 1e6),
        "b/s" if value >= 1e3 => format!("{:.1} kb/s", value / 1e3),
        "" => format!("{value:.0}"),
        _ => format!("{value:.1} {unit}"),
    }
}

/// What a rule can measure.
pub trait Measured {
    /// The value of a metric and how many samples it stands on; `None` of a metric that these numbers
    /// do not have, and where there is nothing to measure.
    fn measure(&self, metric: Metric, numbers: &Numbers<'_>) -> (Option<f64>, u64);
}

impl Numbers<'_> {
    /// So many in a second.
    pub(super) fn rate(&self, count: u64) -> Option<f64> {
        let rate = to_f64(count) / self.interval_s;
        rate.is_finite().then_some(rate)
    }
}

/// What is measured of a run, whatever its records are.
pub(super) fn measure_run(metric: Metric, numbers: &Numbers<'_>) -> (Option<f64>, u64) {
    let value = match metric {
        Metric::Rate(Thing::Packets) => numbers.rate(numbers.packets),
        Metric::Rate(Thing::Bits) => numbers.rate(numbers.bytes.saturating_mul(8)),
        Metric::Drops => Some(to_f64(numbers.dropped.total())),
        Metric::TableFill => Some(percent(numbers.table.entries, numbers.table.capacity)),
        _ => return (None, 0),
    };
    (value, u64::MAX)
}

impl Measured for ScopeNumbers {
    fn measure(&self, metric: Metric, numbers: &Numbers<'_>) -> (Option<f64>, u64) {
        let times = &self.response_time;
        let time = |value: Option<u64>| (value.map(to_f64), times.count());
        let share = |part: u64, whole: u64| ((whole > 0).then(|| percent(part, whole)), whole);
        match metric {
            Metric::Quantile(q) => time(times.quantile(q)),
            Metric::Min => time(times.min()),
            Metric::Mean => time(times.mean()),
            Metric::Max => time(times.max()),
            Metric::Rate(thing) => {
                let count = match thing {
                    Thing::Requests => self.requests,
                    Thing::Responses => self.responses,
                    Thing::Unanswered => self.unanswered,
                    Thing::Errors4xx => self.errors_4xx,
                    Thing::Errors5xx => self.errors_5xx,
                    Thing::Packets | Thing::Bits => return measure_run(metric, numbers),
                };
                (numbers.rate(count), u64::MAX)
            }
            Metric::Share(part) => match part {
                Part::Errors4xx => share(self.errors_4xx, self.responses),
                Part::Errors5xx => share(self.errors_5xx, self.responses),
                Part::Unanswered => share(self.unanswered, self.requests),
                Part::Orphans => share(self.orphans, self.responses),
                Part::Retransmissions => share(self.retransmissions, self.requests),
            },
            Metric::Drops | Metric::TableFill | Metric::Flow(_) | Metric::Gateway(_) => {
                measure_run(metric, numbers)
            }
        }
    }
}

/// One rule and where it stands.
#[derive(Debug, Clone)]
pub struct Watch {
    rule: Rule,
    state: AlertState,
    /// Intervals in a row that speak for leaving the state.
    streak: u32,
    since_ms: u64,
    value: Option<f64>,
}

impl Watch {
    /// A rule that is not broken yet.
    #[must_use]
    pub const fn new(rule: Rule) -> Self {
        Self {
            rule,
            state: AlertState::Ok,
            streak: 0,
            since_ms: 0,
            value: None,
        }
    }

    /// The rule.
    #[must_use]
    pub const fn rule(&self) -> &Rule {
        &self.rule
    }

    /// Where it stands.
    #[must_use]
    pub fn status(&self) -> AlertStatus {
        AlertStatus {
            rule: self.rule.text.clone(),
            state: self.state,
            value: self.value,
            threshold: self.rule.threshold,
            unit: self.rule.metric.unit(),
            since_ms: self.since_ms,
        }
    }

    /// Takes the numbers of the next interval; says whether the rule began to fire or was resolved.
    pub fn interval(&mut self, scope: &impl Measured, numbers: &Numbers<'_>) -> bool {
        let (value, samples) = scope.measure(self.rule.metric, numbers);
        self.value = value.filter(|_| samples >= self.rule.min_samples);
        let is_broken = self
            .value
            .is_some_and(|value| self.rule.comparison.holds(value, self.rule.threshold));
        let next = self.next_state(is_broken);
        if next == self.state {
            return false;
        }
        self.state = next;
        self.since_ms = numbers.t_ms;
        matches!(next, AlertState::Firing | AlertState::Resolved)
    }

    fn next_state(&mut self, is_broken: bool) -> AlertState {
        let needed = self.rule.intervals;
        match (self.state, is_broken) {
            (AlertState::Firing, true) => {
                self.streak = 0;
                AlertState::Firing
            }
            (AlertState::Firing, false) => {
                self.streak += 1;
                if self.streak < needed {
                    return AlertState::Firing;
                }
                self.streak = 0;
                AlertState::Resolved
            }
            (_, false) => {
                self.streak = 0;
                AlertState::Ok
            }
            (_, true) => {
                self.streak += 1;
                if self.streak < needed {
                    return AlertState::Pending;
                }
                self.streak = 0;
                AlertState::Firing
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use AlertState::{Firing, Ok as Fine, Pending, Resolved};

    fn watch(rule: &str) -> Watch {
        Watch::new(rule.parse().unwrap())
    }

    fn numbers(t_ms: u64, dropped: &Dropped) -> Numbers<'_> {
        Numbers {
            interval_s: 2.0,
            t_ms,
            packets: 100,
            bytes: 10_000,
            dropped,
            table: TableState {
                entries: 1,
                capacity: 4,
            },
        }
    }

    fn value(rule: &str, scope: &ScopeNumbers) -> Option<f64> {
        let mut watch = watch(rule);
        let dropped = Dropped {
            kernel: 3,
            sink: 4,
            ..Dropped::default()
        };
        watch.interval(scope, &numbers(0, &dropped));
        watch.status().value
    }

    #[test]
    fn values() {
        let mut scope = ScopeNumbers {
            requests: 50,
            responses: 40,
            unanswered: 10,
            errors_4xx: 4,
            errors_5xx: 2,
            orphans: 1,
            retransmissions: 5,
            ..ScopeNumbers::default()
        };
        (1..=40).for_each(|n| scope.response_time.record(n));
        for (rule, want) in [
            ("requests rate > 1 /s", 25.0),
            ("unanswered share > 1 %", 20.0),
            ("4xx share > 1 %", 10.0),
            ("5xx rate > 1 /s", 1.0),
            ("orphans share > 1 %", 2.5),
            ("retransmissions share > 1 %", 10.0),
            ("packets rate > 1 /s", 50.0),
            ("bits rate > 1 /s", 40_000.0),
            ("drops > 1", 7.0),
            ("table fill > 1 %", 25.0),
            ("p50 > 1 ns", 20.0),
            ("p95 > 1 ns", 38.0),
            ("mean > 1 ns", 20.0),
            ("min > 1 ns", 1.0),
            ("max > 1 ns", 40.0),
        ] {
            assert_eq!(value(rule, &scope), Some(want), "{rule}");
        }
        // 40 samples are too few for p99 unless the rule says otherwise.
        assert_eq!(value("p99 > 1 ns", &scope), None);
        assert_eq!(value("p99 > 1 ns min 40 samples", &scope), Some(40.0));
        let empty = ScopeNumbers::default();
        assert_eq!(value("5xx share > 0 % min 0 samples", &empty), None);
        assert_eq!(value("p50 < 1 s min 0 samples", &empty), None);
        assert_eq!(value("requests rate < 1 /s", &empty), Some(0.0));
    }

    #[test]
    fn states_and_hysteresis() {
        let mut watch = watch("drops > 0 for 2 intervals");
        let mut seen = Vec::new();
        for (t, dropped) in [0, 1, 0, 1, 1, 1, 0, 1, 0, 0, 0, 1].into_iter().enumerate() {
            let dropped = Dropped {
                ring: dropped,
                ..Dropped::default()
            };
            let changed = watch.interval(&ScopeNumbers::default(), &numbers(t as u64, &dropped));
            let status = watch.status();
            seen.push((status.state, changed, status.since_ms));
        }
        assert_eq!(
            seen,
            [
                (Fine, false, 0),
                (Pending, false, 1),
                (Fine, false, 2),
                (Pending, false, 3),
                (Firing, true, 4),
                (Firing, false, 4),
                (Firing, false, 4),
                (Firing, false, 4),
                (Firing, false, 4),
                (Resolved, true, 9),
                (Fine, false, 10),
                (Pending, false, 11),
            ]
        );
    }

    #[test]
    fn one_slow_request_is_no_alert_and_silence_resolves() {
        let mut watch = watch("p95 > 1 ms");
        let quiet = Dropped::default();
        let mut slow = ScopeNumbers::default();
        slow.response_time.record(5_000_000);
        assert!(!watch.interval(&slow, &numbers(1, &quiet)));
        slow.response_time.record_n(5_000_000, 19);
        assert!(watch.interval(&slow, &numbers(2, &quiet)));
        let event = AlertEvent {
            source: "eth0".into(),
            status: watch.status(),
            t_ms: 2,
        };
        assert_eq!(event.to_string(), "alert firing: p95 > 1 ms (5.0 ms)");
        assert!(watch.interval(&ScopeNumbers::default(), &numbers(3, &quiet)));
        assert_eq!(watch.status().state, Resolved);
    }
}
