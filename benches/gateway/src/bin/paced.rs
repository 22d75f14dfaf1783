//! Small requests at a steady rate, and how long the answers take.
//!
//! `paced SERVER:PORT PATH CONNECTIONS RATE SECONDS`: `RATE` requests per second over that many
//! connections. One line of JSON: requests, and quantiles of the response time in microseconds. A
//! request that could not be sent in time because the answer before it was late counts from when it
//! should have been sent.
#![forbid(unsafe_code)]
#![allow(
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "a measuring program: it looks at the clock and prints"
)]

use std::net::SocketAddr;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use linkweir_bench_gateway::{Client, quantile};

fn main() -> Result<()> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [server, path, connections, rate, seconds] = words.as_slice() else {
        bail!("usage: paced SERVER:PORT PATH CONNECTIONS RATE SECONDS");
    };
    let server: SocketAddr = server.parse()?;
    let connections: u32 = connections.parse()?;
    let interval = Duration::from_secs_f64(f64::from(connections) / rate.parse::<f64>()?);
    let length = Duration::from_secs_f64(seconds.parse()?);
    let mut clients = Vec::new();
    for _ in 0..connections {
        let mut client = Client::connect(server, path)?;
        // The first request is what the connection is classified by.
        client.get()?;
        clients.push(client);
    }
    let begin = Instant::now();
    let threads: Vec<_> = (0_u32..)
        .zip(clients)
        .map(|(number, client)| {
            let first = begin + interval * number / connections;
            thread::spawn(move || ask(client, first, interval, begin + length))
        })
        .collect();
    let mut times = Vec::new();
    for thread in threads {
        match thread.join() {
            Ok(asked) => times.extend(asked?),
            Err(_) => bail!("a thread ended early"),
        }
    }
    times.sort_unstable();
    println!(
        "{{\"requests\":{},\"p50_us\":{},\"p90_us\":{},\"p99_us\":{},\"p999_us\":{},\"max_us\":{}}}",
        times.len(),
        quantile(&times, 0.5),
        quantile(&times, 0.9),
        quantile(&times, 0.99),
        quantile(&times, 0.999),
        quantile(&times, 1.0),
    );
    Ok(())
}

/// Asks at `due` and every `interval` after it; the response times in microseconds.
fn ask(mut client: Client, mut due: Instant, interval: Duration, end: Instant) -> Result<Vec<u64>> {
    let mut times = Vec::new();
    while due < end {
        let early = due.saturating_duration_since(Instant::now());
        // What a late wake-up adds is not the gateway's.
        let from = if early.is_zero() {
            due
        } else {
            thread::sleep(early);
            Instant::now()
        };
        client.get()?;
        times.push(u64::try_from(from.elapsed().as_micros())?);
        due += interval;
    }
    Ok(times)
}
