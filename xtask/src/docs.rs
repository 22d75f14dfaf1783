//! `docs`: the parts of the manual that a program knows better than its author.
//!
//! In the manuals a comment says where the block behind it comes from:
//! `<!-- run: COMMAND -->` is followed by a fenced block with the output of a shell command that finds the
//! program as `linkweir`, as the tests build it, and runs at the root of the checkout; `<!-- fields: http_transaction -->`
//! (or another kind, or `metrics`) by the table of the fields, `<!-- types: http_transaction -->` by that of their types in
//! every format, up to the next empty line.

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
    for name in MANUALS {
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
        MANUALS.join(", "),
        if passed { "up to date" } else { "out of date" }
    );
    Ok(passed)
}

fn write() -> Outcome {
    let linkweir = shell::built_binary()?;
    for name in MANUALS {
        let old = read(name)?;
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

/// What the file says when everything in it is made anew.
fn fresh(name: &str, old: &str, linkweir: &Path) -> Result<String> {
    renewed(old, &mut |block| made(block, linkweir)).with_context(|| name.to_owned())
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
        Block::Fields("metrics") => table(linkweir, &["metrics"]),
        Block::Fields(kind) => table(linkweir, &["schema", kind]),
        Block::Types(kind) => table(linkweir, &["schema", kind, "--format", "types"]),
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

/// The table that `linkweir schema` or `metrics` prints, without the heading above it.
fn table(linkweir: &Path, words: &[&str]) -> Result<String> {
    let printed = shell::output(Command::new(linkweir).args(words))?;
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
