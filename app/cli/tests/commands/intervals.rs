//! `--interval`, `--alert` and `--console` over files: an interval has what the capture has in its time, however much of
//! the file is read at once.

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::process::Stdio;

use serde_json::Value;

use crate::common::{demo, demo_frames, linkweir, run};

const HALF_SECOND: u64 = 500_000_000;
const SECOND: u64 = 1_000_000_000;

/// Packets and bytes of the bundled capture by interval from its first packet on.
fn counted(interval: u64) -> BTreeMap<u64, (u64, u64)> {
    let frames = demo_frames();
    let first = frames[0].timestamp_ns;
    let mut counts = BTreeMap::new();
    for frame in &frames {
        let (packets, bytes): &mut (u64, u64) = counts
            .entry((frame.timestamp_ns - first) / interval)
            .or_default();
        *packets += 1;
        *bytes += u64::from(frame.wire_len);
    }
    counts
}

/// What a page of a console answers.
fn got(address: &str, path: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    let request = format!("GET {path} HTTP/1.0\r\nHost: {address}\r\n\r\n");
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer.split_once("\r\n\r\n").unwrap().1.to_owned()
}

#[test]
fn intervals_of_flows_are_those_of_the_capture_and_no_flow_counts_twice() {
    let mut child = linkweir()
        .args(["flows", "-q", "--no-output", "--console", "127.0.0.1:0"])
        .args(["--interval", "500ms", "-r"])
        .arg(demo())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let said = BufReader::new(child.stderr.take().unwrap()).lines();
    let mut said = said.map(Result::unwrap);
    let line = said.find(|line| line.contains("stays at")).unwrap();
    let address = line.split("http://").nth(1).unwrap();
    let address = address.split('/').next().unwrap();
    let snapshot: Value = serde_json::from_str(&got(address, "/api/snapshot")).unwrap();
    let metrics = got(address, "/metrics");
    child.kill().unwrap();
    child.wait().unwrap();

    let ticks = snapshot["ticks"].as_array().unwrap();
    let count = |tick: &Value, name: &str| tick[name].as_u64().unwrap();
    let seen: BTreeMap<u64, (u64, u64)> = (0..)
        .zip(ticks)
        .map(|(at, tick)| (at, (count(tick, "packets"), count(tick, "bytes"))))
        .collect();
    assert_eq!(seen, counted(HALF_SECOND));
    // Each flow has begun in the interval of its first packet.
    let records = run(&[
        "flows",
        "-q",
        "--format",
        "csv",
        "--fields",
        "first",
        "-r",
        demo().to_str().unwrap(),
    ])
    .exits(0);
    let first = demo_frames()[0].timestamp_ns;
    let mut begun = vec![0; ticks.len()];
    for line in records.lines().iter().skip(1) {
        // Milliseconds with all digits of the nanoseconds.
        let time: u64 = line.replace('.', "").parse().unwrap();
        begun[usize::try_from((time - first) / HALF_SECOND).unwrap()] += 1;
    }
    let new: Vec<u64> = ticks.iter().map(|tick| count(tick, "new_flows")).collect();
    assert_eq!(new, begun);
    let totals = &snapshot["totals"];
    assert_eq!(totals["new_flows"], 80);
    assert_eq!(totals["ended_tcp"], 80);
    for line in [
        "linkweir_flows_active 0\n",
        "linkweir_flows_started_total 80\n",
        "linkweir_flows_ended_total{protocol=\"tcp\"} 80\n",
    ] {
        assert!(metrics.contains(line), "{line}{metrics}");
    }
}

#[test]
fn lines_of_intervals_do_not_depend_on_how_much_is_read_at_once() {
    let lines = |words: &[&str]| {
        let demo = demo();
        let words = [
            &["http", "-q", "--no-output", "--interval", "1s"][..],
            &["-r", demo.to_str().unwrap()],
            words,
        ]
        .concat();
        run(&words).exits(0).stderr
    };
    let all = lines(&[]);
    assert_eq!(all, lines(&["--read-size", "4KiB"]));
    let expected = counted(SECOND);
    let whole = expected.len() - 1;
    let rates: Vec<String> = all
        .lines()
        .map(|line| {
            let rate = line.split("  ").find(|part| part.ends_with(" packets/s"));
            let digits = rate.unwrap().chars().filter(char::is_ascii_digit);
            digits.collect()
        })
        .collect();
    assert_eq!(rates.len(), expected.len(), "{all}");
    for (rate, (packets, _)) in rates.iter().zip(expected.values()).take(whole) {
        assert_eq!(*rate, packets.to_string(), "{all}");
    }
}

#[test]
fn the_interval_in_which_a_file_ends_is_judged() {
    let ran = |interval: &str, rule: &str| {
        let demo = demo();
        let words = ["http", "-q", "--no-output", "-r", demo.to_str().unwrap()];
        run(&[&words[..], &["--interval", interval, "--alert", rule]].concat()).exits(0)
    };
    // The capture has 4.4 seconds: the only interval is not whole, and has times but no rate of an hour.
    let alert = ran("1h", "p95 > 1 ns").says("UTC  alert firing: p95 > 1 ns (");
    assert!(!alert.stderr.contains("never judged"), "{}", alert.stderr);
    ran("1h", "requests rate > 1 /s")
        .says("linkweir: alert `requests rate > 1 /s`: never judged: no whole interval of 1 h");
    ran("1s", "p999 > 1 ns min 801 samples")
        .says("alert `p999 > 1 ns min 801 samples`: never judged: fewer than 801 samples");
    // Not those of a batch of the file.
    let most = counted(SECOND).values().map(|(packets, _)| *packets).max();
    let most = most.unwrap();
    let never = ran("1s", &format!("packets rate > {most} /s"));
    assert!(!never.stderr.contains("alert"), "{}", never.stderr);
    // More than half of an interval has a rate of its own length.
    ran("2500ms", "packets rate < 700 /s")
        .says("UTC  alert firing: packets rate < 700 /s (650 /s)")
        .says("UTC  alert resolved: packets rate < 700 /s (707 /s)");
}
