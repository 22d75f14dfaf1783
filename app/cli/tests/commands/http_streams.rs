//! Streams of events from a capture: columns, summary and screen.

use std::time::Duration;

use linkweir_testkit::conversation::Conversation;
use serde_json::Value;
use tempfile::tempdir;

use crate::common::{http, plain, run, summary};

const HEAD: &str =
    "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n";

/// Ten events; with a proxy that buffers they come at once behind the last.
fn stream(port: u16, is_buffered: bool) -> Conversation {
    let mut talk = Conversation::v4(port).spaced(1_000);
    talk.handshake().client_sends(
        "POST /v1/chat HTTP/1.1\r\nHost: llm.example.test\r\nContent-Length: 2\r\n\r\n{}",
    );
    let pause = Duration::from_millis(if is_buffered { 0 } else { 40 });
    if is_buffered {
        talk.wait(Duration::from_millis(400));
    }
    talk.server_sends(HEAD);
    for number in 0..10 {
        let event = format!("data: {number}\n\n");
        talk.wait(pause)
            .server_sends(format!("{:x}\r\n{event}\r\n", event.len()));
    }
    talk.server_sends("0\r\n\r\n");
    talk
}

#[test]
fn columns_summary_and_screen() {
    let directory = tempdir().unwrap();
    let capture = directory.path().join("streams.pcap");
    let mut frames = stream(40_000, false).frames();
    frames.extend(stream(40_001, true).frames());
    let mut page = Conversation::v4(40_002);
    page.client_sends("GET / HTTP/1.1\r\nHost: llm.example.test\r\n\r\n")
        .server_sends("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
    frames.extend(page.frames());
    std::fs::write(&capture, plain(&frames)).unwrap();

    let records = http(&capture, &["--format", "jsonl", "--ttlb"]);
    let records: Vec<Value> = records
        .stdout
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let of = |port: u64| {
        let mut all = records.iter();
        all.find(|record| record["client_port"] == port).unwrap()
    };
    let direct = of(40_000);
    assert_eq!(
        (&direct["events"], &direct["buffered"]),
        (&10.into(), &"no".into())
    );
    assert_eq!(direct["event_gap_max_ns"], 40_001_000);
    assert_eq!(
        (&direct["stalls"], &direct["coalesced"]),
        (&0.into(), &0.into())
    );
    let first_ns = direct["first_event_ns"].as_u64().unwrap();
    assert!((40_000_000..41_000_000).contains(&first_ns), "{direct}");
    let buffered = of(40_001);
    assert_eq!(
        (&buffered["events"], &buffered["buffered"]),
        (&10.into(), &"yes".into())
    );
    let csv = http(&capture, &["--format", "csv"]).stdout;
    let names: Vec<&str> = csv.lines().next().unwrap().split(',').collect();
    let first = names
        .iter()
        .position(|name| *name == "first_event_ns")
        .unwrap();
    let cells = |port: &str| {
        let line = csv.lines().find(|line| line.contains(port)).unwrap();
        let cells: Vec<_> = line.split(',').map(str::to_owned).collect();
        cells[first..first + 8].to_vec()
    };
    let none = vec![String::new(); 8];
    assert_eq!(cells(",40002,"), none, "no stream: nothing in all of them");
    let of_buffered = cells(",40001,");
    assert_eq!(
        (of_buffered[1].as_str(), of_buffered[7].as_str()),
        ("10", "yes")
    );

    let totals = summary(&capture, &[]);
    let streams = &totals["http"]["streams"];
    let counts: Vec<_> = ["streams", "estimated", "events", "buffered", "with_gaps"]
        .iter()
        .map(|name| streams[name].as_u64().unwrap())
        .collect();
    assert_eq!(counts, [2, 0, 20, 1, 0], "{streams}");
    assert_eq!(streams["event_gap_ns"]["count"], 18);
    assert_eq!(streams["hosts"]["llm.example.test"]["streams"], 2);
    let path = capture.to_str().unwrap();
    let screen = run(&["http", "-r", path, "-w", "/dev/null"]).stderr;
    let finding =
        "a proxy on the path buffers 1 of 2 streams of host llm.example.test, or the origin";
    assert!(screen.contains(finding), "{screen}");
    assert!(
        screen.contains("2 streams (0 estimated), 20 events"),
        "{screen}"
    );
}
