//! Very many connections at once, all of them used.
//!
//! `hold SERVER:PORT PATH COUNT`: opens them, asks once on each, and once more on each when all are
//! open; prints `held COUNT` and keeps them until it is ended.
#![forbid(unsafe_code)]
#![allow(
    clippy::print_stdout,
    reason = "a measuring program talks to the one that started it"
)]

use std::net::SocketAddr;

use anyhow::{Context as _, Result, bail};
use linkweir_bench_gateway::Client;
use nix::sys::resource::{Resource, getrlimit, setrlimit};

/// Files open beside the connections.
const OTHERS: u64 = 64;

fn main() -> Result<()> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [server, path, count] = words.as_slice() else {
        bail!("usage: hold SERVER:PORT PATH COUNT");
    };
    let server: SocketAddr = server.parse()?;
    let count: u32 = count.parse()?;
    allow(u64::from(count) + OTHERS)?;
    let mut clients = Vec::new();
    for number in 0..count {
        let opened = Client::connect(server, path).and_then(|mut client| {
            client.get()?;
            Ok(client)
        });
        clients.push(opened.with_context(|| format!("connection {number}"))?);
    }
    for (number, client) in clients.iter_mut().enumerate() {
        client
            .get()
            .with_context(|| format!("connection {number}, the second request"))?;
    }
    println!("held {}", clients.len());
    loop {
        std::thread::park();
    }
}

/// Raises the limit of open files where it is lower.
fn allow(files: u64) -> Result<()> {
    let (soft, hard) = getrlimit(Resource::RLIMIT_NOFILE)?;
    if soft < files {
        setrlimit(Resource::RLIMIT_NOFILE, files, hard.max(files))
            .with_context(|| format!("{files} open files"))?;
    }
    Ok(())
}
