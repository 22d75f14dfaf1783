//! How fast a port is: frames a second by each sender, and how late received frames are.
//!
//! ```text
//! blast send IFACE xdp|packet BYTES SECONDS       frames as fast as they go
//! blast pace IFACE xdp|packet RATE SECONDS        so many a second, each at its time
//! blast receive IFACE SECONDS [sleep]             counts, and the delay since the kernel's stamp
//! ```
#![allow(
    clippy::print_stdout,
    clippy::indexing_slicing,
    reason = "a program to measure with"
)]

use std::error::Error;
use std::time::Duration;

use linkweir_inject::{Port, PortOptions};
use linkweir_sys::schedule::{precise_waits, realtime};
use linkweir_sys::wait::{monotonic_ns, wall_clock_ns};
use linkweir_wire::Timestamp;
use linkweir_wire::emit::TcpFrame;

const SPIN: Duration = Duration::from_micros(80);

fn main() -> Result<(), Box<dyn Error>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    precise_waits()?;
    // An ordinary user measures with the priority he has.
    let priority = if realtime().is_ok() {
        "real-time"
    } else {
        "ordinary"
    };
    println!("priority: {priority}");
    match *words.as_slice() {
        ["send", interface, sender, bytes, seconds] => {
            send(open(interface, sender)?, bytes.parse()?, seconds.parse()?)
        }
        ["pace", interface, sender, rate, seconds] => {
            pace(open(interface, sender)?, rate.parse()?, seconds.parse()?)
        }
        ["receive", interface, seconds] => {
            receive(open(interface, "packet")?, seconds.parse()?, true)
        }
        ["receive", interface, seconds, "sleep"] => {
            receive(open(interface, "packet")?, seconds.parse()?, false)
        }
        _ => Err("see the head of blast.rs".into()),
    }
}

fn open(interface: &str, sender: &str) -> Result<Port, Box<dyn Error>> {
    let port = Port::open(&PortOptions {
        sender: sender.parse()?,
        ..PortOptions::new(interface)
    })?;
    for note in port.notes() {
        println!("note: {note}");
    }
    Ok(port)
}

/// A frame of so many bytes.
fn frame(bytes: usize) -> Result<Vec<u8>, Box<dyn Error>> {
    let payload = vec![0; bytes.saturating_sub(54)];
    Ok(TcpFrame {
        payload: &payload,
        ..TcpFrame::new("10.9.0.1:1".parse()?, "10.9.0.2:80".parse()?)
    }
    .to_vec())
}

/// Nanoseconds that this process has had a core.
fn core_ns() -> u64 {
    let text = std::fs::read_to_string("/proc/self/schedstat").unwrap_or_default();
    let first = text.split(' ').next().and_then(|word| word.parse().ok());
    first.unwrap_or(0)
}

#[expect(clippy::cast_precision_loss, reason = "figures to be read")]
fn per_second(count: u64, nanos: u64) -> f64 {
    count as f64 * 1e9 / nanos.max(1) as f64
}

fn send(mut port: Port, bytes: usize, seconds: f64) -> Result<(), Box<dyn Error>> {
    let frame = frame(bytes)?;
    let (from, core) = (monotonic_ns(), core_ns());
    let span = u64::try_from(Duration::from_secs_f64(seconds).as_nanos())?;
    while monotonic_ns() - from < span {
        port.send(std::iter::repeat_n(&frame[..], 1024))?;
    }
    let (wall, core) = (monotonic_ns() - from, core_ns() - core);
    let sent = port.counts().sent;
    println!(
        "{} {bytes} B: {:.3} Mpps, {:.3} Mpps a core, {} stalls, {} refused",
        port.sender(),
        per_second(sent.frames, wall) / 1e6,
        per_second(sent.frames, core) / 1e6,
        sent.stalls,
        sent.refused
    );
    Ok(())
}

fn pace(mut port: Port, rate: u64, seconds: f64) -> Result<(), Box<dyn Error>> {
    let frame = frame(64)?;
    let step = Duration::from_nanos(1_000_000_000 / rate.max(1));
    let mut due = Timestamp::from_nanos(wall_clock_ns()) + step;
    let end = due + Duration::from_secs_f64(seconds);
    let (mut late, core, from) = (Vec::new(), core_ns(), monotonic_ns());
    while due < end {
        while wall_clock_ns() < due.as_nanos() {
            port.receive_until(due, SPIN, |_| {})?;
        }
        late.push(wall_clock_ns() - due.as_nanos());
        port.send([&frame[..]])?;
        due = due + step;
    }
    let share = per_second(core_ns() - core, monotonic_ns() - from) / 1e9;
    println!(
        "{}: {} frames, {:.0} % of a core",
        port.sender(),
        late.len(),
        share * 100.0
    );
    quantiles("late", &mut late);
    Ok(())
}

fn receive(mut port: Port, seconds: f64, spins: bool) -> Result<(), Box<dyn Error>> {
    let end = Timestamp::from_nanos(wall_clock_ns()) + Duration::from_secs_f64(seconds);
    let spin = if spins { SPIN } else { Duration::ZERO };
    let mut delays = Vec::with_capacity(4_000_000);
    let (mut first, mut last, core) = (None, 0, core_ns());
    loop {
        let now = wall_clock_ns();
        if now >= end.as_nanos() {
            break;
        }
        let deadline = if spins {
            Timestamp::from_nanos(now) + Duration::from_micros(50)
        } else {
            end
        };
        port.receive_until(deadline, spin, |frame| {
            let now = wall_clock_ns();
            first.get_or_insert(now);
            last = now;
            delays.push(now.saturating_sub(frame.at.as_nanos()));
        })?;
    }
    let core = core_ns() - core;
    let counts = port.counts();
    let wall = last - first.unwrap_or(last);
    println!(
        "received {}, {:.3} Mpps, dropped {}, {:.0} ms of a core",
        counts.received_frames,
        per_second(counts.received_frames, wall) / 1e6,
        counts.dropped,
        per_second(core, 1_000_000) / 1e9
    );
    quantiles("delay", &mut delays);
    Ok(())
}

fn quantiles(what: &str, values: &mut [u64]) {
    values.sort_unstable();
    let at = |share: usize| {
        let place = values.len().saturating_sub(1) * share / 1000;
        values.get(place).copied().unwrap_or(0)
    };
    println!(
        "{what} ns: p50 {} p90 {} p99 {} p99.9 {} max {}",
        at(500),
        at(900),
        at(990),
        at(999),
        at(1000)
    );
}
