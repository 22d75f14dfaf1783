//! The command: what is asked for is run, what was found is printed and written.
//!
//! The directory in which a run keeps its files, looked at before it begins: nobody wants to learn it
//! afterwards.

use anyhow::{Context, anyhow};
use linkweir_cli::exit::{Exit, Wrong, say, wants_colours};
use linkweir_cli::lab::LabArgs;
use linkweir_cli::signals::Signals;
use linkweir_cli::{conflicts, files};
use linkweir_lab::{LabError, Order, Report, Scenario};
use linkweir_sink::Document;
use std::fs::{self, OpenOptions};
use std::io::{self, IsTerminal as _};
use std::path::{Path, PathBuf};
use steps::Steps;

pub(crate) mod https;
pub(crate) mod line;
mod page;
mod steps;

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
    check(args).map_err(|why| anyhow!(Wrong(why)))?;
    let files = Files::open(args)?;
    let signals = Signals::install()?;
    // A terminal that is gone is a reason to finish.
    signal_hook::flag::register(signal_hook::consts::SIGHUP, signals.stop_flag())
        .context("signals")?;
    let lab = std::env::current_exe().context("the path of this program")?;
    let order = Order {
        linkweir: beside(&lab)?,
        lab,
        seed: args.seed,
        has_consoles: !args.no_console,
        keep: args.keep.clone(),
        stop: signals.stop_flag(),
    };
    let steps = Steps::start(args.quiet);
    let report = linkweir_lab::run(&scenario, &order, &mut |step| steps.tell(step));
    steps.clear();
    match report {
        Ok(report) => conclude(args, &report, &steps, files),
        Err(LabError::Stopped) => {
            say("linkweir: ended before anything was measured");
            Ok(Exit::Done)
        }
        Err(error) => Err(refused(error)),
    }
}

/// The program whose commands are at work.
fn beside(lab: &Path) -> anyhow::Result<PathBuf> {
    let linkweir = lab.with_file_name("linkweir");
    match linkweir.is_file() {
        true => Ok(linkweir),
        false => Err(anyhow!(
            "{} is missing: the laboratory runs its commands",
            linkweir.display()
        )),
    }
}

/// What is written when the run ends.
struct Files {
    report: Option<Document>,
    summary: Option<Document>,
}

impl Files {
    fn open(args: &LabArgs) -> anyhow::Result<Self> {
        let open = |flag: &'static str, named: Option<&String>| {
            let file = named.map(|name| files::document(name, args.files.existing(false)));
            file.transpose().context(flag)
        };
        Ok(Self {
            report: open("--report", args.report.as_ref())?,
            summary: open("--summary", args.summary.as_ref())?,
        })
    }
}

fn conclude(args: &LabArgs, report: &Report, steps: &Steps, files: Files) -> anyhow::Result<Exit> {
    show(report, args.summary.as_deref() == Some("-"))?;
    if let Some(file) = files.report {
        let page = page::html(&args.scenario, report);
        file.write_whole(page.as_bytes()).context("--report")?;
    }
    steps.conclude(args.report.as_deref());
    if let Some(file) = files.summary {
        let summary = serde_json::json!({ "lab": report, "agree": report.agree() });
        file.write_json(&summary).context("--summary")?;
    }
    // Who ends it early knows that what was to be sent later is missing.
    Ok(if report.agree() || report.interrupted {
        Exit::Done
    } else {
        Exit::DataLost
    })
}

/// Prints the tables where nothing else is printed, in colours where somebody looks who wants them.
fn show(report: &Report, is_taken: bool) -> anyhow::Result<()> {
    let is_seen = match is_taken {
        true => io::stderr().is_terminal(),
        false => io::stdout().is_terminal(),
    };
    let text = match is_seen && wants_colours() {
        true => format!("{report:#}"),
        false => report.to_string(),
    };
    if is_taken {
        say(text.trim_end());
        return Ok(());
    }
    files::print(&text)
}

fn list() -> anyhow::Result<Exit> {
    let mut text = String::new();
    for (name, title) in Scenario::built_in() {
        let title = title.strip_prefix(&format!("{name}: ")).unwrap_or(&title);
        text.push_str(&format!("{name:18}{title}\n"));
    }
    files::print(&text)?;
    Ok(Exit::Done)
}

fn print(name: &str) -> anyhow::Result<Exit> {
    let text = match Scenario::text(name) {
        Some(text) => text.to_owned(),
        None => {
            Scenario::find(name).map_err(refused)?;
            fs::read_to_string(Path::new(name))?
        }
    };
    files::print(&text)?;
    Ok(Exit::Done)
}

/// A scenario that is wrong is wrong usage; a program that fails is not.
fn refused(error: LabError) -> anyhow::Error {
    match error {
        LabError::Scenario { .. } => anyhow!(Wrong(error.to_string())),
        other => other.into(),
    }
}

/// Refuses a directory that cannot be written, and files that would replace one another.
fn check(args: &LabArgs) -> Result<(), String> {
    let files = [("--report", &args.report), ("--summary", &args.summary)];
    let files: Vec<(&str, &Path)> = files
        .into_iter()
        .filter_map(|(flag, path)| Some((flag, Path::new(path.as_deref()?))))
        .filter(|(_, path)| path.as_os_str() != "-")
        .collect();
    if let Some(path) = &args.keep {
        let why = |error: io::Error| format!("--keep {}: {error}", path.display());
        can_write(&existing(path)).map_err(why)?;
        // Logs would go on where an earlier run's ended.
        if fs::read_dir(path).is_ok_and(|mut entries| entries.next().is_some()) {
            return Err(format!(
                "--keep {}: not empty; a run keeps its files in a directory of its own",
                path.display()
            ));
        }
    }
    conflicts::check(&files, &[])
}

/// Tries it: nothing else tells for sure.
fn can_write(path: &Path) -> io::Result<()> {
    let probe = path.join(format!(".linkweir-{}", std::process::id()));
    OpenOptions::new()
        .write(true)
        .create_new(true)
        .open(&probe)?;
    fs::remove_file(&probe)
}

/// The directory in which a new one will be made: the last that is there.
fn existing(path: &Path) -> PathBuf {
    let all = path.ancestors().filter(|path| !path.as_os_str().is_empty());
    let there = all.map(Path::to_path_buf).find(|path| path.exists());
    there.unwrap_or_else(|| PathBuf::from("."))
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        args: LabArgs,
    }

    fn said(words: &[&str]) -> Option<String> {
        let words = ["lab"].iter().chain(words);
        check(&Line::parse_from(words).args).err()
    }

    #[test]
    fn what_cannot_be_written_is_refused() {
        let directory = tempfile::tempdir().unwrap();
        let at = |name: &str| directory.path().join(name).display().to_string();
        assert_eq!(
            said(&["--report", &at("a.html"), "--keep", &at("new/er")]),
            None
        );
        assert_eq!(said(&["--summary", "-", "--report", "/dev/null"]), None);
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 0);

        let nowhere = said(&["--keep", "/proc/x/y"]).unwrap();
        assert!(nowhere.starts_with("--keep /proc/x/y"), "{nowhere}");
        fs::write(at("file"), "").unwrap();
        assert!(said(&["--keep", &at("file")]).is_some());
        let used = said(&["--keep", &at("")]).unwrap();
        assert!(used.contains("not empty"), "{used}");
        let both = said(&["--report", &at("a"), "--summary", &at("a")]).unwrap();
        assert!(both.contains("already used by --report"), "{both}");
    }
}
