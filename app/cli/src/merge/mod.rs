//! `linkweir merge`: sketches of several runs become the totals of one.

mod json;
pub(crate) mod sketch;

use std::path::{Path, PathBuf};

use anyhow::{Context, anyhow};
use clap::{Args, ValueHint};
use linkweir_sink::Document;
use linkweir_wire::FragmentStats;

use self::json::from_json;
use self::sketch::Sketch;
use crate::exit::{Exit, Wrong, say, warn};
use crate::files::OverwriteArgs;
use crate::http::summary::HttpCounters;
use crate::passive::totals::Totals;
use crate::{conflicts, files, outputs};

const AFTER_HELP: &str = "Examples:
  linkweir merge monday.json tuesday.json --summary -
  linkweir merge sketches/ --sketch week.json --summary totals.json

Exit codes:
  0  success
  1  success, but one of the runs lost data (drops, truncated or corrupt input)
  2  invalid usage, or a file that is not a sketch of this version
  3  a file cannot be read, or an output failed";

/// Add up the sketches of several runs, giving the totals of one run over everything.
///
/// `linkweir http --sketch FILE` and `linkweir halves --sketch FILE` write totals that can be added:
/// counters, and the histogram of response times with its buckets. The quantiles of the sum are therefore
/// those of one run, in whatever order sketches are merged. Sketches of `halves` hold packets and bytes,
/// those of `http --from-halves` transactions, those of `http -r` both. Each run must be given once.
#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct MergeArgs {
    /// Sketches: files, or directories, of which all `.json` files are read.
    #[arg(value_name = "PATH", required = true, value_hint = ValueHint::AnyPath)]
    pub(crate) sketches: Vec<PathBuf>,

    /// Write the totals as the JSON object that `linkweir http --summary` writes; `-` is standard output.
    /// Its `elapsed_s` is the time from the start of the first run to the end of the last, by the clocks
    /// of the machines.
    #[arg(long, value_name = "PATH", value_hint = ValueHint::FilePath)]
    pub(crate) summary: Option<String>,

    /// Write the sum as a sketch, for a later merge; `-` is standard output.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) sketch: Option<String>,

    #[command(flatten)]
    pub(crate) files: OverwriteArgs,

    /// Suppress the summary.
    #[arg(short, long)]
    pub(crate) quiet: bool,
}

/// Runs the command.
pub(crate) fn run(args: &MergeArgs) -> anyhow::Result<Exit> {
    outputs::restrict_reader(args.sketch.iter().chain(&args.summary))?;
    let files = files(&args.sketches)?;
    check_outputs(args, &files)?;
    let sketch = open("--sketch", args.sketch.as_deref(), args)?;
    let summary = open("--summary", args.summary.as_deref(), args)?;
    let mut sum: Option<Sketch> = None;
    let (mut whole, mut packets_only) = (0_usize, 0_usize);
    for file in &files {
        let text = files::read_text(file, MAX_BYTES).with_context(|| file.display().to_string())?;
        let sketch = from_json(&text)
            .map_err(|error| anyhow!(Wrong(format!("{}: {error}", file.display()))))?;
        match (&sketch.run, &sketch.http) {
            (Some(_), Some(_)) => whole += 1,
            (Some(_), None) => packets_only += 1,
            _ => {}
        }
        match &mut sum {
            None => sum = Some(sketch),
            Some(sum) => sum.merge(&sketch),
        }
    }
    let sum = sum.ok_or_else(|| anyhow!(Wrong("no sketch to read".to_owned())))?;
    if whole > 0 && packets_only > 0 {
        warn(&format!(
            "sketches of whole runs: {whole}, of `linkweir halves`: {packets_only}; a capture that is in both counts twice"
        ));
    }
    if let Some(document) = sketch {
        document.write_json(&sum.to_json()).context("--sketch")?;
    }
    let wants_totals = args.summary.is_some() || args.sketch.is_none();
    if let Some(part) = missing(&sum) {
        // A sum of parts may be written as a sketch, to be completed by others.
        return if wants_totals {
            Err(anyhow!(Wrong(part.to_owned())))
        } else {
            Ok(Exit::Done)
        };
    }
    conclude(args, &sum, summary)
}

/// Opens the document that a flag names, where it names one.
fn open(
    flag: &'static str,
    destination: Option<&str>,
    args: &MergeArgs,
) -> anyhow::Result<Option<Document>> {
    let open = |destination| files::document(destination, args.files.existing(false));
    destination.map(open).transpose().context(flag)
}

/// Prints the totals of all runs.
fn conclude(args: &MergeArgs, sum: &Sketch, summary: Option<Document>) -> anyhow::Result<Exit> {
    let report = sum.report();
    let (run, http) = (
        sum.run.clone().unwrap_or_default(),
        sum.http.clone().unwrap_or_default(),
    );
    // Sketches have neither samples of the payload nor fragments.
    let counters = HttpCounters {
        stats: http.stats,
        ..HttpCounters::default()
    };
    let totals = Totals {
        report: &report,
        counters: &counters,
        faults: &run.decode_errors,
        fragments: &FragmentStats::default(),
        elapsed: sum.elapsed(),
        workers: &[],
        packets: None,
    };
    if let Some(document) = summary {
        document
            .write_json(&totals.to_json())
            .context("--summary")?;
    }
    if !args.quiet {
        say(&totals.to_screen());
    }
    Ok(if totals.is_lossy() {
        Exit::DataLost
    } else {
        Exit::Done
    })
}

/// What the totals of one run have and these sketches do not.
const fn missing(sum: &Sketch) -> Option<&'static str> {
    match (&sum.run, &sum.http) {
        (Some(_), Some(_)) => None,
        (None, _) => {
            Some("no sketch has packets (`run`): add those that `linkweir halves --sketch` wrote")
        }
        (Some(_), None) => Some(
            "no sketch has transactions (`http`): add those that `linkweir http --from-halves --sketch` wrote",
        ),
    }
}

/// Bytes of the largest sketch: a histogram with all of its buckets has less than two million.
const MAX_BYTES: u64 = 64 << 20;

/// The files that paths name, each once.
fn files(paths: &[PathBuf]) -> anyhow::Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for path in paths {
        if !path.is_dir() {
            files.push(path.clone());
            continue;
        }
        let inside = json_files(path).with_context(|| path.display().to_string())?;
        if inside.is_empty() {
            let message = format!("{}: no .json file is in this directory", path.display());
            return Err(anyhow!(Wrong(message)));
        }
        files.extend(inside);
    }
    let mut seen = std::collections::HashSet::new();
    for file in &files {
        let real = file
            .canonicalize()
            .with_context(|| file.display().to_string())?;
        if !seen.insert(real) {
            let message = format!(
                "{} is given twice: its run would count twice",
                file.display()
            );
            return Err(anyhow!(Wrong(message)));
        }
    }
    Ok(files)
}

/// The `.json` files of a directory, by name.
fn json_files(directory: &Path) -> std::io::Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(directory)? {
        let path = entry?.path();
        let is_hidden = path
            .file_name()
            .is_some_and(|name| name.as_encoded_bytes().starts_with(b"."));
        if !is_hidden && path.extension().is_some_and(|ending| ending == "json") {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}

fn check_outputs(args: &MergeArgs, files: &[PathBuf]) -> anyhow::Result<()> {
    let summary = args.summary.iter().map(|path| ("--summary", path));
    let sketch = args.sketch.iter().map(|path| ("--sketch", path));
    let outputs: Vec<(&str, &Path)> = summary
        .chain(sketch)
        .map(|(flag, path)| (flag, Path::new(path)))
        .collect();
    let inputs: Vec<(&str, &Path)> = files.iter().map(|file| ("PATH", file.as_path())).collect();
    conflicts::check(&outputs, &inputs).map_err(|message| anyhow!(Wrong(message)))
}
