//! `zeek`: Zeek's log with tabs and a header, as `zeek-cut` reads it.
//!
//! Times and intervals are seconds with six decimals. `-` is a value that is not there, `(empty)` an
//! empty one; text that is itself `-` or `(empty)`, and tabs, line feeds, backslashes and bytes outside
//! printable ASCII are `\xHH`; in a vector also commas.

use linkweir_record::RecordKind;

use super::date::zeek_date;
use super::{Cell, Column, cell, columns, push_uid};
use crate::escape::{is_unprintable, push_digits, push_hex, push_hex_escaped};
use crate::format::Encoder;
use crate::number::{push_ip, push_seconds6, push_u64};

/// Writes Zeek's header and lines.
#[derive(Debug)]
pub(crate) struct ZeekEncoder {
    /// What follows the time of `#open`.
    names_and_types: String,
    columns: Vec<Column>,
}

impl ZeekEncoder {
    pub(crate) fn new<K: RecordKind>(has_internal_networks: bool) -> Self {
        let list = |read: fn(&linkweir_record::ZeekColumn) -> &'static str| {
            K::zeek_columns()
                .iter()
                .map(|(_, column)| read(column))
                .collect::<Vec<_>>()
                .join("\t")
        };
        Self {
            names_and_types: format!(
                "\n#fields\t{}\n#types\t{}\n",
                list(|column| column.name),
                list(|column| column.kind),
            ),
            columns: columns::<K>(has_internal_networks),
        }
    }
}

#[inline]
const fn is_special(byte: u8) -> bool {
    is_unprintable(byte) | (byte == b'\\')
}

fn push_text(out: &mut Vec<u8>, bytes: &[u8], is_list: bool) {
    if matches!(bytes, b"-" | b"(empty)")
        && let Some((first, rest)) = bytes.split_first()
    {
        // Zeek escapes the first byte of text that would read as "unset" or "empty".
        push_hex(out, *first);
        out.extend_from_slice(rest);
        return;
    }
    if is_list {
        push_hex_escaped(out, bytes, |b| is_special(b) | (b == b','));
    } else {
        push_hex_escaped(out, bytes, is_special);
    }
}

impl<K: RecordKind> Encoder<K> for ZeekEncoder {
    fn header(&self, now_ns: u64, out: &mut Vec<u8>) {
        out.extend_from_slice(
            b"#separator \\x09\n#set_separator\t,\n#empty_field\t(empty)\n#unset_field\t-\n#path\t",
        );
        out.extend_from_slice(K::ZEEK_PATH.as_bytes());
        out.extend_from_slice(b"\n#open\t");
        out.extend_from_slice(zeek_date(now_ns).as_bytes());
        out.extend_from_slice(self.names_and_types.as_bytes());
    }

    fn record(&mut self, view: &K::View<'_>, out: &mut Vec<u8>) {
        for (at, column) in self.columns.iter().enumerate() {
            if at > 0 {
                out.push(b'\t');
            }
            match cell::<K>(view, column) {
                Cell::Unset => out.push(b'-'),
                Cell::Number(number) => push_u64(out, number),
                Cell::Time(nanos) => push_seconds6(out, nanos),
                Cell::Bool(is_true) => out.push(if is_true { b'T' } else { b'F' }),
                Cell::Uid(number) => push_uid(out, number),
                Cell::Address(address) => push_ip(out, address),
                Cell::Text(b"") => out.extend_from_slice(b"(empty)"),
                Cell::Text(bytes) => push_text(out, bytes, column.is_list),
                Cell::Word(word) => out.extend_from_slice(word.as_bytes()),
                Cell::Bytes(bytes) => push_digits(out, bytes),
            }
        }
        out.push(b'\n');
    }

    fn footer(&self, now_ns: u64, out: &mut Vec<u8>) {
        out.extend_from_slice(format!("#close\t{}\n", zeek_date(now_ns)).as_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_that_looks_like_nothing() {
        let made = |text: &[u8], is_list| {
            let mut out = Vec::new();
            push_text(&mut out, text, is_list);
            String::from_utf8(out).unwrap()
        };
        assert_eq!(made(b"-", false), "\\x2d");
        assert_eq!(made(b"(empty)", false), "\\x28empty)");
        assert_eq!(made(b"a\tb\\\xff,", false), "a\\x09b\\x5c\\xff,");
        assert_eq!(made(b"a,b", true), "a\\x2cb");
        assert_eq!(made(b"--", false), "--");
    }
}
