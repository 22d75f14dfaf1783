//! Acknowledgments across the wrap of our own numbers.

use super::harness::{ACK, Bench, Event, FIN, options, settings};
use linkweir_wire::Timestamp;
use std::time::Duration;

#[test]
fn our_numbers_wrap_in_the_middle_of_an_upload() {
    // The initial sequence number is a clock of 4 us: turn it to just before the wrap.
    let bench = Bench::opened(settings());
    let left = u32::MAX - bench.syn.unwrap().seq.0;
    let mut bench = Bench::new(settings());
    bench.now = bench.now + Duration::from_micros(4 * (u64::from(left) - 4000));
    bench.open(&super::harness::opening(true)).unwrap();
    let first_port = bench.one();
    assert!(first_port.seq.0 > u32::MAX - 5000, "{}", first_port.seq);
    bench.ack = first_port.seq + 1;
    bench.syn = Some(first_port);
    bench.hear_with(
        super::harness::SYN | ACK,
        b"",
        options(Some(1000), None, false, None),
    );
    bench.seq += 1;
    bench.sent();
    bench.events();
    let bytes: Vec<u8> = (0..20_000_u32)
        .map(|n| u8::try_from(n % 253).unwrap())
        .collect();
    assert!(bench.send(&bytes));
    bench.close();
    let mut got: Vec<u8> = Vec::new();
    let mut lost = 0;
    let mut has_fin = false;
    for _ in 0..2000 {
        for seg in bench.sent() {
            lost += 1;
            // Every fifth is lost.
            if lost % 5 == 0 || seg.seq != bench.ack {
                continue;
            }
            got.extend_from_slice(&seg.payload);
            bench.ack += seg.len();
            has_fin |= seg.has(FIN);
        }
        bench.hear(ACK, b"");
        if has_fin {
            break;
        }
        bench.pass(500);
    }
    assert!(got == bytes, "{} bytes", got.len());
    assert!(has_fin);
    assert_eq!(bench.events(), [Event::Sent]);
    assert_ne!(bench.now, Timestamp::ZERO);
}
