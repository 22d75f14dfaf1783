//! The sink of every line format: encodes batches into one buffer, writes it a buffer at a time, and
//! rotates files.

use std::any::{Any, TypeId};
use std::marker::PhantomData;
use std::path::Path;

use linkweir_engine::{Sink, SinkError, SinkLosses};
use linkweir_record::{FlowKind, RecordBatch, RecordKind};

#[cfg(feature = "parquet")]
use crate::columnar;
use crate::csv::CsvEncoder;
use crate::format::{Encoder, Format};
use crate::ipfix::{self, IpfixSink};
use crate::jsonl::JsonlEncoder;
use crate::output::{Place, place};
use crate::rotate::{Period, Rotation};
use crate::series::Series;
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
    /// Whether it is known which addresses are internal: Zeek's `local_orig` and `local_resp` are unset
    /// where its `Site::local_nets` is empty.
    pub has_internal_networks: bool,
    /// Whether the records come from an interface, which does not wait: a destination that is slow or
    /// away then loses what does not fit into its buffer, and counts it; else it is waited for.
    pub is_live: bool,
    /// What becomes of a finished file that is there under the name of a destination.
    pub existing: Existing,
    /// The directories into which files are sorted by the time of their records.
    pub partition: Option<Partition>,
    /// Bytes of all files of a partitioned output; with more, the oldest are deleted.
    pub budget: Option<u64>,
    /// The name of this probe among others.
    pub probe: String,
    /// Settings of the client of a message broker, by name.
    pub kafka: Vec<(String, String)>,
    /// Whether the user has asked the run to stop: what waits for a destination waits less then.
    pub is_stopping: fn() -> bool,
    /// Tells people something that is no failure: that files were deleted, that a broker is back.
    pub announce: fn(&str),
}

/// What becomes of a finished file that has the name of a destination.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Existing {
    /// It stays, and the destination is refused: who reads files can say what is to happen.
    #[default]
    Refuse,
    /// It stays, and the new file takes the first free name of `NAME.1`, `NAME.2` and so on: what comes
    /// from an interface cannot be had again.
    Keep,
    /// It is replaced when the new file is complete.
    Replace,
}

impl Existing {
    /// What goes for a run: `overwrite` is the user's word, `is_live` as of [`OutputOptions::is_live`].
    #[must_use]
    pub const fn of(overwrite: bool, is_live: bool) -> Self {
        match (overwrite, is_live) {
            (true, _) => Self::Replace,
            (false, true) => Self::Keep,
            (false, false) => Self::Refuse,
        }
    }
}

/// The length of time that one directory of files is for, by UTC.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Partition {
    /// `date=2026-11-22/hour=07`.
    Hour,
    /// `date=2026-11-22`.
    Day,
}

impl OutputOptions {
    /// Whether the span of a file is over by the clock: that of an interface goes on where no record comes.
    pub(crate) fn is_over(&self, period: &mut Period) -> bool {
        match self.rotation {
            Some(Rotation::Every(span)) if self.is_live => {
                period.passes((self.wall_clock_ns)(), span)
            }
            _ => false,
        }
    }
}

impl Default for OutputOptions {
    /// No rotation; the epoch as the time of writing.
    fn default() -> Self {
        Self {
            rotation: None,
            wall_clock_ns: || 0,
            has_partial_records: false,
            has_internal_networks: false,
            is_live: false,
            existing: Existing::default(),
            partition: None,
            budget: None,
            probe: String::new(),
            kafka: Vec::new(),
            is_stopping: || false,
            announce: |_| {},
        }
    }
}

/// Opens a destination for records of kind `K`.
///
/// `destination` is `-` for standard output or a path; `format` overrides the path's ending
/// ([`Format::from_path`]; `text` where the path has no ending). A file is written as `.NAME.partial`
/// beside its destination and renamed by [`Sink::finish`]. What a killed run left under such a name gets
/// its own name first; [`OutputOptions::existing`] says what becomes of a finished file. Devices and
/// FIFOs are written directly.
///
/// With a rotation `out.jsonl` becomes `out-000001.jsonl`, `out-000002.jsonl` and so on, starting
/// after the highest number that is there; [`Sink::rotate`] starts the next one at once, and without
/// a rotation switches to numbered files.
///
/// With a partition ([`OutputOptions::partition`]) the destination is a directory, which is made where it
/// is missing; files appear in directories below it by the time of their records.
///
/// `ipfix://host:port` (UDP; also `ipfix+udp://`) and `ipfix+tcp://host:port` send flows to a
/// collector. One that is away is no error after opening: see [`Sink::losses`].
///
/// `kafka://broker[:port][,broker...]/topic` sends records of any kind to a topic, as `jsonl` objects
/// with `kind`, `schema_version`, `probe` and `record_id` before the fields. A broker that is away is no
/// error: see [`Sink::losses`].
///
/// # Errors
/// [`SinkError::Refused`] for a destination that cannot be one (a missing directory, a directory, an
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
    #[cfg(feature = "parquet")]
    if let Some(partition) = options.partition {
        return columnar::open_partitioned(destination, format, partition, options);
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
        Format::Zeek => {
            let encoder = ZeekEncoder::new::<K>(options.has_internal_networks);
            boxed(destination, place, options, encoder)?
        }
        Format::ZeekJson => {
            let encoder = ZeekJsonEncoder::new::<K>(options.has_internal_networks);
            boxed(destination, place, options, encoder)?
        }
        Format::Spreadsheet => {
            let encoder = CsvEncoder::for_spreadsheets::<K>();
            boxed(destination, place, options, encoder)?
        }
        #[cfg(feature = "parquet")]
        Format::Parquet => columnar::open_parquet(destination, place, options)?,
        #[cfg(feature = "parquet")]
        Format::Arrow => columnar::open_arrow(destination, place, options)?,
        #[cfg(not(feature = "parquet"))]
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
    #[cfg(feature = "kafka")]
    if crate::kafka::is_topic(scheme) {
        return Ok(Box::new(crate::kafka::KafkaSink::<K>::open(
            destination,
            options,
        )?));
    }
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

/// A sink of lines.
struct LineSink<K, E> {
    encoder: E,
    options: OutputOptions,
    series: Series,
    buffer: Vec<u8>,
    /// Bytes of `buffer` that are the head of a file, and no records.
    head: usize,
    /// Records in the current file.
    records: u64,
    /// Records that were to be written, and those of them that are in an output.
    given: u64,
    arrived: u64,
    /// Records in `buffer`.
    buffered: u64,
    /// The span of capture time that the current file covers.
    period: Period,
    kind: PhantomData<fn(K)>,
}

impl<K: RecordKind, E: Encoder<K>> LineSink<K, E> {
    fn open(
        destination: &str,
        place: Place,
        options: OutputOptions,
        encoder: E,
    ) -> Result<Self, SinkError> {
        let series = Series::open(destination, place, options.rotation.is_some(), &options)?;
        let mut sink = Self {
            encoder,
            options,
            series,
            buffer: Vec::with_capacity(WRITE_BYTES + (WRITE_BYTES >> 2)),
            head: 0,
            records: 0,
            given: 0,
            arrived: 0,
            buffered: 0,
            period: Period::default(),
            kind: PhantomData,
        };
        sink.start_file();
        Ok(sink)
    }

    fn start_file(&mut self) {
        self.encoder
            .header((self.options.wall_clock_ns)(), &mut self.buffer);
        self.head = self.buffer.len();
        self.records = 0;
    }

    fn write_buffer(&mut self) -> Result<(), SinkError> {
        let before = self.series.written();
        let (encoder, buffer) = (&self.encoder, &self.buffer);
        let result = self
            .series
            .write(|output| output.write(buffer, |bytes| encoder.whole(bytes)));
        self.arrived += match &result {
            Ok(()) => self.buffered,
            Err(_) => {
                let written = usize::try_from(self.series.written() - before).unwrap_or(usize::MAX);
                let records = buffer.get(self.head..written).unwrap_or_default();
                // A record is a line.
                records.iter().filter(|byte| **byte == b'\n').count() as u64
            }
        };
        self.buffer.clear();
        (self.head, self.buffered) = (0, 0);
        result
    }

    /// Completes the current file under its name.
    fn complete_file(&mut self) -> Result<(), SinkError> {
        self.encoder
            .footer((self.options.wall_clock_ns)(), &mut self.buffer);
        self.write_buffer()?;
        self.series.complete()
    }

    /// Completes the current file and opens the next.
    fn next_file(&mut self) -> Result<(), SinkError> {
        if !self.series.is_file() {
            return Ok(());
        }
        self.series.number_files()?;
        self.complete_file()?;
        self.series.open_next()?;
        self.start_file();
        Ok(())
    }

    fn write_rotating(&mut self, batch: &K::Batch, rotation: Rotation) -> Result<(), SinkError> {
        for view in batch.views() {
            if let Rotation::Every(span) = rotation
                && self.period.begins(K::time_ns(&view), span)
                && self.records > 0
            {
                self.next_file()?;
            }
            let start = self.buffer.len();
            self.encoder.record(&view, &mut self.buffer);
            if let Rotation::Size(limit) = rotation
                && self.records > 0
                && self.series.written() + self.buffer.len() as u64 > limit
            {
                // The record that does not fit is the first of the next file.
                let record = self.buffer.split_off(start);
                self.next_file()?;
                self.buffer.extend_from_slice(&record);
            }
            self.records += 1;
            self.buffered += 1;
            if self.buffer.len() >= WRITE_BYTES {
                self.write_buffer()?;
            }
        }
        Ok(())
    }
}

impl<K: RecordKind, E: Encoder<K>> Sink<K> for LineSink<K, E> {
    fn write(&mut self, batch: &K::Batch) -> Result<(), SinkError> {
        self.given += batch.len() as u64;
        self.series.check()?;
        if let Some(rotation) = self.options.rotation {
            return self.write_rotating(batch, rotation);
        }
        for view in batch.views() {
            self.encoder.record(&view, &mut self.buffer);
            self.buffered += 1;
            if self.buffer.len() >= WRITE_BYTES {
                self.write_buffer()?;
            }
        }
        self.records += batch.len() as u64;
        Ok(())
    }

    fn miss(&mut self, batch: &K::Batch) {
        self.given += batch.len() as u64;
    }

    fn losses(&self) -> SinkLosses {
        self.series.losses(self.given - self.arrived)
    }

    fn flush(&mut self) -> Result<(), SinkError> {
        self.series.check()?;
        if self.options.is_over(&mut self.period) && self.records > 0 {
            return self.next_file();
        }
        if self.buffer.is_empty() {
            return Ok(());
        }
        self.write_buffer()
    }

    /// An empty file is not completed: the next records go into it.
    fn rotate(&mut self) -> Result<(), SinkError> {
        self.series.check()?;
        if !self.series.is_file() || self.records == 0 {
            return self.flush();
        }
        self.next_file()
    }

    fn finish(&mut self) -> Result<(), SinkError> {
        if self.series.is_finished() {
            return Ok(());
        }
        self.series.check()?;
        if self.records == 0 && self.series.follows_another() {
            self.buffer.clear();
            self.series.discard()?;
        } else {
            self.complete_file()?;
        }
        self.series.finish();
        Ok(())
    }
}
