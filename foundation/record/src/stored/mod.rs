//! Records that are read back from where they were written.
//!
//! [`Stored`] is a kind with the columns of another one, whose records are cells instead of what a run has measured: filters,
//! formats and outputs take them as they take the others. [`Lines`] reads `jsonl`; `linkweir-columnar` fills the same
//! batches from Parquet and Arrow.

mod json;
mod scan;

use std::marker::PhantomData;
use std::net::{IpAddr, Ipv6Addr};

pub use json::{Lines, members};
pub use scan::LineError;

use crate::ddl::KindSchema;
use crate::header::header_of_column;
use crate::line::LineCell;
use crate::schema::{Endpoint, Field, FieldType, RecordBatch, RecordKind, Value, ZeekColumn};

/// Bytes of the longest text that is kept, 256 KiB: the most that the fields of a message come to in a run, so longer ones are
/// not of a run. They are cut off.
pub const MAX_TEXT: usize = 256 << 10;

/// The kind of records that were of kind `K` when they were written.
#[derive(Debug)]
pub struct Stored<K>(PhantomData<fn() -> K>);

/// A value as it is kept.
#[derive(Debug, Clone, Copy)]
enum Cell {
    /// No value.
    Null,
    /// A number, a moment, a span, a port.
    Number(u64),
    /// An address.
    Ip(IpAddr),
    /// Where a text stands in the arena.
    Text(usize, usize),
}

/// Many stored records.
///
/// Shape: as many cells as columns for each record, and the texts of all in one arena.
#[derive(Debug)]
pub struct StoredBatch<K> {
    cells: Vec<Cell>,
    /// A bit for each column that stood in the record, with or without a value.
    present: Vec<u64>,
    arena: Vec<u8>,
    rows: usize,
    kind: PhantomData<fn() -> K>,
}

/// One stored record.
#[derive(Debug, Clone, Copy)]
pub struct StoredRecord<'a> {
    fields: &'static [Field],
    cells: &'a [Cell],
    present: &'a [u64],
    arena: &'a [u8],
}

impl<'a> StoredRecord<'a> {
    /// The value of a column, by its place in the schema; `Null` past the last.
    #[must_use]
    pub fn value(&self, column: usize) -> Value<'a> {
        let (Some(cell), Some(field)) = (self.cells.get(column), self.fields.get(column)) else {
            return Value::Null;
        };
        match (*cell, field.kind) {
            (Cell::Null, _) => Value::Null,
            (Cell::Ip(address), _) => Value::Ip(address),
            (Cell::Text(from, to), kind) => {
                let text = self.arena.get(from..to).unwrap_or_default();
                match kind {
                    FieldType::Bytes => Value::Bytes(text),
                    _ => Value::Text(text),
                }
            }
            (Cell::Number(number), FieldType::TimeNs) => Value::TimeNs(number),
            (Cell::Number(number), FieldType::SpanNs) => Value::SpanNs(number),
            (Cell::Number(number), FieldType::Millis | FieldType::TimeMillis) => {
                Value::Millis(number)
            }
            (Cell::Number(number), FieldType::Port) => {
                u16::try_from(number).map_or(Value::Null, Value::Port)
            }
            (Cell::Number(number), _) => Value::U64(number),
        }
    }

    /// A number, a moment or a span, in its smallest unit.
    #[must_use]
    pub fn number(&self, column: usize) -> Option<u64> {
        match self.cells.get(column) {
            Some(Cell::Number(number)) => Some(*number),
            _ => None,
        }
    }

    /// The value of the first column of these types that has one.
    fn first(&self, kinds: &[FieldType]) -> Option<Value<'a>> {
        let fields = self.fields.iter().enumerate();
        let mut of_kind = fields.filter(|(_, field)| kinds.contains(&field.kind));
        of_kind.find_map(|(at, _)| Some(self.value(at)).filter(|value| *value != Value::Null))
    }

    fn has(&self, column: usize) -> bool {
        let word = self.present.get(column / 64);
        word.is_some_and(|word| word >> (column % 64) & 1 == 1)
    }
}

impl<K> Default for StoredBatch<K> {
    fn default() -> Self {
        Self {
            cells: Vec::new(),
            present: Vec::new(),
            arena: Vec::new(),
            rows: 0,
            kind: PhantomData,
        }
    }
}

impl<K: RecordKind> StoredBatch<K> {
    fn width() -> usize {
        K::fields().len()
    }

    fn words() -> usize {
        Self::width().div_ceil(64)
    }

    /// Adds so many records without any value; the place of the first.
    pub fn grow(&mut self, rows: usize) -> usize {
        let first = self.rows;
        self.rows = first.saturating_add(rows);
        self.cells.resize(self.rows * Self::width(), Cell::Null);
        self.present.resize(self.rows * Self::words(), 0);
        first
    }

    /// Takes back the records from this one on.
    pub fn cut(&mut self, rows: usize) {
        self.rows = self.rows.min(rows);
        self.cells.truncate(self.rows * Self::width());
        self.present.truncate(self.rows * Self::words());
    }

    /// Sets a value of a record. `Null`: the column was there without one.
    pub fn set(&mut self, row: usize, column: usize, value: Value<'_>) {
        if column >= Self::width() {
            return;
        }
        let cell = match value {
            Value::Null => Cell::Null,
            Value::U64(n) | Value::TimeNs(n) | Value::SpanNs(n) | Value::Millis(n) => {
                Cell::Number(n)
            }
            Value::Port(port) => Cell::Number(u64::from(port)),
            Value::Ip(address) => Cell::Ip(address),
            Value::Text(bytes) | Value::Bytes(bytes) => self.keep(bytes),
            Value::Short(short) => self.keep(short.as_bytes()),
            Value::Word(word) => self.keep(word.as_bytes()),
        };
        if let Some(there) = self.cells.get_mut(row * Self::width() + column) {
            *there = cell;
        }
        if let Some(word) = self.present.get_mut(row * Self::words() + column / 64) {
            *word |= 1 << (column % 64);
        }
    }

    /// An empty text is none, as in the records of a run.
    fn keep(&mut self, bytes: &[u8]) -> Cell {
        let bytes = bytes.get(..MAX_TEXT).unwrap_or(bytes);
        if bytes.is_empty() {
            return Cell::Null;
        }
        let from = self.arena.len();
        self.arena.extend_from_slice(bytes);
        Cell::Text(from, self.arena.len())
    }
}

impl<K: RecordKind> RecordBatch<Stored<K>> for StoredBatch<K> {
    fn len(&self) -> usize {
        self.rows
    }

    fn get(&self, at: usize) -> Option<StoredRecord<'_>> {
        let (width, words) = (Self::width(), Self::words());
        Some(StoredRecord {
            fields: K::fields(),
            cells: self.cells.get(at * width..(at + 1) * width)?,
            present: self.present.get(at * words..(at + 1) * words)?,
            arena: &self.arena,
        })
    }

    fn clear(&mut self) {
        self.cut(0);
        self.arena.clear();
    }

    fn push_view(&mut self, view: &StoredRecord<'_>) {
        let row = self.grow(1);
        for column in (0..Self::width()).filter(|column| view.has(*column)) {
            self.set(row, column, view.value(column));
        }
    }

    fn memory_bytes(&self) -> usize {
        self.cells.len() * size_of::<Cell>() + self.present.len() * 8 + self.arena.len()
    }
}

impl<K: RecordKind> RecordKind for Stored<K> {
    type View<'a> = StoredRecord<'a>;
    type Batch = StoredBatch<K>;
    const NAME: &'static str = K::NAME;
    const VERSION: u16 = K::VERSION;
    const ZEEK_PATH: &'static str = K::ZEEK_PATH;
    const SHAPES: usize = K::SHAPES;

    fn fields() -> &'static [Field] {
        K::fields()
    }

    fn value<'a>(view: &StoredRecord<'a>, column: usize) -> Value<'a>
    where
        'a: 'a,
    {
        view.value(column)
    }

    /// The one with the fewest columns that has all that stood in the record.
    fn shape(view: &StoredRecord<'_>) -> usize {
        let all = || 0..view.fields.len();
        let shapes = (0..K::SHAPES).filter(|shape| {
            all()
                .filter(|column| view.has(*column))
                .all(|column| K::has_column(*shape, column))
        });
        let columns = |shape: &usize| all().filter(|at| K::has_column(*shape, *at)).count();
        shapes.min_by_key(columns).unwrap_or(0)
    }

    fn has_column(shape: usize, column: usize) -> bool {
        K::has_column(shape, column)
    }

    fn text_line() -> &'static [&'static str] {
        K::text_line()
    }

    fn line() -> &'static [LineCell] {
        K::line()
    }

    fn zeek_columns() -> &'static [(&'static str, ZeekColumn)] {
        K::zeek_columns()
    }

    /// The first time that the record has.
    fn time_ns(view: &StoredRecord<'_>) -> u64 {
        match view.first(&[FieldType::TimeNs, FieldType::TimeMillis]) {
            Some(Value::TimeNs(nanos) | Value::Millis(nanos)) => nanos,
            _ => 0,
        }
    }

    fn endpoints(view: &StoredRecord<'_>) -> [Endpoint; 2] {
        let fields = || view.fields.iter().enumerate();
        let mut addresses = fields().filter(|(_, field)| field.kind == FieldType::Ip);
        let mut ports = fields().filter(|(_, field)| field.kind == FieldType::Port);
        let mut next = || {
            let address = addresses.next().map(|(at, _)| view.value(at));
            let port = ports.next().and_then(|(at, _)| view.number(at));
            let address = match address {
                Some(Value::Ip(address)) => address,
                _ => Ipv6Addr::UNSPECIFIED.into(),
            };
            let port = port.and_then(|port| u16::try_from(port).ok());
            (address, port.unwrap_or(0))
        };
        [next(), next()]
    }
}

/// The kind whose columns have these names: that with the most of them, of at least half of them. Columns of header fields, which a
/// run chooses, say nothing.
#[must_use]
pub fn kind_of<S: AsRef<str>>(names: &[S]) -> Option<&'static str> {
    let names = names.iter().map(AsRef::as_ref);
    let names: Vec<&str> = names
        .filter(|name| header_of_column(name).is_none())
        .collect();
    let known = |schema: &KindSchema| {
        let names = names.iter();
        names.filter(|name| schema.field(name).is_some()).count()
    };
    let schemas = KindSchema::all();
    // The first of equals.
    let best = schemas.iter().rev().max_by_key(|schema| known(schema))?;
    let found = known(best);
    (found > 0 && found * 2 >= names.len()).then_some(best.name)
}

/// The byte of the `xHH` that stands behind a backslash, and what follows.
pub(crate) fn hex_escape(after: &[u8]) -> Option<(u8, &[u8])> {
    let [b'x', high, low, rest @ ..] = after else {
        return None;
    };
    let digit = |byte: &u8| char::from(*byte).to_digit(16);
    let byte = digit(high)? * 16 + digit(low)?;
    Some((u8::try_from(byte).ok()?, rest))
}

/// The bytes of a text in which `\xHH` stands for those that are not UTF-8, as `jsonl`, Parquet and Arrow have it.
pub fn unescape(text: &[u8], out: &mut Vec<u8>) {
    let mut rest = text;
    while let Some(at) = rest.iter().position(|byte| *byte == b'\\') {
        let (before, from) = rest.split_at(at);
        out.extend_from_slice(before);
        let after = from.get(1..).unwrap_or_default();
        rest = match hex_escape(after) {
            Some((byte, rest)) => {
                out.push(byte);
                rest
            }
            None => {
                out.push(b'\\');
                after
            }
        };
    }
    out.extend_from_slice(rest);
}

#[cfg(test)]
mod tests;
