//! `--header`: columns of header fields in every format and of every version of HTTP, and names that are none.

use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::common::{demo, run};

fn web(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../testkit/captures/web")
        .join(name)
}

fn records(words: &[&str]) -> Vec<Value> {
    let all = [&["http", "-q", "--format", "jsonl"][..], words].concat();
    let ran = run(&all).exits(0);
    let lines = ran.stdout.lines();
    lines
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

#[test]
fn chosen_columns_say_what_the_schema_has_of_the_same_fields() {
    let demo = demo();
    let captures = [
        "grpc-clear",
        "nginx-h1-tls13",
        "h2o-h2c",
        "chromium-h3",
        "nginx-h2-tls12",
    ];
    let mut sources: Vec<Vec<String>> = vec![vec!["-r".to_owned(), demo.display().to_string()]];
    sources.extend(captures.map(|name| {
        let mut words = vec![
            "-r".to_owned(),
            web(&format!("{name}.pcap.gz")).display().to_string(),
        ];
        let keys = web(&format!("{name}.keys"));
        if keys.exists() {
            words.extend(["--keys".to_owned(), keys.display().to_string()]);
        }
        words
    }));
    for source in sources {
        let mut words: Vec<&str> = source.iter().map(String::as_str).collect();
        words.extend([
            "--estimate",
            "off",
            "--header",
            "User-Agent",
            "--header",
            "content-type",
        ]);
        let found = records(&words);
        assert!(!found.is_empty(), "{source:?}");
        let mut filled = 0;
        for record in &found {
            assert_eq!(record["req_user_agent"], record["user_agent"], "{source:?}");
            assert_eq!(
                record["resp_content_type"], record["content_type"],
                "{source:?}"
            );
            let all = record.as_object().unwrap();
            assert!(all.contains_key("req_content_type"), "{source:?}");
            filled += usize::from(!record["req_user_agent"].is_null());
        }
        assert!(filled * 2 > found.len(), "{source:?}: {filled}");
    }
}

#[test]
fn the_columns_are_in_every_format_that_has_names() {
    let directory = tempfile::tempdir().unwrap();
    let demo = demo();
    let mut seen = Vec::new();
    let formats = ["csv", "zeek", "spreadsheet", "jsonl"];
    for format in formats {
        let words = [
            "http",
            "-q",
            "-r",
            demo.to_str().unwrap(),
            "--format",
            format,
            "-w",
            "-",
            "--header",
            "Server",
        ];
        let ran = run(&words).exits(0);
        let separator = if format == "zeek" { '\t' } else { ',' };
        let mut lines = ran.stdout.lines();
        let values: Vec<String> = if format == "jsonl" {
            let server = |line: &str| {
                let record: Value = serde_json::from_str(line).unwrap();
                record["resp_server"]
                    .as_str()
                    .unwrap_or_default()
                    .to_owned()
            };
            lines.map(server).collect()
        } else {
            let heading = lines.find(|line| line.contains("resp_server")).unwrap();
            assert!(
                heading
                    .trim_end()
                    .ends_with(&format!("req_server{separator}resp_server"))
            );
            let lines = lines.filter(|line| !line.starts_with('#'));
            let last = |line: &str| line.trim_end().rsplit(separator).next().unwrap().to_owned();
            lines
                .map(last)
                .map(|value| value.replace('-', ""))
                .collect()
        };
        assert!(
            values.iter().any(|value| value.starts_with("nginx")),
            "{format}: {values:?}"
        );
        seen.push(values);
    }
    assert!(seen.windows(2).all(|two| two[0] == two[1]), "{seen:?}");
    // The typed ones: written, and told apart by their columns.
    for name in ["out.parquet", "out.arrow"] {
        let path = directory.path().join(name);
        let to = path.to_str().unwrap();
        run(&[
            "http",
            "-q",
            "-r",
            demo.to_str().unwrap(),
            "-w",
            to,
            "--header",
            "Server",
        ])
        .exits(0);
        let bytes = std::fs::read(&path).unwrap();
        let has = |text: &[u8]| bytes.windows(text.len()).any(|part| part == text);
        assert!(has(b"resp_server") && has(b"req_server"), "{name}");
    }
    // Filters know them.
    let pcap = directory.path().join("chosen.pcap");
    run(&[
        "http",
        "-q",
        "-r",
        demo.to_str().unwrap(),
        "--no-output",
        "--header",
        "server",
        "--pcap-out",
        pcap.to_str().unwrap(),
        "--pcap-filter",
        "resp_server ~ \"nginx\"",
    ])
    .exits(0);
    assert!(std::fs::metadata(&pcap).unwrap().len() > 1000);
}

#[test]
fn schemas_of_stores_have_the_chosen_columns() {
    for format in ["markdown", "types", "json", "clickhouse", "duckdb"] {
        let words = ["schema", "http_transaction", "--format", format];
        let plain = run(&words).exits(0);
        assert!(!plain.stdout.contains("req_x_request_id"), "{format}");
        assert!(plain.stdout.contains("forwarded_for"), "{format}");
        let more = [&words[..], &["--header", "X-Request-ID"]].concat();
        let chosen = run(&more).exits(0);
        for name in ["req_x_request_id", "resp_x_request_id"] {
            assert!(chosen.stdout.contains(name), "{format}: {name}");
        }
    }
}

#[test]
fn names_that_are_none_are_refused() {
    let many: Vec<String> = (0..17).map(|at| format!("--header=x-{at}")).collect();
    let many: Vec<&str> = many.iter().map(String::as_str).collect();
    let demo = demo();
    for (names, why) in [
        (&["--header", "a b"][..], "`a b` is not a valid field name"),
        (
            &["--header", "x-a", "--header", "X_A"],
            "have the same columns",
        ),
        (&many, "at most 16 names"),
    ] {
        let words = [&["http", "-r", demo.to_str().unwrap()][..], names].concat();
        let ran = run(&words).exits(2);
        assert!(
            ran.stderr.contains("--header: ") && ran.stderr.contains(why),
            "{}",
            ran.stderr
        );
    }
}
