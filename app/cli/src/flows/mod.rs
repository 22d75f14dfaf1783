//! `linkweir flows`: every TCP and UDP flow of captures and interfaces.

mod args;
mod beside;
mod summary;
mod unknown;

use std::hash::{BuildHasher, RandomState};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::anyhow;
use linkweir_console::Pages;
use linkweir_engine::{NamedFlowSplitter, Outputs};
use linkweir_flows::{FlowsConfig, FlowsStage, Subnets};
use linkweir_record::{DnsKind, FlowKind, TlsKind};
use linkweir_report::FlowReport;
use linkweir_sink::{OutputOptions, is_collector, is_table, open_ipfix, open_sink};
use linkweir_tstat::archive::open_archive;
use linkweir_tstat::rrd::{RrdOptions, open_rrd};
use linkweir_tstat::{TstatOptions, open_histograms, open_tstat};
use linkweir_wire::{DecodeFaults, FragmentStats};

use self::args::{FlowFormat, FlowRecords};
use self::beside::Beside;
use self::summary::FlowsCounters;
use crate::archive::Browser;
use crate::exit::Wrong;
use crate::files::{self, refused};
use crate::outputs::{check_time, shown};
use crate::packets::{self, Packets};
use crate::passive::command::{Flags, Named, Page, Passive, Share, start_page, start_view};
use crate::passive::watch::Viewer;
use crate::signals::Signals;

pub(crate) use args::FlowsArgs;

impl Passive for FlowsArgs {
    type Record = FlowKind;
    type Stage = FlowsStage;
    type Config = FlowsConfig;
    type Counters = FlowsCounters;
    type Splitter = NamedFlowSplitter;
    const IS_MOSTLY_READING: bool = false;

    fn flags(&self) -> Flags<'_> {
        let store = &self.store;
        let rrd = store.rrd.as_deref();
        let rrd = rrd.map(|to| Path::new(to.strip_prefix("unix:").unwrap_or(to)));
        let writes = [
            ("--histograms", store.histograms.as_deref()),
            ("--archive", store.archive.as_deref()),
            ("--rrd", rrd),
        ];
        let internal = self.tracking.internal.as_deref();
        Flags {
            input: &self.input,
            feeder: Some(&self.feeder),
            halves: &[],
            output: &self.output,
            page: Some(&self.page),
            sketch: None,
            view: Some(&self.view),
            metrics_hosts: 0,
            workers: self.workers.workers,
            is_sorted: false,
            reads: internal
                .map(|path| ("--internal", path))
                .into_iter()
                .collect(),
            writes: writes
                .into_iter()
                .filter_map(|(flag, path)| Some((flag, path?)))
                .chain(self.packets.written())
                .collect(),
        }
    }

    fn config(&self) -> anyhow::Result<FlowsConfig> {
        let tracking = &self.tracking;
        let store = &self.store;
        let is_tree = store.format == Some(FlowFormat::Tstat);
        let has_steps =
            is_tree || store.histograms.is_some() || store.archive.is_some() || store.rrd.is_some();
        if has_steps && store.step < Duration::from_secs(1) {
            return Err(anyhow!(Wrong(
                "--step: the minimum is one second".to_owned()
            )));
        }
        Ok(FlowsConfig {
            tcp_idle: tracking.tcp_idle,
            udp_idle: tracking.udp_idle,
            syn_timeout: tracking.syn_timeout,
            linger: tracking.linger,
            max_flows: tracking.max_flows as usize,
            internal: tracking
                .internal
                .as_deref()
                .map(read_subnets)
                .transpose()?
                .unwrap_or_default(),
            classifier: tracking.classifier.into(),
            periodic: tracking.periodic,
            step: has_steps.then_some(store.step),
            with_messages: is_tree,
            with_queries: store.kind == FlowRecords::Dns,
            with_handshakes: store.kind == FlowRecords::Tls,
            unknown: tracking.unknown,
            with_names: !tracking.no_names,
            // A secret of this process: nobody can aim at a cell of the table.
            hash_seed: RandomState::new().hash_one(0_u8),
            anonymizer: self.page.anonymizer()?,
            places: self.page.places()?,
            ..FlowsConfig::default()
        })
    }

    fn open_programs(&self) -> anyhow::Result<Vec<Named<FlowKind>>> {
        let step = self.store.step;
        let open = |to: &String| {
            let sink = open_rrd(to, RrdOptions { step }).map_err(refused)?;
            Ok((to.clone(), sink))
        };
        self.store.rrd.iter().map(open).collect()
    }

    fn open_outputs(
        &self,
        destinations: &[&str],
        options: OutputOptions,
    ) -> anyhow::Result<Outputs<FlowKind>> {
        let (store, tracking) = (&self.store, &self.tracking);
        let options = OutputOptions {
            has_partial_records: tracking.periodic.is_some(),
            has_internal_networks: tracking.internal.is_some(),
            ..options
        };
        let tree = TstatOptions {
            step: store.step,
            has_partial_records: tracking.periodic.is_some(),
            tcp_idle: tracking.tcp_idle,
            udp_idle: tracking.udp_idle,
            syn_timeout: tracking.syn_timeout,
            existing: options.existing,
            announce: options.announce,
            ..TstatOptions::default()
        };
        if self.output.write.is_empty()
            && !destinations.is_empty()
            && store.format == Some(FlowFormat::Tstat)
        {
            return Err(anyhow!(Wrong(
                "--format tstat writes a tree: name its directory with -w DIR".to_owned()
            )));
        }
        let some = match (self.sample.sample, options.condition.as_ref(), options.head) {
            (Some(_), ..) => "--sample",
            (_, Some(_), _) => "--where",
            (.., Some(_)) => "--head",
            _ => "",
        };
        if !some.is_empty() && store.format == Some(FlowFormat::Tstat) {
            return Err(anyhow!(Wrong(format!(
                "{some}: the histograms of --format tstat count every flow; choose another format"
            ))));
        }
        self.check_kind(destinations)?;
        let mut outputs = Outputs::default();
        let format = store.format;
        let lines = format.and_then(FlowFormat::lines);
        // All kinds of these records have a table.
        check_time(&options, || {
            let mut all = destinations.iter();
            format != Some(FlowFormat::Tstat)
                && all.any(|to| is_table::<FlowKind>(to, lines, &options))
        })?;
        for destination in destinations {
            let (to, options) = ((*destination).to_owned(), options.clone());
            let kind = store.kind;
            let open = move || match (kind, format) {
                (FlowRecords::Tls, _) => {
                    let sink = open_sink::<TlsKind>(&to, lines, options.clone())?;
                    Ok(Beside::boxed(sink, |flows| &flows.handshakes))
                }
                (FlowRecords::Dns, _) => {
                    let sink = open_sink::<DnsKind>(&to, lines, options.clone())?;
                    Ok(Beside::boxed(sink, |flows| &flows.queries))
                }
                (FlowRecords::Flow, Some(FlowFormat::Tstat)) if !to.contains("://") => {
                    open_tstat(Path::new(&to), tree)
                }
                (FlowRecords::Flow, _) if is_collector(&to) => open_ipfix(&to, options.clone()),
                (FlowRecords::Flow, _) => open_sink(&to, lines, options.clone()),
            };
            outputs.open(shown(destination), open).map_err(refused)?;
        }
        // Histograms and archive get everything.
        if let Some(of) = self.sample.sample {
            outputs.sample(of);
        }
        if let Some(directory) = &store.histograms {
            let sink = open_histograms(directory, tree).map_err(refused)?;
            outputs.add(directory.to_string_lossy(), sink);
        }
        if let Some(path) = &store.archive {
            let sink = open_archive(path, store.step).map_err(refused)?;
            outputs.add(path.to_string_lossy(), sink);
        }
        Ok(outputs)
    }

    fn splitter(_: &FlowsConfig, _: usize) -> NamedFlowSplitter {
        NamedFlowSplitter
    }

    fn stage(&self, config: &FlowsConfig, share: Share) -> FlowsStage {
        FlowsStage::new(&match share {
            Share::Source { is_distributed } => FlowsConfig {
                is_reassembled: is_distributed,
                ..config.clone()
            },
            Share::Reader { index, count } | Share::Kernel { index, count } => FlowsConfig {
                // The bound is for all together.
                max_flows: config.max_flows.div_ceil(count as usize),
                shard: (index, count),
                is_reassembled: true,
                ..config.clone()
            },
        })
    }

    fn count(
        stage: &FlowsStage,
        counters: &mut FlowsCounters,
        faults: &mut DecodeFaults,
        fragments: &mut FragmentStats,
    ) {
        counters.merge(stage);
        faults.merge(stage.faults());
        *fragments += stage.fragments();
    }

    fn view(
        &self,
        outputs: &mut Outputs<FlowKind>,
        signals: &Signals,
    ) -> anyhow::Result<Option<Box<dyn Viewer>>> {
        let archive = self.store.archive.clone();
        let pages = archive.map(|path| Arc::new(Browser::new(path)) as Arc<dyn Pages>);
        start_view(&self.flags(), outputs, signals, pages)
    }

    fn packets(&self, outputs: &mut Outputs<Self::Record>) -> anyhow::Result<Packets> {
        packets::start(&self.packets, &self.flags(), outputs)
    }

    fn page(outputs: &mut Outputs<FlowKind>) -> Option<Page> {
        start_page(outputs, FlowReport::render)
    }
}

impl FlowsArgs {
    /// Refuses what only records of flows can be.
    fn check_kind(&self, destinations: &[&str]) -> anyhow::Result<()> {
        let store = &self.store;
        if store.kind == FlowRecords::Flow {
            return Ok(());
        }
        let why = if store.format == Some(FlowFormat::Tstat) {
            "--format tstat is of flows"
        } else if destinations.iter().any(|to| is_collector(to)) {
            "IPFIX is of flows"
        } else if self.sample.sample.is_some() {
            "--sample is of flows"
        } else if self.tracking.no_names {
            "--no-names does not inspect payloads"
        } else {
            return Ok(());
        };
        Err(anyhow!(Wrong(format!("--kind: {why}"))))
    }
}

/// Bytes of the largest file of networks.
const MAX_SUBNETS: u64 = 16 << 20;

fn read_subnets(path: &Path) -> anyhow::Result<Subnets> {
    let wrong =
        |message: String| anyhow!(Wrong(format!("--internal {}: {message}", path.display())));
    let text = files::read_text(path, MAX_SUBNETS).map_err(|error| wrong(error.to_string()))?;
    let subnets = Subnets::parse(&text).map_err(|error| wrong(error.to_string()))?;
    if subnets.is_empty() {
        return Err(wrong(
            "contains no network; write one per line, for example 10.0.0.0/8".to_owned(),
        ));
    }
    Ok(subnets)
}
