//! Exit codes and the messages that go with them.

use std::io::Write;
use std::process::ExitCode;

use linkweir_record::escape::is_unfit;

/// How a run ended (the same for all commands).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Exit {
    /// Done.
    Done = 0,
    /// Done, but data was lost: drops, truncated or corrupt input.
    DataLost = 1,
    /// The command line or the configuration is wrong.
    Usage = 2,
    /// An input or an output failed.
    Failed = 3,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit as u8)
    }
}

/// Says something on standard error; that it cannot be said is no reason to fail.
pub fn say(text: &str) {
    let mut stderr = std::io::stderr().lock();
    if writeln!(stderr, "{text}").is_err() {
        // Nobody listens.
    }
}

/// Bytes of a message at most: some quote what was read.
const LONGEST: usize = 4096;

/// A message with names from outside in it: nothing in it may act on a terminal or begin a line.
pub fn warn(text: &str) {
    say(&format!("linkweir: {}", safe(text)));
}

/// A message of several lines, such as an error with the line of the file that it is about.
pub fn warn_lines(text: &str) {
    say(&format!("linkweir: {}", safe_lines(text)));
}

/// The same as [`safe`], line by line: none but the first begins at the left, as messages do.
fn safe_lines(text: &str) -> String {
    let lines: Vec<String> = text.trim_end().lines().map(safe).collect();
    lines.join("\n  ")
}

/// A text that may be shown: controls escaped, and cut where it is too long.
pub fn safe(text: &str) -> String {
    let mut safe = String::with_capacity(text.len().min(LONGEST));
    for letter in text.chars() {
        if safe.len() >= LONGEST {
            safe.push_str("...");
            break;
        }
        if is_unfit(letter) {
            safe.extend(letter.escape_default());
        } else {
            safe.push(letter);
        }
    }
    safe
}

/// Prints what clap has to say: help and versions on standard output, errors on standard error.
pub fn usage(error: &clap::Error) -> Exit {
    let printed = error.print();
    if error.use_stderr() {
        Exit::Usage
    } else if printed.is_err() {
        Exit::Failed
    } else {
        Exit::Done
    }
}

/// A run that could not be done.
pub fn failure(error: &anyhow::Error) -> Exit {
    let mut text = String::new();
    for cause in error.chain().map(ToString::to_string) {
        // Many say themselves what caused them.
        if text.is_empty() {
            text = cause;
        } else if !text.ends_with(&cause) {
            text = format!("{text}: {cause}");
        }
    }
    match error.downcast_ref::<Wrong>() {
        Some(_) => {
            warn_lines(&text);
            Exit::Usage
        }
        None => {
            warn(&text);
            Exit::Failed
        }
    }
}

/// Marks an error as one of the command line or configuration.
#[derive(Debug)]
pub struct Wrong(pub String);

impl std::fmt::Display for Wrong {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Wrong {}

/// Whether the user wants colours on a terminal, and that has any (no-color.org).
#[must_use]
pub fn wants_colours() -> bool {
    let wants_none = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    !wants_none && std::env::var_os("TERM").is_none_or(|name| name != "dumb")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_lines_and_no_messages_of_their_own() {
        let said = safe_lines("a.toml: at line 1\n  |\n1 | \u{1b}x\nlinkweir: done\n");
        let lines = [
            "a.toml: at line 1",
            "    |",
            "  1 | \\u{1b}x",
            "  linkweir: done",
        ];
        assert_eq!(said, lines.join("\n"));
    }

    #[test]
    fn messages_are_harmless_and_short() {
        assert_eq!(safe("a\u{1b}[2J\nb\u{202e}c"), "a\\u{1b}[2J\\nb\\u{202e}c");
        let long = safe(&"x".repeat(1 << 20));
        assert_eq!(long.len(), LONGEST + 3);
        assert!(long.ends_with("x..."));
        // Escapes are longer than what they stand for, and letters than a byte.
        assert!(safe(&"\u{7f}".repeat(1 << 20)).len() < LONGEST + 16);
        assert!(safe(&"\u{1f600}".repeat(1 << 20)).len() <= LONGEST + 3);
    }
}
