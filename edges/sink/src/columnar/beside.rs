//! Columns are encoded beside the run, on a second core: that costs more than to find a transaction.
//!
//! Records keep their order, the queue is bounded and waited for, and what fails is reported by the next call, with all
//! that was handed over until then counted. Short runs, and those on one core, encode where they are.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::JoinHandle;

use linkweir_engine::{Sink, SinkError, SinkLosses};
use linkweir_record::{RecordBatch, RecordKind};

use crate::delivery::locked;

/// Records of a run before it has a thread.
const SHORT_RUN: u64 = 16_384;

/// Bounds of what waits.
const MAX_BATCHES: usize = 16;
const MAX_BYTES: usize = 8 << 20;

/// What the thread is to do.
enum Task<B> {
    /// With the bytes of the batch.
    Write(B, usize),
    Flush,
    Rotate,
    Finish,
}

/// A sink that goes to a thread.
type Inner<K> = Box<dyn Sink<K> + Send>;

/// What the run and the thread share.
struct Shared<B> {
    state: Mutex<State<B>>,
    changed: Condvar,
}

struct State<B> {
    tasks: VecDeque<Task<B>>,
    bytes: usize,
    /// Batches to be filled again.
    spare: Vec<B>,
    /// Whether a task is being done.
    is_busy: bool,
    /// What has failed, until it is reported.
    error: Option<SinkError>,
    has_failed: bool,
    losses: SinkLosses,
    /// Nothing more comes.
    is_closed: bool,
}

/// A sink on a thread of its own, once the run is long enough.
pub(super) struct Beside<K: RecordKind> {
    /// It, as long as it is here.
    inner: Option<Inner<K>>,
    shared: Arc<Shared<K::Batch>>,
    thread: Option<JoinHandle<()>>,
    given: u64,
    /// Whether [`Task::Finish`] was handed over.
    is_finishing: bool,
    /// Records that came after a failure.
    missed: u64,
    /// Records after which it gets a thread; nothing where it stays.
    short_run: Option<u64>,
}

impl<K: RecordKind> Beside<K> {
    pub(super) fn new(inner: Inner<K>) -> Self {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        Self::after(inner, (cores > 1).then_some(SHORT_RUN))
    }

    fn after(inner: Inner<K>, short_run: Option<u64>) -> Self {
        Self {
            inner: Some(inner),
            shared: Arc::new(Shared {
                state: Mutex::new(State {
                    tasks: VecDeque::with_capacity(MAX_BATCHES + 1),
                    bytes: 0,
                    spare: Vec::new(),
                    is_busy: false,
                    error: None,
                    has_failed: false,
                    losses: SinkLosses::default(),
                    is_closed: false,
                }),
                changed: Condvar::new(),
            }),
            thread: None,
            given: 0,
            is_finishing: false,
            missed: 0,
            short_run,
        }
    }

    /// Hands the sink to a thread where it is time for that.
    ///
    /// A thread that is started with the first records has the rights that the run has by then.
    fn start_thread(&mut self) -> Result<(), SinkError> {
        if self.short_run.is_none_or(|records| self.given < records) {
            return Ok(());
        }
        let Some(inner) = self.inner.take() else {
            return Ok(());
        };
        let shared = Arc::clone(&self.shared);
        let thread = std::thread::Builder::new()
            .name("columns".to_owned())
            .spawn(move || run(&shared, inner));
        match thread {
            Ok(thread) => {
                self.thread = Some(thread);
                Ok(())
            }
            Err(source) => {
                self.missed = self.given;
                Err(SinkError::Io {
                    destination: "a thread for columns".to_owned(),
                    source,
                })
            }
        }
    }

    /// Hands a task over, once there is room for it.
    fn hand_over(&self, task: Task<K::Batch>) {
        let state = locked(&self.shared.state);
        let waited = self.shared.changed.wait_while(state, |state| {
            state.tasks.len() >= MAX_BATCHES || state.bytes >= MAX_BYTES
        });
        let mut state = waited.unwrap_or_else(PoisonError::into_inner);
        if let Task::Write(_, bytes) = &task {
            state.bytes += bytes;
        }
        state.tasks.push_back(task);
        drop(state);
        self.shared.changed.notify_all();
    }

    /// What has failed so far. Once something has, all that was handed over is counted first.
    fn outcome(&self, waits: bool) -> Result<(), SinkError> {
        let mut state = locked(&self.shared.state);
        if waits || state.has_failed {
            let waited = self
                .shared
                .changed
                .wait_while(state, |state| state.is_busy || !state.tasks.is_empty());
            state = waited.unwrap_or_else(PoisonError::into_inner);
        }
        state.error.take().map_or(Ok(()), Err)
    }

    /// A copy of a batch, in one that was used before where there is one.
    fn copy(&self, batch: &K::Batch) -> K::Batch {
        let spare = locked(&self.shared.state).spare.pop();
        let mut copy = spare.unwrap_or_default();
        copy.copy_from(batch);
        copy
    }
}

/// What the thread does.
fn run<K: RecordKind>(shared: &Shared<K::Batch>, mut inner: Inner<K>) {
    let mut has_failed = false;
    loop {
        let state = locked(&shared.state);
        let waited = shared
            .changed
            .wait_while(state, |state| state.tasks.is_empty() && !state.is_closed);
        let mut state = waited.unwrap_or_else(PoisonError::into_inner);
        let Some(task) = state.tasks.pop_front() else {
            return;
        };
        state.is_busy = true;
        drop(state);
        let done = match &task {
            Task::Write(batch, _) if has_failed => {
                inner.miss(batch);
                Ok(())
            }
            _ if has_failed => Ok(()),
            Task::Write(batch, _) => inner.write(batch),
            Task::Flush => inner.flush(),
            Task::Rotate => inner.rotate(),
            Task::Finish => inner.finish(),
        };
        has_failed |= done.is_err();
        let mut state = locked(&shared.state);
        state.is_busy = false;
        state.has_failed = has_failed;
        state.losses = inner.losses();
        if let Err(error) = done {
            state.error = Some(error);
        }
        if let Task::Write(batch, bytes) = task {
            state.bytes -= bytes;
            state.spare.push(batch);
        }
        drop(state);
        shared.changed.notify_all();
    }
}

impl<K: RecordKind> Sink<K> for Beside<K> {
    fn write(&mut self, batch: &K::Batch) -> Result<(), SinkError> {
        self.given += batch.len() as u64;
        if let Some(inner) = &mut self.inner {
            inner.write(batch)?;
            return self.start_thread();
        }
        self.hand_over(Task::Write(self.copy(batch), batch.memory_bytes()));
        self.outcome(false)
    }

    fn flush(&mut self) -> Result<(), SinkError> {
        if let Some(inner) = &mut self.inner {
            return inner.flush();
        }
        self.hand_over(Task::Flush);
        self.outcome(false)
    }

    fn rotate(&mut self) -> Result<(), SinkError> {
        if let Some(inner) = &mut self.inner {
            return inner.rotate();
        }
        self.hand_over(Task::Rotate);
        self.outcome(true)
    }

    fn miss(&mut self, batch: &K::Batch) {
        match &mut self.inner {
            Some(inner) => inner.miss(batch),
            None => self.missed += batch.len() as u64,
        }
    }

    fn losses(&self) -> SinkLosses {
        if let Some(inner) = &self.inner {
            return inner.losses();
        }
        let mut losses = locked(&self.shared.state).losses.clone();
        losses.count += self.missed;
        losses
    }

    fn close(&mut self) {
        if self.inner.is_none() && !std::mem::replace(&mut self.is_finishing, true) {
            self.hand_over(Task::Finish);
        }
    }

    fn finish(&mut self) -> Result<(), SinkError> {
        if let Some(inner) = &mut self.inner {
            return inner.finish();
        }
        self.close();
        self.outcome(true)
    }
}

/// Ends the thread, after what was handed over to it, and with it the sink.
impl<K: RecordKind> Drop for Beside<K> {
    fn drop(&mut self) {
        locked(&self.shared.state).is_closed = true;
        self.shared.changed.notify_all();
        if let Some(thread) = self.thread.take() {
            // A panic of it has ended the program.
            thread.join().ok();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;
    use std::time::Duration;

    use linkweir_record::{HttpBatch, HttpKind, HttpRow, Text};

    use super::*;

    /// Notes the time of each record; fails with the record of this time, or waits with every batch for word to go on.
    struct Noted {
        times: Arc<Mutex<Vec<u64>>>,
        fails_at: Option<u64>,
        go: Option<mpsc::Receiver<()>>,
        given: u64,
        written: u64,
    }

    impl Sink<HttpKind> for Noted {
        fn write(&mut self, batch: &HttpBatch) -> Result<(), SinkError> {
            if let Some(go) = &self.go {
                go.recv().ok();
            }
            self.given += batch.len() as u64;
            for view in batch.views() {
                let time = HttpKind::time_ns(&view);
                if self.fails_at == Some(time) {
                    return Err(SinkError::ClosedPipe);
                }
                locked(&self.times).push(time);
                self.written += 1;
            }
            Ok(())
        }
        fn flush(&mut self) -> Result<(), SinkError> {
            Ok(())
        }
        fn miss(&mut self, batch: &HttpBatch) {
            self.given += batch.len() as u64;
        }
        fn losses(&self) -> SinkLosses {
            SinkLosses {
                count: self.given - self.written,
                first: None,
            }
        }
        fn finish(&mut self) -> Result<(), SinkError> {
            locked(&self.times).push(u64::MAX);
            Ok(())
        }
    }

    fn batch(times: std::ops::Range<u64>) -> HttpBatch {
        let mut batch = HttpBatch::default();
        for time in times {
            let row = HttpRow {
                request_ts_ns: Some(time),
                ..HttpRow::default()
            };
            batch.push(row, &Text::default());
        }
        batch
    }

    fn noted(
        fails_at: Option<u64>,
        go: Option<mpsc::Receiver<()>>,
    ) -> (Noted, Arc<Mutex<Vec<u64>>>) {
        let times = Arc::default();
        let noted = Noted {
            times: Arc::clone(&times),
            fails_at,
            go,
            given: 0,
            written: 0,
        };
        (noted, times)
    }

    #[test]
    fn records_keep_their_order_here_and_there() {
        for short_run in [None, Some(0), Some(250)] {
            let (inner, times) = noted(None, None);
            let mut sink = Beside::<HttpKind>::after(Box::new(inner), short_run);
            for first in (0..3000).step_by(10) {
                sink.write(&batch(first..first + 10)).unwrap();
                sink.flush().unwrap();
            }
            assert_eq!(sink.thread.is_some(), short_run.is_some());
            sink.rotate().unwrap();
            sink.close();
            sink.finish().unwrap();
            let expected: Vec<u64> = (0..3000).chain([u64::MAX]).collect();
            assert_eq!(*locked(&times), expected, "{short_run:?}");
            assert_eq!(sink.losses().count, 0);
        }
    }

    #[test]
    fn a_failure_is_reported_once_with_all_that_was_handed_over() {
        let (inner, times) = noted(Some(1234), None);
        let mut sink = Beside::<HttpKind>::after(Box::new(inner), Some(0));
        let mut given = 0;
        let error = loop {
            let written = sink.write(&batch(given..given + 10));
            given += 10;
            if let Err(error) = written {
                break error;
            }
            assert!(given < 100_000, "never reported");
        };
        assert!(matches!(error, SinkError::ClosedPipe));
        assert_eq!(sink.losses().count, given - 1234);
        sink.miss(&batch(0..7));
        assert_eq!(sink.losses().count, given - 1234 + 7);
        assert_eq!(locked(&times).len(), 1234);
        drop(sink);
        assert_eq!(locked(&times).len(), 1234, "it is not finished");
    }

    #[test]
    fn a_run_waits_for_a_sink_that_is_slow() {
        let (go, wait) = mpsc::channel();
        let (inner, _) = noted(None, Some(wait));
        let mut sink = Beside::<HttpKind>::after(Box::new(inner), Some(0));
        go.send(()).unwrap();
        let written = Arc::new(Mutex::new(0));
        let seen = Arc::clone(&written);
        let writer = std::thread::spawn(move || {
            for _ in 0..100 {
                sink.write(&batch(0..1)).unwrap();
                *locked(&seen) += 1;
            }
            sink.finish().unwrap();
        });
        std::thread::park_timeout(Duration::from_millis(100));
        // The first went in here, one is being written.
        assert!(*locked(&written) <= MAX_BATCHES + 2);
        drop(go);
        writer.join().unwrap();
        assert_eq!(*locked(&written), 100);
    }
}
