//! The side of the probe: what closes is encoded and sent by a thread of its own.
//!
//! The run only hands over what its statistics have done with (an interval) or share with their readers
//! (a part), through a channel of bounded length: what does not fit is lost and counted, and the run goes
//! on.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread::JoinHandle;
use std::time::Duration;

use super::encode::{Closed, ClosedInterval, Encoder};
use super::series::Mergeable;
use crate::interval::Open;
use crate::live::{LiveOf, Tap, lock};
use crate::part::Part;
use crate::writer::Standing;

/// Intervals and parts that may wait to be encoded.
const MAX_WAITING: usize = 256;
/// How often the carrier is served where nothing closes.
const SERVE: Duration = Duration::from_millis(100);

/// Whose sketches they are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PublisherOptions {
    /// The name of the probe.
    pub probe: String,
    /// When the run began, nanoseconds since the epoch: distinguishes it from others under the same name.
    pub run: u64,
    /// Whether the run waits where intervals close faster than they are sent: one over files may.
    pub waits: bool,
}

/// What carries messages to where they are merged.
pub trait Carrier: Send {
    /// Takes a message; says whether it could, and never waits. Messages with the same key keep their
    /// order.
    fn send(&mut self, key: &[u8], message: &[u8]) -> bool;

    /// Does what it has to do now and then; called some ten times a second.
    fn serve(&mut self) {}

    /// Everything was sent: waits, as long as that is worth it, until it has arrived; gives how many
    /// messages it took that have not.
    fn finish(&mut self) -> u64 {
        0
    }
}

/// What became of the sketches of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Sent {
    /// Messages that the carrier took.
    pub messages: u64,
    /// Bytes of them.
    pub bytes: u64,
    /// Intervals and parts that were not encoded in time, messages that the carrier did not take, and
    /// those that it took and could not deliver.
    pub lost: u64,
}

#[derive(Debug, Default)]
struct Counters {
    messages: AtomicU64,
    bytes: AtomicU64,
    lost: AtomicU64,
}

/// Publishes the sketches of a run until the run ends.
#[derive(Debug)]
pub struct Publisher {
    counters: Arc<Counters>,
    thread: Option<JoinHandle<()>>,
}

impl Publisher {
    /// Sends what closes in `live` from now on. Its intervals should be
    /// [aligned](crate::LiveOptions::is_aligned).
    ///
    /// # Errors
    /// The system gave no thread.
    pub fn start<K: Mergeable>(
        live: &LiveOf<K>,
        options: &PublisherOptions,
        carrier: impl Carrier + 'static,
    ) -> std::io::Result<Self> {
        let counters = Arc::new(Counters::default());
        let (sender, receiver) = sync_channel(MAX_WAITING);
        let encoder = Encoder::<K>::new(&options.probe, options.run);
        let counted = Arc::clone(&counters);
        let thread = std::thread::Builder::new()
            .name("sketches".to_owned())
            .spawn(move || send_all(&receiver, encoder, carrier, &counted))?;
        let tap = Handover {
            sender,
            waits: options.waits,
            number: 0,
            counters: Arc::clone(&counters),
        };
        *lock(&live.0.tap) = Some(Box::new(tap));
        Ok(Self {
            counters,
            thread: Some(thread),
        })
    }

    /// What became of the sketches so far.
    #[must_use]
    pub fn sent(&self) -> Sent {
        let of = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        Sent {
            messages: of(&self.counters.messages),
            bytes: of(&self.counters.bytes),
            lost: of(&self.counters.lost),
        }
    }

    /// After the end of the run ([`LiveOf::close`]): waits until its last sketches are sent.
    #[must_use]
    pub fn finish(mut self) -> Sent {
        if let Some(thread) = self.thread.take() {
            // A panic there has printed its message.
            thread.join().ok();
        }
        self.sent()
    }
}

/// The end of the channel that the run has.
#[derive(Debug)]
struct Handover<K: Mergeable> {
    sender: SyncSender<Closed<K>>,
    waits: bool,
    /// Number of the last interval, including lost ones: they show as a gap.
    number: u64,
    counters: Arc<Counters>,
}

impl<K: Mergeable> Handover<K> {
    fn hand_over(&self, closed: Closed<K>) {
        let is_lost = if self.waits {
            self.sender.send(closed).is_err()
        } else {
            self.sender.try_send(closed).is_err()
        };
        if is_lost {
            self.counters.lost.fetch_add(1, Ordering::Relaxed);
        }
    }
}

impl<K: Mergeable> Tap<K> for Handover<K> {
    fn interval(&mut self, closed: Open<K>, run: &Standing<'_, K>) {
        self.number += 1;
        self.hand_over(Closed::Interval(Box::new(ClosedInterval {
            number: self.number,
            open: closed,
            seen: run.seen,
            late: run.late,
            series: run.series.clone(),
        })));
    }

    fn part(&mut self, part: &Arc<Part<K>>) {
        self.hand_over(Closed::Part(Arc::clone(part)));
    }
}

/// Encodes and sends until the run has ended and nothing waits.
fn send_all<K: Mergeable>(
    receiver: &Receiver<Closed<K>>,
    mut encoder: Encoder<K>,
    mut carrier: impl Carrier,
    counters: &Counters,
) {
    let key = encoder.probe().as_bytes().to_vec();
    let send = |carrier: &mut dyn Carrier, message: Vec<u8>| {
        let counter = if carrier.send(&key, &message) {
            let bytes = u64::try_from(message.len()).unwrap_or(u64::MAX);
            counters.bytes.fetch_add(bytes, Ordering::Relaxed);
            &counters.messages
        } else {
            &counters.lost
        };
        counter.fetch_add(1, Ordering::Relaxed);
    };
    loop {
        match receiver.recv_timeout(SERVE) {
            Ok(closed) => {
                for message in encoder.messages(closed) {
                    send(&mut carrier, message);
                }
            }
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => break,
        }
        carrier.serve();
    }
    send(&mut carrier, encoder.end());
    let undelivered = carrier.finish();
    counters.lost.fetch_add(undelivered, Ordering::Relaxed);
}
