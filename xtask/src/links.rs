//! `links`: what documents link to or name is there: files of the checkout, and headings in them.

use crate::Outcome;
use crate::shell::{output, root};
use anyhow::{Context as _, Result};
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Checks every Markdown file that git knows.
pub(crate) fn run() -> Outcome {
    let listed = output(
        Command::new("git")
            .current_dir(root())
            .args(["ls-files", "*.md"]),
    )?;
    let listed = String::from_utf8(listed).context("names of files")?;
    let mut texts = HashMap::new();
    for name in listed.lines() {
        let path = root().join(name);
        if path.is_file() {
            let text = std::fs::read_to_string(&path).with_context(|| format!("read {name}"))?;
            texts.insert(PathBuf::from(name), text);
        }
    }
    let (mut links, mut broken) = (0, Vec::new());
    for (from, text) in &texts {
        for (line, target) in targets(text) {
            links += 1;
            if let Some(why) = fault(from, &target, &texts)? {
                broken.push(format!("{}, line {line}: {target}: {why}", from.display()));
            }
        }
    }
    broken.sort();
    for one in &broken {
        println!("links: {one}");
    }
    println!(
        "links: {} documents, {links} links, {} broken",
        texts.len(),
        broken.len()
    );
    Ok(broken.is_empty())
}

/// Directories of the checkout: `app/x.rs` in backticks is a file of it, and has to be there.
const DIRECTORIES: [&str; 10] = [
    "app",
    "benches",
    "contrib",
    "docs",
    "edges",
    "foundation",
    "fuzz",
    "scripts",
    "stages",
    "xtask",
];

/// A file that a text names in backticks, as a target from the root of the checkout.
fn named(word: &str) -> Option<String> {
    let (directory, rest) = word.split_once('/')?;
    let is_path = |c: char| c.is_ascii_alphanumeric() || "/._-".contains(c);
    let is_file =
        DIRECTORIES.contains(&directory) && rest.contains('.') && rest.chars().all(is_path);
    is_file.then(|| format!("/{word}"))
}

/// The targets of the links of a text and the files it names, with their lines, less what is elsewhere.
fn targets(text: &str) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    let mut is_code = false;
    for (line, number) in text.lines().zip(1..) {
        if line.trim_start().starts_with("```") {
            is_code = !is_code;
        }
        if is_code {
            continue;
        }
        let quoted = line.split('`').skip(1).step_by(2).filter_map(named);
        found.extend(quoted.map(|target| (number, target)));
        // `](` does not occur in a word in backticks here, so the parts between backticks may stay.
        for part in line.split("](").skip(1) {
            let target = part.split([')', ' ']).next().unwrap_or("");
            if !target.contains("://") && !target.starts_with("mailto:") {
                found.push((number, target.to_owned()));
            }
        }
    }
    found
}

/// Why a link leads nowhere, if it does.
fn fault(from: &Path, target: &str, texts: &HashMap<PathBuf, String>) -> Result<Option<String>> {
    let (file, heading) = target.split_once('#').unwrap_or((target, ""));
    let to = if file.is_empty() {
        from.to_path_buf()
    } else if let Some(file) = file.strip_prefix('/') {
        PathBuf::from(file)
    } else {
        normal(&from.parent().unwrap_or_else(|| Path::new("")).join(file))
    };
    if !root().join(&to).exists() {
        return Ok(Some("is not there".to_owned()));
    }
    if heading.is_empty() {
        return Ok(None);
    }
    let Some(text) = texts.get(&to) else {
        return Ok(Some("a heading in what is no document".to_owned()));
    };
    Ok((!anchors(text).iter().any(|anchor| anchor == heading))
        .then(|| format!("{} has no such heading", to.display())))
}

/// A path without `..`.
fn normal(path: &Path) -> PathBuf {
    let mut parts = PathBuf::new();
    for part in path.components() {
        match part {
            std::path::Component::ParentDir => {
                parts.pop();
            }
            std::path::Component::CurDir => {}
            other => parts.push(other),
        }
    }
    parts
}

/// The names that the headings of a text have as targets: as code hosts make them.
fn anchors(text: &str) -> Vec<String> {
    let headings = text.lines().filter(|line| line.starts_with('#'));
    headings
        .map(|line| {
            let title = line.trim_start_matches('#').trim().to_lowercase();
            let kept = title
                .chars()
                .filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
            kept.map(|c| if c == ' ' { '-' } else { c }).collect()
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_are_found_and_code_is_not() {
        let text = "[a](b.md#c) and [d](https://e.test) [f](g)\n```\n[h](i)\n```\n";
        assert_eq!(
            targets(text),
            [(1, "b.md#c".to_owned()), (1, "g".to_owned())]
        );
    }

    #[test]
    fn files_in_backticks_are_found() {
        let text = "`app/a.rs`, `x::y` in `stages/http/src/b.rs`, `app/*.rs`, `docs` and app/c.rs";
        let files = ["/app/a.rs", "/stages/http/src/b.rs"].map(|file| (1, file.to_owned()));
        assert_eq!(targets(text), files);
    }

    #[test]
    fn headings_are_targets() {
        assert_eq!(
            anchors("# A b\ntext\n## `x` and y: z-1\n"),
            ["a-b", "x-and-y-z-1"]
        );
    }

    #[test]
    fn a_link_that_leads_nowhere_is_a_fault() {
        let texts = HashMap::from([(PathBuf::from("README.md"), "# Two commands\n".to_owned())]);
        let of = |target: &str| fault(Path::new("README.md"), target, &texts).unwrap();
        assert_eq!(of("#two-commands"), None);
        assert_eq!(of("Makefile"), None);
        assert_eq!(of("/xtask/Cargo.toml"), None);
        assert!(
            of("#three").is_some() && of("docs/none.md").is_some() && of("/app/a.rs").is_some()
        );
    }

    #[test]
    fn paths_are_made_plain() {
        assert_eq!(normal(Path::new("docs/../a/./b")), Path::new("a/b"));
    }
}
