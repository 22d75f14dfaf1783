//! `linkweir lab`.

pub(crate) mod args;

use std::io::Write as _;
use std::path::Path;

use anyhow::{Context, anyhow};
use linkweir_lab::{Findings, LabError, Order, Scenario};
use linkweir_sink::summary::write_summary_file;

use self::args::LabArgs;
use crate::exit::{Exit, Wrong, say, warn};
use crate::signals::Signals;

/// Runs the command.
pub(crate) fn run(args: &LabArgs) -> anyhow::Result<Exit> {
    if args.list {
        return list();
    }
    if args.print {
        return print(&args.scenario);
    }
    let mut scenario = Scenario::find(&args.scenario).map_err(refused)?;
    if let Some(duration) = args.duration {
        scenario.set_duration(duration);
    }
    if let Some(rate) = args.rate {
        scenario.set_rate(rate);
    }
    let signals = Signals::install()?;
    let order = Order {
        binary: std::env::current_exe().context("the path of this program")?,
        scenario,
        seed: args.seed,
        has_consoles: !args.no_console,
        keep: args.keep.clone(),
        stop: signals.stop_flag(),
    };
    let quiet = args.quiet;
    let findings = linkweir_lab::run(&order, &mut |step| {
        if !quiet {
            warn(step);
        }
    });
    match findings {
        Ok(findings) => conclude(args, &findings),
        Err(LabError::Stopped) => {
            say("linkweir: ended before anything was measured");
            Ok(Exit::Done)
        }
        Err(error) => Err(refused(error)),
    }
}

fn conclude(args: &LabArgs, findings: &Findings) -> anyhow::Result<Exit> {
    let mut out = std::io::stdout().lock();
    write!(out, "{findings}").context("standard output")?;
    if let Some(path) = &args.summary {
        let summary = serde_json::json!({ "lab": findings, "agree": findings.agree() });
        write_summary_file(path, &summary).context("--summary")?;
    }
    Ok(if findings.agree() {
        Exit::Done
    } else {
        Exit::DataLost
    })
}

fn list() -> anyhow::Result<Exit> {
    let mut out = std::io::stdout().lock();
    for (name, title) in Scenario::built_in() {
        let title = title.strip_prefix(&format!("{name}: ")).unwrap_or(&title);
        writeln!(out, "{name:18}{title}").context("standard output")?;
    }
    Ok(Exit::Done)
}

fn print(name: &str) -> anyhow::Result<Exit> {
    let text = match Scenario::text(name) {
        Some(text) => text.to_owned(),
        None => {
            Scenario::find(name).map_err(refused)?;
            std::fs::read_to_string(Path::new(name))?
        }
    };
    let mut out = std::io::stdout().lock();
    out.write_all(text.as_bytes()).context("standard output")?;
    Ok(Exit::Done)
}

/// A scenario that is wrong is wrong usage; a program that fails is not.
fn refused(error: LabError) -> anyhow::Error {
    match error {
        LabError::Scenario { .. } => anyhow!(Wrong(error.to_string())),
        other => other.into(),
    }
}
