//! `text`: the paper's line.
//!
//! The columns of [`RecordKind::text_line`] joined by `|`, one record a line, no header. Times and
//! spans are seconds with nine decimals; what is not there is empty. In text from the network `|`,
//! `\` and bytes outside printable ASCII are `\xHH` (lower-case digits), so that a line always has
//! the same number of fields and every byte can be read back.

use linkweir_record::{RecordKind, Value};

use crate::escape::{is_unprintable, push_hex_escaped};
use crate::format::Encoder;
use crate::number::{push_ip, push_seconds9, push_u64};

/// Writes the columns of the text line.
#[derive(Debug)]
pub(crate) struct TextEncoder {
    columns: Vec<usize>,
}

impl TextEncoder {
    pub(crate) fn new<K: RecordKind>() -> Self {
        let columns = K::text_line()
            .iter()
            .filter_map(|name| K::column(name))
            .collect();
        Self { columns }
    }
}

#[inline]
const fn is_special(byte: u8) -> bool {
    is_unprintable(byte) | (byte == b'|') | (byte == b'\\')
}

#[inline]
fn push_value(out: &mut Vec<u8>, value: Value<'_>) {
    match value {
        Value::Null => {}
        Value::U64(n) => push_u64(out, n),
        Value::TimeNs(n) | Value::SpanNs(n) => push_seconds9(out, n),
        Value::Ip(address) => push_ip(out, address),
        Value::Port(port) => push_u64(out, u64::from(port)),
        Value::Text(bytes) => push_hex_escaped(out, bytes, is_special),
        Value::Word(word) => out.extend_from_slice(word.as_bytes()),
    }
}

impl<K: RecordKind> Encoder<K> for TextEncoder {
    #[inline]
    fn record(&self, view: &K::View<'_>, out: &mut Vec<u8>) {
        let mut first = true;
        for &column in &self.columns {
            if !first {
                out.push(b'|');
            }
            first = false;
            push_value(out, K::value(view, column));
        }
        out.push(b'\n');
    }
}
