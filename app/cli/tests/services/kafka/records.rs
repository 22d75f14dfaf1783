//! Records in the topics of a real broker: the same as in a file, each with an id of its own.
#![cfg(feature = "kafka")]

use super::site;

use std::collections::{BTreeMap, BTreeSet};

use crate::common::{demo, ended, http, linkweir, plain, run};
use linkweir_kafka::{Consumer, Message};
use linkweir_testkit::conversation::Conversation;
use linkweir_testkit::script::{Exchange, tell};
use serde_json::Value;
use site::{Run, capture, id, lost_records, numbers, object, record, with_shared_broker};
use tempfile::tempdir;

/// What `-w -` with `--format jsonl` writes, as objects in the order of their text.
fn sorted_lines(text: &str) -> Vec<String> {
    let mut lines: Vec<String> = text
        .lines()
        .map(|line| {
            let object: Value = serde_json::from_str(line).unwrap();
            object.to_string()
        })
        .collect();
    lines.sort();
    lines
}

fn sorted_records(messages: &[Message]) -> Vec<String> {
    let mut records: Vec<String> = messages
        .iter()
        .map(|message| Value::Object(record(message)).to_string())
        .collect();
    records.sort();
    records
}

#[test]
fn a_topic_has_the_records_of_a_file() {
    with_shared_broker(|broker| {
        let lines = http(&demo(), &["--format", "jsonl"]).exits(0).stdout;
        let url = broker.url("same");
        http(&demo(), &["--probe", "north", "-w", &url]).exits(0);
        let messages = Consumer::read_to_end(&broker.address(), "same").unwrap();
        assert_eq!(sorted_records(&messages), sorted_lines(&lines));

        let runs = numbers(&messages);
        assert_eq!(runs.len(), 1, "one run");
        let count = u64::try_from(messages.len()).unwrap();
        assert!(runs.values().all(|run| *run == (0..count).collect()));
        let mut partitions: BTreeMap<Vec<u8>, i32> = BTreeMap::new();
        let mut last: BTreeMap<i32, u64> = BTreeMap::new();
        for message in &messages {
            let object = object(message);
            assert_eq!(object["kind"], "http_transaction");
            assert_eq!(object["schema_version"], 3);
            assert_eq!(object["probe"], "north");
            let hash = u32::try_from(object["flow_hash"].as_u64().unwrap()).unwrap();
            assert_eq!(message.key, hash.to_be_bytes());
            let at = *partitions
                .entry(message.key.clone())
                .or_insert(message.partition);
            assert_eq!(at, message.partition, "a connection has one partition");
            let before = last.insert(message.partition, id(message).1);
            assert!(before < Some(id(message).1), "a partition is in order");
        }
        let used: BTreeSet<i32> = partitions.into_values().collect();
        assert_eq!(used.len(), 4, "all partitions have a share");
    });
}

#[test]
fn flows_too() {
    with_shared_broker(|broker| {
        let capture = demo();
        let words = |to: &str| {
            let words = ["flows", "-q", "-r", capture.to_str().unwrap(), "-w", to];
            words.map(str::to_owned).to_vec()
        };
        let lines = ended(
            linkweir()
                .args(words("-"))
                .args(["--format", "jsonl"])
                .output()
                .unwrap(),
        )
        .exits(0)
        .stdout;
        run(&words(&broker.url("flows"))).exits(0);
        let messages = Consumer::read_to_end(&broker.address(), "flows").unwrap();
        assert_eq!(sorted_records(&messages), sorted_lines(&lines));
        assert!(!messages.is_empty());
        for message in &messages {
            let object = object(message);
            assert!(object["kind"].as_str().unwrap().ends_with("flow"));
            assert_eq!(message.key.len(), 4);
        }
    });
}

#[test]
fn two_probes_share_a_topic() {
    with_shared_broker(|broker| {
        let directory = tempdir().unwrap();
        let path = capture(directory.path(), 1_000);
        let path = path.to_str().unwrap();
        let url = broker.url("shared");
        let mut runs = ["east", "west"].map(|probe| {
            let words = ["-r", path, "--probe", probe, "-w", &url];
            Run::start(directory.path(), probe, &words, std::process::Stdio::null())
        });
        for run in &mut runs {
            assert_eq!(run.ends_with(0)["http"]["transactions"], 2_000);
        }
        let messages = Consumer::read_to_end(&broker.address(), "shared").unwrap();
        assert_eq!(messages.len(), 4_000);
        let ids: BTreeSet<(String, u64)> = messages.iter().map(id).collect();
        assert_eq!(ids.len(), 4_000, "ids of all probes differ");
        for probe in ["east", "west"] {
            let of_probe = messages.iter().filter(|one| object(one)["probe"] == probe);
            assert_eq!(of_probe.count(), 2_000, "{probe}");
        }
    });
}

#[test]
fn settings_reach_the_client() {
    with_shared_broker(|broker| {
        for codec in ["none", "gzip", "snappy", "zstd"] {
            let topic = format!("by.{codec}");
            let setting = format!("compression.type={codec}");
            http(&demo(), &["--kafka", &setting, "-w", &broker.url(&topic)]).exits(0);
            assert_eq!(
                Consumer::read_to_end(&broker.address(), &topic)
                    .unwrap()
                    .len(),
                800,
                "{codec}"
            );
        }
    });
}

#[test]
fn a_record_that_is_too_large_is_lost_alone() {
    with_shared_broker(|broker| {
        let directory = tempdir().unwrap();
        let path = directory.path().join("long.pcap");
        let mut talk = Conversation::v4(40_000);
        talk.handshake();
        let long = format!("/{}", "x".repeat(1_200));
        tell(
            &mut talk,
            &["/a", &long, "/b"].map(|uri| Exchange::get(uri, 10)),
        );
        std::fs::write(&path, plain(&talk.frames())).unwrap();
        let url = broker.url("large");
        let words = [
            "--kafka",
            "message.max.bytes=1100",
            "-w",
            &url,
            "--summary",
            "-",
        ];
        let ran = http(&path, &words).exits(1);
        let summary: Value = serde_json::from_str(&ran.stdout).unwrap();
        assert_eq!(lost_records(&summary), 1);
        assert!(
            ran.stderr
                .contains("1 records are lost: 1 MessageSizeTooLarge"),
            "{}",
            ran.stderr
        );
        let messages = Consumer::read_to_end(&broker.address(), "large").unwrap();
        let mut uris: Vec<Value> = messages
            .iter()
            .map(|one| object(one)["uri"].clone())
            .collect();
        uris.sort_by_key(Value::to_string);
        assert_eq!(uris, ["/a", "/b"]);
        let gap: BTreeSet<u64> = messages.iter().map(|one| id(one).1).collect();
        assert_eq!(gap, BTreeSet::from([0, 2]), "what is lost leaves a gap");
    });
}
