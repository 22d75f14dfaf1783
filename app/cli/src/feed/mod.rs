//! `linkweir feed`: packets distributed to consumer processes, and the distribution of their hashes.

mod args;
mod histogram;
mod spread;
mod summary;
mod table;

use std::hash::{BuildHasher, RandomState};
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, anyhow};
use linkweir_engine::{
    FaultKind, FlowSplitter, Router, RunReport, Source, SourceError, SourceEvent, Splitter,
    TransactionSplitter,
};
use linkweir_feed::{
    ConsumerStatus, FeedError, Feeder, FeederOptions, Presence, Waiting, WhenFull,
};
use linkweir_http::{GroupsConfig, TransactionGroups};
use linkweir_record::human::counted;

use self::args::{By, Full};
use self::summary::{Totals, account};
use self::table::Table;
use crate::clock::now;
use crate::conflicts;
use crate::exit::{Exit, Wrong, say, warn};
use crate::outputs::AtEnd;
use crate::passive::input::{self, Opened};
use crate::signals::Signals;

pub(crate) use args::FeedArgs;

/// After a signal, consumers have this long to read what they were given.
const FAREWELL: Duration = Duration::from_secs(5);

/// Runs the command.
pub(crate) fn run(args: &FeedArgs) -> anyhow::Result<Exit> {
    if args.input.list_interfaces {
        return input::list_interfaces();
    }
    let started = now();
    let signals = Signals::install()?;
    check_conflicts(args)?;
    if let Some(destination) = &args.histogram {
        return histogram::run(args, destination, &signals);
    }
    let when_full = match (args.when_full, args.input.interface.is_empty()) {
        (Some(Full::Wait), _) | (None, true) => WhenFull::Wait,
        (Some(Full::Drop), _) | (None, false) => WhenFull::Drop,
    };
    let options = FeederOptions {
        name: args.name.clone().unwrap_or_default(),
        consumers: args.consumers.unwrap_or(1),
        ring_bytes: usize::try_from(args.ring).unwrap_or(usize::MAX),
        when_full,
    };
    let summary = AtEnd::open("--summary", args.summary.as_deref(), args.existing())?;
    let opened = input::open(&args.input, 1, &signals)?;
    // Before the feeder starts its thread, which is bound too.
    args.restrict()?;
    let feeder = Feeder::open(&options).map_err(|error| match error {
        FeedError::Io { .. } => anyhow!(error),
        other => anyhow!(Wrong(other.to_string())),
    })?;
    if !args.quiet {
        say(&format!(
            "linkweir: feeding {}; start each as: linkweir http --feed {}/K, K from 0 to {}",
            counted(options.consumers.into(), "consumer"),
            options.name,
            options.consumers - 1
        ));
    }
    let mut job = Job {
        args,
        name: options.name.clone(),
        signals,
        table: Table::new(args.quiet),
        report: RunReport::default(),
        told: vec![false; options.consumers as usize],
        deadline: None,
    };
    let (status, outcome) = match opened {
        Opened::Files(files) => job.split(*files, feeder),
        Opened::Live(sources) => {
            let source = sources.into_iter().next().context("no interface")?;
            job.split(source, feeder)
        }
    };
    job.table.clear();
    let ended = Ended {
        status: &status,
        elapsed: now().duration_since(started),
        when_full,
    };
    Ok(job.conclude(&ended, outcome, summary))
}

fn check_conflicts(args: &FeedArgs) -> anyhow::Result<()> {
    let histogram = args.histogram.as_deref();
    let outputs: Vec<(&str, &Path)> = args
        .summary
        .as_deref()
        .map(|path| ("--summary", Path::new(path)))
        .into_iter()
        .chain(histogram.map(|path| ("--histogram", path)))
        .collect();
    let read = args.input.read.iter().map(|path| ("-r", path.as_path()));
    let config = args.config.as_deref().map(|path| ("--config", path));
    let inputs: Vec<(&str, &Path)> = read.chain(config).collect();
    conflicts::check(&outputs, &inputs).map_err(|message| anyhow!(Wrong(message)))
}

/// A run that is under way.
struct Job<'a> {
    args: &'a FeedArgs,
    name: String,
    signals: Signals,
    table: Table,
    report: RunReport,
    /// Which consumers the user was asked to start.
    told: Vec<bool>,
    /// When to wait no longer, after a signal.
    deadline: Option<Instant>,
}

impl Job<'_> {
    fn split(
        &mut self,
        source: impl Source,
        feeder: Feeder,
    ) -> (Vec<ConsumerStatus>, Result<(), SourceError>) {
        match self.args.by {
            By::Transaction => {
                let groups = GroupsConfig {
                    // A secret of this process: nobody can aim at a bucket of the table.
                    hash_seed: RandomState::new().hash_one(0_u8),
                    ..GroupsConfig::default()
                };
                self.drive(source, feeder, &mut TransactionGroups::new(&groups))
            }
            By::Paper => self.drive(source, feeder, &mut TransactionSplitter),
            By::Flow => self.drive(source, feeder, &mut FlowSplitter),
        }
    }

    fn drive(
        &mut self,
        mut source: impl Source,
        mut feeder: Feeder,
        splitter: &mut impl Splitter,
    ) -> (Vec<ConsumerStatus>, Result<(), SourceError>) {
        let limit = self.args.input.count.unwrap_or(u64::MAX);
        let mut router = Router::new(splitter, source.is_distributed());
        let mut outcome = Ok(());
        while !self.signals.stop() && self.report.packets < limit {
            match source.next_event() {
                Ok(SourceEvent::End) => break,
                Ok(SourceEvent::Idle) => {
                    let now = source.now();
                    if now.is_some() {
                        feeder.give_up(now, &mut router, &mut |feeder, waiting| {
                            self.goes_on_waiting(feeder, waiting)
                        });
                    }
                    feeder.idle(now);
                }
                Ok(SourceEvent::Fault(fault)) => {
                    warn(&match fault.offset {
                        Some(offset) => {
                            format!("{}: at byte {offset}: {}", fault.input, fault.message)
                        }
                        None => format!("{}: {}", fault.input, fault.message),
                    });
                    self.report.faults.push(fault);
                }
                Ok(SourceEvent::Batch(batch)) => {
                    let left = usize::try_from(limit - self.report.packets).unwrap_or(usize::MAX);
                    let batch = batch.first(left);
                    account(&mut self.report, &batch);
                    feeder.distribute(&batch, &mut router, &mut |feeder, waiting| {
                        self.goes_on_waiting(feeder, waiting)
                    });
                }
                Err(error) => {
                    outcome = Err(error);
                    break;
                }
            }
            self.report.drops = source.drops();
            self.show(&mut feeder);
        }
        self.report.inputs = source.inputs();
        drop(source);
        if self.signals.stop() {
            feeder.stop_waiting();
        }
        feeder.give_up(None, &mut router, &mut |feeder, waiting| {
            self.goes_on_waiting(feeder, waiting)
        });
        self.report.fragments = router.parts().stats;
        let status = feeder.finish(&mut |feeder, waiting| {
            if self.signals.stop() {
                feeder.stop_waiting();
                let deadline = *self.deadline.get_or_insert_with(|| now() + FAREWELL);
                self.show(feeder);
                return now() < deadline;
            }
            self.goes_on_waiting(feeder, waiting)
        });
        (status, outcome)
    }

    /// Called while the feeder can do nothing but wait.
    fn goes_on_waiting(&mut self, feeder: &mut Feeder, waiting: Waiting) -> bool {
        let consumer = waiting.consumer;
        if waiting.presence == Presence::NotYet
            && !self.args.quiet
            && let Some(told) = self.told.get_mut(consumer)
            && !std::mem::replace(told, true)
        {
            self.table.clear();
            say(&format!(
                "linkweir: waiting for consumer {consumer}; start it with: linkweir http --feed {}/{consumer}",
                self.name
            ));
        }
        self.show(feeder);
        !self.signals.stop()
    }

    fn show(&mut self, feeder: &mut Feeder) {
        if self.signals.take_report() {
            self.table.say(&feeder.status(), &self.report);
        }
        if self.table.is_due() {
            self.table.draw(&feeder.status(), &self.report);
        }
    }

    fn totals<'a>(&'a self, ended: &Ended<'a>) -> Totals<'a> {
        Totals {
            report: &self.report,
            status: ended.status,
            elapsed: ended.elapsed,
            name: &self.name,
            by: self.args.by,
            when_full: ended.when_full,
        }
    }

    /// Says how it went and chooses the exit code.
    fn conclude(
        &mut self,
        ended: &Ended<'_>,
        outcome: Result<(), SourceError>,
        summary: Option<AtEnd>,
    ) -> Exit {
        let mut exit = Exit::Done;
        if let Err(error) = outcome {
            warn(&error.to_string());
            exit = Exit::Failed;
        }
        if let Some(document) = summary {
            let lost = document.write_json(&self.totals(ended).to_json());
            self.report.losses.extend(lost);
        }
        let totals = self.totals(ended);
        if !self.args.quiet {
            say(&totals.to_screen());
        }
        let is_unusable = |fault: &linkweir_engine::Fault| fault.kind == FaultKind::Unusable;
        if self.report.faults.iter().any(is_unusable) {
            exit = exit.max(Exit::Failed);
        }
        if totals.is_lossy() {
            exit = exit.max(Exit::DataLost);
        }
        exit
    }
}

/// A feed that is over.
struct Ended<'a> {
    status: &'a [ConsumerStatus],
    elapsed: Duration,
    when_full: WhenFull,
}
