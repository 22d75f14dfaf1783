//! `size`: how long files are, and that no work is left without an issue and no test without being run.
//!
//! What lints see is theirs: `unsafe_code`, `todo` and `unimplemented` are denied for the workspace.

use crate::shell::root;
use crate::{Outcome, shell};
use anyhow::{Context as _, Result};
use std::path::Path;
use std::process::Command;

/// Lines without tests from which a file is worth a question.
const QUESTION: usize = 400;
/// Lines without tests above which it fails.
const LIMIT: usize = 600;

/// Files that may be longer, and why.
const LONG: &[(&str, &str)] = &[];

/// Checks every Rust file of the checkout.
pub(crate) fn run() -> Outcome {
    let listed = shell::output(Command::new("git").current_dir(root()).args([
        "ls-files",
        "--cached",
        "--others",
        "--exclude-standard",
        "*.rs",
    ]))?;
    let listed = String::from_utf8(listed).context("names of files")?;
    let mut faults = Vec::new();
    let mut total = 0;
    let mut files = 0;
    for name in listed.lines() {
        let path = root().join(name);
        // Listed and deleted is possible in a checkout that is being worked on.
        if !path.is_file() {
            continue;
        }
        let length = check(name, &path, &mut faults)?;
        files += 1;
        total += length;
        if length > QUESTION && length <= LIMIT {
            println!("size: {name}: {length} lines; could it be two files?");
        }
    }
    for fault in &faults {
        println!("size: {fault}");
    }
    println!(
        "size: {files} files, {total} lines without tests, {} faults",
        faults.len()
    );
    Ok(faults.is_empty())
}

fn is_test_file(name: &str) -> bool {
    name.contains("/tests/") || name.ends_with("/tests.rs") || name.contains("/benches/")
}

fn check(name: &str, path: &Path, faults: &mut Vec<String>) -> Result<usize> {
    let text = std::fs::read_to_string(path).with_context(|| format!("read {name}"))?;
    let length = if is_test_file(name) {
        0
    } else {
        lines_before_tests(&text)
    };
    let excused = LONG.iter().any(|(file, _)| *file == name);
    if length > LIMIT && !excused {
        faults.push(format!(
            "{name}: {length} lines without tests, {LIMIT} at most"
        ));
    }
    for (index, line) in text.lines().enumerate() {
        if let Some(fault) = fault_in(line) {
            faults.push(format!("{name}:{}: {fault}", index + 1));
        }
    }
    Ok(length)
}

/// How many lines stand before the tests at the end of a file, or before its first part that is only
/// compiled for tests.
fn lines_before_tests(text: &str) -> usize {
    text.lines()
        .take_while(|line| line.trim_start() != "#[cfg(test)]")
        .count()
}

fn fault_in(line: &str) -> Option<&'static str> {
    if line.trim_start().starts_with("#[ignore") {
        return Some("a test that does not run");
    }
    let (_, comment) = line.split_once("//")?;
    let is_letter = |c: char| c.is_alphanumeric() || c == '_';
    let is_marked = comment
        .split(|c| !is_letter(c))
        .any(|word| matches!(word, "TODO" | "FIXME"));
    if is_marked && !names_an_issue(comment) {
        return Some("work left without an issue (write `#12`)");
    }
    None
}

fn names_an_issue(comment: &str) -> bool {
    comment
        .split('#')
        .skip(1)
        .any(|part| part.starts_with(|c: char| c.is_ascii_digit()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_left_needs_an_issue() {
        let fault = |comment: &str| fault_in(&["f(); /", "/ ", comment].concat());
        assert!(fault("TODO faster").is_some());
        assert!(fault("TODO #12 faster").is_none());
        assert!(fault("TODOS").is_none());
        assert!(fault_in("    #[ignore = \"slow\"]").is_some());
        assert!(fault_in("let unfinished = \"TODO\";").is_none());
    }

    #[test]
    fn tests_at_the_end_are_not_counted() {
        assert_eq!(
            lines_before_tests("fn f() {}\n\n#[cfg(test)]\nmod tests {\n}\n"),
            2
        );
        assert_eq!(lines_before_tests("fn f() {}\n"), 1);
    }

    #[test]
    fn every_excuse_has_a_reason_and_a_file() {
        for (file, reason) in LONG {
            assert!(root().join(file).is_file(), "{file}");
            assert!(!reason.is_empty(), "{file}");
        }
    }
}
