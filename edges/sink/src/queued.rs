//! Records on their way to a network: a queue with a limit, and a thread that delivers what is in it, so that a run never waits
//! for a connection.
//!
//! What happens when the queue is full depends on where records come from, as with a broker ([`crate::kafka`]): an interface
//! does not wait, so the records are dropped and counted; a file does. Nothing waits forever: see
//! [`DeliveryTimeout`].

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use linkweir_engine::{DeliveryTimeout, Sink, SinkError, SinkLosses};
use linkweir_record::human::{counted, thousands};
use linkweir_record::{RecordBatch, RecordKind};

use crate::delivery::{Delivery, GIVEN_UP, LastWait, locked};
use crate::options::OutputOptions;

/// Limits of a queue.
const MAX_RECORDS: usize = 200_000;
const MAX_BYTES: usize = 128 << 20;

/// A batch is handed over with so many records or bytes, or ten times a second.
const BATCH_RECORDS: usize = 1_024;
const BATCH_BYTES: usize = 1 << 20;

/// Batches kept to be filled again.
const SPARE: usize = 4;

/// How long to wait before looking again: at the time, and whether the user has asked to stop.
const LOOK: Duration = Duration::from_millis(20);

/// How long the thread may take to end once everything is there.
const END: Duration = Duration::from_secs(1);

/// How long it may take once it was given up: to count what it holds.
const GIVEN_UP_END: Duration = Duration::from_millis(100);

/// Why records are lost that found no room.
const NO_ROOM: &str = "for which the queue had no room";

/// Delivers records, on a thread of its own. It may wait with [`Delivery::rest`], and accounts for every record of a batch with
/// [`Delivery::deliver`] or [`Delivery::lose`], some of them in a later call.
pub(crate) trait Deliver<K: RecordKind>: Send + 'static {
    /// Delivers the records of a batch.
    fn deliver(&mut self, batch: &K::Batch, delivery: &Delivery);

    /// Delivers what it has held back so far.
    fn flush(&mut self, _delivery: &Delivery) {}

    /// Nothing more comes.
    fn finish(&mut self, delivery: &Delivery);
}

/// Batches between the run and the thread.
struct Queue<B> {
    state: Mutex<State<B>>,
    changed: Condvar,
}

struct State<B> {
    /// With the bytes of each.
    batches: VecDeque<(B, usize)>,
    spare: Vec<B>,
    records: usize,
    bytes: usize,
    wants_flush: bool,
    is_closed: bool,
    has_ended: bool,
}

/// A sink that hands its records to a thread.
pub(crate) struct Queued<K: RecordKind> {
    queue: Arc<Queue<K::Batch>>,
    delivery: Arc<Delivery>,
    /// What is handed over next.
    batch: K::Batch,
    thread: Option<JoinHandle<()>>,
    timeout: DeliveryTimeout,
    is_live: bool,
    is_stopping: fn() -> bool,
    max_records: usize,
    /// Which records are meant.
    wants: fn(&K::View<'_>) -> bool,
    /// Deliveries when a file's records were no longer waited for; `None` while they are.
    given_up_at: Option<u64>,
    /// The end of the run, once it waits.
    end: Option<LastWait>,
}

impl<K: RecordKind> Queued<K> {
    /// Starts the thread.
    ///
    /// # Errors
    /// The system gives no thread.
    pub(crate) fn start(
        destination: &str,
        deliverer: impl Deliver<K>,
        options: &OutputOptions,
    ) -> Result<Self, SinkError> {
        let queue = Arc::new(Queue {
            state: Mutex::new(State {
                batches: VecDeque::new(),
                spare: Vec::new(),
                records: 0,
                bytes: 0,
                wants_flush: false,
                is_closed: false,
                has_ended: false,
            }),
            changed: Condvar::new(),
        });
        let delivery = Arc::new(Delivery::new(destination, options.announce));
        let (theirs, state) = (Arc::clone(&queue), Arc::clone(&delivery));
        let thread = std::thread::Builder::new()
            .name("output".to_owned())
            .spawn(move || {
                run(&theirs, &state, deliverer);
            })
            .map_err(|source| SinkError::Io {
                destination: destination.to_owned(),
                source,
            })?;
        Ok(Self {
            queue,
            delivery,
            batch: K::Batch::default(),
            thread: Some(thread),
            timeout: options.timeout,
            is_live: options.is_live,
            is_stopping: options.is_stopping,
            max_records: MAX_RECORDS,
            wants: |_| true,
            given_up_at: None,
            end: None,
        })
    }

    /// The same for these records alone.
    pub(crate) fn only(mut self, wants: fn(&K::View<'_>) -> bool) -> Self {
        self.wants = wants;
        self
    }

    /// Hands over what was collected, or counts it as lost.
    fn hand_over(&mut self) {
        let records = self.batch.len();
        if records == 0 {
            return;
        }
        self.delivery.hand_over(records as u64);
        let bytes = self.batch.memory_bytes();
        let mut state = locked(&self.queue.state);
        loop {
            let is_room = state.records + records <= self.max_records
                && (state.bytes + bytes <= MAX_BYTES || state.batches.is_empty());
            if is_room {
                let spare = state.spare.pop().unwrap_or_default();
                let batch = std::mem::replace(&mut self.batch, spare);
                state.batches.push_back((batch, bytes));
                state.records += records;
                state.bytes += bytes;
                drop(state);
                self.queue.changed.notify_all();
                return;
            }
            let is_back = |at| self.delivery.delivered() > at;
            if self.given_up_at.is_some_and(is_back) {
                self.given_up_at = None;
            }
            if self.is_live || self.given_up_at.is_some() {
                break;
            }
            let waited = self.queue.changed.wait_timeout(state, LOOK);
            (state, _) = waited.unwrap_or_else(PoisonError::into_inner);
            if self.delivery.idle() >= self.timeout.of((self.is_stopping)()) {
                self.given_up_at = Some(self.delivery.delivered());
            }
        }
        drop(state);
        self.delivery.lose(NO_ROOM, records as u64);
        self.batch.clear();
    }

    /// Waits for the end of the thread, for as long as is reasonable since the last record was handed over.
    fn wait(&self, mut end: LastWait) {
        let delivery = &self.delivery;
        let mut given_up = None;
        let mut state = locked(&self.queue.state);
        while !state.has_ended {
            let changed = self.queue.changed.wait_timeout(state, LOOK);
            (state, _) = changed.unwrap_or_else(PoisonError::into_inner);
            let waited = end.waited();
            let is_stopping = (self.is_stopping)();
            let is_all_there = delivery.waiting() == 0;
            let timeout = match is_all_there {
                true => END,
                false => self.timeout.of(is_stopping),
            };
            let here_alone = self.is_live || is_stopping || is_all_there;
            let idle = end.idle(delivery.idle(), here_alone);
            match given_up {
                None if idle >= timeout => {
                    given_up = Some(waited);
                    delivery.give_up();
                }
                // The thread is in a call of the system, which ends by itself.
                Some(at) if waited.saturating_sub(at) >= GIVEN_UP_END => return,
                _ => {}
            }
            if given_up.is_none() && end.is_to_tell() {
                delivery.say(&format!(
                    "waiting for it to take {} records, until it has taken nothing for {} s",
                    thousands(delivery.waiting()),
                    timeout.as_secs()
                ));
            }
        }
    }
}

/// What the thread does.
fn run<K: RecordKind>(
    queue: &Queue<K::Batch>,
    delivery: &Delivery,
    mut deliverer: impl Deliver<K>,
) {
    let mut used: Option<K::Batch> = None;
    loop {
        let mut state = locked(&queue.state);
        if let Some(mut batch) = used.take()
            && state.spare.len() < SPARE
        {
            batch.clear();
            state.spare.push(batch);
        }
        let waited = queue.changed.wait_while(state, |state| {
            state.batches.is_empty() && !state.wants_flush && !state.is_closed
        });
        state = waited.unwrap_or_else(PoisonError::into_inner);
        if let Some((batch, bytes)) = state.batches.pop_front() {
            state.records -= batch.len();
            state.bytes -= bytes;
            drop(state);
            queue.changed.notify_all();
            if delivery.is_given_up() {
                delivery.lose(GIVEN_UP, batch.len() as u64);
            } else {
                deliverer.deliver(&batch, delivery);
            }
            used = Some(batch);
        } else if std::mem::take(&mut state.wants_flush) {
            drop(state);
            deliverer.flush(delivery);
        } else {
            drop(state);
            deliverer.finish(delivery);
            locked(&queue.state).has_ended = true;
            queue.changed.notify_all();
            return;
        }
    }
}

impl<K: RecordKind> Sink<K> for Queued<K> {
    fn write(&mut self, batch: &K::Batch) -> Result<(), SinkError> {
        for view in batch.views() {
            if !(self.wants)(&view) {
                continue;
            }
            self.batch.push_view(&view);
            if self.batch.len() >= BATCH_RECORDS || self.batch.memory_bytes() >= BATCH_BYTES {
                self.hand_over();
            }
        }
        Ok(())
    }

    fn flush(&mut self) -> Result<(), SinkError> {
        self.hand_over();
        locked(&self.queue.state).wants_flush = true;
        self.queue.changed.notify_all();
        Ok(())
    }

    fn close(&mut self) {
        if self.end.is_none() {
            self.hand_over();
            locked(&self.queue.state).is_closed = true;
            self.queue.changed.notify_all();
            self.end = Some(LastWait::begin());
        }
    }

    /// Waits until everything is delivered, or for as long as is reasonable.
    fn finish(&mut self) -> Result<(), SinkError> {
        let Some(thread) = self.thread.take() else {
            return Ok(());
        };
        Sink::<K>::close(self);
        self.wait(self.end.unwrap_or_else(LastWait::begin));
        if locked(&self.queue.state).has_ended {
            // A panic of it has ended the program.
            thread.join().ok();
        }
        self.delivery.conclude();
        let lost = self.delivery.lost();
        if lost.count > 0 {
            let are = if lost.count == 1 { "is" } else { "are" };
            let records = counted(lost.count, "record");
            self.delivery.say(&format!("{records} {are} lost: {lost}"));
        }
        Ok(())
    }

    fn losses(&self) -> SinkLosses {
        let lost = self.delivery.lost();
        let first = lost.causes.first().map(|(cause, _)| {
            let destination = self.delivery.destination();
            format!("{destination}: records are lost: {cause}")
        });
        SinkLosses {
            count: lost.count,
            first,
        }
    }
}

impl<K: RecordKind> Drop for Queued<K> {
    /// A run that ends before its outputs are complete leaves nothing behind.
    fn drop(&mut self) {
        self.delivery.give_up();
        locked(&self.queue.state).is_closed = true;
        self.queue.changed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::{Receiver, channel};

    use linkweir_record::{HttpBatch, HttpKind, HttpRow, Text};
    use linkweir_sys::wait::monotonic_ns;

    use super::*;

    fn batch(records: u16) -> HttpBatch {
        let mut batch = HttpBatch::default();
        for client_port in 0..records {
            let row = HttpRow {
                client_port,
                ..HttpRow::default()
            };
            batch.push(row, &Text::default());
        }
        batch
    }

    /// Takes so many records whenever it is let, and waits otherwise.
    struct Gate(Receiver<u64>);

    impl Deliver<HttpKind> for Gate {
        fn deliver(&mut self, batch: &HttpBatch, delivery: &Delivery) {
            let all = batch.len() as u64;
            let mut done = 0;
            while done < all {
                if let Ok(more) = self.0.try_recv() {
                    delivery.deliver(more);
                    done += more;
                } else if !delivery.rest(Duration::from_millis(5)) {
                    delivery.lose(GIVEN_UP, all - done);
                    return;
                }
            }
        }

        fn finish(&mut self, _: &Delivery) {}
    }

    fn options(is_live: bool, timeout_ms: u64) -> OutputOptions {
        OutputOptions {
            is_live,
            timeout: DeliveryTimeout::given(Duration::from_millis(timeout_ms)),
            ..OutputOptions::default()
        }
    }

    #[test]
    fn live_records_that_find_no_room_are_dropped_at_once() {
        let (_open, gate) = channel();
        let mut sink = Queued::start("x", Gate(gate), &options(true, 100)).unwrap();
        sink.max_records = 100;
        let begin = monotonic_ns();
        for _ in 0..50 {
            sink.write(&batch(10)).unwrap();
            sink.flush().unwrap();
        }
        // Waiting would take a look each time.
        let took = Duration::from_nanos(monotonic_ns() - begin);
        assert!(took < 25 * LOOK, "{took:?}");
        sink.finish().unwrap();
        let losses = sink.losses();
        assert_eq!(losses.count, 500);
        assert!(losses.first.unwrap().contains(NO_ROOM));
        let lost = sink.delivery.lost();
        assert_eq!(lost.causes.len(), 2, "{lost}");
        // Ten of them may be in the hands of the thread, beside the queue.
        let (cause, given_up) = &lost.causes[1];
        assert_eq!(cause, GIVEN_UP);
        assert!((100..=110).contains(given_up), "{lost}");
    }

    #[test]
    fn records_of_a_file_wait_and_none_is_lost() {
        let (open, gate) = channel();
        let mut sink = Queued::start("x", Gate(gate), &options(false, 10_000)).unwrap();
        sink.max_records = 100;
        let opener = std::thread::spawn(move || {
            for _ in 0..50 {
                std::thread::park_timeout(Duration::from_millis(2));
                open.send(10).unwrap();
            }
            open
        });
        for _ in 0..50 {
            sink.write(&batch(10)).unwrap();
            sink.flush().unwrap();
        }
        sink.finish().unwrap();
        assert_eq!(sink.losses(), SinkLosses::default());
        assert_eq!(sink.delivery.delivered(), 500);
        drop(opener.join().unwrap());
    }

    #[test]
    fn records_of_a_file_are_waited_for_only_so_long() {
        let (_open, gate) = channel();
        let mut sink = Queued::start("x", Gate(gate), &options(false, 100)).unwrap();
        sink.max_records = 100;
        for _ in 0..50 {
            sink.write(&batch(10)).unwrap();
            sink.flush().unwrap();
        }
        sink.finish().unwrap();
        assert_eq!(sink.losses().count, 500);
    }

    /// In a call of the system that ends in its own time.
    struct Hung;

    impl Deliver<HttpKind> for Hung {
        fn deliver(&mut self, _: &HttpBatch, _: &Delivery) {
            std::thread::park_timeout(Duration::from_secs(60));
        }

        fn finish(&mut self, _: &Delivery) {}
    }

    #[test]
    fn a_thread_that_hangs_does_not_hold_up_the_end_of_the_run() {
        for is_live in [false, true] {
            // Several are waited for at the same time.
            let start = || Queued::start("x", Hung, &options(is_live, 500)).unwrap();
            let mut sinks: Vec<Queued<HttpKind>> = (0..4).map(|_| start()).collect();
            for sink in &mut sinks {
                sink.write(&batch(10)).unwrap();
            }
            let begin = monotonic_ns();
            sinks.iter_mut().for_each(Sink::close);
            for sink in &mut sinks {
                sink.finish().unwrap();
                let lost = sink.delivery.lost();
                assert_eq!(lost.causes, [(GIVEN_UP.to_owned(), 10)]);
            }
            let took = Duration::from_nanos(monotonic_ns() - begin);
            assert!(took < Duration::from_millis(1_500), "{took:?}");
        }
    }
}
