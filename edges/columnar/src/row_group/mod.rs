//! A row group of a Parquet file while it is being filled, and its bytes.
//!
//! The library writes what it is given as Arrow arrays; a record would be copied into arrays first, and
//! each of its texts hashed again there. Here each value goes from the record to its key in the
//! dictionary of its column (or to its bits) at once, and what repeats is known by its number, address or
//! place before it is made text.
//!
//! Source: Apache Parquet's format, `README.md` and `Encodings.md`.

mod bits;
mod chunk;
mod delta;
mod dictionary;
mod hybrid;
mod levels;
mod pages;
#[cfg(test)]
mod tests;
mod texts;

use linkweir_record::RecordKind;
use parquet::file::metadata::RowGroupMetaData;
use parquet::file::writer::{SerializedPageWriter, TrackedWrite};
use parquet::schema::types::SchemaDescPtr;

use crate::error::ColumnarError;
use chunk::Chunk;
use pages::Compressor;

/// Records that are read before the next column is turned to: few enough that they stay in the
/// first-level cache, many enough that the choice of a column costs nothing; one for each bit of the
/// word that says which of them have a value.
const GROUP: usize = 64;

/// The columns of the row group that is being filled.
#[derive(Debug)]
pub(crate) struct RowGroup {
    schema: SchemaDescPtr,
    chunks: Vec<Chunk>,
    rows: usize,
    compressor: Compressor,
}

impl RowGroup {
    /// Empty columns of a kind.
    ///
    /// # Errors
    /// [`ColumnarError::Io`] where the compression cannot be set up.
    pub(crate) fn new<K: RecordKind>(schema: SchemaDescPtr) -> Result<Self, ColumnarError> {
        let chunks = K::fields()
            .iter()
            .zip(schema.columns())
            .map(|(field, column)| Chunk::new(field.kind, column.clone()))
            .collect();
        Ok(Self {
            schema,
            chunks,
            rows: 0,
            compressor: Compressor::new()?,
        })
    }

    /// Records so far.
    pub(crate) const fn rows(&self) -> usize {
        self.rows
    }

    /// About how many bytes it has: complete pages, dictionaries, and what waits for its page.
    pub(crate) fn bytes(&self) -> usize {
        self.chunks.iter().map(Chunk::bytes).sum()
    }

    /// Appends records.
    ///
    /// # Errors
    /// [`ColumnarError::Io`] of the compression.
    pub(crate) fn extend<K: RecordKind>(
        &mut self,
        views: &[K::View<'_>],
    ) -> Result<(), ColumnarError> {
        for group in views.chunks(GROUP) {
            for (at, chunk) in self.chunks.iter_mut().enumerate() {
                chunk.extend::<K>(group, at, &mut self.compressor)?;
            }
        }
        self.rows += views.len();
        Ok(())
    }

    /// Appends all to `out`, whose first byte is byte `position` of the file, and begins anew.
    ///
    /// # Errors
    /// [`ColumnarError`], for none of our own reasons.
    pub(crate) fn close(
        &mut self,
        out: &mut Vec<u8>,
        position: u64,
        ordinal: usize,
    ) -> Result<RowGroupMetaData, ColumnarError> {
        let start = position + out.len() as u64;
        let mut tracked = TrackedWrite::new(std::mem::take(out));
        let mut writer = SerializedPageWriter::new(&mut tracked);
        let mut columns = Vec::with_capacity(self.chunks.len());
        for chunk in &mut self.chunks {
            columns.push(chunk.close(&mut self.compressor, &mut writer, start)?);
        }
        *out = tracked.into_inner()?;

        let size = columns
            .iter()
            .map(|column| column.uncompressed_size())
            .sum();
        let mut builder = RowGroupMetaData::builder(self.schema.clone())
            .set_num_rows(signed(self.rows as u64))
            .set_total_byte_size(size)
            .set_file_offset(signed(start))
            .set_column_metadata(columns);
        // More than 2^15 row groups have no ordinals.
        if let Ok(ordinal) = i16::try_from(ordinal) {
            builder = builder.set_ordinal(i32::from(ordinal));
        }
        self.rows = 0;
        Ok(builder.build()?)
    }
}

/// A size or an offset as the format keeps it.
fn signed(size: u64) -> i64 {
    i64::try_from(size).unwrap_or(i64::MAX)
}
