//! Records as a Parquet file whose every row group can be the last one.

use std::sync::Arc;

use linkweir_record::RecordKind;
use parquet::arrow::ArrowSchemaConverter;
use parquet::arrow::arrow_writer::{ArrowWriter, ArrowWriterOptions};
use parquet::file::metadata::{FileMetaData, KeyValue, ParquetMetaData, ParquetMetaDataWriter};
use parquet::schema::types::SchemaDescPtr;

use crate::columns::Columns;
use crate::error::ColumnarError;
use crate::properties;
use crate::schema::metadata_of;

/// Rows of a row group: what readers of Parquet take as one piece of work.
const GROUP_ROWS: usize = 131_072;

/// Encoded bytes of a row group, for records with large texts: it is kept in memory until it is
/// complete.
const GROUP_BYTES: usize = 64 << 20;

/// Rows that are encoded at once: few enough that a batch stays in the second-level cache.
const BATCH_ROWS: usize = 4096;

/// Bytes of text that are encoded at once.
const BATCH_BYTES: usize = 4 << 20;

/// Turns records into the bytes of a Parquet file: row groups, each of which is followed by a footer
/// that makes a complete file of what came before.
///
/// Bytes are made in memory. [`ParquetFile::take_groups`] gives row groups that are complete,
/// [`ParquetFile::footer`] what has to follow them. Whoever keeps the file writes the next row group
/// over the footer, and a new footer after it.
#[derive(Debug)]
pub struct ParquetFile<K> {
    columns: Columns<K>,
    writer: ArrowWriter<Vec<u8>>,
    schema: SchemaDescPtr,
    metadata: Vec<KeyValue>,
    /// Row groups whose bytes were taken.
    taken: usize,
}

impl<K: RecordKind> ParquetFile<K> {
    /// A file without records; [`ParquetFile::take_groups`] gives its first bytes at once.
    ///
    /// # Errors
    /// None that is known: a schema that Parquet refuses would be one.
    pub fn new() -> Result<Self, ColumnarError> {
        let columns = Columns::with_capacity(BATCH_ROWS);
        let schema = ArrowSchemaConverter::new().convert(columns.schema())?;
        let metadata: Vec<KeyValue> = metadata_of::<K>()
            .into_iter()
            .map(|(key, value)| KeyValue::new(key, value))
            .collect();
        let options = ArrowWriterOptions::new()
            .with_properties(properties::writer_properties::<K>())
            .with_parquet_schema(schema.clone())
            .with_skip_arrow_metadata(true);
        let writer =
            ArrowWriter::try_new_with_options(Vec::new(), columns.schema().clone(), options)?;
        Ok(Self {
            columns,
            writer,
            schema: Arc::new(schema),
            metadata,
            taken: 0,
        })
    }

    /// Appends records; a row group that is full is closed.
    ///
    /// # Errors
    /// [`ColumnarError`], for none of our own reasons.
    pub fn extend(&mut self, mut views: &[K::View<'_>]) -> Result<(), ColumnarError> {
        while !views.is_empty() {
            let room = BATCH_ROWS.saturating_sub(self.columns.rows());
            let (now, later) = views.split_at_checked(room).unwrap_or((views, &[]));
            self.columns.extend(now);
            views = later;
            if self.columns.rows() >= BATCH_ROWS || self.columns.text_bytes() >= BATCH_BYTES {
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

    /// Whether records wait for the end of their row group.
    #[must_use]
    pub fn has_open_group(&self) -> bool {
        self.columns.rows() > 0 || self.writer.in_progress_rows() > 0
    }

    /// Whether a row group is complete and not yet taken.
    #[must_use]
    pub fn has_groups(&self) -> bool {
        self.writer.flushed_row_groups().len() > self.taken
    }

    /// The bytes of the row groups that were completed since the last call, the first time behind
    /// the first bytes of the file.
    ///
    /// # Errors
    /// [`ColumnarError`], for none of our own reasons.
    pub fn take_groups(&mut self) -> Result<Vec<u8>, ColumnarError> {
        self.taken = self.writer.flushed_row_groups().len();
        self.writer.sync()?;
        Ok(std::mem::take(self.writer.inner_mut()))
    }

    /// The footer of a file that ends with the row groups taken so far.
    ///
    /// # Errors
    /// [`ColumnarError`], for none of our own reasons.
    pub fn footer(&self) -> Result<Vec<u8>, ColumnarError> {
        let groups = self.writer.flushed_row_groups().to_vec();
        let rows = groups.iter().map(|group| group.num_rows()).sum();
        let file = FileMetaData::new(
            properties::VERSION.as_num(),
            rows,
            Some(properties::CREATED_BY.to_owned()),
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
