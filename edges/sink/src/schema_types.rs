//! How the fields of a record kind are typed in each format and store, as tables for the manual.

use std::fmt::Write;

use linkweir_record::{FieldType, RecordKind};

use crate::ddl::{KindSchema, clickhouse_type, duckdb_type};

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

/// The fields of kind `K` as a Markdown table of their types: name, unit, Arrow and Parquet, DuckDB,
/// ClickHouse, JSON, Zeek's column, IPFIX information element, what it is.
#[must_use]
pub fn types_markdown<K: RecordKind>() -> String {
    let schema = KindSchema::of::<K>();
    let mut out = String::from(
        "| field | unit | Arrow, Parquet | DuckDB | ClickHouse | JSON | Zeek | IPFIX | meaning |\n\
         | --- | --- | --- | --- | --- | --- | --- | --- | --- |\n",
    );
    for field in K::fields() {
        let zeek: Vec<String> = K::zeek_columns()
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
            clickhouse_type(&schema, field).unwrap_or_default(),
            json_type(field.kind),
            zeek.join(" "),
            field.ipfix.map(|id| id.to_string()).unwrap_or_default(),
            field.doc.replace('|', "\\|"),
        );
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use linkweir_record::{FlowKind, HttpKind};

    #[test]
    fn one_row_for_each_field_with_all_its_types() {
        let table = types_markdown::<HttpKind>();
        assert_eq!(table.lines().count(), HttpKind::fields().len() + 2);
        assert!(table.lines().all(|line| line.matches('|').count() == 10));
        assert!(table.contains("| `content_type` |  | string | VARCHAR |"));
        assert!(table.contains("| `resp_mime_types` `content_type` |"));
        assert!(types_markdown::<FlowKind>().contains("| `proto` `ip_proto` | 4 |"));
    }

    #[cfg(feature = "parquet")]
    #[test]
    fn types_are_those_of_the_columns() {
        use FieldType::{
            Bytes, I64, Ip, Millis, Port, SpanNs, Text, TimeMillis, TimeNs, U16, U32, U64, Word,
        };
        for kind in [
            U16, U32, U64, I64, TimeNs, SpanNs, Millis, TimeMillis, Ip, Port, Text, Word, Bytes,
        ] {
            let shown = format!("{:?}", linkweir_columnar::data_type(kind));
            let named = match shown.as_str() {
                "Utf8" => "string".to_owned(),
                "Float64" => "double".to_owned(),
                "Timestamp(Nanosecond, None)" => "timestamp[ns]".to_owned(),
                other => other.to_lowercase(),
            };
            assert_eq!(named, arrow_type(kind), "{kind:?}");
        }
    }
}
