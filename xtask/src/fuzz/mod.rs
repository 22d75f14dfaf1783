//! `fuzz-smoke`: builds the program of `fuzz/` and runs each of its targets for some seconds, as many side by
//! side as there are cores.
//!
//! On the stable toolchain, with the coverage instrumentation that libFuzzer reads and without
//! a sanitizer: the code under test has no unsafe blocks, what is looked for are panics, hangs and
//! memory without bounds. `--asan` takes nightly and its address sanitizer.

mod conversations;
mod messages;
mod seeds;

use crate::Outcome;
use crate::shell::{
    Options, cargo, grouped, output, passes, print_table, root, side_by_side, target_dir,
};
use anyhow::{Context as _, Result, bail};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// More than any target may hold at once.
const MEMORY_LIMIT_MB: u32 = 512;
/// One input may not take longer than this.
const INPUT_LIMIT_S: u32 = 10;

/// `fuzz-smoke [--seconds N] [--asan] [TARGET]...`
pub(crate) fn run(args: &[String]) -> Outcome {
    let mut options = Options::new(args);
    let seconds: u64 = options.value("--seconds")?.unwrap_or(29);
    let asan = options.flag("--asan");
    let chosen = options.rest()?;

    let program = build(asan)?;
    let mut targets = targets(&program)?;
    if let Some(unknown) = chosen.iter().find(|name| !targets.contains(name)) {
        bail!(
            "no fuzz target `{unknown}`; there are {}",
            targets.join(", ")
        );
    }
    if !chosen.is_empty() {
        targets = chosen;
    }
    let work = target_dir().join("fuzz-smoke");
    seeds::write(&work)?;

    let mut table = vec![
        ["target", "inputs", "per second", "verdict"]
            .map(str::to_owned)
            .to_vec(),
    ];
    let mut crashed = false;
    let runs = side_by_side(&targets, |target| {
        run_target(&program, target, &work, seconds)
    });
    for (target, run) in targets.iter().zip(runs) {
        let run = run?;
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

/// The names of the targets, as the program lists them.
fn targets(program: &Path) -> Result<Vec<String>> {
    let listed = output(Command::new(program).env("FUZZ_TARGET", "list"))?;
    let listed = String::from_utf8(listed).context("names of targets")?;
    Ok(listed.lines().map(str::to_owned).collect())
}

/// Builds the program and says where it is.
fn build(asan: bool) -> Result<PathBuf> {
    let mut command = cargo();
    let mut directory = target_dir();
    if asan {
        directory.push("fuzz-asan");
        let triple = host()?;
        command = Command::new("cargo");
        command
            .args(["+nightly", "build", "--package", "linkweir-fuzz"])
            // With a target given, build scripts and macros are not instrumented.
            .args(["--target", &triple, "--target-dir"])
            .arg(&directory)
            .current_dir(root())
            .env_remove("RUSTUP_TOOLCHAIN")
            .env("RUSTFLAGS", "-Zsanitizer=address");
        directory.push(triple);
    } else {
        // As one of all packages: with the libraries of the tests.
        command.args(["build", "--workspace", "--bin", "linkweir-fuzz"]);
    }
    let wrapper = root().join("fuzz/instrumented.sh");
    if !passes(command.env("RUSTC_WORKSPACE_WRAPPER", wrapper))? {
        bail!("the fuzz targets do not build");
    }
    Ok(directory.join("debug/linkweir-fuzz"))
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
        .env("FUZZ_TARGET", target)
        .arg(format!("-max_total_time={seconds}"))
        .arg(format!("-rss_limit_mb={MEMORY_LIMIT_MB}"))
        .arg(format!("-timeout={INPUT_LIMIT_S}"))
        .arg(format!("-artifact_prefix={}/", artifacts.display()))
        .args(["-print_final_stats=1", "-max_len=65536"])
        .arg(&found)
        .arg(seeds::directory(work, target))
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
