//! Expressions over the columns of a record: which of them are meant.
//!
//! ```text
//! filter = or
//! or     = and { "or" and }
//! and    = not { "and" not }
//! not    = "not" not | "(" or ")" | column [ op value | "in" "(" value { "," value } ")" ]
//! op     = "=" | "!=" | "<" | "<=" | ">" | ">=" | "~"
//! ```
//! A column alone asks whether it is there. A comparison with a column that is empty is false, also `!=`. `~`
//! searches a regular expression in a text, ignoring case. Columns are those of the schema; the beginning of a
//! name up to a `_` will do where it is the only one; `client` and `server` are the addresses of both ends whatever the
//! kind calls them, and `url` is host and request target together. Values are of the column: a time span has a unit (`500ms`,
//! `1.5 s`), a time is that of RFC 3339 (`2026-11-01T00:00:00Z`) or seconds since 1970, bytes may be `10kB` or `64KiB`, an
//! address may be a network. Text in quotes has `\"`, `\'` and `\\` for these characters, and `\xHH` for
//! a byte.

mod ends;
mod parse;
mod time;
mod value;

use std::fmt;
use std::marker::PhantomData;

use thiserror::Error;

use self::ends::Url;
pub use self::ends::path_of;
pub use self::time::parse_moment;
use self::value::Literal;
use crate::schema::{RecordKind, Value};

/// Longest filter, in characters.
const MAX_CHARS: usize = 4000;
/// Deepest nesting.
const MAX_DEPTH: usize = 64;

/// What was wrong with a filter, and where.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("filter `{filter}`, column {column}: {message}")]
pub struct FilterError {
    /// The filter as it was written.
    pub filter: String,
    /// Where, in characters from 1.
    pub column: usize,
    /// What, in one sentence without a full stop.
    pub message: String,
}

/// A condition that records of a kind meet or not.
pub struct Filter<K> {
    root: Node,
    kind: PhantomData<fn() -> K>,
}

impl<K> fmt::Debug for Filter<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Filter").field(&self.root).finish()
    }
}

#[derive(Debug)]
enum Node {
    And(Vec<Self>),
    Or(Vec<Self>),
    Not(Box<Self>),
    /// The column is there.
    There(usize),
    /// The column and one of the values stand so to each other.
    Is(usize, Op, Vec<Literal>),
    /// The same of the URL.
    OfUrl(Url, Op, Vec<Literal>),
}

/// How a column and a value stand to each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Op {
    Equal,
    Unequal,
    Below,
    AtMost,
    Above,
    AtLeast,
    Matches,
}

impl<K: RecordKind> Filter<K> {
    /// Reads a filter over the columns of a kind.
    ///
    /// # Errors
    /// Where it is not one.
    pub fn read(text: &str) -> Result<Self, FilterError> {
        Ok(Self {
            root: parse::read(text, K::NAME, K::fields())?,
            kind: PhantomData,
        })
    }

    /// Whether a record meets it.
    #[must_use]
    pub fn matches(&self, view: &K::View<'_>) -> bool {
        self.root.holds(&|column| K::value(view, column))
    }

    /// The columns that it looks at, by their places; some more than once.
    #[must_use]
    pub fn columns(&self) -> Vec<usize> {
        let mut columns = Vec::new();
        self.root.columns(&mut columns);
        columns
    }
}

/// The column that a name means, as in a filter.
///
/// # Errors
/// What is wrong with the name.
pub fn find_column<K: RecordKind>(name: &str) -> Result<usize, String> {
    parse::find(name, K::NAME, K::fields())
}

impl Node {
    fn columns(&self, out: &mut Vec<usize>) {
        match self {
            Self::And(nodes) | Self::Or(nodes) => nodes.iter().for_each(|node| node.columns(out)),
            Self::Not(node) => node.columns(out),
            Self::There(column) | Self::Is(column, ..) => out.push(*column),
            Self::OfUrl(url, ..) => out.extend(url.columns()),
        }
    }

    fn holds<'a>(&self, value: &impl Fn(usize) -> Value<'a>) -> bool {
        match self {
            Self::And(all) => all.iter().all(|one| one.holds(value)),
            Self::Or(any) => any.iter().any(|one| one.holds(value)),
            Self::Not(one) => !one.holds(value),
            Self::There(column) => value(*column) != Value::Null,
            Self::Is(column, op, literals) => match value(*column) {
                Value::Null => false,
                there => literals.iter().any(|literal| literal.stands(*op, &there)),
            },
            Self::OfUrl(url, op, literals) => url.of(*op, value).is_some_and(|there| {
                let there = Value::Text(&there);
                literals.iter().any(|literal| literal.stands(*op, &there))
            }),
        }
    }
}

#[cfg(test)]
mod tests;
