//! What each of them says, side by side.

use super::Seen;
use super::settings::Settings;
use crate::program::Ended;
use crate::report::{Report, Rule, Table, Unit};
use linkweir_testkit::load::log::Visit;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// Everything that was said.
pub(super) struct Observations<'a> {
    pub(super) settings: &'a Settings,
    pub(super) load: &'a Ended,
    /// The generators of what is planted.
    pub(super) carriers: &'a [Ended],
    /// Why nothing was searched for viruses, where something should have been.
    pub(super) without: Option<&'a str>,
    pub(super) visits: &'a [Visit],
    pub(super) seen: &'a Seen,
    pub(super) gateway: &'a Ended,
}

impl Observations<'_> {
    /// The tables.
    pub(super) fn report(&self) -> Report {
        let mut report = Report::default();
        let settings = self.settings;
        report.fact(
            "arrivals",
            format!(
                "MMPP `{}`, {} sessions/s for {:?}",
                settings.model, settings.rate, settings.duration
            ),
        );
        report.fact(
            "clients",
            format!("{}, guests {}", settings.clients, settings.guests),
        );
        let addresses: BTreeSet<_> = self.visits.iter().map(|visit| visit.client).collect();
        report.fact("client addresses that nginx saw", addresses.len());
        report.tables = vec![
            self.sessions(),
            self.traffic(),
            self.codes(),
            self.planted(),
            self.losses(),
        ];
        report.tables.retain(|table| !table.rows.is_empty());
        report.notes.extend(self.without.map(str::to_owned));
        report.notes.extend(self.invalid());
        report
    }

    /// What the generator says against its own run: times are then those of this machine.
    pub(super) fn invalid(&self) -> Option<String> {
        let reasons = self.load.summary.pointer("/load/invalid")?.as_array()?;
        let reasons: Vec<&str> = reasons.iter().filter_map(Value::as_str).collect();
        let text = format!("The generator says INVALID: {}", reasons.join("; "));
        (!reasons.is_empty()).then_some(text)
    }

    /// All generators together.
    fn sent(&self, way: &str) -> u64 {
        let carriers = self.carriers.iter().map(|carrier| carrier.count(way));
        self.load.count(way) + carriers.sum::<u64>()
    }

    /// Planted transfers: each has an answer that does not arrive.
    fn blocked(&self) -> u64 {
        let carriers = self.carriers.iter();
        carriers.map(|carrier| carrier.count("load/started")).sum()
    }

    fn sessions(&self) -> Table {
        let mut table = Table::new("sessions", &["planned", "started", "completed", "failed"]);
        let load = |what: &str| Some(self.load.count(&format!("load/{what}")));
        let failed = Some(self.load.sum("load/failed"));
        table.count(
            "by the schedule",
            Rule::Same,
            &[load("planned"), load("started"), load("completed"), None],
        );
        table.count("  of them", Rule::AtMost(0.0), &[None, None, None, failed]);
        let lag = |part: &str| {
            let micros = self.load.number(&format!("load/schedule_lag_us/{part}"));
            micros.map(|micros| micros / 1e6)
        };
        for (name, part) in [("started late by (median)", "p50"), ("  99 %", "p99")] {
            table.row(
                name,
                Unit::Seconds,
                Rule::Shown,
                &[None, lag(part), None, None],
            );
        }
        table
    }

    fn traffic(&self) -> Table {
        let mut table = Table::new("traffic", &["load", "nginx", "http", "flows", "gateway"]);
        let http = |what: &str| Some(self.seen.http.count(&format!("http/{what}")));
        let flows = |what: &str| self.seen.flows.count(&format!("flows/{what}"));
        let served = u64::try_from(self.visits.len()).ok();
        let connections: BTreeSet<u64> = self.visits.iter().map(|visit| visit.connection).collect();
        let connections = u64::try_from(connections.len()).ok();
        let classified = self.gateway.count("gateway/applications/http/connections");
        table.count(
            "connections",
            Rule::Same,
            &[
                Some(self.sent("load/connections")),
                connections,
                None,
                // A segment that came late, after the end, is no connection.
                Some(flows("tcp_complete") + flows("tcp_incomplete") - flows("tcp_midstream")),
                Some(classified),
            ],
        );
        table.count(
            "requests",
            Rule::Same,
            &[
                Some(self.sent("load/requests")),
                served,
                http("requests"),
                None,
                None,
            ],
        );
        let blocked = self.blocked();
        table.count(
            "responses, with those that were blocked",
            Rule::Same,
            &[
                Some(self.sent("load/responses") + blocked),
                served,
                http("transactions"),
                None,
                None,
            ],
        );
        table
    }

    fn codes(&self) -> Table {
        let mut table = Table::new("status codes", &["load", "nginx", "http"]);
        let mut served: BTreeMap<u16, u64> = BTreeMap::new();
        for visit in self.visits {
            *served.entry(visit.status).or_default() += 1;
        }
        let blocked = self.blocked();
        for (code, count) in served {
            let at_client = self.sent(&format!("load/status_codes/{code}"));
            let all = if code == 200 {
                at_client + blocked
            } else {
                at_client
            };
            let http = self.seen.http.count(&format!("http/status_codes/{code}"));
            let what = if code == 200 && blocked > 0 {
                "200, with those that were blocked".to_owned()
            } else {
                code.to_string()
            };
            table.count(&what, Rule::Same, &[Some(all), Some(count), Some(http)]);
        }
        table
    }

    fn planted(&self) -> Table {
        let mut table = Table::new("planted transfers", &["sent", "arrived", "caught"]);
        for carrier in self.carriers {
            let name = &carrier.name;
            let event = if name == "virus" { "infected" } else { name };
            let sent = Some(carrier.count("load/started"));
            let arrived = Some(carrier.count("load/completed"));
            let caught = Some(self.gateway.count(&format!("gateway/events/{event}")));
            table.count(
                &format!("{name}: caught"),
                Rule::Same,
                &[sent, None, caught],
            );
            table.count(
                &format!("{name}: arrived"),
                Rule::AtMost(0.0),
                &[None, arrived, None],
            );
        }
        table
    }

    /// What no observer may have lost.
    fn losses(&self) -> Table {
        let mut table = Table::new("losses of observers", &["load", "http", "flows", "gateway"]);
        let dropped = [self.load, &self.seen.http, &self.seen.flows, self.gateway]
            .map(|ended| Some(ended.sum("dropped")));
        table.count("packets and records", Rule::AtMost(0.0), &dropped);
        table
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use linkweir_testkit::load::log;
    use serde_json::json;
    use std::time::Duration;

    fn ended(name: &str, summary: Value) -> Ended {
        Ended {
            name: name.to_owned(),
            summary,
        }
    }

    /// Two sessions of one request each and a keyword, as everybody saw them; `requests` is what http
    /// says.
    fn report(requests: u64, arrived: u64) -> Report {
        let settings = Settings {
            duration: Duration::from_secs(1),
            rate: 1.0,
            model: "web".to_owned(),
            model_bin: Duration::from_millis(1),
            clients: "10.16.0.0/14".to_owned(),
            guests: "10.30.0.0/16".to_owned(),
            planted_keywords: 1,
            planted_viruses: 0,
            line: None,
        };
        let line = |connection: u64| {
            format!(
                "1.0 10.16.0.{connection} 5000 {connection} 1 200 300 0.001 GET /small HTTP/1.1\n"
            )
        };
        let load = |planned: u64, responses: u64| {
            json!({ "dropped": {}, "load": {
                "planned": planned, "started": planned, "completed": responses, "failed": {},
                "connections": planned, "requests": planned, "responses": responses,
                "status_codes": { "200": responses },
            }})
        };
        let observations = Observations {
            settings: &settings,
            load: &ended("load", load(2, 2)),
            carriers: &[ended("keyword", load(1, arrived))],
            without: None,
            visits: &log::read(&(1..=3).map(line).collect::<String>()),
            seen: &Seen {
                http: ended(
                    "http",
                    json!({ "dropped": { "kernel": 0 }, "http": {
                        "requests": requests, "transactions": 3, "status_codes": { "200": 3 },
                    }}),
                ),
                flows: ended(
                    "flows",
                    json!({ "flows": { "tcp_complete": 2, "tcp_incomplete": 1 } }),
                ),
            },
            gateway: &ended(
                "gateway",
                json!({ "gateway": {
                    "applications": { "http": { "connections": 3 } }, "events": { "keyword": 1 },
                }}),
            ),
        };
        observations.report()
    }

    #[test]
    fn what_all_saw_alike_agrees() {
        let report = report(3, 0);
        assert!(report.agree(), "{report}");
        assert!(report.compared().0 >= 7, "{report}");
    }

    #[test]
    fn a_request_that_one_missed_is_told() {
        let report = report(2, 0);
        assert_eq!(report.compared().1, 1, "{report}");
        assert!(report.to_string().contains("\n1 of "));
    }

    #[test]
    fn a_keyword_that_arrives_is_told() {
        let report = report(3, 1);
        assert!(!report.agree(), "{report}");
    }
}
