//! A program that answers the queues by the port of the server.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use linkweir_engine::effect::{Answer, Decision, Mark, MarkLayout, QueuedPacket, Verdict};
use linkweir_netfilter::{Queue, QueueOptions};
use linkweir_wire::{LinkType, Packet, Transport, decode};

/// Passes at once.
pub(crate) const PASS: u16 = 8080;
/// Passes at once, by the rule that has a class.
pub(crate) const SHAPED: u16 = 8081;
/// Dropped when it says something.
pub(crate) const DROPPED: u16 = 8082;
/// Rejected at once.
pub(crate) const REJECTED: u16 = 8083;
/// Looked at to its end.
pub(crate) const INSPECTED: u16 = 8084;
/// Datagrams: `1` is to be looked at, `2` waits until `3` has passed, `3` passes.
pub(crate) const HELD: u16 = 8085;

/// The program, a thread for each queue.
pub(crate) struct Service {
    stop: Arc<AtomicBool>,
    seen: Arc<Mutex<BTreeMap<u16, u64>>>,
    threads: Vec<JoinHandle<()>>,
}

impl Service {
    /// Starts it where the test runs.
    pub(crate) fn start(queues: std::ops::RangeInclusive<u16>) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let seen = Arc::default();
        let thread = |number| {
            let queue = Queue::open(number, &QueueOptions::default()).expect("a queue");
            let (stop, seen) = (Arc::clone(&stop), Arc::clone(&seen));
            std::thread::spawn(move || serve(queue, &stop, &seen))
        };
        let threads = queues.map(thread).collect();
        Self {
            stop,
            seen,
            threads,
        }
    }

    /// How many packets of a port were queued.
    pub(crate) fn seen(&self, port: u16) -> u64 {
        let seen = self.seen.lock().expect("nobody panics");
        seen.get(&port).copied().unwrap_or(0)
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            thread.join().expect("it serves to the end");
        }
    }
}

fn serve(mut queue: Queue, stop: &AtomicBool, seen: &Mutex<BTreeMap<u16, u64>>) {
    let mut held = None;
    while !stop.load(Ordering::Relaxed) {
        let mut answers = Vec::new();
        let received = queue.receive(Duration::from_millis(50), |packet| {
            let (port, payload) = server_port(&packet);
            *seen.lock().expect("nobody panics").entry(port).or_default() += 1;
            let (verdict, mark) = verdict(port, payload);
            let bits = |(decision, rule)| {
                MarkLayout::default().replace(packet.mark, Mark { decision, rule })
            };
            let answer = Answer {
                id: packet.id,
                verdict,
                mark: mark.map(bits),
            };
            if port == HELD && payload == Some(b'2') {
                held = Some(answer);
            } else {
                answers.push(answer);
            }
            if port == HELD && payload == Some(b'3') {
                answers.extend(held.take());
            }
        });
        received.expect("the queue is there");
        queue.answer(&answers).expect("answers are taken");
    }
}

type Choice = (Verdict, Option<(Decision, u16)>);

fn verdict(port: u16, payload: Option<u8>) -> Choice {
    match (port, payload) {
        (PASS, _) | (HELD, Some(b'3')) => (Verdict::Accept, Some((Decision::Pass, 1))),
        (SHAPED, _) => (Verdict::Accept, Some((Decision::Pass, 2))),
        (DROPPED, Some(_)) => (Verdict::Repeat, Some((Decision::Drop, 3))),
        (REJECTED, _) => (Verdict::Repeat, Some((Decision::Reject, 4))),
        (INSPECTED, _) | (HELD, Some(b'1')) => (Verdict::Accept, Some((Decision::Inspect, 5))),
        _ => (Verdict::Accept, None),
    }
}

/// The lower port, and the first byte of what is carried.
fn server_port(packet: &QueuedPacket<'_>) -> (u16, Option<u8>) {
    let decoded: Packet<'_> =
        decode(LinkType::RAW, packet.bytes, packet.wire_len).expect("a whole packet");
    let (ports, payload) = match decoded.transport {
        Transport::Tcp(tcp) => ([tcp.src_port(), tcp.dst_port()], tcp.payload),
        Transport::Udp(udp) => ([udp.src_port(), udp.dst_port()], udp.payload),
        other => panic!("{other:?} is not to be queued"),
    };
    let [one, other] = ports;
    (one.min(other), payload.first().copied())
}
