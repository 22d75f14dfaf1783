//! `zeek`: the tab-separated log Zeek writes of the same subject, as `zeek-cut` reads it.
//!
//! Columns and types are the kind's [`RecordKind::zeek_columns`]. Times and intervals are seconds with
//! six decimals. `-` is a value that is not there, `(empty)` an empty vector; text that is itself `-`
//! or `(empty)`, and tabs, line feeds, backslashes and bytes outside printable ASCII are `\xHH`; in a
//! vector also commas. `uid` is a `C` and the number in base 62: stable for a connection's 4-tuple.
//!
//! Source: Zeek's ASCII log writer (`#separator \x09` header and escaping).

use linkweir_record::{RecordKind, Value};

use crate::escape::{is_unprintable, push_digits, push_hex, push_hex_escaped};
use crate::format::Encoder;
use crate::number::{push_ip, push_seconds6, push_u64};

/// How a column is written, beyond its value's type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Shape {
    Plain,
    Uid,
    Vector,
    /// 1 and 0 are `T` and `F`.
    Bool,
    /// What is not recognised is not there.
    Service,
}

/// Writes Zeek's header and lines.
#[derive(Debug)]
pub(crate) struct ZeekEncoder {
    /// What follows the time of `#open`.
    names_and_types: String,
    columns: Vec<(Option<usize>, Shape)>,
}

impl ZeekEncoder {
    pub(crate) fn new<K: RecordKind>() -> Self {
        let columns = K::zeek_columns();
        let list = |read: fn(&linkweir_record::ZeekColumn) -> &'static str| {
            columns
                .iter()
                .map(|(_, column)| read(column))
                .collect::<Vec<_>>()
                .join("\t")
        };
        let names_and_types = format!(
            "\n#fields\t{}\n#types\t{}\n",
            list(|column| column.name),
            list(|column| column.kind),
        );
        let shape = |column: &linkweir_record::ZeekColumn| {
            if column.name == "uid" {
                Shape::Uid
            } else if column.kind.starts_with("vector[") || column.kind.starts_with("set[") {
                Shape::Vector
            } else if column.kind == "bool" {
                Shape::Bool
            } else if column.name == "service" {
                Shape::Service
            } else {
                Shape::Plain
            }
        };
        Self {
            names_and_types,
            columns: columns
                .iter()
                .map(|(name, column)| (K::column(name), shape(column)))
                .collect(),
        }
    }
}

/// `2026-11-21-02-17-48`, UTC.
fn zeek_date(nanos: u64) -> String {
    let seconds = nanos / 1_000_000_000;
    let (year, month, day) = civil_date(seconds / 86_400);
    let of_day = seconds % 86_400;
    format!(
        "{year:04}-{month:02}-{day:02}-{:02}-{:02}-{:02}",
        of_day / 3600,
        of_day / 60 % 60,
        of_day % 60
    )
}

/// Year, month and day of a day counted from 1970-01-01 (H. Hinnant, "chrono-compatible low-level
/// date algorithms", `civil_from_days`, for days after the epoch).
pub(crate) const fn civil_date(days: u64) -> (u64, u64, u64) {
    let z = days + 719_468;
    let era = z / 146_097;
    let of_era = z % 146_097;
    let year_of_era = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let day_of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted + 2) / 5 + 1;
    let month = if shifted < 10 {
        shifted + 3
    } else {
        shifted - 9
    };
    let year = year_of_era + era * 400 + if month <= 2 { 1 } else { 0 };
    (year, month, day)
}

#[inline]
const fn is_special(byte: u8) -> bool {
    is_unprintable(byte) | (byte == b'\\')
}

fn push_text(out: &mut Vec<u8>, bytes: &[u8], vector: bool) {
    if matches!(bytes, b"-" | b"(empty)")
        && let Some((first, rest)) = bytes.split_first()
    {
        // Zeek escapes the first byte of text that would read as "unset" or "empty".
        push_hex(out, *first);
        out.extend_from_slice(rest);
        return;
    }
    if vector {
        push_hex_escaped(out, bytes, |b| is_special(b) | (b == b','));
    } else {
        push_hex_escaped(out, bytes, is_special);
    }
}

fn push_uid(out: &mut Vec<u8>, mut number: u64) {
    const DIGITS: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
    out.push(b'C');
    loop {
        let digit = usize::try_from(number % 62).unwrap_or(0);
        out.push(DIGITS.get(digit).copied().unwrap_or(b'0'));
        number /= 62;
        if number == 0 {
            return;
        }
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
        let mut first = true;
        for &(column, shape) in &self.columns {
            if !first {
                out.push(b'\t');
            }
            first = false;
            match column.map_or(Value::Null, |column| K::value(view, column)) {
                Value::Null => out.push(b'-'),
                Value::U64(n) if shape == Shape::Uid => push_uid(out, n),
                Value::U64(n) if shape == Shape::Bool => out.push(if n == 0 { b'F' } else { b'T' }),
                Value::Word("unknown") if shape == Shape::Service => out.push(b'-'),
                Value::U64(n) => push_u64(out, n),
                Value::TimeNs(n) | Value::SpanNs(n) | Value::Millis(n) => push_seconds6(out, n),
                Value::Ip(address) => push_ip(out, address),
                Value::Port(port) => push_u64(out, u64::from(port)),
                Value::Text(b"") => out.extend_from_slice(b"(empty)"),
                Value::Text(bytes) => push_text(out, bytes, shape == Shape::Vector),
                Value::Word(word) => out.extend_from_slice(word.as_bytes()),
                Value::Bytes(bytes) => push_digits(out, bytes),
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
    fn dates() {
        assert_eq!(zeek_date(0), "1970-01-01-00-00-00");
        assert_eq!(zeek_date(951_782_400_000_000_000), "2000-02-29-00-00-00");
        assert_eq!(zeek_date(1_700_000_000_999_999_999), "2023-11-14-22-13-20");
        assert_eq!(zeek_date(u64::MAX), "2554-07-21-23-34-33");
    }

    #[test]
    fn text_that_looks_like_nothing() {
        let made = |text: &[u8], vector| {
            let mut out = Vec::new();
            push_text(&mut out, text, vector);
            String::from_utf8(out).unwrap()
        };
        assert_eq!(made(b"-", false), "\\x2d");
        assert_eq!(made(b"(empty)", false), "\\x28empty)");
        assert_eq!(made(b"a\tb\\\xff,", false), "a\\x09b\\x5c\\xff,");
        assert_eq!(made(b"a,b", true), "a\\x2cb");
        assert_eq!(made(b"--", false), "--");
    }

    #[test]
    fn uids_differ() {
        let made = |n| {
            let mut out = Vec::new();
            push_uid(&mut out, n);
            String::from_utf8(out).unwrap()
        };
        assert_eq!(made(0), "C0");
        assert_eq!(made(61), "Cz");
        assert_eq!(made(62), "C01");
        assert_ne!(made(u64::from(u32::MAX)), made(u64::from(u32::MAX) - 1));
    }
}
