//! What [`LiveOf`] keeps beyond the intervals: a day in a file, the last records in memory.

use std::path::Path;

use crate::alert::Scope;
use crate::day::{self, DayError, Past};
use crate::kind::{Behind, Kind};
use crate::live::{LiveOf, lock};
use crate::recent::{Found, RecentOrder};

impl<K: Kind> LiveOf<K> {
    /// Keeps the last day of intervals in the file at `path` from now on, and goes on in one that is there.
    ///
    /// # Errors
    /// It is not such a file, or one of other statistics, another process writes it, or the system refuses: the file
    /// is as it was.
    pub fn keep_day(&self, path: &Path) -> Result<(), DayError> {
        let (day, reader) = day::open(path, self.0.options.is_live)?;
        *lock(&self.0.day) = Some(day);
        self.0.past.set(reader).ok();
        Ok(())
    }

    /// Keeps the last [`MAX_RECORDS`](crate::MAX_RECORDS) records from now on, of kinds whose records readers can look at.
    pub fn keep_records(&self) {
        if K::HAS_RECORDS {
            lock(&self.0.recent).get_or_insert_default();
        }
    }

    /// The last records behind something, at most `most`; none where they are not kept.
    ///
    /// # Errors
    /// What is wrong with the condition.
    pub fn records(
        &self,
        behind: &Behind,
        order: RecentOrder,
        most: usize,
    ) -> Result<Found, String> {
        let chunks = lock(&self.0.recent).as_mut().map(K::share);
        let Some(chunks) = chunks else {
            return Ok(Found::default());
        };
        let (mut series, mut scratch) = (K::Series::default(), K::Scratch::default());
        let is_meant = |view: &K::View<'_>| {
            behind.scope == Scope::Run || {
                K::prepare(view, &mut series, &mut scratch);
                K::is_in(view, &behind.scope, &scratch)
            }
        };
        K::find(&chunks, &behind.condition, is_meant, order, most)
    }

    /// The last `span_s` seconds, at most a day, from the file of [`LiveOf::keep_day`]; `None` where there is none.
    #[must_use]
    pub fn past(&self, span_s: u64) -> Option<Past<K::Figures>> {
        Some(self.0.past.get()?.past::<K>(span_s))
    }

    /// Why the file of [`LiveOf::keep_day`] is not written any more.
    #[must_use]
    pub fn day_fault(&self) -> Option<&'static str> {
        lock(&self.0.day).as_ref()?.fault()
    }
}
