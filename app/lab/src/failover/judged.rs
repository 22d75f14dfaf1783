//! What everybody says of an outage of the gateway.

use super::Settings;
use super::outage::Outage;
use super::part::{Fail, Part, Planted};
use super::records::{Ends, Event, Flow, Session, Transaction};
use crate::program::Ended;
use crate::report::{Rule, Table};
use linkweir_testkit::load::log::Visit;
use std::collections::{BTreeMap, BTreeSet};

/// Events are written ten times a second; a killed gateway takes those of the last time with it.
/// Twice that: nobody promises it when the machine is busy.
pub(super) const UNWRITTEN_S: f64 = 0.2;

/// What was planted of a kind.
pub(super) struct Carried {
    pub(super) kind: Planted,
    pub(super) load: Ended,
    pub(super) sessions: Vec<Session>,
}

/// Everything that was said.
pub(super) struct Observations<'a> {
    pub(super) part: Part,
    pub(super) fail: Fail,
    pub(super) settings: &'a Settings,
    pub(super) outage: &'a Outage,
    pub(super) load: &'a Ended,
    pub(super) sessions: &'a [Session],
    pub(super) carried: &'a [Carried],
    pub(super) visits: &'a [Visit],
    pub(super) http: &'a Ended,
    pub(super) transactions: Vec<Transaction>,
    pub(super) flows: &'a Ended,
    pub(super) connections: Vec<Flow>,
    /// What the kernel knows: connections and their marks.
    pub(super) known: Option<BTreeMap<Ends, u32>>,
    /// The gateway that was started again.
    pub(super) gateway: &'a Ended,
    /// Of both lives.
    pub(super) events: [Vec<Event>; 2],
}

/// A number of things.
pub(super) fn count(number: usize) -> Option<u64> {
    u64::try_from(number).ok()
}

impl Observations<'_> {
    /// Its tables.
    pub(super) fn tables(&self) -> [Table; 4] {
        [
            self.traffic(),
            self.decisions(),
            self.meanwhile(),
            self.planted(),
        ]
    }

    pub(super) fn title(&self, what: &str) -> String {
        format!("{}: {what}", self.part.name)
    }

    /// All generators together.
    fn sent(&self, way: &str) -> u64 {
        let carried = self.carried.iter().map(|one| one.load.count(way));
        self.load.count(way) + carried.sum::<u64>()
    }

    fn failed(&self) -> u64 {
        let carried = self.carried.iter().map(|one| one.load.sum("load/failed"));
        self.load.sum("load/failed") + carried.sum::<u64>()
    }

    fn traffic(&self) -> Table {
        let mut table = Table::new(
            &self.title("traffic"),
            &["load", "nginx", "http", "flows", "kernel"],
        );
        let served = count(self.visits.len());
        let http = |what: &str| Some(self.http.count(&format!("http/{what}")));
        // A stray segment of a connection that is over is a record of its own.
        let seen: BTreeSet<Ends> = self.connections.iter().map(Flow::ends).collect();
        let seen = count(seen.len());
        let known = self.known.as_ref().and_then(|known| count(known.len()));
        let tried = Some(self.sent("load/connections"));
        let [connections, requests] = match self.fail {
            // While there is no gateway, what is sent does not arrive.
            Fail::Closed => [Rule::Falling(0.0); 2],
            Fail::Open => [Rule::Same; 2],
        };
        table.count(
            "connections: tried, and behind the gateway",
            connections,
            &[tried, None, None, seen, None],
        );
        if known.is_some() {
            table.count(
                "connections behind the gateway",
                Rule::Same,
                &[None, None, None, seen, known],
            );
        }
        table.count(
            "requests: sent, and answered",
            requests,
            &[Some(self.sent("load/requests")), served, None, None, None],
        );
        table.count(
            "answers",
            Rule::Same,
            &[None, served, http("transactions"), None, None],
        );
        table.count(
            "answers that did not arrive, one at most for a session that failed",
            Rule::Falling(0.0),
            &[
                Some(self.failed()),
                served.map(|served| served.saturating_sub(self.sent("load/responses"))),
                None,
                None,
                None,
            ],
        );
        let lost = [self.load, self.http, self.flows].map(|ended| Some(ended.sum("dropped")));
        let [load, http, flows] = lost;
        table.count(
            "losses of observers",
            Rule::AtMost(0.0),
            &[load, None, http, flows, None],
        );
        table
    }

    /// Connections that a gateway decided about, as its events say.
    fn decided(&self, life: usize) -> BTreeSet<Ends> {
        let events = self.events.get(life).into_iter().flatten();
        let decided = events.filter(|event| event.event == "decided");
        let ends = decided.filter_map(Event::ends);
        ends.filter(|(client, _)| self.part.has(*client)).collect()
    }

    /// How many sessions of all kinds begin while events wait to be written.
    pub(super) fn unwritten(&self) -> f64 {
        let kinds = u32::try_from(self.carried.len()).unwrap_or(u32::MAX);
        let rate = self.settings.rate + self.settings.planted * f64::from(kinds);
        // Three standard deviations of a Poisson process above the mean.
        let mean = rate * UNWRITTEN_S;
        (mean + 3.0 * mean.sqrt()).ceil()
    }

    fn decisions(&self) -> Table {
        let mut table = Table::new(
            &self.title("decisions"),
            &["announced", "kernel", "wire", "events"],
        );
        let wire: BTreeSet<Ends> = self.connections.iter().map(Flow::ends).collect();
        let (first, second) = (self.decided(0), self.decided(1));
        let told: BTreeSet<Ends> = first.union(&second).copied().collect();
        // Without the kernel's table the events have to do.
        let decided = self.known.as_ref().map_or_else(
            || told.clone(),
            |known| {
                let marked = known.iter().filter(|(_, mark)| **mark != 0);
                marked.map(|(ends, _)| *ends).collect()
            },
        );
        table.count(
            "decided by the first gateway",
            Rule::Shown,
            &[None, None, None, count(first.len())],
        );
        table.count(
            "decided by the second: its summary, its events",
            Rule::Same,
            &[
                Some(self.gateway.count("gateway/events/decided")),
                None,
                None,
                count(second.len()),
            ],
        );
        table.count(
            "decided, and the event went with the first gateway",
            Rule::AtMost(self.unwritten()),
            &[None, None, None, count(decided.difference(&told).count())],
        );
        table.count(
            "in an event, and not decided",
            Rule::AtMost(0.0),
            &[None, None, None, count(told.difference(&decided).count())],
        );
        let unseen = count(wire.difference(&decided).count());
        if let Some(known) = &self.known {
            let unmarked = known.values().filter(|mark| **mark == 0).count();
            table.count(
                "never decided",
                Rule::Same,
                &[None, count(unmarked), unseen, None],
            );
        }
        match self.fail {
            Fail::Open => self.announced_as_undecided(&mut table, unseen, &second),
            Fail::Closed => self.announced_as_resumed(&mut table),
        }
        table
    }

    /// The gateway that is started again says how many connections have no decision: those that get
    /// none any more, and those that it decides in their middle.
    fn announced_as_undecided(
        &self,
        table: &mut Table,
        unseen: Option<u64>,
        second: &BTreeSet<Ends>,
    ) {
        let announced = Some(self.gateway.count("gateway/counts/undecided_at_start"));
        let began_before = self
            .connections
            .iter()
            .filter(|one| one.began() <= self.outage.serving && second.contains(&one.ends()));
        let later = count(began_before.count());
        table.count(
            "undecided when the second began: at least those never decided",
            Rule::Falling(0.0),
            &[announced, None, unseen, None],
        );
        table.count(
            "and not more than these and those decided in their middle",
            Rule::AtMost(0.0),
            &[
                unseen
                    .zip(later)
                    .zip(announced)
                    .map(|((unseen, later), announced)| announced.saturating_sub(unseen + later)),
                None,
                None,
                None,
            ],
        );
    }

    /// Inspected connections that the new gateway meets in their middle are reset, and counted.
    fn announced_as_resumed(&self, table: &mut Table) {
        let told: BTreeSet<Ends> = self.stopped_with_an_event();
        let all = self.carried.iter().flat_map(|one| &one.sessions);
        let all = all.chain(self.sessions);
        // What the first one reset in its last moments is not meant.
        let all = all.filter(|one| one.ended_ts_ns >= self.outage.gone);
        let silent = all.filter(|one| one.is_reset() && !told.contains(&one.ends()));
        table.count(
            "met in their middle by the second: reset without an event",
            Rule::Falling(0.0),
            &[
                Some(self.gateway.count("gateway/counts/resumed_connections")),
                None,
                None,
                count(silent.count()),
            ],
        );
    }

    /// Connections of which an event says that something in them may not pass.
    fn stopped_with_an_event(&self) -> BTreeSet<Ends> {
        let kinds = [Planted::Keyword, Planted::Virus].map(Planted::event);
        let events = self.events.iter().flatten();
        let events = events.filter(|event| kinds.contains(&event.event.as_str()));
        events.filter_map(Event::ends).collect()
    }
}
