//! Without support for Parquet and Arrow there are no tables.

use std::ops::ControlFlow;

use anyhow::bail;
use linkweir_record::RecordKind;

use super::source::{Each, Source};
use crate::opened::Opened;

pub(super) enum Columns {}

pub(super) const fn is_one(_beginning: &[u8]) -> bool {
    false
}

pub(super) fn open(_opened: Opened) -> anyhow::Result<(Columns, Option<&'static str>)> {
    bail!("this build reads neither Parquet nor Arrow");
}

impl Columns {
    pub(super) fn names(&self) -> &[String] {
        match *self {}
    }

    pub(super) fn read<K: RecordKind>(
        self,
        _source: &mut Source,
        _wanted: &dyn Fn(usize) -> bool,
        _each: &mut Each<'_, K>,
    ) -> anyhow::Result<ControlFlow<()>> {
        match self {}
    }
}
