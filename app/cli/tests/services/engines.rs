//! Records in the engines that people keep them in: DuckDB, pandas, Arrow and ClickHouse read what the
//! binary writes, and every value must be that of the jsonl of the same run. The scripts are in
//! `tests/engines`.
#![cfg(all(feature = "parquet", feature = "kafka"))]

use std::path::{Path, PathBuf};
use std::process::Stdio;

use crate::common::{demo, demo_frames, ended, frames_of, linkweir, plain, run, skipped};
use linkweir_record::{LoadBatch, LoadKind, LoadRow, RecordKind as _};
use linkweir_sink::{OutputOptions, open_sink};
use linkweir_testkit::conversation::Conversation;
use linkweir_testkit::engines::Engines;
use serde_json::Value;
use tempfile::{TempDir, tempdir};

/// Text that is not UTF-8, and text that looks as if it had been escaped.
const ODD: &[u8] = b"a|b\\c\"d,e\x1b[31m\xff\xfe\x7f \\xff 'f' \xc3\xa9 \xe2\x82\xac";

fn engines() -> Option<Engines> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/engines");
    Engines::find(&directory)
        .map_err(|reason| skipped(&reason))
        .ok()
}

/// A directory with a capture and what a run over it wrote.
struct Run {
    directory: TempDir,
    kind: &'static str,
}

impl Run {
    /// Runs these words over the bundled capture and connections with IPv6, odd text, no answer and
    /// no request, into files of three formats.
    fn of(kind: &'static str, words: &[&str]) -> Self {
        let directory = tempdir().unwrap();
        let mut talk = Conversation::v6(40_001);
        talk.handshake();
        let request = [
            b"GET /x?".as_slice(),
            ODD,
            b" HTTP/1.1\r\nHost: six.example\r\nUser-Agent: ",
            ODD,
            b"\r\n\r\n",
        ];
        talk.client_sends(request.concat());
        talk.server_sends(
            [
                b"HTTP/1.1 200 ".as_slice(),
                ODD,
                b"\r\nContent-Length: 0\r\n\r\n",
            ]
            .concat(),
        );
        talk.client_sends("GET /unanswered HTTP/1.1\r\nHost: six.example\r\n\r\n");
        // Years before the bundled capture.
        let mut frames = talk.frames();
        let mut orphan = Conversation::v4(40_002);
        orphan.server_sends("HTTP/1.1 503 No request was seen\r\nContent-Length: 0\r\n\r\n");
        frames.extend(orphan.frames());
        frames.extend(demo_frames());
        // 20 connections, all of TLS 1.2.
        frames.extend(frames_of(
            &demo().with_file_name("web/nginx-h2-tls12.pcap.gz"),
        ));
        let made = Self { directory, kind };
        std::fs::write(made.at("input.pcap"), plain(&frames)).unwrap();
        let mut command = linkweir();
        command.args(words).arg("-r").arg(made.at("input.pcap"));
        for ending in ["jsonl", "parquet", "arrow"] {
            command.arg("-w").arg(made.at(&format!("records.{ending}")));
        }
        ended(command.output().unwrap()).exits(0);
        made.keep_schema();
        made
    }

    /// Sessions of the load generator, which needs a network to run: written by its outputs.
    fn of_sessions(count: u64) -> Self {
        let made = Self {
            directory: tempdir().unwrap(),
            kind: LoadKind::NAME,
        };
        let mut batch = LoadBatch::default();
        for session in 0..count {
            let failed = session % 7 == 0;
            let planned_ts_ns = 1_795_222_198_122_187_988 + session * 250_000_003;
            let took = session.pow(3) + 1;
            let row = LoadRow {
                session,
                client_ip: format!("2001:db8::{session:x}").parse().unwrap(),
                client_port: if failed { 0 } else { 20_000 },
                server_ip: "10.0.0.1".parse().unwrap(),
                server_port: 80,
                planned_ts_ns,
                started_ts_ns: (!failed).then_some(planned_ts_ns + 7),
                ended_ts_ns: planned_ts_ns + took,
                response_time_ns: (!failed).then_some(took),
                response_bytes: u64::MAX - session,
                status_code: (!failed).then_some(200),
                failure: if failed { "refused" } else { "" },
                ..LoadRow::default()
            };
            let group: &[u8] = if session % 2 == 0 { b"dsl \xe9" } else { b"" };
            batch.push(row, group);
        }
        for ending in ["jsonl", "parquet", "arrow"] {
            let path = made.at(&format!("records.{ending}"));
            let path = path.to_str().unwrap();
            let mut sink = open_sink::<LoadKind>(path, None, OutputOptions::default()).unwrap();
            sink.write(&batch).unwrap();
            sink.finish().unwrap();
        }
        made.keep_schema();
        made
    }

    fn keep_schema(&self) {
        self.keep("schema.json", &["all", "--format", "json"]);
        self.keep("clickhouse.sql", &["all", "--format", "clickhouse"]);
    }

    fn at(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// What `linkweir schema` prints, as a file.
    fn keep(&self, name: &str, words: &[&str]) {
        let text = run(&[&["schema"], words].concat()).exits(0).stdout;
        std::fs::write(self.at(name), text).unwrap();
    }

    /// The view of the Parquet files under a directory, as a file.
    fn keep_view(&self, directory: &str) {
        let from = self.at(directory);
        let words = [
            self.kind,
            "--format",
            "duckdb",
            "--from",
            from.to_str().unwrap(),
        ];
        self.keep("view.sql", &words);
    }

    /// Runs a script on files of this run; it must find nothing wrong. Gives what it counted.
    fn check(&self, engines: &Engines, script: &str, names: &[&str]) -> Value {
        let arguments: Vec<PathBuf> = names
            .iter()
            .map(|name| {
                if *name == self.kind {
                    PathBuf::from(name)
                } else {
                    self.at(name)
                }
            })
            .collect();
        let ran = ended(engines.run(script, &arguments).unwrap()).exits(0);
        serde_json::from_str(&ran.stdout).unwrap()
    }

    /// Files and messages of a run, value by value.
    fn holds(&self, engines: &Engines, least: u64) {
        self.keep_view("");
        let names = [
            "schema.json",
            self.kind,
            "records.jsonl",
            "records.parquet",
            "records.arrow",
            "view.sql",
        ];
        let done = self.check(engines, "files.py", &names);
        let rows = done["rows"].as_u64().unwrap();
        assert!(rows >= least, "{done}");
        assert!(done["nulls"].as_u64().unwrap() > 0, "{done}");
        let values = done["duckdb"].as_u64().unwrap();
        assert!(values > rows, "{done}");
        for reader in ["view", "pandas", "parquet", "stream"] {
            assert_eq!(done[reader], values, "{reader}: {done}");
        }
        let names = [
            "clickhouse.sql",
            "schema.json",
            self.kind,
            "records.jsonl",
            "records.parquet",
        ];
        let done = self.check(engines, "clickhouse.py", &names);
        assert_eq!(done["rows"], rows, "{done}");
        // Of each kind: two tables and two views, the queue, and at least five examples.
        assert_eq!(done["accepted"], 24, "{done}");
        assert_eq!(done["queues"], 6, "{done}");
        assert!(done["examples"].as_u64().unwrap() >= 30, "{done}");
        assert_eq!(done["values"], values, "{done}");
        assert_eq!(done["parquet"], values, "{done}");
        assert!(done["quantiles_of"].as_u64().unwrap() > 0, "{done}");
        assert_eq!(done["with_repeated"], 2 * rows, "{done}");
        assert_eq!(done["by_record_id"], rows, "{done}");
        assert_eq!(done["merged"], rows, "{done}");
        assert_eq!(done["growth"], 2, "{done}");
    }
}

#[test]
fn transactions_are_the_same_everywhere() {
    let Some(engines) = engines() else { return };
    let ran = Run::of("http_transaction", &["http", "-q", "--ttlb"]);
    ran.holds(&engines, 803);
}

#[test]
fn flows_are_the_same_everywhere() {
    let Some(engines) = engines() else { return };
    let ran = Run::of("flow", &["flows", "-q"]);
    ran.holds(&engines, 82);
}

#[test]
fn handshakes_are_the_same_everywhere() {
    let Some(engines) = engines() else { return };
    let ran = Run::of("tls_handshake", &["flows", "-q", "--kind", "tls"]);
    ran.holds(&engines, 7);
}

#[test]
fn events_of_the_gateway_are_the_same_everywhere() {
    let Some(engines) = engines() else { return };
    let directory = tempdir().unwrap();
    let policy = directory.path().join("gateway.toml");
    let text = "[gateway]\ninterfaces = [\"lan0\", \"wan0\"]\ndefault = \"allow\"\n\n\
                [[rule]]\nname = \"web\"\napplication = [\"http\"]\naction = \"inspect\"\naudit = true\n";
    std::fs::write(&policy, text).unwrap();
    let policy = policy.to_str().unwrap();
    let ran = Run::of("gateway_event", &["gateway", "check", "--config", policy]);
    ran.holds(&engines, 800);
}

#[test]
fn sessions_are_the_same_everywhere() {
    let Some(engines) = engines() else { return };
    Run::of_sessions(300).holds(&engines, 300);
}

#[test]
fn files_of_an_earlier_version_are_read_with_later_ones() {
    let Some(engines) = engines() else { return };
    let ran = Run::of("http_transaction", &["http", "-q"]);
    ran.keep_view("kept");
    let names = [
        "schema.json",
        ran.kind,
        "records.jsonl",
        "records.parquet",
        "kept",
        "view.sql",
    ];
    let done = ran.check(&engines, "growth.py", &names);
    let rows = done["rows"].as_u64().unwrap();
    assert!(rows >= 803, "{done}");
    assert_eq!(
        done["together"].as_u64(),
        done["alone"].as_u64().map(|n| 2 * n)
    );
    assert_eq!(done["n"], 2 * rows, "{done}");
    assert_eq!(done["with_last"], rows, "{done}");
}

#[test]
fn a_stream_is_read_from_a_pipe() {
    let Some(engines) = engines() else { return };
    let mut writer = linkweir()
        .args(["http", "-q", "--format", "arrow", "-w", "-", "-r"])
        .arg(demo())
        .spawn()
        .unwrap();
    let mut reader = engines.script("stream.py", &["response_bytes"]);
    reader.stdin(Stdio::from(writer.stdout.take().unwrap()));
    let ran = ended(reader.output().unwrap()).exits(0);
    assert!(writer.wait().unwrap().success());
    let done: Value = serde_json::from_str(&ran.stdout).unwrap();
    let lines = crate::common::http(&demo(), &["--format", "jsonl"]).exits(0);
    let bytes = |line: &&str| {
        let record: Value = serde_json::from_str(line).unwrap();
        record["response_bytes"].as_u64().unwrap_or(0)
    };
    let sum: u64 = lines.lines().iter().map(bytes).sum();
    assert_eq!(done["rows"], 800, "{done}");
    assert_eq!(done["total"], sum, "{done}");
}

#[test]
fn directories_of_hours_are_columns() {
    let Some(engines) = engines() else { return };
    let ran = Run::of("http_transaction", &["http", "-q"]);
    let hours = ran.at("hours");
    let words = ["http", "-q", "--partition", "hour", "-r"];
    let output = linkweir()
        .args(words)
        .arg(ran.at("input.pcap"))
        .arg("-w")
        .arg(&hours)
        .output()
        .unwrap();
    ended(output).exits(0);
    ran.keep_view("hours");
    let done = ran.check(
        &engines,
        "hours.py",
        &["schema.json", ran.kind, "records.jsonl", "view.sql"],
    );
    assert!(done["rows"].as_u64().unwrap() >= 803, "{done}");
    // The bundled capture and the made connections are years apart.
    assert!(done["hours"].as_u64().unwrap() >= 2, "{done}");
}
