//! What one passive command has of its own, and the flags that all have.

use std::cell::RefCell;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;

use linkweir_console::Pages;
use linkweir_engine::{Outputs, RunReport, Sink, SinkError, Splitter, Stage};
use linkweir_live::sketch::Mergeable;
use linkweir_record::RecordKind;
use linkweir_report::ReportMeta;
use linkweir_sink::OutputOptions;
use linkweir_wire::{DecodeFaults, FragmentStats};

use super::args::{FeederArgs, InputArgs, OutputArgs, PageArgs};
use super::totals::Counters;
use super::watch::Viewer;
use crate::common_args::ViewArgs;
use crate::merge::sketch::HttpTotals;
use crate::outputs;
use crate::packets::Packets;
use crate::signals::Signals;
use crate::view::{Subject, View, Viewed};

/// A command that reads packets and writes records.
pub(crate) trait Passive {
    type Record: RecordKind<Batch: Clone + Send>;
    type Stage: Stage<Record = Self::Record> + Send;
    type Config: Clone + Send;
    type Counters: Counters;
    /// Distributes the packets of a reader to workers.
    type Splitter: Splitter;
    /// Whether to read a file of full packets takes longer than to analyse it: its workers then divide the reading.
    const IS_MOSTLY_READING: bool;

    fn flags(&self) -> Flags<'_>;

    /// The configuration of a stage that gets all packets.
    fn config(&self) -> anyhow::Result<Self::Config>;

    /// Starts what reads beside the packets, when rights are given up.
    fn start_readers(&self) -> anyhow::Result<()> {
        Ok(())
    }

    /// Opens the outputs, by name, that start another program: nobody may after rights are given up.
    fn open_programs(&self) -> anyhow::Result<Vec<Named<Self::Record>>> {
        Ok(Vec::new())
    }

    fn open_outputs(
        &self,
        destinations: &[&str],
        options: OutputOptions,
    ) -> anyhow::Result<Outputs<Self::Record>>;

    fn stage(&self, config: &Self::Config, share: Share) -> Self::Stage;

    /// Adds what a stage has counted.
    fn count(
        stage: &Self::Stage,
        counters: &mut Self::Counters,
        faults: &mut DecodeFaults,
        fragments: &mut FragmentStats,
    );

    /// Sockets of an interface among which the kernel distributes packets.
    fn sockets(&self) -> usize {
        1
    }

    /// What distributes to so many workers.
    fn splitter(config: &Self::Config, workers: usize) -> Self::Splitter;

    /// Says what there is to say of what was distributed.
    fn on_distributed(_splitter: &Self::Splitter) {}

    /// Starts the live view that the flags ask for.
    fn view(
        &self,
        _outputs: &mut Outputs<Self::Record>,
        _signals: &Signals,
    ) -> anyhow::Result<Option<Box<dyn Viewer>>> {
        Ok(None)
    }

    /// Starts to keep the packets that the flags ask for.
    fn packets(&self, _outputs: &mut Outputs<Self::Record>) -> anyhow::Result<Packets> {
        Ok(Packets::default())
    }

    /// Collects what the page of `--report` shows.
    fn page(_outputs: &mut Outputs<Self::Record>) -> Option<Page> {
        None
    }

    /// What `--sketch` holds beside packets, bytes and faults.
    fn http_totals(_report: &RunReport, _counters: &Self::Counters) -> Option<HttpTotals> {
        None
    }
}

/// An output with its name.
pub(crate) type Named<R> = (String, Box<dyn Sink<R>>);

/// Which packets a stage gets.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Share {
    /// All of a source, which may itself be a consumer of a feeder.
    Source { is_distributed: bool },
    /// What a reader thread sends to worker `index` of `count`.
    Reader { index: u32, count: u32 },
    /// What the kernel sends to socket `index` of `count`.
    Kernel { index: u32, count: u32 },
}

/// Renders the page of `--report`.
pub(crate) type Page = Box<dyn FnOnce(&ReportMeta) -> String>;

/// The flags that passive commands have in common, as far as one has them.
pub(crate) struct Flags<'a> {
    pub(crate) input: &'a InputArgs,
    pub(crate) feeder: Option<&'a FeederArgs>,
    /// Files of half-transactions that are read instead of packets.
    pub(crate) halves: &'a [PathBuf],
    pub(crate) output: &'a OutputArgs,
    pub(crate) page: Option<&'a PageArgs>,
    pub(crate) sketch: Option<&'a str>,
    pub(crate) view: Option<&'a ViewArgs>,
    /// Hosts with series of their own in `/metrics`.
    pub(crate) metrics_hosts: usize,
    pub(crate) workers: usize,
    pub(crate) is_sorted: bool,
    /// Further files that are read, and written, with the flags that name them.
    pub(crate) reads: Vec<(&'static str, &'a Path)>,
    pub(crate) writes: Vec<(&'static str, &'a Path)>,
}

impl<'a> Flags<'a> {
    /// Where the records go.
    pub(crate) fn destinations(&self) -> Vec<&'a str> {
        let nowhere = self.page.is_some_and(|page| page.no_output) || self.has_top();
        outputs::destinations(&self.output.write, nowhere)
    }

    pub(crate) fn has_top(&self) -> bool {
        self.view.is_some_and(|view| view.top)
    }

    /// Whether packets come as they are sent, and do not wait.
    pub(crate) fn is_live(&self) -> bool {
        !self.input.interface.is_empty() || self.feeder.is_some_and(|from| from.feed.is_some())
    }

    /// The inputs, as the user named them.
    pub(crate) fn source_names(&self) -> Vec<String> {
        if let Some(feed) = self.feeder.and_then(|from| from.feed.as_ref()) {
            return vec![feed.to_string()];
        }
        if !self.input.interface.is_empty() {
            return self.input.interface.clone();
        }
        let paths = self.input.read.iter().chain(self.halves);
        paths.map(|path| path.display().to_string()).collect()
    }

    /// What the run writes, with the flags that name it.
    pub(crate) fn written(&self) -> Vec<(&'static str, &'a Path)> {
        let records = self
            .destinations()
            .into_iter()
            .map(|to| ("-w", Path::new(to)));
        let documents = [
            ("--summary", self.output.summary.as_deref().map(Path::new)),
            (
                "--report",
                self.page.and_then(|page| page.report.as_deref()),
            ),
            ("--sketch", self.sketch.map(Path::new)),
        ];
        let documents = documents
            .into_iter()
            .filter_map(|(flag, to)| Some((flag, to?)));
        records
            .chain(documents)
            .chain(self.writes.iter().copied())
            .chain(self.view.and_then(ViewArgs::written))
            .collect()
    }

    /// The files that the run reads, with the flags that name them.
    pub(crate) fn read(&self) -> Vec<(&'static str, &'a Path)> {
        let captures = self.input.read.iter().map(|path| ("-r", path.as_path()));
        let halves = self
            .halves
            .iter()
            .map(|path| ("--from-halves", path.as_path()));
        let key = self.page.and_then(|page| page.anonymize.as_deref());
        let others = [
            ("--anonymize", key),
            ("--config", self.output.config.as_deref()),
        ];
        let others = others
            .into_iter()
            .filter_map(|(flag, path)| Some((flag, path?)));
        captures
            .chain(halves)
            .chain(others)
            .chain(self.reads.iter().copied())
            .collect()
    }
}

/// Starts the live view of a command and lets it see the records.
pub(crate) fn start_view<K: Viewed + Mergeable>(
    flags: &Flags<'_>,
    outputs: &mut Outputs<K>,
    signals: &Signals,
    pages: Option<Arc<dyn Pages>>,
) -> anyhow::Result<Option<Box<dyn Viewer>>> {
    let Some(args) = flags.view else {
        return Ok(None);
    };
    let source = flags.source_names().join(" ");
    let destinations = &flags.output.write;
    let subject = Subject {
        pages,
        metrics_hosts: flags.metrics_hosts,
        end: flags.output.store.end(),
        has_places: flags.page.is_some_and(|page| !page.geoip.is_empty()),
        ..Subject::of_run(&source, flags.is_live(), destinations, &flags.written())
    };
    #[cfg(not(feature = "kafka"))]
    let view = View::<K>::start(args, &subject, signals)?;
    #[cfg(feature = "kafka")]
    let view =
        View::<K>::start_probe(args, (destinations, &flags.output.store), &subject, signals)?;
    if let Some(live) = view.sink() {
        outputs.add_observer(live);
    }
    Ok(Some(Box::new(view)))
}

/// Lets a report see the records, which `render` makes a page of when the run has ended.
pub(crate) fn start_page<K: RecordKind, R: Sink<K> + Default + 'static>(
    outputs: &mut Outputs<K>,
    render: fn(&R, &ReportMeta) -> String,
) -> Option<Page> {
    let report = Rc::new(RefCell::new(R::default()));
    outputs.add_observer(Box::new(Observer(Rc::clone(&report))));
    Some(Box::new(move |meta| render(&report.borrow(), meta)))
}

/// A report that is read after the run.
struct Observer<R>(Rc<RefCell<R>>);

impl<K: RecordKind, R: Sink<K>> Sink<K> for Observer<R> {
    fn write(&mut self, batch: &K::Batch) -> Result<(), SinkError> {
        self.0.borrow_mut().write(batch)
    }

    fn flush(&mut self) -> Result<(), SinkError> {
        Ok(())
    }

    fn finish(&mut self) -> Result<(), SinkError> {
        Ok(())
    }
}
