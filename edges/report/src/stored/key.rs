//! By what records are grouped, and the condition that finds the records of a group.

use linkweir_record::stored::StoredRecord;
use linkweir_record::{Field, FieldType, RecordKind, Value, find_column};
use linkweir_wire::calendar::format_date;

use super::subject::Subject;
use crate::http::path_of;

/// By what records are grouped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Key {
    /// The value of a column, by its place.
    Column(usize),
    /// Host and path of a request, by the columns of host and target.
    Url(usize, usize),
}

impl Key {
    /// What a word means: `url`, an alias of the subject, or a column of the kind.
    ///
    /// # Errors
    /// What is wrong with the word.
    pub fn named<K: RecordKind>(subject: &Subject, name: &str) -> Result<Self, String> {
        if name == "url"
            && let (Some(host), Some(target)) = (K::column("host"), K::column("uri"))
        {
            return Ok(Self::Url(host, target));
        }
        let alias = subject.aliases.iter().find(|(alias, _)| *alias == name);
        find_column::<K>(alias.map_or(name, |(_, column)| column)).map(Self::Column)
    }

    /// The columns that it reads.
    pub(crate) fn columns(self) -> Vec<usize> {
        match self {
            Self::Column(column) => vec![column],
            Self::Url(host, target) => vec![host, target],
        }
    }

    /// Puts the group of a record into `out`.
    pub(crate) fn of(self, view: &StoredRecord<'_>, out: &mut Vec<u8>) {
        out.clear();
        match self {
            Self::Column(column) => push(&view.value(column), out),
            Self::Url(host, target) => {
                push(&view.value(host), out);
                out.make_ascii_lowercase();
                out.push(BETWEEN);
                if let Value::Text(target) = view.value(target) {
                    out.extend_from_slice(path_of(target));
                }
            }
        }
    }

    /// The group for people.
    pub(crate) fn shown(self, key: &[u8], is_truncated: bool) -> String {
        let key: Vec<u8> = match self {
            Self::Column(_) => key.to_vec(),
            Self::Url(..) => key.iter().copied().filter(|b| *b != BETWEEN).collect(),
        };
        crate::http_page::name_of(&key, is_truncated)
    }

    /// The condition (`--where`) that the records of a group meet; none where the column cannot be compared.
    pub(crate) fn condition(
        self,
        fields: &[Field],
        key: &[u8],
        is_truncated: bool,
    ) -> Option<String> {
        match self {
            Self::Column(column) => {
                let field = fields.get(column)?;
                let name = field.name;
                if field.kind == FieldType::Bytes {
                    return None;
                }
                if key.is_empty() {
                    return Some(format!("not {name}"));
                }
                Some(match field.kind {
                    FieldType::Text | FieldType::Word if is_truncated => {
                        format!("{name} ~ \"(?-i)^{}\"", pattern(key))
                    }
                    FieldType::Text | FieldType::Word => format!("{name} = \"{}\"", quoted(key)),
                    _ => format!("{name} = {}", String::from_utf8_lossy(key)),
                })
            }
            Self::Url(host, target) => {
                let (host, target) = (fields.get(host)?.name, fields.get(target)?.name);
                let at = key.iter().position(|byte| *byte == BETWEEN);
                let (name, path) = match at {
                    Some(at) => (key.get(..at)?, key.get(at + 1..)?),
                    None => (key, &[][..]),
                };
                let of_host = match name {
                    [] => format!("not {host}"),
                    name => format!("{host} ~ \"^{}$\"", pattern(name)),
                };
                let end = if is_truncated { "" } else { "([?#]|$)" };
                Some(match path {
                    [] => format!("{of_host} and not {target}"),
                    path => format!(
                        "{of_host} and {target} ~ \"(?-i)^([0-9a-zA-Z]+://[^/?]*)?{}{end}\"",
                        pattern(path)
                    ),
                })
            }
        }
    }
}

/// Between host and path: no host has it.
const BETWEEN: u8 = 0;

/// A value as a filter reads it.
fn push(value: &Value<'_>, out: &mut Vec<u8>) {
    match value {
        Value::Null => {}
        Value::U64(n) => out.extend_from_slice(n.to_string().as_bytes()),
        Value::TimeNs(n) => out.extend_from_slice(format_date(*n).as_bytes()),
        Value::SpanNs(n) | Value::Millis(n) => out.extend_from_slice(format!("{n}ns").as_bytes()),
        Value::Ip(address) => out.extend_from_slice(address.to_canonical().to_string().as_bytes()),
        Value::Port(port) => out.extend_from_slice(port.to_string().as_bytes()),
        Value::Text(bytes) | Value::Bytes(bytes) => out.extend_from_slice(bytes),
        Value::Short(short) => out.extend_from_slice(short.as_bytes()),
        Value::Word(word) => out.extend_from_slice(word.as_bytes()),
    }
}

/// Bytes that stand between quotes.
fn quoted(bytes: &[u8]) -> String {
    let mut out = String::new();
    for chunk in bytes.utf8_chunks() {
        for letter in chunk.valid().chars() {
            match letter {
                '"' | '\\' => out.extend(['\\', letter]),
                letter if letter.is_control() => {
                    letter
                        .encode_utf8(&mut [0; 4])
                        .bytes()
                        .for_each(|byte| hex(byte, &mut out));
                }
                letter => out.push(letter),
            }
        }
        chunk.invalid().iter().for_each(|byte| hex(*byte, &mut out));
    }
    out
}

/// Bytes as a regular expression that finds them, between quotes.
fn pattern(bytes: &[u8]) -> String {
    let mut out = String::new();
    for byte in bytes {
        match byte {
            b'0'..=b'9'
            | b'a'..=b'z'
            | b'A'..=b'Z'
            | b'/'
            | b'_'
            | b'-'
            | b' '
            | b'%'
            | b'='
            | b'&'
            | b','
            | b':'
            | b';'
            | b'@'
            | b'~'
            | b'<'
            | b'>' => out.push(char::from(*byte)),
            b'!'..=b'~' => out.extend(['\\', char::from(*byte)]),
            byte => hex(*byte, &mut out),
        }
    }
    out
}

fn hex(byte: u8, out: &mut String) {
    out.push_str("\\x");
    out.extend(
        [byte >> 4, byte & 15].map(|digit| char::from_digit(digit.into(), 16).unwrap_or('0')),
    );
}
