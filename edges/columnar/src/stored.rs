//! Rows of a table as stored records.

use std::net::IpAddr;

use arrow_array::cast::AsArray;
use arrow_array::types::Float64Type;
use arrow_array::{Array, RecordBatch};
use linkweir_record::stored::unescape;
use linkweir_record::{FieldType, RecordKind, StoredBatch, Value};

use crate::select::{SelectError, Table, moments, texts};
use crate::values::{bytes, numbers};

/// The records of a table, batch by batch.
#[derive(Debug)]
pub struct Rows {
    table: Table,
    /// Records of batches that were given.
    given: u64,
    /// Rows with a value that is not one of its column: how many, and the first of them.
    damaged: (u64, u64),
}

impl Rows {
    /// Those of a table.
    #[must_use]
    pub const fn new(table: Table) -> Self {
        Self {
            table,
            given: 0,
            damaged: (0, 0),
        }
    }

    /// Appends the records of the next batch, the columns for which `wanted` holds; none where there are no more. A
    /// record with a value that is not one of its column keeps its others; gives the number of those before the batch.
    ///
    /// # Errors
    /// The table cannot be read on, or a column has another type than that of the schema.
    pub fn next<K: RecordKind>(
        &mut self,
        wanted: impl Fn(usize) -> bool,
        out: &mut StoredBatch<K>,
    ) -> Result<Option<u64>, SelectError> {
        let Some(batch) = self.table.next() else {
            return Ok(None);
        };
        let batch = batch?;
        let (first, before) = (out.grow(batch.num_rows()), self.given);
        self.given += batch.num_rows() as u64;
        for (column, field) in K::fields().iter().enumerate() {
            if !wanted(column) || batch.column_by_name(field.name).is_none() {
                continue;
            }
            let bad = fill(&batch, field.name, field.kind, |row, value| {
                out.set(first + row, column, value);
            })?;
            if let Some((count, row)) = bad {
                self.damaged.0 += count;
                let row = before + row + 1;
                self.damaged.1 = match self.damaged.1 {
                    0 => row,
                    other => other.min(row),
                };
            }
        }
        Ok(Some(before))
    }

    /// Values that are not of their column so far, and the row of the first, from 1.
    #[must_use]
    pub const fn damaged(&self) -> Option<(u64, u64)> {
        if self.damaged.0 == 0 {
            return None;
        }
        Some(self.damaged)
    }
}

/// Gives the values of a column by their row; how many are not of its type, and the first row of one.
fn fill(
    batch: &RecordBatch,
    name: &str,
    kind: FieldType,
    mut set: impl FnMut(usize, Value<'_>),
) -> Result<Option<(u64, u64)>, SelectError> {
    let mut bad: Option<(u64, u64)> = None;
    let mut note = |row: usize| {
        let (count, _) = bad.get_or_insert((0, row as u64));
        *count += 1;
    };
    match kind {
        FieldType::Ip => {
            for (row, text) in texts(batch, name)?.into_iter().enumerate() {
                match text.map(str::parse::<IpAddr>) {
                    Some(Ok(address)) => set(row, Value::Ip(address)),
                    Some(Err(_)) => note(row),
                    None => {}
                }
            }
        }
        FieldType::Text | FieldType::Word => {
            let mut plain = Vec::new();
            for (row, text) in texts(batch, name)?.into_iter().enumerate() {
                let Some(text) = text.filter(|text| !text.is_empty()) else {
                    continue;
                };
                plain.clear();
                unescape(text.as_bytes(), &mut plain);
                set(row, Value::Text(&plain));
            }
        }
        FieldType::Bytes => {
            for (row, bytes) in bytes(batch, name)?.into_iter().enumerate() {
                if let Some(bytes) = bytes {
                    set(row, Value::Bytes(bytes));
                }
            }
        }
        FieldType::Millis => {
            for (row, millis) in floats(batch, name)?.into_iter().enumerate() {
                match millis.map(nanos) {
                    Some(Some(nanos)) => set(row, Value::Millis(nanos)),
                    Some(None) => note(row),
                    None => {}
                }
            }
        }
        FieldType::TimeNs | FieldType::TimeMillis => {
            for (row, nanos) in moments(batch, name)?.into_iter().enumerate() {
                if let Some(nanos) = nanos {
                    set(row, Value::TimeNs(nanos));
                }
            }
        }
        _ => {
            for (row, number) in numbers(batch, name)?.into_iter().enumerate() {
                if let Some(number) = number {
                    set(row, Value::U64(number));
                }
            }
        }
    }
    Ok(bad)
}

/// The milliseconds of a column; nothing where a row has none.
fn floats(batch: &RecordBatch, name: &str) -> Result<Vec<Option<f64>>, SelectError> {
    let array = batch.column_by_name(name);
    let floats = array.and_then(|array| array.as_primitive_opt::<Float64Type>());
    let floats = floats.map(|floats| floats.iter().collect());
    floats.ok_or_else(|| SelectError::Type {
        name: name.to_owned(),
        found: array.map_or_else(String::new, |array| array.data_type().to_string()),
        wanted: "milliseconds",
    })
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "within the range of u64, which was looked at"
)]
fn nanos(millis: f64) -> Option<u64> {
    let nanos = (millis * 1e6).round();
    (0.0..1.8e19).contains(&nanos).then_some(nanos as u64)
}
