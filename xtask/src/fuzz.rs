//! `fuzz-smoke`: builds every target of `fuzz/` and runs each for some seconds.
//!
//! On the stable toolchain, with the coverage instrumentation that libFuzzer reads and without
//! a sanitizer: the code under test has no unsafe blocks, what is looked for are panics, hangs and
//! memory without bounds. `--asan` takes nightly and its address sanitizer.

mod conversations;
mod seeds;

use crate::Outcome;
use crate::shell::{Options, cargo, grouped, output, passes, print_table, root, target_dir};
use anyhow::{Context as _, Result, bail};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// More than any target may hold at once.
const MEMORY_LIMIT_MB: u32 = 512;
/// One input may not take longer than this.
const INPUT_LIMIT_S: u32 = 10;

/// Coverage as libFuzzer wants it; what cargo-fuzz passes, less the sanitizer.
const COVERAGE: &str = "-Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 \
    -Cllvm-args=-sanitizer-coverage-inline-8bit-counters -Cllvm-args=-sanitizer-coverage-pc-table \
    -Cllvm-args=-sanitizer-coverage-trace-compares -Ccodegen-units=1 -Cdebug-assertions \
    -Coverflow-checks --cfg fuzzing";

/// `fuzz-smoke [--seconds N] [--asan] [TARGET]...`
pub(crate) fn run(args: &[String]) -> Outcome {
    let mut options = Options::new(args);
    let seconds: u64 = options.value("--seconds")?.unwrap_or(30);
    let asan = options.flag("--asan");
    let chosen = options.rest()?;

    let mut targets = targets()?;
    if let Some(unknown) = chosen.iter().find(|name| !targets.contains(name)) {
        bail!(
            "no fuzz target `{unknown}`; there are {}",
            targets.join(", ")
        );
    }
    if !chosen.is_empty() {
        targets = chosen;
    }
    let folder = build(asan)?;
    let work = target_dir().join("fuzz-smoke");
    seeds::write(&work)?;

    let mut table = vec![
        ["target", "inputs", "per second", "verdict"]
            .map(str::to_owned)
            .to_vec(),
    ];
    let mut crashed = false;
    for target in &targets {
        let run = run_target(&folder.join(target), target, &work, seconds)?;
        crashed |= !run.passed;
        let verdict = if run.passed { "ok" } else { "CRASH" };
        table.push(vec![
            target.clone(),
            grouped(run.inputs),
            grouped(run.per_second),
            verdict.to_owned(),
        ]);
    }
    print_table(&table);
    Ok(!crashed)
}

fn manifest() -> PathBuf {
    root().join("fuzz/Cargo.toml")
}

/// The names of the binaries of `fuzz/`.
fn targets() -> Result<Vec<String>> {
    let mut command = cargo();
    command.args([
        "metadata",
        "--format-version",
        "1",
        "--no-deps",
        "--manifest-path",
    ]);
    let metadata: Value = serde_json::from_slice(&output(command.arg(manifest()))?)?;
    let packages = metadata
        .get("packages")
        .and_then(Value::as_array)
        .context("packages")?;
    let mut names = Vec::new();
    for target in packages
        .iter()
        .filter_map(|package| package.get("targets")?.as_array())
        .flatten()
    {
        let kinds = target.get("kind").and_then(Value::as_array);
        let is_binary = kinds.into_iter().flatten().any(|kind| kind == "bin");
        if let Some(name) = target
            .get("name")
            .and_then(Value::as_str)
            .filter(|_| is_binary)
        {
            names.push(name.to_owned());
        }
    }
    if names.is_empty() {
        bail!("{} has no targets", manifest().display());
    }
    Ok(names)
}

/// Builds all targets and says in which folder they are.
fn build(asan: bool) -> Result<PathBuf> {
    let triple = host()?;
    let folder = target_dir().join(if asan { "fuzz-asan" } else { "fuzz" });
    let mut command = if asan {
        let mut command = Command::new("cargo");
        command
            .arg("+nightly")
            .current_dir(root())
            .env_remove("RUSTUP_TOOLCHAIN");
        command
    } else {
        cargo()
    };
    let sanitizer = if asan { " -Zsanitizer=address" } else { "" };
    command
        // With a target given, build scripts and macros are not instrumented.
        .args([
            "build",
            "--release",
            "--bins",
            "--target",
            &triple,
            "--manifest-path",
        ])
        .arg(manifest())
        .arg("--target-dir")
        .arg(&folder)
        .env("RUSTFLAGS", format!("{COVERAGE}{sanitizer}"));
    if !passes(&mut command)? {
        bail!("the fuzz targets do not build");
    }
    Ok(folder.join(triple).join("release"))
}

/// The host's target triple.
fn host() -> Result<String> {
    let version = output(Command::new("rustc").arg("-vV").current_dir(root()))?;
    let version = String::from_utf8(version)?;
    let host = version.lines().find_map(|line| line.strip_prefix("host: "));
    Ok(host.context("rustc -vV names no host")?.to_owned())
}

#[derive(Debug)]
struct Run {
    passed: bool,
    inputs: u64,
    per_second: u64,
}

fn run_target(program: &Path, target: &str, work: &Path, seconds: u64) -> Result<Run> {
    // What libFuzzer finds goes to a scratch corpus; the seeds stay as they are.
    let found = work.join("found").join(target);
    let artifacts = work.join("artifacts").join(target);
    std::fs::create_dir_all(&found)?;
    std::fs::create_dir_all(&artifacts)?;
    let output = Command::new(program)
        .arg(format!("-max_total_time={seconds}"))
        .arg(format!("-rss_limit_mb={MEMORY_LIMIT_MB}"))
        .arg(format!("-timeout={INPUT_LIMIT_S}"))
        .arg(format!("-artifact_prefix={}/", artifacts.display()))
        .args(["-print_final_stats=1", "-max_len=65536"])
        .arg(&found)
        .arg(seeds::folder(work, target))
        .stdin(Stdio::null())
        .output()
        .with_context(|| format!("run {}", program.display()))?;
    let log = String::from_utf8_lossy(&output.stderr);
    let stat = |name: &str| -> u64 {
        let line = log
            .lines()
            .find_map(|line| line.strip_prefix("stat::")?.strip_prefix(name));
        line.and_then(|rest| rest.trim_start_matches(':').trim().parse().ok())
            .unwrap_or(0)
    };
    let passed = output.status.success();
    if !passed {
        let tail: Vec<&str> = log.lines().rev().take(40).collect();
        for line in tail.iter().rev() {
            println!("{target}: {line}");
        }
    }
    Ok(Run {
        passed,
        inputs: stat("number_of_executed_units"),
        per_second: stat("average_exec_per_sec"),
    })
}
