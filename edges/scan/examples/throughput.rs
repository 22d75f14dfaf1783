//! What clamd takes: windows from memory through the scanner, in MB/s. The limit of the gateway's
//! benchmark.
//!
//! `cargo run --release -p linkweir-scan --example throughput -- [--connections K] [--seconds S]
//! [--per-scan] [--socket PATH] [KIB...]`
//!
//! Without `--socket` it starts a clamd of its own. `--per-scan` uses a connection for each scan
//! instead of sessions. The bytes are text of random words: no window is like another.
#![allow(
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "a tool for developers"
)]

use std::error::Error;
use std::path::PathBuf;
use std::sync::mpsc;
use std::time::{Duration, Instant};

use linkweir_engine::effect::{ScanChunk, ScanOutcome, Ticket};
use linkweir_scan::{Address, Scanner, ScannerOptions};
use linkweir_testkit::clamd::Clamd;

/// Bytes from which the windows are cut.
const POOL: usize = 32 << 20;

fn main() -> Result<(), Box<dyn Error>> {
    let mut connections = 4;
    let mut seconds = 2.0;
    let mut scans_per_connection = 1000;
    let mut socket: Option<PathBuf> = None;
    let mut sizes: Vec<usize> = Vec::new();
    let mut words = std::env::args().skip(1);
    while let Some(word) = words.next() {
        let mut value = || words.next().ok_or_else(|| format!("{word} wants a value"));
        match word.as_str() {
            "--connections" => connections = value()?.parse()?,
            "--seconds" => seconds = value()?.parse()?,
            "--per-scan" => scans_per_connection = 1,
            "--socket" => socket = Some(value()?.into()),
            size => sizes.push(size.parse()?),
        }
    }
    if sizes.is_empty() {
        sizes = vec![1, 2, 5, 10, 20, 30, 40, 60, 80, 100, 120];
    }
    let (own, socket) = match socket {
        Some(socket) => (None, socket),
        None => {
            let clamd = Clamd::start()?;
            let socket = clamd.socket();
            (Some(clamd), socket)
        }
    };
    let pool = words_of(POOL);
    println!("window_kib connections mb_per_s scans_per_s p50_ms p99_ms clamd_cpu_ms_per_mb");
    for size in sizes {
        let options = ScannerOptions {
            connections,
            scans_per_connection,
            ..ScannerOptions::new(Address::Unix(socket.clone()))
        };
        let cpu = || {
            own.as_ref()
                .and_then(Clamd::pid)
                .and_then(cpu_ms)
                .unwrap_or(f64::NAN)
        };
        let before = cpu();
        let run = Run::new(options, size << 10, &pool, Duration::from_secs_f64(seconds))?;
        let megabytes = run.bytes / 1e6;
        println!(
            "{size} {connections} {:.1} {:.0} {:.3} {:.3} {:.2}",
            megabytes / run.elapsed_s,
            run.scans / run.elapsed_s,
            run.p50_ms,
            run.p99_ms,
            (cpu() - before) / megabytes,
        );
    }
    Ok(())
}

struct Run {
    bytes: f64,
    scans: f64,
    elapsed_s: f64,
    p50_ms: f64,
    p99_ms: f64,
}

impl Run {
    /// Keeps two scans for each connection on the way for `length`.
    #[expect(clippy::cast_precision_loss, reason = "for reading")]
    fn new(
        options: ScannerOptions,
        window: usize,
        pool: &[u8],
        length: Duration,
    ) -> Result<Self, Box<dyn Error>> {
        let on_the_way = options.connections * 2;
        let scanner = Scanner::start(options)?;
        let (wake, woken) = mpsc::channel();
        let client = scanner.client(move || {
            // At the end nobody listens any more.
            wake.send(()).ok();
        });
        let mut windows = pool.chunks_exact(window).cycle();
        let mut ticket = 0;
        let mut submit = |count: usize| {
            for bytes in windows.by_ref().take(count) {
                ticket += 1;
                client.submit(ScanChunk {
                    ticket: Ticket(ticket),
                    bytes: bytes.to_vec(),
                    is_last: true,
                });
            }
        };
        let begin = Instant::now();
        let mut reports = Vec::new();
        submit(on_the_way);
        while begin.elapsed() < length {
            woken.recv()?;
            client.take_reports(&mut reports);
            for report in &reports {
                if report.outcome != ScanOutcome::Clean {
                    return Err(format!("{:?}", report.outcome).into());
                }
            }
            submit(reports.len());
            reports.clear();
        }
        let elapsed_s = begin.elapsed().as_secs_f64();
        let status = scanner.status();
        let ms = |q| status.latency_ns.quantile(q).unwrap_or(0) as f64 / 1e6;
        Ok(Self {
            bytes: status.bytes as f64,
            scans: status.scans as f64,
            elapsed_s,
            p50_ms: ms(0.5),
            p99_ms: ms(0.99),
        })
    }
}

/// Random words, separated by blanks.
fn words_of(length: usize) -> Vec<u8> {
    let mut state = 1_u64;
    let mut text = Vec::with_capacity(length);
    while text.len() < length {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        let [.., letters, word] = state.to_be_bytes().map(|byte| byte % 26 + b'a');
        text.extend_from_slice(&[letters, word]);
        if state >> 61 == 0 {
            text.push(b' ');
        }
    }
    text
}

/// Processor time of a process: user and system, milliseconds.
fn cpu_ms(pid: u32) -> Option<f64> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name before the bracket may hold anything; utime and stime are the 12th and 13th after it.
    let (_, fields) = stat.rsplit_once(')')?;
    let mut ticks = fields.split_whitespace().skip(11).map(str::parse::<f64>);
    let (user, system) = (ticks.next()?.ok()?, ticks.next()?.ok()?);
    // A tick is 10 ms on every Linux that runs on a server.
    Some((user + system) * 10.0)
}
