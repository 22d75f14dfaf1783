//! Reports from records that were stored before.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use serde_json::Value;

use crate::common::{Ran, demo, ended, linkweir};

/// Runs `linkweir report` in a directory.
fn report(directory: &Path, words: &[&str]) -> Ran {
    let mut command = linkweir();
    command.arg("report").args(words).current_dir(directory);
    ended(command.output().unwrap())
}

fn summary(directory: &Path, words: &[&str]) -> Value {
    let words: Vec<&str> = words.iter().copied().chain(["--summary", "-"]).collect();
    serde_json::from_str(&report(directory, &words).exits(0).stdout).unwrap()
}

/// A directory with the records of the bundled capture.
fn stored(kind: &[&str], names: &[&str]) -> tempfile::TempDir {
    let directory = tempfile::tempdir().unwrap();
    let mut command = linkweir();
    command.args(kind).arg("-q").arg("-r").arg(demo());
    for name in names {
        command.arg("-w").arg(directory.path().join(name));
    }
    ended(command.output().unwrap()).exits(0);
    directory
}

fn lines(path: PathBuf) -> Vec<Value> {
    let text = std::fs::read_to_string(path).unwrap();
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

/// The value that at least a share of sorted values do not exceed.
fn exact(sorted: &[u64], per_mille: usize) -> u64 {
    sorted[(sorted.len() * per_mille).div_ceil(1000).max(1) - 1]
}

/// A figure that is at most one in `error` too large, and never too small.
#[track_caller]
fn about(figure: &Value, exact: u64, error: u64) {
    let figure = figure.as_u64().unwrap();
    assert!(
        figure >= exact && figure <= exact + exact / error + 1,
        "{figure} for {exact}"
    );
}

#[test]
fn three_formats_have_the_figures_that_are_counted_by_hand() {
    let directory = stored(&["http"], &["h.jsonl", "h.parquet", "h.arrow"]);
    let at = |name: &str| directory.path().join(name);
    let all = ["h.jsonl", "h.parquet", "h.arrow"].map(|name| {
        let text = summary(directory.path(), &[name, "--rows", "100"]).to_string();
        serde_json::from_str::<Value>(&text.replace(name, "FILE")).unwrap()
    });
    assert_eq!(all[0], all[1]);
    assert_eq!(all[0], all[2]);

    let records = lines(at("h.jsonl"));
    let is_error = |record: &&Value| {
        record["status_code"]
            .as_u64()
            .is_some_and(|code| code >= 400)
            || record["state"] == "unanswered"
    };
    let times = |of: &dyn Fn(&Value) -> bool| {
        let of = records.iter().filter(|record| of(record));
        let mut times: Vec<u64> = of
            .filter_map(|record| record["response_time_ns"].as_u64())
            .collect();
        times.sort_unstable();
        times
    };
    let bytes = |record: &Value| {
        let of = |name: &str| record[name].as_u64().unwrap_or(0);
        of("request_bytes") + of("response_bytes")
    };
    let report = &all[0];
    let totals = &report["totals"];
    assert_eq!(totals["transactions"], records.len());
    assert_eq!(totals["errors"], records.iter().filter(is_error).count());
    assert_eq!(totals["bytes"], records.iter().map(bytes).sum::<u64>());
    let sorted = times(&|_| true);
    let of = &report["distributions"]["response_time"];
    assert_eq!(of["count"], sorted.len());
    assert_eq!(of["max_ns"], *sorted.last().unwrap());
    for (name, per_mille) in [("p50_ns", 500), ("p95_ns", 950), ("p99_ns", 990)] {
        about(&of[name], exact(&sorted, per_mille), 1024);
    }
    let mut codes: BTreeMap<String, u64> = BTreeMap::new();
    for record in &records {
        *codes.entry(record["status_code"].to_string()).or_default() += 1;
    }
    assert_eq!(
        report["counts"]["status_code"],
        serde_json::to_value(&codes).unwrap()
    );

    // Every host, and every client.
    for (by, column) in [("host", "host"), ("client", "client_ip")] {
        let tables = report["tables"].as_array().unwrap();
        let table = tables.iter().find(|table| table["by"] == by).unwrap();
        let rows = table["rows"].as_array().unwrap();
        assert!(rows.len() > 2);
        for row in rows {
            let is_of_row = |record: &Value| record[column] == row["key"];
            let of_row: Vec<&Value> = records.iter().filter(|record| is_of_row(record)).collect();
            assert_eq!(row["transactions"], of_row.len(), "{row}");
            assert_eq!(
                row["errors"],
                of_row.iter().copied().filter(is_error).count()
            );
            assert_eq!(
                row["bytes"],
                of_row.iter().map(|record| bytes(record)).sum::<u64>()
            );
            let sorted = times(&is_of_row);
            assert_eq!(row["max_ns"], *sorted.last().unwrap());
            about(&row["p50_ns"], exact(&sorted, 500).max(1024), 8);
            about(&row["p95_ns"], exact(&sorted, 950), 8);
        }
        let sum: u64 = rows
            .iter()
            .map(|row| row["transactions"].as_u64().unwrap())
            .sum();
        assert_eq!(sum, records.len() as u64);
    }
    let slowest = &report["slowest"][0];
    let line: usize = slowest["record"]
        .as_str()
        .unwrap()
        .split_once(':')
        .unwrap()
        .1
        .parse()
        .unwrap();
    assert_eq!(
        records[line - 1]["response_time_ns"],
        *sorted.last().unwrap()
    );
    text_and_page(directory.path());
}

/// The text says the same, and the page, which needs nothing but itself.
fn text_and_page(directory: &Path) {
    let words = ["h.parquet", "--report", "page.html"];
    let text = report(directory, &words).exits(0).stdout;
    assert!(
        text.contains("response time") && text.contains("--where 'host = \"www.example.test\"'"),
        "{text}"
    );
    let page = std::fs::read_to_string(directory.join("page.html")).unwrap();
    let condition = "<code>--where &#39;host = &quot;www.example.test&quot;&#39;</code>";
    assert!(
        page.contains(condition) && page.contains("<details><summary>5 of 320 records"),
        "{page}"
    );
    assert!(
        !page.contains("<script") && !page.contains("src=") && page.matches("<svg").count() >= 3
    );
}

#[test]
fn the_records_behind_a_row_are_as_many_as_it_says_and_come_back_whole() {
    let directory = stored(&["http"], &["h.jsonl", "h.parquet", "h.arrow"]);
    let original = std::fs::read_to_string(directory.path().join("h.jsonl")).unwrap();
    for name in ["h.jsonl", "h.parquet", "h.arrow"] {
        let words = [name, "--records", "--format", "jsonl"];
        let again = report(directory.path(), &words).exits(0).stdout;
        assert_eq!(again, original, "{name}");
    }
    let words = [
        "h.jsonl",
        "--by",
        "url",
        "--by",
        "ttlb",
        "--by",
        "host,status_code,user_agent",
        "--by",
        "url,client,server_port",
        "--rows",
        "2",
    ];
    let found = summary(directory.path(), &words);
    for table in found["tables"].as_array().unwrap() {
        for row in table["rows"].as_array().unwrap() {
            let condition = row["where"].as_str().unwrap();
            let words = [
                "h.parquet",
                "--records",
                "-w",
                "-",
                "--format",
                "jsonl",
                "--where",
                condition,
            ];
            let records = report(directory.path(), &words).exits(0).stdout;
            assert_eq!(row["transactions"], records.lines().count(), "{condition}");
            assert!(row["samples"].as_array().unwrap().len() <= 5);
        }
    }
    let words = ["h.jsonl", "--records", "--head", "3", "--format", "jsonl"];
    let first: String = original
        .lines()
        .take(3)
        .map(|line| format!("{line}\n"))
        .collect();
    assert_eq!(report(directory.path(), &words).exits(0).stdout, first);
    // A part of the time, in two ways.
    let times: Vec<u64> = original
        .lines()
        .map(|line| {
            serde_json::from_str::<Value>(line).unwrap()["request_ts_ns"]
                .as_u64()
                .unwrap()
        })
        .collect();
    let from = 1_795_227_740;
    let want = times
        .iter()
        .filter(|time| **time >= from * 1_000_000_000)
        .count();
    assert!(want > 0 && want < times.len());
    let seconds = from.to_string();
    let by_flag = summary(directory.path(), &["h.arrow", "--from", &seconds]);
    let condition = "request_ts >= 2026-11-21T03:22:20+01:00";
    let by_condition = summary(directory.path(), &["h.jsonl", "--where", condition]);
    for found in [by_flag, by_condition] {
        assert_eq!(found["totals"]["transactions"], want);
        assert_eq!(found["notes"]["records_left_out"], times.len() - want);
    }
}

#[test]
fn header_fields_are_columns_of_a_report_too() {
    let words = ["http", "--header", "User-Agent", "--header", "X-Cache"];
    let directory = stored(&words, &["h.jsonl", "h.parquet"]);
    let records = lines(directory.path().join("h.jsonl"));
    let mut agents: BTreeMap<String, u64> = BTreeMap::new();
    for record in &records {
        let agent = record["req_user_agent"].as_str().unwrap_or("(none)");
        *agents.entry(agent.to_owned()).or_default() += 1;
    }
    assert!(agents.len() > 1, "{agents:?}");
    let mut all = Vec::new();
    for name in ["h.jsonl", "h.parquet"] {
        let words = [name, "--by", "req_user_agent", "--rows", "1000"];
        let found = summary(directory.path(), &words);
        let rows = found["tables"][0]["rows"].as_array().unwrap().iter();
        let rows: BTreeMap<String, u64> = rows
            .map(|row| {
                let key = row["key"].as_str().unwrap().to_owned();
                (key, row["transactions"].as_u64().unwrap())
            })
            .collect();
        assert_eq!(rows, agents, "{name}");
        let (agent, count) = agents.iter().next_back().unwrap();
        let condition = format!("req_user_agent = \"{agent}\" and not resp_x_cache");
        let words = [
            name,
            "--where",
            &condition,
            "--records",
            "--format",
            "jsonl",
            "--fields",
            "host,req_user_agent",
        ];
        let ran = report(directory.path(), &words).exits(0);
        assert_eq!(ran.stderr, "", "no column is unknown");
        assert_eq!(ran.stdout.lines().count() as u64, *count);
        all.push(ran.stdout);
    }
    assert_eq!(all[0], all[1]);
    // What was written so is records again, of the few columns that it has.
    std::fs::write(directory.path().join("few.jsonl"), &all[0]).unwrap();
    let found = summary(
        directory.path(),
        &["few.jsonl", "--by", "req_user_agent,host"],
    );
    assert_eq!(found["kind"], "http_transaction");
    assert_eq!(found["totals"]["transactions"], all[0].lines().count());
}

#[test]
fn flows_of_many_files_in_any_order() {
    let directory = stored(&["flows"], &["f.jsonl", "f.parquet"]);
    let at = |name: &str| directory.path().join(name);
    let records = lines(at("f.jsonl"));
    let words = ["f.parquet", "--records", "--format", "jsonl"];
    let again = report(directory.path(), &words).exits(0).stdout;
    assert_eq!(again, std::fs::read_to_string(at("f.jsonl")).unwrap());
    // Rotated, compressed, and something else beside them.
    std::fs::create_dir(at("many")).unwrap();
    let text = std::fs::read_to_string(at("f.jsonl")).unwrap();
    let all: Vec<&str> = text.lines().collect();
    for (number, part) in all.chunks(30).rev().enumerate() {
        let text: String = part.iter().map(|line| format!("{line}\n")).collect();
        std::fs::write(at(&format!("many/f-{number}.jsonl")), text).unwrap();
    }
    let zipped = std::process::Command::new("gzip")
        .arg(at("many/f-1.jsonl"))
        .status();
    assert!(zipped.unwrap().success());
    std::fs::write(at("many/empty.jsonl"), "").unwrap();
    std::fs::write(at("many/notes.txt"), "none\n").unwrap();
    let found = summary(directory.path(), &["many", "--rows", "100"]);
    assert_eq!(
        found["totals"],
        summary(directory.path(), &["f.parquet"])["totals"]
    );
    assert_eq!(found["notes"]["other_files"], 1);
    let sum = |record: &Value, names: [&str; 2]| {
        names
            .map(|name| record[name].as_u64().unwrap_or(0))
            .iter()
            .sum::<u64>()
    };
    let payload = |record: &Value| sum(record, ["c_bytes_all", "s_bytes_all"]);
    assert_eq!(
        found["totals"]["payload"],
        records.iter().map(payload).sum::<u64>()
    );
    let retransmitted: u64 = records
        .iter()
        .map(|r| sum(r, ["c_pkts_retx", "s_pkts_retx"]))
        .sum();
    let data: u64 = records
        .iter()
        .map(|r| sum(r, ["c_pkts_data", "s_pkts_data"]))
        .sum();
    assert_eq!(
        found["totals"]["retransmitted"],
        retransmitted as f64 / data as f64
    );
    let talkers = &found["tables"][0];
    assert_eq!(talkers["by"], "client");
    let rows = talkers["rows"].as_array().unwrap();
    for row in rows {
        let of_row = records.iter().filter(|record| record["c_ip"] == row["key"]);
        assert_eq!(row["payload"], of_row.map(payload).sum::<u64>());
    }
    let most = rows
        .windows(2)
        .all(|pair| pair[0]["payload"].as_u64() >= pair[1]["payload"].as_u64());
    assert!(most, "talkers come by their bytes");
}

#[test]
fn two_sets_side_by_side() {
    let directory = tempfile::tempdir().unwrap();
    let write = |name: &str, times: &dyn Fn(u64) -> u64| {
        let line = |n: u64| {
            format!(
                "{{\"host\":\"h{}\",\"status_code\":200,\"request_ts_ns\":{},\"response_time_ns\":{}}}\n",
                n % 2,
                1_700_000_000_000_000_000 + n,
                times(n)
            )
        };
        let text: String = (0..600).map(line).collect();
        std::fs::write(directory.path().join(name), text).unwrap();
    };
    write("a.jsonl", &|n| 1_000_000 + n * 1000);
    // Those of h1 are slower by a half; of the others by less than a sketch may err.
    write("b.jsonl", &|n| {
        if n % 2 == 1 {
            1_500_000 + n * 1500
        } else {
            1_000_500 + n * 1000
        }
    });
    let words = [
        "--compare",
        "a.jsonl",
        "b.jsonl",
        "--by",
        "host",
        "--summary",
        "-",
    ];
    let found: Value =
        serde_json::from_str(&report(directory.path(), &words).exits(0).stdout).unwrap();
    let rows = found["tables"][0]["rows"].as_array().unwrap();
    let of = |key: &str| rows.iter().find(|row| row["key"] == key).unwrap();
    assert_eq!(of("h1")["p50_ns"]["moved"], "up", "{found}");
    assert_eq!(of("h0")["p50_ns"]["moved"], "no", "{found}");
    // 300 values are too few for a 99th percentile, 600 are enough.
    assert_eq!(of("h1")["p99_ns"]["moved"], "too_few");
    assert_eq!(
        found["distributions"]["response_time"]["p99_ns"]["moved"],
        "up"
    );
    assert_eq!(found["totals"]["transactions"]["difference"], 0.0);
    let words = [
        "--compare",
        "a.jsonl",
        "b.jsonl",
        "--by",
        "host",
        "--report",
        "c.html",
    ];
    let text = report(directory.path(), &words).exits(0).stdout;
    let row = text
        .lines()
        .find(|line| line.trim_start().starts_with("h1"))
        .unwrap();
    assert!(row.contains('→') && row.contains('▲'), "{text}");
    let page = std::fs::read_to_string(directory.path().join("c.html")).unwrap();
    assert!(page.contains('▲') && page.contains("Comparison of transactions"));
}

#[test]
fn damage_is_located_and_counted_and_ends_nothing() {
    let directory = stored(&["http"], &["h.jsonl", "h.arrow", "h.parquet"]);
    let at = |name: &str| directory.path().join(name);
    let text = std::fs::read_to_string(at("h.jsonl")).unwrap();
    let mut all: Vec<&str> = text.lines().collect();
    all.insert(2, "{\"client_ip\":\"nobody\"}");
    all.insert(5, "not a record");
    let damaged = all.join("\n");
    std::fs::write(at("d.jsonl"), damaged.get(..damaged.len() - 20).unwrap()).unwrap();
    let ran = report(directory.path(), &["d.jsonl", "--summary", "-"]).exits(1);
    let found: Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!(found["totals"]["transactions"], all.len() - 3);
    assert_eq!(found["dropped"]["records_not_read"], 2);
    for words in [
        "d.jsonl: 2 lines not read; line 3: byte 14: `client_ip` is not an address",
        "d.jsonl: truncated in line 802",
    ] {
        assert!(ran.stderr.contains(words), "{}", ran.stderr);
    }
    // Columns that are cut short: all before the cut, or nothing, and the other files.
    for name in ["h.arrow", "h.parquet"] {
        let bytes = std::fs::read(at(name)).unwrap();
        let cut = format!("cut-{name}");
        std::fs::write(at(&cut), &bytes[..bytes.len() / 2]).unwrap();
        let ran = report(directory.path(), &["h.jsonl", &cut, "--summary", "-"]).exits(1);
        assert!(ran.stderr.contains(&cut), "{}", ran.stderr);
        let found: Value = serde_json::from_str(&ran.stdout).unwrap();
        assert_eq!(found["dropped"]["files_that_end_too_early"], 1);
        assert!(found["totals"]["transactions"].as_u64().unwrap() >= 800);
    }
    // What a later version adds is named, and no fault.
    let later = text.replacen('{', "{\"later_column\":5,", 1);
    std::fs::write(at("later.jsonl"), later).unwrap();
    let ran = report(directory.path(), &["later.jsonl"]).exits(0);
    assert!(
        ran.stderr.contains("does not know: later_column"),
        "{}",
        ran.stderr
    );
    std::fs::write(
        at("other.jsonl"),
        "{\"c_ip\":\"10.0.0.1\",\"c_port\":5,\"s_ip\":\"10.0.0.2\"}\n",
    )
    .unwrap();
    std::fs::write(at("none.txt"), "none\n").unwrap();
    for (words, code, said) in [
        (
            &["other.jsonl", "h.jsonl"][..],
            2,
            "records of http_transaction, others are of flow",
        ),
        (&["h.jsonl", "./h.jsonl"], 2, "given twice"),
        (
            &["h.jsonl", "--by", "nothing"],
            2,
            "--by: no column `nothing`",
        ),
        (&["h.jsonl", "--where", "status >"], 2, "--where: filter"),
        (&["h.jsonl", "--report", "h.jsonl"], 2, "already used"),
        (
            &["h.jsonl", "--from", "5", "--to", "5"],
            2,
            "--to must be after",
        ),
        (&["none.txt"], 3, "none.txt: no records of linkweir"),
        (&["missing"], 3, "missing: No such file"),
        (&["cut-h.parquet"], 3, "cut-h.parquet"),
    ] {
        let ran = report(directory.path(), words).exits(code);
        assert!(ran.stderr.contains(said), "{words:?}: {}", ran.stderr);
    }
    let words = [
        "other.jsonl",
        "h.jsonl",
        "--kind",
        "http_transaction",
        "--summary",
        "-",
    ];
    let found: Value =
        serde_json::from_str(&report(directory.path(), &words).exits(0).stdout).unwrap();
    assert_eq!(
        (
            &found["totals"]["transactions"],
            &found["notes"]["other_files"]
        ),
        (&800.into(), &1.into())
    );
}

#[test]
fn the_events_of_a_gateway() {
    let directory = tempfile::tempdir().unwrap();
    let event = |n: u64, event: &str, action: &str, rule: &str| {
        format!(
            "{{\"ts_ns\":{},\"event\":\"{event}\",\"client_ip\":\"10.0.0.{}\",\"server_ip\":\"10.0.1.1\",\"application\":\"http\",\"rule\":\"{rule}\",\"action\":\"{action}\",\"detail\":\"a \\\"b\\\\c\"}}\n",
            1_700_000_000_000_000_000 + n,
            n % 3
        )
    };
    let mut text: String = (0..9)
        .map(|n| event(n, "decided", "allow", "web"))
        .collect();
    text.extend((0..4).map(|n| event(n, "blocked", "reject", "no-exe")));
    std::fs::write(directory.path().join("e.jsonl"), text).unwrap();
    let found = summary(directory.path(), &["e.jsonl"]);
    assert_eq!(found["kind"], "gateway_event");
    assert_eq!(
        (&found["totals"]["events"], &found["totals"]["blocked"]),
        (&13.into(), &4.into())
    );
    let rules = &found["tables"][0]["rows"];
    assert_eq!(
        (&rules[0]["key"], &rules[0]["events"]),
        (&"web".into(), &9.into())
    );
    assert_eq!(
        (&rules[1]["key"], &rules[1]["blocked"]),
        (&"no-exe".into(), &4.into())
    );
    // Quotes and backslashes in a value find it again.
    let reason = &found["tables"][3]["rows"][0];
    let condition = reason["where"].as_str().unwrap();
    let words = [
        "e.jsonl",
        "--records",
        "--format",
        "jsonl",
        "--where",
        condition,
    ];
    assert_eq!(
        report(directory.path(), &words)
            .exits(0)
            .stdout
            .lines()
            .count(),
        13,
        "{condition}"
    );
}

#[test]
fn a_million_records_take_bounded_memory() {
    const RECORDS: u64 = 1_000_000;
    let mut command = linkweir();
    command.args(["report", "-", "--by", "host", "--summary", "-"]);
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    // Ten thousand lines, a hundred times: a third is of one host, of the other hosts there are more than a table holds.
    let lines: String = (0..RECORDS / 100)
        .map(|n| {
            let host = if n % 3 == 0 { 0 } else { n };
            let time = 1_700_000_000 + n * 600;
            format!(
                "{{\"request_ts_ns\":{time}000000000,\"response_time_ns\":{},\"host\":\"h{host}\"}}\n",
                n * 100_000
            )
        })
        .collect();
    let bytes = lines.len() * 100;
    for _ in 0..100 {
        stdin.write_all(lines.as_bytes()).unwrap();
    }
    let status = std::fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap();
    let peak = status
        .lines()
        .find_map(|line| line.strip_prefix("VmHWM:"))
        .unwrap();
    let peak: usize = peak.trim().trim_end_matches(" kB").parse().unwrap();
    drop(stdin);
    let ran = ended(child.wait_with_output().unwrap()).exits(0);
    let found: Value = serde_json::from_str(&ran.stdout).unwrap();
    assert!(
        bytes > 60_000_000 && peak < 60_000,
        "{peak} kB for {bytes} bytes"
    );
    assert_eq!(found["totals"]["transactions"], RECORDS);
    about(
        &found["distributions"]["response_time"]["p99_ns"],
        989_999_000,
        1024,
    );
    let first = &found["tables"][0]["rows"][0];
    assert_eq!(
        (&first["key"], &first["transactions"]),
        (
            &"h0".into(),
            &(RECORDS / 100).div_ceil(3).saturating_mul(100).into()
        )
    );
    assert!(found["tables"][0]["weight_of_others"].as_u64().unwrap() <= RECORDS / 1024);
}

/// A transaction in clear, or an estimate; times count milliseconds.
fn line(n: u64, source: &str, state: &str, response_ms: Option<u64>) -> String {
    let record = serde_json::json!({
        "client_ip": "10.0.0.1", "server_ip": "10.0.0.2", "host": "a.test", "uri": "/x?y=1",
        "request_ts_ns": 1_367_526_040_000_000_000 + n, "source": source, "state": state,
        "response_time_ns": response_ms.map(|ms| ms * 1_000_000),
        "confidence": (source == "estimate").then_some("exact"),
    });
    format!("{record}\n")
}

#[test]
fn estimates_are_no_measurements() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("s.jsonl");
    let measured = (0..5).map(|n| line(n, "clear", "complete", Some(10 + n)));
    let estimated = (5..15).map(|n| match n {
        5 => line(n, "estimate", "unanswered", None),
        n => line(n, "estimate", "complete", Some(1000 + n)),
    });
    let text: String = measured.chain(estimated).collect();
    std::fs::write(&path, text).unwrap();
    let found = summary(directory.path(), &["s.jsonl"]);
    assert_eq!(found["totals"]["transactions"], 5);
    assert_eq!(found["totals"]["errors"], 0);
    assert_eq!(
        found["distributions"]["response_time"]["max_ns"],
        14_000_000
    );
    let estimates = &found["estimates"];
    assert_eq!(estimates["records"], 10);
    assert_eq!(estimates["confidence"]["exact"], 10);
    assert_eq!(estimates["times"]["max_ns"], 1_014_000_000);
    // Columns by their names, times in nanoseconds.
    let slowest = &found["slowest"][0];
    assert_eq!(slowest["response_time_ns"], 14_000_000);
    assert_eq!(slowest["client_ip"], "10.0.0.1");
    // The condition of a row finds as many.
    let row = &found["tables"][0]["rows"][0];
    let words = [
        "s.jsonl",
        "--records",
        "--where",
        row["where"].as_str().unwrap(),
    ];
    let records = report(directory.path(), &words).exits(0).stdout;
    assert_eq!(records.lines().count(), 5, "{records}");
    let words = ["s.jsonl", "--where", "source = estimate"];
    let asked = report(directory.path(), &words).exits(0).stdout;
    assert!(asked.contains("a.test/x?y=1 (estimate)"), "{asked}");
    let asked = summary(directory.path(), &words);
    assert_eq!(asked["totals"]["transactions"], 10);
    assert_eq!(asked["totals"]["errors"], 0);
    let text = report(directory.path(), &["s.jsonl", "--report", "p.html"])
        .exits(0)
        .stdout;
    assert!(
        text.contains("10: exact 10  (--where 'source = estimate')"),
        "{text}"
    );
    let page = std::fs::read_to_string(directory.path().join("p.html")).unwrap();
    assert!(
        page.contains("<title>Report of transactions") && page.contains("estimated times: p50")
    );
    let both = summary_of_both(directory.path());
    assert_eq!(both["totals"]["estimates"]["a"], 10);
}

fn summary_of_both(directory: &Path) -> Value {
    summary(directory, &["--compare", "s.jsonl", "s.jsonl"])
}

#[test]
fn hidden_files_and_other_formats_do_not_count() {
    let directory = tempfile::tempdir().unwrap();
    let at = |name: &str| directory.path().join("many").join(name);
    std::fs::create_dir(directory.path().join("many")).unwrap();
    let text: String = (0..3)
        .map(|n| line(n, "clear", "complete", Some(1)))
        .collect();
    std::fs::write(at("a.jsonl"), &text).unwrap();
    std::fs::write(at(".b.jsonl.partial"), &text).unwrap();
    std::fs::write(at("a.csv"), "client_ip,host\n10.0.0.1,a.test\n").unwrap();
    let ran = report(directory.path(), &["many"]).exits(0);
    assert!(ran.stdout.contains("transactions   3"), "{}", ran.stdout);
    let passed = "1 file (a.csv: not readable by report)";
    assert!(ran.stdout.contains(passed), "{}", ran.stdout);
    assert!(!ran.stderr.contains("same record"), "{}", ran.stderr);
    std::fs::write(at("copy.jsonl"), &text).unwrap();
    report(directory.path(), &["many"])
        .exits(0)
        .says("begins with the same record as many/a.jsonl");
}

#[test]
fn a_time_is_written_the_same_everywhere() {
    let directory = tempfile::tempdir().unwrap();
    let text: String = (0..4)
        .map(|n| line(n * 250_000_000, "clear", "complete", Some(1)))
        .collect();
    std::fs::write(directory.path().join("t.jsonl"), text).unwrap();
    for (time, want) in [
        ("1367526040", 4),
        ("1367526040.25", 3),
        ("2013-05-02T22:20:40.5+02:00", 2),
        ("2013-05-02 20:20:40.75", 1),
        ("-1h", 0),
    ] {
        let found = summary(directory.path(), &["t.jsonl", "--from", time]);
        assert_eq!(found["totals"]["transactions"], want, "{time}");
        if time != "-1h" {
            let condition = format!("request_ts >= '{time}' and url = a.test/x");
            let found = summary(directory.path(), &["t.jsonl", "--where", &condition]);
            assert_eq!(found["totals"]["transactions"], want, "{time}");
        }
    }
    for (condition, why) in [
        ("response_time > 500", "write 500ms"),
        ("request_ts > 1367526040000", "write 1367526040000ms"),
    ] {
        report(directory.path(), &["t.jsonl", "--where", condition])
            .exits(2)
            .says(why);
    }
}
