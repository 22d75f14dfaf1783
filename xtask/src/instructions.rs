//! `instructions`: how many instructions the hot paths take, against the numbers in the repository.
//!
//! Counted by callgrind, of valgrind: counts are the same in every run, where times are not. A path that takes
//! more than the tolerance beyond its number fails; `--update` writes the numbers anew, for a change that means it.

use crate::shell::{
    Options, cargo, find, grouped, output, passes, print_table, root, side_by_side, target_dir,
};
use crate::{Outcome, deps};
use anyhow::{Context as _, Result, bail};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// How far a count may be from its number: per cent.
const TOLERANCE: f64 = 2.0;

const HEADING: &str = "# Instructions of the hot paths, counted by callgrind in optimised code of ours on x86-64. `cargo xtask\n\
                       # instructions` compares, with --update it writes this file. Path, instructions, units they are for.\n";

const OPTIMISED: &str = "opt-level=3";

/// Our own code as a release has it, the same whoever builds it; libraries are those of the tests, which saves most of
/// the build. What they take of their own is in the rows, unoptimised.
const PROFILE: [&str; 6] = [
    OPTIMISED,
    "codegen-units=1",
    "debug=0",
    "debug-assertions=false",
    "incremental=false",
    "overflow-checks=false",
];

/// What one path takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Count {
    instructions: u64,
    units: u64,
}

/// `instructions [--update]`
pub(crate) fn run(args: &[String]) -> Outcome {
    let mut options = Options::new(args);
    let update = options.flag("--update");
    options.rest()?;
    if find("valgrind").is_none() {
        bail!("valgrind is not installed; scripts/setup.sh ci does that");
    }
    let mut build = cargo();
    // As one of all packages: with the libraries of the tests.
    build.args(["build", "--workspace", "--bin", "linkweir-instructions"]);
    for setting in PROFILE {
        build.args(["--config", &format!("profile.dev.{setting}")]);
    }
    // Also what the tests do not optimise.
    for package in deps::packages()? {
        let setting = format!("profile.dev.package.{package}.{OPTIMISED}");
        build.args(["--config", &setting]);
    }
    if !passes(&mut build)? {
        bail!("the paths do not build");
    }
    let program = target_dir().join("debug/linkweir-instructions");
    let names = String::from_utf8(output(Command::new(&program).arg("list"))?)?;
    let names: Vec<&str> = names.lines().collect();
    let mut counts = BTreeMap::new();
    for (name, count) in names
        .iter()
        .zip(side_by_side(&names, |name| count(&program, name)))
    {
        counts.insert(
            (*name).to_owned(),
            count.with_context(|| (*name).to_owned())?,
        );
    }
    if update {
        std::fs::write(file(), text(&counts)).context("write the numbers")?;
        println!("instructions: {} written", file().display());
        return Ok(true);
    }
    let known = parse(&std::fs::read_to_string(file()).context("read the numbers")?)?;
    Ok(compare(&known, &counts))
}

fn file() -> PathBuf {
    root().join("benches/instructions/counts.tsv")
}

/// Runs one path under callgrind.
fn count(program: &Path, name: &str) -> Result<Count> {
    let run = Command::new("valgrind")
        .args([
            "--tool=callgrind",
            "--callgrind-out-file=/dev/null",
            "--collect-atstart=no",
        ])
        .arg("--toggle-collect=linkweir_instructions::measured*")
        .arg(program)
        .arg(name)
        .stdin(Stdio::null())
        .output()
        .context("run valgrind")?;
    let said = String::from_utf8_lossy(&run.stderr);
    if !run.status.success() {
        bail!("{said}");
    }
    let collected = said
        .lines()
        .find_map(|line| line.split_once("Collected : "));
    let (_, number) = collected.context("callgrind names no count")?;
    let instructions: u64 = number.trim().parse().context("callgrind's count")?;
    if instructions == 0 {
        bail!("nothing was counted");
    }
    let units = String::from_utf8(run.stdout)?
        .trim()
        .parse()
        .context("units")?;
    Ok(Count {
        instructions,
        units,
    })
}

fn text(counts: &BTreeMap<String, Count>) -> String {
    let mut text = HEADING.to_owned();
    for (name, count) in counts {
        text.push_str(&format!(
            "{name}\t{}\t{}\n",
            count.instructions, count.units
        ));
    }
    text
}

fn parse(text: &str) -> Result<BTreeMap<String, Count>> {
    let rows = text.lines().filter(|line| !line.starts_with('#'));
    rows.map(|row| {
        let mut cells = row.split('\t');
        let mut cell = || cells.next().with_context(|| format!("`{row}`: too short"));
        let name = cell()?.to_owned();
        let instructions = cell()?.parse().with_context(|| format!("`{row}`"))?;
        let units = cell()?.parse().with_context(|| format!("`{row}`"))?;
        Ok((
            name,
            Count {
                instructions,
                units,
            },
        ))
    })
    .collect()
}

#[expect(clippy::cast_precision_loss, reason = "for people")]
fn per_cent(known: u64, now: u64) -> f64 {
    (now as f64 / known as f64 - 1.0) * 100.0
}

#[expect(clippy::cast_precision_loss, reason = "for people")]
fn compare(known: &BTreeMap<String, Count>, counts: &BTreeMap<String, Count>) -> bool {
    let mut table = vec![
        [
            "path",
            "instructions",
            "each",
            "before",
            "change",
            "verdict",
        ]
        .map(str::to_owned)
        .to_vec(),
    ];
    let mut passed = known.keys().all(|name| counts.contains_key(name));
    for (name, now) in counts {
        let change = known
            .get(name)
            .map(|before| per_cent(before.instructions, now.instructions));
        let verdict = match change {
            None => "not in the file: --update",
            Some(change) if change > TOLERANCE => "MORE",
            Some(change) if change < -TOLERANCE => "less: --update keeps it",
            Some(_) => "ok",
        };
        passed &= change.is_some_and(|change| change <= TOLERANCE);
        table.push(vec![
            name.clone(),
            grouped(now.instructions),
            format!("{:.1}", now.instructions as f64 / now.units.max(1) as f64),
            known
                .get(name)
                .map_or_else(|| "-".to_owned(), |before| grouped(before.instructions)),
            change.map_or_else(|| "-".to_owned(), |change| format!("{change:+.2} %")),
            verdict.to_owned(),
        ]);
    }
    print_table(&table);
    passed
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(instructions: u64) -> BTreeMap<String, Count> {
        BTreeMap::from([(
            "decode, packets".to_owned(),
            Count {
                instructions,
                units: 10,
            },
        )])
    }

    #[test]
    fn numbers_are_read_as_they_are_written() {
        assert_eq!(parse(&text(&counts(1000))).unwrap(), counts(1000));
        assert!(parse("decode\tx\t1\n").is_err());
    }

    #[test]
    fn more_than_the_tolerance_fails() {
        assert!(compare(&counts(1000), &counts(1019)));
        assert!(!compare(&counts(1000), &counts(1021)));
        assert!(compare(&counts(1000), &counts(500)));
        assert!(
            !compare(&BTreeMap::new(), &counts(1000)),
            "a path without a number"
        );
        assert!(
            !compare(&counts(1000), &BTreeMap::new()),
            "a number without its path"
        );
    }
}
