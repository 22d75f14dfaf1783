//! What can be told without a broker; with one: `app/cli/tests/kafka.rs`.

use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv4Addr, TcpListener};

use linkweir_engine::Sink;
use linkweir_engine::hash::flow_hash;
use linkweir_record::{FlowKind, HttpBatch, HttpKind, HttpRow, RecordBatch, RecordKind, Text};

use super::KafkaSink;
use super::message::Message;
use crate::options::OutputOptions;

fn batch(ports: std::ops::Range<u16>) -> HttpBatch {
    let mut batch = HttpBatch::default();
    for client_port in ports {
        let row = HttpRow {
            client_ip: IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1)),
            client_port,
            server_ip: IpAddr::V4(Ipv4Addr::new(192, 0, 2, 7)),
            server_port: 80,
            ..HttpRow::default()
        };
        let text = Text {
            uri: b"/\"\xff",
            ..Text::default()
        };
        batch.push(row, &text);
    }
    batch
}

/// A port of this machine at which nobody listens.
fn deaf_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.local_addr().unwrap().port()
}

fn options(settings: &[(&str, &str)], is_live: bool) -> OutputOptions {
    let own = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
    OutputOptions {
        is_live,
        probe: "p".to_owned(),
        kafka: settings.iter().map(own).collect(),
        ..OutputOptions::default()
    }
}

fn refusal(destination: &str, options: OutputOptions) -> String {
    match KafkaSink::<HttpKind>::open(destination, options) {
        Ok(_) => panic!("{destination} was taken"),
        Err(error) => error.to_string(),
    }
}

#[test]
fn a_message_is_the_jsonl_object_with_four_keys_before_it() {
    let records = batch(40_000..40_003);
    let mut message = Message::new::<HttpKind>("north\"1", 0xab);
    let mut ids = BTreeSet::new();
    for (number, view) in records.views().enumerate() {
        message.encode::<HttpKind>(&view);
        let (key, value) = message.parts();
        let [a, b] = HttpKind::endpoints(&view);
        assert_eq!(key, flow_hash(a, b).to_be_bytes());
        let object: serde_json::Value = serde_json::from_slice(value).unwrap();
        let object = object.as_object().unwrap();
        assert_eq!(object["kind"], "http_transaction");
        assert_eq!(object["schema_version"], HttpKind::VERSION);
        assert_eq!(object["probe"], "north\"1");
        assert_eq!(object["record_id"], format!("00000000000000ab-{number}"));
        assert_eq!(object["uri"], "/\"\\xff");
        assert_eq!(object["client_port"], 40_000 + number);
        assert_eq!(object.len(), HttpKind::fields().len() + 4);
        assert!(value.starts_with(b"{\"kind\"") && value.ends_with(b"}"));
        ids.insert(object["record_id"].to_string());
    }
    assert_eq!(ids.len(), 3);
}

#[test]
fn no_kind_has_a_field_of_its_own_with_such_a_name() {
    for own in ["kind", "schema_version", "probe", "record_id"] {
        assert_eq!(HttpKind::column(own), None);
        assert_eq!(FlowKind::column(own), None);
        assert_eq!(linkweir_record::GatewayKind::column(own), None);
        assert_eq!(linkweir_record::LoadKind::column(own), None);
    }
}

#[test]
fn what_is_wrong_is_said_before_anything_is_sent() {
    let no_topic = refusal("kafka://a:1", options(&[], false));
    assert!(no_topic.contains("kafka://a:1: has no topic"), "{no_topic}");
    let unknown = refusal("kafka://a/t", options(&[("linger", "1")], false));
    assert!(unknown.contains("--kafka: setting `linger`"), "{unknown}");
    let ours = refusal("kafka://a/t", options(&[("linkweir.x", "1")], false));
    assert!(ours.contains("`linkweir.x`"), "{ours}");
    let acks = refusal("kafka://a/t", options(&[("acks", "1")], false));
    assert!(acks.contains("acks"), "{acks}");
    let rotated = OutputOptions {
        rotation: Some("1h".parse().unwrap()),
        ..options(&[], false)
    };
    assert!(refusal("kafka://a/t", rotated).contains("rotated"));
}

/// Sends `count` records to a broker that is not there.
fn in_vain(settings: &[(&str, &str)], is_live: bool, count: u16) -> (u64, String) {
    let destination = format!("kafka://127.0.0.1:{}/t", deaf_port());
    let mut sink = KafkaSink::<HttpKind>::open(&destination, options(settings, is_live)).unwrap();
    sink.write(&batch(0..count)).unwrap();
    sink.flush().unwrap();
    sink.finish().unwrap();
    let losses = sink.losses();
    (losses.count, losses.first.unwrap())
}

#[test]
fn live_records_that_find_no_room_are_dropped_and_the_rest_given_up_in_the_end() {
    let settings = [
        ("queue.buffering.max.messages", "100"),
        ("linkweir.patience.ms", "200"),
    ];
    let (count, first) = in_vain(&settings, true, 1000);
    assert_eq!(count, 1000, "100 given up and 900 dropped");
    assert!(
        first.contains("the buffer is full, 100 messages wait"),
        "{first}"
    );
}

#[test]
fn records_of_a_file_are_waited_for_only_so_long() {
    let settings = [
        ("queue.buffering.max.messages", "100"),
        ("linkweir.patience.ms", "300"),
    ];
    let (count, _) = in_vain(&settings, false, 1000);
    assert_eq!(count, 1000);
    let (count, first) = in_vain(&[("linkweir.patience.ms", "300")], false, 50);
    assert_eq!(count, 50);
    assert!(first.contains("waited for a broker"), "{first}");
}
