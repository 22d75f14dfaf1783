//! Parquet files and Arrow streams as destinations of records.
//!
//! Files are written under `.NAME.partial` and renamed when they are complete, as those of all formats.
//! A partial Parquet file is a whole file at any moment, with all row groups that are complete: a row
//! group ends after 131,072 records, and on a run that goes on 60 s after its first record at the
//! latest, so that a killed run loses no more. A partial Arrow file is a stream without its end mark,
//! which readers take as its end.

mod footed;
mod part;
mod sink;

use linkweir_engine::{Sink, SinkError};
use linkweir_record::RecordKind;

use self::part::{ArrowPart, ParquetPart};
use self::sink::ColumnSink;
use crate::output::Place;
use crate::sink::OutputOptions;

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
    Ok(Box::new(sink))
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
