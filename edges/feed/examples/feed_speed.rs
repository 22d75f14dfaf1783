//! How many packets a second go from a feeder to a consumer: through a ring between two threads, and
//! through a feed between two processes, each side on a core of its own.
//!
//! `cargo run --release -p linkweir-feed --example feed_speed -- [PACKETS] [BYTES]` prints a line for each
//! and, as the last line, the numbers as JSON. The consumer reads every cache line of every packet.
#![allow(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a measurement, not part of the data path"
)]

use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use linkweir_engine::{
    Batch, FlowSplitter, Frame, FrameRef, Source, SourceEvent, Splitter, TransactionSplitter,
};
use linkweir_feed::{Feeder, FeederOptions, WhenFull};
use linkweir_wire::{LinkType, Timestamp};

/// Frames that are sent round and round: as much as a capture source has in a block.
const FRAMES: usize = 1024;
const RING: usize = 64 << 20;

fn main() {
    let words: Vec<String> = std::env::args().collect();
    if let Some(name) = words.get(1).and_then(|word| word.strip_prefix("consume=")) {
        pin(1);
        let mut source = linkweir_feed::attach(
            &name.parse().unwrap(),
            Arc::default(),
            Duration::from_secs(10),
            &mut || {},
        )
        .unwrap();
        println!("{}", consume(&mut source).0);
        return;
    }
    let number = |at: usize| words.get(at).and_then(|word| word.parse::<usize>().ok());
    let (packets, bytes) = (number(1).unwrap_or(20_000_000), number(2).unwrap_or(200));
    let block = Block::new(bytes);
    let rounds = packets.div_ceil(FRAMES);
    let ring = threads(&block, rounds);
    println!("ring, two threads:                {ring:.2} Mpps");
    let flow = processes(&block, rounds, &mut FlowSplitter);
    println!("feed by flow, two processes:      {flow:.2} Mpps");
    let transaction = processes(&block, rounds, &mut TransactionSplitter);
    println!("feed by Eq. (3), two processes:   {transaction:.2} Mpps");
    println!(
        "{{\"packet_bytes\":{bytes},\"ring_mpps\":{ring:.3},\"feed_flow_mpps\":{flow:.3},\"feed_transaction_mpps\":{transaction:.3}}}"
    );
}

fn pin(core: usize) {
    let mut set = rustix::thread::CpuSet::new();
    set.set(core);
    // A machine with one core measures what it can.
    let _pinned = rustix::thread::sched_setaffinity(None, &set);
}

/// Frames over one buffer.
struct Block {
    buffer: Vec<u8>,
    index: Vec<FrameRef>,
}

impl Block {
    fn new(bytes: usize) -> Self {
        let mut buffer = Vec::new();
        let mut index = Vec::new();
        for number in 0..u32::try_from(FRAMES).unwrap() {
            // Ethernet, IPv4, TCP: what a splitter decodes.
            let mut frame = vec![0; bytes.max(54)];
            frame.splice(12..16, [8, 0, 0x45, 0]);
            let ip_len = u16::try_from(frame.len() - 14).unwrap().to_be_bytes();
            frame.splice(16..18, ip_len);
            frame.splice(22..24, [64, 6]);
            frame.splice(26..30, number.to_be_bytes());
            frame.splice(30..34, [10, 0, 0, 1]);
            frame.splice(34..38, [0x9c, 0x40, 0, 80]);
            frame.splice(42..46, number.wrapping_mul(0x9e37_79b9).to_be_bytes());
            frame.splice(46..48, [0x50, 0x18]);
            let len = u32::try_from(frame.len()).unwrap();
            index.push(FrameRef {
                timestamp: Timestamp::from_nanos(u64::from(number)),
                offset: u32::try_from(buffer.len()).unwrap(),
                captured_len: len,
                wire_len: len,
                link: LinkType::ETHERNET,
                interface: 0,
            });
            buffer.extend(frame);
        }
        Self { buffer, index }
    }

    fn batch(&self) -> Batch<'_> {
        Batch::new(&self.buffer, &self.index)
    }
}

/// Packets, and something that depends on every cache line of them.
fn consume(source: &mut impl Source) -> (u64, u64) {
    let (mut packets, mut sum) = (0, 0);
    loop {
        match source.next_event().unwrap() {
            SourceEvent::Batch(batch) => {
                packets += batch.len() as u64;
                for frame in batch.frames() {
                    let lines = frame.bytes.iter().step_by(64);
                    sum += frame.timestamp.as_nanos() + lines.map(|b| u64::from(*b)).sum::<u64>();
                }
            }
            SourceEvent::End => return (packets, sum),
            SourceEvent::Idle | SourceEvent::Fault(_) => {}
        }
    }
}

#[expect(clippy::cast_precision_loss, reason = "a rate")]
fn rate(rounds: usize, elapsed: Duration) -> f64 {
    (rounds * FRAMES) as f64 / elapsed.as_secs_f64() / 1e6
}

fn threads(block: &Block, rounds: usize) -> f64 {
    let (mut producer, mut consumer) = linkweir_feed::ring(RING, "bench").unwrap();
    let reading = std::thread::spawn(move || {
        pin(1);
        consume(&mut consumer)
    });
    pin(0);
    let started = Instant::now();
    for _ in 0..rounds {
        for frame in block.batch().frames() {
            let frame: Frame<'_> = frame;
            producer.push_wait(&frame).unwrap();
        }
    }
    producer.finish();
    let (packets, _) = std::hint::black_box(reading.join().unwrap());
    let elapsed = started.elapsed();
    assert_eq!(packets, (rounds * FRAMES) as u64);
    rate(rounds, elapsed)
}

fn processes(block: &Block, rounds: usize, splitter: &mut impl Splitter) -> f64 {
    let name = format!("speed-{}", std::process::id());
    let mut feeder = Feeder::open(&FeederOptions {
        name: name.clone(),
        consumers: 1,
        ring_bytes: RING,
        when_full: WhenFull::Wait,
    })
    .unwrap();
    let consumer = Command::new(std::env::current_exe().unwrap())
        .arg(format!("consume={name}/0"))
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    pin(0);
    // The clock starts when both are there.
    while feeder.status().iter().any(|status| status.attached == 0) {
        std::thread::yield_now();
    }
    let started = Instant::now();
    for _ in 0..rounds {
        feeder.deal(&block.batch(), splitter, &mut |_, _| true);
    }
    let status = feeder.finish(&mut |_, _| true);
    let elapsed = started.elapsed();
    let output = consumer.wait_with_output().unwrap();
    let packets: usize = String::from_utf8_lossy(&output.stdout)
        .trim()
        .parse()
        .unwrap();
    assert_eq!(packets, rounds * FRAMES, "{status:?}");
    rate(rounds, elapsed)
}
