//! A queue that a thread serves, with a function that decides.

use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use linkweir_engine::{Answer, QueuedPacket, Verdict};
use linkweir_netfilter::{Queue, QueueCounts, QueueOptions, Waker};
use linkweir_sys::privileges::Restrict;
use linkweir_wire::{LinkType, Packet, SeqNumber, TcpFlags, Transport, decode};

/// What the tests look at in a packet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Seen {
    pub(crate) id: u32,
    pub(crate) mark: u32,
    pub(crate) is_checksum_open: bool,
    pub(crate) src_port: u16,
    pub(crate) seq: SeqNumber,
    pub(crate) flags: TcpFlags,
    /// The payload, or what was copied of it.
    pub(crate) payload: Vec<u8>,
    /// Octets of sequence space.
    pub(crate) sequence_len: u32,
}

impl Seen {
    fn new(packet: &QueuedPacket<'_>) -> Self {
        let decoded: Packet<'_> = decode(LinkType::RAW, packet.bytes, packet.wire_len).unwrap();
        let mut seen = Self {
            id: packet.id,
            mark: packet.mark,
            is_checksum_open: packet.is_checksum_open,
            src_port: 0,
            seq: SeqNumber(0),
            flags: TcpFlags::default(),
            payload: Vec::new(),
            sequence_len: 0,
        };
        match decoded.transport {
            Transport::Tcp(tcp) => {
                seen.src_port = tcp.src_port();
                seen.seq = tcp.seq();
                seen.flags = tcp.flags();
                seen.payload = tcp.payload.to_vec();
                seen.sequence_len = tcp.sequence_len();
            }
            Transport::Udp(udp) => {
                seen.src_port = udp.src_port();
                seen.payload = udp.payload.to_vec();
            }
            other => panic!("{other:?}"),
        }
        seen
    }
}

/// Verdict and mark; `None` holds the packet.
pub(crate) type Decided = Option<(Verdict, Option<u32>)>;

/// The thread that serves; what it saw comes through a channel.
pub(crate) struct Service {
    pub(crate) seen: Receiver<Seen>,
    orders: Sender<Vec<Answer>>,
    waker: Waker,
    thread: JoinHandle<QueueCounts>,
}

impl Service {
    /// Serves a queue with no privilege but `CAP_NET_ADMIN`.
    pub(crate) fn start(
        number: u16,
        mut decide: impl FnMut(&Seen) -> Decided + Send + 'static,
    ) -> Self {
        let mut queue = Queue::open(number, &QueueOptions::default()).unwrap();
        let waker = queue.waker();
        let (tell, seen) = channel();
        let (orders, ordered) = channel::<Vec<Answer>>();
        let thread = std::thread::spawn(move || {
            let restrict = Restrict {
                keep_net_admin: true,
                ..Restrict::default()
            };
            restrict.apply().unwrap();
            loop {
                let mut answers = Vec::new();
                let given = queue.receive(Duration::from_secs(30), |packet| {
                    let packet = Seen::new(&packet);
                    if let Some((verdict, mark)) = decide(&packet) {
                        answers.push(Answer {
                            id: packet.id,
                            verdict,
                            mark,
                        });
                    }
                    // The test may have seen enough.
                    drop(tell.send(packet));
                });
                given.unwrap();
                queue.answer(&answers).unwrap();
                match ordered.try_recv() {
                    Ok(late) => queue.answer(&late).unwrap(),
                    Err(std::sync::mpsc::TryRecvError::Empty) => {}
                    Err(std::sync::mpsc::TryRecvError::Disconnected) => return queue.counts(),
                }
            }
        });
        Self {
            seen,
            orders,
            waker,
            thread,
        }
    }

    /// Gives verdicts that are late.
    pub(crate) fn answer(&self, answers: Vec<Answer>) {
        self.orders.send(answers).unwrap();
        self.waker.wake();
    }

    /// The next packet that was seen.
    pub(crate) fn next(&self) -> Seen {
        self.seen.recv_timeout(Duration::from_secs(10)).unwrap()
    }

    /// Whether no packet came that the test has not looked at.
    pub(crate) fn is_quiet(&self) -> bool {
        self.seen.try_recv().is_err()
    }

    /// Closes the queue.
    pub(crate) fn end(self) -> QueueCounts {
        drop(self.orders);
        self.waker.wake();
        self.thread.join().unwrap()
    }
}
