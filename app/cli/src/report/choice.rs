//! Which stored records a report takes.

use std::ops::ControlFlow;

use anyhow::anyhow;
use linkweir_record::stored::StoredRecord;
use linkweir_record::{Filter, RecordKind, Stored};
use linkweir_report::stored::Subject;

use super::ReportArgs;
use crate::exit::Wrong;

/// Which records are taken.
pub(super) struct Choice<K: RecordKind> {
    condition: Option<Filter<Stored<K>>>,
    pub(super) error: Filter<Stored<K>>,
    again: Option<Filter<Stored<K>>>,
    /// Records with lines of their own, and whether they have them here.
    pub(super) apart: Option<Filter<Stored<K>>>,
    pub(super) sets_apart: bool,
    from_ns: u64,
    to_ns: u64,
    left: u64,
    pub(super) left_out: u64,
    pub(super) said_again: u64,
}

impl<K: RecordKind> Choice<K> {
    pub(super) fn read(args: &ReportArgs, subject: &Subject) -> anyhow::Result<Self> {
        let filter = |text: &str| {
            Filter::<Stored<K>>::read(text)
                .map_err(|error| anyhow!(Wrong(format!("--where: {error}"))))
        };
        let is_in = |text: &str, name: &str| {
            let mut words = text.split(|c: char| !c.is_alphanumeric() && c != '_');
            words.any(|word| word == name)
        };
        let names = |name: &str| is_in(args.condition.as_deref().unwrap_or_default(), name);
        let groups = |name: &str| args.by.iter().any(|by| is_in(by, name));
        let apart = subject.apart.as_ref();
        let is_meant = |name: &str| names(name) || groups(name);
        let again = subject.again.filter(|(name, _)| !names(name));
        Ok(Self {
            condition: args.condition.as_deref().map(filter).transpose()?,
            error: filter(subject.error.1)?,
            again: again.map(|(_, condition)| filter(condition)).transpose()?,
            apart: apart.map(|apart| filter(apart.condition)).transpose()?,
            sets_apart: apart
                .is_some_and(|apart| ![apart.column, apart.by].into_iter().any(is_meant)),
            from_ns: args.from.map_or(0, |from| from.0),
            to_ns: args.to.map_or(u64::MAX, |to| to.0),
            left: args.head.unwrap_or(u64::MAX),
            left_out: 0,
            said_again: 0,
        })
    }

    /// The columns that it reads.
    pub(super) fn columns(&self) -> Vec<usize> {
        let filters = [
            self.condition.as_ref(),
            Some(&self.error),
            self.again.as_ref(),
            self.apart.as_ref(),
        ];
        filters
            .into_iter()
            .flatten()
            .flat_map(Filter::columns)
            .collect()
    }

    /// Whether a record is one of those.
    pub(super) fn takes(&mut self, view: &StoredRecord<'_>) -> bool {
        let time_ns = Stored::<K>::time_ns(view);
        let matches = |filter: &Filter<Stored<K>>| filter.matches(view);
        if !(self.from_ns..self.to_ns).contains(&time_ns)
            || !self.condition.as_ref().is_none_or(matches)
        {
            self.left_out += 1;
            return false;
        }
        if self.again.as_ref().is_some_and(matches) {
            self.said_again += 1;
            return false;
        }
        self.left -= 1;
        true
    }

    /// Whether it takes more.
    pub(super) const fn flow(&self) -> ControlFlow<()> {
        match self.left {
            0 => ControlFlow::Break(()),
            _ => ControlFlow::Continue(()),
        }
    }
}
