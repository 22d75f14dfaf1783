//! Parquet files and Arrow streams as destinations of records.
//!
//! Files are written under `.NAME.partial` and renamed when they are complete, as those of all formats.
//! A partial Parquet file is a whole file at any moment, with all row groups that are complete: a row
//! group ends after 131,072 records, and on a run that goes on 60 s after its first record at the
//! latest, so that a killed run loses no more. A partial Arrow file is a stream without its end mark,
//! which readers take as its end.
//!
//! With `--partition` Parquet files are sorted into directories by the time of their records, and
//! `--budget` deletes the oldest of them.

mod beside;
mod directories;
mod part;
mod partitions;
mod sink;

use linkweir_engine::{Sink, SinkError};
use linkweir_record::RecordKind;

use self::beside::Beside;
use self::part::{ArrowPart, ParquetPart};
use self::partitions::PartitionedSink;
use self::sink::ColumnSink;
use crate::format::Format;
use crate::options::{OutputOptions, Partition};
use crate::output::Place;

/// Opens a Parquet file, or rotated ones.
///
/// # Errors
/// Where the destination cannot be opened, or not rotated.
pub(crate) fn open_parquet<K: RecordKind>(
    destination: &str,
    place: Place,
    options: OutputOptions,
) -> Result<Box<dyn Sink<K>>, SinkError> {
    let sink = ColumnSink::<K, ParquetPart<K>>::open(destination, place, options, false)?;
    Ok(Box::new(Beside::new(Box::new(sink))))
}

/// Opens an Arrow stream, or rotated files of them.
///
/// # Errors
/// Where the destination cannot be opened, or not rotated.
pub(crate) fn open_arrow<K: RecordKind>(
    destination: &str,
    place: Place,
    options: OutputOptions,
) -> Result<Box<dyn Sink<K>>, SinkError> {
    let sink = ColumnSink::<K, ArrowPart<K>>::open(destination, place, options, false)?;
    Ok(Box::new(sink))
}

/// Opens a directory in which Parquet files are sorted into directories by time.
///
/// # Errors
/// Where another format is asked for, or the destination is not a directory and cannot become one.
pub(crate) fn open_partitioned<K: RecordKind>(
    destination: &str,
    format: Option<Format>,
    partition: Partition,
    options: OutputOptions,
) -> Result<Box<dyn Sink<K>>, SinkError> {
    if let Some(format) = format.filter(|format| *format != Format::Parquet) {
        return Err(SinkError::Refused {
            destination: destination.to_owned(),
            message: format!(
                "--partition is for the format `parquet`; files of the format `{format}` can be rotated (--rotate)"
            ),
        });
    }
    let sink = PartitionedSink::<K>::open(destination, partition, options)?;
    Ok(Box::new(Beside::new(Box::new(sink))))
}
