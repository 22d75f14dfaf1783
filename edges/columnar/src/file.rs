//! Records as a Parquet file whose every row group can be the last one.

use std::marker::PhantomData;
use std::sync::Arc;

use linkweir_record::RecordKind;
use parquet::arrow::ArrowSchemaConverter;
use parquet::file::metadata::{
    FileMetaData, KeyValue, ParquetMetaData, ParquetMetaDataWriter, RowGroupMetaData,
};
use parquet::schema::types::SchemaDescPtr;

use crate::error::ColumnarError;
use crate::row_group::RowGroup;
use crate::schema::{metadata_of, schema_of};

/// Rows of a row group: what readers of Parquet take as one piece of work.
const GROUP_ROWS: usize = 131_072;

/// Encoded bytes of a row group, for records with large texts: it is kept in memory until it is
/// complete.
const GROUP_BYTES: usize = 64 << 20;

/// Rows after which the size of the row group is looked at.
const BATCH_ROWS: usize = 4096;

/// The version of pages: the first, which every reader knows; encodings of the second are known by
/// all that read our types.
const VERSION: i32 = 1;

/// Who made the file, as its footer says.
const CREATED_BY: &str = concat!("linkweir version ", env!("CARGO_PKG_VERSION"));

/// What a file begins with.
const MAGIC: &[u8] = b"PAR1";

/// Turns records into the bytes of a Parquet file: row groups, each of which is followed by a footer
/// that makes a complete file of what came before.
///
/// Bytes are made in memory. [`ParquetFile::take_groups`] gives row groups that are complete,
/// [`ParquetFile::footer`] what has to follow them. Whoever keeps the file writes the next row group
/// over the footer, and a new footer after it.
#[derive(Debug)]
pub struct ParquetFile<K> {
    group: RowGroup,
    schema: SchemaDescPtr,
    metadata: Vec<KeyValue>,
    /// Row groups that are complete.
    complete: Vec<RowGroupMetaData>,
    /// Their bytes that were not taken, and how many were.
    bytes: Vec<u8>,
    taken_bytes: u64,
    taken_groups: usize,
    kind: PhantomData<fn(K)>,
}

impl<K: RecordKind> ParquetFile<K> {
    /// A file without records; [`ParquetFile::take_groups`] gives its first bytes at once.
    ///
    /// # Errors
    /// None that is known: a schema that Parquet refuses would be one.
    pub fn new() -> Result<Self, ColumnarError> {
        let schema = Arc::new(ArrowSchemaConverter::new().convert(&schema_of::<K>())?);
        let metadata = metadata_of::<K>()
            .into_iter()
            .map(|(key, value)| KeyValue::new(key, value))
            .collect();
        Ok(Self {
            group: RowGroup::new::<K>(Arc::clone(&schema))?,
            schema,
            metadata,
            complete: Vec::new(),
            bytes: MAGIC.to_vec(),
            taken_bytes: 0,
            taken_groups: 0,
            kind: PhantomData,
        })
    }

    /// Appends records; a row group that is full is closed.
    ///
    /// # Errors
    /// [`ColumnarError`], for none of our own reasons.
    pub fn extend(&mut self, mut views: &[K::View<'_>]) -> Result<(), ColumnarError> {
        while !views.is_empty() {
            let room = BATCH_ROWS.min(GROUP_ROWS - self.group.rows());
            let (now, later) = views.split_at_checked(room).unwrap_or((views, &[]));
            self.group.extend::<K>(now)?;
            views = later;
            if self.group.rows() >= GROUP_ROWS || self.group.bytes() >= GROUP_BYTES {
                self.close_group()?;
            }
        }
        Ok(())
    }

    /// Closes the row group, if it has records.
    ///
    /// # Errors
    /// [`ColumnarError`], for none of our own reasons.
    pub fn close_group(&mut self) -> Result<(), ColumnarError> {
        if self.waiting_rows() > 0 {
            let ordinal = self.complete.len();
            let group = self
                .group
                .close(&mut self.bytes, self.taken_bytes, ordinal)?;
            self.complete.push(group);
        }
        Ok(())
    }

    /// Records that wait for the end of their row group.
    #[must_use]
    pub const fn waiting_rows(&self) -> usize {
        self.group.rows()
    }

    /// Whether a row group is complete and not yet taken.
    #[must_use]
    pub const fn has_groups(&self) -> bool {
        self.complete.len() > self.taken_groups
    }

    /// The bytes of the row groups that were completed since the last call, the first time behind
    /// the first bytes of the file.
    pub fn take_groups(&mut self) -> Vec<u8> {
        self.taken_groups = self.complete.len();
        self.taken_bytes += self.bytes.len() as u64;
        std::mem::take(&mut self.bytes)
    }

    /// The footer of a file that ends with the row groups taken so far.
    ///
    /// # Errors
    /// [`ColumnarError`], for none of our own reasons.
    pub fn footer(&self) -> Result<Vec<u8>, ColumnarError> {
        let groups = self.complete.clone();
        let rows = groups.iter().map(RowGroupMetaData::num_rows).sum();
        let file = FileMetaData::new(
            VERSION,
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
        self.group.bytes()
    }
}
