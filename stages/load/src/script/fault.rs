//! Faults of script files, with their place.

use std::fmt::Display;

use thiserror::Error;

/// What is wrong in a script file: `LINE:COLUMN: what, and what to do`.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{line}:{column}: {what}")]
pub struct ScriptError {
    /// Line, from 1 on.
    pub line: usize,
    /// Character in the line, from 1 on.
    pub column: usize,
    /// What it is, and what to do.
    pub what: String,
}

impl ScriptError {
    /// An error of the reader of TOML, in the words of TOML.
    pub(super) fn toml(text: &str, error: &toml::de::Error) -> Self {
        const WORDS: [(&str, &str); 9] = [
            ("unknown field", "unknown key"),
            ("unknown variant", "unknown value"),
            ("missing field", "missing key"),
            (
                "expected a sequence",
                "expected a list: [ ... ] or [[ ... ]]",
            ),
            ("expected a string", "expected a string in quotes"),
            ("expected a boolean", "expected true or false"),
            ("expected i64", "expected a whole number"),
            (
                "expected u32",
                "expected a whole number from 0 to 4294967295",
            ),
            ("expected f64", "expected a number"),
        ];
        let what = error.message().replace('\n', " ");
        let what = WORDS
            .iter()
            .find(|(serde, _)| what.contains(serde))
            .map(|(serde, own)| what.replacen(serde, own, 1))
            .unwrap_or(what);
        Self::at(text, error.span().unwrap_or_default().start, what)
    }

    /// A fault at a byte of a text.
    pub(super) fn at(text: &str, byte: usize, what: impl Display) -> Self {
        let before = text.get(..byte).unwrap_or(text);
        let start = before.rfind('\n').map_or(0, |end| end + 1);
        Self {
            line: before.matches('\n').count() + 1,
            column: before.get(start..).map_or(0, |part| part.chars().count()) + 1,
            what: what.to_string(),
        }
    }
}
