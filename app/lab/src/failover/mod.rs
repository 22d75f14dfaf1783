//! Parts are killed in the middle of traffic: nothing may be lost that was not announced.
//!
//! One failure after the other, each with clients of its own: the gateway where its rules fail open and
//! where they fail closed, the scanner, and consumers of a feeder. Sessions go on all the time. The
//! moments of each outage are taken when the process is surely gone and before the next one starts, so
//! what happened in between has a sharp answer.
//!
//! What a scenario of this kind says.
//!
//! What all failures share.

use crate::error::LabError;
use crate::report::{Report, Table};
use crate::services::{self, Scanner, Web};
use crate::settings::duration;
use crate::testbed::{Testbed, need};
use linkweir_testkit::clamd::EICAR;
use linkweir_testkit::load as servers;
use linkweir_testkit::load::log::Visit;
use part::{Fail, Part};
use serde::Deserialize;
use std::time::Duration;

mod consumer;
mod control;
mod judged;
mod meanwhile;
mod outage;
mod part;
mod records;
mod scan;
mod sessions;
mod taken;

/// What is around a keyword or virus, bytes on each side: it lies beyond the first segment, and before the end.
const AROUND: usize = 4000;

/// Runs it.
pub(crate) fn run(settings: &Settings, testbed: &mut Testbed<'_>) -> Result<Report, LabError> {
    need(&["nft", "tc"])?;
    testbed.tell("the web server");
    let web = Web::start(testbed, &servers::Settings::default())?;
    let around = |what: &[u8]| [&vec![b'.'; AROUND], what, &vec![b'.'; AROUND]].concat();
    web.put("file", &vec![b'f'; part::FILE])?;
    web.put(part::Planted::Keyword.name(), &around(KEYWORD.as_bytes()))?;
    web.put(part::Planted::Virus.name(), &around(&EICAR))?;
    for cidr in part::ALL {
        testbed.route(cidr)?;
    }
    meanwhile::remember(testbed)?;
    let mut scanner = Scanner::start(testbed)?;
    let mut report = Report::default();
    report.fact(
        "sessions",
        format!(
            "Poisson, {} a second for {:?} for each failure",
            settings.rate,
            settings.duration()
        ),
    );
    let mut field = Field {
        testbed,
        web,
        report: &mut report,
        sessions: Table::new("sessions", &["planned", "ended", "completed", "failed"]),
    };
    // First, while the kernel knows no connections that others left behind: they would be announced too.
    control::run(settings, &mut field, scanner.as_ref(), Fail::Open)?;
    control::run(settings, &mut field, scanner.as_ref(), Fail::Closed)?;
    match &mut scanner {
        Some(scanner) => scan::run(settings, &mut field, scanner)?,
        None => field.report.notes.push(services::MISSING.to_owned()),
    }
    consumer::run(settings, &mut field)?;
    let sessions = field.sessions;
    report.tables.insert(0, sessions);
    Ok(report)
}

/// Parts killed while sessions go on.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Settings {
    /// Mean sessions per second, at the times of a Poisson process.
    pub rate: f64,
    /// How long all goes well before something is killed.
    #[serde(deserialize_with = "duration")]
    pub before: Duration,
    /// How long it stays dead.
    #[serde(deserialize_with = "duration")]
    pub dead: Duration,
    /// How long sessions go on to begin after it was started again.
    #[serde(deserialize_with = "duration")]
    pub after: Duration,
    /// Transfers with a keyword, and as many with the EICAR string, each second; some of them while
    /// nobody looks.
    pub planted: f64,
}

impl Settings {
    /// Sessions of one failure begin during this time.
    fn duration(&self) -> Duration {
        self.before + self.dead + self.after
    }

    /// Makes one failure last so long, in the same proportions.
    pub(crate) fn set_duration(&mut self, duration: Duration) {
        let part = duration.as_secs_f64() / self.duration().as_secs_f64();
        for span in [&mut self.before, &mut self.dead, &mut self.after] {
            *span = span.mul_f64(part);
        }
    }
}

/// What the policy looks for.
const KEYWORD: &str = "project aurora";
/// How long the last lines of a log may take.
const SETTLE: Duration = Duration::from_secs(5);

/// Where the failures happen, and what was found so far.
struct Field<'a, 'g> {
    testbed: &'a mut Testbed<'g>,
    web: Web,
    report: &'a mut Report,
    /// What became of the sessions of each failure.
    sessions: Table,
}

impl Field<'_, '_> {
    /// The requests of a part that the server has answered: at least so many, where they come in time.
    /// What the log lacks in the end is a finding.
    fn served(&self, part: Part, expected: u64) -> Vec<Visit> {
        let visits = || {
            let mut all = self.web.visits();
            all.retain(|visit| part.has(visit.client));
            all
        };
        let is_there = || u64::try_from(visits().len()).is_ok_and(|lines| lines >= expected);
        drop(self.testbed.wait("the log", SETTLE, is_there));
        visits()
    }
}
