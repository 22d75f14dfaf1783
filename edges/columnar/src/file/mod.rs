//! Records as a Parquet file whose every row group can be the last one.

use std::sync::Arc;

use linkweir_record::{FieldType, RecordKind};
use parquet::arrow::ArrowSchemaConverter;
use parquet::arrow::arrow_writer::{ArrowWriter, ArrowWriterOptions};
use parquet::basic::{Compression, Encoding, ZstdLevel};
use parquet::file::metadata::{
    FileMetaData, KeyValue, ParquetMetaData, ParquetMetaDataWriter, RowGroupMetaData,
};
use parquet::file::properties::{EnabledStatistics, WriterProperties, WriterVersion};
use parquet::schema::types::{ColumnPath, SchemaDescPtr};

use crate::columns::Columns;
use crate::schema::ColumnarError;
use crate::schema::metadata_of;

/// Rows of a row group: what readers of Parquet take as one piece of work.
const GROUP_ROWS: usize = 131_072;

/// Encoded bytes of a row group, for records with large texts: it is kept in memory until it is
/// complete.
const GROUP_BYTES: usize = 64 << 20;

/// Rows that are encoded at once: few enough that they stay in the second-level cache.
const BATCH_ROWS: usize = 4096;

/// Bytes of text that are encoded at once.
const BATCH_BYTES: usize = 4 << 20;

/// The version of pages: the first, which every reader knows; encodings of the second are known by
/// all that read our types.
const VERSION: WriterVersion = WriterVersion::PARQUET_1_0;

/// Zstandard's level: the next ones take more time than they save bytes.
const LEVEL: i32 = 1;

/// Who made the file, as its footer says.
const CREATED_BY: &str = concat!("linkweir version ", env!("CARGO_PKG_VERSION"));

/// Turns records into the bytes of a Parquet file: row groups, each of which is followed by a footer
/// that makes a complete file of what came before.
///
/// Bytes are made in memory. [`ParquetFile::take_groups`] gives row groups that are complete,
/// [`ParquetFile::footer`] what has to follow them. Whoever keeps the file writes the next row group
/// over the footer, and a new footer after it.
#[derive(Debug)]
pub struct ParquetFile<K> {
    /// Records that are not encoded yet.
    columns: Columns<K>,
    /// The open row group, and the bytes of complete ones that were not taken. Its own footer is never
    /// written.
    writer: ArrowWriter<Vec<u8>>,
    schema: SchemaDescPtr,
    metadata: Vec<KeyValue>,
    /// Row groups whose bytes were taken.
    taken_groups: usize,
}

impl<K: RecordKind> ParquetFile<K> {
    /// A file without records; [`ParquetFile::take_groups`] gives its first bytes at once.
    ///
    /// # Errors
    /// None that is known: a schema that Parquet refuses would be one.
    pub fn new() -> Result<Self, ColumnarError> {
        let columns = Columns::with_capacity(BATCH_ROWS);
        let schema = ArrowSchemaConverter::new().convert(columns.schema())?;
        let metadata = metadata_of::<K>()
            .into_iter()
            .map(|(key, value)| KeyValue::new(key, value))
            .collect();
        let options = ArrowWriterOptions::new()
            .with_properties(properties::<K>()?)
            .with_parquet_schema(schema.clone())
            .with_skip_arrow_metadata(true);
        let writer =
            ArrowWriter::try_new_with_options(Vec::new(), columns.schema().clone(), options)?;
        Ok(Self {
            columns,
            writer,
            schema: Arc::new(schema),
            metadata,
            taken_groups: 0,
        })
    }

    /// Appends records; a row group that is full is closed.
    ///
    /// # Errors
    /// [`ColumnarError`], for none of our own reasons.
    pub fn extend(&mut self, mut views: &[K::View<'_>]) -> Result<(), ColumnarError> {
        while !views.is_empty() {
            let batch = BATCH_ROWS.min(GROUP_ROWS.saturating_sub(self.writer.in_progress_rows()));
            let room = batch.saturating_sub(self.columns.rows());
            let (now, later) = views.split_at_checked(room).unwrap_or((views, &[]));
            self.columns.extend(now);
            views = later;
            if self.columns.rows() >= batch || self.columns.text_bytes() >= BATCH_BYTES {
                self.encode()?;
                if self.writer.in_progress_rows() >= GROUP_ROWS
                    || self.writer.in_progress_size() >= GROUP_BYTES
                {
                    self.writer.flush()?;
                }
            }
        }
        Ok(())
    }

    /// Encodes what has been collected.
    fn encode(&mut self) -> Result<(), ColumnarError> {
        if self.columns.rows() > 0 {
            let batch = self.columns.finish()?;
            self.writer.write(&batch)?;
        }
        Ok(())
    }

    /// Closes the row group, if it has records.
    ///
    /// # Errors
    /// [`ColumnarError`], for none of our own reasons.
    pub fn close_group(&mut self) -> Result<(), ColumnarError> {
        self.encode()?;
        Ok(self.writer.flush()?)
    }

    /// Records that wait for the end of their row group.
    #[must_use]
    pub fn waiting_rows(&self) -> usize {
        self.columns.rows() + self.writer.in_progress_rows()
    }

    /// Whether a row group is complete and not yet taken.
    #[must_use]
    pub fn has_groups(&self) -> bool {
        self.writer.flushed_row_groups().len() > self.taken_groups
    }

    /// The bytes of the row groups that were completed since the last call, the first time behind
    /// the first bytes of the file.
    ///
    /// # Errors
    /// [`ColumnarError`], for none of our own reasons.
    pub fn take_groups(&mut self) -> Result<Vec<u8>, ColumnarError> {
        self.writer.sync()?;
        self.taken_groups = self.writer.flushed_row_groups().len();
        Ok(std::mem::take(self.writer.inner_mut()))
    }

    /// The footer of a file that ends with the row groups taken so far.
    ///
    /// # Errors
    /// [`ColumnarError`], for none of our own reasons.
    pub fn footer(&self) -> Result<Vec<u8>, ColumnarError> {
        let groups = self.writer.flushed_row_groups().to_vec();
        let rows = groups.iter().map(RowGroupMetaData::num_rows).sum();
        let file = FileMetaData::new(
            VERSION.as_num(),
            rows,
            Some(CREATED_BY.to_owned()),
            Some(self.metadata.clone()),
            Arc::clone(&self.schema),
            None,
        );
        let mut bytes = Vec::new();
        ParquetMetaDataWriter::new(&mut bytes, &ParquetMetaData::new(file, groups)).finish()?;
        Ok(bytes)
    }

    /// About how many bytes the open row group will have.
    #[must_use]
    pub fn pending_bytes(&self) -> usize {
        self.writer.in_progress_size() + self.columns.text_bytes()
    }
}

/// How the columns of a kind are encoded: compression, dictionaries, statistics.
fn properties<K: RecordKind>() -> Result<WriterProperties, ColumnarError> {
    let mut builder = WriterProperties::builder()
        .set_writer_version(VERSION)
        .set_created_by(CREATED_BY.to_owned())
        .set_compression(Compression::ZSTD(ZstdLevel::try_new(LEVEL)?))
        // Row groups are closed by us.
        .set_max_row_group_row_count(None)
        .set_offset_index_disabled(true)
        // Smallest and largest values help to skip row groups where they grow with the file: times.
        .set_statistics_enabled(EnabledStatistics::None);
    for field in K::fields() {
        let column = ColumnPath::from(field.name);
        builder = match field.kind {
            FieldType::TimeNs | FieldType::TimeMillis => builder
                .set_column_statistics_enabled(column.clone(), EnabledStatistics::Chunk)
                .set_column_dictionary_enabled(column.clone(), false)
                .set_column_encoding(column, Encoding::DELTA_BINARY_PACKED),
            FieldType::SpanNs => builder
                .set_column_dictionary_enabled(column.clone(), false)
                .set_column_encoding(column, Encoding::DELTA_BINARY_PACKED),
            // Hashes and sequence numbers: nearly all different.
            FieldType::U32 => builder
                .set_column_dictionary_enabled(column.clone(), false)
                .set_column_encoding(column, Encoding::PLAIN),
            _ => builder,
        };
    }
    Ok(builder.build())
}

#[cfg(test)]
mod tests;
