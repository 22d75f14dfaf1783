//! The sink of every line format: encodes batches into one buffer, writes it a buffer at a time, and
//! rotates files.

use std::any::{Any, TypeId};
use std::marker::PhantomData;
use std::path::Path;

use linkweir_engine::{Sink, SinkError};
use linkweir_record::{FlowKind, RecordBatch, RecordKind};

use crate::csv::CsvEncoder;
use crate::format::{Encoder, Format};
use crate::ipfix::{self, IpfixSink};
use crate::jsonl::JsonlEncoder;
use crate::names::Names;
use crate::output::{Output, Place, io_error, place};
use crate::rotate::Rotation;
use crate::text::TextEncoder;
use crate::zeek::{ZeekEncoder, ZeekJsonEncoder};

/// Bytes collected before a write: large enough to make the system call free, small enough to stay
/// in the second-level cache beside the tables.
const WRITE_BYTES: usize = 64 << 10;

/// How a destination is written, beyond its format.
#[derive(Debug, Clone)]
pub struct OutputOptions {
    /// When a file is complete and the next begins; `None`: at the end of the run.
    pub rotation: Option<Rotation>,
    /// The wall clock in nanoseconds since the epoch, asked once per file for formats that carry the
    /// time of writing (Zeek's `#open` and `#close`). Libraries have no clock of their own.
    pub wall_clock_ns: fn() -> u64,
    /// Whether the run makes partial records of long flows: a destination that adds up counters
    /// takes those and leaves the final ones, which say the same again.
    pub has_partial_records: bool,
    /// Whether the records come from an interface, which does not wait: a destination that is slow or
    /// away then loses what does not fit into its buffer, and counts it; else it is waited for.
    pub is_live: bool,
    /// The folders into which files are sorted by the time of their records.
    pub partition: Option<Partition>,
    /// Bytes of all files of a partitioned output; with more, the oldest are deleted.
    pub budget: Option<u64>,
    /// The name of this probe among others.
    pub probe: String,
    /// Settings of the client of a message broker, by name.
    pub kafka: Vec<(String, String)>,
    /// Tells people something that is no failure: that files were deleted, that a broker is back.
    pub announce: fn(&str),
}

/// The length of time that one folder of files is for, by UTC.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Partition {
    /// `date=2026-11-22/hour=07`.
    Hour,
    /// `date=2026-11-22`.
    Day,
}

impl Default for OutputOptions {
    /// No rotation; the epoch as the time of writing.
    fn default() -> Self {
        Self {
            rotation: None,
            wall_clock_ns: || 0,
            has_partial_records: false,
            is_live: false,
            partition: None,
            budget: None,
            probe: String::new(),
            kafka: Vec::new(),
            announce: |_| {},
        }
    }
}

/// Opens a destination for records of kind `K`.
///
/// `destination` is `-` for standard output or a path; `format` overrides the path's ending
/// ([`Format::from_path`]; `text` where the path has no ending). A file is written as `.NAME.partial`
/// beside its destination and renamed by [`Sink::finish`]; an existing file is replaced only then.
/// Devices and FIFOs are written directly.
///
/// With a rotation `out.jsonl` becomes `out-000001.jsonl`, `out-000002.jsonl` and so on, starting
/// after the highest number that is there; [`Sink::rotate`] starts the next one at once, and without
/// a rotation switches to numbered files.
///
/// `ipfix://host:port` (UDP; also `ipfix+udp://`) and `ipfix+tcp://host:port` send flows to a
/// collector. One that is away is no error after opening: see [`Sink::losses`].
///
/// # Errors
/// [`SinkError::Refused`] for a destination that cannot be one (a missing folder, a folder, an
/// unknown ending, rotation of something that is not a file), before anything is written;
/// [`SinkError::Io`] where the system refuses to open it.
pub fn open_sink<K: RecordKind>(
    destination: &str,
    format: Option<Format>,
    options: OutputOptions,
) -> Result<Box<dyn Sink<K>>, SinkError> {
    if let Some((scheme, _)) = destination.split_once("://") {
        return open_url(scheme, destination, options);
    }
    let place = place(destination)?;
    let format = match (format, &place) {
        (Some(format), _) => format,
        (None, Place::File(_)) => format_of(destination)?,
        (None, _) => Format::Text,
    };
    Ok(match format {
        Format::Text => boxed(destination, place, options, TextEncoder::new::<K>())?,
        Format::Jsonl => boxed(destination, place, options, JsonlEncoder::new::<K>())?,
        Format::Csv => boxed(destination, place, options, CsvEncoder::new::<K>())?,
        Format::Zeek => boxed(destination, place, options, ZeekEncoder::new::<K>())?,
        Format::ZeekJson => boxed(destination, place, options, ZeekJsonEncoder::new::<K>())?,
        Format::Spreadsheet => {
            let encoder = CsvEncoder::for_spreadsheets::<K>();
            boxed(destination, place, options, encoder)?
        }
        Format::Parquet | Format::Arrow => {
            return Err(SinkError::Refused {
                destination: destination.to_owned(),
                message: format!("the format `{format}` is not part of this build"),
            });
        }
    })
}

/// Opens what is no file.
fn open_url<K: RecordKind>(
    scheme: &str,
    destination: &str,
    options: OutputOptions,
) -> Result<Box<dyn Sink<K>>, SinkError> {
    let refuse = |message: String| {
        Err(SinkError::Refused {
            destination: destination.to_owned(),
            message,
        })
    };
    if !ipfix::is_collector(scheme) {
        return refuse(format!("`{scheme}://` outputs are not part of this build"));
    }
    if TypeId::of::<K>() != TypeId::of::<FlowKind>() {
        return refuse(format!(
            "IPFIX carries flows; records of kind `{}` cannot be exported",
            K::NAME
        ));
    }
    let sink: Box<dyn Sink<FlowKind>> = Box::new(IpfixSink::open(destination, options)?);
    // The two types are one, which only the run time knows.
    let any: Box<dyn Any> = Box::new(sink);
    match any.downcast::<Box<dyn Sink<K>>>() {
        Ok(sink) => Ok(*sink),
        Err(_) => refuse("IPFIX carries flows only".to_owned()),
    }
}

fn format_of(destination: &str) -> Result<Format, SinkError> {
    let path = Path::new(destination);
    match (Format::from_path(path), path.extension()) {
        (Some(format), _) => Ok(format),
        (None, None) => Ok(Format::Text),
        (None, Some(ending)) => Err(SinkError::Refused {
            destination: destination.to_owned(),
            message: format!(
                "no format goes with the ending `.{}`; name one with --format ({})",
                ending.to_string_lossy(),
                Format::ALL.map(Format::as_str).join(", ")
            ),
        }),
    }
}

fn boxed<K: RecordKind, E: Encoder<K>>(
    destination: &str,
    place: Place,
    options: OutputOptions,
    encoder: E,
) -> Result<Box<dyn Sink<K>>, SinkError> {
    Ok(Box::new(LineSink::open(
        destination,
        place,
        options,
        encoder,
    )?))
}

/// Why nothing more is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Open,
    Finished,
    Failed,
    ClosedPipe,
}

/// A sink of lines.
struct LineSink<K, E> {
    encoder: E,
    destination: String,
    options: OutputOptions,
    /// `None` after the end, and while one file is complete and the next not yet open.
    output: Option<Output>,
    /// `None` where the destination is no file.
    names: Option<Names>,
    buffer: Vec<u8>,
    /// Records in the current file.
    records: u64,
    /// The span of capture time the current file covers, counted in rotation periods.
    period: Option<u64>,
    state: State,
    kind: PhantomData<fn(K)>,
}

impl<K: RecordKind, E: Encoder<K>> LineSink<K, E> {
    fn open(
        destination: &str,
        place: Place,
        options: OutputOptions,
        encoder: E,
    ) -> Result<Self, SinkError> {
        let (output, names) = match place {
            Place::File(base) => {
                let mut names = Names { base, number: None };
                if options.rotation.is_some() {
                    let next = names.next_free().map_err(|e| io_error(destination, e))?;
                    names.number = Some(next);
                }
                (Output::partial(destination, &names.current())?, Some(names))
            }
            _ if options.rotation.is_some() => {
                return Err(SinkError::Refused {
                    destination: destination.to_owned(),
                    message: "only a file can be rotated".to_owned(),
                });
            }
            Place::Stdout => (Output::stdout()?, None),
            Place::Special(path) => (Output::special(destination, &path)?, None),
        };
        let mut sink = Self {
            encoder,
            destination: destination.to_owned(),
            options,
            output: Some(output),
            names,
            buffer: Vec::with_capacity(WRITE_BYTES + (WRITE_BYTES >> 2)),
            records: 0,
            period: None,
            state: State::Open,
            kind: PhantomData,
        };
        sink.start_file();
        Ok(sink)
    }

    fn start_file(&mut self) {
        self.encoder
            .header((self.options.wall_clock_ns)(), &mut self.buffer);
        self.records = 0;
    }

    /// Fails where an earlier call has.
    fn check(&self) -> Result<(), SinkError> {
        match self.state {
            State::Open => Ok(()),
            State::ClosedPipe => Err(SinkError::ClosedPipe),
            State::Failed => Err(SinkError::Refused {
                destination: self.destination.clone(),
                message: self
                    .output
                    .as_ref()
                    .and_then(Output::partial_path)
                    .map_or_else(
                        || "an earlier write failed".to_owned(),
                        |path| {
                            format!(
                                "an earlier write failed; what was written is in `{}`",
                                path.display()
                            )
                        },
                    ),
            }),
            State::Finished => Err(SinkError::Refused {
                destination: self.destination.clone(),
                message: "the output is complete already".to_owned(),
            }),
        }
    }

    /// Remembers a failure, so that no failed file is ever completed.
    fn keep<T>(&mut self, result: Result<T, SinkError>) -> Result<T, SinkError> {
        if let Err(error) = &result {
            self.state = match error {
                SinkError::ClosedPipe => State::ClosedPipe,
                _ => State::Failed,
            };
        }
        result
    }

    fn write_buffer(&mut self) -> Result<(), SinkError> {
        let Some(output) = &mut self.output else {
            return self.check();
        };
        let encoder = &self.encoder;
        let result = output.write(&self.buffer, |bytes| encoder.whole(bytes));
        self.buffer.clear();
        self.keep(result)
    }

    /// Completes the current file under its name.
    fn complete_file(&mut self) -> Result<(), SinkError> {
        self.encoder
            .footer((self.options.wall_clock_ns)(), &mut self.buffer);
        self.write_buffer()?;
        let (Some(output), Some(names)) = (self.output.take(), &self.names) else {
            return Ok(());
        };
        let result = output.complete(&names.current());
        self.keep(result)
    }

    /// Completes the current file and opens the next.
    fn next_file(&mut self) -> Result<(), SinkError> {
        let Some(names) = &mut self.names else {
            return Ok(());
        };
        if names.number.is_none() {
            let next = names
                .next_free()
                .map_err(|e| io_error(&self.destination, e));
            match next {
                Ok(next) => names.number = Some(next),
                Err(error) => return self.keep(Err(error)),
            }
        }
        self.complete_file()?;
        let Some(names) = &mut self.names else {
            return Ok(());
        };
        names.number = names.number.map(|number| number.saturating_add(1));
        let opened = Output::partial(&self.destination, &names.current());
        self.output = Some(self.keep(opened)?);
        self.start_file();
        Ok(())
    }

    fn write_rotating(&mut self, batch: &K::Batch, rotation: Rotation) -> Result<(), SinkError> {
        for view in batch.views() {
            if let Rotation::Every(span) = rotation {
                let span = u64::try_from(span.as_nanos()).unwrap_or(u64::MAX).max(1);
                let period = K::time_ns(&view) / span;
                let is_new = self.period.is_some_and(|current| period > current);
                self.period = self.period.max(Some(period));
                if is_new && self.records > 0 {
                    self.next_file()?;
                }
            }
            let start = self.buffer.len();
            self.encoder.record(&view, &mut self.buffer);
            if let Rotation::Size(limit) = rotation
                && self.records > 0
                && self.written() + self.buffer.len() as u64 > limit
            {
                // The record that does not fit is the first of the next file.
                let record = self.buffer.split_off(start);
                self.next_file()?;
                self.buffer.extend_from_slice(&record);
            }
            self.records += 1;
            if self.buffer.len() >= WRITE_BYTES {
                self.write_buffer()?;
            }
        }
        Ok(())
    }

    fn written(&self) -> u64 {
        self.output.as_ref().map_or(0, Output::written)
    }
}

impl<K: RecordKind, E: Encoder<K>> Sink<K> for LineSink<K, E> {
    fn write(&mut self, batch: &K::Batch) -> Result<(), SinkError> {
        self.check()?;
        if let Some(rotation) = self.options.rotation {
            return self.write_rotating(batch, rotation);
        }
        for view in batch.views() {
            self.encoder.record(&view, &mut self.buffer);
            if self.buffer.len() >= WRITE_BYTES {
                self.write_buffer()?;
            }
        }
        self.records += batch.len() as u64;
        Ok(())
    }

    fn flush(&mut self) -> Result<(), SinkError> {
        self.check()?;
        if self.buffer.is_empty() {
            return Ok(());
        }
        self.write_buffer()
    }

    /// An empty file is not completed: the next records go into it.
    fn rotate(&mut self) -> Result<(), SinkError> {
        self.check()?;
        if self.names.is_none() || self.records == 0 {
            return self.flush();
        }
        self.next_file()
    }

    fn finish(&mut self) -> Result<(), SinkError> {
        if self.state == State::Finished {
            return Ok(());
        }
        self.check()?;
        let follows_another = self
            .names
            .as_ref()
            .is_some_and(|names| names.number > Some(1));
        if self.records == 0 && follows_another {
            self.buffer.clear();
            if let Some(output) = self.output.take() {
                let result = output.discard();
                self.keep(result)?;
            }
        } else {
            self.complete_file()?;
        }
        self.state = State::Finished;
        Ok(())
    }
}
