//! Small requests one after the other, each over a connection of its own.
//!
//! `fresh SERVER:PORT PATH SECONDS`: prints one line of JSON: requests, and the median and the longest
//! time in microseconds from the SYN to the end of the answer.
#![forbid(unsafe_code)]
#![allow(
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "a measuring program: it looks at the clock and prints"
)]

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use linkweir_bench_gateway::quantile;

/// How long anything may take before it is an error.
const TIMEOUT: Duration = Duration::from_secs(20);

fn main() -> Result<()> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [server, path, seconds] = words.as_slice() else {
        bail!("usage: fresh SERVER:PORT PATH SECONDS");
    };
    let server: SocketAddr = server.parse()?;
    let length = Duration::from_secs_f64(seconds.parse()?);
    let request = format!("GET {path} HTTP/1.1\r\nHost: {server}\r\nConnection: close\r\n\r\n");
    let begin = Instant::now();
    let mut times = Vec::new();
    while begin.elapsed() < length {
        let from = Instant::now();
        ask(server, request.as_bytes())?;
        times.push(u64::try_from(from.elapsed().as_micros())?);
    }
    times.sort_unstable();
    println!(
        "{{\"requests\":{},\"p50_us\":{},\"max_us\":{}}}",
        times.len(),
        quantile(&times, 0.5),
        quantile(&times, 1.0),
    );
    Ok(())
}

/// Asks once; the server ends the connection.
fn ask(server: SocketAddr, request: &[u8]) -> Result<()> {
    let mut stream = TcpStream::connect_timeout(&server, TIMEOUT).context("connect")?;
    stream.set_read_timeout(Some(TIMEOUT))?;
    stream.write_all(request)?;
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).context("read the answer")?;
    if !answer.starts_with(b"HTTP/1.1 200 ") {
        bail!("the answer is no 200");
    }
    Ok(())
}
