//! Values in a filter, read in the type of their column.

use std::net::IpAddr;

use ipnet::IpNet;
use regex::bytes::{Regex, RegexBuilder};

use super::{Op, time};
use crate::prefix::Prefix;
use crate::schema::{Field, FieldType, Value};

/// Memory of a compiled expression, and of its automaton.
const REGEX_BYTES: usize = 1 << 20;
/// Memory of all expressions of a filter, and of their automata, without which the search is slow: each has its part of it, but as
/// much as a word takes.
const ALL_REGEX_BYTES: usize = 8 << 20;
const ALL_AUTOMATA_BYTES: usize = 32 << 20;
const LEAST_REGEX_BYTES: usize = 16 << 10;

/// A value as a column is compared with it.
#[derive(Debug)]
pub(super) enum Literal {
    /// A number; times and time spans in nanoseconds.
    Number(u64),
    /// One address or all of a network.
    Network(IpNet),
    /// Exactly this.
    Text(Vec<u8>),
    /// What `~` looks for.
    Pattern(Regex),
}

impl Literal {
    /// Reads `text` for a column, `quoted` as it stood between quotes, in a filter of so many expressions; the error says what would
    /// have been right.
    pub(super) fn read(
        text: &str,
        quoted: Option<&str>,
        field: &Field,
        op: Op,
        expressions: usize,
    ) -> Result<Self, String> {
        match field.kind {
            // Regular expressions have escapes of their own, those of quotes among them.
            FieldType::Text | FieldType::Word if op == Op::Matches => {
                pattern(quoted.unwrap_or(text), expressions)
            }
            FieldType::Text | FieldType::Word => match op {
                Op::Equal | Op::Unequal => Ok(Self::Text(match quoted {
                    Some(raw) => unquoted(raw),
                    None => text.as_bytes().to_vec(),
                })),
                _ => Err(format!(
                    "`{}` is text: compare it by =, !=, ~ or in",
                    field.name
                )),
            },
            FieldType::Bytes => Err(format!("`{}` cannot be compared", field.name)),
            _ if op == Op::Matches => {
                Err(format!("`{}` is not text: `~` searches text", field.name))
            }
            FieldType::Ip => match op {
                Op::Equal | Op::Unequal => {
                    let network = text.parse::<Prefix>().map_err(|error| error.to_string())?;
                    Ok(Self::Network(canonical(network.0)))
                }
                _ => Err(format!(
                    "`{}` is an address: compare it by =, != or in",
                    field.name
                )),
            },
            FieldType::TimeNs | FieldType::TimeMillis => time::parse_moment(text).map(Self::Number),
            FieldType::SpanNs | FieldType::Millis => time::span(text).map(Self::Number),
            FieldType::Port | FieldType::U16 | FieldType::U32 | FieldType::U64 | FieldType::I64 => {
                count(text, field.unit == "bytes").map(Self::Number)
            }
        }
    }

    /// Whether `value` stands so to it.
    pub(super) fn stands(&self, op: Op, value: &Value<'_>) -> bool {
        match self {
            Self::Number(number) => {
                let value = match value {
                    Value::U64(n) | Value::TimeNs(n) | Value::SpanNs(n) | Value::Millis(n) => *n,
                    Value::Port(port) => u64::from(*port),
                    _ => return false,
                };
                match op {
                    Op::Equal => value == *number,
                    Op::Unequal => value != *number,
                    Op::Below => value < *number,
                    Op::AtMost => value <= *number,
                    Op::Above => value > *number,
                    Op::AtLeast => value >= *number,
                    Op::Matches => false,
                }
            }
            Self::Network(network) => match value {
                Value::Ip(address) => {
                    network.contains(&address.to_canonical()) == (op == Op::Equal)
                }
                _ => false,
            },
            Self::Text(text) => {
                bytes(value).is_some_and(|value| (value == text) == (op == Op::Equal))
            }
            Self::Pattern(regex) => bytes(value).is_some_and(|value| regex.is_match(value)),
        }
    }
}

fn bytes<'a>(value: &'a Value<'_>) -> Option<&'a [u8]> {
    match value {
        Value::Text(bytes) => Some(bytes),
        Value::Short(short) => Some(short.as_bytes()),
        Value::Word(word) => Some(word.as_bytes()),
        _ => None,
    }
}

fn pattern(text: &str, expressions: usize) -> Result<Literal, String> {
    let part = |all: usize| (all / expressions.max(1)).clamp(LEAST_REGEX_BYTES, REGEX_BYTES);
    let regex = RegexBuilder::new(text)
        .case_insensitive(true)
        .unicode(false)
        .size_limit(part(ALL_REGEX_BYTES))
        .dfa_size_limit(part(ALL_AUTOMATA_BYTES))
        .build();
    regex.map(Literal::Pattern).map_err(|error| {
        // Its last line says what; those before draw where.
        let text = error.to_string();
        let what = text.lines().last().unwrap_or_default();
        let what = what.strip_prefix("error: ").unwrap_or(what);
        format!("not a valid regular expression: {what}")
    })
}

/// A network of IPv4 that is written as one of IPv6 (`::ffff:10.0.0.0/104`).
fn canonical(network: IpNet) -> IpNet {
    match (network.addr().to_canonical(), network) {
        (IpAddr::V4(address), IpNet::V6(mapped)) => {
            let length = mapped.prefix_len().checked_sub(96);
            let network = length.and_then(|length| IpNet::new(address.into(), length).ok());
            network.unwrap_or(IpNet::V6(mapped))
        }
        (_, network) => network,
    }
}

/// A number and what follows it.
pub(super) fn split(text: &str) -> (&str, &str) {
    let end = text.find(|c: char| !(c.is_ascii_digit() || c == '.'));
    let (number, unit) = text.split_at(end.unwrap_or(text.len()));
    (number, unit.trim_start())
}

/// What stood between quotes: a backslash before a quote or a backslash is left out, and `\xHH` is that byte, as formats write
/// it.
fn unquoted(raw: &str) -> Vec<u8> {
    let mut out = Vec::with_capacity(raw.len());
    let mut rest = raw.as_bytes();
    while let Some((&byte, after)) = rest.split_first() {
        rest = after;
        match (byte, after) {
            (b'\\', [escaped @ (b'"' | b'\'' | b'\\'), after @ ..]) => {
                out.push(*escaped);
                rest = after;
            }
            (b'\\', _) => match crate::stored::hex_escape(after) {
                Some((escaped, after)) => {
                    out.push(escaped);
                    rest = after;
                }
                None => out.push(byte),
            },
            _ => out.push(byte),
        }
    }
    out
}

/// A count, with a unit of size where it counts bytes.
fn count(text: &str, is_bytes: bool) -> Result<u64, String> {
    let wrong = || {
        let example = if is_bytes {
            ", such as 1500, 10kB or 64KiB"
        } else {
            ""
        };
        format!("`{text}` is not a valid number{example}")
    };
    let (number, unit) = split(text);
    let factor = match unit {
        "" => 1,
        _ if !is_bytes => return Err(wrong()),
        "B" => 1,
        "k" | "kB" | "KB" => 1_000,
        "K" | "KiB" => 1 << 10,
        "M" | "MB" => 1_000_000,
        "MiB" => 1 << 20,
        "G" | "GB" => 1_000_000_000,
        "GiB" => 1 << 30,
        _ => return Err(wrong()),
    };
    let number: u64 = number.parse().map_err(|_| wrong())?;
    number.checked_mul(factor).ok_or_else(wrong)
}
