//! What all failures share.

use std::time::Duration;

use linkweir_testkit::load::log::Visit;

use super::part::Part;
use crate::report::{Report, Table};
use crate::testbed::Testbed;
use crate::web::Web;

/// What the policy looks for.
pub(super) const KEYWORD: &str = "project aurora";
/// How long the last lines of a log may take.
const SETTLE: Duration = Duration::from_secs(5);

/// Where the failures happen, and what was found so far.
pub(super) struct Field<'a, 'g> {
    pub(super) testbed: &'a mut Testbed<'g>,
    pub(super) web: Web,
    pub(super) report: &'a mut Report,
    /// What became of the sessions of each failure.
    pub(super) sessions: Table,
}

impl Field<'_, '_> {
    /// The requests of a part that the server has answered: at least so many, where they come in time.
    /// What the log lacks in the end is a finding.
    pub(super) fn served(&self, part: Part, expected: u64) -> Vec<Visit> {
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
