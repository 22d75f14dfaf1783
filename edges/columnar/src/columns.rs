//! Records turned into columns.

use std::marker::PhantomData;

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use linkweir_record::RecordKind;

use crate::column::Column;
use crate::error::ColumnarError;
use crate::schema::schema_of;

/// Records that are read before the next column is turned to: few enough that they stay in the
/// first-level cache, many enough that the choice of a column costs nothing.
const GROUP: usize = 64;

/// Collects records of one kind as Arrow columns.
#[derive(Debug)]
pub struct Columns<K> {
    schema: SchemaRef,
    columns: Vec<Column>,
    rows: usize,
    kind: PhantomData<fn(K)>,
}

impl<K: RecordKind> Columns<K> {
    /// Empty columns with room for `rows` records.
    #[must_use]
    pub fn with_capacity(rows: usize) -> Self {
        Self {
            schema: schema_of::<K>(),
            columns: K::fields()
                .iter()
                .map(|field| Column::new(field.kind, rows))
                .collect(),
            rows: 0,
            kind: PhantomData,
        }
    }

    /// The schema of the batches.
    #[must_use]
    pub const fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// Appends records.
    pub fn extend(&mut self, views: &[K::View<'_>]) {
        for group in views.chunks(GROUP) {
            for (at, column) in self.columns.iter_mut().enumerate() {
                column.extend::<K>(group, at);
            }
        }
        self.rows += views.len();
    }

    /// Records collected.
    #[must_use]
    pub const fn rows(&self) -> usize {
        self.rows
    }

    /// Bytes of text collected. A column holds 2 GiB: callers empty the columns long before.
    #[must_use]
    pub fn text_bytes(&self) -> usize {
        self.columns.iter().map(Column::text_bytes).sum()
    }

    /// All records as one batch; the columns are empty then.
    ///
    /// # Errors
    /// None that is known: a column that does not go with the schema would be one.
    pub fn finish(&mut self) -> Result<RecordBatch, ColumnarError> {
        self.rows = 0;
        let arrays = self.columns.iter_mut().map(Column::finish).collect();
        Ok(RecordBatch::try_new(self.schema.clone(), arrays)?)
    }
}
