//! Records turned into columns, each of which is filled by itself.

use std::marker::PhantomData;
use std::sync::Arc;

use arrow_array::builder::{BinaryBuilder, PrimitiveBuilder, StringBuilder};
use arrow_array::types::{
    Float64Type, Int64Type, TimestampNanosecondType, UInt16Type, UInt32Type, UInt64Type,
};
use arrow_array::{ArrayRef, RecordBatch};
use arrow_schema::SchemaRef;
use linkweir_record::{FieldType, RecordKind, Value};

use crate::schema::{ColumnarError, schema_of};
use crate::text;
use crate::text::Addresses;

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
        let shapes = shapes_of::<K>(views);
        for group in views.chunks(GROUP) {
            for (at, column) in self.columns.iter_mut().enumerate() {
                column.extend::<K>(group, &shapes, at);
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

/// The values of a column so far. A value that its type cannot hold (a moment after the year 2262)
/// is null.
#[derive(Debug)]
pub(crate) enum Column {
    U16(PrimitiveBuilder<UInt16Type>),
    U32(PrimitiveBuilder<UInt32Type>),
    U64(PrimitiveBuilder<UInt64Type>),
    I64(PrimitiveBuilder<Int64Type>),
    Time(PrimitiveBuilder<TimestampNanosecondType>),
    Millis(PrimitiveBuilder<Float64Type>),
    Ip(StringBuilder, Box<Addresses>),
    Text(StringBuilder, String),
    Bytes(BinaryBuilder),
}

impl Column {
    /// An empty column with room for `rows` values.
    pub(crate) fn new(kind: FieldType, rows: usize) -> Self {
        /// A first guess; buffers grow to what the network sends.
        const TEXT_BYTES: usize = 16;
        match kind {
            FieldType::U16 | FieldType::Port => Self::U16(PrimitiveBuilder::with_capacity(rows)),
            FieldType::U32 => Self::U32(PrimitiveBuilder::with_capacity(rows)),
            FieldType::U64 => Self::U64(PrimitiveBuilder::with_capacity(rows)),
            FieldType::SpanNs | FieldType::I64 => Self::I64(PrimitiveBuilder::with_capacity(rows)),
            FieldType::TimeNs | FieldType::TimeMillis => {
                Self::Time(PrimitiveBuilder::with_capacity(rows))
            }
            FieldType::Millis => Self::Millis(PrimitiveBuilder::with_capacity(rows)),
            FieldType::Ip => Self::Ip(
                StringBuilder::with_capacity(rows, rows * TEXT_BYTES),
                Box::default(),
            ),
            FieldType::Text | FieldType::Word => Self::Text(
                StringBuilder::with_capacity(rows, rows * TEXT_BYTES),
                String::new(),
            ),
            FieldType::Bytes => Self::Bytes(BinaryBuilder::with_capacity(rows, rows * TEXT_BYTES)),
        }
    }

    /// Appends so many nulls.
    fn extend_nulls(&mut self, rows: usize) {
        match self {
            Self::U16(builder) => builder.append_nulls(rows),
            Self::U32(builder) => builder.append_nulls(rows),
            Self::U64(builder) => builder.append_nulls(rows),
            Self::I64(builder) => builder.append_nulls(rows),
            Self::Time(builder) => builder.append_nulls(rows),
            Self::Millis(builder) => builder.append_nulls(rows),
            Self::Ip(builder, _) | Self::Text(builder, _) => builder.append_nulls(rows),
            Self::Bytes(builder) => builder.append_nulls(rows),
        }
    }

    /// Appends column `at` of all of `views`, which are of these shapes. The type is looked at once, not for every
    /// value, and so is whether any has the column.
    pub(crate) fn extend<K: RecordKind>(
        &mut self,
        views: &[K::View<'_>],
        shapes: &[usize],
        at: usize,
    ) {
        if !shapes.iter().any(|shape| K::has_column(*shape, at)) {
            return self.extend_nulls(views.len());
        }
        match self {
            Self::U16(builder) => {
                for value in values::<K>(views, at) {
                    builder.append_option(number(value).and_then(|n| u16::try_from(n).ok()));
                }
            }
            Self::U32(builder) => {
                for value in values::<K>(views, at) {
                    builder.append_option(number(value).and_then(|n| u32::try_from(n).ok()));
                }
            }
            Self::U64(builder) => {
                for value in values::<K>(views, at) {
                    builder.append_option(number(value));
                }
            }
            Self::I64(builder) => {
                for value in values::<K>(views, at) {
                    builder.append_option(number(value).and_then(|n| i64::try_from(n).ok()));
                }
            }
            Self::Time(builder) => {
                for value in values::<K>(views, at) {
                    builder.append_option(number(value).and_then(|n| i64::try_from(n).ok()));
                }
            }
            Self::Millis(builder) => {
                for value in values::<K>(views, at) {
                    builder.append_option(number(value).map(millis));
                }
            }
            Self::Ip(builder, addresses) => {
                for value in values::<K>(views, at) {
                    match value {
                        Value::Ip(address) => builder.append_value(addresses.text(address)),
                        _ => builder.append_null(),
                    }
                }
            }
            Self::Text(builder, scratch) => {
                for value in values::<K>(views, at) {
                    match value {
                        Value::Text(bytes) => builder.append_value(text::valid(bytes, scratch)),
                        Value::Short(short) => {
                            builder.append_value(text::valid(short.as_bytes(), scratch));
                        }
                        Value::Word(word) => builder.append_value(word),
                        _ => builder.append_null(),
                    }
                }
            }
            Self::Bytes(builder) => {
                for value in values::<K>(views, at) {
                    match value {
                        Value::Bytes(bytes) => builder.append_value(bytes),
                        _ => builder.append_null(),
                    }
                }
            }
        }
    }

    /// The array of all values; the column is empty then.
    pub(crate) fn finish(&mut self) -> ArrayRef {
        match self {
            Self::U16(builder) => Arc::new(builder.finish()),
            Self::U32(builder) => Arc::new(builder.finish()),
            Self::U64(builder) => Arc::new(builder.finish()),
            Self::I64(builder) => Arc::new(builder.finish()),
            Self::Time(builder) => Arc::new(builder.finish()),
            Self::Millis(builder) => Arc::new(builder.finish()),
            Self::Ip(builder, _) | Self::Text(builder, _) => Arc::new(builder.finish()),
            Self::Bytes(builder) => Arc::new(builder.finish()),
        }
    }

    /// Bytes of text so far.
    pub(crate) fn text_bytes(&self) -> usize {
        match self {
            Self::Ip(builder, _) | Self::Text(builder, _) => builder.values_slice().len(),
            Self::Bytes(builder) => builder.values_slice().len(),
            _ => 0,
        }
    }
}

/// The shapes that occur.
pub(crate) fn shapes_of<K: RecordKind>(views: &[K::View<'_>]) -> Vec<usize> {
    let mut occurs = vec![false; K::SHAPES];
    for view in views {
        if let Some(occurs) = occurs.get_mut(K::shape(view)) {
            *occurs = true;
        }
    }
    (0..K::SHAPES)
        .filter(|shape| occurs.get(*shape) == Some(&true))
        .collect()
}

/// The values of column `at`; null where records like this one do not have it.
#[inline]
fn values<'a, K: RecordKind>(views: &[K::View<'a>], at: usize) -> impl Iterator<Item = Value<'a>> {
    views.iter().map(move |view| {
        if K::has_column(K::shape(view), at) {
            K::value(view, at)
        } else {
            Value::Null
        }
    })
}

/// A number in the unit of its column: moments and spans in nanoseconds.
#[inline]
pub(crate) fn number(value: Value<'_>) -> Option<u64> {
    match value {
        Value::U64(n) | Value::TimeNs(n) | Value::SpanNs(n) | Value::Millis(n) => Some(n),
        Value::Port(port) => Some(u64::from(port)),
        _ => None,
    }
}

/// Nanoseconds as milliseconds: the nearest number to the six decimals of the text formats.
#[expect(
    clippy::cast_precision_loss,
    reason = "spans are below 2^53 ns, which is 104 days; above, the nearest number is meant"
)]
pub(crate) fn millis(nanos: u64) -> f64 {
    nanos as f64 / 1e6
}
