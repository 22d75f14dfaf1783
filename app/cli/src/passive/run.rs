//! Wires a run: source, stages, outputs, signals.

use anyhow::anyhow;
use linkweir_capture::CaptureFiles;
use linkweir_capture::live::LiveSource;
use linkweir_engine::{
    Frame, Limit, Outputs, Pieces, Port, Run, RunError, Source, Turns, Workers, WorkersReport,
    distribute, distribute_shared, piece_queues, run_in_turns, run_workers,
};
use linkweir_feed::{Consumer, Producer};
use linkweir_sink::OutputOptions;

use super::command::{Passive, Share};
use super::conclude::Ending;
use super::input::{self, Opened};
use super::watch::Watcher;
use crate::conflicts;
use crate::exit::{Exit, Wrong, warn};
use crate::outputs::{self, AtEnd, Documents};
use crate::progress::Meter;
use crate::signals::Signals;

/// Runs a command over what its flags name.
pub(crate) fn run<C: Passive>(command: &C) -> anyhow::Result<Exit> {
    let flags = command.flags();
    if flags.input.list_interfaces {
        return input::list_interfaces();
    }
    let ready = Ready::new(command)?;
    if let Some((feeder, feed)) = flags
        .feeder
        .and_then(|from| Some((from, from.feed.as_ref()?)))
    {
        let wait = || warn(&format!("waiting for feeder {}", feed.feed));
        let stop = ready.signals.stop_flag();
        let source = linkweir_feed::attach(feed, stop, feeder.feed_wait, &mut { wait })?;
        return ready.start()?.one_or_distributed(source);
    }
    let opened = input::open(flags.input, command.sockets(), &ready.signals)?;
    let job = ready.start()?;
    match opened {
        Opened::Files(source) if job.ending.flags.workers > 1 => {
            if C::IS_MOSTLY_READING {
                job.in_turns(*source)
            } else {
                job.by_sharing(*source)
            }
        }
        Opened::Files(source) => job.alone(*source),
        Opened::Live(sources) if sources.len() > 1 => job.by_kernel(sources),
        Opened::Live(sources) => match sources.into_iter().next() {
            Some(source) => job.one_or_distributed(source),
            None => Err(anyhow!("the interface gave no source")),
        },
    }
}

/// Runs a command over a source that it has opened itself.
#[cfg(feature = "parquet")]
pub(crate) fn run_over<C: Passive>(command: &C, source: impl Source) -> anyhow::Result<Exit> {
    Ready::new(command)?.start()?.alone(source)
}

/// A run whose flags have been checked.
struct Ready<'a, C: Passive> {
    command: &'a C,
    config: C::Config,
    meter: Meter,
    signals: Signals,
}

impl<'a, C: Passive> Ready<'a, C> {
    fn new(command: &'a C) -> anyhow::Result<Self> {
        let flags = command.flags();
        flags.output.store.choice.prepare();
        let is_covered = flags.has_top() || outputs::are_shown(&flags.destinations());
        let meter = Meter::start(flags.output.quiet || is_covered);
        let signals = Signals::install()?;
        conflicts::check(&flags.written(), &flags.read())
            .map_err(|message| anyhow!(Wrong(message)))?;
        Ok(Self {
            command,
            config: command.config()?,
            meter,
            signals,
        })
    }

    /// Opens everything that is written; the input is open.
    fn start(self) -> anyhow::Result<Job<'a, C>> {
        let Self {
            command,
            config,
            meter,
            signals,
        } = self;
        let flags = command.flags();
        let (output, is_live) = (flags.output, flags.is_live());
        let programs = command.open_programs()?;
        // Before the outputs start threads, which are bound too.
        let written = flags.written().into_iter().map(|(_, path)| path);
        let interfaces = &flags.input.interface;
        outputs::restrict_run(is_live, interfaces, outputs::written_directories(written))?;
        command.start_readers()?;
        let options = OutputOptions {
            rotation: output.rotate,
            ..output.store.options(is_live)
        };
        let existing = options.existing;
        let mut outputs = command.open_outputs(&flags.destinations(), options)?;
        for (name, sink) in programs {
            outputs.add(name, sink);
        }
        if output.store.files.overwrite {
            outputs.keep_unless_read();
        }
        let report = flags.page.and_then(|page| page.report.as_deref());
        let report_name = report.map(|path| path.to_string_lossy());
        let documents = Documents {
            report: AtEnd::open("--report", report_name.as_deref(), existing)?,
            sketch: AtEnd::open("--sketch", flags.sketch, existing)?,
            summary: AtEnd::open("--summary", output.summary.as_deref(), existing)?,
        };
        let page = report.and_then(|_| C::page(&mut outputs));
        let packets = command.packets(&mut outputs)?;
        let view = command.view(&mut outputs, &signals)?;
        Ok(Job {
            command,
            config,
            outputs,
            ending: Ending {
                flags,
                documents,
                page,
                watcher: Watcher::new(signals, meter, view, packets, is_live),
            },
        })
    }
}

/// A run with everything opened but its source.
struct Job<'a, C: Passive> {
    command: &'a C,
    config: C::Config,
    outputs: Outputs<C::Record>,
    ending: Ending<'a>,
}

impl<C: Passive> Job<'_, C> {
    /// One source on this thread, or distributed to several workers by a reader.
    fn one_or_distributed<S: Source + Send>(self, source: S) -> anyhow::Result<Exit> {
        if self.ending.flags.workers > 1 {
            self.by_reader(source)
        } else {
            self.alone(source)
        }
    }

    fn alone(mut self, source: impl Source) -> anyhow::Result<Exit> {
        let share = Share::Source {
            is_distributed: source.is_distributed(),
        };
        let mut stage = self.command.stage(&self.config, share);
        let limit = Limit::new(self.ending.flags.input.count);
        let watcher = &mut self.ending.watcher;
        let source = watcher.packets.keep(source);
        let (report, outcome) = Run::new(&mut stage, &mut self.outputs, limit)
            .sorted(self.ending.flags.is_sorted)
            .cut_at(watcher.interval_end())
            .drive(source, |report, progress| watcher.look(report, progress));
        self.ending.conclude::<C>(report, &[], &[stage], outcome)
    }

    /// Sources that the kernel distributes to, each with a worker.
    fn by_kernel(self, sources: Vec<LiveSource>) -> anyhow::Result<Exit> {
        let count = u32::try_from(sources.len()).unwrap_or(u32::MAX);
        let stage = |index| {
            self.command
                .stage(&self.config, Share::Kernel { index, count })
        };
        let packets = &self.ending.watcher.packets;
        let sources = sources.into_iter().map(|source| packets.keep(source));
        let workers = Workers {
            shards: sources.zip((0..).map(stage)).collect(),
            dispatcher: None,
            limit: Limit::new(self.ending.flags.input.count),
            is_sorted: self.ending.flags.is_sorted,
        };
        self.by_workers(workers)
    }

    /// A thread reads the source and distributes its frames to the workers.
    fn by_reader<S: Source + Send>(self, source: S) -> anyhow::Result<Exit> {
        let count = u32::try_from(self.ending.flags.workers).unwrap_or(u32::MAX);
        let stage = |index| {
            self.command
                .stage(&self.config, Share::Reader { index, count })
        };
        let source = self.ending.watcher.packets.keep(source);
        let (mut ports, consumers) = rings(self.ending.flags.workers)?;
        let (config, limit) = (
            self.config.clone(),
            Limit::new(self.ending.flags.input.count),
        );
        let workers = Workers::<Consumer, C::Stage> {
            shards: consumers.into_iter().zip((0..).map(stage)).collect(),
            dispatcher: Some(Box::new(move |state| {
                let mut splitter = C::splitter(&config, ports.len());
                distribute(source, &mut splitter, &mut ports, &limit, state);
                C::on_distributed(&splitter);
            })),
            limit: Limit::default(),
            is_sorted: self.ending.flags.is_sorted,
        };
        self.by_workers(workers)
    }

    /// The same for files: what is read is shared, and no frame copied.
    fn by_sharing(self, source: CaptureFiles) -> anyhow::Result<Exit> {
        let flags = &self.ending.flags;
        let count = u32::try_from(flags.workers).unwrap_or(u32::MAX);
        let stage = |index| {
            self.command
                .stage(&self.config, Share::Reader { index, count })
        };
        let source = self.ending.watcher.packets.keep(source);
        let buffer_bytes = usize::try_from(flags.input.read_size).unwrap_or(usize::MAX);
        let pieces = (RING_BYTES / buffer_bytes.max(1)).clamp(1, 8);
        let (queues, consumers) = piece_queues(flags.workers, pieces);
        let (config, limit) = (self.config.clone(), Limit::new(flags.input.count));
        let workers = Workers::<Pieces, C::Stage> {
            shards: consumers.into_iter().zip((0..).map(stage)).collect(),
            dispatcher: Some(Box::new(move |state| {
                let mut splitter = C::splitter(&config, queues.len());
                distribute_shared(source, &mut splitter, &queues, &limit, state);
                C::on_distributed(&splitter);
            })),
            limit: Limit::default(),
            is_sorted: flags.is_sorted,
        };
        self.by_workers(workers)
    }

    /// Files where reading is most of the work: one stage, and threads that take turns.
    fn in_turns(mut self, source: CaptureFiles) -> anyhow::Result<Exit> {
        let share = Share::Source {
            is_distributed: false,
        };
        let (flags, watcher) = (&self.ending.flags, &mut self.ending.watcher);
        let turns = Turns {
            source: watcher.packets.keep(source),
            stage: self.command.stage(&self.config, share),
            threads: flags.workers,
            limit: Limit::new(flags.input.count),
            is_sorted: flags.is_sorted,
        };
        let ended = run_in_turns(turns, &mut self.outputs, |report, progress| {
            watcher.look(report, progress)
        });
        self.conclude(ended)
    }

    fn by_workers<S: Source + Send>(
        mut self,
        workers: Workers<'_, S, C::Stage>,
    ) -> anyhow::Result<Exit> {
        let watcher = &mut self.ending.watcher;
        let ended = run_workers(workers, &mut self.outputs, |report, progress| {
            watcher.look(report, progress)
        });
        self.conclude(ended)
    }

    fn conclude(
        self,
        (report, outcome): (WorkersReport<C::Stage>, Result<(), RunError>),
    ) -> anyhow::Result<Exit> {
        self.ending
            .conclude::<C>(report.total, &report.each, &report.stages, outcome)
    }
}

/// Bytes of the ring between the reader and each worker.
const RING_BYTES: usize = 8 << 20;

/// The reader's end of a ring.
struct RingPort(Producer);

/// A ring for each of several workers: the reader's ends, and those of the workers.
fn rings(workers: usize) -> anyhow::Result<(Vec<RingPort>, Vec<Consumer>)> {
    let (mut ports, mut consumers) = (Vec::new(), Vec::new());
    for worker in 0..workers {
        let (port, consumer) = linkweir_feed::ring(RING_BYTES, &format!("worker {worker}"))?;
        ports.push(RingPort(port));
        consumers.push(consumer);
    }
    Ok((ports, consumers))
}

impl Port for RingPort {
    fn push(&mut self, frame: &Frame<'_>) -> bool {
        self.0.push_wait(frame).is_ok()
    }

    fn flush(&mut self) {
        self.0.flush();
    }
}

impl Drop for RingPort {
    fn drop(&mut self) {
        self.0.finish();
    }
}
