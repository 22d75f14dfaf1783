//! Clients that download from servers, many at a time, as in the paper's Fig. 6.
//!
//! `crowd CLIENT,.. SERVER,.. PATH AT_ONCE SECONDS`: each client has `AT_ONCE` threads, and each thread downloads
//! `PATH` from one server after the other, over a connection of its own each. One line of JSON: bytes of bodies that came
//! in the time, whole downloads, those that failed, and quantiles of the time of a whole one in microseconds.
#![forbid(unsafe_code)]
#![allow(
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "a measuring program: it looks at the clock and prints"
)]

use std::net::{Ipv4Addr, SocketAddrV4};
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use linkweir_bench_gateway::{download, quantile};

/// Stack of a thread, bytes: there are hundreds.
const STACK: usize = 256 << 10;

/// What all threads count.
#[derive(Debug, Default)]
struct Counted {
    bytes: AtomicU64,
    failed: AtomicU64,
}

fn main() -> Result<()> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [clients, servers, path, at_once, seconds] = words.as_slice() else {
        bail!("usage: crowd CLIENT,.. SERVER,.. PATH AT_ONCE SECONDS");
    };
    let clients = addresses(clients)?;
    let servers = addresses(servers)?;
    let at_once: usize = at_once.parse()?;
    let end = Instant::now() + Duration::from_secs_f64(seconds.parse()?);
    let counted = Counted::default();
    let begin = Instant::now();
    let mut times = thread::scope(|scope| {
        let mut threads = Vec::new();
        for (number, client) in (0..at_once).flat_map(|_| &clients).enumerate() {
            let (servers, counted) = (&servers, &counted);
            let work = move || ask(*client, servers, number, path, end, counted);
            let thread = thread::Builder::new().stack_size(STACK);
            threads.push(thread.spawn_scoped(scope, work)?);
        }
        let mut times = Vec::new();
        for thread in threads {
            match thread.join() {
                Ok(taken) => times.extend(taken),
                Err(_) => bail!("a thread ended early"),
            }
        }
        anyhow::Ok(times)
    })?;
    times.sort_unstable();
    println!(
        "{{\"bytes\":{},\"downloads\":{},\"failed\":{},\"duration_us\":{},\"p50_us\":{},\"p99_us\":{},\"max_us\":{}}}",
        counted.bytes.load(Ordering::Relaxed),
        times.len(),
        counted.failed.load(Ordering::Relaxed),
        begin.elapsed().as_micros(),
        quantile(&times, 0.5),
        quantile(&times, 0.99),
        quantile(&times, 1.0),
    );
    Ok(())
}

fn addresses(list: &str) -> Result<Vec<Ipv4Addr>> {
    let all = list.split(',').map(str::parse);
    Ok(all.collect::<Result<Vec<_>, _>>()?)
}

/// Downloads until `end`; the times of whole downloads in microseconds.
fn ask(
    client: Ipv4Addr,
    servers: &[Ipv4Addr],
    number: usize,
    path: &str,
    end: Instant,
    counted: &Counted,
) -> Vec<u64> {
    let mut times = Vec::new();
    let mut servers = servers.iter().cycle().skip(number);
    while Instant::now() < end {
        let Some(server) = servers.next() else { break };
        let begin = Instant::now();
        let server = SocketAddrV4::new(*server, 80);
        let came = download(client, server, path, |bytes| {
            counted.bytes.fetch_add(bytes, Ordering::Relaxed);
            Instant::now() < end
        });
        match came {
            Ok(true) => times.push(u64::try_from(begin.elapsed().as_micros()).unwrap_or(u64::MAX)),
            // The time was up.
            Ok(false) => {}
            Err(_) => {
                counted.failed.fetch_add(1, Ordering::Relaxed);
            }
        }
    }
    times
}
