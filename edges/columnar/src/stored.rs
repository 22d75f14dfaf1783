//! Rows of a table as stored records.

use std::net::IpAddr;

use arrow_array::cast::AsArray;
use arrow_array::types::Float64Type;
use arrow_array::{Array, RecordBatch};
use linkweir_record::stored::{MAX_TEXT, unescape};
use linkweir_record::{FieldType, RecordKind, StoredBatch, Value};

use crate::select::{SelectError, Table, moments, texts};
use crate::values::{bytes, numbers};

/// Bytes of the texts of records that are given at once; a record with more comes alone.
const BATCH_BYTES: usize = 8 << 20;

/// The records of a table, batch by batch.
#[derive(Debug)]
pub struct Rows {
    table: Table,
    /// Rows that were read and not given yet.
    rest: Option<RecordBatch>,
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
            rest: None,
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
        let batch = match self.rest.take() {
            Some(batch) => batch,
            None => match self.table.next() {
                Some(batch) => batch?,
                None => return Ok(None),
            },
        };
        let rows = rows_at_once::<K>(&batch, &wanted)?;
        if rows < batch.num_rows() {
            self.rest = Some(batch.slice(rows, batch.num_rows() - rows));
        }
        let batch = batch.slice(0, rows);
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

/// How many rows of a batch have texts of at most [`BATCH_BYTES`]: a dictionary repeats a long one for a byte each.
fn rows_at_once<K: RecordKind>(
    batch: &RecordBatch,
    wanted: impl Fn(usize) -> bool,
) -> Result<usize, SelectError> {
    let mut lengths = vec![0_usize; batch.num_rows()];
    let mut add = |row: usize, length: usize| {
        if let Some(sum) = lengths.get_mut(row) {
            *sum += length.min(MAX_TEXT);
        }
    };
    for (column, field) in K::fields().iter().enumerate() {
        if !wanted(column) || batch.column_by_name(field.name).is_none() {
            continue;
        }
        match field.kind {
            FieldType::Text | FieldType::Word => {
                for (row, text) in texts(batch, field.name)?.into_iter().enumerate() {
                    add(row, text.map_or(0, str::len));
                }
            }
            FieldType::Bytes => {
                for (row, bytes) in bytes(batch, field.name)?.into_iter().enumerate() {
                    add(row, bytes.map_or(0, <[u8]>::len));
                }
            }
            _ => {}
        }
    }
    let mut bytes = 0;
    let rows = lengths.iter().take_while(|length| {
        bytes += **length;
        bytes <= BATCH_BYTES
    });
    Ok(rows.count().max(1).min(batch.num_rows()))
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
                // Escaped, a byte takes four.
                let text = text.as_bytes();
                let text = text.get(..4 * MAX_TEXT).unwrap_or(text);
                unescape(text, &mut plain);
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

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::io::{Cursor, Seek as _};
    use std::sync::Arc;

    use arrow_array::types::Int8Type;
    use arrow_array::{
        ArrayRef, DictionaryArray, Int8Array, NullArray, StringArray, UInt16Array, UInt64Array,
    };
    use arrow_ipc::writer::StreamWriter;
    use linkweir_record::{HttpKind, RecordBatch as _};
    use parquet::arrow::ArrowWriter;

    use super::*;

    fn stream(batch: &RecordBatch) -> Table {
        let mut writer = StreamWriter::try_new(Vec::new(), batch.schema_ref()).unwrap();
        writer.write(batch).unwrap();
        writer.finish().unwrap();
        let bytes = writer.into_inner().unwrap();
        Table::of_any_stream(Cursor::new(bytes)).unwrap().0
    }

    fn file(batch: &RecordBatch) -> File {
        let mut file = tempfile::tempfile().unwrap();
        let schema = Arc::clone(batch.schema_ref());
        let mut writer = ArrowWriter::try_new(file.try_clone().unwrap(), schema, None).unwrap();
        writer.write(batch).unwrap();
        writer.close().unwrap();
        file.rewind().unwrap();
        file
    }

    /// The targets' lengths and the status codes of all records; how much the largest batch took.
    fn read(table: Table) -> (Vec<(usize, Option<u64>)>, usize) {
        let columns = ["uri", "status_code"].map(|name| HttpKind::column(name).unwrap());
        let mut rows = Rows::new(table);
        let mut batch = StoredBatch::<HttpKind>::default();
        let (mut found, mut most) = (Vec::new(), 0);
        while let Some(before) = {
            batch.clear();
            rows.next(|column| columns.contains(&column), &mut batch)
                .unwrap()
        } {
            assert_eq!(before, found.len() as u64);
            assert!(batch.len() <= 8192);
            most = most.max(batch.memory_bytes());
            found.extend(batch.views().map(|view| {
                let length = match view.value(columns[0]) {
                    Value::Text(text) => text.len(),
                    _ => 0,
                };
                (length, view.number(columns[1]))
            }));
        }
        assert_eq!(rows.damaged(), None);
        (found, most)
    }

    #[test]
    fn a_long_text_of_a_dictionary_is_cut_and_few_of_its_rows_are_given_at_once() {
        const ROWS: u16 = 80;
        let text = "a".repeat(3 * MAX_TEXT);
        let values: ArrayRef = Arc::new(StringArray::from(vec![text.as_str(), "b"]));
        let keys: Int8Array = (0..ROWS).map(|row| Some(i8::from(row % 2 == 1))).collect();
        let target: ArrayRef = Arc::new(DictionaryArray::<Int8Type>::new(keys, values));
        let code: ArrayRef = Arc::new((0..ROWS).map(Some).collect::<UInt16Array>());
        let batch = RecordBatch::try_from_iter([("uri", target), ("status_code", code)]).unwrap();
        let (found, most) = read(stream(&batch));
        let expected = (0..ROWS).map(|row| {
            let length = if row % 2 == 1 { 1 } else { MAX_TEXT };
            (length, Some(u64::from(row)))
        });
        assert!(found.into_iter().eq(expected));
        assert!(most < 2 * BATCH_BYTES, "{most}");
    }

    #[test]
    fn a_batch_of_any_length_is_given_in_pieces() {
        const ROWS: u64 = 20_000;
        let target: ArrayRef = Arc::new(NullArray::new(20_000));
        let code: ArrayRef = Arc::new((0..ROWS).map(Some).collect::<UInt64Array>());
        let batch = RecordBatch::try_from_iter([("uri", target), ("status_code", code)]).unwrap();
        let (found, _) = read(stream(&batch));
        assert!(found.into_iter().eq((0..ROWS).map(|row| (0, Some(row)))));

        // Rows without a byte, as many as somebody liked to write.
        let nothing: ArrayRef = Arc::new(NullArray::new(400_000_000));
        let mut table = stream(&RecordBatch::try_from_iter([("uri", nothing)]).unwrap());
        let error = table.next().unwrap().unwrap_err().to_string();
        assert!(error.contains("an impossible number of rows"), "{error}");
    }

    #[test]
    fn a_value_that_a_file_repeats_is_decoded_once() {
        let text = "a".repeat(900_000);
        let texts: Vec<&str> = vec![&text; 30];
        let target: ArrayRef = Arc::new(StringArray::from(texts));
        let file = file(&RecordBatch::try_from_iter([("uri", target)]).unwrap());
        let open = || Table::of_parquet(file.try_clone().unwrap(), &["uri"]).unwrap();
        let mut rows = 0;
        for batch in open() {
            let batch = batch.unwrap();
            rows += batch.num_rows();
            let bytes = batch.get_array_memory_size();
            assert!(bytes < 3 * text.len(), "{bytes} for {rows} rows");
        }
        assert_eq!(rows, 30);
        let (found, _) = read(open());
        assert_eq!(found, vec![(MAX_TEXT, None); 30]);
    }
}
