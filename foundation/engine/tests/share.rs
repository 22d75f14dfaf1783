//! A trace that its workers read: the same packets for each, in order, whoever reads; ends of all kinds.
#![allow(clippy::unwrap_used, reason = "a helper that fails is a failed test")]

use std::collections::HashMap;
use std::thread;

use linkweir_engine::{
    Batch, Detach, DispatchState, Frame, FrameRef, Limit, Pieces, Source, SourceError, SourceEvent,
    Splitter, share,
};
use linkweir_wire::emit::TcpFrame;
use linkweir_wire::{LinkType, Packet, Timestamp, Transport};

/// Packets of a batch, and batches of the trace.
const EACH: u64 = 40;
const BATCHES: u64 = 100;
/// Client ports that send them.
const PORTS: u64 = 23;

/// Batches of segments whose payload is their number, read into a buffer that is given away.
struct Numbered {
    buffer: Vec<u8>,
    frames: Vec<FrameRef>,
    next: u64,
    /// A number that makes the source panic.
    fault_at: Option<u64>,
}

fn port_of(number: u64) -> u16 {
    40_000 + u16::try_from(number.wrapping_mul(0x9e37_79b9) % PORTS).unwrap()
}

impl Source for Numbered {
    fn next_event(&mut self) -> Result<SourceEvent<'_>, SourceError> {
        if self.next == EACH * BATCHES {
            return Ok(SourceEvent::End);
        }
        assert_ne!(self.fault_at, Some(self.next), "as the test wants it");
        self.buffer.clear();
        self.frames.clear();
        for number in self.next..self.next + EACH {
            let server = "198.51.100.2:80".parse().unwrap();
            let payload = number.to_be_bytes();
            let segment = TcpFrame {
                payload: &payload,
                ..TcpFrame::new(
                    format!("192.0.2.1:{}", port_of(number)).parse().unwrap(),
                    server,
                )
            };
            let bytes = segment.to_vec();
            self.frames.push(FrameRef {
                timestamp: Timestamp::from_nanos(number),
                offset: u32::try_from(self.buffer.len()).unwrap(),
                captured_len: u32::try_from(bytes.len()).unwrap(),
                wire_len: u32::try_from(bytes.len()).unwrap(),
                link: LinkType::ETHERNET,
                interface: 0,
            });
            self.buffer.extend(bytes);
        }
        self.next += EACH;
        Ok(SourceEvent::Batch(Batch::new(&self.buffer, &self.frames)))
    }
}

impl Detach for Numbered {
    fn detach(&mut self, spare: Vec<u8>) -> Vec<u8> {
        std::mem::replace(&mut self.buffer, spare)
    }
}

/// Each port belongs to the shard whose turn it was when it came first; every seventh is always looked at.
#[derive(Default)]
struct Turns {
    owners: HashMap<u32, u32>,
}

impl Splitter for Turns {
    fn packet(&mut self, packet: &Packet<'_>) -> Option<u32> {
        let Transport::Tcp(tcp) = &packet.transport else {
            return None;
        };
        let turn = u32::try_from(self.owners.len()).unwrap();
        Some(*self.owners.entry(tcp.src_port().into()).or_insert(turn))
    }

    fn key(packet: &Packet<'_>) -> Option<u32> {
        match &packet.transport {
            Transport::Tcp(tcp) => Some(u32::from(tcp.src_port())).filter(|port| port % 7 != 0),
            _ => None,
        }
    }

    fn by_key(&mut self, key: u32) -> Option<u32> {
        self.owners.get(&key).copied()
    }
}

fn number_of(frame: &Frame<'_>) -> u64 {
    let payload = frame.bytes.last_chunk::<8>().unwrap();
    assert_eq!(
        u64::from_be_bytes(*payload),
        frame.timestamp.as_nanos(),
        "its own bytes"
    );
    frame.timestamp.as_nanos()
}

fn shared(
    workers: usize,
    ahead: usize,
    limit: Option<u64>,
    fault_at: Option<u64>,
) -> (std::sync::Arc<DispatchState>, Vec<Pieces<Numbered, Turns>>) {
    let source = Numbered {
        buffer: Vec::new(),
        frames: Vec::new(),
        next: 0,
        fault_at,
    };
    share(
        source,
        Turns::default(),
        workers,
        Limit::new(limit),
        ahead,
        |_| {},
    )
}

/// The numbers that a worker gets, at most so many.
fn numbers(mut pieces: Pieces<Numbered, Turns>, most: usize) -> Vec<u64> {
    let mut numbers = Vec::new();
    while numbers.len() < most {
        match pieces.next_event().unwrap() {
            SourceEvent::Batch(batch) => {
                numbers.extend(batch.frames().map(|frame| number_of(&frame)));
            }
            SourceEvent::End => break,
            _ => {}
        }
    }
    numbers
}

/// What each of the workers must get, of so many packets.
fn expected(workers: usize, packets: u64) -> Vec<Vec<u64>> {
    let mut all = vec![Vec::new(); workers];
    let mut owners = HashMap::new();
    for number in 0..packets {
        let turn = owners.len() % workers;
        let owner = *owners.entry(port_of(number)).or_insert(turn);
        all.get_mut(owner).unwrap().push(number);
    }
    all
}

#[test]
fn each_worker_gets_its_packets_in_order_whoever_reads() {
    for workers in [1, 2, 3, 5] {
        for ahead in [1, 2, 4] {
            let (state, pieces) = shared(workers, ahead, None, None);
            let threads: Vec<_> = pieces
                .into_iter()
                .map(|pieces| thread::spawn(|| numbers(pieces, usize::MAX)))
                .collect();
            let all: Vec<_> = threads.into_iter().map(|one| one.join().unwrap()).collect();
            assert_eq!(all, expected(workers, EACH * BATCHES), "{workers}, {ahead}");
            assert_eq!(state.latest().as_nanos(), EACH * BATCHES - 1);
        }
    }
}

#[test]
fn no_more_than_the_limit_and_nothing_after_a_stop() {
    let (_, pieces) = shared(2, 4, Some(1_001), None);
    let threads: Vec<_> = pieces
        .into_iter()
        .map(|pieces| thread::spawn(|| numbers(pieces, usize::MAX)))
        .collect();
    let all: Vec<_> = threads.into_iter().map(|one| one.join().unwrap()).collect();
    assert_eq!(all, expected(2, 1_001));
    let (state, pieces) = shared(2, 4, None, None);
    state.stop();
    for pieces in pieces {
        assert_eq!(numbers(pieces, usize::MAX), [0; 0]);
    }
}

#[test]
fn who_leaves_early_is_not_waited_for() {
    let (_, pieces) = shared(3, 2, None, None);
    let threads: Vec<_> = pieces
        .into_iter()
        .zip([usize::MAX, 100, 0])
        .map(|(pieces, most)| thread::spawn(move || numbers(pieces, most)))
        .collect();
    let all: Vec<_> = threads.into_iter().map(|one| one.join().unwrap()).collect();
    let expected = expected(3, EACH * BATCHES);
    assert_eq!(all[0], expected[0]);
    assert!(all[1].len() >= 100 && expected[1].starts_with(&all[1]));
    assert!(all[2].is_empty());
}

#[test]
fn a_reader_that_panics_ends_the_others() {
    let (_, pieces) = shared(2, 1, None, Some(EACH * 10));
    let threads: Vec<_> = pieces
        .into_iter()
        .map(|pieces| thread::spawn(|| numbers(pieces, usize::MAX)))
        .collect();
    let ended: Vec<_> = threads.into_iter().map(|one| one.join().ok()).collect();
    assert_eq!(ended.iter().filter(|one| one.is_none()).count(), 1);
    let rest = ended.into_iter().flatten().next().unwrap();
    assert!(
        expected(2, EACH * 10)
            .iter()
            .any(|all| all.starts_with(&rest))
    );
}
