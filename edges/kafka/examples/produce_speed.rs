//! How many messages a second reach a broker.
//!
//! `cargo run --release -p linkweir-kafka --example produce_speed -- kafka://HOST:PORT/TOPIC [MESSAGES] [NAME=VALUE...]`
//!
//! The messages are like those of HTTP records: a key of four bytes, and a value of some 600 bytes
//! that compresses as such records do.
#![allow(clippy::print_stdout, reason = "what an example finds is printed")]

use std::io::Write as _;
use std::time::Duration;

use linkweir_kafka::{Producer, Sent};
use linkweir_record::Topic;
use linkweir_sys::wait::monotonic_ns;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut words = std::env::args().skip(1);
    let topic: Topic = words.next().ok_or("kafka://HOST:PORT/TOPIC")?.parse()?;
    let count: u64 = words.next().map_or(Ok(1_000_000), |word| word.parse())?;
    let settings: Vec<(String, String)> = words
        .filter_map(|word| {
            let (name, value) = word.split_once('=')?;
            Some((name.to_owned(), value.to_owned()))
        })
        .collect();
    let mut producer = Producer::open(&topic, &settings, |text| println!("{text}"))?;
    let mut value = Vec::with_capacity(1024);
    let (mut bytes, mut waits) = (0, 0_u64);
    let begin = monotonic_ns();
    for number in 0..count {
        write_value(&mut value, number)?;
        bytes += value.len() as u64;
        let key = number.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes();
        let key = key.first_chunk::<4>().ok_or("eight bytes have four")?;
        while producer.send(key, &value) == Sent::Full {
            waits += 1;
            producer.serve(Duration::from_millis(10));
        }
        if number % 512 == 0 {
            producer.serve(Duration::ZERO);
        }
    }
    let handed = monotonic_ns() - begin;
    while producer.waiting() > 0 {
        producer.serve(Duration::from_millis(10));
    }
    let delivered = monotonic_ns() - begin;
    let per_s = |ns: u64| count.saturating_mul(1_000_000_000) / ns.max(1);
    println!(
        "{count} messages of {} bytes: {} /s into the buffer ({waits} waits of 10 ms), {} /s delivered; {} delivered, {} failed",
        bytes / count.max(1),
        per_s(handed),
        per_s(delivered),
        producer.delivered(),
        producer.failures().count,
    );
    Ok(())
}

fn write_value(value: &mut Vec<u8>, number: u64) -> std::io::Result<()> {
    value.clear();
    let ns = 1_700_000_000_000_000_000 + number * 1_234_567;
    write!(
        value,
        "{{\"kind\":\"http_transaction\",\"schema_version\":1,\"probe\":\"north\",\"record_id\":\"0123456789abcdef-{number}\",\
         \"client_ip\":\"10.0.{}.{}\",\"client_port\":{},\"server_ip\":\"192.0.2.7\",\"server_port\":80,\
         \"request_ts_ns\":{ns},\"response_ts_ns\":{},\"response_time_ns\":{},\"status_code\":200,\"reason_phrase\":\"OK\",\
         \"method\":\"GET\",\"user_agent\":\"Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0\",\
         \"host\":\"www.example.test\",\"uri\":\"/catalogue/items/{}?page={}\",\"version\":\"1.1\",\"state\":\"complete\",\
         \"request_bytes\":312,\"response_bytes\":{},\"ttlb_ns\":null,\"content_type\":\"text/html\",\"interim_responses\":0,\
         \"retransmissions\":0,\"vlan\":null,\"flow_hash\":{}}}",
        number % 251,
        number % 241,
        1024 + number % 60_000,
        ns + number % 9_999_999,
        number % 9_999_999,
        number % 12_347,
        number % 17,
        number % 65_521,
        number.wrapping_mul(2_654_435_761) & 0xffff_ffff,
    )
}
