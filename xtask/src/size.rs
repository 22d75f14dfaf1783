//! `size`: how long files are, and that nothing is unfinished or unsafe where it must not be.

use crate::shell::root;
use crate::source::{self, Line};
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

/// The one crate with unsafe code.
const UNSAFE: &str = "edges/sys/";

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
    let lines = source::lines(&text);
    let before_tests = source::lines_before_tests(&lines);
    let length = if is_test_file(name) { 0 } else { before_tests };
    let excused = LONG.iter().any(|(file, _)| *file == name);
    if length > LIMIT && !excused {
        faults.push(format!(
            "{name}: {length} lines without tests, {LIMIT} at most"
        ));
    }
    for (index, line) in lines.iter().enumerate() {
        if let Some(fault) = fault_in(line, name) {
            faults.push(format!("{name}:{}: {fault}", index + 1));
        }
    }
    Ok(length)
}

fn fault_in(line: &Line, name: &str) -> Option<&'static str> {
    if source::has_word(&line.code, "unsafe") && !name.starts_with(UNSAFE) {
        return Some("unsafe code outside edges/sys");
    }
    if ["todo!", "unimplemented!"]
        .iter()
        .any(|macro_name| line.code.contains(macro_name))
    {
        return Some("unfinished code");
    }
    if line.code.contains("#[ignore") {
        return Some("a test that does not run");
    }
    let marked = ["TODO", "FIXME"]
        .iter()
        .any(|mark| source::has_word(&line.comment, mark));
    if marked && !names_an_issue(&line.comment) {
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

    fn fault(text: &str, name: &str) -> Option<&'static str> {
        source::lines(text)
            .iter()
            .find_map(|line| fault_in(line, name))
    }

    #[test]
    fn unfinished_and_unsafe_code_is_found() {
        assert!(fault("fn f() { unsafe { g() } }", "foundation/wire/src/lib.rs").is_some());
        assert!(fault("fn f() { unsafe { g() } }", "edges/sys/src/lib.rs").is_none());
        assert!(
            fault(
                "let x = \"unsafe\"; // unsafe",
                "foundation/wire/src/lib.rs"
            )
            .is_none()
        );
        assert!(fault("unimplemented!()", "x.rs").is_some());
        assert!(fault("#[ignore = \"slow\"]", "x.rs").is_some());
    }

    #[test]
    fn work_left_needs_an_issue() {
        assert!(fault("// TODO faster", "x.rs").is_some());
        assert!(fault("// TODO #12 faster", "x.rs").is_none());
    }

    #[test]
    fn every_excuse_has_a_reason_and_a_file() {
        for (file, reason) in LONG {
            assert!(root().join(file).is_file(), "{file}");
            assert!(!reason.is_empty(), "{file}");
        }
    }
}
