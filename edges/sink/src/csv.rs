//! `csv`: RFC 4180 with a header line; all fields of the kind in the schema's order.
//!
//! Lines end with a line feed alone, as every Unix tool writes them (RFC 4180 says CR LF; its readers
//! take both). Times and spans are integer nanoseconds, what is not there is empty. A field with a
//! comma or a quote is quoted, quotes in it doubled. In text from the network control characters,
//! `\` and bytes that are not ASCII are `\xHH`: every line is one record, and nothing acts on a
//! terminal. Formulas are not defused.

use linkweir_record::{RecordKind, Value};

use crate::escape::{is_clean, is_unprintable, push_digits, push_hex};
use crate::format::Encoder;
use crate::number::{push_ip, push_millis6, push_u64};

/// Writes comma-separated lines.
#[derive(Debug)]
pub(crate) struct CsvEncoder {
    header: Vec<u8>,
    columns: usize,
}

impl CsvEncoder {
    pub(crate) fn new<K: RecordKind>() -> Self {
        let names: Vec<&str> = K::fields().iter().map(|field| field.name).collect();
        let mut header = names.join(",").into_bytes();
        header.push(b'\n');
        Self {
            header,
            columns: names.len(),
        }
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

#[inline]
fn push_text(out: &mut Vec<u8>, bytes: &[u8]) {
    if is_clean(bytes, is_special) {
        out.extend_from_slice(bytes);
        return;
    }
    out.push(b'"');
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
        for column in 0..self.columns {
            if column > 0 {
                out.push(b',');
            }
            match K::value(view, column) {
                Value::Null => {}
                Value::U64(n) | Value::TimeNs(n) | Value::SpanNs(n) => push_u64(out, n),
                Value::Millis(n) => push_millis6(out, n),
                Value::Port(port) => push_u64(out, u64::from(port)),
                Value::Ip(address) => push_ip(out, address),
                Value::Text(bytes) => push_text(out, bytes),
                Value::Word(word) => out.extend_from_slice(word.as_bytes()),
                Value::Bytes(bytes) => push_digits(out, bytes),
            }
        }
        out.push(b'\n');
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quoting() {
        let made = |text: &[u8]| {
            let mut out = Vec::new();
            push_text(&mut out, text);
            out
        };
        assert_eq!(
            made(b"plain text; \x1b[31m\xff\\"),
            b"\"plain text; \\x1b[31m\\xff\\x5c\""
        );
        assert_eq!(made(b"a,b"), b"\"a,b\"");
        assert_eq!(made(b"say \"hi\"\n"), b"\"say \"\"hi\"\"\\x0a\"");
    }
}
