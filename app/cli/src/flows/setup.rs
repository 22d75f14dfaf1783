//! What a run of `linkweir flows` is made of: settings, outputs, and what must not be the same file.

use std::hash::{BuildHasher, RandomState};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::anyhow;
use linkweir_engine::Outputs;
use linkweir_flows::{FlowsConfig, Subnets};
use linkweir_record::FlowKind;
use linkweir_sink::{OutputOptions, is_collector, open_ipfix, open_sink};
use linkweir_tstat::archive::open_archive;
use linkweir_tstat::rrd::{RrdOptions, open_rrd};
use linkweir_tstat::{TstatOptions, open_histograms, open_tstat};

use super::args::{FlowFormat, FlowsArgs};
use crate::conflicts;
use crate::exit::Wrong;
use crate::key_file;
use crate::outputs::{self, AtEnd, Documents, refused};

pub(crate) fn settings(args: &FlowsArgs) -> anyhow::Result<FlowsConfig> {
    let tracking = &args.tracking;
    let output = &args.output;
    let is_tree = output.format == Some(FlowFormat::Tstat);
    let has_steps =
        is_tree || output.histograms.is_some() || output.archive.is_some() || output.rrd.is_some();
    if has_steps && output.step < Duration::from_secs(1) {
        return Err(anyhow!(Wrong(
            "--step: at least a second is wanted".to_owned()
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
        step: has_steps.then_some(output.step),
        with_messages: is_tree,
        with_names: !tracking.no_names,
        // A secret of this process: nobody can aim at a cell of the table.
        hash_seed: RandomState::new().hash_one(0_u8),
        anonymizer: tracking
            .anonymize
            .as_deref()
            .map(key_file::read)
            .transpose()?,
        ..FlowsConfig::default()
    })
}

fn read_subnets(path: &Path) -> anyhow::Result<Subnets> {
    let wrong =
        |message: String| anyhow!(Wrong(format!("--internal {}: {message}", path.display())));
    let text = std::fs::read_to_string(path).map_err(|error| wrong(error.to_string()))?;
    let subnets = Subnets::parse(&text).map_err(|error| wrong(error.to_string()))?;
    if subnets.is_empty() {
        return Err(wrong(
            "there is no network in it; write one a line, for example 10.0.0.0/8".to_owned(),
        ));
    }
    Ok(subnets)
}

/// Opens everything that takes records.
pub(crate) fn open_outputs(args: &FlowsArgs) -> anyhow::Result<Outputs<FlowKind>> {
    let output = &args.output;
    let options = OutputOptions {
        rotation: output.rotate,
        has_partial_records: args.tracking.periodic.is_some(),
        has_internal_networks: args.tracking.internal.is_some(),
        ..output.store.options(args.is_live())
    };
    let tree = TstatOptions {
        step: output.step,
        has_partial_records: args.tracking.periodic.is_some(),
        tcp_idle: args.tracking.tcp_idle,
        udp_idle: args.tracking.udp_idle,
        syn_timeout: args.tracking.syn_timeout,
        existing: options.existing,
        announce: options.announce,
        ..TstatOptions::default()
    };
    let destinations = args.destinations();
    if output.write.is_empty()
        && !destinations.is_empty()
        && output.format == Some(FlowFormat::Tstat)
    {
        return Err(anyhow!(Wrong(
            "--format tstat writes a tree: name its directory with -w DIR".to_owned()
        )));
    }
    let mut outputs = Outputs::default();
    let format = output.format;
    for destination in destinations {
        let (to, options) = (destination.to_owned(), options.clone());
        let open = move || match format {
            Some(FlowFormat::Tstat) if !to.contains("://") => open_tstat(Path::new(&to), tree),
            _ if is_collector(&to) => open_ipfix(&to, options.clone()),
            format => open_sink(&to, format.and_then(FlowFormat::lines), options.clone()),
        };
        outputs.open(destination, open).map_err(refused)?;
    }
    if let Some(directory) = &output.histograms {
        let sink = open_histograms(directory, tree).map_err(refused)?;
        outputs.add(directory.to_string_lossy(), sink);
    }
    if let Some(path) = &output.archive {
        let sink = open_archive(path, output.step).map_err(refused)?;
        outputs.add(path.to_string_lossy(), sink);
    }
    if let Some(to) = &output.rrd {
        let options = RrdOptions { step: output.step };
        outputs.add(to, open_rrd(to, options).map_err(refused)?);
    }
    Ok(outputs)
}

/// Opens what is written when the run ends.
pub(crate) fn open_documents(args: &FlowsArgs) -> anyhow::Result<Documents> {
    let output = &args.output;
    let existing = output.store.files.existing(args.is_live());
    let report = output.report.as_deref().map(Path::to_string_lossy);
    Ok(Documents {
        report: AtEnd::open("--report", report.as_deref(), existing)?,
        sketch: None,
        summary: AtEnd::open("--summary", output.summary.as_deref(), existing)?,
    })
}

/// What the run writes, with the flag that named it.
pub(crate) fn written(args: &FlowsArgs) -> Vec<(&'static str, &Path)> {
    let output = &args.output;
    let files = [
        ("--histograms", output.histograms.as_deref()),
        ("--archive", output.archive.as_deref()),
        ("--report", output.report.as_deref()),
        ("--summary", output.summary.as_deref().map(Path::new)),
        (
            "--rrd",
            output
                .rrd
                .as_deref()
                .map(|to| Path::new(to.strip_prefix("unix:").unwrap_or(to))),
        ),
    ];
    args.destinations()
        .into_iter()
        .filter(|to| !to.contains("://"))
        .map(|to| ("-w", Path::new(to)))
        .chain(
            files
                .into_iter()
                .filter_map(|(flag, path)| Some((flag, path?))),
        )
        .collect()
}

/// The directories in which files will be made, and the devices and pipes that are written to.
pub(crate) fn written_directories(args: &FlowsArgs) -> Vec<PathBuf> {
    outputs::written_directories(written(args).into_iter().map(|(_, path)| path))
}

/// Refuses outputs that would replace an input or one another.
pub(crate) fn check_conflicts(args: &FlowsArgs) -> anyhow::Result<()> {
    let outputs = written(args);
    let tracking = &args.tracking;
    let read = args.input.read.iter().map(|path| ("-r", path.as_path()));
    let inputs: Vec<(&str, &Path)> = read
        .chain(
            [
                ("--anonymize", tracking.anonymize.as_deref()),
                ("--internal", tracking.internal.as_deref()),
                ("--config", args.output.config.as_deref()),
            ]
            .into_iter()
            .filter_map(|(flag, path)| Some((flag, path?))),
        )
        .collect();
    conflicts::check(&outputs, &inputs).map_err(|message| anyhow!(Wrong(message)))
}
