//! In place of `columns` where the build has no Parquet and no Arrow: nothing is a table of columns.

use linkweir_model::log::{Faults, Request};

use crate::opened::Opened;

/// How columns are stored: in no way that is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stored {}

pub(super) const fn stored(_beginning: &[u8]) -> Option<Stored> {
    None
}

/// No table.
pub(super) struct Columns(Stored);

impl Columns {
    pub(super) fn open(_log: Opened, stored: Stored) -> anyhow::Result<Self> {
        Ok(Self(stored))
    }

    pub(super) fn read(&mut self, _out: &mut Vec<Request>) -> anyhow::Result<bool> {
        match self.0 {}
    }

    pub(super) const fn faults(&self) -> &Faults {
        match self.0 {}
    }
}
