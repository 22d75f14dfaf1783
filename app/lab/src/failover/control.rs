//! The gateway is killed in the middle, and started again: once where its rules fail open, once where
//! they fail closed.
//!
//! Something is killed, is away, and comes back.

use super::judged::{Carried, Observations};
use super::part::{Fail, Part, Planted};
use super::records::{self, Session, Wire};
use super::{Field, KEYWORD, Settings, meanwhile, sessions};
use crate::error::LabError;
use crate::gateway::{self, Gateway};
use crate::services::Scanner;
use crate::testbed::Testbed;
use linkweir_testkit::netns::{until, wall_clock_ns};
use std::time::Duration;

/// Runs it.
pub(super) fn run(
    settings: &Settings,
    field: &mut Field<'_, '_>,
    scanner: Option<&Scanner>,
    fail: Fail,
) -> Result<(), LabError> {
    let part = fail.part();
    field.testbed.tell(part.name);
    let testbed = &*field.testbed;
    let policy = policy(testbed, part, scanner, fail);
    let gateway = Gateway::start_as(testbed, &policy, &part.file("gateway-1"), &events(part, 1))?;
    let wire = Wire::watch(testbed, part)?;
    let load = part.load(testbed, settings)?;
    let kinds: &[Planted] = match scanner {
        Some(_) => &[Planted::Keyword, Planted::Virus],
        None => &[Planted::Keyword],
    };
    let carriers = kinds
        .iter()
        .map(|kind| part.carry(testbed, settings, *kind));
    let carriers = carriers.collect::<Result<Vec<_>, _>>()?;
    let (outage, gateway) = Outage::of(testbed, settings, gateway, drop, || {
        Gateway::run(testbed, &part.file("gateway-2"), &events(part, 2))
    })?;
    let load = Part::wait(testbed, settings, load)?;
    let mut carried = Vec::new();
    for (kind, carrier) in kinds.iter().zip(carriers) {
        carried.push(Carried {
            kind: *kind,
            load: Part::wait(testbed, settings, carrier)?,
            sessions: records::read(testbed, part, &format!("{}.jsonl", kind.name()))?,
        });
    }
    let loads: Vec<_> = carried.iter().map(|one| &one.load).chain([&load]).collect();
    let expected = loads.iter().map(|load| load.count("load/responses")).sum();
    let visits = field.served(part, expected);
    let (http, flows) = wire.finish()?;
    let known = meanwhile::connections(testbed, part);
    let gateway = gateway.finish(testbed)?;
    let all: Vec<Session> = records::read(testbed, part, "load.jsonl")?;
    let observations = Observations {
        part,
        fail,
        settings,
        outage: &outage,
        load: &load,
        sessions: &all,
        carried: &carried,
        visits: &visits,
        http: &http,
        transactions: records::read(testbed, part, "http.jsonl")?,
        flows: &flows,
        connections: records::read(testbed, part, "flows.jsonl")?,
        known,
        gateway: &gateway,
        events: [
            records::read(testbed, part, "events-1.jsonl")?,
            records::read(testbed, part, "events-2.jsonl")?,
        ],
    };
    let (tables, picture) = (
        observations.tables(),
        sessions::picture(part, &outage, &all),
    );
    sessions::outcomes(&mut field.sessions, part, &loads);
    let is_hit = |one: &Session| fail == Fail::Open || part.is_guest(one.client_ip);
    sessions::facts(field.report, part, &outage, &all, is_hit);
    field.report.pictures.extend(picture);
    field.report.tables.extend(tables);
    if observations.known.is_none() {
        let why = "the kernel has no /proc/net/nf_conntrack: what it knows of connections is not compared";
        field.report.notes.push(why.to_owned());
    }
    Ok(())
}

/// Where the events of a life go.
fn events(part: Part, life: u32) -> String {
    part.file(&format!("events-{life}.jsonl"))
}

/// Guests and carriers are inspected, everybody else is told apart.
fn policy(testbed: &Testbed<'_>, part: Part, scanner: Option<&Scanner>, fail: Fail) -> String {
    let table = scanner.map(Scanner::policy).unwrap_or_default();
    let scan = if scanner.is_some() {
        "scan = \"clamd\"\n"
    } else {
        ""
    };
    format!(
        "{}fail = \"{}\"\n{table}\n\
         [[rule]]\nname = \"guests\"\napplication = \"http\"\nclients = [\"{}\", \"{}\"]\n\
         action = \"inspect\"\nkeywords = [\"{KEYWORD}\"]\non-match = \"reject\"\n{scan}\n\
         [[rule]]\nname = \"web\"\napplication = \"http\"\naction = \"allow\"\n",
        gateway::head(testbed),
        fail.word(),
        part.guests(),
        part.carriers()
    )
}

/// Timestamps of an outage, nanoseconds since 1970.
#[derive(Debug, Clone, Copy)]
pub(super) struct Outage {
    /// It is about to be killed.
    pub(super) killed: u64,
    /// It is dead: its process is gone.
    pub(super) gone: u64,
    /// It is started again.
    pub(super) started: u64,
    /// It says that it serves.
    pub(super) serving: u64,
}

impl Outage {
    /// Kills something when all has gone well for a while, and has it started again.
    pub(super) fn of<T, U>(
        testbed: &Testbed<'_>,
        settings: &Settings,
        victim: T,
        kill: impl FnOnce(T),
        again: impl FnOnce() -> Result<U, LabError>,
    ) -> Result<(Self, U), LabError> {
        pause(testbed, settings.before)?;
        let killed = wall_clock_ns();
        kill(victim);
        let gone = wall_clock_ns();
        pause(testbed, settings.dead)?;
        let started = wall_clock_ns();
        let again = again()?;
        let outage = Self {
            killed,
            gone,
            started,
            serving: wall_clock_ns(),
        };
        Ok((outage, again))
    }

    /// The same, serving from now on.
    pub(super) fn until_now(self) -> Self {
        Self {
            serving: wall_clock_ns(),
            ..self
        }
    }

    /// Whether this timestamp lies in the time in which it was surely dead.
    pub(super) const fn covers(&self, timestamp: u64) -> bool {
        self.gone <= timestamp && timestamp < self.started
    }

    /// Whether this span of time has nothing of the outage in it.
    pub(super) const fn spares(&self, from: u64, to: u64) -> bool {
        to < self.killed || self.serving < from
    }

    /// Seconds for which there was no process.
    pub(super) fn dead_s(&self) -> f64 {
        seconds(self.started.saturating_sub(self.gone))
    }
}

/// Nanoseconds as seconds.
#[expect(
    clippy::cast_precision_loss,
    reason = "spans of seconds, shown with three digits"
)]
pub(super) const fn seconds(nanos: u64) -> f64 {
    nanos as f64 / 1e9
}

fn pause(testbed: &Testbed<'_>, span: Duration) -> Result<(), LabError> {
    if until(span, || testbed.is_stopped()) {
        return Err(LabError::Stopped);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_inside_or_outside() {
        let outage = Outage {
            killed: 8,
            gone: 10,
            started: 20,
            serving: 25,
        };
        assert!(!outage.covers(9) && outage.covers(10) && outage.covers(19) && !outage.covers(20));
        assert!(outage.spares(1, 7) && outage.spares(26, 30));
        assert!(!outage.spares(1, 8) && !outage.spares(25, 26) && !outage.spares(1, 30));
    }
}
