//! What each of them says, side by side.

use std::collections::{BTreeMap, BTreeSet};

use linkweir_testkit::load::log::Visit;

use super::planted::Planted;
use super::settings::Settings;
use super::witnesses::Seen;
use crate::findings::{Findings, Rule, Table};
use crate::program::Ended;

/// Everything that was said.
pub(super) struct Account<'a> {
    pub(super) settings: &'a Settings,
    pub(super) load: &'a Ended,
    /// The generators of what is planted.
    pub(super) carriers: &'a [Ended],
    pub(super) planted: &'a Planted,
    pub(super) visits: &'a [Visit],
    pub(super) seen: &'a Seen,
    pub(super) gateway: &'a Ended,
}

impl Account<'_> {
    /// The tables.
    pub(super) fn findings(&self) -> Findings {
        let mut findings = Findings::default();
        let settings = self.settings;
        findings.fact(
            "arrivals",
            format!(
                "MMPP `{}`, {} sessions/s for {:?}",
                settings.model, settings.rate, settings.duration
            ),
        );
        findings.fact(
            "clients",
            format!("{}, guests {}", settings.clients, settings.guests),
        );
        let addresses: BTreeSet<_> = self.visits.iter().map(|visit| visit.client).collect();
        findings.fact("client addresses that nginx saw", addresses.len());
        findings.tables = vec![self.traffic(), self.codes(), self.planted(), self.losses()];
        findings.notes.extend(self.planted.without.clone());
        findings
    }

    /// All generators together.
    fn sent(&self, way: &str) -> u64 {
        let carriers = self.carriers.iter().map(|carrier| carrier.count(way));
        self.load.count(way) + carriers.sum::<u64>()
    }

    fn traffic(&self) -> Table {
        let mut table = Table::new("traffic", &["load", "nginx", "http", "flows", "gateway"]);
        let http = |what: &str| Some(self.seen.http.count(&format!("http/{what}")));
        let flows = |what: &str| self.seen.flows.count(&format!("flows/{what}"));
        let load = |what: &str| Some(self.load.count(&format!("load/{what}")));
        let served = u64::try_from(self.visits.len()).ok();
        let connections: BTreeSet<u64> = self.visits.iter().map(|visit| visit.connection).collect();
        let connections = u64::try_from(connections.len()).ok();
        let classified = self.gateway.count("gateway/applications/http/connections");
        table.count(
            "sessions planned",
            Rule::Shown,
            &[load("planned"), None, None, None, None],
        );
        table.count(
            "sessions completed, as planned",
            Rule::Same,
            &[load("completed"), load("planned")],
        );
        table.count(
            "connections",
            Rule::Same,
            &[
                Some(self.sent("load/connections")),
                connections,
                None,
                Some(flows("tcp_complete") + flows("tcp_incomplete")),
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
        // What is planted has an answer that does not arrive.
        let blocked = u64::from(self.planted.keywords + self.planted.viruses);
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
        let blocked = u64::from(self.planted.keywords + self.planted.viruses);
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
        let mut table = Table::new("planted", &["sent", "arrived", "caught"]);
        let kinds = [
            ("keyword", "keyword", self.planted.keywords),
            ("virus", "infected", self.planted.viruses),
        ];
        for (name, event, count) in kinds.into_iter().filter(|(_, _, count)| *count > 0) {
            let carrier = self.carriers.iter().find(|carrier| carrier.name == name);
            let arrived = carrier.map(|carrier| carrier.count("load/completed"));
            let caught = self.gateway.count(&format!("gateway/events/{event}"));
            table.count(
                &format!("{name}: caught"),
                Rule::Same,
                &[Some(u64::from(count)), None, Some(caught)],
            );
            table.count(
                &format!("{name}: arrived"),
                Rule::AtMost(0.0),
                &[None, arrived, None],
            );
        }
        table
    }

    /// What no witness may have lost.
    fn losses(&self) -> Table {
        let mut table = Table::new("lost by a witness", &["load", "http", "flows", "gateway"]);
        let dropped = [self.load, &self.seen.http, &self.seen.flows, self.gateway]
            .map(|ended| Some(ended.sum("dropped")));
        table.count("packets and records", Rule::AtMost(0.0), &dropped);
        table
    }
}
