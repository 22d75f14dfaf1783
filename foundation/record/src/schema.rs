//! What a schema is: fields, values, batches.

use std::net::IpAddr;

use crate::line::LineCell;
use crate::short::Short;

/// One value of one record.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Value<'a> {
    /// Not there: an empty CSV cell, no JSON key value (`null`), Zeek's `-`.
    Null,
    /// An unsigned number.
    U64(u64),
    /// A moment, nanoseconds since the epoch.
    TimeNs(u64),
    /// A span, nanoseconds.
    SpanNs(u64),
    /// A moment or span in nanoseconds that is given in milliseconds with six decimals.
    Millis(u64),
    /// An address.
    Ip(IpAddr),
    /// A port.
    Port(u16),
    /// Text from the network: any bytes; every output escapes it.
    Text(&'a [u8]),
    /// Text that is made when it is read.
    Short(Short),
    /// A word of our own: needs no escape.
    Word(&'static str),
    /// Bytes that are no text: hexadecimal digits where only text can be written.
    Bytes(&'a [u8]),
}

/// A number, where there is one.
pub(crate) fn opt(value: Option<u64>) -> Value<'static> {
    value.map_or(Value::Null, Value::U64)
}

/// A text of the network, where there is one.
pub(crate) fn text(part: &[u8]) -> Value<'_> {
    if part.is_empty() {
        Value::Null
    } else {
        Value::Text(part)
    }
}

/// The type of a field, from which column types of typed formats derive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FieldType {
    /// [`Value::U64`] below 2^16.
    U16,
    /// [`Value::U64`] below 2^32.
    U32,
    /// [`Value::U64`].
    U64,
    /// [`Value::U64`] below 2^63, which typed formats keep as a signed number: engines without unsigned
    /// ones read those of 64 bits as decimals.
    I64,
    /// [`Value::TimeNs`].
    TimeNs,
    /// [`Value::SpanNs`].
    SpanNs,
    /// [`Value::Millis`] of a span.
    Millis,
    /// [`Value::Millis`] of a moment.
    TimeMillis,
    /// [`Value::Ip`].
    Ip,
    /// [`Value::Port`].
    Port,
    /// [`Value::Text`] or [`Value::Short`].
    Text,
    /// [`Value::Word`].
    Word,
    /// [`Value::Bytes`].
    Bytes,
}

impl FieldType {
    /// Whether values are points in time.
    #[must_use]
    pub const fn is_time(self) -> bool {
        matches!(self, Self::TimeNs | Self::TimeMillis)
    }
}

/// The column of Zeek's log of the same subject that carries a field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ZeekColumn {
    /// Zeek's name, for example `id.orig_h`.
    pub name: &'static str,
    /// Zeek's type, for example `addr`.
    pub kind: &'static str,
}

/// One column of a record kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Field {
    /// The exact name in JSON, CSV and Parquet (`CONTRACT`).
    pub name: &'static str,
    /// Its type.
    pub kind: FieldType,
    /// Its unit, empty where the type says it all.
    pub unit: &'static str,
    /// IPFIX information element id, where one exists.
    pub ipfix: Option<u16>,
    /// One line of documentation.
    pub doc: &'static str,
}

/// An address and port of one side.
pub type Endpoint = (IpAddr, u16);

/// A kind of record: its columns, and how a batch of it is read.
pub trait RecordKind: Sized + 'static {
    /// One record, borrowed from its batch.
    type View<'a>: Copy;
    /// Many records.
    type Batch: RecordBatch<Self> + Default + Send + 'static;
    /// The kind's name, for example `http_transaction`.
    const NAME: &'static str;
    /// The version of its columns: one more with every column that is added. Columns are never removed,
    /// renamed or given another type.
    const VERSION: u16 = 1;
    /// The path word of Zeek's log of the same subject, for example `http`.
    const ZEEK_PATH: &'static str;
    /// All columns, in the order of CSV and JSON.
    fn fields() -> &'static [Field];
    /// The value of column `column` (an index into [`RecordKind::fields`]); `Null` past the last.
    fn value<'a>(view: &Self::View<'a>, column: usize) -> Value<'a>
    where
        'a: 'a;
    /// How many shapes there are: records of one shape have the same columns.
    const SHAPES: usize = 1;
    /// The shape of a record, below [`RecordKind::SHAPES`].
    #[inline]
    fn shape(_view: &Self::View<'_>) -> usize {
        0
    }
    /// Whether records of a shape have the column at all. Where they do not, formats that name each value
    /// leave it out, and in the others nothing stands there.
    #[inline]
    fn has_column(_shape: usize, _column: usize) -> bool {
        true
    }
    /// The index of the column with this name.
    fn column(name: &str) -> Option<usize> {
        Self::fields().iter().position(|field| field.name == name)
    }
    /// The names of the columns of the `text` format, in its order.
    fn text_line() -> &'static [&'static str];
    /// The cells of a line for people on a terminal; none of a kind that nobody reads so.
    fn line() -> &'static [LineCell] {
        &[]
    }
    /// Zeek's columns in Zeek's order: a field's name (empty: not measured, always `-`) and the column.
    fn zeek_columns() -> &'static [(&'static str, ZeekColumn)];
    /// The moment a record belongs to, for sorting and rates; nanoseconds since the epoch.
    fn time_ns(view: &Self::View<'_>) -> u64;
    /// Both ends of the connection that a record is about, as they stand in it: records of one
    /// connection are kept together by the symmetric hash of these.
    fn endpoints(view: &Self::View<'_>) -> [Endpoint; 2];
    /// What distinguishes the subject of a record (a transaction, a flow) from others between the same
    /// endpoints: the same number in all records of one subject, and in every run.
    #[inline]
    fn subject(view: &Self::View<'_>) -> u64 {
        Self::time_ns(view)
    }
}

/// Many records of one kind.
pub trait RecordBatch<K: RecordKind> {
    /// Number of records.
    fn len(&self) -> usize;
    /// Whether there is none.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }
    /// Record `at`, where there is one.
    fn get(&self, at: usize) -> Option<K::View<'_>>;
    /// Forgets all records, keeps the memory.
    fn clear(&mut self);
    /// Copies a record in.
    fn push_view(&mut self, view: &K::View<'_>);
    /// Copies all records of another batch, in place of its own.
    fn copy_from(&mut self, other: &Self) {
        self.clear();
        for view in other.views() {
            self.push_view(&view);
        }
    }
    /// All records in order.
    fn views(&self) -> impl Iterator<Item = K::View<'_>> {
        (0..self.len()).filter_map(|at| self.get(at))
    }
    /// Bytes of memory in use, for bounds.
    fn memory_bytes(&self) -> usize;
    /// Whether something large comes with the records, so that few of them are worth writing.
    fn is_bulky(&self) -> bool {
        false
    }
}

/// Defines the columns of a kind from one list: the static table and the function that reads a
/// column from a record, so that neither can be without the other. What stands behind the last is
/// read by another function, where there is one.
macro_rules! columns {
    ($table:ident, $read:ident, $view:ident: $ty:ident, { $($name:ident: $kind:ident, $unit:literal, $ipfix:expr, $doc:literal => $value:expr;)+ } $(else $other:ident)?) => {
        #[expect(non_camel_case_types, reason = "the variants are the column names, letter by letter")]
        enum Column { $($name),+ }

        pub(crate) static $table: &[$crate::schema::Field] = &[$($crate::schema::Field {
            name: stringify!($name),
            kind: $crate::schema::FieldType::$kind,
            unit: $unit,
            ipfix: $ipfix,
            doc: $doc,
        }),+];

        #[inline]
        pub(crate) fn $read<'a>($view: &$ty<'a>, column: usize) -> $crate::schema::Value<'a> {
            $(if column == Column::$name as usize { return $value; })+
            $(if let Some(behind) = column.checked_sub($table.len()) { return $other($view, behind); })?
            $crate::schema::Value::Null
        }
    };
}
pub(crate) use columns;
