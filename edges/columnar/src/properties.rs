//! How the columns of a kind are encoded in Parquet.

use linkweir_record::{FieldType, RecordKind};
use parquet::basic::{Compression, Encoding, ZstdLevel};
use parquet::file::properties::{EnabledStatistics, WriterProperties, WriterVersion};
use parquet::schema::types::ColumnPath;

/// The version of pages: the first, which every reader knows; encodings of the second are known by
/// all that read our types.
pub(crate) const VERSION: WriterVersion = WriterVersion::PARQUET_1_0;

/// Who made the file, as its footer says.
pub(crate) const CREATED_BY: &str = concat!("linkweir version ", env!("CARGO_PKG_VERSION"));

/// The properties of files of a kind: encodings, compression, statistics.
#[must_use]
pub fn writer_properties<K: RecordKind>() -> WriterProperties {
    let mut builder = WriterProperties::builder()
        .set_writer_version(VERSION)
        .set_created_by(CREATED_BY.to_owned())
        .set_compression(Compression::ZSTD(ZstdLevel::default()))
        // Row groups are closed by us.
        .set_max_row_group_row_count(None)
        .set_offset_index_disabled(true)
        // Smallest and largest values help to skip row groups where they grow with the file: times.
        .set_statistics_enabled(EnabledStatistics::None);
    for field in K::fields() {
        let column = ColumnPath::from(field.name);
        builder = match field.kind {
            FieldType::TimeNs | FieldType::TimeMillis => builder
                .set_column_statistics_enabled(column.clone(), EnabledStatistics::Chunk)
                .set_column_dictionary_enabled(column.clone(), false)
                .set_column_encoding(column, Encoding::DELTA_BINARY_PACKED),
            FieldType::SpanNs => builder
                .set_column_dictionary_enabled(column.clone(), false)
                .set_column_encoding(column, Encoding::DELTA_BINARY_PACKED),
            // Hashes and sequence numbers: nearly all different.
            FieldType::U32 => builder
                .set_column_dictionary_enabled(column.clone(), false)
                .set_column_encoding(column, Encoding::PLAIN),
            _ => builder,
        };
    }
    builder.build()
}
