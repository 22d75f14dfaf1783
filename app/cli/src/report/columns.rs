//! Stored records in columns: Parquet files, Arrow streams.

use std::fs::File;
use std::ops::ControlFlow;

use anyhow::{anyhow, bail};
use linkweir_columnar::{Described, Form, Rows, Table};
use linkweir_record::stored::kind_of;
use linkweir_record::{RecordBatch as _, RecordKind, StoredBatch};

use super::source::{Each, Source, kind_named};
use crate::opened::Opened;

/// Whether what begins so is columns.
pub(super) fn is_one(beginning: &[u8]) -> bool {
    Form::of(beginning).is_some()
}

/// An open table.
pub(super) struct Columns {
    form: Open,
    described: Described,
}

enum Open {
    Stream(Table),
    /// Which columns are decoded depends on the report: opened again for it.
    Parquet(File),
}

/// Opens a table, and tells the kind of its records.
pub(super) fn open(opened: Opened) -> anyhow::Result<(Columns, Option<&'static str>)> {
    let (form, described) = match Form::of(&opened.beginning) {
        Some(Form::Parquet) => {
            let Some(path) = &opened.path else {
                bail!("Parquet is read from its end, so it has to be a file and no pipe");
            };
            let file = File::open(path)?;
            let (_, described) = Table::of_any_parquet(file.try_clone()?, |_| Vec::new())?;
            (Open::Parquet(file), described)
        }
        Some(Form::Stream) => {
            let (table, described) = Table::of_any_stream(opened)?;
            (Open::Stream(table), described)
        }
        _ => {
            return Err(anyhow!(
                "a file of Arrow's IPC format; it has to be a stream (pyarrow.ipc.new_stream)"
            ));
        }
    };
    let own = described.kind.as_deref().and_then(kind_named);
    let kind = own.or_else(|| kind_of(&described.columns));
    Ok((Columns { form, described }, kind))
}

impl Columns {
    /// The names of all.
    pub(super) fn names(&self) -> &[String] {
        &self.described.columns
    }

    /// Hands on all records.
    pub(super) fn read<K: RecordKind>(
        self,
        source: &mut Source,
        wanted: &dyn Fn(usize) -> bool,
        each: &mut Each<'_, K>,
    ) -> anyhow::Result<ControlFlow<()>> {
        let name = source.name.clone();
        let names = self.described.columns.iter();
        let unknown = names.filter(|name| K::column(name).is_none());
        source.unknown = unknown.cloned().collect();
        let table = match self.form {
            Open::Stream(table) => table,
            Open::Parquet(file) => {
                let is_wanted = |name: &String| K::column(name).is_some_and(wanted);
                let choose = |described: &Described| {
                    let names = described.columns.iter();
                    names.filter(|name| is_wanted(name)).cloned().collect()
                };
                match Table::of_any_parquet(file, choose) {
                    Ok((table, _)) => table,
                    Err(error) => {
                        source.ended = Some(error.to_string());
                        source.is_unread = true;
                        return Ok(ControlFlow::Continue(()));
                    }
                }
            }
        };
        let mut rows = Rows::new(table);
        let mut batch = StoredBatch::<K>::default();
        loop {
            batch.clear();
            let before = match rows.next(wanted, &mut batch) {
                Ok(Some(before)) => before,
                Ok(None) => break,
                Err(error) => {
                    source.ended = Some(error.to_string());
                    break;
                }
            };
            if batch.is_empty() {
                continue;
            }
            let place = |at: usize| before + at as u64 + 1;
            if each(&batch, &name, &place)?.is_break() {
                return Ok(ControlFlow::Break(()));
            }
        }
        if let Some((count, first)) = rows.damaged() {
            source.damaged = count;
            source.first = Some(format!("row {first}: a value is not one of its column"));
        }
        Ok(ControlFlow::Continue(()))
    }
}
