//! Wires a run of `linkweir http`: source, stage, sinks, signals, summary.

use std::cell::RefCell;
use std::hash::{BuildHasher, RandomState};
use std::io::Read;
use std::path::Path;
use std::rc::Rc;

use anyhow::{Context, anyhow};
use linkweir_capture::{CaptureFiles, Input, ReadOptions};
use linkweir_engine::{Directive, FaultKind, Run, RunError, RunReport, Sink, SinkError, Stage};
use linkweir_http::{HttpConfig, HttpStage, Sorted};
use linkweir_record::{Anonymizer, HttpBatch, HttpKind};
use linkweir_sink::report::{HttpReport, ReportMeta, write_report_file};
use linkweir_sink::summary::write_summary_file;
use linkweir_sink::{OutputOptions, open_sink};
use linkweir_wire::Timestamp;

use super::args::{HttpArgs, TrackingArgs};
use super::summary::Totals;
use crate::conflicts;
use crate::exit::{Exit, Wrong, say, warn};
use crate::progress::Meter;
use crate::signals::Signals;

type HttpSinks = Vec<Box<dyn Sink<HttpKind>>>;

/// Runs the command.
pub(crate) fn run(args: &HttpArgs) -> anyhow::Result<Exit> {
    let meter = Meter::start(args.output.quiet);
    let signals = Signals::install()?;
    check_conflicts(args)?;
    let config = settings(&args.tracking)?;
    let source = open_source(args, &signals)?;
    let mut sinks = open_sinks(args)?;
    let report = args.output.report.as_ref().map(|_| SharedReport::default());
    if let Some(report) = &report {
        sinks.push(Box::new(report.clone()));
    }
    let stage = HttpStage::new(&config);
    let mut job = Job {
        args,
        signals,
        meter,
        page: report,
    };
    if args.tracking.sort {
        let mut sorted = Sorted::new(stage);
        let (report, outcome) = job.drive(source, &mut sorted, &mut sinks);
        job.conclude(&report, outcome, sorted.inner(), sorted.late())
    } else {
        let mut stage = stage;
        let (report, outcome) = job.drive(source, &mut stage, &mut sinks);
        job.conclude(&report, outcome, &stage, 0)
    }
}

fn settings(args: &TrackingArgs) -> anyhow::Result<HttpConfig> {
    let bytes = |text: &Option<String>| text.as_deref().unwrap_or_default().as_bytes().to_vec();
    Ok(HttpConfig {
        timeout: args.timeout,
        max_pending: args.max_pending as usize,
        keep_duplicates: args.keep_duplicates,
        ports: args.ports.clone(),
        ttlb: args.ttlb,
        host_contains: bytes(&args.host),
        url_contains: bytes(&args.url),
        anonymizer: args.anonymize.as_deref().map(read_key).transpose()?,
        // A secret of this process: nobody can aim at a bucket of the table.
        hash_seed: RandomState::new().hash_one(0_u8),
    })
}

/// A key file: 32 bytes as they are, or as 64 hexadecimal digits.
fn read_key(path: &Path) -> anyhow::Result<Anonymizer> {
    let name = path.display();
    let mut bytes = Vec::new();
    std::fs::File::open(path)
        .and_then(|file| file.take(1024).read_to_end(&mut bytes))
        .map_err(|error| anyhow!(Wrong(format!("--anonymize {name}: {error}"))))?;
    let from_hex = |text: &[u8]| -> Option<Vec<u8>> {
        let (pairs, []) = text.as_chunks::<2>() else {
            return None;
        };
        pairs
            .iter()
            .map(|pair| u8::from_str_radix(str::from_utf8(pair).ok()?, 16).ok())
            .collect()
    };
    let key = <[u8; 32]>::try_from(bytes.as_slice())
        .ok()
        .or_else(|| from_hex(bytes.trim_ascii())?.try_into().ok());
    let wrong = || {
        format!(
            "--anonymize {name}: a key is 32 bytes or 64 hexadecimal digits; make one with: head -c 32 /dev/urandom > {name}"
        )
    };
    key.map(|key| Anonymizer::new(&key))
        .ok_or_else(|| anyhow!(Wrong(wrong())))
}

fn open_source(args: &HttpArgs, signals: &Signals) -> anyhow::Result<CaptureFiles> {
    let inputs: Vec<Input> = args.input.read.iter().cloned().map(Input::from).collect();
    let options = ReadOptions {
        filter: args.input.filter.clone(),
        stop: signals.stop_flag(),
        chunk_bytes: usize::try_from(args.input.read_size).unwrap_or(usize::MAX),
        ..ReadOptions::default()
    };
    CaptureFiles::open(&inputs, options).map_err(|error| {
        if error.input == "-f" {
            anyhow!(Wrong(error.to_string()))
        } else {
            error.into()
        }
    })
}

fn open_sinks(args: &HttpArgs) -> anyhow::Result<HttpSinks> {
    let options = OutputOptions {
        rotation: args.output.rotate,
        wall_clock_ns: wall_clock,
    };
    args.output
        .write
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

#[expect(
    clippy::disallowed_methods,
    reason = "the binary is where the clock is asked"
)]
fn wall_clock() -> u64 {
    let now = std::time::SystemTime::now()
        .duration_since(std::time::UNIX_EPOCH)
        .unwrap_or_default();
    u64::try_from(now.as_nanos()).unwrap_or(u64::MAX)
}

/// A run that is under way.
struct Job<'a> {
    args: &'a HttpArgs,
    signals: Signals,
    meter: Meter,
    page: Option<SharedReport>,
}

impl Job<'_> {
    fn drive<T: Stage<Record = HttpKind>>(
        &mut self,
        source: CaptureFiles,
        stage: &mut T,
        sinks: &mut HttpSinks,
    ) -> (RunReport, Result<(), RunError>) {
        let (signals, meter) = (&self.signals, &mut self.meter);
        let mut told = 0;
        let outcome =
            Run::new(source, stage, sinks, self.args.input.count).drive(|report, progress| {
                for fault in report.faults.iter().skip(told) {
                    warn(&describe(fault));
                }
                told = report.faults.len();
                let due = meter.tick(report, progress);
                if signals.take_report() {
                    meter.say(report, progress);
                }
                if signals.stop() {
                    Directive::Stop
                } else if signals.take_rotate() {
                    Directive::Rotate
                } else if due {
                    Directive::Flush
                } else {
                    Directive::Continue
                }
            });
        self.meter.clear();
        outcome
    }

    /// Says how it went and chooses the exit code.
    fn conclude(
        &self,
        report: &RunReport,
        outcome: Result<(), RunError>,
        stage: &HttpStage,
        unsorted: u64,
    ) -> anyhow::Result<Exit> {
        let mut exit = Exit::Done;
        match outcome {
            Ok(()) => {}
            Err(RunError::Sink(SinkError::ClosedPipe)) => return Ok(Exit::Done),
            Err(error) => {
                warn(&error.to_string());
                exit = Exit::Failed;
            }
        }
        let totals = Totals {
            report,
            stats: stage.stats(),
            faults: stage.faults(),
            elapsed: self.meter.elapsed(),
            unsorted,
        };
        if let Some(destination) = &self.args.output.summary {
            match write_summary_file(destination, &totals.to_json()) {
                Err(SinkError::ClosedPipe) | Ok(()) => {}
                Err(error) => return Err(error).context("--summary"),
            }
        }
        if let (Some(page), Some(path)) = (&self.page, &self.args.output.report) {
            let html = page.0.borrow().render(&report_meta(self.args, &totals));
            write_report_file(&path.to_string_lossy(), &html).context("--report")?;
        }
        if !self.args.output.quiet {
            say(&totals.to_screen());
        }
        let undecoded = totals
            .faults
            .iter()
            .find(|(_, cause, _)| *cause == "unsupported_link_type");
        if let Some((_, _, count)) = undecoded {
            let link = stage.unsupported_link().map_or(0, |link| link.0);
            warn(&format!(
                "{count} packets have a link type that is not decoded (the first: {link}); see `linkweir http --help`"
            ));
            if count == report.packets {
                exit = exit.max(Exit::DataLost);
            }
        }
        if report
            .faults
            .iter()
            .any(|fault| fault.kind == FaultKind::Unusable)
        {
            exit = exit.max(Exit::Failed);
        }
        if totals.is_lossy() {
            exit = exit.max(Exit::DataLost);
        }
        Ok(exit)
    }
}

/// The words of the command line; long lists are cut.
fn command_line() -> String {
    let words: Vec<String> = std::env::args_os()
        .map(|word| word.to_string_lossy().into_owned())
        .collect();
    let line = words.join(" ");
    match line.char_indices().nth(500) {
        Some((end, _)) => format!("{} ...", line.get(..end).unwrap_or_default()),
        None => line,
    }
}

/// Refuses outputs that would replace an input or one another.
fn check_conflicts(args: &HttpArgs) -> anyhow::Result<()> {
    let output = &args.output;
    let written = output.write.iter().map(|path| ("-w", Path::new(path)));
    let outputs: Vec<(&str, &Path)> = written
        .chain(
            output
                .summary
                .as_deref()
                .map(|path| ("--summary", Path::new(path))),
        )
        .chain(output.report.as_deref().map(|path| ("--report", path)))
        .collect();
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

fn describe(fault: &linkweir_engine::Fault) -> String {
    match fault.offset {
        Some(offset) => format!("{}: at byte {offset}: {}", fault.input, fault.message),
        None => format!("{}: {}", fault.input, fault.message),
    }
}

/// The report as one of the sinks and, after the run, as a page.
#[derive(Debug, Clone, Default)]
struct SharedReport(Rc<RefCell<HttpReport>>);

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

fn report_meta(args: &HttpArgs, totals: &Totals<'_>) -> ReportMeta {
    let report = totals.report;
    let nanos = |time: Option<Timestamp>| time.map(Timestamp::as_nanos);
    let owned = |(name, count): (&str, u64)| (name.to_owned(), count);
    let inputs: Vec<String> = args
        .input
        .read
        .iter()
        .map(|path| path.display().to_string())
        .collect();
    ReportMeta {
        title: "HTTP transactions".to_owned(),
        inputs,
        command_line: command_line(),
        program: concat!("linkweir ", env!("CARGO_PKG_VERSION")).to_owned(),
        packets: report.packets,
        bytes: report.bytes,
        first_ts_ns: nanos(report.first),
        last_ts_ns: nanos(report.last),
        drops: totals.drops().into_iter().map(owned).collect(),
        notes: vec![
            ("damaged inputs".to_owned(), report.faults.len() as u64),
            (
                "frames that did not decode".to_owned(),
                totals.faults.total(),
            ),
            ("truncated heads".to_owned(), totals.stats.truncated_heads),
            (
                "retransmitted requests".to_owned(),
                totals.stats.retransmitted_requests,
            ),
            (
                "retransmitted responses".to_owned(),
                totals.stats.retransmitted_responses,
            ),
            (
                "interim responses".to_owned(),
                totals.stats.interim_responses,
            ),
        ],
    }
}
