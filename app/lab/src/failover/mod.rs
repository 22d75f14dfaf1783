//! Parts are killed in the middle of traffic: nothing may be lost that was not announced.
//!
//! One failure after the other, each with clients of its own: the gateway where its rules fail open and
//! where they fail closed, the scanner, and consumers of a feeder. Sessions go on all the time. The
//! moments of each outage are taken when the process is surely gone and before the next one starts, so
//! what happened in between has a sharp answer.

mod consumer;
mod control;
mod field;
mod judged;
mod kernel;
mod meanwhile;
mod outage;
mod part;
mod records;
mod scan;
mod sessions;
mod settings;
mod taken;
mod wire;

use linkweir_testkit::clamd::EICAR;
use linkweir_testkit::load as servers;

use crate::error::LabError;
use crate::report::Report;
use crate::report::Table;
use crate::scanner::{self, Scanner};
use crate::testbed::{Testbed, need};
use crate::web::Web;
use field::{Field, KEYWORD};
use part::Fail;
pub use settings::Settings;

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
    kernel::remember(testbed)?;
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
        None => field.report.notes.push(scanner::MISSING.to_owned()),
    }
    consumer::run(settings, &mut field)?;
    let sessions = field.sessions;
    report.tables.insert(0, sessions);
    Ok(report)
}
