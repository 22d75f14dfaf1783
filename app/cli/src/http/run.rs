//! Wires a run of `linkweir http`: source, stages, sinks, signals.

use anyhow::anyhow;
use linkweir_capture::live::LiveSource;
use linkweir_engine::{Limit, Outputs, Run, Source, Workers, distribute, run_workers};
use linkweir_feed::Consumer;
use linkweir_http::{GroupsConfig, HttpConfig, HttpStage, Shard, TransactionGroups};
use linkweir_record::HttpKind;
use linkweir_report::HttpReport;
use linkweir_sink::human::counted;

use super::args::HttpArgs;
use super::conclude::Ended;
#[cfg(feature = "parquet")]
use super::halves::HalvesSource;
use super::setup::{
    check_conflicts, open_documents, open_outputs, settings, written, written_directories,
};
use crate::args::Fanout;
use crate::exit::{Exit, warn};
use crate::input::{self, Opened};
use crate::interfaces;
use crate::outputs::{self, Documents, SharedReport, restrict_run};
use crate::progress::Meter;
use crate::rings::rings;
use crate::signals::Signals;
use crate::view::{Subject, View};
use crate::watch::Watcher;

/// Runs the command.
pub(crate) fn run(args: &HttpArgs) -> anyhow::Result<Exit> {
    if args.input.list_interfaces {
        return interfaces::list();
    }
    let is_covered = args.view.has_top() || outputs::are_shown(&args.destinations());
    let meter = Meter::start(args.output.quiet || is_covered);
    let signals = Signals::install()?;
    check_conflicts(args)?;
    let config = settings(&args.tracking)?;
    let page = args.output.report.as_ref().map(|_| SharedReport::default());
    let workers = args.workers.workers;
    let by_kernel = args.workers.fanout == Fanout::Kernel && !args.tracking.ttlb;
    let sockets = if by_kernel { workers } else { 1 };
    if let Some(feed) = &args.feed {
        let wait = || warn(&format!("waiting for feeder {}", feed.feed));
        let source =
            linkweir_feed::attach(feed, signals.stop_flag(), args.feed_wait, &mut { wait })?;
        let job = Job::start(args, config, signals, meter, page)?;
        return job.one_or_distributed(source, workers);
    }
    #[cfg(feature = "parquet")]
    if !args.halves().is_empty() {
        let source = HalvesSource::new(args.halves());
        return Job::start(args, config, signals, meter, page)?.alone(source);
    }
    let opened = input::open(&args.input, sockets, &signals)?;
    let job = Job::start(args, config, signals, meter, page)?;
    match opened {
        Opened::Files(source) => job.one_or_distributed(*source, workers),
        Opened::Live(sources) if sources.len() > 1 => job.by_kernel(sources),
        Opened::Live(sources) => match sources.into_iter().next() {
            Some(source) => job.one_or_distributed(source, workers),
            None => Err(anyhow!("the interface gave no source")),
        },
    }
}

/// A run with everything opened but its source.
struct Job<'a> {
    args: &'a HttpArgs,
    config: HttpConfig,
    outputs: Outputs<HttpKind>,
    documents: Documents,
    page: Option<SharedReport<HttpReport>>,
    watcher: Watcher<View>,
}

impl<'a> Job<'a> {
    fn start(
        args: &'a HttpArgs,
        config: HttpConfig,
        signals: Signals,
        meter: Meter,
        page: Option<SharedReport<HttpReport>>,
    ) -> anyhow::Result<Self> {
        let is_live = args.is_live();
        // Before the outputs start threads, which are bound too.
        let interface = args.input.interface.as_deref();
        restrict_run(is_live, interface, written_directories(args))?;
        let mut outputs = open_outputs(args)?;
        let documents = open_documents(args)?;
        if let Some(page) = &page {
            outputs.add_observer(Box::new(page.clone()));
        }
        let source = args.source_names().join(" ");
        let destinations = &args.output.write;
        let subject = Subject::of_run(&source, is_live, destinations, &written(args));
        #[cfg(not(feature = "kafka"))]
        let view = View::start(&args.view, &subject, &signals)?;
        #[cfg(feature = "kafka")]
        let view = View::start_probe(
            &args.view,
            (destinations, &args.output.store),
            &subject,
            &signals,
        )?;
        if let Some(live) = view.sink() {
            outputs.add_observer(live);
        }
        Ok(Self {
            args,
            config,
            outputs,
            documents,
            page,
            watcher: Watcher::new(signals, meter, view, is_live),
        })
    }

    /// One source on this thread, or distributed to several workers by a reader.
    fn one_or_distributed<S: Source + Send>(
        self,
        source: S,
        workers: usize,
    ) -> anyhow::Result<Exit> {
        if workers > 1 {
            self.by_reader(source, workers)
        } else {
            self.alone(source)
        }
    }

    fn alone<S: Source>(mut self, source: S) -> anyhow::Result<Exit> {
        let mut stage = HttpStage::new(&HttpConfig {
            is_reassembled: source.is_distributed(),
            has_whole_connections: !source.is_distributed() && self.args.halves().is_empty(),
            ..self.config.clone()
        });
        let limit = Limit::new(self.args.input.count);
        let (mut report, outcome) = Run::new(&mut stage, &mut self.outputs, limit)
            .sorted(self.args.tracking.sort)
            .drive(source, |report, progress| {
                self.watcher.look(report, progress)
            });
        let elapsed = self.watcher.finish(&mut report);
        let papers = (self.page, self.documents);
        let ended = Ended::new(self.args, report, &[], &[stage], elapsed, papers);
        self.watcher.stay_with(ended.conclude(outcome))
    }

    /// Sources that the kernel distributes to, each with a worker.
    fn by_kernel(self, sources: Vec<LiveSource>) -> anyhow::Result<Exit> {
        let sockets = sources.len();
        let count = u32::try_from(sockets).unwrap_or(u32::MAX);
        let shards = sources
            .into_iter()
            .zip(0..)
            .map(|(source, index)| {
                let config = HttpConfig {
                    shard: Some(Shard { index, count }),
                    ..self.share_of(sockets)
                };
                (source, HttpStage::new(&config))
            })
            .collect();
        let workers = Workers {
            shards,
            dispatcher: None,
            limit: Limit::new(self.args.input.count),
            is_sorted: self.args.tracking.sort,
        };
        self.by_workers(workers)
    }

    /// A thread reads the source and distributes its frames to the workers.
    fn by_reader<S: Source + Send>(self, source: S, workers: usize) -> anyhow::Result<Exit> {
        let config = HttpConfig {
            is_reassembled: true,
            ..self.share_of(workers)
        };
        let (mut ports, consumers) = rings(workers)?;
        let shards = consumers
            .into_iter()
            .map(|consumer| (consumer, HttpStage::new(&config)))
            .collect();
        let limit = Limit::new(self.args.input.count);
        let groups = GroupsConfig {
            connections: GroupsConfig::default()
                .connections
                .max(self.config.max_pending),
            hash_seed: config.hash_seed,
            ..GroupsConfig::default()
        };
        let workers = Workers::<Consumer, HttpStage> {
            shards,
            dispatcher: Some(Box::new(move |state| {
                let mut splitter = TransactionGroups::new(&groups);
                distribute(source, &mut splitter, &mut ports, &limit, state);
                let forgotten = splitter.counts().forgotten;
                if forgotten > 0 {
                    warn(&format!(
                        "the reader follows {} connections and has forgotten {} with unanswered requests: the records may differ from those of one worker; --max-pending raises the bound",
                        groups.connections,
                        counted(forgotten, "connection")
                    ));
                }
            })),
            limit: Limit::default(),
            is_sorted: self.args.tracking.sort,
        };
        self.by_workers(workers)
    }

    fn by_workers<S: Source + Send>(
        mut self,
        workers: Workers<'_, S, HttpStage>,
    ) -> anyhow::Result<Exit> {
        let watcher = &mut self.watcher;
        let (mut report, outcome) = run_workers(workers, &mut self.outputs, |report, progress| {
            watcher.look(report, progress)
        });
        let elapsed = self.watcher.finish(&mut report.total);
        let ended = Ended::new(
            self.args,
            report.total,
            &report.each,
            &report.stages,
            elapsed,
            (self.page, self.documents),
        );
        self.watcher.stay_with(ended.conclude(outcome))
    }

    /// The settings of one of several stages: the bound on waiting messages is for all together.
    fn share_of(&self, workers: usize) -> HttpConfig {
        HttpConfig {
            max_pending: self.config.max_pending.div_ceil(workers),
            has_whole_connections: workers < 2,
            ..self.config.clone()
        }
    }
}
