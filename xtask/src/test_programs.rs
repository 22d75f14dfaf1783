//! `test`: every test of the workspace; programs run side by side where they may.
//!
//! cargo builds the programs and says where they are; here they are given to lanes. A lane runs its programs one
//! after another. What computes has the cores to itself but for what mostly waits, for a kernel, a broker or a
//! clock; what measures times of the machine runs alone, at the end.

use crate::Outcome;
use crate::shell::{Options, cargo, print_table, target_dir};
use anyhow::{Context as _, Result, bail};
use serde_json::Value;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::time::{Duration, Instant};

/// The seed of the property tests where none is given: every run tries the same cases.
const SEED: u64 = 17;
/// A program that takes longer hangs.
const LIMIT: Duration = Duration::from_secs(900);
/// The title of the examples in the documentation, which are no program of their own.
const DOCUMENTATION: &str = "documentation";
/// So many tests of a program that waits for a kernel, a broker or a clock may need a second run: a machine that
/// stood still for a moment, as virtual ones do, fails one; a fault of ours fails both times, or more of them.
const SECOND_RUNS: usize = 2;
/// How many of the slowest programs are shown.
const SLOWEST: usize = 8;

/// Beside what a program may run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Lane {
    /// It computes.
    Computing,
    /// It waits more than it computes.
    Waiting,
    /// It needs the machine for itself, and runs so many of its tests at once.
    Alone(u8),
}

/// Programs that do not compute: package, name of the program, how they run.
const LANES: &[(&str, &str, Lane)] = &[
    ("linkweir", "services", Lane::Waiting),
    ("linkweir-netfilter", "all", Lane::Waiting),
    ("linkweir-scan", "all", Lane::Waiting),
    ("linkweir-testkit", "lib", Lane::Waiting),
    ("linkweir", "live", Lane::Alone(2)),
    ("linkweir", "network", Lane::Alone(5)),
    ("linkweir-lab", "lab", Lane::Alone(2)),
];

/// A test program.
#[derive(Debug, Clone)]
struct Program {
    package: String,
    /// `lib`, the name of a binary, or that of a directory in `tests/`.
    name: String,
    path: PathBuf,
    /// Where cargo would run it: at its package.
    directory: PathBuf,
}

impl Program {
    fn lane(&self) -> Lane {
        LANES
            .iter()
            .find(|(package, name, _)| *package == self.package && *name == self.name)
            .map_or(Lane::Computing, |(_, _, lane)| *lane)
    }

    /// Whether its package has property tests.
    fn has_properties(&self) -> bool {
        let manifest = std::fs::read_to_string(self.directory.join("Cargo.toml"));
        manifest.is_ok_and(|text| text.lines().any(|line| line.starts_with("proptest")))
    }

    fn title(&self) -> String {
        format!("{} {}", self.package, self.name)
    }
}

/// How a program ended.
#[derive(Debug)]
struct Ended {
    title: String,
    passed: u64,
    failed: u64,
    took: Duration,
    is_good: bool,
    /// Tests that passed only when they were run again, with nothing beside them.
    again: Vec<String>,
    /// What tests said of themselves that they did not do.
    skips: Vec<String>,
}

/// `test [--seed N|today] [--properties] [--only PART]... [FILTER]...`
pub(crate) fn run(args: &[String]) -> Outcome {
    let mut options = Options::new(args);
    let seed = match options.value::<String>("--seed")?.as_deref() {
        None => SEED,
        Some("today") => today()?,
        Some(given) => given.parse().context("--seed takes a number or `today`")?,
    };
    let mut parts = Vec::new();
    while let Some(part) = options.value::<String>("--only")? {
        parts.push(part);
    }
    let only_properties = options.flag("--properties");
    let filters = options.rest()?;

    let begin = Instant::now();
    let mut programs = build()?;
    if only_properties {
        programs.retain(|program| program.lane() == Lane::Computing && program.has_properties());
    }
    if !parts.is_empty() {
        programs.retain(|program| parts.iter().any(|part| program.title().contains(part)));
        if programs.is_empty() {
            bail!("no test program has {} in its name", parts.join(" or "));
        }
    }
    println!(
        "{} test programs, built in {} s; property tests: seed {seed} (again, or with another: cargo xtask test --seed N)",
        programs.len(),
        begin.elapsed().as_secs()
    );
    let logs = target_dir().join("test-logs");
    std::fs::create_dir_all(&logs).with_context(|| format!("make {}", logs.display()))?;
    let how = How {
        seed,
        filters,
        logs,
    };
    let ended = Mutex::new(Vec::new());
    let take = |title: String, one: Result<Ended>| {
        let one = one.unwrap_or_else(|error| {
            println!("{title}: {error:#}");
            Ended::broken(title)
        });
        if let Ok(mut ended) = ended.lock() {
            ended.push(one);
        }
    };
    let queue = |is_of: fn(Lane) -> bool| {
        let queued: Vec<&Program> = programs.iter().filter(|one| is_of(one.lane())).collect();
        Mutex::new(queued.into_iter())
    };
    let run = |queue: &Queue<'_>| {
        while let Some(program) = next(queue) {
            take(program.title(), how.run(program));
        }
    };
    let computing = queue(|lane| lane == Lane::Computing);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            run(&queue(|lane| lane == Lane::Waiting));
            if parts.is_empty() && !only_properties {
                take(DOCUMENTATION.to_owned(), how.examples_of_documents());
            }
            run(&computing);
        });
        run(&computing);
    });
    run(&queue(|lane| matches!(lane, Lane::Alone(_))));
    let mut ended = ended.into_inner().unwrap_or_default();
    Ok(conclude(&mut ended, begin.elapsed()))
}

/// Programs that lanes share.
type Queue<'a> = Mutex<std::vec::IntoIter<&'a Program>>;

fn next<'a>(queue: &Queue<'a>) -> Option<&'a Program> {
    queue.lock().ok()?.next()
}

/// The day, as a number: 20261123.
fn today() -> Result<u64> {
    let day = crate::shell::output(Command::new("date").args(["-u", "+%Y%m%d"]))?;
    String::from_utf8(day)?.trim().parse().context("date")
}

/// Builds all test programs.
fn build() -> Result<Vec<Program>> {
    let mut command = cargo();
    command.args([
        "test",
        "--workspace",
        "--lib",
        "--bins",
        "--tests",
        "--no-run",
        "--locked",
    ]);
    command.arg("--message-format=json-render-diagnostics");
    let output = command
        .stderr(Stdio::inherit())
        .output()
        .context("run cargo test --no-run")?;
    if !output.status.success() {
        bail!("the tests do not build");
    }
    let mut programs = Vec::new();
    for line in String::from_utf8(output.stdout)?.lines() {
        programs.extend(program(&serde_json::from_str(line)?));
    }
    Ok(programs)
}

/// The test program that a message of cargo is about, if it is about one.
fn program(message: &Value) -> Option<Program> {
    let path = message.get("executable")?.as_str()?;
    if !message.get("profile")?.get("test")?.as_bool()? {
        return None;
    }
    let directory = Path::new(message.get("manifest_path")?.as_str()?).parent()?;
    let id = message.get("package_id")?.as_str()?;
    let target = message.get("target")?;
    // `--bins` takes those too that say they have no tests.
    if !target.get("test")?.as_bool()? {
        return None;
    }
    let is_library = target
        .get("kind")?
        .as_array()?
        .iter()
        .any(|kind| kind == "lib");
    let name = if is_library {
        "lib"
    } else {
        target.get("name")?.as_str()?
    };
    Some(Program {
        package: package(id)?,
        name: name.to_owned(),
        path: path.into(),
        directory: directory.to_path_buf(),
    })
}

/// The name in a package id: `path+file:///x/app/lab#linkweir-lab@0.1.0`, or `...x/xtask#0.1.0`.
fn package(id: &str) -> Option<String> {
    let (path, name) = id.rsplit_once('#')?;
    let name = match name.split_once('@') {
        Some((name, _)) => name,
        None => path.rsplit('/').next()?,
    };
    Some(name.to_owned())
}

/// What all programs are given.
struct How {
    seed: u64,
    filters: Vec<String>,
    logs: PathBuf,
}

impl How {
    fn run(&self, program: &Program) -> Result<Ended> {
        let threads = match program.lane() {
            Lane::Waiting => Some(4),
            Lane::Alone(threads) => Some(threads),
            Lane::Computing => None,
        };
        let (mut ended, log) = self.once(program, "", threads, &self.filters)?;
        let names = failures(&log);
        if program.lane() == Lane::Computing || !(1..=SECOND_RUNS).contains(&names.len()) {
            return Ok(ended);
        }
        println!("again, alone: {}", names.join(" "));
        let mut words = vec!["--exact".to_owned()];
        words.extend(names.iter().cloned());
        let (second, _) = self.once(program, ".again", Some(1), &words)?;
        ended.took += second.took;
        if second.is_good && second.passed == names.len() as u64 {
            ended.passed += second.passed;
            ended.failed = 0;
            ended.is_good = true;
            ended.again = names;
        }
        Ok(ended)
    }

    /// Runs what `words` select of a program; gives what it printed too.
    fn once(
        &self,
        program: &Program,
        suffix: &str,
        threads: Option<u8>,
        words: &[String],
    ) -> Result<(Ended, String)> {
        let log = format!("{}.{}{suffix}.log", program.package, program.name);
        let log = self.logs.join(log);
        let file = File::create(&log).with_context(|| format!("write {}", log.display()))?;
        let mut command = Command::new(&program.path);
        command
            .arg("--show-output")
            .args(threads.map(|number| format!("--test-threads={number}")))
            .args(words)
            .current_dir(&program.directory)
            .env("CARGO_MANIFEST_DIR", &program.directory);
        self.finish(program.title(), &mut command, file, &log)
    }

    /// The examples in the documentation.
    fn examples_of_documents(&self) -> Result<Ended> {
        let log = self.logs.join("doc.log");
        let file = File::create(&log).with_context(|| format!("write {}", log.display()))?;
        let mut command = cargo();
        command
            .args(["test", "--workspace", "--doc", "--locked", "--quiet", "--"])
            .args(&self.filters);
        let ended = self.finish(DOCUMENTATION.to_owned(), &mut command, file, &log);
        Ok(ended?.0)
    }

    fn finish(
        &self,
        title: String,
        command: &mut Command,
        file: File,
        log: &Path,
    ) -> Result<(Ended, String)> {
        let begin = Instant::now();
        let mut child = command
            .env("PROPTEST_RNG_SEED", self.seed.to_string())
            .stdin(Stdio::null())
            .stderr(file.try_clone()?)
            .stdout(file)
            .spawn()
            .with_context(|| format!("start {title}"))?;
        let status = loop {
            if let Some(status) = child.try_wait()? {
                break Some(status);
            }
            if begin.elapsed() > LIMIT {
                // What it has started ends with it (`testkit::netns::Running`).
                child.kill()?;
                child.wait()?;
                break None;
            }
            std::thread::sleep(Duration::from_millis(20));
        };
        let took = begin.elapsed();
        let text = String::from_utf8_lossy(&std::fs::read(log)?).into_owned();
        let (passed, failed) = counts(&text);
        let is_good = status.is_some_and(|status| status.success());
        let verdict = match status {
            Some(_) if is_good => "ok",
            Some(_) => "FAIL",
            None => "HUNG",
        };
        if !is_good {
            println!("{text}");
        }
        println!(
            "{verdict:<4} {:6.1} s {passed:>5} passed  {title}",
            took.as_secs_f64()
        );
        let ended = Ended {
            title,
            passed,
            failed,
            took,
            is_good,
            again: Vec::new(),
            skips: skips(&text),
        };
        Ok((ended, text))
    }
}

impl Ended {
    fn broken(title: String) -> Self {
        Self {
            title,
            passed: 0,
            failed: 1,
            took: Duration::ZERO,
            is_good: false,
            again: Vec::new(),
            skips: Vec::new(),
        }
    }
}

/// Tests that passed and failed, of all lines `test result:`.
fn counts(log: &str) -> (u64, u64) {
    let mut sums = (0, 0);
    for line in log
        .lines()
        .filter_map(|line| line.strip_prefix("test result: "))
    {
        let number = |word: &str| -> u64 {
            let part = line.split([';', '.']).find(|part| part.ends_with(word));
            let first = part.and_then(|part| part.split_whitespace().next());
            first.and_then(|number| number.parse().ok()).unwrap_or(0)
        };
        sums.0 += number(" passed");
        sums.1 += number(" failed");
    }
    sums
}

/// Tests that failed, as the list at the end of a log has them; none where it was cut off.
fn failures(log: &str) -> Vec<String> {
    let list = log
        .rsplit_once("\nfailures:\n")
        .map_or("", |(_, list)| list);
    let names = list.lines().map_while(|line| line.strip_prefix("    "));
    names.map(str::to_owned).collect()
}

/// The lines in which a test says what it left out.
fn skips(log: &str) -> Vec<String> {
    let mut lines: Vec<String> = log
        .lines()
        .map(|line| line.trim_start_matches(['*', ' ']))
        .filter(|line| line.starts_with("SKIPPED") || line.starts_with("skipped: "))
        .map(str::to_owned)
        .collect();
    lines.sort();
    lines.dedup();
    lines
}

fn conclude(ended: &mut [Ended], took: Duration) -> bool {
    ended.sort_by_key(|one| std::cmp::Reverse(one.took));
    let mut table = vec![
        ["slowest programs", "tests", "s"]
            .map(str::to_owned)
            .to_vec(),
    ];
    for one in ended.iter().take(SLOWEST) {
        table.push(vec![
            one.title.clone(),
            (one.passed + one.failed).to_string(),
            format!("{:.1}", one.took.as_secs_f64()),
        ]);
    }
    println!();
    print_table(&table);
    for one in ended.iter().filter(|one| !one.skips.is_empty()) {
        println!("\n{}:", one.title);
        for line in &one.skips {
            println!("  {line}");
        }
    }
    println!();
    for one in ended.iter().filter(|one| !one.again.is_empty()) {
        println!(
            "UNSTEADY  {}: passed only when run again: {}",
            one.title,
            one.again.join(" ")
        );
    }
    for one in ended.iter().filter(|one| !one.is_good) {
        println!("FAIL  {}", one.title);
    }
    let sum = |of: fn(&Ended) -> u64| ended.iter().map(of).sum::<u64>();
    println!("{} programs, {} s", ended.len(), took.as_secs());
    println!(
        "{} passed, {} failed",
        sum(|one| one.passed),
        sum(|one| one.failed)
    );
    ended.iter().all(|one| one.is_good)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_are_added_up() {
        let log = "test result: ok. 7 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 4.45s\n\
                   x\ntest result: FAILED. 1 passed; 2 failed; 0 ignored\n";
        assert_eq!(counts(log), (8, 2));
        assert_eq!(counts(""), (0, 0));
    }

    #[test]
    fn tests_that_failed_are_found() {
        let log = "failures:\n\n---- a::b stdout ----\n    x\n\nfailures:\n    a::b\n    c\n\ntest result: FAILED.\n";
        assert_eq!(failures(log), ["a::b", "c"]);
        assert!(failures("failures:\n\n---- a::b stdout ----\n").is_empty());
    }

    #[test]
    fn what_was_left_out_is_found() {
        let log = "SKIPPED: b\n** SKIPPED: a\n** Nothing\nSKIPPED: b\nskipped: c\n";
        assert_eq!(skips(log), ["SKIPPED: a", "SKIPPED: b", "skipped: c"]);
    }

    #[test]
    fn packages_are_read_from_their_ids() {
        assert_eq!(
            package("path+file:///x/app/lab#linkweir-lab@0.1.0").as_deref(),
            Some("linkweir-lab")
        );
        assert_eq!(
            package("path+file:///x/xtask#0.1.0").as_deref(),
            Some("xtask")
        );
        assert_eq!(package("xtask"), None);
    }

    #[test]
    fn cargo_names_programs() {
        let message = serde_json::json!({
            "package_id": "path+file:///x/app/lab#linkweir-lab@0.1.0", "manifest_path": "/x/app/lab/Cargo.toml",
            "target": { "kind": ["test"], "name": "lab", "test": true }, "profile": { "test": true }, "executable": "/x/t/lab-1",
        });
        let lab = program(&message).unwrap();
        assert_eq!(
            (lab.title().as_str(), lab.lane()),
            ("linkweir-lab lab", Lane::Alone(2))
        );
        assert_eq!(lab.directory, Path::new("/x/app/lab"));
        assert!(program(&serde_json::json!({ "reason": "build-finished" })).is_none());
    }
}
