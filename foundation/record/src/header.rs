//! Header fields in records: what every run keeps of them, and the columns of those that a run chooses.
//!
//! The values of a message travel as one text: of each a slot, a length and its bytes. A message without any has an
//! empty one.

use std::fmt;
use std::sync::OnceLock;

use crate::anonymize::Anonymizer;
use crate::schema::{Field, FieldType, Value, ZeekColumn, text};

/// Names that a run may choose.
pub const MAX_NAMES: usize = 16;
/// Bytes of a name at most.
pub const MAX_NAME: usize = 64;
/// Bytes that are kept of a value; what is behind them is cut.
pub const MAX_VALUE: usize = 1024;

/// Names of header fields that a run has chosen, in lower case, in the order of their columns.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct HeaderNames(Vec<String>);

/// Why names are not ones that a run can choose.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HeaderError {
    /// It is not a token (RFC 9110 sec. 5.1), or longer than [`MAX_NAME`].
    Name(String),
    /// More than [`MAX_NAMES`].
    TooMany,
    /// Two names have columns of the same name.
    Same(String, String),
}

impl fmt::Display for HeaderError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name(name) => write!(
                f,
                "`{name}` is not a valid field name: at most {MAX_NAME} letters, digits and !#$%&'*+-.^_`|~"
            ),
            Self::TooMany => write!(f, "at most {MAX_NAMES} names can be chosen"),
            Self::Same(first, second) => {
                write!(
                    f,
                    "`{first}` and `{second}` have the same columns: leave one out"
                )
            }
        }
    }
}

impl std::error::Error for HeaderError {}

/// The part of a column's name that is the field's.
fn column_of(name: &str) -> String {
    let plain = |letter: char| {
        if letter.is_ascii_alphanumeric() {
            letter
        } else {
            '_'
        }
    };
    name.chars().map(plain).collect()
}

/// The name of the field whose value a column `req_NAME` or `resp_NAME` has, as far as the column tells it.
#[must_use]
pub fn header_of_column(column: &str) -> Option<&str> {
    let name = column.strip_prefix("req_");
    name.or_else(|| column.strip_prefix("resp_"))
}

impl HeaderNames {
    /// Names in letters of any case; one that comes again counts once.
    ///
    /// # Errors
    /// [`HeaderError`]
    pub fn new(names: &[String]) -> Result<Self, HeaderError> {
        let mut chosen: Vec<String> = Vec::new();
        for name in names {
            let is_token =
                |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
            if !(1..=MAX_NAME).contains(&name.len()) || !name.bytes().all(is_token) {
                return Err(HeaderError::Name(name.clone()));
            }
            let name = name.to_ascii_lowercase();
            let same = chosen.iter().find(|one| column_of(one) == column_of(&name));
            match same {
                None if chosen.len() == MAX_NAMES => return Err(HeaderError::TooMany),
                None => chosen.push(name),
                Some(same) if *same == name => {}
                Some(same) => return Err(HeaderError::Same(same.clone(), name)),
            }
        }
        Ok(Self(chosen))
    }

    /// Whether none was chosen.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The names, in lower case.
    pub fn iter(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(String::as_str)
    }
}

/// A value's place in the text of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Slot {
    /// Trace and parent of a `traceparent`, 32 and 16 digits.
    Trace,
    /// `X-Forwarded-For`.
    Forwarded,
    /// The chosen name of this number.
    Chosen(usize),
}

impl Slot {
    fn number(self) -> u8 {
        match self {
            Self::Trace => 0,
            Self::Forwarded => 1,
            Self::Chosen(at) => u8::try_from(at.saturating_add(2)).unwrap_or(u8::MAX),
        }
    }
}

/// Appends a value to the text of a message, as far as [`MAX_VALUE`] bytes of it.
pub fn push(into: &mut Vec<u8>, slot: Slot, value: &[u8]) {
    push_number(into, slot.number(), value);
}

fn push_number(into: &mut Vec<u8>, slot: u8, value: &[u8]) {
    let value = value.get(..MAX_VALUE).unwrap_or(value);
    let len = u16::try_from(value.len()).unwrap_or_default();
    into.push(slot);
    into.extend_from_slice(&len.to_le_bytes());
    into.extend_from_slice(value);
}

/// The first value of a text, and what is behind it.
fn split(values: &[u8]) -> Option<(u8, &[u8], &[u8])> {
    let ([slot, low, high], rest) = values.split_first_chunk()?;
    let len = usize::from(u16::from_le_bytes([*low, *high]));
    let (value, rest) = rest.split_at_checked(len)?;
    Some((*slot, value, rest))
}

/// The value that stands in a slot; empty where there is none.
#[must_use]
pub fn find(values: &[u8], slot: Slot) -> &[u8] {
    let mut rest = values;
    while let Some((number, value, behind)) = split(rest) {
        if number == slot.number() {
            return value;
        }
        rest = behind;
    }
    &[]
}

/// The text of a message in which every address that is an element of a list (RFC 9110 sec. 5.6.1) is replaced.
#[must_use]
pub fn anonymized(values: &[u8], by: &Anonymizer) -> Vec<u8> {
    let mut text = Vec::with_capacity(values.len());
    let mut rest = values;
    while let Some((slot, value, behind)) = split(rest) {
        rest = behind;
        if slot == Slot::Trace.number() {
            push_number(&mut text, slot, value);
            continue;
        }
        let elements = value.split(|byte| *byte == b',').map(|element| {
            let host = element.trim_ascii();
            let white = element.len() - element.trim_ascii_start().len();
            by.replace_host(host).map_or_else(
                || element.to_vec(),
                |host| [element.get(..white).unwrap_or_default(), &host].concat(),
            )
        });
        let elements: Vec<Vec<u8>> = elements.collect();
        push_number(&mut text, slot, &elements.join(&b','));
    }
    text
}

/// Trace and parent of a `traceparent` (W3C Trace Context sec. 3.2), 32 and 16 digits; nothing where it is void.
#[must_use]
pub fn trace_of(value: &[u8]) -> Option<[u8; 48]> {
    let (version, rest) = value.split_first_chunk::<3>()?;
    let (trace, rest) = rest.split_first_chunk::<33>()?;
    let (parent, rest) = rest.split_first_chunk::<17>()?;
    let (flags, rest) = rest.split_first_chunk::<2>()?;
    let is_hex = |digits: &[u8]| {
        let mut digits = digits.iter();
        digits.all(|digit| matches!(digit, b'0'..=b'9' | b'a'..=b'f'))
    };
    let id = |part: &[u8]| -> Option<Vec<u8>> {
        let digits = part.strip_suffix(b"-")?;
        let is_void = !is_hex(digits) || digits.iter().all(|digit| *digit == b'0');
        (!is_void).then(|| digits.to_vec())
    };
    let known = version.strip_suffix(b"-").filter(|digits| is_hex(digits))?;
    // A later version may have more behind a dash; the first has nothing more, and `ff` is none.
    let is_good = match known {
        b"ff" => false,
        b"00" => rest.is_empty(),
        _ => matches!(rest, [] | [b'-', ..]),
    };
    let ids = [id(trace)?, id(parent)?].concat();
    ids.try_into().ok().filter(|_| is_good && is_hex(flags))
}

/// The trace and the parent that a text has, or nothing.
pub(crate) fn trace(values: &[u8]) -> (Value<'_>, Value<'_>) {
    let (trace, parent) = trace_digits(values).unwrap_or_default();
    (text(trace), text(parent))
}

/// The digits of the trace and of the parent.
pub(crate) fn trace_digits(values: &[u8]) -> Option<(&[u8], &[u8])> {
    find(values, Slot::Trace).split_at_checked(32)
}

/// What the columns of a run are made of.
#[derive(Debug)]
struct Columns {
    fields: Vec<Field>,
    zeek: Vec<(&'static str, ZeekColumn)>,
    names: HeaderNames,
}

/// Decided once, before the first record: formats read the columns when they are opened.
static COLUMNS: OnceLock<Columns> = OnceLock::new();

/// Adds the columns of these names to the kind `http_transaction`, for all of the process and to its end: `req_NAME` and
/// `resp_NAME` of each, with `_` for what is not a letter or digit. To be called before an output is opened or a filter is
/// read; `false` where other names were added before.
#[must_use]
pub fn add_columns(
    names: &HeaderNames,
    fields: &'static [Field],
    zeek: &'static [(&'static str, ZeekColumn)],
) -> bool {
    let columns = || {
        let leak = |text: String| -> &'static str { Box::leak(text.into_boxed_str()) };
        let mut columns = Columns {
            fields: fields.to_vec(),
            zeek: zeek.to_vec(),
            names: names.clone(),
        };
        for name in names.iter() {
            for (prefix, message) in [("req", "request"), ("resp", "final response")] {
                let field = Field {
                    name: leak(format!("{prefix}_{}", column_of(name))),
                    kind: FieldType::Text,
                    unit: "",
                    ipfix: None,
                    doc: leak(format!("Field {name} of the {message} (--header).")),
                };
                let column = ZeekColumn {
                    name: field.name,
                    kind: "string",
                };
                columns.fields.push(field);
                columns.zeek.push((field.name, column));
            }
        }
        columns
    };
    COLUMNS.get_or_init(columns).names == *names
}

/// All columns of the kind in this run.
pub(crate) fn fields(declared: &'static [Field]) -> &'static [Field] {
    COLUMNS.get().map_or(declared, |columns| &columns.fields)
}

/// Zeek's columns in this run.
pub(crate) fn zeek(
    declared: &'static [(&'static str, ZeekColumn)],
) -> &'static [(&'static str, ZeekColumn)] {
    COLUMNS.get().map_or(declared, |columns| &columns.zeek)
}

/// The value of the added column of this number, by the texts of request and response.
#[cold]
pub(crate) fn added<'a>(values: [&'a [u8]; 2], number: usize) -> Value<'a> {
    let values = values.get(number % 2).copied().unwrap_or_default();
    text(find(values, Slot::Chosen(number / 2)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(names: &[&str]) -> Result<HeaderNames, HeaderError> {
        let names: Vec<String> = names.iter().map(|&name| name.to_owned()).collect();
        HeaderNames::new(&names)
    }

    #[test]
    fn names_are_tokens_of_one_column_each() {
        let chosen = names(&["X-Request-ID", "x-request-id", "Server"]).unwrap();
        assert_eq!(
            chosen.iter().collect::<Vec<_>>(),
            ["x-request-id", "server"]
        );
        for wrong in ["", "a b", "a:", ":path", "x\u{e9}"] {
            let error = names(&[wrong]).unwrap_err();
            assert_eq!(error, HeaderError::Name(wrong.to_owned()));
        }
        assert!(matches!(names(&["a-b", "A_B"]), Err(HeaderError::Same(..))));
        let many: Vec<String> = (0..17).map(|number| format!("x-{number}")).collect();
        assert_eq!(HeaderNames::new(&many), Err(HeaderError::TooMany));
        assert!(HeaderNames::new(&many[..16]).is_ok());
    }

    #[test]
    fn values_are_found_by_their_slots() {
        let mut values = Vec::new();
        push(&mut values, Slot::Forwarded, b"192.0.2.1, unknown");
        push(&mut values, Slot::Chosen(3), &[b'x'; 2000]);
        assert_eq!(find(&values, Slot::Forwarded), b"192.0.2.1, unknown");
        assert_eq!(find(&values, Slot::Chosen(3)), [b'x'; MAX_VALUE]);
        assert!(find(&values, Slot::Trace).is_empty());
        assert_eq!(added([&[], &values], 6), Value::Null);
        assert_eq!(added([&[], &values], 7), Value::Text(&[b'x'; MAX_VALUE]));
        values.truncate(10);
        assert!(find(&values, Slot::Forwarded).is_empty());
    }

    #[test]
    fn addresses_in_lists_are_replaced() {
        let mut values = Vec::new();
        push(&mut values, Slot::Trace, &[b'1'; 48]);
        push(&mut values, Slot::Forwarded, b"unknown, 192.0.2.1:80 ,::1");
        let key = Anonymizer::new(&[7; 32]);
        let hidden = anonymized(&values, &key);
        let host = |host: &[u8]| String::from_utf8(key.replace_host(host).unwrap()).unwrap();
        let want = format!("unknown, {},{}", host(b"192.0.2.1:80"), host(b"::1"));
        assert_eq!(find(&hidden, Slot::Forwarded), want.as_bytes());
        assert_eq!(find(&hidden, Slot::Trace), [b'1'; 48]);
    }

    #[test]
    fn traces_by_the_rules_of_their_version() {
        const IDS: &str = "4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7";
        let ids = IDS.replace('-', "");
        let (trace, parent) = IDS.split_once('-').unwrap();
        let zeros = |count| "0".repeat(count);
        for (value, is_good) in [
            (format!("00-{IDS}-01"), true),
            (format!("00-{IDS}-01-more"), false),
            (format!("cc-{IDS}-01-more"), true),
            (format!("cc-{IDS}-01.more"), false),
            (format!("ff-{IDS}-01"), false),
            (format!("00-{IDS}-0"), false),
            (format!("00-{IDS}-0G"), false),
            (format!("00-{}-01", IDS.to_uppercase()), false),
            (format!("00-{}-{parent}-01", zeros(32)), false),
            (format!("00-{trace}-{}-01", zeros(16)), false),
            (String::new(), false),
        ] {
            let trace = trace_of(value.as_bytes());
            let want = is_good.then_some(ids.as_bytes());
            assert_eq!(trace.as_ref().map(<[u8; 48]>::as_slice), want, "{value}");
        }
    }
}
