//! An index template for Elasticsearch and OpenSearch.

use serde_json::{Map, Value, json};

use super::kind::KindSchema;
use crate::schema::FieldType;

/// Longest text that can be searched for, in characters: a term of Lucene has at most 32,766 bytes.
const MAX_KEYWORD: u32 = 8_191;

/// The type of a field in the mapping.
const fn elasticsearch_type(kind: FieldType) -> &'static str {
    match kind {
        FieldType::U16 | FieldType::Port => "integer",
        FieldType::U32 | FieldType::I64 | FieldType::SpanNs | FieldType::TimeNs => "long",
        FieldType::U64 => "unsigned_long",
        FieldType::Millis | FieldType::TimeMillis => "double",
        FieldType::Ip => "ip",
        FieldType::Text | FieldType::Word | FieldType::Bytes => "keyword",
    }
}

/// The body of `PUT _index_template/NAME` for a data stream `index` of records of this kind.
///
/// Columns of a later version are kept with the documents and cannot be searched until the template is replaced.
#[must_use]
pub fn elasticsearch_template(schema: &KindSchema, index: &str) -> Value {
    let keyword = || json!({ "type": "keyword", "ignore_above": MAX_KEYWORD });
    let mut properties = Map::new();
    // Before the columns in every document.
    properties.insert("@timestamp".to_owned(), json!({ "type": "date_nanos" }));
    for own in ["kind", "probe", "record_id"] {
        properties.insert(own.to_owned(), keyword());
    }
    properties.insert("schema_version".to_owned(), json!({ "type": "integer" }));
    for field in schema.fields {
        let mapped = match elasticsearch_type(field.kind) {
            "keyword" => keyword(),
            kind => json!({ "type": kind }),
        };
        properties.insert(field.name.to_owned(), mapped);
    }
    json!({
        "index_patterns": [index],
        "data_stream": {},
        "priority": 500,
        "_meta": { "kind": schema.name, "schema_version": schema.version },
        "template": { "mappings": { "dynamic": false, "properties": properties } },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_column_is_mapped() {
        for schema in KindSchema::all() {
            let template = elasticsearch_template(&schema, "web");
            let properties = &template["template"]["mappings"]["properties"];
            for field in schema.fields {
                let kind = properties[field.name]["type"].as_str();
                assert_eq!(kind, Some(elasticsearch_type(field.kind)), "{}", field.name);
            }
            // The default limit of fields of an index is 1,000.
            assert_eq!(
                properties.as_object().map(Map::len),
                Some(schema.fields.len() + 5)
            );
            assert!(schema.fields.len() < 900);
        }
    }
}
