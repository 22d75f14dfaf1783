//! What users of other programs do: `zeek-cut`, readers of Zeek's JSON, pipes.

use std::collections::{HashMap, HashSet};
use std::path::Path;
use std::process::{Command, Stdio};

use crate::common::{demo, ended, http, linkweir, run};
use linkweir_testkit::ran;
use serde_json::Value;

/// `zeek-cut` in awk, by nothing but the header.
const ZEEK_CUT: &str = r#"
BEGIN { FS = "\t"; n = split(want, w, " ") }
/^#fields/ { for (i = 2; i <= NF; i++) at[$i] = i - 1; next }
/^#/ { next }
{ line = $(at[w[1]]); for (i = 2; i <= n; i++) line = line "|" $(at[w[i]]); print line }
"#;

fn zeek_cut(log: &Path, want: &str) -> Vec<String> {
    let output = Command::new("awk")
        .args(["-v", &format!("want={want}"), ZEEK_CUT])
        .arg(log)
        .output()
        .unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    text.lines().map(str::to_owned).collect()
}

fn objects(path: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(path).unwrap();
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

/// `http` or `flows` on the bundled capture, once into each of these files.
fn written(command: &str, directory: &Path, names: &[&str]) {
    for name in names {
        let words = [command, "-q", "-r", demo().to_str().unwrap(), "-w"].map(str::to_owned);
        let path = directory.join(name).to_str().unwrap().to_owned();
        let _done = run(&[words.as_slice(), &[path]].concat()).exits(0);
    }
}

fn text(value: &Value) -> String {
    match value {
        Value::Null => "-".to_owned(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

#[test]
fn zeek_cut_takes_columns_of_http_log() {
    let directory = tempfile::tempdir().unwrap();
    written("http", directory.path(), &["http.log", "all.jsonl"]);
    let names = "id.orig_h id.orig_p method host uri status_code status_msg user_agent version";
    let cut = zeek_cut(&directory.path().join("http.log"), names);
    let expected: Vec<String> = objects(&directory.path().join("all.jsonl"))
        .iter()
        .map(|object| {
            [
                "client_ip",
                "client_port",
                "method",
                "host",
                "uri",
                "status_code",
                "reason_phrase",
                "user_agent",
                "version",
            ]
            .map(|name| text(&object[name]))
            .join("|")
        })
        .collect();
    assert_eq!(cut.len(), 800);
    assert_eq!(cut, expected);
    // What dashboards select is there, also where it is not known.
    let unknown = zeek_cut(
        &directory.path().join("http.log"),
        "trans_depth referrer response_body_len tags",
    );
    assert!(unknown.iter().all(|line| line == "-|-|-|-"));
}

#[test]
fn zeek_cut_takes_columns_of_conn_log() {
    let directory = tempfile::tempdir().unwrap();
    written("flows", directory.path(), &["conn.log", "all.jsonl"]);
    let names =
        "proto conn_state service orig_bytes resp_bytes orig_pkts resp_pkts history ip_proto";
    let cut = zeek_cut(&directory.path().join("conn.log"), names);
    let expected: Vec<String> = objects(&directory.path().join("all.jsonl"))
        .iter()
        .map(|object| {
            let fields = [
                "protocol",
                "conn_state",
                "application",
                "c_bytes_uniq",
                "s_bytes_uniq",
                "c_pkts_all",
                "s_pkts_all",
                "history",
            ];
            let line = fields.map(|name| text(&object[name])).join("|");
            format!("{}|6", line.replace("|unknown|", "|-|"))
        })
        .collect();
    assert!(cut.len() > 10 && cut.iter().any(|line| line.starts_with("tcp|SF|http|")));
    assert!(
        cut.iter().any(|line| line.ends_with("|ShADadFf|6")),
        "{cut:?}"
    );
    assert_eq!(cut, expected);
}

/// Each transaction has the `uid` of its connection, and no other connection has it.
#[test]
fn http_log_and_conn_log_join_by_uid() {
    let directory = tempfile::tempdir().unwrap();
    written("flows", directory.path(), &["conn.log", "flows.jsonl"]);
    written("http", directory.path(), &["http.log", "http.jsonl"]);
    let ends = "uid id.orig_h id.orig_p id.resp_h id.resp_p community_id";
    let connections: HashSet<String> = zeek_cut(&directory.path().join("conn.log"), ends)
        .into_iter()
        .collect();
    let uids: HashSet<&str> = connections
        .iter()
        .filter_map(|line| line.split('|').next())
        .collect();
    assert_eq!(uids.len(), connections.len());
    let transactions = zeek_cut(&directory.path().join("http.log"), ends);
    assert_eq!(transactions.len(), 800);
    for line in transactions {
        assert!(connections.contains(&line), "{line}");
    }
    let names = |file: &str| -> HashSet<String> {
        let objects = objects(&directory.path().join(file));
        objects.iter().map(|one| text(&one["uid"])).collect()
    };
    assert!(names("http.jsonl").is_subset(&names("flows.jsonl")));
    assert!(names("http.jsonl").iter().all(|uid| uids.contains(&**uid)));
}

#[test]
fn zeek_json_says_what_the_table_says() {
    for (command, log, json) in [
        ("http", "http.log", "http.zeek.json"),
        ("flows", "conn.log", "conn.zeek.json"),
    ] {
        let directory = tempfile::tempdir().unwrap();
        written(command, directory.path(), &[log, json]);
        let table = std::fs::read_to_string(directory.path().join(log)).unwrap();
        let header = |lead: &str| -> Vec<&str> {
            let line = table.lines().find_map(|line| line.strip_prefix(lead));
            line.unwrap().split('\t').collect()
        };
        let (names, types) = (header("#fields\t"), header("#types\t"));
        let rows = table.lines().filter(|line| !line.starts_with('#'));
        let objects = objects(&directory.path().join(json));
        assert_eq!(rows.clone().count(), objects.len());
        for (row, object) in rows.zip(&objects) {
            let cells: HashMap<&str, &str> = names.iter().copied().zip(row.split('\t')).collect();
            let set = cells.values().filter(|cell| **cell != "-").count();
            assert_eq!(object.as_object().unwrap().len(), set, "{row}");
            for (name, kind) in names.iter().zip(&types) {
                let (cell, value) = (cells[name], &object[*name]);
                match *kind {
                    _ if cell == "-" => assert!(value.is_null(), "{name}"),
                    "bool" => assert_eq!(value.as_bool(), Some(cell == "T")),
                    "count" | "port" | "int" => assert_eq!(value.as_u64(), cell.parse().ok()),
                    "time" | "interval" => assert_eq!(value.as_f64(), cell.parse().ok()),
                    list if list.contains('[') => assert_eq!(value[0].as_str(), Some(cell)),
                    _ => assert_eq!(value.as_str(), Some(cell), "{name}"),
                }
            }
        }
    }
}

/// Makes a FIFO; nothing where the system has no `mkfifo`.
fn fifo(path: &Path) -> Option<()> {
    let made = Command::new("mkfifo").arg(path).status();
    if made.is_ok_and(|status| status.success()) {
        return Some(());
    }
    eprintln!("SKIPPED: no mkfifo");
    None
}

/// Without the lines that say when the file was written.
fn undated(bytes: &[u8]) -> Vec<u8> {
    let lines = bytes.split_inclusive(|byte| *byte == b'\n');
    lines
        .filter(|line| !line.starts_with(b"#open") && !line.starts_with(b"#close"))
        .flatten()
        .copied()
        .collect()
}

#[test]
fn a_slow_reader_of_a_named_pipe_gets_everything() {
    let directory = tempfile::tempdir().unwrap();
    let pipe = directory.path().join("pipe");
    let Some(()) = fifo(&pipe) else { return };
    for format in ["text", "jsonl", "csv", "zeek", "zeek-json", "spreadsheet"] {
        // The pipe is full long before the reader goes on.
        let kept = directory.path().join("kept");
        let mut reader = Command::new("sh")
            .args(["-c", "{ head -c 1000; sleep 0.3; cat; } < \"$0\""])
            .arg(&pipe)
            .stdout(std::fs::File::create(&kept).unwrap())
            .spawn()
            .unwrap();
        let words = ["--format", format, "-w", pipe.to_str().unwrap()];
        let ran = http(&demo(), &words).exits(0);
        assert!(reader.wait().unwrap().success());
        let got = std::fs::read(&kept).unwrap();
        let expected = http(&demo(), &["--format", format]).exits(0).stdout;
        assert!(got.len() > 100_000, "{format}: {}", got.len());
        assert!(undated(&got) == undated(expected.as_bytes()), "{format}");
        assert_eq!((ran.stdout.as_str(), ran.stderr.as_str()), ("", ""));
    }
    assert!(!pipe.with_file_name(".pipe.partial").exists());
}

#[test]
fn a_reader_that_leaves_ends_the_run_quietly() {
    let directory = tempfile::tempdir().unwrap();
    let pipe = directory.path().join("pipe");
    let Some(()) = fifo(&pipe) else { return };
    let reader = Command::new("head")
        .args(["-n", "1"])
        .arg(&pipe)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let words = ["--format", "jsonl", "-w", pipe.to_str().unwrap()];
    let ran = http(&demo(), &words).exits(0);
    assert_eq!((ran.stdout.as_str(), ran.stderr.as_str()), ("", ""));
    assert!(reader.wait_with_output().unwrap().stdout.starts_with(b"{"));

    // The same on a pipe of the shell.
    let script = "{ \"$0\" http -q -r \"$1\" --format csv; echo \"code $?\" >&2; } | head -n 1";
    let output = Command::new("sh")
        .args(["-c", script])
        .arg(env!("CARGO_BIN_EXE_linkweir"))
        .arg(demo())
        .output()
        .unwrap();
    let ran = ended(output);
    assert_eq!(ran.stderr, "code 0\n");
    assert_eq!(ran.lines().len(), 1);
}

#[test]
fn a_pipe_is_not_rotated() {
    let directory = tempfile::tempdir().unwrap();
    let pipe = directory.path().join("pipe");
    let Some(()) = fifo(&pipe) else { return };
    let words = ["-w", pipe.to_str().unwrap(), "--rotate", "1MB"];
    let _refused = http(&demo(), &words)
        .exits(2)
        .says("only a file can be rotated");
    // Nobody reads: had it opened the pipe, it would still wait.
    let left: Vec<_> = std::fs::read_dir(directory.path()).unwrap().collect();
    assert_eq!(left.len(), 1);
}

/// Client and time of the request of every record.
#[cfg(feature = "parquet")]
fn rows(table: linkweir_columnar::Table) -> Vec<(String, u64)> {
    let mut rows = Vec::new();
    for batch in table {
        let batch = batch.unwrap();
        let clients = linkweir_columnar::texts(&batch, "client_ip").unwrap();
        let times = linkweir_columnar::moments(&batch, "request_ts_ns").unwrap();
        let both = clients.into_iter().zip(times);
        rows.extend(both.map(|(client, time)| (client.unwrap().to_owned(), time.unwrap())));
    }
    rows
}

#[cfg(feature = "parquet")]
#[test]
fn columns_go_through_a_named_pipe() {
    use linkweir_columnar::Table;
    use std::fs::File;
    const NAMES: [&str; 2] = ["client_ip", "request_ts_ns"];

    let directory = tempfile::tempdir().unwrap();
    let pipe = directory.path().join("pipe");
    let Some(()) = fifo(&pipe) else { return };
    written("http", directory.path(), &["all.jsonl"]);
    let expected: Vec<(String, u64)> = objects(&directory.path().join("all.jsonl"))
        .iter()
        .map(|object| {
            let time = object["request_ts_ns"].as_u64().unwrap();
            (text(&object["client_ip"]), time)
        })
        .collect();
    assert_eq!(expected.len(), 800);

    let reading = pipe.clone();
    let reader = std::thread::spawn(move || {
        rows(Table::of_stream(File::open(reading).unwrap(), &NAMES).unwrap())
    });
    let words = ["--format", "arrow", "-w", pipe.to_str().unwrap()];
    let _done = http(&demo(), &words).exits(0);
    assert_eq!(reader.join().unwrap(), expected);

    // A Parquet file can be written from front to back, if not read so.
    let reading = pipe.clone();
    let reader = std::thread::spawn(move || std::fs::read(reading).unwrap());
    let words = ["--format", "parquet", "-w", pipe.to_str().unwrap()];
    let _done = http(&demo(), &words).exits(0);
    let kept = directory.path().join("kept.parquet");
    std::fs::write(&kept, reader.join().unwrap()).unwrap();
    let table = Table::of_parquet(File::open(kept).unwrap(), &NAMES).unwrap();
    assert_eq!(rows(table), expected);
}

#[test]
fn descriptors_are_written_as_they_are() {
    // As process substitution of shells gives them.
    let output = linkweir()
        .args(["http", "-q", "-r"])
        .arg(demo())
        .args(["--format", "jsonl", "-w", "/dev/fd/1"])
        .output()
        .unwrap();
    let ran = ended(output).exits(0);
    assert_eq!(ran.lines().len(), 800);
}

#[test]
fn a_missing_laboratory_is_named() {
    // The program alone in a directory, where cargo's own is: a link is enough.
    let alone = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let program = alone.path().join("linkweir");
    std::fs::hard_link(env!("CARGO_BIN_EXE_linkweir"), &program).unwrap();
    let run = |words: &[&str]| ended(ran::command(&program).args(words).output().unwrap());
    let missing = alone.path().join("linkweir-lab is missing");
    let _said = run(&["lab", "--list"])
        .exits(3)
        .says(missing.to_str().unwrap())
        .says("make install");
    // What it can say itself it says.
    let help = run(&["lab", "--help"]).exits(0).stdout;
    assert!(help.contains("linkweir lab loss"), "{help}");
    let _said = run(&["lab", "--lits"]).exits(2).says("--list");
}
