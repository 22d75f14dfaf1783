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
