//! Frames through a ring, between threads.
#![allow(
    clippy::cast_possible_truncation,
    clippy::unwrap_used,
    reason = "made-up numbers; a helper that fails is a failed test"
)]

use std::thread;
use std::time::Duration;

use linkweir_engine::{Frame, Source, SourceEvent};
use linkweir_wire::{LinkType, Timestamp};
use proptest::prelude::*;

use super::*;

const SMALL: usize = 1 << 16;

fn frame(number: u64, bytes: &[u8]) -> Frame<'_> {
    Frame {
        timestamp: Timestamp::from_nanos(number),
        bytes,
        wire_len: u32::try_from(bytes.len()).unwrap() + 4,
        link: LinkType((number % 300) as u16),
        interface: (number % 7) as u16,
    }
}

/// Time, bytes and link of a frame.
type Seen = (u64, Vec<u8>, u16);

/// Everything to the end, and the faults.
fn drain(source: &mut impl Source) -> (Vec<Seen>, Vec<String>) {
    let (mut frames, mut faults) = (Vec::new(), Vec::new());
    loop {
        match source.next_event().unwrap() {
            SourceEvent::Batch(batch) => {
                assert!(!batch.is_empty());
                frames.extend(batch.frames().map(|f| {
                    assert_eq!(f.wire_len as usize, f.bytes.len() + 4);
                    assert_eq!(u64::from(f.interface), f.timestamp.as_nanos() % 7);
                    (f.timestamp.as_nanos(), f.bytes.to_vec(), f.link.0)
                }));
            }
            SourceEvent::Idle => {}
            SourceEvent::Fault(fault) => faults.push(fault.message),
            SourceEvent::End => return (frames, faults),
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    #[test]
    fn every_frame_arrives_once_and_in_order(
        lens in prop::collection::vec(prop_oneof![0..200_usize, 1000..1600_usize, 9000..20_000_usize], 1..800),
        flush_every in 1..100_usize,
    ) {
        let (mut producer, mut consumer) = ring(SMALL, "test").unwrap();
        let expected: Vec<Seen> = lens
            .iter()
            .enumerate()
            .map(|(n, len)| (n as u64, vec![n as u8; *len], (n % 300) as u16))
            .collect();
        let sent = expected.clone();
        let writing = thread::spawn(move || {
            for (number, bytes, _) in &sent {
                producer.push_wait(&frame(*number, bytes)).unwrap();
                if (*number as usize).is_multiple_of(flush_every) {
                    producer.flush();
                }
            }
            producer.finish();
            producer.counters()
        });
        let (seen, faults) = drain(&mut consumer);
        let counters = writing.join().unwrap();
        prop_assert!(faults.is_empty());
        prop_assert!(seen == expected, "{} of {}", seen.len(), expected.len());
        prop_assert_eq!(counters.packets, expected.len() as u64);
        prop_assert_eq!(counters.bytes, lens.iter().map(|l| *l as u64 + 4).sum::<u64>());
    }

    #[test]
    fn what_does_not_fit_is_refused_and_all_else_arrives(
        lens in prop::collection::vec(0..3000_usize, 1..200),
        take_every in 1..40_usize,
    ) {
        let (mut producer, mut consumer) = ring(SMALL, "test").unwrap();
        let (mut kept, mut seen, mut dropped) = (Vec::new(), Vec::new(), 0);
        for (number, len) in lens.iter().enumerate() {
            let bytes = vec![number as u8; *len];
            match producer.push(&frame(number as u64, &bytes)) {
                Ok(()) => kept.push(number as u64),
                Err(refused) => {
                    prop_assert_eq!(refused, Refused::Full);
                    producer.count_drop();
                    dropped += 1;
                }
            }
            // What is not published yet does not come by waiting: nobody else is here to push.
            if number % take_every == 0
                && consumer.step_for_tests(Duration::ZERO)
                && let SourceEvent::Batch(batch) = consumer.batch()
            {
                seen.extend(batch.frames().map(|f| f.timestamp.as_nanos()));
            }
        }
        producer.finish();
        seen.extend(drain(&mut consumer).0.into_iter().map(|(n, ..)| n));
        prop_assert_eq!(seen, kept);
        prop_assert_eq!(consumer.drops().ring, dropped);
        prop_assert_eq!(producer.counters().taken, producer.counters().packets);
    }
}

#[test]
fn a_frame_larger_than_the_ring_is_told_apart() {
    let (mut producer, _consumer) = ring(SMALL, "test").unwrap();
    let huge = vec![0; SMALL];
    assert_eq!(producer.push(&frame(0, &huge)), Err(Refused::TooLarge));
    assert_eq!(producer.push_wait(&frame(0, &huge)), Err(Refused::TooLarge));
    let fits = vec![0; SMALL - 24];
    assert_eq!(producer.push(&frame(0, &fits)), Ok(()));
    assert_eq!(producer.push(&frame(0, &[])), Err(Refused::Full));
}

#[test]
fn a_blocked_producer_notices_that_its_consumer_went() {
    let (mut producer, consumer) = ring(SMALL, "test").unwrap();
    let leaving = thread::spawn(move || drop(consumer));
    let bytes = [0; 1000];
    let refused = (0..1000).find_map(|n| producer.push_wait(&frame(n, &bytes)).err());
    assert_eq!(refused, Some(Refused::NoConsumer));
    leaving.join().unwrap();
}

#[test]
fn an_unfinished_producer_is_a_fault_after_its_frames() {
    let (mut producer, mut consumer) = ring(SMALL, "ring 7").unwrap();
    producer.push(&frame(3, b"abc")).unwrap();
    drop(producer);
    let (frames, faults) = drain(&mut consumer);
    assert_eq!(frames, [(3, b"abc".to_vec(), 3)]);
    assert_eq!(faults, ["the feeder ended before its input did"]);
}

#[test]
fn an_idle_consumer_knows_the_time_of_the_capture() {
    let (mut producer, mut consumer) = ring(SMALL, "test").unwrap();
    assert!(matches!(consumer.next_event().unwrap(), SourceEvent::Idle));
    assert_eq!(consumer.now(), None);
    producer.push(&frame(5, b"x")).unwrap();
    producer.flush_at(Timestamp::from_nanos(9));
    assert!(matches!(
        consumer.next_event().unwrap(),
        SourceEvent::Batch(_)
    ));
    assert!(matches!(consumer.next_event().unwrap(), SourceEvent::Idle));
    assert_eq!(consumer.now(), Some(Timestamp::from_nanos(9)));
}

#[test]
fn a_sleeping_consumer_is_woken() {
    let (mut producer, mut consumer) = ring(SMALL, "test").unwrap();
    let waiting = thread::spawn(move || consumer.step_for_tests(Duration::from_secs(20)));
    // Either it sleeps by now or it will find the frame: both must end well before the limit.
    for _ in 0..1000 {
        thread::yield_now();
    }
    producer.push(&frame(1, b"x")).unwrap();
    producer.flush();
    assert!(waiting.join().unwrap());
}
