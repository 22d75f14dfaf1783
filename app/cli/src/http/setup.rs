//! What a run of `linkweir http` is made of: settings, outputs, and what must not be the same file.

use std::cell::RefCell;
use std::hash::{BuildHasher, RandomState};
use std::path::{Path, PathBuf};
use std::rc::Rc;

use anyhow::anyhow;
use linkweir_engine::{Sink, SinkError};
use linkweir_http::HttpConfig;
use linkweir_record::{HttpBatch, HttpKind};
use linkweir_sink::report::HttpReport;
use linkweir_sink::{OutputOptions, open_sink};

use super::args::{HttpArgs, TrackingArgs};
use crate::conflicts;
use crate::exit::Wrong;
use crate::key_file;
use crate::progress::wall_clock;

pub(crate) type HttpSinks = Vec<Box<dyn Sink<HttpKind>>>;

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
    })
}

pub(crate) fn open_sinks(args: &HttpArgs) -> anyhow::Result<HttpSinks> {
    let options = OutputOptions {
        rotation: args.output.rotate,
        wall_clock_ns: wall_clock,
        ..OutputOptions::default()
    };
    let destinations = match args.output.write.as_slice() {
        // The terminal shows the live view.
        [] if args.view.has_top() => Vec::new(),
        [] => vec!["-".to_owned()],
        named => named.to_vec(),
    };
    destinations
        .iter()
        .map(|destination| open_sink(destination, args.output.format, options))
        .map(|opened| {
            opened.map_err(|error| match error {
                SinkError::Refused { .. } => anyhow!(Wrong(error.to_string())),
                other => other.into(),
            })
        })
        .collect()
}

/// What the run writes, with the flag that named it.
fn outputs(args: &HttpArgs) -> Vec<(&'static str, &Path)> {
    let output = &args.output;
    let written = output.write.iter().map(|path| ("-w", Path::new(path)));
    let summary = output
        .summary
        .iter()
        .map(|path| ("--summary", Path::new(path)));
    let report = output
        .report
        .iter()
        .map(|path| ("--report", path.as_path()));
    written.chain(summary).chain(report).collect()
}

/// The folders in which files will be made, and the devices and pipes that are written to.
pub(crate) fn written_folders(args: &HttpArgs) -> Vec<PathBuf> {
    let mut folders: Vec<PathBuf> = outputs(args)
        .into_iter()
        .map(|(_, path)| path)
        .filter(|path| path.as_os_str() != "-")
        .map(|path| match path.parent() {
            _ if path.exists() && !path.is_file() => path.to_owned(),
            Some(folder) if !folder.as_os_str().is_empty() => folder.to_owned(),
            _ => PathBuf::from("."),
        })
        .collect();
    folders.sort();
    folders.dedup();
    folders
}

/// Refuses outputs that would replace an input or one another.
pub(crate) fn check_conflicts(args: &HttpArgs) -> anyhow::Result<()> {
    let (output, outputs) = (&args.output, outputs(args));
    let read = args.input.read.iter().map(|path| ("-r", path.as_path()));
    let inputs: Vec<(&str, &Path)> = read
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

/// The report as one of the sinks and, after the run, as a page.
#[derive(Debug, Clone, Default)]
pub(crate) struct SharedReport(pub(crate) Rc<RefCell<HttpReport>>);

impl Sink<HttpKind> for SharedReport {
    fn write(&mut self, batch: &HttpBatch) -> Result<(), SinkError> {
        self.0.borrow_mut().write(batch)
    }

    fn flush(&mut self) -> Result<(), SinkError> {
        Ok(())
    }

    fn finish(&mut self) -> Result<(), SinkError> {
        Ok(())
    }
}
