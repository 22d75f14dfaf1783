//! By what records are grouped, and the condition that finds the records of a group.

use linkweir_record::escape::push_hex;
use linkweir_record::stored::StoredRecord;
use linkweir_record::{Field, FieldType, RecordKind, Value, find_column, path_of};
use linkweir_wire::calendar::format_date;

use super::PART_BYTES;
use super::subject::Subject;

/// Parts of a key at most.
const MAX_PARTS: usize = 8;

/// By what records are grouped: one part, or several together.
///
/// The bytes of one part are its value, cut off by the table that counts it; of several, each has its length and whether it was cut
/// off before its first [`PART_BYTES`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Key(Vec<Part>);

/// A part of a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Part {
    /// The value of a column, by its place.
    Column(usize),
    /// Host and path of a request, by the columns of host and target.
    Url(usize, usize),
}

impl Key {
    /// What words with `,` between them mean: each `url`, an alias of the subject, or a column of the kind.
    ///
    /// # Errors
    /// What is wrong with a word.
    pub fn named<K: RecordKind>(subject: &Subject, words: &str) -> Result<Self, String> {
        let parts = words.split(',').map(str::trim);
        let parts: Vec<Part> = parts
            .map(|word| Part::named::<K>(subject, word))
            .collect::<Result<_, String>>()?;
        if parts.len() > MAX_PARTS {
            return Err(format!("at most {MAX_PARTS} columns together"));
        }
        Ok(Self(parts))
    }

    /// Bytes of the longest key.
    pub(crate) const fn max_bytes(&self) -> usize {
        match self.0.len() {
            0 | 1 => PART_BYTES,
            parts => parts * (PART_BYTES + 2),
        }
    }

    /// The columns that it reads.
    pub(crate) fn columns(&self) -> Vec<usize> {
        self.0.iter().flat_map(|part| part.columns()).collect()
    }

    /// Puts the group of a record into `out`.
    pub(crate) fn of(&self, view: &StoredRecord<'_>, out: &mut Vec<u8>) {
        out.clear();
        if let [part] = self.0.as_slice() {
            return part.push(view, out);
        }
        for part in &self.0 {
            let head = out.len();
            out.extend_from_slice(&[0, 0]);
            part.push(view, out);
            let length = out.len() - head - 2;
            out.truncate(head + 2 + PART_BYTES);
            if let Some(head) = out.get_mut(head..head + 2) {
                let kept = u8::try_from(length.min(PART_BYTES)).unwrap_or(u8::MAX);
                head.copy_from_slice(&[kept, u8::from(length > PART_BYTES)]);
            }
        }
    }

    /// The parts with the bytes of each, and whether those were cut off.
    fn split<'a>(&self, key: &'a [u8], is_truncated: bool) -> Vec<(Part, &'a [u8], bool)> {
        if let [part] = self.0.as_slice() {
            return vec![(*part, key, is_truncated)];
        }
        let mut rest = key;
        let parts = self.0.iter().map(|part| {
            let ([length, cut], behind) = rest.split_first_chunk().unwrap_or((&[0, 0], &[]));
            let (bytes, behind) = behind
                .split_at_checked(usize::from(*length))
                .unwrap_or_default();
            rest = behind;
            (*part, bytes, *cut > 0)
        });
        parts.collect()
    }

    /// The group for people.
    pub(crate) fn shown(&self, key: &[u8], is_truncated: bool) -> String {
        let parts = self.split(key, is_truncated).into_iter();
        let parts: Vec<String> = parts.map(|(part, key, cut)| part.shown(key, cut)).collect();
        parts.join(", ")
    }

    /// The condition (`--where`) that the records of a group meet; none where a column cannot be compared.
    pub(crate) fn condition(
        &self,
        fields: &[Field],
        key: &[u8],
        is_truncated: bool,
    ) -> Option<String> {
        let parts = self.split(key, is_truncated).into_iter();
        let parts: Option<Vec<String>> = parts
            .map(|(part, key, cut)| part.condition(fields, key, cut))
            .collect();
        Some(parts?.join(" and "))
    }
}

impl Part {
    fn named<K: RecordKind>(subject: &Subject, name: &str) -> Result<Self, String> {
        if name == "url"
            && let (Some(host), Some(target)) = (K::column("host"), K::column("uri"))
        {
            return Ok(Self::Url(host, target));
        }
        let alias = subject.aliases.iter().find(|(alias, _)| *alias == name);
        find_column::<K>(alias.map_or(name, |(_, column)| column)).map(Self::Column)
    }

    fn columns(self) -> Vec<usize> {
        match self {
            Self::Column(column) => vec![column],
            Self::Url(host, target) => vec![host, target],
        }
    }

    /// Appends its value in a record.
    pub(crate) fn push(self, view: &StoredRecord<'_>, out: &mut Vec<u8>) {
        match self {
            Self::Column(column) => push(&view.value(column), out),
            Self::Url(host, target) => {
                let from = out.len();
                push(&view.value(host), out);
                if let Some(host) = out.get_mut(from..) {
                    host.make_ascii_lowercase();
                }
                out.push(BETWEEN);
                if let Value::Text(target) = view.value(target) {
                    out.extend_from_slice(path_of(target));
                }
            }
        }
    }

    fn shown(self, key: &[u8], is_truncated: bool) -> String {
        let key: Vec<u8> = match self {
            Self::Column(_) => key.to_vec(),
            Self::Url(..) => key.iter().copied().filter(|b| *b != BETWEEN).collect(),
        };
        crate::http_page::name_of(&key, is_truncated)
    }

    fn condition(self, fields: &[Field], key: &[u8], is_truncated: bool) -> Option<String> {
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
                        .for_each(|byte| push_hex(&mut out, byte));
                }
                letter => out.push(letter),
            }
        }
        chunk
            .invalid()
            .iter()
            .for_each(|byte| push_hex(&mut out, *byte));
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
            byte => push_hex(&mut out, *byte),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use linkweir_record::{HttpKind, RecordBatch as _, StoredBatch};

    use super::*;

    fn key(words: &str) -> Result<Key, String> {
        let subject = Subject::named(HttpKind::NAME).unwrap();
        Key::named::<HttpKind>(subject, words)
    }

    fn group(words: &str, values: &[(&str, Value<'_>)]) -> (String, Option<String>) {
        let mut batch = StoredBatch::<HttpKind>::default();
        let row = batch.grow(1);
        for (column, value) in values {
            batch.set(row, HttpKind::column(column).unwrap(), *value);
        }
        let key = key(words).unwrap();
        let mut bytes = Vec::new();
        key.of(&batch.get(row).unwrap(), &mut bytes);
        assert!(bytes.len() <= key.max_bytes());
        let condition = key.condition(HttpKind::fields(), &bytes, false);
        (key.shown(&bytes, false), condition)
    }

    #[test]
    fn several_columns_are_one_key() {
        let values = [
            ("host", Value::Text(b"Shop.test")),
            ("uri", Value::Text(b"/a?b")),
            ("status_code", Value::U64(200)),
        ];
        let (shown, condition) = group("host, status,method", &values);
        assert_eq!(shown, "Shop.test, 200, (none)");
        assert_eq!(
            condition.unwrap(),
            "host = \"Shop.test\" and status_code = 200 and not method"
        );
        // What is in front of a host stays as it is.
        let (shown, condition) = group("host,url", &values);
        assert_eq!(shown, "Shop.test, shop.test/a");
        let condition = condition.unwrap();
        assert!(
            condition.starts_with("host = \"Shop.test\" and host ~ \"^shop\\.test$\" and uri ~"),
            "{condition}"
        );
    }

    #[test]
    fn each_part_is_cut_by_itself() {
        let long = [b'x'; 300];
        let values = [
            ("user_agent", Value::Text(&long)),
            ("method", Value::Text(b"PUT")),
        ];
        let (shown, condition) = group("user_agent,method", &values);
        assert!(shown.ends_with("…, PUT"), "{shown}");
        let want = format!(
            "user_agent ~ \"(?-i)^{}\" and method = \"PUT\"",
            "x".repeat(PART_BYTES)
        );
        assert_eq!(condition.unwrap(), want);
        assert!(key("host,nothing").unwrap_err().contains("nothing"));
        assert!(
            key(&["host"; 9].join(","))
                .unwrap_err()
                .contains("at most 8")
        );
    }
}
