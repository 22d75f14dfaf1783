//! Where the rules stand: their states and the changes.

use linkweir_record::human::{counted, span};
use serde::Serialize;

use super::rule::{Metric, Rule};
use super::sample::{Few, Sample};
use super::words::Measured;
use crate::api::{AlertState, AlertStatus, Dropped, TableState};
use crate::text::{figure, percent, to_f64};

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

/// Minimum number of intervals over which samples add up, and after which a rule without data is `no_data`.
const REACH: u64 = 10;

/// A rule began to fire, was resolved, or fired and has no data any more.
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
    /// One line for the log: `alert firing: p95 > 500 ms (812 ms)`.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let status = &self.status;
        let state = status.state.as_str().replace('_', " ");
        write!(f, "alert {state}: {}", status.rule)?;
        match status.value {
            Some(value) => write!(f, " ({})", figure(value, status.unit)),
            None => write!(f, " (too few samples)"),
        }
    }
}

/// Why a rule was never judged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unjudged {
    /// It is over a rate, and no interval was as long as this, nanoseconds.
    NoInterval(u64),
    /// No interval, nor those before it together, had as many samples.
    TooFew(u64),
}

impl std::fmt::Display for Unjudged {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::NoInterval(length) => write!(f, "no whole interval of {}", span(*length)),
            Self::TooFew(needed) => write!(f, "fewer than {}", counted(*needed, "sample")),
        }
    }
}

impl Numbers<'_> {
    /// What a metric stands on in the interval.
    fn measure<'a, C: Measured>(&self, metric: &Metric, counts: &'a C) -> Sample<'a> {
        let rate = |count| {
            let rate = to_f64(count) / self.interval_s;
            rate.is_finite().then_some(rate)
        };
        Sample::Figure(match metric {
            Metric::Of(stat, at, _) => match counts.distributions().get(*at).copied() {
                Some(values) => return Sample::Values(*stat, values),
                None => None,
            },
            Metric::Share(word) => match counts.share(word) {
                Some((part, whole)) => return Sample::Share { part, whole },
                None => None,
            },
            Metric::Rate(word) => match word.as_str() {
                "packets" => rate(self.packets),
                "bits" => rate(self.bytes.saturating_mul(8)),
                word => counts.rate(word).and_then(rate),
            },
            Metric::Drops => Some(to_f64(self.dropped.total())),
            Metric::TableFill => Some(percent(self.table.entries, self.table.capacity)),
            Metric::Active => Some(to_f64(self.table.entries)),
        })
    }
}

/// One rule and where it stands.
#[derive(Debug, Clone)]
pub struct Watch {
    rule: Rule,
    state: AlertState,
    /// Whether it fired and was not resolved since.
    is_open: bool,
    /// Intervals in a row that speak for a change of that; those without data do not count.
    streak: u32,
    /// Intervals so far, and that of the latest value.
    number: u64,
    judged: u64,
    few: Few,
    since_ms: u64,
    value: Option<f64>,
}

impl Watch {
    /// A rule that is not broken yet.
    #[must_use]
    pub fn new(rule: Rule) -> Self {
        Self {
            rule,
            state: AlertState::Ok,
            is_open: false,
            streak: 0,
            number: 0,
            judged: 0,
            few: Few::default(),
            since_ms: 0,
            value: None,
        }
    }

    /// The rule.
    #[must_use]
    pub const fn rule(&self) -> &Rule {
        &self.rule
    }

    /// Why it was not judged in any interval; `interval` is the length of one, nanoseconds.
    pub(crate) fn unjudged(&self, interval: u64) -> Option<Unjudged> {
        if self.number == 0 {
            return Some(Unjudged::NoInterval(interval));
        }
        (self.judged == 0).then(|| Unjudged::TooFew(self.rule.min_samples.max(1)))
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

    /// Takes the numbers of the next interval; says whether the rule began to fire, was resolved, or fired
    /// and has no data any more.
    pub fn interval(&mut self, scope: &impl Measured, numbers: &Numbers<'_>) -> bool {
        self.number += 1;
        self.value = self.judge(numbers.measure(&self.rule.metric, scope));
        let next = match self.value {
            Some(value) => {
                self.judged = self.number;
                self.decide(self.rule.comparison.holds(value, self.rule.threshold))
            }
            None => self.without_data(),
        };
        if next == self.state {
            return false;
        }
        self.state = next;
        self.since_ms = numbers.t_ms;
        match next {
            AlertState::Firing | AlertState::Resolved => true,
            AlertState::NoData => self.is_open,
            AlertState::Ok | AlertState::Pending => false,
        }
    }

    /// Intervals over which samples add up where one has too few.
    fn reach(&self) -> u64 {
        u64::from(self.rule.intervals).max(REACH)
    }

    /// The value of an interval: of its own samples, or where they are too few of those before it too.
    fn judge(&mut self, sample: Sample<'_>) -> Option<f64> {
        let needed = self.rule.min_samples;
        match sample.count() {
            Some(0) => None,
            Some(count) if count < needed => {
                let oldest = (self.number + 1).saturating_sub(self.reach());
                self.few.add(sample, self.number, oldest, needed)
            }
            _ => {
                self.few.clear();
                sample.value()
            }
        }
    }

    /// The state after an interval in which the limit was broken or held.
    fn decide(&mut self, is_broken: bool) -> AlertState {
        if is_broken == self.is_open {
            self.streak = 0;
            return if self.is_open {
                AlertState::Firing
            } else {
                AlertState::Ok
            };
        }
        self.streak += 1;
        if self.streak < self.rule.intervals {
            return match self.state {
                state if self.is_open => state,
                _ => AlertState::Pending,
            };
        }
        self.streak = 0;
        self.is_open = is_broken;
        if is_broken {
            AlertState::Firing
        } else {
            AlertState::Resolved
        }
    }

    /// The state after an interval without data.
    fn without_data(&mut self) -> AlertState {
        if self.number - self.judged >= self.reach() {
            self.streak = 0;
            return AlertState::NoData;
        }
        match self.state {
            AlertState::Resolved => AlertState::Ok,
            state => state,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::{GatewayCounts, HttpCounts};
    use crate::figure::Hidden;
    use AlertState::{Firing, NoData, Ok as Fine, Pending, Resolved};
    use linkweir_record::gateway::GatewayEventKind;

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

    fn value(rule: &str, scope: &HttpCounts) -> Option<f64> {
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
    fn values_of_a_gateway() {
        let mut scope = GatewayCounts {
            refused: 6,
            ..GatewayCounts::default()
        };
        for (kind, count) in [
            (GatewayEventKind::Decided, 20),
            (GatewayEventKind::Blocked, 4),
            (GatewayEventKind::Infected, 2),
        ] {
            scope.kinds.record_n(kind, count);
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
            let mut watch = Watch::new(Rule::read::<GatewayCounts>(rule).expect(rule));
            watch.interval(&scope, &numbers);
            assert_eq!(watch.status().value, Some(want), "{rule}");
        }
    }

    #[test]
    fn values() {
        let mut scope = HttpCounts {
            requests: 50,
            responses: 40,
            unanswered: 10,
            errors_4xx: Hidden(4),
            errors_5xx: Hidden(2),
            orphans: 1,
            retransmissions: 5,
            ..HttpCounts::default()
        };
        (1..=40).for_each(|n| scope.response_time_ns.record(n));
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
        let empty = HttpCounts::default();
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
            let changed = watch.interval(&HttpCounts::default(), &numbers(t as u64, &dropped));
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

    /// What a rule says of one interval after the other, in each so many requests with so many errors.
    fn reported(rule: &str, intervals: impl IntoIterator<Item = (u64, u64)>) -> Vec<String> {
        let mut watch = watch(rule);
        let quiet = Dropped::default();
        let mut reported = Vec::new();
        for (t_ms, (responses, errors_5xx)) in (1..).zip(intervals) {
            let scope = HttpCounts {
                responses,
                errors_5xx: Hidden(errors_5xx),
                ..HttpCounts::default()
            };
            if watch.interval(&scope, &numbers(t_ms, &quiet)) {
                let event = AlertEvent {
                    source: "eth0".into(),
                    status: watch.status(),
                    t_ms,
                };
                reported.push(format!("{t_ms} {event}"));
            }
        }
        reported
    }

    #[test]
    fn one_slow_request_is_no_alert() {
        let mut watch = watch("p95 > 1 ms");
        let quiet = Dropped::default();
        let mut slow = HttpCounts::default();
        slow.response_time_ns.record(5_000_000);
        assert!(!watch.interval(&slow, &numbers(1, &quiet)));
        slow.response_time_ns.record_n(5_000_000, 19);
        assert!(watch.interval(&slow, &numbers(2, &quiet)));
        let mut event = AlertEvent {
            source: "eth0".into(),
            status: watch.status(),
            t_ms: 2,
        };
        assert_eq!(event.to_string(), "alert firing: p95 > 1 ms (5 ms)");
        event.status.value = Some(12_345.0);
        assert_eq!(event.to_string(), "alert firing: p95 > 1 ms (12.3 µs)");
    }

    #[test]
    fn samples_of_quiet_intervals_add_up() {
        let all_fail = [(12, 12), (18, 18), (12, 12), (12, 12)];
        let firing = |at, rule: &str| [format!("{at} alert firing: {rule} (100 %)")];
        for (at, rule) in [
            (2, "5xx share > 5 % for 1 intervals"),
            (3, "5xx share > 5 % for 2 intervals"),
            (4, "5xx share > 5 % for 3 intervals"),
        ] {
            assert_eq!(reported(rule, all_fail), firing(at, rule));
        }
        // As few intervals as it takes, so that what was mended is soon seen to be.
        assert_eq!(
            reported("5xx share > 5 %", [(12, 12), (12, 12), (12, 0), (12, 0)]),
            [
                "2 alert firing: 5xx share > 5 % (100 %)",
                "4 alert resolved: 5xx share > 5 % (0 %)"
            ]
        );
        // Ten intervals at most, or as many as the rule is for.
        assert!(reported("5xx share > 5 %", [(1, 1); 40]).is_empty());
        let long = "5xx share > 5 % for 20 intervals";
        assert_eq!(reported(long, [(1, 1); 60]), firing(39, long));
        // Those of an interval with enough are its own.
        assert!(reported("5xx share > 5 %", [(1, 1), (20, 0), (1, 1), (1, 1)]).is_empty());
        let mut watch = watch("p90 > 1 ms");
        let quiet = Dropped::default();
        let states = [900_000, 2_000_000, 2_000_000].map(|time| {
            let mut scope = HttpCounts::default();
            scope.response_time_ns.record_n(time, 12);
            watch.interval(&scope, &numbers(1, &quiet));
            (
                watch.status().state,
                watch.value.map(|value| (value / 1e4).round()),
            )
        });
        assert_eq!(
            states,
            [(Fine, None), (Firing, Some(200.0)), (Firing, Some(200.0))]
        );
    }

    #[test]
    fn no_data_is_not_resolved() {
        let rule = "5xx share > 5 %";
        let silent = |n| std::iter::repeat_n((0, 0), n);
        let broken = || std::iter::once((30, 30));
        let firing = "1 alert firing: 5xx share > 5 % (100 %)";
        assert_eq!(
            reported(rule, broken().chain(silent(9))),
            [firing],
            "not yet"
        );
        let none = "11 alert no data: 5xx share > 5 % (too few samples)";
        assert_eq!(reported(rule, broken().chain(silent(30))), [firing, none]);
        // It has never been resolved.
        let back = broken().chain(silent(10)).chain(broken());
        let again = "12 alert firing: 5xx share > 5 % (100 %)";
        assert_eq!(reported(rule, back), [firing, none, again]);
        let mended = broken().chain(silent(10)).chain([(30, 0)]);
        let resolved = "12 alert resolved: 5xx share > 5 % (0 %)";
        assert_eq!(reported(rule, mended), [firing, none, resolved]);
        // A rule that did not fire has nothing to say of it, but stands so.
        assert!(reported(rule, silent(30)).is_empty());
        let mut watch = watch(rule);
        let quiet = Dropped::default();
        for t in 0..10 {
            watch.interval(&HttpCounts::default(), &numbers(t, &quiet));
        }
        assert_eq!(watch.status().state, NoData);
        assert_eq!(watch.status().state.as_str(), "no_data");
        // Without samples to need, silence is a value.
        assert_eq!(
            reported("requests rate < 1 /s", silent(2)),
            ["1 alert firing: requests rate < 1 /s (0 /s)"]
        );
    }
}
