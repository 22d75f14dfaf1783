//! The documentation of a record kind, from its schema.

use std::fmt::Write;

use linkweir_record::{FieldType, RecordKind};

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

/// The fields of kind `K` as a Markdown table: name, type, unit, what it is, and the names it has
/// elsewhere (IPFIX information element, column of Zeek's log, place in the `text` line).
#[must_use]
pub fn schema_markdown<K: RecordKind>() -> String {
    let mut out = String::from(
        "| field | type | unit | meaning | `text` column | Zeek | IPFIX |\n\
         | --- | --- | --- | --- | --- | --- | --- |\n",
    );
    for field in K::fields() {
        let place = K::text_line().iter().position(|name| *name == field.name);
        let zeek = K::zeek_columns()
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

#[cfg(test)]
mod tests {
    use super::*;
    use linkweir_record::HttpKind;

    #[test]
    fn one_row_for_each_field() {
        let table = schema_markdown::<HttpKind>();
        assert_eq!(table.lines().count(), HttpKind::fields().len() + 2);
        assert!(
            table
                .lines()
                .all(|line| line.matches(" | ").count() + line.matches("|  |").count() >= 6)
        );
        assert!(table.contains(
            "| `client_ip` | IP address |  | Address that sent the request. | 1 | `id.orig_h` | 8 |"
        ));
    }
}
