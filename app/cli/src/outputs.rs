//! What the commands have in common about what they write, and the rights that writing needs.

use std::io::IsTerminal as _;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use linkweir_engine::{Loss, NoOutput, Outputs};
use linkweir_record::RecordKind;
use linkweir_record::human::{counted, thousands};
use linkweir_sink::{
    Document, Existing, Format, OutputOptions, is_table, open_sink, without_password,
};
use linkweir_sys::privileges::Restrict;
use serde_json::{Map, Value};

use crate::exit::{Exit, Wrong, warn};
use crate::files::{document, is_stdout, refused};

/// Opens destinations of records.
pub(crate) fn open<K: RecordKind>(
    destinations: &[&str],
    format: Option<Format>,
    options: &OutputOptions,
) -> anyhow::Result<Outputs<K>> {
    check_time(options, || {
        let mut all = destinations.iter();
        all.any(|to| is_table::<K>(to, format, options))
    })?;
    let mut outputs = Outputs::default();
    for destination in destinations {
        let (to, options) = ((*destination).to_owned(), options.clone());
        let open = move || open_sink(&to, format, options.clone());
        outputs.open(shown(destination), open).map_err(refused)?;
    }
    Ok(outputs)
}

/// Refuses `--time` where no output is a table: the other formats have times of their own, which programs read.
pub(crate) fn check_time(
    options: &OutputOptions,
    has_table: impl FnOnce() -> bool,
) -> anyhow::Result<()> {
    if options.table.time.is_some() && !has_table() {
        bail!(Wrong(
            "--time is for a table of records, and none is written; add --format table, or leave it out: other formats have \
             times of their own"
                .to_owned()
        ));
    }
    Ok(())
}

/// A destination as people and summaries see it. A password in it that was given on the command line is in the process list, which
/// is said.
pub(crate) fn shown(destination: &str) -> String {
    let shown = without_password(destination);
    if shown != destination && std::env::args().any(|word| word.contains(destination)) {
        warn(&format!(
            "{shown}: other users of this machine see the password in the process list; give it by a file or the environment \
             (--elasticsearch)"
        ));
    }
    shown.into_owned()
}

/// Refuses a name of a picture that does not end in `.svg`; standard output takes SVG.
pub(crate) fn check_svg(path: &Path) -> anyhow::Result<()> {
    let is_svg = path
        .extension()
        .is_some_and(|ending| ending.eq_ignore_ascii_case("svg"));
    if is_svg || path == Path::new("-") {
        return Ok(());
    }
    let message = format!("{}: a picture ends in .svg", path.display());
    Err(Wrong(message).into())
}

/// A document that a run writes when it ends, beside its records.
#[derive(Debug)]
pub(crate) struct AtEnd {
    flag: &'static str,
    document: Document,
}

impl AtEnd {
    /// Opens what a flag names, where it names something: a run that could not write it does not begin.
    pub(crate) fn open(
        flag: &'static str,
        destination: Option<&str>,
        existing: Existing,
    ) -> anyhow::Result<Option<Self>> {
        let Some(destination) = destination else {
            return Ok(None);
        };
        let document = document(destination, existing).context(flag)?;
        Ok(Some(Self { flag, document }))
    }

    /// Writes it. Where that fails it is said, and this output has failed as one of records does: alone.
    pub(crate) fn write(self, text: &str) -> Option<Loss> {
        let destination = self.document.destination().to_owned();
        let error = self.document.write_whole(text.as_bytes()).err()?;
        Some(not_written(self.flag, destination, &error))
    }

    /// Writes it in the middle of a run: what is written next takes its place.
    pub(crate) fn write_and_reopen(self, text: &str) -> Result<Self, Loss> {
        let (flag, destination) = (self.flag, self.document.destination().to_owned());
        match self.document.write_and_reopen(text.as_bytes()) {
            Ok(document) => Ok(Self { flag, document }),
            Err(error) => Err(not_written(flag, destination, &error)),
        }
    }

    /// The same for an object.
    pub(crate) fn write_json(self, object: &Value) -> Option<Loss> {
        self.write(&format!("{object:#}\n"))
    }
}

/// Says why a document was not written.
fn not_written(flag: &str, destination: String, error: &impl std::fmt::Display) -> Loss {
    let cause = format!("{flag}: {error}");
    warn(&cause);
    Loss {
        destination,
        count: 0,
        cause: Some(cause),
        has_failed: true,
    }
}

/// The documents of a run, as far as they were asked for.
#[derive(Debug, Default)]
pub(crate) struct Documents {
    pub(crate) report: Option<AtEnd>,
    pub(crate) sketch: Option<AtEnd>,
    /// Written last: it tells of the others.
    pub(crate) summary: Option<AtEnd>,
}

/// The losses of each output as they were last reported.
#[derive(Debug, Default)]
pub(crate) struct ReportedLosses(Vec<ReportedLoss>);

#[derive(Debug, Clone, Default)]
struct ReportedLoss {
    cause: Option<String>,
    count: u64,
    has_failed: bool,
}

impl ReportedLosses {
    /// Says why an output does not deliver everything, when that is first seen, again how much that is when
    /// it is ten times as much, and when one that had failed is written again.
    pub(crate) fn tell(&mut self, losses: &[Loss]) {
        let all = self.0.len().max(losses.len());
        self.0.resize(all, ReportedLoss::default());
        for (told, loss) in self.0.iter_mut().zip(losses) {
            let (lost, destination) = (thousands(loss.count), &loss.destination);
            if told.has_failed && !loss.has_failed {
                warn(&format!(
                    "{destination} is written again; not written so far: {lost}"
                ));
                told.count = told.count.max(loss.count);
            } else if loss.count >= 10 * told.count.max(1) {
                told.count = loss.count;
                warn(&format!("{} so far: {lost}", unwritten(destination)));
            }
            told.has_failed = loss.has_failed;
            if told.cause == loss.cause {
                continue;
            }
            told.cause.clone_from(&loss.cause);
            let Some(why) = &loss.cause else { continue };
            let then = if loss.has_failed {
                "; this output is closed"
            } else {
                ""
            };
            warn(&format!("{why}{then}"));
        }
    }
}

/// How a run ends whose outputs have ended: failed where none was left.
pub(crate) fn exit(ended: Result<(), NoOutput>, losses: &[Loss]) -> Exit {
    match ended {
        Err(NoOutput::Failed) => Exit::Failed,
        _ if lost(losses).next().is_some() => Exit::DataLost,
        _ => Exit::Done,
    }
}

/// Losses by output, with those that have lost nothing: `dropped.sink` of a summary.
pub(crate) fn by_name(losses: &[Loss]) -> Value {
    let mut names = Map::new();
    for loss in losses {
        // Two may have one name.
        let earlier = names.get(&loss.destination).and_then(Value::as_u64);
        let count = earlier.unwrap_or(0).saturating_add(loss.count);
        names.insert(loss.destination.clone(), count.into());
    }
    Value::Object(names)
}

/// What is lost at a destination, for people.
fn unwritten(destination: &str) -> String {
    match destination {
        "otlp_spans" => "spans not sent by --otlp".to_owned(),
        "otlp_metrics" => "metrics not sent by --otlp".to_owned(),
        "webhook" => "alerts not sent by --webhook".to_owned(),
        destination => format!("not written to {destination}"),
    }
}

/// Losses by output for people: only of those that have lost something or have failed.
pub(crate) fn lost(losses: &[Loss]) -> impl Iterator<Item = (String, u64)> {
    let lost = losses.iter();
    let lost = lost.filter(|loss| loss.count > 0 || loss.has_failed);
    lost.map(|loss| (unwritten(&loss.destination), loss.count))
}

/// Where records go: what `-w` names, or standard output; `nowhere` where the terminal shows the live view
/// instead, or none are wanted.
pub(crate) fn destinations(named: &[String], nowhere: bool) -> Vec<&str> {
    match named {
        [] if nowhere => Vec::new(),
        [] => vec!["-"],
        named => named.iter().map(String::as_str).collect(),
    }
}

/// Whether records that go there are shown on a terminal: no progress belongs between them.
pub(crate) fn are_shown(destinations: &[&str]) -> bool {
    destinations.iter().any(|to| is_stdout(to)) && std::io::stdout().is_terminal()
}

/// The directories in which files will be made, and the devices and pipes that are written to.
pub(crate) fn written_directories<'a>(outputs: impl Iterator<Item = &'a Path>) -> Vec<PathBuf> {
    let mut directories: Vec<PathBuf> = outputs
        .filter(|path| {
            let name = path.to_string_lossy();
            !is_stdout(&name) && !name.contains("://")
        })
        .map(|path| match path.parent() {
            _ if path.exists() && !path.is_file() => path.to_owned(),
            Some(directory) if !directory.as_os_str().is_empty() => directory.to_owned(),
            _ => PathBuf::from("."),
        })
        .collect();
    directories.sort();
    directories.dedup();
    directories
}

/// Gives up everything but `keep`, and says what could not be done.
///
/// Threads that run already keep what they have: call it before the first one starts.
pub(crate) fn give_up_privileges(keep: &Restrict) -> anyhow::Result<()> {
    let threads = std::fs::read_dir("/proc/self/task").map_or(1, Iterator::count);
    if threads > 1 {
        warn(&format!(
            "{} keep all privileges",
            counted(threads as u64 - 1, "thread")
        ));
    }
    for undone in keep.apply().context("give up privileges")? {
        warn(&undone);
    }
    Ok(())
}

/// Gives up what a run needs no more once its input is open. It keeps of interfaces the right to open them again, of
/// files that to read those of others.
pub(crate) fn restrict_run(
    is_live: bool,
    interfaces: &[String],
    writable: Vec<PathBuf>,
) -> anyhow::Result<()> {
    give_up_privileges(&Restrict {
        writable,
        keep_read: !is_live,
        keep_net: !interfaces.is_empty(),
        keep_bpf: interfaces.iter().any(|name| name.starts_with("xdp:")),
        ..Restrict::default()
    })
}

/// The same for a command that reads files, or what others send to it, and nothing else: before it begins to.
pub(crate) fn restrict_reader<'a>(
    outputs: impl IntoIterator<Item = &'a (impl AsRef<Path> + ?Sized + 'a)>,
) -> anyhow::Result<()> {
    let mut writable = written_directories(outputs.into_iter().map(AsRef::as_ref));
    // A missing directory is reported by the output that needs it.
    writable.retain(|directory| directory.exists());
    restrict_run(false, &[], writable)
}
