//! The sink of every line format: encodes batches into one buffer, writes it a buffer at a time, and
//! rotates files.

use std::marker::PhantomData;
use std::path::Path;

use linkweir_engine::{Sink, SinkError, SinkLosses};
use linkweir_record::{RecordBatch, RecordKind};

use crate::chosen::chosen;
#[cfg(feature = "parquet")]
use crate::columnar;
use crate::csv::CsvEncoder;
use crate::elasticsearch::{is_elasticsearch, open_elasticsearch};
use crate::format::{Encoder, Format, all_columns, chosen_columns};
use crate::ipfix;
use crate::jsonl::JsonlEncoder;
use crate::options::OutputOptions;
use crate::output::{Place, place};
use crate::rotate::{Period, Rotation};
use crate::series::Series;
use crate::syslog::{is_syslog, open_syslog};
use crate::table::TableEncoder;
use crate::text::{TextEncoder, own_line};
use crate::zeek::{ZeekEncoder, ZeekJsonEncoder};

/// Bytes collected before a write: large enough to make the system call free, small enough to stay
/// in the second-level cache beside the tables.
const WRITE_BYTES: usize = 64 << 10;

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
/// It gets the records that [`OutputOptions::condition`] and [`OutputOptions::head`] let through.
///
/// `syslog://host:port` (UDP) and `syslog+tcp://host:port` send each record as a message with a JSON object.
///
/// `elasticsearch://host:port/index` and `elasticsearch+https://` add each record to an index as a document.
///
/// Collectors of flows (`ipfix://`) are opened by [`open_ipfix`](crate::open_ipfix).
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
    chosen(options, |options| open_whole(destination, format, options))
}

/// Opens a destination that gets all records it is given.
fn open_whole<K: RecordKind>(
    destination: &str,
    format: Option<Format>,
    options: OutputOptions,
) -> Result<Box<dyn Sink<K>>, SinkError> {
    let refuse = |message: String| SinkError::Refused {
        destination: destination.to_owned(),
        message,
    };
    let has_fields = !options.fields.is_empty();
    let all_fields = |what: &str| match has_fields {
        true => Err(refuse(format!(
            "--fields does not go with {what}: all columns are written there"
        ))),
        false => Ok(()),
    };
    let columns = |others: fn() -> Vec<usize>| {
        chosen_columns::<K>(&options.fields, others).map_err(|message| SinkError::Refused {
            destination: "--fields".to_owned(),
            message,
        })
    };
    if let Some((scheme, _)) = destination.split_once("://") {
        if !is_syslog(destination) {
            all_fields(&format!("{scheme}://"))?;
        }
        return open_remote(
            destination,
            format,
            scheme,
            &columns(all_columns::<K>)?,
            options,
        );
    }
    #[cfg(feature = "parquet")]
    if let Some(partition) = options.partition {
        all_fields("--partition")?;
        return columnar::open_partitioned(destination, format, partition, options);
    }
    let place = place(destination)?;
    let format = format_for::<K>(destination, &place, format, &options)?;
    Ok(match format {
        Format::Table => {
            let encoder = if has_fields {
                TableEncoder::of_columns::<K>(&columns(Vec::new)?, options.table)
            } else if K::line().is_empty() {
                return Err(refuse(format!("no table of records of kind `{}`", K::NAME)));
            } else {
                TableEncoder::new::<K>(options.table)
            };
            boxed(destination, place, options, encoder)?
        }
        Format::Text => {
            let encoder = TextEncoder::new::<K>(&columns(own_line::<K>)?);
            boxed(destination, place, options, encoder)?
        }
        Format::Jsonl => {
            let encoder = JsonlEncoder::new::<K>(&columns(all_columns::<K>)?);
            boxed(destination, place, options, encoder)?
        }
        Format::Csv => {
            let encoder = CsvEncoder::new::<K>(&columns(all_columns::<K>)?);
            boxed(destination, place, options, encoder)?
        }
        Format::Zeek => {
            all_fields("Zeek's logs")?;
            let encoder = ZeekEncoder::new::<K>(options.has_internal_networks);
            boxed(destination, place, options, encoder)?
        }
        Format::ZeekJson => {
            all_fields("Zeek's logs")?;
            let encoder = ZeekJsonEncoder::new::<K>(options.has_internal_networks);
            boxed(destination, place, options, encoder)?
        }
        Format::Spreadsheet => {
            let encoder = CsvEncoder::for_spreadsheets::<K>(&columns(all_columns::<K>)?);
            boxed(destination, place, options, encoder)?
        }
        #[cfg(feature = "parquet")]
        Format::Parquet => {
            all_fields("the format `parquet`")?;
            columnar::open_parquet(destination, place, options)?
        }
        #[cfg(feature = "parquet")]
        Format::Arrow => {
            all_fields("the format `arrow`")?;
            columnar::open_arrow(destination, place, options)?
        }
        #[cfg(not(feature = "parquet"))]
        Format::Parquet | Format::Arrow => {
            return Err(SinkError::Refused {
                destination: destination.to_owned(),
                message: format!("the format `{format}` is not part of this build"),
            });
        }
    })
}

/// The format of records of kind `K` at a place.
fn format_for<K: RecordKind>(
    destination: &str,
    place: &Place,
    format: Option<Format>,
    options: &OutputOptions,
) -> Result<Format, SinkError> {
    let is_table = options.is_shown && (!options.fields.is_empty() || !K::line().is_empty());
    Ok(match (format, place) {
        (Some(format), _) => format,
        (None, Place::File(_)) => format_of(destination)?,
        (None, Place::Stdout) if is_table => Format::Table,
        (None, _) => Format::Text,
    })
}

/// Whether [`open_sink`] would write a table there.
#[must_use]
pub fn is_table<K: RecordKind>(
    destination: &str,
    format: Option<Format>,
    options: &OutputOptions,
) -> bool {
    let is_local = !destination.contains("://") && options.partition.is_none();
    let place = is_local.then(|| place(destination).ok()).flatten();
    let format = place.map(|place| format_for::<K>(destination, &place, format, options));
    matches!(format, Some(Ok(Format::Table)))
}

/// Opens a destination over a network; these columns are for one that has a choice.
fn open_remote<K: RecordKind>(
    destination: &str,
    format: Option<Format>,
    scheme: &str,
    columns: &[usize],
    options: OutputOptions,
) -> Result<Box<dyn Sink<K>>, SinkError> {
    if is_syslog(destination) {
        if format.is_some_and(|format| format != Format::Jsonl) {
            return Err(SinkError::Refused {
                destination: destination.to_owned(),
                message: "a message of syslog is an object of jsonl".to_owned(),
            });
        }
        return open_syslog(destination, columns, &options);
    }
    if is_elasticsearch(destination) {
        return open_elasticsearch(destination, &options);
    }
    #[cfg(feature = "kafka")]
    if crate::kafka::is_topic(scheme) {
        let sink = crate::kafka::KafkaSink::<K>::open(destination, options)?;
        return Ok(Box::new(sink));
    }
    drop(options);
    Err(no_such_output::<K>(scheme, destination))
}

/// What destinations over a network begin with.
const SCHEMES: [&str; 8] = [
    "elasticsearch",
    "elasticsearch+https",
    "ipfix",
    "ipfix+tcp",
    "kafka",
    "syslog",
    "syslog+tcp",
    "syslog+udp",
];

/// Why a URL is not an output of these records.
fn no_such_output<K: RecordKind>(scheme: &str, destination: &str) -> SinkError {
    SinkError::Refused {
        destination: destination.to_owned(),
        message: if ipfix::is_collector(destination) {
            format!(
                "IPFIX carries flows; records of kind `{}` cannot be exported",
                K::NAME
            )
        } else {
            let known = scheme == "kafka";
            match SCHEMES
                .iter()
                .find(|one| one.starts_with(scheme) || scheme.starts_with(**one))
            {
                _ if known => format!("`{scheme}://` outputs are not part of this build"),
                Some(one) => format!("no output is named so; did you mean `{one}://`?"),
                None => format!("no output is named so; there are {}", SCHEMES.join(", ")),
            }
        },
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
        self.series.complete().map(drop)
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
        // Whoever reads a stream sees at once that there are records.
        if self.arrived == 0 && !self.series.is_file() && self.buffered > 0 {
            return self.write_buffer();
        }
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
