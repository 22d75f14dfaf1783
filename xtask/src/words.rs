//! `words`: phrases that the glossary in CONTRIBUTING.md replaces, in what people read.

use crate::shell::{output, root};
use anyhow::Context as _;
use std::process::Command;

/// The phrase, where it is right all the same, what to write.
const WORDS: &str = "
is no | there is no, There is no, is no longer | is not a valid X, is not X
is none | there is none, There is none | invalid X, there is none
is told | | reported, detected, distinguished
are told | | reported, detected, distinguished
folder | record.folder, folder\")] | directory
dealer | | dispatcher
patience | linkweir.patience.ms | timeout
met in the middle | | midstream
looked at | | inspected, scanned, examined
left away | | omitted, suppressed
witness | | observer
";

/// Where people read: the manual, recorded help and messages, string literals of the programs.
const READ: &str = "README.md docs/*.md app/cli/tests/golden/* *.rs :!docs/decisions :!xtask :!benches \
                    :!fuzz :!app/testkit :!*/tests/*.rs :!*tests.rs";

pub(crate) fn run() -> crate::Outcome {
    let mut list = Command::new("git");
    list.current_dir(root()).args(["ls-files", "--"]);
    let listed = output(list.args(READ.split_whitespace()))?;
    let mut faults = 0;
    for name in String::from_utf8(listed).context("file names")?.lines() {
        // What is deleted and not yet committed is listed too.
        let text = std::fs::read_to_string(root().join(name)).unwrap_or_default();
        let is_code = name.ends_with(".rs");
        let lines = text.lines().zip(1..);
        for (line, number) in lines.take_while(|(line, _)| *line != "#[cfg(test)]") {
            for (phrase, instead) in faults_in(line, is_code) {
                println!("words: {name}:{number}: `{phrase}`; write: {instead}");
                faults += 1;
            }
        }
    }
    println!("words: {faults} faults");
    Ok(faults == 0)
}

/// The phrases in a line, and what to write; in code only behind its first quotation mark.
fn faults_in(line: &str, is_code: bool) -> impl Iterator<Item = (&'static str, &'static str)> {
    let is_comment = line.trim_start().starts_with("//");
    let text = match line.split_once('"') {
        Some((_, text)) if is_code && !is_comment => text,
        _ if is_code => "",
        _ => line,
    };
    WORDS.trim().lines().filter_map(move |row| {
        let (phrase, rest) = row.split_once(" | ")?;
        let (right, instead) = rest.split_once("| ")?;
        let right = right.split(',').map(str::trim);
        let text = right.fold(text.to_owned(), |text, right| text.replace(right, ""));
        let mut words = text.split(|c: char| !c.is_alphanumeric() && c != '_');
        let is_there = match phrase.split_once(' ') {
            None => words.any(|word| word.strip_suffix('s').unwrap_or(word) == phrase),
            Some(_) => format!(" {text} ").contains(&format!(" {phrase} ")),
        };
        is_there.then_some((phrase, instead))
    })
}

#[cfg(test)]
#[test]
fn phrases_are_found_where_people_read_them() {
    let has = |line, is_code| faults_in(line, is_code).count() > 0;
    assert!(has("it is no port", false) && !has("it is no port", true));
    assert!(has("f(\"it is no port\")", true) && !has("// \"folder\"", true));
    assert!(!has("there is no port", false) && !has("no_folder", false));
}
