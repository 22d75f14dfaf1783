//! `linkweir report`: reports from records that were stored before.

mod args;
mod choice;
#[cfg(feature = "parquet")]
mod columns;
#[cfg(not(feature = "parquet"))]
#[path = "no_columns.rs"]
mod columns;
mod document;
mod records;
mod sampled;
mod screen;
mod set;
mod source;

use std::ops::ControlFlow;
use std::path::Path;

use anyhow::{anyhow, bail};
use linkweir_record::{
    DnsKind, FlowKind, GatewayKind, HttpKind, LoadKind, RecordBatch as _, RecordKind, Stored,
    StoredBatch, TlsKind,
};
use linkweir_report::ReportMeta;
use linkweir_report::stored::{StoredReport, Subject, render_compared};
use linkweir_sink::LineCells;

pub(crate) use self::args::ReportArgs;
use self::choice::Choice;
use self::sampled::Sampler;
use self::set::Set;
use crate::conflicts;
use crate::exit::{Exit, Wrong};
use crate::files::{is_stdout, print};
use crate::outputs::{AtEnd, restrict_reader};
use crate::signals::Signals;

/// Runs the command.
pub(crate) fn run(args: &ReportArgs) -> anyhow::Result<Exit> {
    let _signals = Signals::install()?;
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
    // Before the first filter is read.
    let headers = inputs.iter().flat_map(|set| &set.headers);
    source::choose_headers(headers);
    match kind {
        Some(HttpKind::NAME) => of_kind::<HttpKind>(args, inputs),
        Some(FlowKind::NAME) => of_kind::<FlowKind>(args, inputs),
        Some(GatewayKind::NAME) => of_kind::<GatewayKind>(args, inputs),
        Some(TlsKind::NAME) => of_kind::<TlsKind>(args, inputs),
        Some(DnsKind::NAME) => of_kind::<DnsKind>(args, inputs),
        Some(LoadKind::NAME) => of_kind::<LoadKind>(args, inputs),
        _ => {
            let complaints = inputs.iter().flat_map(|set| &set.read);
            let complaints: Vec<String> = complaints.flat_map(source::Source::complaints).collect();
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
    let sampler = Sampler::<K>::new(args.summary.is_some());
    let mut each = |batch: &StoredBatch<K>, name: &str, place: &dyn Fn(usize) -> u64| {
        for (at, view) in batch.views().enumerate() {
            if !choice.takes(&view) {
                continue;
            }
            let is_apart = choice.apart.as_ref();
            let is_apart = is_apart.is_some_and(|filter| filter.matches(&view));
            if is_apart && choice.sets_apart {
                report.set_apart(&view);
            } else {
                let mark = subject.apart.as_ref().filter(|_| is_apart);
                let place = || format!("{name}:{}", place(at));
                let sample = sampler.of(&view, mark.map(|apart| apart.one), place);
                let is_error = choice.error.matches(&view);
                report.record(&view, Stored::<K>::time_ns(&view), is_error, sample);
            }
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
    let passed = sets.first().map_or(&[][..], |set| set.passed.as_slice());
    let (text, html, json) = match done.as_slice() {
        [(report, meta)] => (
            screen::of_report(report, meta, passed, &titles, rows),
            page.is_some().then(|| report.render(meta, &titles, rows)),
            document::of_report(report, meta, rows),
        ),
        [(one, meta), (other, _)] => {
            let names = [0, 1].map(|at| sets.get(at).map_or("", |set| set.name.as_str()));
            let meta = ReportMeta {
                title: format!("Comparison of {}", one.subject.noun),
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
