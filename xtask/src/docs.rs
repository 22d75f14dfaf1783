//! `docs`: the parts of the manual that a program knows better than its author.
//!
//! In the manuals a comment says where the block behind it comes from:
//! `<!-- run: COMMAND -->` is followed by a fenced block with the output of a shell command that finds the
//! program as `linkweir`, as the tests build it, and runs at the root of the checkout; `<!-- fields: http_transaction -->`
//! (or another kind, or `metrics`) by the table of the fields, `<!-- types: http_transaction -->` by that of their types in
//! every format, up to the next empty line.
//!
//! The dashboards for Grafana are printed whole.

use crate::Outcome;
use crate::shell::{self, Options, root};
use anyhow::{Context as _, Result, bail};
use std::path::Path;
use std::process::Command;

const MANUALS: [&str; 8] = [
    "docs/http.md",
    "docs/flows.md",
    "docs/gateway.md",
    "docs/load.md",
    "docs/lab.md",
    "docs/records.md",
    "docs/reports.md",
    "docs/metrics.md",
];

/// Files that the program prints as they are, and the words that it prints them by.
const PRINTED: [(&str, [&str; 4]); 4] = [
    (
        "packaging/grafana/http.json",
        ["schema", "http_transaction", "--format", "grafana"],
    ),
    (
        "packaging/grafana/flows.json",
        ["schema", "flow", "--format", "grafana"],
    ),
    (
        "packaging/grafana/gateway.json",
        ["schema", "gateway_event", "--format", "grafana"],
    ),
    (
        "packaging/grafana/load.json",
        ["schema", "load_session", "--format", "grafana"],
    ),
];

/// `docs [--check]`: writes those parts anew, or only says whether they would change.
pub(crate) fn run(args: &[String]) -> Outcome {
    let mut options = Options::new(args);
    let only_check = options.flag("--check");
    options.rest()?;
    if only_check { check() } else { write() }
}

/// The manuals say what the program does.
pub(crate) fn check() -> Outcome {
    let linkweir = shell::built_binary()?;
    let mut passed = true;
    for name in files() {
        let old = read(name)?;
        let new = fresh(name, &old, &linkweir)?;
        let changed = old.lines().zip(new.lines()).position(|(a, b)| a != b);
        let changed =
            changed.or_else(|| (old != new).then(|| old.lines().count().min(new.lines().count())));
        if let Some(at) = changed {
            passed = false;
            println!(
                "docs: {name}, line {}: `cargo xtask docs` would change it to: {}",
                at + 1,
                new.lines().nth(at).unwrap_or("(nothing)")
            );
        }
    }
    println!(
        "docs: {} {}",
        files().collect::<Vec<_>>().join(", "),
        if passed { "up to date" } else { "out of date" }
    );
    Ok(passed)
}

fn write() -> Outcome {
    let linkweir = shell::built_binary()?;
    for name in files() {
        // A printed file that is not there yet is written like one that has changed.
        let old =
            read(name).or_else(|error| words_of(name).map_or(Err(error), |_| Ok(String::new())))?;
        let new = fresh(name, &old, &linkweir)?;
        if old == new {
            println!("docs: {name} is up to date");
        } else {
            std::fs::write(root().join(name), new).with_context(|| format!("write {name}"))?;
            println!("docs: {name} written");
        }
    }
    Ok(true)
}

/// Every file with something in it that the program prints.
fn files() -> impl Iterator<Item = &'static str> {
    MANUALS.into_iter().chain(PRINTED.map(|(name, _)| name))
}

/// By what words the program prints the whole file.
fn words_of(name: &str) -> Option<&'static [&'static str; 4]> {
    let (_, words) = PRINTED.iter().find(|(printed, _)| *printed == name)?;
    Some(words)
}

/// What the file says when everything in it is made anew.
fn fresh(name: &str, old: &str, linkweir: &Path) -> Result<String> {
    match words_of(name) {
        Some(words) => Ok(String::from_utf8(shell::output(
            Command::new(linkweir).args(words),
        )?)?),
        None => renewed(old, &mut |block| made(block, linkweir)).with_context(|| name.to_owned()),
    }
}

fn read(name: &str) -> Result<String> {
    std::fs::read_to_string(root().join(name)).with_context(|| format!("read {name}"))
}

/// What a comment asks for.
#[derive(Debug, PartialEq, Eq)]
enum Block<'a> {
    Run(&'a str),
    Fields(&'a str),
    Types(&'a str),
}

impl<'a> Block<'a> {
    fn of(line: &'a str) -> Option<Self> {
        let comment = line.strip_prefix("<!-- ")?.strip_suffix(" -->")?;
        let (what, of) = comment.split_once(": ")?;
        match what {
            "run" => Some(Self::Run(of)),
            "fields" => Some(Self::Fields(of)),
            "types" => Some(Self::Types(of)),
            _ => None,
        }
    }
}

/// The text with every block made anew by `made`, whose text ends with a line feed.
fn renewed(text: &str, made: &mut dyn FnMut(&Block<'_>) -> Result<String>) -> Result<String> {
    let mut out = String::with_capacity(text.len());
    let mut lines = text.lines().enumerate();
    while let Some((at, line)) = lines.next() {
        out.push_str(line);
        out.push('\n');
        let Some(block) = Block::of(line) else {
            continue;
        };
        let fresh = made(&block).with_context(|| format!("line {}", at + 1))?;
        match block {
            Block::Run(_) => {
                let Some((_, fence)) = lines.next().filter(|(_, line)| line.starts_with("```"))
                else {
                    bail!("line {}: no fenced block behind it", at + 1);
                };
                out.push_str(fence);
                out.push('\n');
                out.push_str(&fresh);
                if !lines.by_ref().any(|(_, line)| line == "```") {
                    bail!("line {}: the block has no end", at + 1);
                }
                out.push_str("```\n");
            }
            Block::Fields(_) | Block::Types(_) => {
                out.push_str(&fresh);
                // A table ends at the first empty line.
                if lines.by_ref().any(|(_, line)| line.is_empty()) {
                    out.push('\n');
                }
            }
        }
    }
    Ok(out)
}

fn made(block: &Block<'_>, linkweir: &Path) -> Result<String> {
    match block {
        Block::Fields(kind) => table(linkweir, kind, "markdown"),
        Block::Types(kind) => table(linkweir, kind, "types"),
        Block::Run(command) => {
            let directory = linkweir
                .parent()
                .context("the directory of the binary")?
                .to_owned();
            let others = std::env::var_os("PATH").unwrap_or_default();
            let path = std::env::join_paths(
                std::iter::once(directory).chain(std::env::split_paths(&others)),
            )?;
            let output = shell::output(
                Command::new("sh")
                    .args(["-c", command])
                    .env("PATH", path)
                    .current_dir(root()),
            )?;
            Ok(String::from_utf8(output)?)
        }
    }
}

/// The table that `linkweir schema` prints, without the heading above it.
fn table(linkweir: &Path, kind: &str, format: &str) -> Result<String> {
    let printed = shell::output(Command::new(linkweir).args(["schema", kind, "--format", format]))?;
    let printed = String::from_utf8(printed)?;
    let (_, table) = printed.split_once("\n\n").context("no table")?;
    Ok(table.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn renew(text: &str) -> Result<String> {
        renewed(text, &mut |block| match block {
            Block::Run(command) => Ok(format!("output of {command}\n")),
            Block::Fields(kind) | Block::Types(kind) => Ok(format!("| {kind} |\n")),
        })
    }

    #[test]
    fn blocks_are_made_anew_and_the_rest_stays() {
        let text = "# A\n<!-- run: ls | wc -->\n```text\nold\nold\n```\nb\n\
                    <!-- fields: kind -->\n| old |\n| old |\n\nc\n<!-- a comment -->\n";
        let new = renew(text).unwrap();
        assert_eq!(
            new,
            "# A\n<!-- run: ls | wc -->\n```text\noutput of ls | wc\n```\nb\n\
             <!-- fields: kind -->\n| kind |\n\nc\n<!-- a comment -->\n"
        );
        assert_eq!(renew(&new).unwrap(), new);
    }

    #[test]
    fn a_block_that_is_none_is_an_error() {
        assert!(renew("<!-- run: ls -->\ntext\n").is_err());
        assert!(renew("<!-- run: ls -->\n```\ntext\n").is_err());
    }
}
