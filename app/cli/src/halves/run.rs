//! Wires a run of `linkweir halves`: source, stage, sinks, signals.

use std::hash::{BuildHasher, RandomState};
use std::path::Path;

use anyhow::anyhow;
use linkweir_engine::{Limit, Loss, Outputs, Run, RunReport, Source};
use linkweir_http::{HalfStage, HalvesConfig};
use linkweir_record::HalfKind;
use linkweir_sink::OutputOptions;

use super::args::HalvesArgs;
use super::conclude::Ended;
use crate::conflicts;
use crate::exit::{Exit, Wrong};
use crate::input::{self, Opened};
use crate::interfaces;
use crate::outputs::{self, AtEnd, Documents, restrict_run};
use crate::progress::Meter;
use crate::signals::Signals;
use crate::watch::{Viewer, Watcher};

/// Rows are not looked at while they come.
#[derive(Debug)]
struct NoView;

impl Viewer for NoView {
    fn tick(&mut self, _report: &RunReport) {}

    fn finish(&mut self, _report: &RunReport) -> Option<Loss> {
        None
    }

    fn is_covered(&self) -> bool {
        false
    }

    fn stay(&self, _signals: &Signals) {}
}

/// Runs the command.
pub(crate) fn run(args: &HalvesArgs) -> anyhow::Result<Exit> {
    if args.input.list_interfaces {
        return interfaces::list();
    }
    let meter = Meter::start(args.output.quiet || outputs::are_shown(&args.destinations()));
    let signals = Signals::install()?;
    check_conflicts(args)?;
    match input::open(&args.input, 1, &signals)? {
        Opened::Files(source) => extract(args, *source, signals, meter),
        Opened::Live(sources) => match sources.into_iter().next() {
            Some(source) => extract(args, source, signals, meter),
            None => Err(anyhow!("the interface gave no source")),
        },
    }
}

fn extract<S: Source>(
    args: &HalvesArgs,
    source: S,
    signals: Signals,
    meter: Meter,
) -> anyhow::Result<Exit> {
    let paths = written(args).into_iter().map(|(_, path)| path);
    // Before the outputs start threads, which are bound too.
    let interface = args.input.interface.as_deref();
    restrict_run(
        args.is_live(),
        interface,
        outputs::written_directories(paths),
    )?;
    let mut outputs = open_outputs(args)?;
    let documents = open_documents(args)?;
    let mut stage = HalfStage::new(&HalvesConfig {
        file: args.file_number,
        ports: args.ports.clone(),
        timeout: args.timeout,
        // A secret of this process: nobody can aim at a bucket of the tables.
        hash_seed: RandomState::new().hash_one(0_u8),
        ..HalvesConfig::default()
    });
    let mut watcher = Watcher::new(signals, meter, NoView, args.is_live());
    let limit = Limit::new(args.input.count);
    let (mut report, outcome) = Run::new(&mut stage, &mut outputs, limit)
        .drive(source, |report, progress| watcher.look(report, progress));
    let elapsed = watcher.finish(&mut report);
    Ended {
        args,
        report,
        stage: &stage,
        elapsed,
    }
    .conclude(outcome, documents)
}

fn open_outputs(args: &HalvesArgs) -> anyhow::Result<Outputs<HalfKind>> {
    let output = &args.output;
    let options = OutputOptions {
        rotation: output.rotate,
        ..output.store.options(args.is_live())
    };
    outputs::open(&args.destinations(), output.format, &options)
}

/// Opens what is written when the run ends.
fn open_documents(args: &HalvesArgs) -> anyhow::Result<Documents> {
    let output = &args.output;
    let existing = output.store.files.existing(args.is_live());
    Ok(Documents {
        report: None,
        sketch: AtEnd::open("--sketch", output.sketch.as_deref(), existing)?,
        summary: AtEnd::open("--summary", output.summary.as_deref(), existing)?,
    })
}

/// What the run writes, with the flag that named it.
fn written(args: &HalvesArgs) -> Vec<(&'static str, &Path)> {
    let documents = [
        ("--summary", args.output.summary.as_deref()),
        ("--sketch", args.output.sketch.as_deref()),
    ];
    let documents = documents
        .into_iter()
        .filter_map(|(flag, to)| Some((flag, to?)));
    let records = args.destinations().into_iter().map(|to| ("-w", to));
    let all = records.chain(documents);
    all.map(|(flag, to)| (flag, Path::new(to))).collect()
}

/// Refuses outputs that would replace an input or one another.
fn check_conflicts(args: &HalvesArgs) -> anyhow::Result<()> {
    let read = args.input.read.iter().map(|path| ("-r", path.as_path()));
    let config = args.output.config.as_deref();
    let inputs: Vec<(&str, &Path)> = read.chain(config.map(|path| ("--config", path))).collect();
    conflicts::check(&written(args), &inputs).map_err(|message| anyhow!(Wrong(message)))
}
