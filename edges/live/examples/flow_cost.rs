//! What the live statistics cost per flow: `flow_cost [RECORDS [CLIENTS]]`.
//!
//! Records of 1,000 servers, 300 names, 5,000 clients (evenly, the worst
//! case of a table of 256: nearly every one is new to it) and 8 applications, 10,000 a second of capture
//! time, in batches of 512 as the run loop hands them over. Times are those of the thread on its core, so that
//! a busy machine matters little.
#![allow(
    clippy::print_stdout,
    clippy::indexing_slicing,
    clippy::unwrap_used,
    reason = "an example measures and prints"
)]

use std::net::Ipv4Addr;

use linkweir_engine::{RunReport, SinkError};
use linkweir_live::alert::Rule;
use linkweir_live::api::FlowCounts;
use linkweir_live::{FlowLive, LiveOptions};
use linkweir_record::flow::{FlowState, FlowText, RttRow};
use linkweir_record::{FlowBatch, FlowRow, RecordBatch as _};
use linkweir_wire::Timestamp;

/// Nanoseconds that this thread has run (`/proc/thread-self/schedstat`, first field).
fn cpu_ns() -> u64 {
    let line = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap();
    line.split(' ').next().unwrap().parse().unwrap()
}

const APPLICATIONS: [&str; 8] = [
    "tls", "quic", "http", "dns", "ssh", "smtp", "imap", "unknown",
];

fn main() -> Result<(), SinkError> {
    let records: u64 = std::env::args()
        .nth(1)
        .and_then(|count| count.parse().ok())
        .unwrap_or(500_000);
    let clients: u64 = std::env::args()
        .nth(2)
        .and_then(|count| count.parse().ok())
        .unwrap_or(5000);
    let names: Vec<String> = (0..300).map(|n| format!("www{n}.shop.example")).collect();
    let live = FlowLive::new(LiveOptions {
        alerts: vec![
            Rule::read::<FlowCounts>("p95 of rtt of name www7.shop.example > 500 ms").unwrap(),
            Rule::read::<FlowCounts>("retransmissions share > 2 %").unwrap(),
        ],
        ..LiveOptions::default()
    });
    let mut sink = live.sink();
    let mut random = 88_172_645_463_325_252_u64;
    let start = 1_700_000_000_000_000_000;
    live.tick(&RunReport::default(), Timestamp::from_nanos(start));
    let (mut spent, mut count) = (0, 0);
    for first in (0..records).step_by(512) {
        let mut batch = FlowBatch::default();
        for n in first..first + 512 {
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            // The product of two: a few are common, most of them rare.
            let skewed = (random % 1000) * (random / 1000 % 1000) / 1000;
            let last = start + n * 100_000;
            let mut row = FlowRow {
                flow_id: n,
                first_ns: last - random % 2_000_000_000,
                last_ns: last,
                state: FlowState::Closed,
                has_syn: true,
                application: APPLICATIONS[usize::try_from(skewed / 125).unwrap()],
                syn_ack_ns: Some(20_000_000 + random % 9_000_000),
                ack_dat_ns: Some(1_000_000),
                ..FlowRow::default()
            };
            row.client.ip =
                Ipv4Addr::from(0x0a00_0000 + u32::try_from(random % clients).unwrap()).into();
            row.server.ip = Ipv4Addr::from(0xc000_0200 + u32::try_from(skewed).unwrap()).into();
            row.server.port = 443;
            for (side, avg_ns) in [(&mut row.client, 20_000_000), (&mut row.server, 900_000)] {
                side.pkts_all = 12;
                side.pkts_data = 8;
                side.bytes_uniq = 5000 + skewed;
                side.ip_bytes = 6000 + skewed;
                side.rtt = RttRow {
                    count: 5,
                    avg_ns: avg_ns + random % 30_000_000,
                    ..RttRow::default()
                };
            }
            let text = FlowText {
                sni: names[usize::try_from(skewed * 3 / 10).unwrap()].as_bytes(),
                ..FlowText::default()
            };
            batch.push(row, &text);
        }
        // The stage has just written the batch: it is in the cache.
        let started = cpu_ns();
        sink.write(&batch)?;
        count += batch.len() as u64;
        let report = RunReport {
            packets: count * 20,
            ..RunReport::default()
        };
        live.tick(&report, Timestamp::from_nanos(start + first * 100_000));
        spent += cpu_ns() - started;
    }
    println!("{count} records: {} ns each", spent / count.max(1));
    Ok(())
}
