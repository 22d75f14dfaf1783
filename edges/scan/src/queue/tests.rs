//! Scans come, wait and go, and nothing of them stays.

use super::*;
use proptest::prelude::*;

const LIMITS: Limits = Limits {
    scan_bytes: 4 << 20,
    memory_bytes: 8 << 20,
    spool_bytes: 3 << 20,
    is_spooling: true,
};

fn chunk(ticket: u64, length: usize, is_last: bool) -> ScanChunk {
    ScanChunk {
        ticket: Ticket(ticket),
        bytes: vec![b'x'; length],
        is_last,
    }
}

fn cause(next: &Next) -> Option<FailureCause> {
    match next {
        Next::Report(failure, _) => Some(failure.cause),
        _ => None,
    }
}

#[test]
fn a_scan_waits_for_its_last_chunk_and_keeps_its_bytes() {
    let mut queue = Queue::new(LIMITS);
    assert_eq!(queue.add(1, chunk(7, 10, false), 5), Next::Nothing);
    assert!(queue.take().is_none());
    assert_eq!(
        queue.add(2, chunk(7, 3, true), 6),
        Next::Work,
        "tickets are a client's own"
    );
    assert_eq!(queue.add(1, chunk(7, 20, true), 9), Next::Work);
    assert_eq!(queue.memory(), 33 + 2 * SCAN_COST);
    let first = queue.take().expect("ready");
    assert_eq!((first.key.client, first.length, first.last_ns), (2, 3, 6));
    let second = queue.take().expect("ready");
    assert_eq!(second.body.parts.concat().len(), 30);
    assert!(queue.done(first.key) && queue.done(second.key));
    assert_eq!((queue.memory(), queue.len()), (0, 0));
}

#[test]
fn over_the_bound_a_scan_fails_with_its_last_chunk() {
    let mut queue = Queue::new(Limits {
        memory_bytes: 1000,
        ..LIMITS
    });
    assert_eq!(queue.add(1, chunk(1, 600, true), 0), Next::Work);
    assert_eq!(queue.add(1, chunk(2, 600, false), 0), Next::Nothing);
    assert_eq!(
        queue.add(1, chunk(2, 1, false), 0),
        Next::Nothing,
        "not scanned from its middle"
    );
    assert_eq!(
        cause(&queue.add(1, chunk(2, 1, true), 0)),
        Some(FailureCause::QueueFull)
    );
    assert_eq!(queue.len(), 1);
    let job = queue.take().expect("the first");
    queue.done(job.key);
    assert_eq!(
        queue.add(1, chunk(3, 600, true), 0),
        Next::Work,
        "there is room again"
    );
}

#[test]
fn too_long_is_said_at_the_end() {
    let mut queue = Queue::new(LIMITS);
    queue.add(1, chunk(1, 4 << 20, false), 0);
    assert_eq!(queue.add(1, chunk(1, 1, false), 0), Next::Nothing);
    assert_eq!(queue.memory(), 0, "its bytes are gone");
    assert_eq!(
        cause(&queue.add(1, chunk(1, 0, true), 0)),
        Some(FailureCause::TooLong)
    );
}

#[test]
fn long_scans_go_to_the_directory() {
    let mut queue = Queue::new(LIMITS);
    assert_eq!(queue.add(1, chunk(1, (1 << 20) + 1, false), 0), Next::Spool);
    assert_eq!(queue.add(1, chunk(1, 5, false), 0), Next::Nothing);
    let job = queue.take_spool().expect("wanted");
    assert_eq!(job.parts.concat().len(), (1 << 20) + 6);
    assert!(queue.memory() > 1 << 20, "not written yet");
    assert_eq!(
        queue.add(1, chunk(1, 9, true), 3),
        Next::Nothing,
        "its file is not back"
    );
    let (key, memory) = (job.key, job.memory());
    let file = Spooled {
        file: tempfile::tempfile().expect("a temporary file"),
        length: (1 << 20) + 6,
    };
    assert_eq!(queue.spooled_back(key, memory, Ok(file)), Next::Work);
    assert_eq!(queue.memory(), SCAN_COST + 9);
    let job = queue.take().expect("ready");
    assert_eq!(job.length, (1 << 20) + 15);
    queue.done(job.key);
    assert_eq!((queue.memory(), queue.spooled()), (0, 0));
}

#[test]
fn a_spool_that_fails_fails_the_scan() {
    let mut queue = Queue::new(LIMITS);
    queue.add(1, chunk(1, 2 << 20, false), 0);
    let job = queue.take_spool().expect("wanted");
    let failure = Failure::new(FailureCause::Spool, "no space");
    assert_eq!(
        queue.spooled_back(job.key, job.memory(), Err(failure)),
        Next::Nothing
    );
    assert_eq!((queue.memory(), queue.spooled()), (0, 0));
    assert_eq!(
        cause(&queue.add(1, chunk(1, 1, true), 0)),
        Some(FailureCause::Spool)
    );
    // Two of 2 MiB are more than the directory may hold.
    queue.add(1, chunk(2, 2 << 20, false), 0);
    queue.add(1, chunk(3, 2 << 20, false), 0);
    assert!(queue.take_spool().is_some() && queue.take_spool().is_none());
    assert_eq!(
        cause(&queue.add(1, chunk(3, 1, true), 0)),
        Some(FailureCause::Spool)
    );
}

proptest! {
    #[test]
    fn nothing_is_lost_and_nothing_is_kept(steps in prop::collection::vec(
        (0_u64..2, 0_u64..6, 0_usize..400_000, 0_u8..8), 1..200)) {
        let mut queue = Queue::new(Limits { memory_bytes: 2 << 20, scan_bytes: 3 << 20, ..LIMITS });
        let mut running: Vec<Key> = Vec::new();
        let mut spooling: Vec<(Key, SpoolMemory, u64)> = Vec::new();
        for (client, ticket, length, what) in steps {
            match what {
                0..=3 => { queue.add(client, chunk(ticket, length, what == 3), 0); }
                4 => { queue.abandon(Key { client, ticket: Ticket(ticket) }); }
                5 => running.extend(queue.take().map(|job| job.key)),
                6 => if let Some(job) = queue.take_spool() {
                    spooling.push((job.key, job.memory(), job.parts.concat().len() as u64));
                },
                _ => {
                    for key in running.drain(..) { queue.done(key); }
                    for (key, memory, length) in spooling.drain(..) {
                        let file = tempfile::tempfile().expect("a temporary file");
                        queue.spooled_back(key, memory, Ok(Spooled { file, length }));
                    }
                }
            }
            prop_assert!(queue.memory() <= 2 << 20);
            prop_assert!(queue.spooled() <= 3 << 20);
        }
        for key in running { queue.done(key); }
        for (key, memory, _) in spooling {
            queue.spooled_back(key, memory, Err(Failure::new(FailureCause::Spool, "")));
        }
        for client in 0..2 { queue.abandon_all(client); }
        prop_assert_eq!((queue.memory(), queue.spooled(), queue.len()), (0, 0, 0));
    }
}
