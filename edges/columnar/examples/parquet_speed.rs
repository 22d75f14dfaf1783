//! What it costs to turn HTTP records into Parquet and Arrow, and what each column of a file takes.
//!
//! `parquet_speed [RECORDS]` makes records like those of a busy network: hosts, objects and browsers
//! by Zipf's law, half of the URIs with a query nobody has seen before, times and sizes spread over
//! decades. It prints records/s of one thread's processor time, bytes of a record, and those of every column.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::print_stdout,
    clippy::cast_possible_truncation,
    clippy::cast_precision_loss,
    clippy::cast_sign_loss,
    clippy::indexing_slicing,
    reason = "a measurement, not part of the data path"
)]

use std::io::Write;
use std::net::{IpAddr, Ipv4Addr};

use linkweir_columnar::{ArrowStream, ParquetFile};
use linkweir_record::{HttpBatch, HttpKind, HttpRow, RecordBatch as _, RecordKind, Text};
use parquet::file::reader::{FileReader, SerializedFileReader};

/// Records of a batch: as many as the run loop gathers before the sinks see them.
const BATCH: usize = 512;
/// Each is measured so often, and the best counts: the machine may have other work.
const ROUNDS: usize = 5;

fn main() {
    let records = std::env::args()
        .nth(1)
        .map_or(1_000_000, |text| text.parse().expect("a number of records"));
    let batches = Network::new().batches(records);
    let per_record = |bytes: usize| bytes as f64 / records as f64;

    let mut written = Vec::new();
    let seconds = best(|| {
        let mut file = ParquetFile::<HttpKind>::new().unwrap();
        written.clear();
        for batch in &batches {
            let views: Vec<_> = batch.views().collect();
            file.extend(&views).unwrap();
            if file.has_groups() {
                written.extend(file.take_groups().unwrap());
            }
        }
        file.close_group().unwrap();
        written.extend(file.take_groups().unwrap());
        written.extend(file.footer().unwrap());
    });
    println!(
        "parquet  {:8.0} records/s  {:6.1} bytes/record",
        records as f64 / seconds,
        per_record(written.len())
    );
    let mut bytes = 0;
    let seconds = best(|| {
        let mut stream = ArrowStream::<HttpKind>::new().unwrap();
        bytes = 0;
        for batch in &batches {
            let views: Vec<_> = batch.views().collect();
            stream.extend(&views).unwrap();
            bytes += stream.take().len();
        }
        stream.end().unwrap();
        bytes += stream.take().len();
    });
    println!(
        "arrow    {:8.0} records/s  {:6.1} bytes/record",
        records as f64 / seconds,
        per_record(bytes)
    );
    by_column(&written, records);
}

/// The bytes of a record in each column of a file.
fn by_column(bytes: &[u8], records: usize) {
    let mut file = tempfile::tempfile().unwrap();
    file.write_all(bytes).unwrap();
    let reader = SerializedFileReader::new(file).unwrap();
    println!("column               bytes/record");
    for (at, field) in HttpKind::fields().iter().enumerate() {
        let groups = reader.metadata().row_groups().iter();
        let size: i64 = groups.map(|group| group.column(at).compressed_size()).sum();
        println!("{:20} {:12.2}", field.name, size as f64 / records as f64);
    }
}

fn best(mut work: impl FnMut()) -> f64 {
    (0..ROUNDS)
        .map(|_| {
            let start = cpu_seconds();
            work();
            cpu_seconds() - start
        })
        .fold(f64::INFINITY, f64::min)
}

/// Time that this thread had the processor: other work on the machine is not counted.
fn cpu_seconds() -> f64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap();
    let nanos: u64 = text.split(' ').next().unwrap().parse().unwrap();
    nanos as f64 / 1e9
}

/// A network with hosts, clients and browsers, and a source of chance.
struct Network {
    state: u64,
    hosts: Vec<String>,
    agents: Vec<String>,
    now_ns: u64,
}

const TYPES: [&str; 6] = [
    "text/html; charset=UTF-8",
    "image/jpeg",
    "application/javascript",
    "text/css",
    "application/json",
    "image/gif",
];

impl Network {
    fn new() -> Self {
        let mut network = Self {
            state: 1,
            hosts: Vec::new(),
            agents: Vec::new(),
            now_ns: 1_700_000_000_000_000_000,
        };
        for n in 0..5000 {
            let name = network.word(6 + n % 9);
            network.hosts.push(format!("www.{name}.example"));
        }
        for n in 0..300_u64 {
            let major = 90 + n % 40;
            let build = network.below(10_000);
            let agent = format!(
                "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/{major}.0.{build}.{} Safari/537.36",
                n % 200
            );
            network.agents.push(agent);
        }
        network
    }

    /// `SplitMix64` (Steele, Lea, Flood 2014).
    fn chance(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, bound: u64) -> u64 {
        self.chance() % bound
    }

    fn fraction(&mut self) -> f64 {
        (self.chance() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// A rank below `bound`, the first ones more often: Zipf's law with exponent 1.
    fn rank(&mut self, bound: usize) -> usize {
        ((bound as f64).powf(self.fraction()) as usize - 1).min(bound - 1)
    }

    /// From `low` on over `decades`, evenly by logarithm.
    fn spread(&mut self, low: f64, decades: f64) -> u64 {
        (low * 10_f64.powf(decades * self.fraction())) as u64
    }

    fn word(&mut self, letters: u64) -> String {
        (0..letters)
            .map(|_| char::from(b'a' + self.below(26) as u8))
            .collect()
    }

    fn batches(&mut self, records: usize) -> Vec<HttpBatch> {
        let mut batches = Vec::new();
        for _ in 0..records.div_ceil(BATCH) {
            let mut batch = HttpBatch::default();
            for _ in 0..BATCH.min(records - batches.len() * BATCH) {
                self.push(&mut batch);
            }
            batches.push(batch);
        }
        batches
    }

    fn push(&mut self, batch: &mut HttpBatch) {
        let (host, object) = (self.rank(self.hosts.len()), self.rank(2000));
        let client = self.rank(20_000) as u32;
        let agent = (client as usize * 7919) % self.agents.len();
        let mut uri = format!(
            "/{}/section-{}/object-{object}.html",
            ["static", "assets", "api/v1", "news"][object % 4],
            object % 17
        );
        if self.below(2) == 0 {
            uri.push_str(&format!("?id={}&session={:016x}", object, self.chance()));
        }
        self.now_ns += self.spread(100.0, 4.0);
        let time = self.spread(200_000.0, 3.5);
        let (status, reason): (u16, &[u8]) = match self.below(20) {
            0 => (404, b"Not Found"),
            1 => (302, b"Found"),
            2 | 3 => (304, b"Not Modified"),
            _ => (200, b"OK"),
        };
        let row = HttpRow {
            client_ip: IpAddr::V6(Ipv4Addr::from_bits(0x0a00_0000 + client).to_ipv6_mapped()),
            server_ip: IpAddr::V6(
                Ipv4Addr::from_bits(0xc633_0000 + host as u32 / 3).to_ipv6_mapped(),
            ),
            client_port: 32_768 + self.below(28_000) as u16,
            server_port: 80,
            request_ts_ns: Some(self.now_ns),
            response_ts_ns: Some(self.now_ns + time),
            request_bytes: Some(300 + self.below(400)),
            response_bytes: (self.below(5) > 0).then(|| self.spread(200.0, 3.0)),
            status_code: Some(status),
            flow_hash: self.chance() as u32,
            ..HttpRow::default()
        };
        let text = Text {
            method: if self.below(12) == 0 { b"POST" } else { b"GET" },
            uri: uri.as_bytes(),
            host: self.hosts[host].as_bytes(),
            user_agent: self.agents[agent].as_bytes(),
            reason_phrase: reason,
            content_type: TYPES[object % TYPES.len()].as_bytes(),
        };
        batch.push(row, &text);
    }
}
