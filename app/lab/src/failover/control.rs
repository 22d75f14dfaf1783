//! The gateway is killed in the middle, and started again: once where its rules fail open, once where
//! they fail closed.

use super::judged::{Carried, Observations};
use super::outage::Outage;
use super::part::{Fail, Part, Planted};
use super::records::{self, Session, Wire};
use super::{Field, KEYWORD, Settings, meanwhile, sessions};
use crate::error::LabError;
use crate::gateway::{self, Gateway};
use crate::services::Scanner;
use crate::testbed::Testbed;

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

/// Guests and carriers are inspected, all others are only classified.
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
