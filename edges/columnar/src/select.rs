//! Some columns of Parquet files and Arrow streams, whoever wrote them.
//!
//! Columns are found by name, so files of every version of a kind can be read, and what an engine has
//! made of them: texts may have become large, views or dictionaries, moments may have another unit.

use std::fs::File;
use std::io::Read;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{
    Int64Type, TimestampMicrosecondType, TimestampMillisecondType, TimestampNanosecondType,
    TimestampSecondType, UInt64Type,
};
use arrow_array::{Array, ArrayAccessor, ArrowPrimitiveType, RecordBatch};
use arrow_ipc::reader::StreamReader;
use arrow_schema::{ArrowError, DataType, Schema, SchemaRef, TimeUnit};
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::{
    ArrowReaderMetadata, ArrowReaderOptions, ParquetRecordBatchReaderBuilder,
};

use crate::schema::{ColumnarError, KIND_KEY};
use crate::vet::guarded;
use crate::vet::{self, Vetted};

/// Rows that are decoded at once, and given at once of a batch of any length.
const BATCH_ROWS: usize = 8192;

/// Bytes that the values of the columns may come to in rows that are decoded at once.
const BATCH_BYTES: u64 = 256 << 20;

/// Rows that are decoded at once where all of a row group may have more bytes than that.
const FEW_ROWS: usize = 16;

/// A column that compression has made smaller than one in so many may be one value, large enough for many files.
const MAX_RATIO: u64 = 64;

/// Columns that an error names of those that are there.
const SHOWN: usize = 12;

/// A form of columns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// A stream of Arrow's IPC format.
    Stream,
    /// Arrow's file format (Feather), which is not a stream.
    File,
    /// A Parquet file.
    Parquet,
}

impl Form {
    /// The form of what begins so; nothing for everything else.
    ///
    /// Source: Arrow columnar format, "Encapsulated message format" (the continuation mark) and "IPC
    /// File Format"; Parquet file format.
    #[must_use]
    pub fn of(beginning: &[u8]) -> Option<Self> {
        match beginning {
            [0xff, 0xff, 0xff, 0xff, ..] => Some(Self::Stream),
            [b'A', b'R', b'R', b'O', b'W', b'1', ..] => Some(Self::File),
            [b'P', b'A', b'R', b'1', ..] => Some(Self::Parquet),
            _ => None,
        }
    }
}

/// Why columns cannot be had.
#[derive(Debug, thiserror::Error)]
pub enum SelectError {
    /// The library's word.
    #[error(transparent)]
    Columnar(#[from] ColumnarError),
    /// A column that is not there.
    #[error("no column `{name}`; there are: {found}")]
    Missing {
        /// The column.
        name: String,
        /// The first columns that are there, joined by commas.
        found: String,
    },
    /// A column of a type that cannot be what is wanted.
    #[error("column `{name}` is {found}, not {wanted}")]
    Type {
        /// The column.
        name: String,
        /// Its type.
        found: String,
        /// What it should be, for people.
        wanted: &'static str,
    },
}

type Batches = Box<dyn Iterator<Item = Result<RecordBatch, ColumnarError>> + Send>;

/// A table that is read by batches of rows.
pub struct Table {
    batches: Batches,
    /// A batch that is given in pieces, and the rows of it that were. A batch of a stream has as many rows as its writer
    /// liked, and those of columns without a value take no bytes.
    batch: Option<(RecordBatch, usize)>,
}

/// What is known of a table before it is read.
#[derive(Debug)]
pub struct Described {
    /// The kind of its records, as it says itself ([`KIND_KEY`]).
    pub kind: Option<String>,
    /// Its columns.
    pub columns: Vec<String>,
}

impl Described {
    fn of(schema: &SchemaRef, kind: Option<String>) -> Self {
        let columns = schema.fields().iter().map(|field| field.name().clone());
        Self {
            kind: kind.or_else(|| schema.metadata().get(KIND_KEY).cloned()),
            columns: columns.collect(),
        }
    }
}

impl std::fmt::Debug for Table {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Table").finish_non_exhaustive()
    }
}

/// That all these columns are there.
fn check(schema: &SchemaRef, names: &[&str]) -> Result<(), SelectError> {
    for name in names {
        if schema.column_with_name(name).is_none() {
            let all = schema.fields().iter().map(|field| field.name().as_str());
            let mut found: Vec<&str> = all.take(SHOWN).collect();
            if schema.fields().len() > SHOWN {
                found.push("...");
            }
            return Err(SelectError::Missing {
                name: (*name).to_owned(),
                found: found.join(", "),
            });
        }
    }
    Ok(())
}

impl Table {
    /// A stream of Arrow's IPC format.
    ///
    /// # Errors
    /// [`SelectError::Columnar`] where it does not begin as one, [`SelectError::Missing`] where one of
    /// the columns `names` is not in its schema.
    pub fn of_stream(
        bytes: impl Read + Send + 'static,
        names: &[&str],
    ) -> Result<Self, SelectError> {
        let reader = guarded(|| StreamReader::try_new(Vetted::new(bytes), None))?
            .map_err(ColumnarError::from)?;
        check(&reader.schema(), names)?;
        Ok(Self::of_reader(reader))
    }

    /// The same with all columns, and what the stream says of itself.
    ///
    /// # Errors
    /// [`SelectError::Columnar`] where it does not begin as one.
    pub fn of_any_stream(
        bytes: impl Read + Send + 'static,
    ) -> Result<(Self, Described), SelectError> {
        let reader = guarded(|| StreamReader::try_new(Vetted::new(bytes), None))?
            .map_err(ColumnarError::from)?;
        let described = Described::of(&reader.schema(), None);
        Ok((Self::of_reader(reader), described))
    }

    fn of_reader(
        reader: impl Iterator<Item = Result<RecordBatch, ArrowError>> + Send + 'static,
    ) -> Self {
        let batches = reader.map(|batch| batch.map_err(ColumnarError::from));
        Self {
            batches: Box::new(batches),
            batch: None,
        }
    }

    /// A Parquet file, of which only the columns `names` are decoded.
    ///
    /// # Errors
    /// As [`Table::of_stream`].
    pub fn of_parquet(file: File, names: &[&str]) -> Result<Self, SelectError> {
        let (builder, size) = parquet(file)?;
        check(builder.schema(), names)?;
        Self::of_builder(builder, size, names)
    }

    /// The same with the columns that `choose` names of those that are there, by what the file says of itself.
    ///
    /// # Errors
    /// As [`Table::of_stream`].
    pub fn of_any_parquet(
        file: File,
        choose: impl FnOnce(&Described) -> Vec<String>,
    ) -> Result<(Self, Described), SelectError> {
        let (builder, size) = parquet(file)?;
        let metadata = builder.metadata().file_metadata().key_value_metadata();
        let kind = metadata
            .into_iter()
            .flatten()
            .find(|pair| pair.key == KIND_KEY);
        let kind = kind.and_then(|pair| pair.value.clone());
        let described = Described::of(builder.schema(), kind);
        let names = choose(&described);
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        Ok((Self::of_builder(builder, size, &names)?, described))
    }

    fn of_builder(
        builder: ParquetRecordBatchReaderBuilder<File>,
        size: vet::GroupSize,
        names: &[&str],
    ) -> Result<Self, SelectError> {
        let mask = ProjectionMask::columns(builder.parquet_schema(), names.iter().copied());
        let builder = builder
            .with_projection(mask)
            .with_batch_size(batch_rows(size));
        let reader = guarded(|| builder.build())?.map_err(ColumnarError::from)?;
        Ok(Self::of_reader(reader))
    }
}

/// A Parquet file, and the size of its largest row group. Texts are decoded as views, which share the bytes of a value that a
/// dictionary repeats.
fn parquet(
    file: File,
) -> Result<(ParquetRecordBatchReaderBuilder<File>, vet::GroupSize), SelectError> {
    let length = file.metadata().map_err(ColumnarError::from)?.len();
    let metadata = guarded(|| ArrowReaderMetadata::load(&file, ArrowReaderOptions::new()))?
        .map_err(ColumnarError::from)?;
    let size = vet::largest_group(metadata.metadata(), length).map_err(ColumnarError::from)?;
    let options = ArrowReaderOptions::new().with_schema(with_views(metadata.schema()));
    let viewed =
        guarded(|| ArrowReaderMetadata::try_new(Arc::clone(metadata.metadata()), options))?;
    // Types of others that the library cannot give as views stay what they are.
    let metadata = viewed.unwrap_or(metadata);
    let builder = ParquetRecordBatchReaderBuilder::new_with_metadata(file, metadata);
    Ok((builder, size))
}

/// The schema with views in the place of texts and bytes.
fn with_views(schema: &Schema) -> SchemaRef {
    let fields = schema.fields().iter().map(|field| {
        let viewed = match field.data_type() {
            DataType::Utf8 | DataType::LargeUtf8 => DataType::Utf8View,
            DataType::Binary | DataType::LargeBinary => DataType::BinaryView,
            _ => return Arc::clone(field),
        };
        Arc::new(field.as_ref().clone().with_data_type(viewed))
    });
    let fields: Vec<_> = fields.collect();
    Arc::new(Schema::new_with_metadata(fields, schema.metadata().clone()))
}

/// Rows that are decoded at once where the largest row group is of this size: they need the pages that they are in, at most all of
/// the group.
fn batch_rows(size: vet::GroupSize) -> usize {
    match size.bytes {
        0..=BATCH_BYTES => BATCH_ROWS,
        bytes if bytes / MAX_RATIO <= size.compressed => FEW_ROWS,
        // Any value may be as large as all of them.
        _ => 1,
    }
}

impl Iterator for Table {
    type Item = Result<RecordBatch, ColumnarError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.batch.is_none() {
            let next = guarded(|| self.batches.next()).unwrap_or_else(|error| Some(Err(error)));
            match next? {
                Ok(batch) => self.batch = Some((batch, 0)),
                Err(error) => {
                    // Nobody knows in which state the library is then.
                    self.batches = Box::new(std::iter::empty());
                    return Some(Err(error));
                }
            }
        }
        let (batch, given) = self.batch.as_mut()?;
        let rows = (batch.num_rows() - *given).min(BATCH_ROWS);
        let piece = batch.slice(*given, rows);
        *given += rows;
        if *given == batch.num_rows() {
            self.batch = None;
        }
        Some(Ok(piece))
    }
}

fn column<'a>(batch: &'a RecordBatch, name: &str) -> Result<&'a dyn Array, SelectError> {
    check(batch.schema_ref(), &[name])?;
    batch
        .column_by_name(name)
        .map(AsRef::as_ref)
        .ok_or_else(|| SelectError::Missing {
            name: name.to_owned(),
            found: String::new(),
        })
}

/// The texts of a column; nothing where a row has none.
///
/// # Errors
/// [`SelectError::Missing`], or [`SelectError::Type`] where they are no texts.
pub fn texts<'a>(batch: &'a RecordBatch, name: &str) -> Result<Vec<Option<&'a str>>, SelectError> {
    let array = column(batch, name)?;
    of_texts(array).ok_or_else(|| SelectError::Type {
        name: name.to_owned(),
        found: array.data_type().to_string(),
        wanted: "a text",
    })
}

fn of_texts(array: &dyn Array) -> Option<Vec<Option<&str>>> {
    let (values, places) = values_of(array);
    match values.data_type() {
        DataType::Utf8 => Some(at_places(&values.as_string_opt::<i32>()?, places)),
        DataType::LargeUtf8 => Some(at_places(&values.as_string_opt::<i64>()?, places)),
        DataType::Utf8View => Some(at_places(&values.as_string_view_opt()?, places)),
        DataType::Null => Some(vec![None; array.len()]),
        _ => None,
    }
}

/// The values of an array, and for each row which of them it has: those of a dictionary may be far more than its rows.
pub(crate) fn values_of(array: &dyn Array) -> (&dyn Array, Vec<Option<usize>>) {
    let Some(dictionary) = array.as_any_dictionary_opt() else {
        return (array, (0..array.len()).map(Some).collect());
    };
    let values = dictionary.values().as_ref();
    if values.is_empty() {
        return (values, vec![None; array.len()]);
    }
    let keys = dictionary.normalized_keys().into_iter().enumerate();
    let places = keys.map(|(row, key)| dictionary.keys().is_valid(row).then_some(key));
    (values, places.collect())
}

/// The values at these places; nothing where there is no place, or no value at it.
pub(crate) fn at_places<A: ArrayAccessor>(
    values: &A,
    places: Vec<Option<usize>>,
) -> Vec<Option<A::Item>> {
    let places = places.into_iter();
    let value = |at: Option<usize>| {
        let at = at.filter(|at| *at < values.len() && values.is_valid(*at))?;
        Some(values.value(at))
    };
    places.map(value).collect()
}

/// The moments of a column in nanoseconds since the epoch; nothing where a row has none.
///
/// Integers are taken as nanoseconds.
///
/// # Errors
/// [`SelectError::Missing`], or [`SelectError::Type`] where they are no moments after 1970 that 64 bits
/// of nanoseconds hold.
pub fn moments(batch: &RecordBatch, name: &str) -> Result<Vec<Option<u64>>, SelectError> {
    let array = column(batch, name)?;
    let of_unit = |unit: TimeUnit| match unit {
        TimeUnit::Second => scaled::<TimestampSecondType>(array, 1_000_000_000),
        TimeUnit::Millisecond => scaled::<TimestampMillisecondType>(array, 1_000_000),
        TimeUnit::Microsecond => scaled::<TimestampMicrosecondType>(array, 1000),
        TimeUnit::Nanosecond => scaled::<TimestampNanosecondType>(array, 1),
    };
    let read = match array.data_type() {
        DataType::Timestamp(unit, _) => of_unit(*unit),
        DataType::Int64 => scaled::<Int64Type>(array, 1),
        DataType::UInt64 => array
            .as_primitive_opt::<UInt64Type>()
            .map(|array| array.iter().collect()),
        DataType::Null => Some(vec![None; array.len()]),
        _ => None,
    };
    read.ok_or_else(|| SelectError::Type {
        name: name.to_owned(),
        found: array.data_type().to_string(),
        wanted: "a time in nanoseconds since 1970",
    })
}

/// Values of a signed type times `nanos`; nothing where one is before the epoch or too large.
fn scaled<T: ArrowPrimitiveType<Native = i64>>(
    array: &dyn Array,
    nanos: u64,
) -> Option<Vec<Option<u64>>> {
    let array = array.as_primitive_opt::<T>()?;
    let value = |value: Option<i64>| match value {
        None => Some(None),
        Some(value) => Some(Some(u64::try_from(value).ok()?.checked_mul(nanos)?)),
    };
    array.iter().map(value).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Cursor, Write};

    use arrow_array::types::Int32Type;
    use arrow_array::{
        ArrayRef, DictionaryArray, Float64Array, Int64Array, LargeStringArray, StringArray,
        StringViewArray, TimestampMicrosecondArray, TimestampNanosecondArray, UInt64Array,
    };
    use arrow_ipc::writer::StreamWriter;
    use linkweir_record::{HttpBatch, HttpKind, HttpRow, RecordBatch as _, Text};

    use crate::{ArrowStream, ParquetFile};

    fn records() -> HttpBatch {
        let mut batch = HttpBatch::default();
        for n in 0..20_000_u64 {
            let row = HttpRow {
                client_ip: std::net::Ipv4Addr::from_bits(u32::try_from(n % 7).unwrap()).into(),
                request_ts_ns: (n % 5 > 0).then_some(1_700_000_000_000_000_000 + n),
                ..HttpRow::default()
            };
            batch.push(row, &Text::default());
        }
        batch
    }

    fn read(table: Table) -> Vec<(String, Option<u64>)> {
        let mut rows = Vec::new();
        for batch in table {
            let batch = batch.unwrap();
            let clients = texts(&batch, "client_ip").unwrap();
            let times = moments(&batch, "request_ts_ns").unwrap();
            rows.extend(clients.iter().map(|c| c.unwrap().to_owned()).zip(times));
        }
        rows
    }

    const NAMES: [&str; 2] = ["client_ip", "request_ts_ns"];

    #[test]
    fn streams_and_files_say_the_same() {
        let batch = records();
        let views: Vec<_> = batch.views().collect();
        let expected: Vec<(String, Option<u64>)> = views
            .iter()
            .map(|view| (view.row.client_ip.to_string(), view.row.request_ts_ns))
            .collect();

        let mut stream = ArrowStream::<HttpKind>::new().unwrap();
        stream.extend(&views).unwrap();
        stream.end().unwrap();
        let bytes = stream.take();
        assert_eq!(Form::of(&bytes), Some(Form::Stream));
        assert_eq!(
            read(Table::of_stream(Cursor::new(bytes), &NAMES).unwrap()),
            expected
        );

        let mut file = ParquetFile::<HttpKind>::new().unwrap();
        file.extend(&views).unwrap();
        file.close_group().unwrap();
        let mut bytes = file.take_groups().unwrap();
        bytes.extend(file.footer().unwrap());
        assert_eq!(Form::of(&bytes), Some(Form::Parquet));
        let mut kept = tempfile::tempfile().unwrap();
        kept.write_all(&bytes).unwrap();
        assert_eq!(read(Table::of_parquet(kept, &NAMES).unwrap()), expected);
    }

    fn batch_of(name: &str, array: ArrayRef) -> RecordBatch {
        RecordBatch::try_from_iter([(name, array)]).unwrap()
    }

    #[test]
    fn what_engines_make_of_texts_and_moments_is_read() {
        let dictionary: DictionaryArray<Int32Type> =
            [Some("a"), None, Some("a")].into_iter().collect();
        let arrays: [ArrayRef; 4] = [
            Arc::new(StringArray::from(vec![Some("a"), None, Some("a")])),
            Arc::new(LargeStringArray::from(vec![Some("a"), None, Some("a")])),
            Arc::new(StringViewArray::from(vec![Some("a"), None, Some("a")])),
            Arc::new(dictionary),
        ];
        for array in arrays {
            let batch = batch_of("x", array);
            assert_eq!(texts(&batch, "x").unwrap(), [Some("a"), None, Some("a")]);
        }
        let arrays: [ArrayRef; 5] = [
            Arc::new(TimestampNanosecondArray::from(vec![Some(5_000), None])),
            Arc::new(TimestampNanosecondArray::from(vec![Some(5_000), None]).with_timezone("UTC")),
            Arc::new(TimestampMicrosecondArray::from(vec![Some(5), None])),
            Arc::new(Int64Array::from(vec![Some(5_000), None])),
            Arc::new(UInt64Array::from(vec![Some(5_000), None])),
        ];
        for array in arrays {
            let batch = batch_of("t", array);
            assert_eq!(moments(&batch, "t").unwrap(), [Some(5_000), None]);
        }
    }

    #[test]
    fn what_is_missing_or_wrong_is_named() {
        let array: ArrayRef = Arc::new(Float64Array::from(vec![1.0]));
        let batch = batch_of("request_ts_ns", Arc::clone(&array));
        let error = moments(&batch, "request_ts_ns").unwrap_err();
        assert_eq!(
            error.to_string(),
            "column `request_ts_ns` is Float64, not a time in nanoseconds since 1970"
        );
        assert!(texts(&batch, "request_ts_ns").is_err());
        let before_the_epoch: ArrayRef = Arc::new(Int64Array::from(vec![-1]));
        assert!(moments(&batch_of("t", before_the_epoch), "t").is_err());

        let mut writer = StreamWriter::try_new(Vec::new(), batch.schema_ref()).unwrap();
        writer.write(&batch).unwrap();
        let bytes = writer.into_inner().unwrap();
        let error = Table::of_stream(Cursor::new(bytes), &NAMES).unwrap_err();
        assert_eq!(
            error.to_string(),
            "no column `client_ip`; there are: request_ts_ns"
        );
        assert!(Table::of_stream(Cursor::new(b"\xff\xff\xff\xff\x09".to_vec()), &NAMES).is_err());
        assert_eq!(Form::of(b"ARROW1\0\0"), Some(Form::File));
        assert_eq!(Form::of(b"{\"a\":1}"), None);
    }
}
