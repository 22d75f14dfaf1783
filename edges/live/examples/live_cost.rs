//! What the live statistics cost per record: `live_cost [RECORDS]`.
//!
//! Records of 40 servers, 300 hosts, 5,000 clients and 20,000 URLs, 50,000 a second of capture time, in
//! batches of 512 as the run loop hands them over. Times are those of the thread on its core, so that
//! a busy machine matters little.
#![allow(
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "an example measures and prints"
)]

use std::net::Ipv4Addr;

use linkweir_engine::{RunReport, SinkError};
use linkweir_live::{Live, LiveOptions};
use linkweir_record::{HttpBatch, HttpRow, RecordBatch as _, Text};
use linkweir_wire::Timestamp;

/// Nanoseconds that this thread has run (`/proc/thread-self/schedstat`, first field).
fn cpu_ns() -> u64 {
    let line = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap();
    line.split(' ').next().unwrap().parse().unwrap()
}

fn main() -> Result<(), SinkError> {
    let records: u64 = std::env::args()
        .nth(1)
        .and_then(|count| count.parse().ok())
        .unwrap_or(2_000_000);
    let hosts: Vec<String> = (0..300).map(|n| format!("www{n}.shop.example")).collect();
    let uris: Vec<String> = (0..20_000)
        .map(|n| {
            format!(
                "/category{}/item/{}/view.html?session={n}&ref=front",
                n % 60,
                n * 7919
            )
        })
        .collect();
    let live = Live::new(LiveOptions {
        alerts: vec![
            "p95 of host www7.shop.example > 500 ms".parse().unwrap(),
            "5xx share > 2 %".parse().unwrap(),
        ],
        ..LiveOptions::default()
    });
    let mut sink = live.sink();
    let mut batches = Vec::new();
    let mut random = 88_172_645_463_325_252_u64;
    for first in (0..records).step_by(512) {
        let mut batch = HttpBatch::default();
        for n in first..first + 512 {
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            // The product of two: a few are asked for often, most of them rarely.
            let skewed = (random % 1000) * (random / 1000 % 1000) / 1000;
            let at = 1_700_000_000_000_000_000 + n * 20_000;
            let uri = uris.get(usize::try_from(skewed * 20).unwrap()).unwrap();
            let host = hosts
                .get(usize::try_from(skewed * 3 / 10).unwrap())
                .unwrap();
            let row = HttpRow {
                client_ip: Ipv4Addr::from(0x0a00_0000 + u32::try_from(random % 5000).unwrap())
                    .into(),
                server_ip: Ipv4Addr::from(0xc000_0200 + u32::try_from(skewed % 40).unwrap()).into(),
                server_port: 80,
                request_ts_ns: Some(at - 200_000 - random % 100_000_000),
                response_ts_ns: Some(at),
                status_code: Some(if random.is_multiple_of(50) { 404 } else { 200 }),
                request_bytes: Some(400),
                response_bytes: Some(12_000),
                ..HttpRow::default()
            };
            let text = Text {
                method: b"GET",
                uri: uri.as_bytes(),
                host: host.as_bytes(),
                ..Text::default()
            };
            batch.push(row, &text);
        }
        batches.push((first, batch));
    }
    live.tick(
        &RunReport::default(),
        Timestamp::from_nanos(1_700_000_000_000_000_000),
    );
    let started = cpu_ns();
    let mut count = 0;
    for (first, batch) in &batches {
        sink.write(batch)?;
        count += batch.len() as u64;
        let report = RunReport {
            packets: count * 10,
            ..RunReport::default()
        };
        let now = 1_700_000_000_000_000_000 + first * 20_000;
        live.tick(&report, Timestamp::from_nanos(now));
    }
    let spent = cpu_ns() - started;
    let started = cpu_ns();
    live.finish(&RunReport::default());
    let end = cpu_ns() - started;
    println!(
        "{count} records: {} ns each; end {} us",
        spent / count.max(1),
        end / 1000
    );
    Ok(())
}
