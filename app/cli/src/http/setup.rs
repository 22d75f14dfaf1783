//! What a run of `linkweir http` is made of: settings, outputs, and what must not be the same file.

use std::hash::{BuildHasher, RandomState};
use std::path::{Path, PathBuf};

use anyhow::anyhow;
use linkweir_engine::Outputs;
use linkweir_http::HttpConfig;
use linkweir_record::HttpKind;
use linkweir_sink::OutputOptions;

use super::args::{HttpArgs, TrackingArgs};
use crate::conflicts;
use crate::exit::Wrong;
use crate::key_file;
use crate::outputs::{self, AtEnd, Documents};

pub(crate) fn settings(args: &TrackingArgs) -> anyhow::Result<HttpConfig> {
    let bytes = |text: &Option<String>| text.as_deref().unwrap_or_default().as_bytes().to_vec();
    Ok(HttpConfig {
        timeout: args.timeout,
        max_pending: args.max_pending as usize,
        keep_duplicates: args.keep_duplicates,
        ports: args.ports.clone(),
        ttlb: args.ttlb,
        host_contains: bytes(&args.host),
        url_contains: bytes(&args.url),
        anonymizer: args.anonymize.as_deref().map(key_file::read).transpose()?,
        // A secret of this process: nobody can aim at a bucket of the table.
        hash_seed: RandomState::new().hash_one(0_u8),
        shard: None,
        ..HttpConfig::default()
    })
}

pub(crate) fn open_outputs(args: &HttpArgs) -> anyhow::Result<Outputs<HttpKind>> {
    let options = OutputOptions {
        rotation: args.output.rotate,
        ..args.output.store.options(args.is_live())
    };
    outputs::open(&args.destinations(), args.output.format, &options)
}

/// Opens what is written when the run ends.
pub(crate) fn open_documents(args: &HttpArgs) -> anyhow::Result<Documents> {
    let output = &args.output;
    let existing = output.store.files.existing(args.is_live());
    let open = |flag, named| AtEnd::open(flag, named, existing);
    let report = output.report.as_deref().map(Path::to_string_lossy);
    Ok(Documents {
        report: open("--report", report.as_deref())?,
        sketch: open("--sketch", args.sketch.as_deref())?,
        summary: open("--summary", output.summary.as_deref())?,
    })
}

/// What the run writes, with the flag that named it.
pub(crate) fn written(args: &HttpArgs) -> Vec<(&'static str, &Path)> {
    let output = &args.output;
    let written = args.destinations();
    let written = written.into_iter().map(|to| ("-w", Path::new(to)));
    let summary = output
        .summary
        .iter()
        .map(|path| ("--summary", Path::new(path)));
    let report = output
        .report
        .iter()
        .map(|path| ("--report", path.as_path()));
    let sketch = args.sketch.iter().map(|path| ("--sketch", Path::new(path)));
    written.chain(summary).chain(report).chain(sketch).collect()
}

/// The directories in which files will be made, and the devices and pipes that are written to.
pub(crate) fn written_directories(args: &HttpArgs) -> Vec<PathBuf> {
    outputs::written_directories(written(args).into_iter().map(|(_, path)| path))
}

/// Refuses outputs that would replace an input or one another.
pub(crate) fn check_conflicts(args: &HttpArgs) -> anyhow::Result<()> {
    let (output, outputs) = (&args.output, written(args));
    let read = args.input.read.iter().map(|path| ("-r", path.as_path()));
    let halves = args.halves().iter();
    let inputs: Vec<(&str, &Path)> = read
        .chain(halves.map(|path| ("--from-halves", path.as_path())))
        .chain(
            args.tracking
                .anonymize
                .as_deref()
                .map(|path| ("--anonymize", path)),
        )
        .chain(output.config.as_deref().map(|path| ("--config", path)))
        .collect();
    conflicts::check(&outputs, &inputs).map_err(|message| anyhow!(Wrong(message)))
}
