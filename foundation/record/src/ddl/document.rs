//! The schema of a kind as documents: Markdown tables for the manual, JSON for programs.

use std::fmt::Write;

use serde_json::{Value, json};

use super::clickhouse::clickhouse_type;
use super::duckdb::duckdb_type;
use super::kind::KindSchema;
use crate::schema::FieldType;

const fn type_name(kind: FieldType) -> &'static str {
    match kind {
        FieldType::U16 | FieldType::U32 | FieldType::U64 | FieldType::I64 => "unsigned integer",
        FieldType::TimeNs => "time",
        FieldType::SpanNs => "time span",
        FieldType::Millis | FieldType::TimeMillis => "milliseconds, six decimals",
        FieldType::Ip => "IP address",
        FieldType::Port => "port",
        FieldType::Text => "text from the network",
        FieldType::Word => "word",
        FieldType::Bytes => "bytes, hexadecimal in text",
    }
}

/// The fields of a kind as a Markdown table: name, type, unit, what it is, and the names it has
/// elsewhere (IPFIX information element, column of Zeek's log, place in the `text` line).
#[must_use]
pub fn schema_markdown(schema: &KindSchema) -> String {
    let mut out = String::from(
        "| field | type | unit | meaning | `text` column | Zeek | IPFIX |\n\
         | --- | --- | --- | --- | --- | --- | --- |\n",
    );
    for field in schema.fields {
        let place = schema.text_line.iter().position(|name| *name == field.name);
        let zeek = schema
            .zeek_columns
            .iter()
            .find(|(name, _)| *name == field.name);
        // Writing to a string cannot fail.
        let _unfailing = writeln!(
            out,
            "| `{}` | {} | {} | {} | {} | {} | {} |",
            field.name,
            type_name(field.kind),
            field.unit,
            field.doc.replace('|', "\\|"),
            place.map(|at| (at + 1).to_string()).unwrap_or_default(),
            zeek.map(|(_, column)| format!("`{}`", column.name))
                .unwrap_or_default(),
            field.ipfix.map(|id| id.to_string()).unwrap_or_default(),
        );
    }
    out
}

/// The name of the Arrow type of a field, as pyarrow prints it.
const fn arrow_type(kind: FieldType) -> &'static str {
    match kind {
        FieldType::U16 | FieldType::Port => "uint16",
        FieldType::U32 => "uint32",
        FieldType::U64 => "uint64",
        FieldType::I64 | FieldType::SpanNs => "int64",
        FieldType::Millis => "double",
        FieldType::TimeNs | FieldType::TimeMillis => "timestamp[ns]",
        FieldType::Ip | FieldType::Text | FieldType::Word => "string",
        FieldType::Bytes => "binary",
    }
}

/// What a value is in `jsonl` and in a message of a broker.
const fn json_type(kind: FieldType) -> &'static str {
    match kind {
        FieldType::U16 | FieldType::U32 | FieldType::U64 | FieldType::I64 | FieldType::Port => {
            "integer"
        }
        FieldType::TimeNs | FieldType::SpanNs => "integer, ns",
        FieldType::Millis | FieldType::TimeMillis => "number, ms",
        FieldType::Ip | FieldType::Text | FieldType::Word => "string",
        FieldType::Bytes => "string, hex",
    }
}

/// The fields of a kind as a Markdown table of their types: name, unit, Arrow and Parquet, DuckDB,
/// ClickHouse, JSON, Zeek's column, IPFIX information element, what it is.
#[must_use]
pub fn types_markdown(schema: &KindSchema) -> String {
    let mut out = String::from(
        "| field | unit | Arrow, Parquet | DuckDB | ClickHouse | JSON | Zeek | IPFIX | meaning |\n\
         | --- | --- | --- | --- | --- | --- | --- | --- | --- |\n",
    );
    for field in schema.fields {
        let zeek: Vec<String> = schema
            .zeek_columns
            .iter()
            .filter(|(name, _)| *name == field.name)
            .map(|(_, column)| format!("`{}`", column.name))
            .collect();
        // Writing to a string cannot fail.
        let _unfailing = writeln!(
            out,
            "| `{}` | {} | {} | {} | {} | {} | {} | {} | {} |",
            field.name,
            field.unit,
            arrow_type(field.kind),
            duckdb_type(field.kind),
            clickhouse_type(schema, field).unwrap_or_default(),
            json_type(field.kind),
            zeek.join(" "),
            field.ipfix.map(|id| id.to_string()).unwrap_or_default(),
            field.doc.replace('|', "\\|"),
        );
    }
    out
}

/// The name of a type in the schema.
const fn json_name(kind: FieldType) -> &'static str {
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
            "type": json_name(field.kind),
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

    fn named(name: &str) -> KindSchema {
        KindSchema::named(name).unwrap()
    }

    #[test]
    fn one_row_for_each_field() {
        let http = named("http_transaction");
        let table = schema_markdown(&http);
        assert_eq!(table.lines().count(), http.fields.len() + 2);
        assert!(
            table
                .lines()
                .all(|line| line.matches(" | ").count() + line.matches("|  |").count() >= 6)
        );
        assert!(table.contains(
            "| `client_ip` | IP address |  | Address that sent the request. | 1 | `id.orig_h` | 8 |"
        ));
    }

    #[test]
    fn one_row_for_each_field_with_all_its_types() {
        let (http, flow) = (named("http_transaction"), named("flow"));
        let table = types_markdown(&http);
        assert_eq!(table.lines().count(), http.fields.len() + 2);
        assert!(table.lines().all(|line| line.matches('|').count() == 10));
        assert!(table.contains("| `content_type` |  | string | VARCHAR |"));
        assert!(table.contains("| `resp_mime_types` `content_type` |"));
        assert!(types_markdown(&flow).contains("| `proto` `ip_proto` | 4 |"));
    }

    #[test]
    fn a_column_says_all_there_is() {
        let schema = named("flow");
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
