//! Consumers of a feeder end in the middle: one is killed, the other one is asked to.

use super::outage::Outage;
use super::part::Part;
use super::records::{self, Session};
use super::taken::{Lives, Observations};
use super::{Field, Settings, sessions};
use crate::error::LabError;
use crate::gateway::{self, Gateway};
use crate::program::{Program, is_capturing};
use linkweir_testkit::gateway::{Place, WAN};

/// Sizes of the rings of two feeders that run beside each other: one holds what comes while a consumer
/// is away, one does not.
const RINGS: [&str; 2] = ["64MiB", "256KiB"];

/// Runs it.
pub(super) fn run(settings: &Settings, field: &mut Field<'_, '_>) -> Result<(), LabError> {
    field
        .testbed
        .tell("feeders: one consumer killed, one asked to end, and both started again");
    let testbed = &*field.testbed;
    let part = Part {
        number: 0,
        name: "consumer killed",
        files: "consumer",
    };
    let policy = format!(
        "{}\n[[rule]]\nname = \"web\"\napplication = \"http\"\naction = \"allow\"\n",
        gateway::head(testbed)
    );
    let gateway = Gateway::start(testbed, &policy)?;
    let mut feeders = Vec::new();
    let mut first = Vec::new();
    for ring in RINGS {
        feeders.push(feeder(field, part, ring)?);
        first.push(consumers(field, part, ring, 1)?);
    }
    let load = part.load(testbed, settings)?;
    let mut asked = Vec::new();
    let (outage, second) = Outage::of(
        testbed,
        settings,
        first,
        |first| {
            for [to_end, to_kill] in first {
                drop(to_kill);
                asked.push(to_end.finish());
            }
        },
        || {
            let again = RINGS.map(|ring| consumers(field, part, ring, 2));
            again.into_iter().collect::<Result<Vec<_>, _>>()
        },
    )?;
    let load = Part::wait(testbed, settings, load)?;
    let visits = field.served(part, load.count("load/responses"));
    let all: Vec<Session> = records::read(testbed, part, "load.jsonl")?;
    let mut tables = Vec::new();
    let lives = feeders.into_iter().zip(asked).zip(second).zip(RINGS);
    for (((feeder, asked), second), ring) in lives {
        // The feeder ends when its consumers have read everything, and they end with it.
        let feeder = feeder.finish()?;
        let [one, other] = second.map(|program| program.wait(testbed, settings.after));
        let lives = Lives {
            asked: asked?,
            after_asked: one?,
            after_killed: other?,
        };
        let files = [(0, 1), (0, 2), (1, 1), (1, 2)].map(|(number, life)| {
            records::read(
                testbed,
                part,
                &format!("{}.jsonl", name(ring, number, life)),
            )
        });
        let observations = Observations {
            title: part.name,
            load: &load,
            ring,
            feeder: &feeder,
            lives: &lives,
            records: files.into_iter().collect::<Result<Vec<_>, _>>()?.concat(),
            visits: &visits,
        };
        tables.extend(observations.tables());
    }
    gateway.finish(testbed)?;
    sessions::outcomes(&mut field.sessions, part, &[&load]);
    sessions::facts(field.report, part, &outage, &all, |_| true);
    field
        .report
        .pictures
        .extend(sessions::picture(part, &outage, &all));
    field.report.tables.extend(tables);
    Ok(())
}

fn feed(ring: &str) -> String {
    format!("failover-{ring}")
}

fn name(ring: &str, number: u32, life: u32) -> String {
    format!("http-{ring}-{number}-{life}")
}

fn feeder(field: &Field<'_, '_>, part: Part, ring: &str) -> Result<Program, LabError> {
    let feed = feed(ring);
    let words = [
        "feed",
        "-i",
        WAN,
        "--name",
        &feed,
        "--consumers",
        "2",
        "--ring",
        ring,
    ];
    let name = part.file(&format!("feed-{ring}"));
    let mut feeder = Program::start(field.testbed, Place::Gateway, &name, &words)?;
    is_capturing(field.testbed, &mut feeder)?;
    Ok(feeder)
}

/// Both consumers of a feed; `life` tells their files apart.
fn consumers(
    field: &Field<'_, '_>,
    part: Part,
    ring: &str,
    life: u32,
) -> Result<[Program; 2], LabError> {
    let start = |number: u32| {
        let (name, from) = (name(ring, number, life), format!("{}/{number}", feed(ring)));
        let records = part.file(&format!("{name}.jsonl"));
        let words = ["http", "--feed", &from, "-w", &records];
        Program::start(field.testbed, Place::Gateway, &part.file(&name), &words)
    };
    Ok([start(0)?, start(1)?])
}
