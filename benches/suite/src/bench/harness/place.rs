//! What a bench needs before it begins: programs, a directory in memory, the parts that are asked for; and
//! programs that it starts.

use crate::shell::{self, Options, passes, root};
use crate::{Outcome, usage};
use anyhow::{Context as _, Result, bail};
use linkweir_testkit::netns::{Running, until};
use std::io::IsTerminal as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// How long a program may take to begin.
const PATIENCE: Duration = Duration::from_secs(20);

/// Installs what benches need: a compiler for the limits, the other programs, what records traffic. What
/// cannot be installed is named, and its rows are left out.
///
/// # Errors
/// The script cannot be started.
pub(crate) fn setup() -> Result<()> {
    let mut setup = Command::new("scripts/setup.sh");
    passes(setup.arg("bench").current_dir(root())).map(drop)
}

/// Names the Debian packages of programs (program, package) that are missing, all at once.
///
/// # Errors
/// One is missing.
pub(crate) fn needs(programs: &[(&str, &str)]) -> Result<()> {
    let missing = programs
        .iter()
        .filter(|(program, _)| shell::find(program).is_none());
    let mut packages: Vec<&str> = missing.map(|(_, package)| *package).collect();
    packages.dedup();
    if !packages.is_empty() {
        bail!(
            "missing; install them with: apt-get install {}",
            packages.join(" ")
        );
    }
    Ok(())
}

/// The program to measure: `binary`, or the release build.
///
/// # Errors
/// It is not there, or does not build.
pub(crate) fn linkweir(binary: Option<&Path>) -> Result<PathBuf> {
    match binary {
        Some(binary) => binary.canonicalize().context("--binary"),
        None => shell::release_binary(),
    }
}

/// Runs a bench with an empty directory in memory, which goes with it.
///
/// # Errors
/// The directory cannot be made or removed, or the bench failed.
pub(crate) fn in_memory(purpose: &str, bench: impl FnOnce(&Path) -> Outcome) -> Outcome {
    in_directory(&shell::memory_directory(purpose), false, bench)
}

/// The same with a directory that stays, with what is in it, where it `stays`.
///
/// # Errors
/// The same.
pub(crate) fn in_directory(
    dir: &Path,
    stays: bool,
    bench: impl FnOnce(&Path) -> Outcome,
) -> Outcome {
    if !stays {
        remove(dir)?;
    }
    std::fs::create_dir_all(dir).with_context(|| format!("create {}", dir.display()))?;
    let outcome = bench(dir);
    if !stays {
        remove(dir)?;
    }
    outcome
}

/// Removes a file or a directory, where there is one.
///
/// # Errors
/// It cannot be removed.
pub(crate) fn remove(path: &Path) -> Result<()> {
    let removed = if path.is_dir() {
        std::fs::remove_dir_all(path)
    } else if path.exists() {
        std::fs::remove_file(path)
    } else {
        Ok(())
    };
    removed.with_context(|| format!("remove {}", path.display()))
}

/// Records traffic of nginx (`benches/record_http.sh`).
///
/// # Errors
/// It could not be recorded.
pub(crate) fn record(path: &Path, packets: u64, mode: &str) -> Result<()> {
    println!(
        "recording {} packets of {mode}: {}",
        shell::grouped(packets),
        path.display()
    );
    let mut script = Command::new(root().join("benches/record_http.sh"));
    if !passes(script.arg(path).arg(packets.to_string()).arg(mode))? {
        bail!("benches/record_http.sh failed");
    }
    Ok(())
}

/// Compiles a C program of `benches/limits`, or another, as fast as the compiler can make it for this
/// machine.
///
/// # Errors
/// It does not compile.
pub(crate) fn compile(source: &Path, program: &Path) -> Result<()> {
    let mut cc = Command::new("cc");
    cc.args(["-O3", "-march=native", "-w", "-o"])
        .arg(program)
        .arg(source);
    if !passes(&mut cc)? {
        bail!("cc cannot compile {}", source.display());
    }
    Ok(())
}

/// Waits until a program is ready; `said` gives what it said where it is not.
///
/// # Errors
/// It has ended, or takes longer than a program may.
pub(crate) fn ready(
    name: &str,
    mut running: Running,
    mut is_ready: impl FnMut(u32) -> bool,
    said: impl FnOnce(Running) -> String,
) -> Result<Running> {
    let id = running.id();
    let mut has_ended = false;
    let is_there = until(PATIENCE, || {
        has_ended = !matches!(running.ended(), Ok(None));
        has_ended || is_ready(id)
    });
    if has_ended || !is_there {
        bail!("{name} does not begin: {}", said(running).trim());
    }
    Ok(running)
}

/// Ends a program; what it said on standard error, which is a pipe.
pub(crate) fn said(running: Running) -> String {
    let output = running.finish();
    output.map_or_else(
        |error| error.to_string(),
        |output| String::from_utf8_lossy(&output.stderr).into_owned(),
    )
}

/// A path as an argument among others.
///
/// # Errors
/// It is not UTF-8.
pub(crate) fn text(path: &Path) -> Result<String> {
    let text = path.to_str().context("a path that is not UTF-8")?;
    Ok(text.to_owned())
}

/// Says on a terminal what runs.
pub(crate) fn progress(what: &str) {
    if std::io::stderr().is_terminal() {
        eprint!("\r{what:<60}\r");
    }
}

/// The parts of a bench that `--only` names; all of them where it names none.
#[derive(Debug, Clone, Default)]
pub(crate) struct Parts(Vec<String>);

impl Parts {
    /// Takes every `--only` off the command line; `words` are those that there are.
    ///
    /// # Errors
    /// There is no such part.
    pub(crate) fn of(options: &mut Options, words: &[&str]) -> Result<Self> {
        let mut parts = Vec::new();
        while let Some(word) = options.value::<String>("--only")? {
            if !words.contains(&word.as_str()) {
                return Err(usage(&format!(
                    "no part `{word}`; there are {}",
                    words.join(", ")
                )));
            }
            parts.push(word);
        }
        Ok(Self(parts))
    }

    /// Whether a part is asked for.
    pub(crate) fn wants(&self, word: &str) -> bool {
        self.0.is_empty() || self.0.iter().any(|part| part == word)
    }
}

/// Tests that no two parts have the same word.
#[cfg(test)]
pub(crate) fn assert_different(words: &[&str]) {
    let different: std::collections::HashSet<&&str> = words.iter().collect();
    assert_eq!(different.len(), words.len(), "{words:?}");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_named_or_all() {
        let parts = |words: &[&str]| {
            let words: Vec<String> = words.iter().map(ToString::to_string).collect();
            Parts::of(&mut Options::new(&words), &["scan", "far"])
        };
        let some = parts(&["--only", "far"]).unwrap();
        assert!(some.wants("far") && !some.wants("scan"));
        assert!(parts(&[]).unwrap().wants("scan"));
        let error = parts(&["--only", "nothing"]).unwrap_err().to_string();
        assert!(error.starts_with("no part `nothing`; there are scan, far"));
    }
}
