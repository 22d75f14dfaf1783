//! Wires a run of `linkweir flows`: source, stages, sinks, signals.

use anyhow::anyhow;
use linkweir_engine::{
    Limit, NamedFlowSplitter, Outputs, Run, Source, Workers, distribute, run_workers,
};
use linkweir_feed::Consumer;
use linkweir_flows::{FlowsConfig, FlowsStage};
use linkweir_record::FlowKind;
use linkweir_report::FlowReport;

use super::args::FlowsArgs;
use super::conclude::Ended;
use super::setup::{
    check_conflicts, open_documents, open_outputs, settings, written, written_directories,
};
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
pub(crate) fn run(args: &FlowsArgs) -> anyhow::Result<Exit> {
    if args.input.list_interfaces {
        return interfaces::list();
    }
    let is_covered = args.view.has_top() || outputs::are_shown(&args.destinations());
    let meter = Meter::start(args.output.quiet || is_covered);
    let signals = Signals::install()?;
    check_conflicts(args)?;
    let config = settings(args)?;
    if let Some(feed) = &args.feed {
        let wait = || warn(&format!("waiting for feeder {}", feed.feed));
        let source =
            linkweir_feed::attach(feed, signals.stop_flag(), args.feed_wait, &mut { wait })?;
        return Job::start(args, config, signals, meter)?.one_or_distributed(source);
    }
    let opened = input::open(&args.input, 1, &signals)?;
    let job = Job::start(args, config, signals, meter)?;
    match opened {
        Opened::Files(source) => job.one_or_distributed(*source),
        Opened::Live(sources) => match sources.into_iter().next() {
            Some(source) => job.one_or_distributed(source),
            None => Err(anyhow!("the interface gave no source")),
        },
    }
}

/// A run with everything opened but its source.
struct Job<'a> {
    args: &'a FlowsArgs,
    config: FlowsConfig,
    outputs: Outputs<FlowKind>,
    watcher: Watcher<View<FlowKind>>,
    page: Option<SharedReport<FlowReport>>,
    documents: Documents,
}

impl<'a> Job<'a> {
    fn start(
        args: &'a FlowsArgs,
        config: FlowsConfig,
        signals: Signals,
        meter: Meter,
    ) -> anyhow::Result<Self> {
        let is_live = args.is_live();
        // Before the outputs start threads, which are bound too.
        let interface = args.input.interface.as_deref();
        restrict_run(is_live, interface, written_directories(args))?;
        let mut outputs = open_outputs(args)?;
        let documents = open_documents(args)?;
        let page = args.output.report.as_ref().map(|_| SharedReport::default());
        if let Some(page) = &page {
            outputs.add_observer(Box::new(page.clone()));
        }
        let source = match &args.feed {
            Some(feed) => feed.to_string(),
            None => input::names(&args.input).join(" "),
        };
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
            watcher: Watcher::new(signals, meter, view, is_live),
            page,
            documents,
        })
    }

    /// One source on this thread, or distributed to several workers by a reader.
    fn one_or_distributed<S: Source + Send>(self, source: S) -> anyhow::Result<Exit> {
        if self.args.workers > 1 {
            self.by_reader(source)
        } else {
            self.alone(source)
        }
    }

    fn alone<S: Source>(mut self, source: S) -> anyhow::Result<Exit> {
        let mut stage = FlowsStage::new(&FlowsConfig {
            is_reassembled: source.is_distributed(),
            ..self.config.clone()
        });
        let limit = Limit::new(self.args.input.count);
        let (mut report, outcome) = Run::new(&mut stage, &mut self.outputs, limit)
            .drive(source, |report, progress| {
                self.watcher.look(report, progress)
            });
        let elapsed = self.watcher.finish(&mut report);
        let papers = (self.page, self.documents);
        let ended = Ended::new(self.args, report, &[], &[stage], elapsed, papers);
        self.watcher.stay_with(ended.conclude(outcome))
    }

    /// A thread reads the source and distributes its frames to the workers by flow.
    fn by_reader<S: Source + Send>(mut self, source: S) -> anyhow::Result<Exit> {
        let workers = self.args.workers;
        let (mut ports, consumers) = rings(workers)?;
        let shards = consumers
            .into_iter()
            .zip(0..)
            .map(|(consumer, shard)| {
                let config = FlowsConfig {
                    // The bound is for all together.
                    max_flows: self.config.max_flows.div_ceil(workers),
                    shard: (shard, u32::try_from(workers).unwrap_or(u32::MAX)),
                    is_reassembled: true,
                    ..self.config.clone()
                };
                (consumer, FlowsStage::new(&config))
            })
            .collect();
        let limit = Limit::new(self.args.input.count);
        let workers = Workers::<Consumer, FlowsStage> {
            shards,
            dispatcher: Some(Box::new(move |state| {
                distribute(source, &mut NamedFlowSplitter, &mut ports, &limit, state);
            })),
            limit: Limit::default(),
            is_sorted: false,
        };
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
}
