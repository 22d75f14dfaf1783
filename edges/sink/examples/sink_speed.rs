//! What a sink costs without the analysis before it: records that are prepared, written again and again.
//!
//! `sink_speed RECORDS.jsonl TIMES DEST [FORMAT] [--kafka NAME=VALUE]...` reads the records of
//! `linkweir http --format jsonl`, writes all of them TIMES times to DEST, and prints a line of JSON: records,
//! those that were lost, seconds of CPU time and on the clock from opening to completing the output, and the
//! bytes of memory that came on top of the prepared records.
#![allow(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::print_stdout,
    reason = "a measurement, not part of the data path"
)]

use std::io::{BufRead, BufReader};
use std::time::Instant;

use linkweir_record::{HttpBatch, HttpKind, HttpRow, HttpState, RecordBatch, Text};
use linkweir_sink::{Format, OutputOptions, open_sink};
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::{TimeVal, TimeValLike};
use serde_json::Value;

/// Records of a batch: as many as the run loop gathers before the sinks see them.
const BATCH: usize = 512;

fn main() {
    let mut words: Vec<String> = std::env::args().skip(1).collect();
    let mut options = OutputOptions::default();
    while let Some(at) = words.iter().position(|word| word == "--kafka") {
        let setting: Vec<String> = words.drain(at..at + 2).collect();
        let (name, value) = setting.last().unwrap().split_once('=').unwrap();
        options.kafka.push((name.to_owned(), value.to_owned()));
    }
    options.probe = "bench".to_owned();
    let mut words = words.iter();
    let usage = "RECORDS.jsonl TIMES DEST [FORMAT]";
    let records = words.next().expect(usage);
    let times: u32 = words.next().expect(usage).parse().expect(usage);
    let destination = words.next().expect(usage);
    let format = words
        .next()
        .map(|name| Format::from_name(name).expect("a format"));

    let batches = read(records);
    let prepared: usize = batches.iter().map(RecordBatch::len).sum();
    // From here on the peak is that of what follows.
    let can_reset = std::fs::write("/proc/self/clear_refs", "5").is_ok();
    let memory = status_bytes("VmRSS:");
    let ((user, system), clock) = (cpu_seconds(), Instant::now());

    let mut sink = open_sink::<HttpKind>(destination, format, options).unwrap();
    for _ in 0..times {
        for batch in &batches {
            sink.write(batch).unwrap();
        }
    }
    sink.finish().unwrap();

    let wall_s = clock.elapsed().as_secs_f64();
    let ended = cpu_seconds();
    let (user_s, system_s) = (ended.0 - user, ended.1 - system);
    let grown = status_bytes("VmHWM:").saturating_sub(memory);
    let line = serde_json::json!({
        "records": prepared as u64 * u64::from(times),
        "lost": sink.losses().count,
        "user_s": user_s,
        "system_s": system_s,
        "wall_s": wall_s,
        "memory": if can_reset { Some(grown) } else { None },
    });
    println!("{line}");
}

fn read(path: &str) -> Vec<HttpBatch> {
    let file = std::fs::File::open(path).expect("the records");
    let mut batches = vec![HttpBatch::default()];
    for line in BufReader::new(file).lines() {
        let record: Value = serde_json::from_str(&line.unwrap()).expect("a record");
        if batches.last().is_none_or(|batch| batch.len() == BATCH) {
            batches.push(HttpBatch::default());
        }
        push(batches.last_mut().unwrap(), &record);
    }
    batches
}

/// The record that was written as this object.
fn push(batch: &mut HttpBatch, record: &Value) {
    let number = |name: &str| record.get(name).and_then(Value::as_u64);
    let small = |name: &str| number(name).and_then(|value| u16::try_from(value).ok());
    let word = |name: &str| record.get(name).and_then(Value::as_str).unwrap_or_default();
    let row = HttpRow {
        client_ip: word("client_ip").parse().expect("an address"),
        server_ip: word("server_ip").parse().expect("an address"),
        request_ts_ns: number("request_ts_ns"),
        response_ts_ns: number("response_ts_ns"),
        ttlb_ns: number("ttlb_ns"),
        request_bytes: number("request_bytes"),
        response_bytes: number("response_bytes"),
        flow_hash: number("flow_hash").map_or(0, |hash| u32::try_from(hash).unwrap()),
        client_port: small("client_port").unwrap_or(0),
        server_port: small("server_port").unwrap_or(0),
        status_code: small("status_code"),
        interim_responses: small("interim_responses").unwrap_or(0),
        retransmissions: small("retransmissions").unwrap_or(0),
        vlan: small("vlan"),
        version: match word("version") {
            "1.0" => (1, 0),
            "0.9" => (0, 9),
            _ => (1, 1),
        },
        state: match word("state") {
            "unanswered" => HttpState::Unanswered,
            "orphan" => HttpState::Orphan,
            _ => HttpState::Complete,
        },
        ..HttpRow::default()
    };
    let text = Text {
        method: word("method").as_bytes(),
        uri: word("uri").as_bytes(),
        host: word("host").as_bytes(),
        user_agent: word("user_agent").as_bytes(),
        reason_phrase: word("reason_phrase").as_bytes(),
        content_type: word("content_type").as_bytes(),
    };
    batch.push(row, &text);
}

/// User and system time of this process and of its threads, also of those that have ended, seconds.
fn cpu_seconds() -> (f64, f64) {
    let usage = getrusage(UsageWho::RUSAGE_SELF).unwrap();
    let seconds = |time: TimeVal| time.num_microseconds() as f64 * 1e-6;
    (seconds(usage.user_time()), seconds(usage.system_time()))
}

/// A size of `/proc/self/status`.
fn status_bytes(name: &str) -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix(name));
    let kib = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
    kib.unwrap_or(0) * 1024
}
