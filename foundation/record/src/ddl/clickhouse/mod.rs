//! Statements for ClickHouse: messages of a topic become rows, rows become totals by the minute.
//!
//! ```text
//! topic ─► KIND_queue ─► KIND_from_queue ─► KIND ─► KIND_to_minute ─► KIND_per_minute
//!          Kafka         converts           rows    groups            sums and states of quantiles
//! ```
//! A topic may carry several kinds: each queue reads all messages in a consumer group of its own, and
//! the view behind it passes those of its kind. A message that comes twice has the same `record_id`
//! and is sorted to the same place, where `ReplacingMergeTree` keeps one.
//!
//! Quantiles are kept as states of `quantilesDD`, a `DDSketch` (Masson, Rim, Lee 2019): counts in bins of
//! equal relative width. Merging adds counts, so that the result is the same in any order and grouping,
//! and any quantile is within 1 % of the value at its rank (of 0 and of values from 1 on, so that times
//! are measured in nanoseconds). `quantilesTDigest` depends on the order of
//! merges and promises no error; `quantilesGK` bounds the error of the rank, not of the value, which
//! says nothing about the tail of response times.

mod columns;
mod plan;
mod rollup;

use columns::{MOMENT, codec, conversion, nanoseconds, queued, stored};
use plan::Plan;

use crate::ddl::kind::{KindSchema, put};
use crate::schema::{Field, FieldType};
use crate::topic::Topic;

/// The statements for one kind, ready for `clickhouse-client --multiquery`; `None` for a kind that has
/// no place in a store of results.
///
/// Each begins with a comment that says what it is for; examples of queries follow in a comment.
#[must_use]
pub fn clickhouse_ddl(schema: &KindSchema, topic: &Topic) -> Option<String> {
    let plan = Plan::of(schema.name)?;
    let mut out = String::new();
    heading(&mut out, schema, topic);
    queue(&mut out, schema, plan, topic);
    table(&mut out, schema, plan);
    view(&mut out, schema, plan);
    rollup::statements(&mut out, schema, plan);
    examples(&mut out, schema, plan);
    Some(out)
}

/// The type of a column in ClickHouse's table of the kind.
#[must_use]
pub fn clickhouse_type(schema: &KindSchema, field: &Field) -> Option<String> {
    Some(stored(field, Plan::of(schema.name)?))
}

fn heading(out: &mut String, schema: &KindSchema, topic: &Topic) {
    put(
        out,
        format_args!(
            "-- {}, version {} of its columns, from {topic}.\n\
             -- Made by `linkweir schema {} --format clickhouse`. Addresses are IPv6; those of IPv4 are mapped\n\
             -- (::ffff:10.0.0.1), and the columns NAME_text print them as usual.\n\n",
            schema.name, schema.version, schema.name
        ),
    );
}

fn queue(out: &mut String, schema: &KindSchema, plan: &Plan, topic: &Topic) {
    let name = schema.name;
    put(
        out,
        format_args!(
            "-- The messages as they come. Reading from it takes them away: nobody should.\n\
             CREATE TABLE IF NOT EXISTS {name}_queue\n(\n    \
             `kind` String,\n    `schema_version` UInt16,\n    `probe` String,\n    `record_id` String"
        ),
    );
    for field in schema.fields {
        put(
            out,
            format_args!(",\n    `{}` {}", field.name, queued(field, plan)),
        );
    }
    put(
        out,
        format_args!(
            "\n)\nENGINE = Kafka\nSETTINGS\n    \
             kafka_broker_list = '{}',\n    \
             kafka_topic_list = '{}',\n    \
             kafka_group_name = 'clickhouse_{name}',\n    \
             kafka_format = 'JSONEachRow',\n    \
             -- Messages of a block that may be broken before reading stops at them.\n    \
             kafka_skip_broken_messages = 1000,\n    \
             -- Columns of a later version are passed over.\n    \
             input_format_skip_unknown_fields = 1,\n    \
             input_format_null_as_default = 1;\n\n",
            topic.brokers, topic.name,
        ),
    );
}

fn table(out: &mut String, schema: &KindSchema, plan: &Plan) {
    let name = schema.name;
    put(
        out,
        format_args!(
            "-- The records. A message that came twice is there twice until parts are merged: FINAL leaves one.\n\
             CREATE TABLE IF NOT EXISTS {name}\n(\n    \
             `time` {MOMENT} CODEC(Delta(8), ZSTD(1)),\n    \
             `probe` LowCardinality(String),\n    \
             `schema_version` UInt16,\n    \
             `record_id` String CODEC(ZSTD(1))"
        ),
    );
    for field in schema.fields {
        put(
            out,
            format_args!(
                ",\n    `{}` {} CODEC({}) COMMENT '{}'",
                field.name,
                stored(field, plan),
                codec(field.kind),
                comment(field),
            ),
        );
    }
    for field in schema.fields {
        if field.kind == FieldType::Ip {
            let name = field.name;
            put(
                out,
                format_args!(
                    ",\n    `{name}_text` ALIAS replaceRegexpOne(toString(`{name}`), '^::ffff:(\\\\d+\\\\.)', '\\\\1')"
                ),
            );
        }
    }
    let ends: Vec<String> = plan.ends.iter().map(|end| format!("`{end}`")).collect();
    let ends = ends.join(", ");
    put(
        out,
        format_args!(
            "\n)\nENGINE = ReplacingMergeTree\n\
             PARTITION BY toDate(`time`)\n\
             PRIMARY KEY (toStartOfMinute(`time`), {ends})\n\
             ORDER BY (toStartOfMinute(`time`), {ends}, `record_id`);\n\n"
        ),
    );
}

/// The documentation of a column, as a quoted text.
fn comment(field: &Field) -> String {
    let text = if field.unit.is_empty() || is_converted(field.kind) {
        field.doc.to_owned()
    } else {
        format!("{} [{}]", field.doc, field.unit)
    };
    text.replace('\\', "\\\\").replace('\'', "\\'")
}

/// Whether the unit of the column is that of its type.
const fn is_converted(kind: FieldType) -> bool {
    matches!(kind, FieldType::TimeNs | FieldType::TimeMillis)
}

fn view(out: &mut String, schema: &KindSchema, plan: &Plan) {
    let name = schema.name;
    let moments = plan.time.iter().filter_map(|time| schema.field(time));
    let moments: Vec<String> = moments.map(nanoseconds).collect();
    put(
        out,
        format_args!(
            "-- Messages to records.\n\
             CREATE MATERIALIZED VIEW IF NOT EXISTS {name}_from_queue TO {name} AS\n\
             SELECT\n    \
             fromUnixTimestamp64Nano(coalesce({}, 0), 'UTC') AS `time`,\n    \
             q.`probe` AS `probe`,\n    \
             q.`schema_version` AS `schema_version`,\n    \
             q.`record_id` AS `record_id`",
            moments.join(", ")
        ),
    );
    for field in schema.fields {
        put(
            out,
            format_args!(",\n    {} AS `{}`", conversion(field), field.name),
        );
    }
    put(
        out,
        format_args!("\nFROM {name}_queue AS q\nWHERE q.`kind` = '{name}';\n\n"),
    );
}

fn examples(out: &mut String, schema: &KindSchema, plan: &Plan) {
    let name = schema.name;
    put(
        out,
        format_args!(
            "/* Examples:\n\n{}\n\
             -- Records that were sent twice, because a probe or the broker had to try again.\n\
             SELECT probe, count() - uniqExact(record_id) AS repeated FROM {name} GROUP BY probe;\n\n\
             -- Totals count a repeated message again. This makes those of a day anew from the records.\n\
             ALTER TABLE {name}_per_minute DROP PARTITION '2026-11-22';\n\
             INSERT INTO {name}_per_minute\n",
            plan.examples
        ),
    );
    let day = "toDate(t.`time`) = '2026-11-22'";
    rollup::select(out, schema, plan, "FINAL", day);
    put(
        out,
        format_args!(
            ";\n\n-- How long records are kept; totals by the minute stay.\n\
             ALTER TABLE {name} MODIFY TTL toDateTime(time) + INTERVAL 90 DAY;\n*/\n"
        ),
    );
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        FlowBatch, FlowKind, FlowRow, GatewayBatch, GatewayKind, GatewayRow, GatewayText,
        HttpBatch, HttpKind, HttpRow, LoadBatch, LoadKind, LoadRow, RecordBatch, RecordKind, Value,
    };

    /// The moment of the only record of a batch, by the columns of the plan.
    fn moment<K: RecordKind>(batch: &K::Batch) -> (u64, u64) {
        let view = batch.get(0).unwrap();
        let plan = Plan::of(K::NAME).unwrap();
        let values = plan
            .time
            .iter()
            .map(|name| K::value(&view, K::column(name).unwrap()));
        let first = values.into_iter().find_map(|value| match value {
            Value::TimeNs(ns) | Value::Millis(ns) => Some(ns),
            Value::Null => None,
            other => panic!("{other:?} is no moment"),
        });
        (first.unwrap_or_default(), K::time_ns(&view))
    }

    #[test]
    fn rows_are_sorted_by_the_time_of_the_record() {
        for (request, response) in [
            (Some(5), Some(7)),
            (None, Some(7)),
            (Some(5), None),
            (None, None),
        ] {
            let mut batch = HttpBatch::default();
            let row = HttpRow {
                request_ts_ns: request,
                response_ts_ns: response,
                ..HttpRow::default()
            };
            batch.push(row, &crate::Text::default());
            let (by_plan, by_kind) = moment::<HttpKind>(&batch);
            assert_eq!(by_plan, by_kind);
        }
        let mut flows = FlowBatch::default();
        let row = FlowRow {
            first_ns: 8_000_001,
            ..FlowRow::default()
        };
        flows.push(row, &crate::flow::FlowText::default());
        let mut events = GatewayBatch::default();
        let row = GatewayRow {
            ts_ns: 9,
            ..GatewayRow::default()
        };
        events.push(row, &GatewayText::default());
        let mut sessions = LoadBatch::default();
        let row = LoadRow {
            planned_ts_ns: 3,
            started_ts_ns: Some(4),
            ended_ts_ns: 6,
            ..LoadRow::default()
        };
        sessions.push(row, b"");
        for (by_plan, by_kind) in [
            moment::<FlowKind>(&flows),
            moment::<GatewayKind>(&events),
            moment::<LoadKind>(&sessions),
        ] {
            assert!(by_plan > 0);
            assert_eq!(by_plan, by_kind);
        }
    }

    #[test]
    fn every_column_is_read_converted_and_kept() {
        for schema in KindSchema::all() {
            let text = clickhouse_ddl(&schema, &Topic::default()).unwrap();
            let statements: Vec<&str> = text.split(";\n\n").collect();
            for field in schema.fields {
                let column = format!("    `{}` ", field.name);
                for statement in statements.iter().take(2) {
                    assert_eq!(
                        statement.matches(&column).count(),
                        1,
                        "{column} in {statement}"
                    );
                }
                let converted = format!(" AS `{}`", field.name);
                assert_eq!(statements[2].matches(&converted).count(), 1, "{converted}");
            }
        }
    }

    #[test]
    fn the_topic_is_in_the_queue() {
        let schema = KindSchema::of::<HttpKind>();
        let topic: Topic = "kafka://a:1,b/web".parse().unwrap();
        let text = clickhouse_ddl(&schema, &topic).unwrap();
        assert!(text.contains("kafka_broker_list = 'a:1,b:9092'"), "{text}");
        assert!(text.contains("kafka_topic_list = 'web'"), "{text}");
    }

    #[test]
    fn documentation_is_quoted() {
        let field = Field {
            name: "x",
            kind: FieldType::U64,
            unit: "bytes",
            ipfix: None,
            doc: r"Tstat's \ number.",
        };
        assert_eq!(comment(&field), r"Tstat\'s \\ number. [bytes]");
    }
}
