//! `linkweir http`: HTTP transactions from captures.

mod args;
mod estimates;
#[cfg(feature = "parquet")]
mod halves;
pub(crate) mod summary;

use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;

use linkweir_engine::{Outputs, RunReport};
use linkweir_http::{EvenConnections, GroupsConfig, HttpConfig, HttpStage, Shard};
use linkweir_record::HttpKind;
use linkweir_record::human::counted;
use linkweir_report::HttpReport;
use linkweir_sink::OutputOptions;
use linkweir_wire::{DecodeFaults, FragmentStats};

use self::args::{Fanout, Switch};
#[cfg(feature = "parquet")]
use self::halves::HalvesSource;
use self::summary::HttpCounters;
use crate::exit::{Exit, say, warn};
use crate::keys::KeySource;
use crate::merge::sketch::HttpTotals;
use crate::outputs;
use crate::packets::{self, Packets};
use crate::passive::command::{Flags, Page, Passive, Share, start_page, start_view};
use crate::passive::run::run as run_passive;
#[cfg(feature = "parquet")]
use crate::passive::run::run_over;
use crate::passive::watch::Viewer;
use crate::signals::Signals;

pub(crate) use args::HttpArgs;

/// Runs the command.
pub(crate) fn run(args: &HttpArgs) -> anyhow::Result<Exit> {
    #[cfg(feature = "parquet")]
    if !args.from_halves.is_empty() && !args.input.list_interfaces {
        return run_over(args, HalvesSource::new(&args.from_halves));
    }
    if let Some(records) = &args.packets_of {
        let _keys = args.open_keys()?;
        return packets::find::<HttpKind>(records, &args.packets, &args.flags());
    }
    let exit = run_passive(args)?;
    if args.keys.check_estimates {
        say(args.keys.checks.text().trim_end());
    }
    Ok(exit)
}

impl HttpArgs {
    /// Reads the key log as far as it is there.
    fn open_keys(&self) -> anyhow::Result<Option<KeySource>> {
        let reads_files = self.input.interface.is_empty() && self.feeder.feed.is_none();
        let open = |path| KeySource::open(path, reads_files, &self.input.secrets);
        self.keys.keys.as_deref().map(open).transpose()
    }
}

impl Passive for HttpArgs {
    type Record = HttpKind;
    type Stage = HttpStage;
    type Config = HttpConfig;
    type Counters = HttpCounters;
    type Splitter = EvenConnections;
    const IS_MOSTLY_READING: bool = true;

    fn flags(&self) -> Flags<'_> {
        Flags {
            input: &self.input,
            feeder: Some(&self.feeder),
            halves: self.halves(),
            output: &self.output,
            page: Some(&self.page),
            sketch: self.sketch.as_deref(),
            view: Some(&self.view),
            metrics_hosts: self.metrics_hosts as usize,
            workers: self.workers.workers,
            is_sorted: self.tracking.sort,
            reads: self
                .keys
                .keys
                .iter()
                .map(|path| ("--keys", path.as_path()))
                .collect(),
            writes: self.packets.written().into_iter().collect(),
        }
    }

    fn config(&self) -> anyhow::Result<HttpConfig> {
        let args = &self.tracking;
        self.keys.source.replace(self.open_keys()?);
        let bytes = |text: &Option<String>| text.as_deref().unwrap_or_default().as_bytes().to_vec();
        Ok(HttpConfig {
            timeout: args.timeout,
            max_pending: args.max_pending as usize,
            keep_duplicates: args.keep_duplicates,
            ports: args.ports.clone(),
            ttlb: args.ttlb,
            host_contains: bytes(&args.host),
            url_contains: bytes(&args.url),
            anonymizer: self.page.anonymizer()?,
            places: self.page.places()?,
            headers: self.headers.choose()?,
            // A secret of this process: nobody can aim at a bucket of the table.
            hash_seed: RandomState::new().hash_one(0_u8),
            shard: None,
            keys: Some(Arc::clone(&self.input.secrets)),
            awaits_keys: self.keys.keys.is_some(),
            estimates: self.keys.estimate == Switch::On,
            checks_estimates: self.keys.check_estimates,
            ..HttpConfig::default()
        })
    }

    fn start_readers(&self) -> anyhow::Result<()> {
        match self.keys.source.take() {
            Some(source) => source.follow(),
            None => Ok(()),
        }
    }

    fn open_outputs(
        &self,
        destinations: &[&str],
        options: OutputOptions,
    ) -> anyhow::Result<Outputs<HttpKind>> {
        let mut outputs = outputs::open(destinations, self.format, &options)?;
        if self.view.otlp.is_some() {
            outputs.add_sampled_observer(self.view.spans.sink());
        }
        if let Some(of) = self.sample.sample {
            outputs.sample(of);
        }
        if self.keys.check_estimates {
            outputs.add_observer(Box::new(self.keys.checks.clone()));
        }
        Ok(outputs)
    }

    fn stage(&self, config: &HttpConfig, share: Share) -> HttpStage {
        // The bound on waiting messages is for all stages together.
        let max_pending = |count: u32| config.max_pending.div_ceil(count as usize);
        let config = config.clone();
        HttpStage::new(&match share {
            Share::Source { is_distributed } => HttpConfig {
                is_reassembled: is_distributed,
                has_whole_connections: !is_distributed && self.halves().is_empty(),
                may_join: !is_distributed && self.halves().is_empty(),
                has_round_trips: self.halves().is_empty(),
                ..config
            },
            Share::Reader { count, .. } => HttpConfig {
                is_reassembled: true,
                has_whole_connections: false,
                max_pending: max_pending(count),
                ..config
            },
            Share::Kernel { index, count } => HttpConfig {
                shard: Some(Shard { index, count }),
                has_whole_connections: false,
                may_join: false,
                has_round_trips: false,
                max_pending: max_pending(count),
                ..config
            },
        })
    }

    fn count(
        stage: &HttpStage,
        counters: &mut HttpCounters,
        faults: &mut DecodeFaults,
        fragments: &mut FragmentStats,
    ) {
        counters.stats.merge(stage.stats());
        counters.payload.merge(stage.payload());
        faults.merge(stage.faults());
        *fragments += stage.fragments();
    }

    fn sockets(&self) -> usize {
        let by_kernel =
            self.fanout == Fanout::Kernel && !self.tracking.ttlb && self.keys.keys.is_none();
        if by_kernel { self.workers.workers } else { 1 }
    }

    /// Connections whole; by transaction while there are few.
    fn splitter(config: &HttpConfig, workers: usize) -> EvenConnections {
        let groups = GroupsConfig::default();
        let groups = GroupsConfig {
            connections: groups.connections.max(config.max_pending),
            hash_seed: config.hash_seed,
            ..groups
        };
        EvenConnections::new(&groups, workers)
    }

    fn on_distributed(splitter: &EvenConnections) {
        let forgotten = splitter.counts().forgotten;
        if forgotten > 0 {
            warn(&format!(
                "the reader evicted {} with unanswered requests: the records may differ from those of one worker; raise --max-pending",
                counted(forgotten, "connection")
            ));
        }
    }

    fn view(
        &self,
        outputs: &mut Outputs<HttpKind>,
        signals: &Signals,
    ) -> anyhow::Result<Option<Box<dyn Viewer>>> {
        start_view(&self.flags(), outputs, signals, None)
    }

    fn packets(&self, outputs: &mut Outputs<Self::Record>) -> anyhow::Result<Packets> {
        packets::start(&self.packets, &self.flags(), outputs)
    }

    fn page(outputs: &mut Outputs<HttpKind>) -> Option<Page> {
        start_page(outputs, HttpReport::render)
    }

    fn http_totals(report: &RunReport, counters: &HttpCounters) -> Option<HttpTotals> {
        Some(HttpTotals::new(report, &counters.stats))
    }
}
