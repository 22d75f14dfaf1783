//! A line of `jsonl` (RFC 8259) as a record: an object whose members are columns.

use std::collections::HashMap;
use std::marker::PhantomData;
use std::net::IpAddr;

use super::scan::{LineError, Scan};
use super::{StoredBatch, unescape};
use crate::schema::{FieldType, RecordKind, Value};

/// Names of members that are no columns, which are remembered.
const MAX_UNKNOWN: usize = 64;
/// Bytes of such a name.
const MAX_NAME: usize = 64;

/// Reads lines as records of a kind.
#[derive(Debug)]
pub struct Lines<K> {
    columns: HashMap<&'static str, usize>,
    wanted: Vec<bool>,
    unknown: Vec<String>,
    key: Vec<u8>,
    text: Vec<u8>,
    plain: Vec<u8>,
    kind: PhantomData<fn() -> K>,
}

impl<K: RecordKind> Lines<K> {
    /// Reads the columns for which `wanted` holds; the others stay without a value.
    #[must_use]
    pub fn new(wanted: impl Fn(usize) -> bool) -> Self {
        let fields = || K::fields().iter().enumerate();
        Self {
            columns: fields().map(|(at, field)| (field.name, at)).collect(),
            wanted: fields().map(|(at, _)| wanted(at)).collect(),
            unknown: Vec::new(),
            key: Vec::new(),
            text: Vec::new(),
            plain: Vec::new(),
            kind: PhantomData,
        }
    }

    /// Appends the record of a line; none where it is not one.
    ///
    /// # Errors
    /// It is no object, or a member has not the type of its column.
    pub fn read(&mut self, line: &[u8], out: &mut StoredBatch<K>) -> Result<(), LineError> {
        let row = out.grow(1);
        let read = self.object(line, row, out);
        if read.is_err() {
            out.cut(row);
        }
        read
    }

    /// Names of members that are no columns of the kind, at most 64 of them.
    #[must_use]
    pub fn unknown(&self) -> &[String] {
        &self.unknown
    }

    fn object(
        &mut self,
        line: &[u8],
        row: usize,
        out: &mut StoredBatch<K>,
    ) -> Result<(), LineError> {
        let mut at = Scan::new(line);
        at.mark(b'{', "an object")?;
        // Columns come in the order of the schema.
        let (mut expected, mut known) = (0, 0);
        loop {
            self.key.clear();
            at.string(&mut self.key)?;
            at.mark(b':', "`:`")?;
            let field = K::fields().get(expected);
            let column = if field.is_some_and(|field| field.name.as_bytes() == self.key) {
                Some(expected)
            } else {
                let name = std::str::from_utf8(&self.key).unwrap_or_default();
                self.columns.get(name).copied()
            };
            match column {
                Some(column) => {
                    expected = column + 1;
                    known += 1;
                    self.member(&mut at, row, column, out)?;
                }
                None => {
                    self.note_unknown();
                    at.pass_over(0)?;
                }
            }
            if at.next_is(b'}') {
                at.end()?;
                return match known {
                    0 => Err(LineError {
                        at: 1,
                        message: format!("no column of {} is in it", K::NAME),
                        is_cut: false,
                    }),
                    _ => Ok(()),
                };
            }
            at.mark(b',', "`,` or `}`")?;
        }
    }

    fn note_unknown(&mut self) {
        // What messages of Kafka have before the columns.
        const ENVELOPE: [&[u8]; 4] = [b"kind", b"schema_version", b"probe", b"record_id"];
        let key = self.key.as_slice();
        let is_known = self.unknown.iter().any(|name| name.as_bytes() == key);
        if is_known || ENVELOPE.contains(&key) || self.unknown.len() >= MAX_UNKNOWN {
            return;
        }
        let name = key.get(..MAX_NAME).unwrap_or(key);
        self.unknown
            .push(String::from_utf8_lossy(name).into_owned());
    }

    fn member(
        &mut self,
        at: &mut Scan<'_>,
        row: usize,
        column: usize,
        out: &mut StoredBatch<K>,
    ) -> Result<(), LineError> {
        let Some(field) = K::fields().get(column) else {
            return at.pass_over(0);
        };
        if !self.wanted.get(column).copied().unwrap_or_default() {
            // It was there: which columns are tells the shape of the record.
            out.set(row, column, Value::Null);
            return at.pass_over(0);
        }
        at.skip_spaces();
        let from = at.at;
        let wrong = |what: &str| LineError {
            at: from + 1,
            message: format!("`{}` is not {what}", field.name),
            is_cut: false,
        };
        match at.peek() {
            Some(b'n') => {
                at.word(b"null")?;
                out.set(row, column, Value::Null);
            }
            Some(b'"') => {
                self.text.clear();
                at.string(&mut self.text)?;
                let value = match field.kind {
                    FieldType::Ip => {
                        let text = std::str::from_utf8(&self.text).unwrap_or_default();
                        let address: IpAddr = text.parse().map_err(|_| wrong("an address"))?;
                        Value::Ip(address)
                    }
                    FieldType::Text | FieldType::Word => {
                        self.plain.clear();
                        unescape(&self.text, &mut self.plain);
                        Value::Text(&self.plain)
                    }
                    FieldType::Bytes => {
                        self.plain.clear();
                        if !from_hex(&self.text, &mut self.plain) {
                            return Err(wrong("hexadecimal digits"));
                        }
                        Value::Bytes(&self.plain)
                    }
                    _ => return Err(wrong("a number")),
                };
                out.set(row, column, value);
            }
            Some(b'0'..=b'9') => {
                let digits = at.number();
                let value = match field.kind {
                    FieldType::Ip | FieldType::Text | FieldType::Word | FieldType::Bytes => {
                        return Err(wrong("a string"));
                    }
                    FieldType::Millis | FieldType::TimeMillis => nanos_of_millis(digits),
                    kind => whole(digits).filter(|n| fits(*n, kind)),
                };
                let value = value.ok_or_else(|| wrong("a number of its type"))?;
                out.set(row, column, Value::U64(value));
            }
            Some(_) => return Err(wrong("of a type of its column")),
            None => return Err(at.cut()),
        }
        Ok(())
    }
}

/// The names of the members of an object, as far as it can be read, and the kind that it names itself (Kafka's messages do).
#[must_use]
pub fn members(line: &[u8]) -> (Vec<String>, Option<String>) {
    let mut at = Scan::new(line);
    let (mut names, mut kind) = (Vec::new(), None);
    let mut read = || -> Result<(), LineError> {
        at.mark(b'{', "an object")?;
        loop {
            let mut key = Vec::new();
            at.string(&mut key)?;
            at.mark(b':', "`:`")?;
            if key == b"kind" && at.peek() == Some(b'"') {
                let mut value = Vec::new();
                at.string(&mut value)?;
                kind = String::from_utf8(value).ok();
            } else {
                at.pass_over(0)?;
            }
            names.push(String::from_utf8_lossy(&key).into_owned());
            at.mark(b',', "`,`")?;
        }
    };
    // It ends with the object, at the latest.
    let _end = read();
    (names, kind)
}

/// Whether a number is one of the type of a column.
fn fits(number: u64, kind: FieldType) -> bool {
    number
        <= match kind {
            FieldType::U16 | FieldType::Port => u64::from(u16::MAX),
            FieldType::U32 => u64::from(u32::MAX),
            _ => u64::MAX,
        }
}

/// A number of digits alone.
fn whole(digits: &[u8]) -> Option<u64> {
    std::str::from_utf8(digits).ok()?.parse().ok()
}

/// Milliseconds, with at most six decimals, as nanoseconds.
fn nanos_of_millis(digits: &[u8]) -> Option<u64> {
    let point = digits.iter().position(|byte| *byte == b'.');
    let (millis, decimals) = match point {
        Some(at) => (digits.get(..at)?, digits.get(at + 1..)?),
        None => (digits, &[][..]),
    };
    let places = u32::try_from(decimals.len()).ok()?;
    let decimals = match places {
        0 => 0,
        1..=6 => whole(decimals)? * 10_u64.pow(6 - places),
        _ => return None,
    };
    whole(millis)?.checked_mul(1_000_000)?.checked_add(decimals)
}

fn from_hex(text: &[u8], out: &mut Vec<u8>) -> bool {
    let digit = |byte: &u8| char::from(*byte).to_digit(16);
    let pairs = text.chunks(2).map(|pair| match pair {
        [high, low] => u8::try_from(digit(high)? * 16 + digit(low)?).ok(),
        _ => None,
    });
    for byte in pairs {
        match byte {
            Some(byte) => out.push(byte),
            None => return false,
        }
    }
    true
}
