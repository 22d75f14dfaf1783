//! One column of a row group that is being filled.

use linkweir_record::{FieldType, RecordKind, Value};
use parquet::basic::Encoding;
use parquet::column::page::PageWriter;
use parquet::file::metadata::ColumnChunkMetaData;
use parquet::file::statistics::Statistics;
use parquet::schema::types::ColumnDescPtr;

use super::bits::width;
use super::delta::push_deltas;
use super::dictionary::{Address, Dictionary, Eight, Four, Scalars};
use super::hybrid::push_keys;
use super::levels::Levels;
use super::pages::{Compressor, Pages};
use super::texts::Texts;
use crate::column::{millis, number};
use crate::error::ColumnarError;

/// Rows of a page: what a reader unpacks at once.
const PAGE_ROWS: usize = 20_480;

/// Bytes of values of a page, and of a dictionary before the values that follow are written without keys.
const PAGE_BYTES: usize = 1 << 20;

/// A column: how its values are kept until their page is complete, and the pages that are.
#[derive(Debug)]
pub(super) struct Chunk {
    column: ColumnDescPtr,
    values: Values,
    levels: Levels,
    pages: Pages,
}

/// The values of the page that is being filled, by the type of the field.
///
/// A value that its type cannot hold (a moment after the year 2262) is null, as in [`crate::Columns`].
#[derive(Debug)]
enum Values {
    /// Numbers below 2^16.
    U16(Coded<Scalars<Four>>),
    U64(Coded<Scalars<Eight>>),
    I64(Coded<Scalars<Eight>>),
    Millis(Coded<Scalars<Eight>>),
    Ip(Coded<Scalars<Address>>),
    Text(Coded<Texts>),
    Bytes(Coded<Texts>),
    /// Hashes and sequence numbers, which are nearly all different: without a dictionary.
    U32(Vec<u8>),
    /// Spans, by their distances.
    Spans(Vec<i64>),
    /// Moments, by their distances; the first and the last of the chunk help to skip row groups.
    Times(Vec<i64>, Option<(i64, i64)>),
}

impl Values {
    fn new(kind: FieldType) -> Self {
        match kind {
            FieldType::U16 | FieldType::Port => Self::U16(Coded::new(Scalars::new(Four(0)))),
            FieldType::U32 => Self::U32(Vec::new()),
            FieldType::U64 => Self::U64(Coded::new(Scalars::new(Eight(0)))),
            FieldType::I64 => Self::I64(Coded::new(Scalars::new(Eight(0)))),
            FieldType::Millis => Self::Millis(Coded::new(Scalars::new(Eight(0)))),
            FieldType::SpanNs => Self::Spans(Vec::new()),
            FieldType::TimeNs | FieldType::TimeMillis => Self::Times(Vec::new(), None),
            FieldType::Ip => Self::Ip(Coded::new(Scalars::new(Address::NOBODY))),
            FieldType::Text | FieldType::Word => Self::Text(Coded::new(Texts::new(true))),
            FieldType::Bytes => Self::Bytes(Coded::new(Texts::new(false))),
        }
    }
}

/// Values by their keys, or, once their dictionary is full, as they are.
#[derive(Debug)]
struct Coded<D> {
    dictionary: D,
    keys: Vec<u32>,
    plain: Vec<u8>,
    is_plain: bool,
}

impl<D: Dictionary> Coded<D> {
    const fn new(dictionary: D) -> Self {
        Self {
            dictionary,
            keys: Vec::new(),
            plain: Vec::new(),
            is_plain: false,
        }
    }

    #[inline]
    fn push(&mut self, value: D::Value<'_>) {
        if self.is_plain {
            self.dictionary.push_plain(value, &mut self.plain);
        } else {
            self.keys.push(self.dictionary.key(value));
        }
    }

    /// Bytes of the page and of the dictionary so far, not compressed.
    fn bytes(&self) -> usize {
        self.plain.len() + self.dictionary.bytes() + self.keys.len() * self.width() as usize / 8
    }

    /// Bits of a key.
    fn width(&self) -> u32 {
        width(self.dictionary.len().saturating_sub(1) as u64)
    }

    /// Whether the page must end here.
    fn is_full(&self) -> bool {
        self.plain.len() >= PAGE_BYTES || (!self.is_plain && self.dictionary.bytes() >= PAGE_BYTES)
    }

    /// The encoding of a page with the values so far.
    const fn encoding(&self) -> Encoding {
        if self.is_plain {
            Encoding::PLAIN
        } else {
            Encoding::RLE_DICTIONARY
        }
    }

    /// Appends the values of a page; there are none then.
    fn take(&mut self, out: &mut Vec<u8>) {
        if self.is_plain {
            out.append(&mut self.plain);
            return;
        }
        let width = self.width();
        out.push(u8::try_from(width).unwrap_or(u8::MAX));
        push_keys(&self.keys, width, out);
        self.keys.clear();
        self.is_plain = self.dictionary.bytes() >= PAGE_BYTES;
    }

    /// The dictionary page and how many values it has; they begin anew.
    fn close(&mut self) -> (Vec<u8>, usize) {
        self.is_plain = false;
        let values = self.dictionary.len();
        (self.dictionary.take(), values)
    }
}

/// Does the same with the values of whatever dictionary a column has; other columns get `$other`.
macro_rules! coded {
    ($values:expr, $coded:ident => $do:expr, $($other:tt)*) => {
        match $values {
            Values::U16($coded) => $do,
            Values::U64($coded) | Values::I64($coded) | Values::Millis($coded) => $do,
            Values::Ip($coded) => $do,
            Values::Text($coded) | Values::Bytes($coded) => $do,
            $($other)*
        }
    };
}

impl Chunk {
    /// A column without values.
    pub(super) fn new(kind: FieldType, column: ColumnDescPtr) -> Self {
        Self {
            column,
            values: Values::new(kind),
            levels: Levels::default(),
            pages: Pages::default(),
        }
    }

    /// About how many bytes it will have.
    pub(super) fn bytes(&self) -> usize {
        let waiting = coded!(&self.values, coded => coded.bytes(),
            Values::U32(plain) => plain.len(),
            // Distances take about half of the bits, on links that are not idle.
            Values::Spans(numbers) | Values::Times(numbers, _) => size_of_val(numbers.as_slice()) / 2,
        );
        // What is compressed takes about half, here as in most files.
        self.pages.bytes() + waiting / 2
    }

    /// Appends column `at` of a group of at most 64 records. The type is looked at once, not for every
    /// value.
    pub(super) fn extend<K: RecordKind>(
        &mut self,
        group: &[K::View<'_>],
        at: usize,
        compressor: &mut Compressor,
    ) -> Result<(), ColumnarError> {
        let present = match &mut self.values {
            Values::U16(coded) => each::<K, _>(group, at, u16_of, |n| coded.push(n)),
            Values::U64(coded) => each::<K, _>(group, at, u64_of, |n| coded.push(n)),
            Values::I64(coded) => each::<K, _>(group, at, i64_of, |n| {
                coded.push(Eight(n.cast_unsigned()));
            }),
            Values::Millis(coded) => each::<K, _>(group, at, millis_of, |n| coded.push(n)),
            Values::Ip(coded) => each::<K, _>(group, at, address_of, |a| coded.push(a)),
            Values::Text(coded) => each::<K, _>(group, at, text_of, |text| coded.push(text)),
            Values::Bytes(coded) => each::<K, _>(group, at, bytes_of, |bytes| coded.push(bytes)),
            Values::U32(plain) => each::<K, _>(group, at, u32_of, |n| {
                plain.extend_from_slice(&n.to_le_bytes());
            }),
            Values::Spans(numbers) => each::<K, _>(group, at, i64_of, |n| numbers.push(n)),
            Values::Times(numbers, extent) => each::<K, _>(group, at, i64_of, |moment| {
                let (first, last) = extent.unwrap_or((moment, moment));
                *extent = Some((first.min(moment), last.max(moment)));
                numbers.push(moment);
            }),
        };
        self.levels.push(present, group.len());
        let is_full = coded!(&self.values, coded => coded.is_full(), _ => false);
        if is_full || self.levels.rows() >= PAGE_ROWS {
            self.end_page(compressor)?;
        }
        Ok(())
    }

    /// Makes a page of the values so far.
    fn end_page(&mut self, compressor: &mut Compressor) -> Result<(), ColumnarError> {
        let Self {
            values,
            levels,
            pages,
            ..
        } = self;
        let encoding = coded!(values, coded => coded.encoding(),
            Values::U32(_) => Encoding::PLAIN,
            Values::Spans(_) | Values::Times(..) => Encoding::DELTA_BINARY_PACKED,
        );
        pages.push(encoding, levels, compressor, |out| {
            coded!(values, coded => coded.take(out),
                Values::U32(plain) => out.append(plain),
                Values::Spans(numbers) | Values::Times(numbers, _) => {
                    push_deltas(numbers, out);
                    numbers.clear();
                }
            );
        })
    }

    /// Writes the chunk; it begins anew. The first byte that `writer` wrote was byte `start` of the
    /// file.
    pub(super) fn close(
        &mut self,
        compressor: &mut Compressor,
        writer: &mut impl PageWriter,
        start: u64,
    ) -> Result<ColumnChunkMetaData, ColumnarError> {
        if self.levels.rows() > 0 {
            self.end_page(compressor)?;
        }
        let statistics = match &mut self.values {
            Values::Times(_, extent) => extent.take().map(|(first, last)| {
                Statistics::int64(
                    Some(first),
                    Some(last),
                    None,
                    Some(self.pages.nulls()),
                    false,
                )
            }),
            _ => None,
        };
        let dictionary = coded!(&mut self.values, coded => Some(coded.close()), _ => None);
        self.pages.close(
            &self.column,
            dictionary,
            statistics,
            compressor,
            writer,
            start,
        )
    }
}

/// Hands what `of` makes of column `at` of each record to `push`; a bit for each record that has a value.
#[inline]
fn each<'a, K: RecordKind, T>(
    group: &[K::View<'a>],
    at: usize,
    of: impl Fn(Value<'a>) -> Option<T>,
    mut push: impl FnMut(T),
) -> u64 {
    let mut present = 0;
    for (bit, view) in group.iter().enumerate() {
        if K::has_column(K::shape(view), at)
            && let Some(value) = of(K::value(view, at))
        {
            push(value);
            present |= 1 << bit;
        }
    }
    present
}

fn u16_of(value: Value<'_>) -> Option<Four> {
    let number = u16::try_from(number(value)?).ok()?;
    Some(Four(number.into()))
}

fn u32_of(value: Value<'_>) -> Option<u32> {
    u32::try_from(number(value)?).ok()
}

fn u64_of(value: Value<'_>) -> Option<Eight> {
    number(value).map(Eight)
}

fn i64_of(value: Value<'_>) -> Option<i64> {
    i64::try_from(number(value)?).ok()
}

fn millis_of(value: Value<'_>) -> Option<Eight> {
    Some(Eight(millis(number(value)?).to_bits()))
}

fn address_of(value: Value<'_>) -> Option<Address> {
    match value {
        Value::Ip(address) => Some(address.into()),
        _ => None,
    }
}

fn text_of(value: Value<'_>) -> Option<&[u8]> {
    match value {
        Value::Text(text) => Some(text),
        Value::Word(word) => Some(word.as_bytes()),
        _ => None,
    }
}

fn bytes_of(value: Value<'_>) -> Option<&[u8]> {
    match value {
        Value::Bytes(bytes) => Some(bytes),
        _ => None,
    }
}
