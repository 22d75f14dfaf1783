//! The schema of a kind as JSON, for programs that make tables of their own.

use linkweir_record::FieldType;
use serde_json::{Value, json};

use super::clickhouse::clickhouse_type;
use super::{KindSchema, duckdb_type};

/// The word for a type of the schema.
const fn word(kind: FieldType) -> &'static str {
    match kind {
        FieldType::U16 => "u16",
        FieldType::U32 => "u32",
        FieldType::U64 => "u64",
        FieldType::I64 => "i64",
        FieldType::TimeNs => "time_ns",
        FieldType::SpanNs => "span_ns",
        FieldType::Millis => "span_ms",
        FieldType::TimeMillis => "time_ms",
        FieldType::Ip => "ip",
        FieldType::Port => "port",
        FieldType::Text => "text",
        FieldType::Word => "word",
        FieldType::Bytes => "bytes",
    }
}

/// The kind's name, version and columns; of each its name, its type here, in DuckDB (and so in Parquet)
/// and in ClickHouse, its unit (`null`: none), IPFIX element (`null`: none) and documentation.
#[must_use]
pub fn schema_json(schema: &KindSchema) -> Value {
    let fields = schema.fields.iter().map(|field| {
        json!({
            "name": field.name,
            "type": word(field.kind),
            "unit": (!field.unit.is_empty()).then_some(field.unit),
            "duckdb": duckdb_type(field.kind),
            "clickhouse": clickhouse_type(schema, field),
            "ipfix": field.ipfix,
            "doc": field.doc,
        })
    });
    json!({
        "kind": schema.name,
        "schema_version": schema.version,
        "fields": fields.collect::<Vec<_>>(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_column_says_all_there_is() {
        let schema = KindSchema::named("flow").unwrap();
        let value = schema_json(&schema);
        let fields = value["fields"].as_array().unwrap();
        assert_eq!(fields.len(), schema.fields.len());
        let first = fields
            .iter()
            .find(|field| field["name"] == "first")
            .unwrap();
        assert_eq!(
            *first,
            json!({
                "name": "first", "type": "time_ms", "unit": "ms since 1970", "duckdb": "TIMESTAMP_NS",
                "clickhouse": "Nullable(DateTime64(9, 'UTC'))", "ipfix": 323,
                "doc": "First packet of the flow, of a partial record of its period.",
            })
        );
        assert_eq!(value["schema_version"], schema.version);
    }
}
