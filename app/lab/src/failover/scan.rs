//! The scanner is killed and started again, while everything is scanned: half of it by a rule that
//! fails closed, half of it by one that fails open.

use super::outage::Outage;
use super::part::{Part, Planted};
use super::records::{self, Ends, Event, Session};
use super::{Field, Settings, sessions};
use crate::error::LabError;
use crate::gateway::{self, Gateway};
use crate::program::Ended;
use crate::report::{Rule, Table};
use crate::services::Scanner;
use crate::testbed::Testbed;
use linkweir_testkit::gateway::Place;
use serde_json::Value;
use std::collections::BTreeSet;
use std::time::Duration;

/// Files in turn: one that fits into a packet, and one of several.
const SCRIPT: &str = "/small\n\n/file\n";

/// How long the gateway may take until it has its scanner again.
const TIMEOUT: Duration = Duration::from_secs(10);

/// Runs it.
pub(super) fn run(
    settings: &Settings,
    field: &mut Field<'_, '_>,
    scanner: &mut Scanner,
) -> Result<(), LabError> {
    let part = Part {
        number: 3,
        name: "clamd killed",
        files: "clamd",
    };
    field.testbed.tell(part.name);
    let testbed = &*field.testbed;
    let policy = policy(testbed, part, scanner);
    let gateway = Gateway::start_as(
        testbed,
        &policy,
        &part.file("gateway"),
        &part.file("events.jsonl"),
    )?;
    let load = part.load_of(testbed, settings, SCRIPT)?;
    let carrier = part.carry(testbed, settings, Planted::Virus)?;
    let clamd = &mut scanner.clamd;
    let (outage, ()) = Outage::of(testbed, settings, (), |()| clamd.kill(), || Ok(()))?;
    let started = clamd.restart();
    started.map_err(|error| LabError::program("clamd", error))?;
    // The gateway tries again, less and less often: two seconds apart in the end.
    testbed.wait("the gateway's scanner", TIMEOUT, || has_scanner(testbed))?;
    let outage = outage.until_now();
    let load = Part::wait(testbed, settings, load)?;
    let carrier = Part::wait(testbed, settings, carrier)?;
    let gateway = gateway.finish(testbed)?;
    let observations = Observations {
        part,
        outage: &outage,
        sessions: records::read(testbed, part, "load.jsonl")?,
        carried: records::read(testbed, part, "virus.jsonl")?,
        events: records::read(testbed, part, "events.jsonl")?,
        gateway: &gateway,
    };
    let table = observations.table();
    sessions::outcomes(&mut field.sessions, part, &[&load, &carrier]);
    let is_hit = |one: &Session| part.is_guest(one.client_ip);
    sessions::facts(field.report, part, &outage, &observations.sessions, is_hit);
    let picture = sessions::picture(part, &outage, &observations.sessions);
    field.report.pictures.extend(picture);
    field.report.tables.push(table);
    Ok(())
}

/// Whether the gateway says that the scanner answers.
fn has_scanner(testbed: &Testbed<'_>) -> bool {
    let words = ["gateway", "status", "--json", "--config", "gateway.toml"];
    let output = testbed.linkweir(Place::Gateway, &words).output();
    let status = output
        .ok()
        .and_then(|output| serde_json::from_slice::<Value>(&output.stdout).ok());
    let answers = status.and_then(|status| status.pointer("/scanner/is_reachable")?.as_bool());
    answers == Some(true)
}

/// Guests and carriers fail closed, clients open.
fn policy(testbed: &Testbed<'_>, part: Part, scanner: &Scanner) -> String {
    let rule = |name: &str, clients: &[String], fail: &str| {
        format!(
            "[[rule]]\nname = \"{name}\"\napplication = \"http\"\nclients = {clients:?}\n\
             action = \"inspect\"\nscan = \"clamd\"\non-match = \"reject\"\naudit = true\nfail = \"{fail}\"\n\n"
        )
    };
    format!(
        "{}{}\n{}{}",
        gateway::head(testbed),
        scanner.policy(),
        rule("closed", &[part.guests(), part.carriers()], "closed"),
        rule("open", &[part.clients()], "open")
    )
}

/// Everything that was said.
struct Observations<'a> {
    part: Part,
    outage: &'a Outage,
    sessions: Vec<Session>,
    carried: Vec<Session>,
    events: Vec<Event>,
    gateway: &'a Ended,
}

fn count(number: usize) -> Option<u64> {
    u64::try_from(number).ok()
}

impl Observations<'_> {
    /// Connections with an event.
    fn told(&self, event: &str) -> BTreeSet<Ends> {
        let events = self.events.iter().filter(|one| one.event == event);
        events.filter_map(Event::ends).collect()
    }

    fn table(&self) -> Table {
        let counted = self.gateway.count("gateway/events/unscanned");
        let unseen = gateway::unseen(self.gateway);
        let mut table = Table::new(
            &format!("{}: transfers", self.part.name),
            &["sent", "arrived", "blocked", "unscanned"],
        );
        let unscanned = self.told("unscanned");
        let (closed, open): (Vec<&Session>, Vec<&Session>) = self
            .sessions
            .iter()
            .partition(|one| self.part.is_guest(one.client_ip));
        for (name, sessions) in [("fails closed", &closed), ("fails open", &open)] {
            let complete = sessions.iter().filter(|one| one.is_complete()).count();
            let told = sessions
                .iter()
                .filter(|one| unscanned.contains(&one.ends()));
            table.count(
                &format!("{name}: sent; arrived and blocked; reported as unscanned"),
                Rule::Shown,
                &[
                    count(sessions.len()),
                    count(complete),
                    count(sessions.len() - complete),
                    count(told.count()),
                ],
            );
        }
        let blocked = closed.iter().filter(|one| one.is_reset());
        let told = closed.iter().filter(|one| unscanned.contains(&one.ends()));
        table.count(
            "fails closed: blocked, and unscanned",
            Rule::Same,
            &[None, None, count(blocked.count()), count(told.count())],
        );
        let arrived = open.iter().filter(|one| one.is_complete()).count();
        table.count(
            "fails open: sent, and arrived",
            Rule::Same,
            &[count(open.len()), count(arrived), None, None],
        );
        let told = open.iter().filter(|one| unscanned.contains(&one.ends()));
        table.count(
            "fails open: unscanned ones, each has arrived",
            Rule::AtLeast(1.0),
            &[
                None,
                None,
                None,
                count(told.filter(|one| one.is_complete()).count()),
            ],
        );
        let events = self.events.iter().filter(|one| one.event == "unscanned");
        table.count(
            "events `unscanned`: counted by the gateway; written; connections",
            Rule::Same,
            &[
                Some(counted),
                count(events.count()),
                None,
                count(unscanned.len()),
            ],
        );
        let apart = self.sessions.iter().filter(|one| {
            let is_apart = self.outage.spares(one.planned_ts_ns, one.ended_ts_ns);
            is_apart && (!one.is_complete() || unscanned.contains(&one.ends()))
        });
        table.count(
            "blocked or unscanned, while clamd was there",
            Rule::AtMost(0.0),
            &[None, None, count(apart.count()), None],
        );
        let arrived = self.carried.iter().filter(|one| one.is_complete());
        // Where a queue was full the gateway has said how much it did not look at.
        table.count(
            "infected: sent, and arrived",
            Rule::AtMost(unseen),
            &[None, count(arrived.count()), None, None],
        );
        let found = self
            .told("infected")
            .union(&unscanned)
            .copied()
            .collect::<BTreeSet<_>>();
        let told = self
            .carried
            .iter()
            .filter(|one| found.contains(&one.ends()));
        table.count(
            "infected: sent; blocked as infected or unscanned",
            Rule::Within(unseen),
            &[count(self.carried.len()), None, count(told.count()), None],
        );
        table
    }
}
