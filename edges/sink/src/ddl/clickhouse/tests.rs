//! What can be said of the statements without an engine; the engine itself reads them in the tests of
//! the binary.

use linkweir_record::{
    FlowBatch, FlowKind, FlowRow, GatewayBatch, GatewayKind, GatewayRow, GatewayText, HttpBatch,
    HttpKind, HttpRow, LoadBatch, LoadKind, LoadRow, RecordBatch, RecordKind, Value,
};

use super::*;

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
        batch.push(row, &linkweir_record::Text::default());
        let (by_plan, by_kind) = moment::<HttpKind>(&batch);
        assert_eq!(by_plan, by_kind);
    }
    let mut flows = FlowBatch::default();
    let row = FlowRow {
        first_ns: 8_000_001,
        ..FlowRow::default()
    };
    flows.push(row, &linkweir_record::flow::FlowText::default());
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
    let topic = Topic::parse("kafka://a:1,b/web").unwrap();
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
