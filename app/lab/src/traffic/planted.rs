//! Transfers that must not arrive.

use linkweir_testkit::clamd::EICAR;
use linkweir_testkit::gateway::Place;

use super::settings::Settings;
use crate::error::LabError;
use crate::program::Program;
use crate::services::{self, Scanner, Web, url};
use crate::testbed::Testbed;

/// What the policy looks for.
pub(super) const KEYWORD: &str = "project aurora";
/// What is around it, bytes on each side: it lies beyond the first segment, and before the end.
const AROUND: usize = 4000;
/// Transfers started in a second.
const RATE: u32 = 20;

/// What is planted.
pub(super) struct Planted {
    /// Transfers with a keyword.
    pub(super) keywords: u32,
    /// Transfers with the EICAR string; none where there is no clamd.
    pub(super) viruses: u32,
    /// Why there are none, where there should be.
    pub(super) without: Option<String>,
    scanner: Option<Scanner>,
}

impl Planted {
    /// Puts the files where the server finds them, and starts clamd where it is installed.
    pub(super) fn plan(
        settings: &Settings,
        testbed: &mut Testbed<'_>,
        web: &Web,
    ) -> Result<Self, LabError> {
        let around = |what: &[u8]| [&vec![b'.'; AROUND], what, &vec![b'.'; AROUND]].concat();
        web.put("keyword", &around(KEYWORD.as_bytes()))?;
        web.put("virus", &around(&EICAR))?;
        let mut planted = Self {
            keywords: settings.planted_keywords,
            viruses: 0,
            without: None,
            scanner: None,
        };
        if settings.planted_viruses == 0 {
            return Ok(planted);
        }
        planted.scanner = Scanner::start(testbed)?;
        if planted.scanner.is_some() {
            planted.viruses = settings.planted_viruses;
        } else {
            planted.without = Some(services::MISSING.to_owned());
        }
        Ok(planted)
    }

    /// The scanner, where there is one.
    pub(super) const fn scanner(&self) -> Option<&Scanner> {
        self.scanner.as_ref()
    }

    /// Has them fetched.
    pub(super) fn send(&self, testbed: &Testbed<'_>) -> Result<Vec<Program>, LabError> {
        let kinds = [
            ("keyword", self.keywords, "10.31.0.0/25"),
            ("virus", self.viruses, "10.31.0.128/25"),
        ];
        let wanted = kinds.iter().filter(|(_, count, _)| *count > 0);
        wanted
            .map(|(name, count, clients)| {
                let (url, count) = (url(&format!("/{name}")), count.to_string());
                let (rate, seed) = (format!("constant:{RATE}"), testbed.order.seed.to_string());
                let words = [
                    "load",
                    &url,
                    "-i",
                    testbed.clients,
                    "--gateway",
                    "10.88.1.1",
                    "--clients",
                    clients,
                    "--arrivals",
                    &rate,
                    "--sessions",
                    &count,
                    "--seed",
                    &seed,
                    "--timeout",
                    "5s",
                    "--lag-limit",
                    "1s",
                    "-w",
                    "/dev/null",
                    "--format",
                    "text",
                ];
                Program::start(testbed, Place::Client, name, &words)
            })
            .collect()
    }
}
