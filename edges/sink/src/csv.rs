//! `csv` and `spreadsheet`: RFC 4180 with a header line; all fields of the kind in the schema's order.
//!
//! `csv` is for programs. Lines end with a line feed alone, as every Unix tool writes them (RFC 4180 says
//! CR LF; its readers take both). Times and spans are integer nanoseconds, what is not there is empty. A
//! field with a comma or a quote is quoted, quotes in it doubled. In text from the network control
//! characters, `\` and bytes that are not ASCII are `\xHH`: every line is one record, and nothing acts on a
//! terminal. Formulas are not defused.
//!
//! `spreadsheet` is for people. Spreadsheets run a cell that begins with `=`, `+`, `-` or `@`, and keep 15
//! digits of a number. So such text gets an apostrophe in front, numbers of more digits too, and moments
//! are ISO 8601 text with nine decimals (UTC), under names without `_ns`. Lines end with CR LF.

use linkweir_record::{Field, FieldType, RecordKind, Value};

use crate::escape::{is_clean, is_unprintable, push_digits, push_hex};
use crate::format::{Encoder, Shapes, own_column};
use crate::number::{push_ip, push_millis6, push_moment, push_u64};

/// Integers below this are kept by a spreadsheet (15 digits of a double).
const EXACT: u64 = 1_000_000_000_000_000;

/// Who reads it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reader {
    Program,
    Spreadsheet,
}

/// A column of the lines of one shape of records.
#[derive(Debug, Clone, Copy)]
struct Column {
    /// Of the kind's columns; past the last where nothing stands here.
    at: usize,
    is_moment: bool,
}

/// Writes comma-separated lines.
#[derive(Debug)]
pub(crate) struct CsvEncoder {
    header: Vec<u8>,
    columns: Shapes<Column>,
    /// A comma for each field.
    commas: Vec<u8>,
    reader: Reader,
}

impl CsvEncoder {
    /// `csv` with these columns.
    pub(crate) fn new<K: RecordKind>(chosen: &[usize]) -> Self {
        Self::of::<K>(Reader::Program, chosen)
    }

    /// `spreadsheet` with these columns.
    pub(crate) fn for_spreadsheets<K: RecordKind>(chosen: &[usize]) -> Self {
        Self::of::<K>(Reader::Spreadsheet, chosen)
    }

    fn of<K: RecordKind>(reader: Reader, chosen: &[usize]) -> Self {
        let fields = || {
            let fields = chosen.iter();
            fields.filter_map(|at| Some((*at, K::fields().get(*at)?)))
        };
        let name = |field: &Field| match (reader, field.kind) {
            (Reader::Spreadsheet, FieldType::TimeNs) => field.name.trim_end_matches("_ns"),
            _ => field.name,
        };
        let is_moment = |field: &Field| {
            reader == Reader::Spreadsheet
                && matches!(field.kind, FieldType::TimeNs | FieldType::TimeMillis)
        };
        let column = |shape: usize, at: usize, field: &Field| Column {
            at: own_column::<K>(shape, at),
            is_moment: is_moment(field),
        };
        // What stands behind the last that a shape has is empty in all its lines.
        let columns = |shape: usize| {
            let has = |at: &usize| K::has_column(shape, *at);
            let len = chosen.iter().rposition(has).map_or(0, |last| last + 1);
            let fields = fields().take(len);
            fields.map(|(at, field)| column(shape, at, field)).collect()
        };
        let names: Vec<&str> = fields().map(|(_, field)| name(field)).collect();
        let mut encoder = Self {
            header: names.join(",").into_bytes(),
            columns: Shapes::new::<K>(columns),
            commas: vec![b','; chosen.len()],
            reader,
        };
        let mut header = std::mem::take(&mut encoder.header);
        encoder.end_line(&mut header);
        encoder.header = header;
        encoder
    }

    #[inline]
    fn end_line(&self, out: &mut Vec<u8>) {
        match self.reader {
            Reader::Program => out.push(b'\n'),
            Reader::Spreadsheet => out.extend_from_slice(b"\r\n"),
        }
    }

    #[inline]
    fn number(&self, out: &mut Vec<u8>, number: u64) {
        if self.reader == Reader::Spreadsheet && number >= EXACT {
            out.push(b'\'');
        }
        push_u64(out, number);
    }
}

#[inline]
const fn is_special(byte: u8) -> bool {
    (byte == b',') | (byte == b'"') | must_be_hex(byte)
}

#[inline]
const fn must_be_hex(byte: u8) -> bool {
    is_unprintable(byte) | (byte == b'\\')
}

/// Whether a spreadsheet would take this text for a formula.
const fn is_formula(bytes: &[u8]) -> bool {
    matches!(bytes, [b'=' | b'+' | b'-' | b'@', ..])
}

#[inline]
fn push_text(out: &mut Vec<u8>, bytes: &[u8], reader: Reader) {
    let is_defused = reader == Reader::Spreadsheet && is_formula(bytes);
    if !is_defused && is_clean(bytes, is_special) {
        out.extend_from_slice(bytes);
        return;
    }
    out.push(b'"');
    if is_defused {
        out.push(b'\'');
    }
    for &byte in bytes {
        if must_be_hex(byte) {
            push_hex(out, byte);
        } else {
            out.push(byte);
            if byte == b'"' {
                out.push(b'"');
            }
        }
    }
    out.push(b'"');
}

impl<K: RecordKind> Encoder<K> for CsvEncoder {
    fn header(&self, _now_ns: u64, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.header);
    }

    fn record(&mut self, view: &K::View<'_>, out: &mut Vec<u8>) {
        let columns = self.columns.of::<K>(view);
        for column in columns {
            match K::value(view, column.at) {
                Value::Null => {}
                Value::TimeNs(n) | Value::Millis(n) if column.is_moment => push_moment(out, n),
                Value::U64(n) | Value::TimeNs(n) | Value::SpanNs(n) => self.number(out, n),
                Value::Millis(n) => push_millis6(out, n),
                Value::Port(port) => push_u64(out, u64::from(port)),
                Value::Ip(address) => push_ip(out, address),
                Value::Text(bytes) => push_text(out, bytes, self.reader),
                Value::Short(short) => push_text(out, short.as_bytes(), self.reader),
                Value::Word(word) if word.bytes().any(|byte| byte == b',') => {
                    push_text(out, word.as_bytes(), self.reader);
                }
                Value::Word(word) => out.extend_from_slice(word.as_bytes()),
                Value::Bytes(bytes) => push_digits(out, bytes),
            }
            out.push(b',');
        }
        out.extend_from_slice(self.commas.get(columns.len()..).unwrap_or_default());
        out.pop();
        self.end_line(out);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn made(text: &[u8], reader: Reader) -> String {
        let mut out = Vec::new();
        push_text(&mut out, text, reader);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn quoting() {
        let made = |text: &[u8]| made(text, Reader::Program);
        assert_eq!(
            made(b"plain text; \x1b[31m\xff\\"),
            "\"plain text; \\x1b[31m\\xff\\x5c\""
        );
        assert_eq!(made(b"a,b"), "\"a,b\"");
        assert_eq!(made(b"say \"hi\"\n"), "\"say \"\"hi\"\"\\x0a\"");
        assert_eq!(made(b"=1+1"), "=1+1");
    }

    #[test]
    fn a_list_of_words_is_one_cell() {
        use linkweir_record::flow::{Evidence, FlowText};
        use linkweir_record::{FlowBatch, FlowKind, FlowRow, RecordBatch};

        let mut flows = FlowBatch::default();
        let row = FlowRow {
            evidence: Evidence::Sack.bit() | Evidence::DupAcks.bit(),
            ..FlowRow::default()
        };
        flows.push(row, &FlowText::default());
        let mut out = Vec::new();
        let mut encoder = CsvEncoder::new::<FlowKind>(&crate::format::all_columns::<FlowKind>());
        Encoder::<FlowKind>::record(&mut encoder, &flows.get(0).unwrap(), &mut out);
        let line = String::from_utf8(out).unwrap();
        assert!(line.contains(",\"sack,dup_acks\","), "{line}");
    }

    #[test]
    fn formulas_are_text_to_spreadsheets() {
        let made = |text: &[u8]| made(text, Reader::Spreadsheet);
        for first in ["=", "+", "-", "@"] {
            let text = format!("{first}cmd|' /C calc'!A0");
            assert_eq!(made(text.as_bytes()), format!("\"'{text}\""));
        }
        assert_eq!(made(b"=\"a\",b"), "\"'=\"\"a\"\",b\"");
        // What begins with a tab or a line end does so only as text.
        assert_eq!(made(b"\t=1"), "\"\\x09=1\"");
        assert_eq!(made(b"a=1"), "a=1");
    }
}
