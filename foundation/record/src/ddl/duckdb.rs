//! A view of Parquet files for DuckDB.

use super::kind::{KindSchema, put};
use crate::schema::FieldType;

/// The type of a column that DuckDB finds in Parquet files and Arrow streams.
#[must_use]
pub const fn duckdb_type(kind: FieldType) -> &'static str {
    match kind {
        FieldType::U16 | FieldType::Port => "USMALLINT",
        FieldType::U32 => "UINTEGER",
        FieldType::U64 => "UBIGINT",
        FieldType::I64 | FieldType::SpanNs => "BIGINT",
        FieldType::Millis => "DOUBLE",
        FieldType::TimeNs | FieldType::TimeMillis => "TIMESTAMP_NS",
        FieldType::Ip | FieldType::Text | FieldType::Word => "VARCHAR",
        FieldType::Bytes => "BLOB",
    }
}

/// A view of all files of the kind under `directory`.
///
/// The first half has no rows: it gives every column its type, also where all files are of an earlier
/// version that lacks it. Columns of a later version, and those of the directories' names, come behind.
#[must_use]
pub fn duckdb_view(schema: &KindSchema, directory: &str) -> String {
    let mut out = String::new();
    let directory = directory.trim_end_matches('/').replace('\'', "''");
    put(
        &mut out,
        format_args!(
            "-- {}, version {} of its columns, from the Parquet files under {}.\n\
             -- Addresses are texts; with the extension inet: client_ip::INET.\n\
             CREATE OR REPLACE VIEW {} AS\nSELECT",
            schema.name,
            schema.version,
            directory.replace(['\n', '\r'], " "),
            schema.name
        ),
    );
    for (at, field) in schema.fields.iter().enumerate() {
        let comma = if at == 0 { "" } else { "," };
        put(
            &mut out,
            format_args!(
                "{comma}\n    NULL::{} AS \"{}\"",
                duckdb_type(field.kind),
                field.name
            ),
        );
    }
    put(
        &mut out,
        format_args!(
            "\nWHERE false\nUNION ALL BY NAME\n\
             SELECT * FROM read_parquet('{directory}/**/*.parquet', hive_partitioning = true, union_by_name = true);\n"
        ),
    );
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_column_has_its_type() {
        for schema in KindSchema::all() {
            let view = duckdb_view(&schema, "it's/here/");
            for field in schema.fields {
                let column = format!("NULL::{} AS \"{}\"", duckdb_type(field.kind), field.name);
                assert_eq!(view.matches(&column).count(), 1, "{column}");
            }
            assert!(
                view.contains("read_parquet('it''s/here/**/*.parquet'"),
                "{view}"
            );
        }
    }
}
