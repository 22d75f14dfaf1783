//! `csv`: RFC 4180 with a header line; all fields of the kind in the schema's order.
//!
//! Lines end with a line feed alone, as every Unix tool writes them (RFC 4180 says CR LF; its readers
//! take both). Times and spans are integer nanoseconds, what is not there is empty. A field with a
//! comma, a quote, a CR or a line feed is quoted, quotes in it doubled. Text from the network goes out
//! byte for byte: it need not be UTF-8, and formulas are not defused.

use linkweir_record::{RecordKind, Value};

use crate::escape::is_clean;
use crate::format::Encoder;
use crate::number::{push_ip, push_u64};

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
    (byte == b',') | (byte == b'"') | (byte == b'\n') | (byte == b'\r')
}

#[inline]
fn push_text(out: &mut Vec<u8>, bytes: &[u8]) {
    if is_clean(bytes, is_special) {
        out.extend_from_slice(bytes);
        return;
    }
    out.push(b'"');
    for part in bytes.split_inclusive(|b| *b == b'"') {
        out.extend_from_slice(part);
        if part.last() == Some(&b'"') {
            out.push(b'"');
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
                Value::Port(port) => push_u64(out, u64::from(port)),
                Value::Ip(address) => push_ip(out, address),
                Value::Text(bytes) => push_text(out, bytes),
                Value::Word(word) => out.extend_from_slice(word.as_bytes()),
            }
        }
        out.push(b'\n');
    }

    /// A line feed inside quotes ends no record.
    fn whole(&self, bytes: &[u8]) -> usize {
        let mut quoted = false;
        let mut whole = 0;
        for (at, byte) in bytes.iter().enumerate() {
            match byte {
                b'"' => quoted = !quoted,
                b'\n' if !quoted => whole = at + 1,
                _ => {}
            }
        }
        whole
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use linkweir_record::HttpKind;

    #[test]
    fn quoting() {
        let made = |text: &[u8]| {
            let mut out = Vec::new();
            push_text(&mut out, text);
            out
        };
        assert_eq!(made(b"plain text; \xff"), b"plain text; \xff");
        assert_eq!(made(b"a,b"), b"\"a,b\"");
        assert_eq!(made(b"say \"hi\"\n"), b"\"say \"\"hi\"\"\n\"");
    }

    #[test]
    fn whole_records_end_outside_quotes() {
        let encoder = CsvEncoder::new::<HttpKind>();
        let whole = |bytes: &[u8]| Encoder::<HttpKind>::whole(&encoder, bytes);
        assert_eq!(whole(b"a,b\nc,\"x\ny\"\"\nz"), 4);
        assert_eq!(whole(b"a,b\nc,\"x\ny\"\nz"), 12);
        assert_eq!(whole(b"a"), 0);
    }
}
