//! How many packets a second go from a feeder to a consumer: through a ring between two threads, and
//! through a feed between two processes, each side on a core of its own.
//!
//! The ring is timed with packets of one size and zeros in them; the feed with those too, and with the
//! bundled capture of nginx, sent again and again as other connections: the splitters of `linkweir feed
//! --by` do as much work as there is in the packets. The consumer reads every cache line of every packet.
//!
//! `cargo run --release -p linkweir-instructions --example feed_speed -- [PACKETS] [BYTES]` prints a line for
//! each and, as the last line, the numbers as JSON.
#![allow(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::indexing_slicing,
    clippy::cast_precision_loss,
    reason = "a measurement, not part of the data path"
)]

use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use linkweir_capture::{CaptureFiles, Input, ReadOptions};
use linkweir_engine::{
    Batch, FlowSplitter, Frame, FrameRef, Router, Source, SourceEvent, Splitter,
    TransactionSplitter,
};
use linkweir_feed::{Feeder, FeederOptions, WhenFull};
use linkweir_http::TransactionGroups;
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
    let mut zeros = Block::zeros(bytes);
    let mut nginx = Block::nginx();
    let mut figures = vec![
        ("packet_bytes", bytes as f64),
        ("nginx_packet_bytes", nginx.mean_bytes()),
    ];
    let mut say = |what: &str, key, mpps: f64| {
        println!("{what:44} {mpps:.2} Mpps");
        figures.push((key, mpps));
    };
    let ring = threads(&zeros, packets);
    say("ring, two threads", "ring_mpps", ring);
    let (flow, paper) = (&mut FlowSplitter, &mut TransactionSplitter);
    let mpps = processes(&mut zeros, packets, flow);
    say("feed by flow", "feed_flow_mpps", mpps);
    let mpps = processes(&mut zeros, packets, paper);
    say("feed by Eq. (3)", "feed_paper_mpps", mpps);
    let mpps = processes(&mut nginx, packets, flow);
    say("feed by flow, nginx", "nginx_flow_mpps", mpps);
    let mpps = processes(&mut nginx, packets, paper);
    say("feed by Eq. (3), nginx", "nginx_paper_mpps", mpps);
    let mut groups = TransactionGroups::default();
    let mpps = processes(&mut nginx, packets, &mut groups);
    say("feed by transaction, nginx", "nginx_transaction_mpps", mpps);
    let requests = groups.counts().requests;
    assert!(requests > packets as u64 / 10, "{requests} requests seen");
    let figures: Vec<String> = figures
        .iter()
        .map(|(key, figure)| format!("\"{key}\":{figure:.3}"))
        .collect();
    println!("{{{}}}", figures.join(","));
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
    /// Where the clients' addresses are: they change with every round.
    clients: Vec<usize>,
}

impl Block {
    /// Ethernet, IPv4, TCP, and zeros: what a splitter decodes.
    fn zeros(bytes: usize) -> Self {
        let mut block = Self {
            buffer: Vec::new(),
            index: Vec::new(),
            clients: Vec::new(),
        };
        for number in 0..u32::try_from(FRAMES).unwrap() {
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
            block.push(Timestamp::from_nanos(u64::from(number)), len, &frame);
        }
        block
    }

    /// The bundled capture: 800 transactions of 80 connections.
    fn nginx() -> Self {
        let path = Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("../../app/testkit/captures/nginx-demo.pcap.gz");
        let mut files = CaptureFiles::open(&[Input::from(path)], ReadOptions::default()).unwrap();
        let mut block = Self {
            buffer: Vec::new(),
            index: Vec::new(),
            clients: Vec::new(),
        };
        while let SourceEvent::Batch(batch) = files.next_event().unwrap() {
            for frame in batch.frames() {
                let is_from_server = frame.bytes[34..36] == 80_u16.to_be_bytes();
                let client = if is_from_server { 30 } else { 26 };
                block.clients.push(block.buffer.len() + client);
                block.push(frame.timestamp, frame.wire_len, frame.bytes);
            }
        }
        block
    }

    fn push(&mut self, timestamp: Timestamp, wire_len: u32, bytes: &[u8]) {
        self.index.push(FrameRef {
            timestamp,
            offset: u32::try_from(self.buffer.len()).unwrap(),
            captured_len: u32::try_from(bytes.len()).unwrap(),
            wire_len,
            link: LinkType::ETHERNET,
            interface: 0,
        });
        self.buffer.extend_from_slice(bytes);
    }

    /// Makes other connections of these frames: as many rounds as there are numbers are distinguished.
    fn renew(&mut self, round: u16) {
        for at in &self.clients {
            self.buffer[at + 1..at + 3].copy_from_slice(&round.to_be_bytes());
        }
    }

    fn mean_bytes(&self) -> f64 {
        self.buffer.len() as f64 / self.index.len() as f64
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
                    sum ^= frame.timestamp.as_nanos() ^ lines.map(|b| u64::from(*b)).sum::<u64>();
                }
            }
            SourceEvent::End => return (packets, sum),
            SourceEvent::Idle | SourceEvent::Fault(_) => {}
        }
    }
}

fn rate(packets: usize, elapsed: Duration) -> f64 {
    packets as f64 / elapsed.as_secs_f64() / 1e6
}

fn threads(block: &Block, packets: usize) -> f64 {
    let rounds = packets.div_ceil(block.index.len());
    let packets = rounds * block.index.len();
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
    let (read, _) = std::hint::black_box(reading.join().unwrap());
    let elapsed = started.elapsed();
    assert_eq!(read, packets as u64);
    rate(packets, elapsed)
}

fn processes(block: &mut Block, packets: usize, splitter: &mut impl Splitter) -> f64 {
    let rounds = packets.div_ceil(block.index.len());
    let packets = rounds * block.index.len();
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
    let mut router = Router::new(splitter, false);
    let started = Instant::now();
    for round in (0..=u16::MAX).cycle().take(rounds) {
        block.renew(round);
        feeder.distribute(&block.batch(), &mut router, &mut |_, _| true);
    }
    let status = feeder.finish(&mut |_, _| true);
    let elapsed = started.elapsed();
    let output = consumer.wait_with_output().unwrap();
    let read: usize = String::from_utf8_lossy(&output.stdout)
        .trim()
        .parse()
        .unwrap();
    assert_eq!(read, packets, "{status:?}");
    rate(packets, elapsed)
}
