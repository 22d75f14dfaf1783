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
        let names = |name: &str| {
            let condition = args.condition.as_deref().unwrap_or_default();
            condition
                .split(|c: char| !c.is_alphanumeric() && c != '_')
                .any(|word| word == name)
        };
        let again = subject.again.filter(|(name, _)| !names(name));
        Ok(Self {
            condition: args.condition.as_deref().map(filter).transpose()?,
            error: filter(subject.error.1)?,
            again: again.map(|(_, condition)| filter(condition)).transpose()?,
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
