//! `jsonl`: one JSON object (RFC 8259) a line, with all fields of the kind in the schema's order.
//!
//! What is not there is `null`; numbers, times and spans (nanoseconds) are integers; addresses are
//! strings. Text from the network need not be UTF-8, JSON must be: a byte that is not part of a
//! valid UTF-8 sequence becomes the four characters `\xHH` in the string (as in Zeek's JSON), and so
//! does a backslash that is followed by `x` and two hexadecimal digits. The original bytes are
//! thus had back by replacing every `\xHH` of the decoded string by that byte.

use linkweir_record::escape::hex;
use linkweir_record::{FieldType, RecordKind, Value};

use crate::escape::{is_clean, push_digits};
use crate::format::{Encoder, all_columns};
use crate::number::{push_ip, push_millis6, push_u64};

/// Writes objects, from a template for each shape of records.
#[derive(Debug)]
pub(crate) struct JsonlEncoder {
    templates: Vec<Template>,
}

/// An object in which each value is the one that most records have there: a number of one digit, or
/// `null`. A digit is replaced in place; what lies between other values is copied in one piece.
#[derive(Debug)]
struct Template {
    text: Vec<u8>,
    members: Vec<Member>,
}

/// A member of an object: the column with its value, and what the template has in place of that.
#[derive(Debug)]
struct Member {
    column: usize,
    is_digit: bool,
    start: usize,
    end: usize,
}

impl Template {
    fn new<K: RecordKind>(first: char, columns: impl Iterator<Item = usize>) -> Self {
        let mut text = Vec::new();
        let mut members = Vec::new();
        for column in columns {
            let lead = if members.is_empty() { first } else { ',' };
            let field = K::fields().get(column);
            let name = field.map_or("", |field| field.name);
            text.extend_from_slice(format!("{lead}\"{name}\":").as_bytes());
            let is_digit = field.is_some_and(|field| {
                matches!(
                    field.kind,
                    FieldType::U16 | FieldType::U32 | FieldType::U64 | FieldType::I64
                )
            });
            let start = text.len();
            text.extend_from_slice(if is_digit { b"0" } else { b"null" });
            members.push(Member {
                column,
                is_digit,
                start,
                end: text.len(),
            });
        }
        text.extend_from_slice(b"}\n");
        Self { text, members }
    }
}

impl JsonlEncoder {
    /// Writes whole objects with these members.
    pub(crate) fn new<K: RecordKind>(chosen: &[usize]) -> Self {
        Self::after::<K>('{', chosen)
    }

    /// Writes the rest of objects that have been opened and have a key already.
    pub(crate) fn inside<K: RecordKind>() -> Self {
        Self::after::<K>(',', &all_columns::<K>())
    }

    fn after<K: RecordKind>(first: char, chosen: &[usize]) -> Self {
        let template = |shape: usize| {
            let columns = chosen.iter().copied();
            let columns = columns.filter(|column| K::has_column(shape, *column));
            Template::new::<K>(first, columns)
        };
        Self {
            templates: (0..K::SHAPES).map(template).collect(),
        }
    }
}

impl<K: RecordKind> Encoder<K> for JsonlEncoder {
    fn record(&mut self, view: &K::View<'_>, out: &mut Vec<u8>) {
        let Some(Template { text, members }) = self.templates.get_mut(K::shape(view)) else {
            return;
        };
        let mut copied = 0;
        for member in members {
            let value = K::value(view, member.column);
            match value {
                Value::U64(digit @ 0..10) if member.is_digit => {
                    if let (Some(place), Ok(digit)) =
                        (text.get_mut(member.start), u8::try_from(digit))
                    {
                        *place = b'0' + digit;
                    }
                    continue;
                }
                Value::Null if !member.is_digit => continue,
                _ => {}
            }
            out.extend_from_slice(text.get(copied..member.start).unwrap_or_default());
            copied = member.end;
            push_value(out, &value);
        }
        out.extend_from_slice(text.get(copied..).unwrap_or_default());
    }
}

/// A value that is not that of the template.
#[inline]
fn push_value(out: &mut Vec<u8>, value: &Value<'_>) {
    match *value {
        Value::Null => out.extend_from_slice(b"null"),
        Value::U64(n) | Value::TimeNs(n) | Value::SpanNs(n) => push_u64(out, n),
        Value::Millis(n) => push_millis6(out, n),
        Value::Port(port) => push_u64(out, u64::from(port)),
        Value::Ip(address) => {
            out.push(b'"');
            push_ip(out, address);
            out.push(b'"');
        }
        Value::Text(bytes) => push_string(out, bytes),
        Value::Short(short) => push_string(out, short.as_bytes()),
        Value::Word(word) => {
            out.push(b'"');
            out.extend_from_slice(word.as_bytes());
            out.push(b'"');
        }
        Value::Bytes(bytes) => {
            out.push(b'"');
            push_digits(out, bytes);
            out.push(b'"');
        }
    }
}

#[inline]
const fn is_special(byte: u8) -> bool {
    (byte.wrapping_sub(0x20) > 0x5e) | (byte == b'"') | (byte == b'\\')
}

/// A string with its quotes.
#[inline]
pub(crate) fn push_string(out: &mut Vec<u8>, bytes: &[u8]) {
    out.push(b'"');
    if is_clean(bytes, is_special) {
        out.extend_from_slice(bytes);
    } else {
        push_slow(out, bytes);
    }
    out.push(b'"');
}

#[cold]
fn push_slow(out: &mut Vec<u8>, bytes: &[u8]) {
    for chunk in bytes.utf8_chunks() {
        let mut rest = chunk.valid().as_bytes();
        while let Some((&byte, after)) = rest.split_first() {
            rest = after;
            if byte == 0xc2
                && let [control @ 0x80..=0x9f, after @ ..] = after
            {
                // U+0080 to U+009F: some terminals act on them.
                out.extend_from_slice(b"\\u00");
                out.extend_from_slice(&hex(*control));
                rest = after;
            } else {
                push_char_byte(out, byte, after);
            }
        }
        for &byte in chunk.invalid() {
            out.push(b'\\');
            crate::escape::push_hex(out, byte);
        }
    }
}

/// One byte of valid UTF-8, and what follows it.
fn push_char_byte(out: &mut Vec<u8>, byte: u8, after: &[u8]) {
    match byte {
        b'"' => out.extend_from_slice(b"\\\""),
        b'\\' => match after {
            [b'x', high, low, ..] if high.is_ascii_hexdigit() && low.is_ascii_hexdigit() => {
                out.extend_from_slice(b"\\\\x5c");
            }
            _ => out.extend_from_slice(b"\\\\"),
        },
        b'\n' => out.extend_from_slice(b"\\n"),
        b'\r' => out.extend_from_slice(b"\\r"),
        b'\t' => out.extend_from_slice(b"\\t"),
        0..=0x1f | 0x7f => {
            out.extend_from_slice(b"\\u00");
            out.extend_from_slice(&hex(byte));
        }
        _ => out.push(byte),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn unescape(text: &str) -> Vec<u8> {
        let mut out = Vec::new();
        let mut rest = text.as_bytes();
        while let Some((&byte, after)) = rest.split_first() {
            if let [b'\\', b'x', a, b, ..] = rest
                && a.is_ascii_hexdigit()
                && b.is_ascii_hexdigit()
            {
                let digits = String::from_utf8(vec![*a, *b]).unwrap();
                out.push(u8::from_str_radix(&digits, 16).unwrap());
                rest = &rest[4..];
            } else {
                out.push(byte);
                rest = after;
            }
        }
        out
    }

    proptest! {
        #[test]
        fn strings_are_json_and_come_back(bytes in prop_oneof![
            prop::collection::vec(any::<u8>(), 0..60),
            "[ -~]{0,30}".prop_map(String::into_bytes),
            "([\\\\x5c\"é]|\\\\xff){0,12}".prop_map(String::into_bytes),
        ]) {
            let mut out = Vec::new();
            push_string(&mut out, &bytes);
            let text: String = serde_json::from_slice(&out).unwrap();
            prop_assert_eq!(unescape(&text), bytes);
        }
    }
}
