//! The Arrow schema of a record kind, and the errors between records and columns.

use std::collections::HashMap;
use std::sync::Arc;

use arrow_schema::{ArrowError, DataType, Field, Schema, SchemaRef, TimeUnit};
use linkweir_record::{FieldType, RecordKind};
use parquet::errors::ParquetError;

/// The key of the metadata of a file or stream under which the name of the record kind stands.
pub const KIND_KEY: &str = "linkweir.kind";

/// The key under which the version of the columns stands ([`RecordKind::VERSION`]).
pub const VERSION_KEY: &str = "linkweir.schema_version";

/// The Arrow type of the values of a field.
///
/// Moments are timestamps in nanoseconds without a time zone (they are UTC): engines that know
/// nanoseconds keep all digits of these, but cut those with a zone to microseconds.
#[must_use]
pub const fn data_type(kind: FieldType) -> DataType {
    match kind {
        FieldType::U16 | FieldType::Port => DataType::UInt16,
        FieldType::U32 => DataType::UInt32,
        FieldType::U64 => DataType::UInt64,
        FieldType::TimeNs | FieldType::TimeMillis => {
            DataType::Timestamp(TimeUnit::Nanosecond, None)
        }
        FieldType::SpanNs | FieldType::I64 => DataType::Int64,
        FieldType::Millis => DataType::Float64,
        FieldType::Ip | FieldType::Text | FieldType::Word => DataType::Utf8,
        FieldType::Bytes => DataType::Binary,
    }
}

/// What stands in the metadata of files and streams of a kind: which kind, and which version of it.
#[must_use]
pub fn metadata_of<K: RecordKind>() -> [(String, String); 2] {
    [
        (KIND_KEY.to_owned(), K::NAME.to_owned()),
        (VERSION_KEY.to_owned(), K::VERSION.to_string()),
    ]
}

/// The schema of a kind: its fields by name and in their order, every one nullable, and the metadata
/// of [`metadata_of`].
#[must_use]
pub fn schema_of<K: RecordKind>() -> SchemaRef {
    let fields: Vec<Field> = K::fields()
        .iter()
        .map(|field| Field::new(field.name, data_type(field.kind), true))
        .collect();
    let metadata = HashMap::from(metadata_of::<K>());
    Arc::new(Schema::new_with_metadata(fields, metadata))
}

/// What the Arrow and Parquet libraries refused.
#[derive(Debug, thiserror::Error)]
pub enum ColumnarError {
    /// Arrow arrays or a stream of them.
    #[error("Arrow: {0}")]
    Arrow(#[from] ArrowError),
    /// A Parquet file.
    #[error("Parquet: {0}")]
    Parquet(#[from] ParquetError),
    /// The bytes of a part that is complete in memory.
    #[error("encoding: {0}")]
    Io(#[from] std::io::Error),
    /// Bytes over which the library gave up, with its last words.
    #[error("damaged: {0}")]
    Damaged(String),
}

#[cfg(test)]
mod tests {
    use super::*;
    use linkweir_record::ddl::{KindSchema, types_markdown};
    use linkweir_record::{FlowKind, HttpKind};

    #[test]
    fn types_and_metadata_of_a_kind() {
        let schema = schema_of::<HttpKind>();
        let of = |name: &str| schema.field_with_name(name).unwrap().data_type().clone();
        assert_eq!(of("client_ip"), DataType::Utf8);
        assert_eq!(of("client_port"), DataType::UInt16);
        assert_eq!(
            of("request_ts_ns"),
            DataType::Timestamp(TimeUnit::Nanosecond, None)
        );
        assert_eq!(of("response_time_ns"), DataType::Int64);
        assert_eq!(of("flow_hash"), DataType::UInt32);
        assert_eq!(of("response_bytes"), DataType::UInt64);
        assert_eq!(schema.fields().len(), HttpKind::fields().len());
        assert_eq!(schema.metadata()[KIND_KEY], "http_transaction");
        assert_eq!(
            schema.metadata()[VERSION_KEY],
            HttpKind::VERSION.to_string()
        );
        let flows = schema_of::<FlowKind>();
        let of = |name: &str| flows.field_with_name(name).unwrap().data_type().clone();
        assert_eq!(of("durat"), DataType::Float64);
        assert_eq!(of("first"), DataType::Timestamp(TimeUnit::Nanosecond, None));
    }

    #[test]
    fn the_manual_names_the_types_of_the_columns() {
        for schema in KindSchema::every() {
            let table = types_markdown(&schema);
            for (field, row) in schema.fields.iter().zip(table.lines().skip(2)) {
                let shown = format!("{:?}", data_type(field.kind));
                let named = match shown.as_str() {
                    "Utf8" => "string".to_owned(),
                    "Float64" => "double".to_owned(),
                    "Timestamp(Nanosecond, None)" => "timestamp[ns]".to_owned(),
                    other => other.to_lowercase(),
                };
                assert_eq!(row.split('|').nth(3).unwrap().trim(), named, "{row}");
            }
        }
    }
}
