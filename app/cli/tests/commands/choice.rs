//! `--where`, `--fields`, `--head`, `--time`: which records are written, what of them, and how they look.

use serde_json::Value;

use crate::common::{Ran, demo, run};

/// What `linkweir COMMAND -r DEMO WORDS` writes.
fn ran(command: &str, words: &[&str]) -> Ran {
    let demo = demo();
    let first = [command, "-q", "-r", demo.to_str().unwrap()];
    run(&[&first[..], words].concat())
}

fn records(command: &str, words: &[&str]) -> Vec<Value> {
    let ran = ran(command, &[&["--format", "jsonl"][..], words].concat()).exits(0);
    let lines = ran.stdout.lines();
    lines
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

#[test]
fn records_that_match_are_written_and_totals_are_of_all() {
    let all = records("http", &[]);
    let is_meant = |record: &&Value| {
        record["status_code"]
            .as_u64()
            .is_some_and(|code| code >= 300)
            && record["method"] == "GET"
            && record["host"]
                .as_str()
                .is_some_and(|host| host.contains("shop"))
    };
    let expected: Vec<Value> = all.iter().filter(is_meant).cloned().collect();
    assert!(!expected.is_empty() && expected.len() < all.len());
    let directory = tempfile::tempdir().unwrap();
    let summary = directory.path().join("s.json");
    let condition = "status >= 300 and method = GET and host ~ SHOP";
    let words = ["--where", condition, "--summary", summary.to_str().unwrap()];
    assert_eq!(records("http", &words), expected);
    let summary: Value = serde_json::from_slice(&std::fs::read(&summary).unwrap()).unwrap();
    assert_eq!(summary["records"], all.len());
    assert_eq!(summary["left_out_records"], all.len() - expected.len());
    assert_eq!(summary["http"]["transactions"], all.len());
    let sorted = |mut records: Vec<Value>| {
        records.sort_by_key(ToString::to_string);
        records
    };
    assert_eq!(
        sorted(records("http", &["--where", condition, "--workers", "3"])),
        sorted(expected)
    );
    let udp = records(
        "flows",
        &["--where", "c_pkts_all > 20 and s_ip = 10.80.0.0/16"],
    );
    assert!(!udp.is_empty());
    assert!(
        udp.iter()
            .all(|flow| flow["c_pkts_all"].as_u64() > Some(20))
    );
}

#[test]
fn what_is_wrong_is_said_with_its_place() {
    ran("http", &["--where", "status >> 3"])
        .exits(2)
        .says("linkweir: --where: filter `status >> 3`, column 9");
    ran("http", &["--where", "stat = 3"])
        .exits(2)
        .says("no column `stat`; `linkweir schema http_transaction` lists the columns");
    ran("http", &["--fields", "host,hots"])
        .exits(2)
        .says("--fields: no column `hots`; `linkweir schema http_transaction` lists the columns");
    for (format, what) in [("zeek", "Zeek's logs"), ("parquet", "`parquet`")] {
        ran("http", &["--fields", "host", "--format", format])
            .exits(2)
            .says(what);
    }
    ran("http", &["--fields", "host,uri,host"])
        .exits(2)
        .says("--fields: `host` is there twice");
    // Not 200: a word is missing between them.
    ran("http", &["--where", "status = 2 00"])
        .exits(2)
        .says("column 12: expected `and`, `or` or the end, found `00`");
    ran("http", &["--head", "0"]).exits(2);
    ran(
        "flows",
        &[
            "--where",
            "c_port > 1",
            "--format",
            "tstat",
            "-w",
            "/nowhere/tree",
        ],
    )
    .exits(2)
    .says("--where: the histograms of --format tstat count every flow");
}

#[test]
fn chosen_columns_stand_in_their_order() {
    let csv = ran(
        "http",
        &["--format", "csv", "--fields", "host, status,method"],
    )
    .exits(0);
    assert_eq!(csv.lines()[0], "host,status_code,method");
    let text = ran(
        "http",
        &["--format", "text", "--fields", "host,status_code,method"],
    )
    .exits(0);
    let all = records("http", &["--fields", "host,status_code,method"]);
    assert_eq!((csv.lines().len(), text.lines().len()), (801, 800));
    for ((record, line), cells) in all.iter().zip(text.lines()).zip(&csv.lines()[1..]) {
        let keys: Vec<&String> = record.as_object().unwrap().keys().collect();
        // Of the map: in the order of the alphabet.
        assert_eq!(keys, ["host", "method", "status_code"]);
        let of = |name: &str| match &record[name] {
            Value::Null => String::new(),
            Value::String(text) => text.clone(),
            other => other.to_string(),
        };
        let values = ["host", "status_code", "method"].map(of);
        assert_eq!(line, &values.join("|"));
        assert_eq!(cells, &values.join(","));
    }
}

#[test]
fn the_first_records_end_the_run_unless_somebody_takes_them_all() {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name).display().to_string();
    let (out, summary) = (path("out.csv"), path("s.json"));
    let words = ["-w", &out, "--head", "7", "--summary", &summary];
    ran("http", &words).exits(0);
    let read =
        |path: &str| -> Value { serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap() };
    // Totals are those until then.
    assert!(read(&summary)["records"].as_u64() >= Some(7));
    let all = ran("http", &["--format", "csv"]).exits(0);
    let first: Vec<&str> = all.lines().into_iter().take(8).collect();
    let written = std::fs::read_to_string(&out).unwrap();
    assert_eq!(written.lines().collect::<Vec<_>>(), first);
    // One output has failed, the other is complete.
    let words = [
        "-w",
        "/dev/full",
        "-w",
        "-",
        "--format",
        "csv",
        "--head",
        "3",
    ];
    assert_eq!(ran("http", &words).exits(1).lines().len(), 4);
    // What is chosen is what is counted.
    let condition = ["--where", "status = 404", "--head", "2"];
    assert_eq!(records("http", &condition).len(), 2);
    // A report is of everything.
    let (report, second) = (path("r.html"), path("t.json"));
    ran(
        "http",
        &["--head", "7", "--report", &report, "--summary", &second],
    )
    .exits(0);
    assert_eq!(read(&second)["packets"], 2869);
    assert_eq!(read(&second)["records"], 800);
}

#[test]
fn a_table_is_for_people() {
    let table = ran("http", &["--format", "table", "--time", "utc"]).exits(0);
    let lines = table.lines();
    assert!(
        lines[0].starts_with("time          client → server  "),
        "{}",
        lines[0]
    );
    assert!(
        lines[1].starts_with("-- 20") && lines[1].ends_with(", UTC"),
        "{}",
        lines[1]
    );
    let first = &records("http", &["--head", "1"])[0];
    let host = first["host"].as_str().unwrap();
    let url = format!("{host}{}", first["uri"].as_str().unwrap());
    let ends = format!(
        "{}:{} → {}:{}  ",
        first["client_ip"].as_str().unwrap(),
        first["client_port"],
        first["server_ip"].as_str().unwrap(),
        first["server_port"]
    );
    assert!(
        lines[2].contains(&ends) && lines[2].ends_with(&url),
        "{}",
        lines[2]
    );
    // Cells stand below one another.
    let place = |line: &str, text: &str| line.split(text).next().unwrap().chars().count();
    let status = place(lines[0], "status");
    // Until one is longer.
    for line in lines[2..].iter().take_while(|line| !line.contains('[')) {
        assert!(!line.contains('\u{1b}'), "{line}");
        let cell: String = line.chars().skip(status).take(3).collect();
        assert!(
            cell.parse::<u16>().is_ok() || cell == "una" || cell == "orp",
            "{line}"
        );
    }
    // Since the first packet, which is the SYN before it.
    let begin = crate::common::demo_frames()[0].timestamp_ns;
    let since = first["request_ts_ns"].as_u64().unwrap() - begin;
    let since = format!("0.{:06} ", since / 1000);
    for words in [&[][..], &["--workers", "2"]] {
        let words = [
            &["--format", "table", "--time", "relative", "--sort"],
            words,
        ]
        .concat();
        let relative = ran("http", &words).exits(0);
        assert!(relative.lines()[1].starts_with(&since), "{relative:?}");
    }
    let epoch = ran("http", &["--format", "table", "--time", "epoch"]).exits(0);
    let seconds = first["request_ts_ns"].as_u64().unwrap() / 1_000_000_000;
    assert!(epoch.lines()[1].starts_with(&format!("{seconds}.")));
    // Other formats have times of their own.
    for words in [
        &["--time", "utc"][..],
        &["--time", "local", "--format", "jsonl"],
        &[
            "--time",
            "epoch",
            "--format",
            "table",
            "-w",
            "syslog://127.0.0.1:9",
        ],
    ] {
        for command in ["http", "flows"] {
            ran(command, words).exits(2).says("--time is for a table");
        }
    }
    for command in ["flows", "flows --kind tls", "flows --kind dns"] {
        let words: Vec<&str> = command.split(' ').collect();
        let (command, more) = words.split_first().unwrap();
        let table = ran(command, &[more, &["--format", "table"]].concat()).exits(0);
        assert!(
            table.lines()[0].contains("client → server"),
            "{}",
            table.stdout
        );
    }
}

#[test]
fn a_table_has_the_columns_that_are_asked_for_and_the_same_widths_in_all_lines() {
    let words = ["--format", "table", "--time", "utc", "--fields"];
    let table = ran(
        "flows",
        &[&words[..], &["first, s_ip,durat,c_bytes_all"]].concat(),
    )
    .exits(0);
    let lines = table.lines();
    assert_eq!(
        lines[0],
        "first         s_ip                durat  c_bytes_all"
    );
    assert!(lines[1].starts_with("-- 20"), "{}", lines[1]);
    assert_eq!(lines.len(), 82);
    for line in &lines[2..] {
        assert_eq!(line.chars().count(), lines[0].len(), "{line}");
        let address = line.get(14..).unwrap_or_default();
        let is_placed = address.starts_with("10.80.0.1 ") || address.starts_with("fd00:80::1 ");
        assert!(is_placed, "{line}");
    }
    // The widest pair of addresses has room from the first line on.
    let table = ran("flows", &["--format", "table"]).exits(0);
    let places = table.lines().into_iter().map(|line| {
        let before = line.split_once(" tcp ").map(|(before, _)| before);
        let place = before.map(|before| before.chars().count());
        place.unwrap_or(12 + 2 + 45 + 1)
    });
    let places: Vec<usize> = places.collect();
    assert_eq!(places, vec![12 + 2 + 45 + 1; places.len()]);
}

#[test]
fn a_run_that_head_has_ended_says_so_and_counts_what_was_left_out() {
    let demo = demo();
    let all = ["http", "-r", demo.to_str().unwrap()];
    let one = run(&[&all[..], &["--head", "1", "--read-size", "4KiB"]].concat())
        .exits(0)
        .says("linkweir: ended by --head after 1 record\n");
    assert_eq!(one.lines().len(), 1);
    // Of as many as were found until then.
    let row = one.stderr.lines().find(|line| line.contains("left out"));
    let mut words = row.unwrap().split_whitespace().skip(2);
    let [out, of]: [u64; 2] = [words.next(), words.nth(1)].map(|n| n.unwrap().parse().unwrap());
    assert_eq!(out + 1, of, "{}", one.stderr);
    assert!(of < 800, "{}", one.stderr);
    // One that was read to its end, as a report wants, did not end early: all records but one, those that do not match too.
    let directory = tempfile::tempdir().unwrap();
    let report = directory.path().join("report.html");
    let flows = ["flows", "-r", demo.to_str().unwrap(), "--head", "1"];
    let others = [
        "--where",
        "c_pkts_all > 20",
        "--report",
        report.to_str().unwrap(),
    ];
    let whole = run(&[&flows[..], &others].concat())
        .exits(0)
        .says("left out   79 of 80 records");
    assert!(!whole.stderr.contains("ended by"), "{}", whole.stderr);
}

#[test]
fn events_of_a_trial_are_chosen_too() {
    let directory = tempfile::tempdir().unwrap();
    let policy = directory.path().join("gateway.toml");
    std::fs::write(
        &policy,
        "[gateway]\ninterfaces = [\"eth0\"]\n\n[[rule]]\nname = \"web\"\napplication = \"http\"\naction = \"allow\"\n",
    )
    .unwrap();
    let demo = demo();
    let words = [
        "gateway",
        "check",
        "--config",
        policy.to_str().unwrap(),
        "-r",
        demo.to_str().unwrap(),
        "-w",
        "-",
        "--format",
        "csv",
        "--fields",
        "event,rule,client_ip",
    ];
    let all = run(&words).exits(0);
    let some = run(&[&words[..], &["--where", "client_ip = 10.80.0.11"]].concat()).exits(0);
    let expected: Vec<&str> = all
        .lines()
        .into_iter()
        .filter(|line| line.ends_with(",10.80.0.11") || line.ends_with("client_ip"))
        .collect();
    assert!(
        expected.len() > 1 && expected.len() < all.lines().len(),
        "{}",
        all.stdout
    );
    assert_eq!(some.lines(), expected);
}
