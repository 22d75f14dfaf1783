//! `linkweir report`: reports from records that were stored before.

mod args;
#[cfg(feature = "parquet")]
mod columns;
#[cfg(not(feature = "parquet"))]
#[path = "no_columns.rs"]
mod columns;
mod document;
mod records;
mod screen;
mod source;

use std::cell::{OnceCell, RefCell};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use anyhow::{anyhow, bail};
use linkweir_record::stored::StoredRecord;
use linkweir_record::{
    DnsKind, Filter, FlowKind, GatewayKind, HttpKind, LoadKind, RecordBatch as _, RecordKind,
    Stored, StoredBatch, TlsKind,
};
use linkweir_report::ReportMeta;
use linkweir_report::stored::{Sample, StoredReport, Subject, render_compared};
use linkweir_sink::LineCells;

pub(crate) use self::args::ReportArgs;
use self::source::{Found, Input, Source};
use crate::conflicts;
use crate::exit::{Exit, Wrong, warn};
use crate::files::{command_line, is_stdout, print};
use crate::outputs::{AtEnd, restrict_reader};

/// Runs the command.
pub(crate) fn run(args: &ReportArgs) -> anyhow::Result<Exit> {
    let outputs = args.report.iter().chain(&args.summary).chain(&args.write);
    restrict_reader(outputs)?;
    check_outputs(args)?;
    if let (Some(from), Some(to)) = (args.from, args.to)
        && from >= to
    {
        bail!(Wrong("--to must be after --from".to_owned()));
    }
    let sets = match args.compare.as_slice() {
        [one, other] => vec![vec![one.clone()], vec![other.clone()]],
        _ => vec![args.records.clone()],
    };
    let mut kind = args.kind.as_deref().map(source::known_kind).transpose()?;
    let mut inputs = Vec::new();
    for set in &sets {
        inputs.push(Set::open(set, &mut kind, args.kind.is_some())?);
    }
    match kind {
        Some(HttpKind::NAME) => of_kind::<HttpKind>(args, inputs),
        Some(FlowKind::NAME) => of_kind::<FlowKind>(args, inputs),
        Some(GatewayKind::NAME) => of_kind::<GatewayKind>(args, inputs),
        Some(TlsKind::NAME) => of_kind::<TlsKind>(args, inputs),
        Some(DnsKind::NAME) => of_kind::<DnsKind>(args, inputs),
        Some(LoadKind::NAME) => of_kind::<LoadKind>(args, inputs),
        _ => {
            let complaints = inputs.iter().flat_map(|set| &set.read);
            let complaints: Vec<String> = complaints.flat_map(Source::complaints).collect();
            match complaints.first() {
                Some(first) => bail!("{first}"),
                None => bail!("there are no records in the input"),
            }
        }
    }
}

/// No output replaces an input.
fn check_outputs(args: &ReportArgs) -> anyhow::Result<()> {
    let documents = [("--report", &args.report), ("--summary", &args.summary)];
    let documents = documents
        .iter()
        .filter_map(|(flag, path)| Some((*flag, Path::new(path.as_deref()?))));
    let records = args.write.iter().map(|path| ("-w", Path::new(path)));
    let written: Vec<(&str, &Path)> = documents.chain(records).collect();
    let read = args.records.iter().chain(&args.compare);
    let read: Vec<(&str, &Path)> = read.map(|path| ("RECORDS", path.as_path())).collect();
    conflicts::check(&written, &read).map_err(|message| anyhow!(Wrong(message)))
}

/// Inputs that are one set of records.
struct Set {
    name: String,
    /// Files in their order, and one that is open.
    files: Vec<(PathBuf, Option<Box<Input>>)>,
    read: Vec<Source>,
    /// Files that are no records, or of another kind.
    passed: u64,
}

impl Set {
    /// Looks at all files; the first of records decides the kind.
    fn open(
        paths: &[PathBuf],
        kind: &mut Option<&'static str>,
        is_asked: bool,
    ) -> anyhow::Result<Self> {
        let names: Vec<String> = paths
            .iter()
            .map(|path| path.display().to_string())
            .collect();
        let mut set = Self {
            name: names.join(", "),
            files: Vec::new(),
            read: Vec::new(),
            passed: 0,
        };
        for (path, is_named) in source::files(paths)? {
            match Input::open(&path)? {
                Found::Input(input) => {
                    let wanted = *kind.get_or_insert(input.kind);
                    if input.kind != wanted && is_asked {
                        set.passed += 1;
                    } else if input.kind != wanted {
                        bail!(Wrong(format!(
                            "{}: records of {}, others are of {wanted}; say which with --kind",
                            input.name, input.kind
                        )));
                    } else {
                        // Standard input cannot be opened again; of many files not all can be open.
                        let is_stdin = path == Path::new("-");
                        set.files.push((path, is_stdin.then_some(input)));
                    }
                }
                Found::Empty => {}
                Found::Damaged(source) => set.read.push(source),
                Found::Unknown if is_named => {
                    bail!(
                        "{}: no records of linkweir (JSON lines, Parquet, a stream of Arrow)",
                        path.display()
                    )
                }
                Found::Unknown => set.passed += 1,
            }
        }
        Ok(set)
    }
}

/// Which records are taken.
struct Choice<K: RecordKind> {
    condition: Option<Filter<Stored<K>>>,
    error: Filter<Stored<K>>,
    again: Option<Filter<Stored<K>>>,
    from_ns: u64,
    to_ns: u64,
    left: u64,
    left_out: u64,
    said_again: u64,
}

impl<K: RecordKind> Choice<K> {
    fn read(args: &ReportArgs, subject: &Subject) -> anyhow::Result<Self> {
        let filter = |text: &str| {
            Filter::<Stored<K>>::read(text)
                .map_err(|error| anyhow!(Wrong(format!("--where: {error}"))))
        };
        let names = |name: &str| {
            let condition = args.condition.as_deref().unwrap_or_default();
            condition
                .split(|c: char| !c.is_alphanumeric() && c != '_')
                .any(|word| word == name)
        };
        let again = subject.again.filter(|(name, _)| !names(name));
        Ok(Self {
            condition: args.condition.as_deref().map(filter).transpose()?,
            error: filter(subject.error.1)?,
            again: again.map(|(_, condition)| filter(condition)).transpose()?,
            from_ns: args.from.map_or(0, |from| from.0),
            to_ns: args.to.map_or(u64::MAX, |to| to.0),
            left: args.head.unwrap_or(u64::MAX),
            left_out: 0,
            said_again: 0,
        })
    }

    /// The columns that it reads.
    fn columns(&self) -> Vec<usize> {
        let filters = [
            self.condition.as_ref(),
            Some(&self.error),
            self.again.as_ref(),
        ];
        filters
            .into_iter()
            .flatten()
            .flat_map(Filter::columns)
            .collect()
    }

    /// Whether a record is one of those.
    fn takes(&mut self, view: &StoredRecord<'_>) -> bool {
        let time_ns = Stored::<K>::time_ns(view);
        let matches = |filter: &Filter<Stored<K>>| filter.matches(view);
        if !(self.from_ns..self.to_ns).contains(&time_ns)
            || !self.condition.as_ref().is_none_or(matches)
        {
            self.left_out += 1;
            return false;
        }
        if self.again.as_ref().is_some_and(matches) {
            self.said_again += 1;
            return false;
        }
        self.left -= 1;
        true
    }

    /// Whether it takes more.
    const fn flow(&self) -> ControlFlow<()> {
        match self.left {
            0 => ControlFlow::Break(()),
            _ => ControlFlow::Continue(()),
        }
    }
}

impl Set {
    /// Reads all files, until `each` has enough.
    fn read<K: RecordKind>(
        &mut self,
        wanted: &dyn Fn(usize) -> bool,
        each: &mut source::Each<'_, K>,
    ) -> anyhow::Result<()> {
        for (path, input) in std::mem::take(&mut self.files) {
            let input = match input {
                Some(input) => input,
                None => match Input::open(&path)? {
                    Found::Input(input) => input,
                    _ => bail!("{}: it has changed meanwhile", path.display()),
                },
            };
            let (source, flow) = input.read::<K>(wanted, each)?;
            self.read.push(source);
            if flow.is_break() {
                break;
            }
        }
        Ok(())
    }

    /// Says what was not read; whether that is nothing.
    fn complain(&self) -> bool {
        for source in &self.read {
            source.complaints().iter().for_each(|text| warn(text));
            if !source.unknown.is_empty() {
                warn(&format!(
                    "{}: columns that this version does not know: {}",
                    source.name,
                    source.unknown.join(", ")
                ));
            }
        }
        self.read.iter().all(Source::is_complete)
    }

    /// What a page says of the run.
    fn meta<K: RecordKind>(&self, report: &StoredReport, choice: &Choice<K>) -> ReportMeta {
        let sum = |of: fn(&Source) -> u64| self.read.iter().map(of).sum();
        let damaged: u64 = sum(|source| source.damaged);
        let ended: u64 = sum(|source| u64::from(source.ended.is_some()));
        let mut notes = vec![("records left out".to_owned(), choice.left_out)];
        if choice.said_again > 0 {
            notes.push(("partial records".to_owned(), choice.said_again));
        }
        if self.passed > 0 {
            notes.push(("other files".to_owned(), self.passed));
        }
        ReportMeta {
            title: format!("Report of {}", K::NAME),
            inputs: self.read.iter().map(|source| source.name.clone()).collect(),
            command_line: command_line(),
            program: concat!("linkweir ", env!("CARGO_PKG_VERSION")).to_owned(),
            first_ts_ns: report.time_ns.map(|(first, _)| first),
            last_ts_ns: report.time_ns.map(|(_, last)| last),
            drops: vec![
                ("records not read".to_owned(), damaged),
                ("files that end too early".to_owned(), ended),
            ],
            notes,
            ..ReportMeta::default()
        }
    }
}

/// The report of a set.
fn summed<K: RecordKind>(
    args: &ReportArgs,
    subject: &'static Subject,
    set: &mut Set,
) -> anyhow::Result<(StoredReport, Choice<K>)> {
    let mut choice = Choice::<K>::read(args, subject)?;
    let mut report = StoredReport::new::<K>(subject, &args.by, usize::from(args.rows))
        .map_err(|error| anyhow!(Wrong(format!("--by: {error}"))))?;
    let mut wanted = vec![false; K::fields().len()];
    let line = K::line().iter().flat_map(|cell| cell.cell.columns());
    let line = line.filter_map(K::column);
    let times = K::fields().iter().enumerate();
    let times = times
        .filter(|(_, field)| field.kind.is_time())
        .map(|(at, _)| at);
    for column in line
        .chain(times)
        .chain(choice.columns())
        .chain(report.columns())
    {
        if let Some(is_wanted) = wanted.get_mut(column) {
            *is_wanted = true;
        }
    }
    let wanted = |column: usize| wanted.get(column).copied().unwrap_or_default();
    let mut cells = LineCells::<Stored<K>>::default();
    let mut each = |batch: &StoredBatch<K>, name: &str, place: &dyn Fn(usize) -> u64| {
        for (at, view) in batch.views().enumerate() {
            if !choice.takes(&view) {
                continue;
            }
            // Made at most once, for all that keep it.
            let made = OnceCell::new();
            let cells = RefCell::new(&mut cells);
            let sample = || {
                let sample = made.get_or_init(|| {
                    Rc::new(Sample {
                        place: format!("{name}:{}", place(at)),
                        cells: cells.borrow_mut().of(&view),
                    })
                });
                Rc::clone(sample)
            };
            let is_error = choice.error.matches(&view);
            report.record(&view, Stored::<K>::time_ns(&view), is_error, sample);
            if choice.flow().is_break() {
                return Ok(ControlFlow::Break(()));
            }
        }
        Ok(ControlFlow::Continue(()))
    };
    set.read::<K>(&wanted, &mut each)?;
    Ok((report, choice))
}

/// Runs the command over records of a kind.
fn of_kind<K: RecordKind>(args: &ReportArgs, mut sets: Vec<Set>) -> anyhow::Result<Exit> {
    let Some(subject) = Subject::named(K::NAME) else {
        bail!("no report is made of {}", K::NAME);
    };
    if args.wants_records {
        let choice = Choice::<K>::read(args, subject)?;
        return records::write(args, sets, choice);
    }
    let page = AtEnd::open(
        "--report",
        args.report.as_deref(),
        args.files.existing(false),
    )?;
    let summary = AtEnd::open(
        "--summary",
        args.summary.as_deref(),
        args.files.existing(false),
    )?;
    let mut done = Vec::new();
    for set in &mut sets {
        let (report, choice) = summed::<K>(args, subject, set)?;
        let meta = set.meta(&report, &choice);
        done.push((report, meta));
    }
    let rows = usize::from(args.rows);
    let titles = LineCells::<Stored<K>>::default().titles();
    let (text, html, json) = match done.as_slice() {
        [(report, meta)] => (
            screen::of_report(report, meta, &titles, rows),
            page.is_some().then(|| report.render(meta, &titles, rows)),
            document::of_report(report, meta, &titles, rows),
        ),
        [(one, meta), (other, _)] => {
            let names = [0, 1].map(|at| sets.get(at).map_or("", |set| set.name.as_str()));
            let meta = ReportMeta {
                title: format!("Comparison of {}", K::NAME),
                inputs: vec![format!("A: {}", names[0]), format!("B: {}", names[1])],
                first_ts_ns: None,
                ..meta.clone()
            };
            (
                screen::of_both([one, other], names, rows),
                page.is_some()
                    .then(|| render_compared([one, other], &meta, rows)),
                document::of_both([one, other], names, rows),
            )
        }
        _ => bail!("there are no records in the input"),
    };
    let is_taken = args
        .report
        .iter()
        .chain(&args.summary)
        .any(|to| is_stdout(to));
    if !args.quiet && !is_taken {
        print(&text)?;
    }
    let written = page.zip(html).and_then(|(page, html)| page.write(&html));
    let losses: Vec<_> = written
        .into_iter()
        .chain(summary.and_then(|summary| summary.write_json(&json)))
        .collect();
    // The faults of every set are printed, also where the first has some.
    let complete: Vec<bool> = sets.iter().map(Set::complain).collect();
    if !losses.is_empty() {
        return Ok(Exit::Failed);
    }
    Ok(match complete.iter().all(|is_complete| *is_complete) {
        true => Exit::Done,
        false => Exit::DataLost,
    })
}
