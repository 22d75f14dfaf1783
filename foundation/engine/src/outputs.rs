//! The destinations of a run's records. Each fails alone: what happens to one is no matter of the others.

use std::num::NonZeroU32;

use linkweir_record::{RecordBatch as _, RecordKind};
use thiserror::Error;

use crate::hash::{flow_hash, mix};
use crate::seams::{Sink, SinkError, SinkLosses};

/// No output takes records any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum NoOutput {
    /// The reader of a pipe has gone, and nothing else is written to; not a failure (the run ends quietly).
    #[error("the reader of the output has gone")]
    ClosedPipe,
    /// All have what they were to have; not a failure, and what was measured until then counts.
    #[error("the outputs have all records that they were to have")]
    Complete,
    /// All have failed: [`Outputs::losses`] says why.
    #[error("no output is left")]
    Failed,
}

/// What did not reach one destination.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Loss {
    /// The destination as the user named it.
    pub destination: String,
    /// Records or values that did not arrive, as far as can be known.
    pub count: u64,
    /// The first cause, as a sentence for the user without a full stop.
    pub cause: Option<String>,
    /// Whether nothing more is written there. Of an output that is only away, more may arrive.
    pub has_failed: bool,
}

/// Whether an output takes records.
#[derive(Debug)]
enum State {
    Open,
    ReaderGone,
    Complete,
    Failed(String),
}

/// Opens a destination, also again.
type Open<K> = Box<dyn FnMut() -> Result<Box<dyn Sink<K>>, SinkError>>;

struct Output<K> {
    /// `None`: what the run itself looks at, and no destination of the user.
    name: Option<String>,
    sink: Box<dyn Sink<K>>,
    state: State,
    /// `None`: one that has failed stays so.
    open: Option<Open<K>>,
    /// What was lost before it was opened again.
    lost_before: u64,
    /// Records that came when it was complete.
    after_last: u64,
    /// Whether it gets only the sample.
    is_sampled: bool,
}

/// Which records destinations get, of how many.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SampleCounts {
    /// One record of so many.
    pub of: NonZeroU32,
    /// Records of the sample.
    pub taken: u64,
}

impl SampleCounts {
    /// How many records there are, by the sample alone: so many times N, each having been taken by itself with
    /// probability 1/N.
    #[must_use]
    pub fn estimate(&self) -> u64 {
        self.taken.saturating_mul(u64::from(self.of.get()))
    }

    /// The standard error of the estimate: sqrt(n N (N - 1)).
    #[must_use]
    pub fn standard_error(&self) -> f64 {
        let of = f64::from(self.of.get());
        (self.taken as f64 * of * (of - 1.0)).sqrt()
    }
}

/// A sample of records, by the hash of their subject.
struct Sample<K: RecordKind> {
    counts: SampleCounts,
    /// Those of a batch.
    batch: K::Batch,
}

impl<K: RecordKind> Sample<K> {
    fn take(&mut self, batch: &K::Batch) {
        self.batch.clear();
        for view in batch.views() {
            let [a, b] = K::endpoints(&view);
            let hash = mix(K::subject(&view) ^ mix(u64::from(flow_hash(a, b))));
            if hash.is_multiple_of(u64::from(self.counts.of.get())) {
                self.batch.push_view(&view);
            }
        }
        self.counts.taken += self.batch.len() as u64;
    }
}

/// The outputs of a run. One that fails is given up and counts from then on what it does not get, until it
/// can be opened again; the others go on. Calls give an error when none is left.
pub struct Outputs<K: RecordKind> {
    all: Vec<Output<K>>,
    sample: Option<Sample<K>>,
    /// See [`Outputs::keep_unless_read`].
    keeps_unless_read: bool,
}

impl<K: RecordKind> Default for Outputs<K> {
    fn default() -> Self {
        Self {
            all: Vec::new(),
            sample: None,
            keeps_unless_read: false,
        }
    }
}

impl<K: RecordKind> std::fmt::Debug for Outputs<K> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let names = self.all.iter().map(|output| (&output.name, &output.state));
        f.debug_list().entries(names).finish()
    }
}

/// Where the records of a run go: its outputs, or the thread that has them.
pub trait Outlet<K: RecordKind> {
    /// As [`Outputs::write`].
    ///
    /// # Errors
    /// Where nobody takes records any more.
    fn write(&mut self, batch: &K::Batch) -> Result<(), NoOutput>;

    /// As [`Outputs::flush`].
    ///
    /// # Errors
    /// Where no output is left.
    fn flush(&mut self) -> Result<(), NoOutput> {
        Ok(())
    }

    /// As [`Outputs::rotate`].
    ///
    /// # Errors
    /// Where no output is left.
    fn rotate(&mut self) -> Result<(), NoOutput> {
        Ok(())
    }

    /// As [`Outputs::finish_after`].
    ///
    /// # Errors
    /// Where no output is left.
    fn finish_after(&mut self, _is_unread: bool) -> Result<(), NoOutput> {
        Ok(())
    }

    /// As [`Outputs::losses`].
    fn losses(&self) -> Vec<Loss> {
        Vec::new()
    }

    /// As [`Outputs::sampled`].
    fn sampled(&self) -> Option<SampleCounts> {
        None
    }

    /// As [`Outputs::left_out`].
    fn left_out(&self) -> u64 {
        0
    }
}

impl<K: RecordKind> Outlet<K> for Outputs<K> {
    fn write(&mut self, batch: &K::Batch) -> Result<(), NoOutput> {
        self.write(batch)
    }

    fn flush(&mut self) -> Result<(), NoOutput> {
        self.flush()
    }

    fn rotate(&mut self) -> Result<(), NoOutput> {
        self.rotate()
    }

    fn finish_after(&mut self, is_unread: bool) -> Result<(), NoOutput> {
        self.finish_after(is_unread)
    }

    fn losses(&self) -> Vec<Loss> {
        self.losses()
    }

    fn sampled(&self) -> Option<SampleCounts> {
        self.sampled()
    }

    fn left_out(&self) -> u64 {
        self.left_out()
    }
}

impl<K: RecordKind> Outputs<K> {
    /// Opens a destination of the user. Where it fails, [`Outputs::rotate`] tries to open it again.
    ///
    /// # Errors
    /// Where it cannot be opened.
    pub fn open(
        &mut self,
        name: impl Into<String>,
        mut open: impl FnMut() -> Result<Box<dyn Sink<K>>, SinkError> + 'static,
    ) -> Result<(), SinkError> {
        let sink = open()?;
        self.push(Some(name.into()), sink, Some(Box::new(open)));
        Ok(())
    }

    /// Adds a destination of the user that is open.
    pub fn add(&mut self, name: impl Into<String>, sink: Box<dyn Sink<K>>) {
        self.push(Some(name.into()), sink, None);
    }

    /// Gives the destinations that were opened or added so far one record of `of`, chosen by the hash of
    /// its endpoints and [`RecordKind::subject`]: all records of a flow or none, in every run the same, however
    /// many workers there are. Observers, and what is added later, get all.
    pub fn sample(&mut self, of: NonZeroU32) {
        for output in self.all.iter_mut().filter(|output| output.name.is_some()) {
            output.is_sampled = true;
        }
        self.sample = Some(Sample {
            counts: SampleCounts { of, taken: 0 },
            batch: K::Batch::default(),
        });
    }

    /// What was sampled, if anything is.
    #[must_use]
    pub fn sampled(&self) -> Option<SampleCounts> {
        self.sample.as_ref().map(|sample| sample.counts)
    }

    /// Records that destinations of the user were not to have, by a condition or because they had enough; of several
    /// destinations it is the same.
    #[must_use]
    pub fn left_out(&self) -> u64 {
        let all = self.all.iter();
        let all = all.map(|output| output.sink.left_out() + output.after_last);
        all.max().unwrap_or(0)
    }

    /// Adds what looks at the records without being a destination: a report, live statistics.
    pub fn add_observer(&mut self, sink: Box<dyn Sink<K>>) {
        self.push(None, sink, None);
    }

    /// Adds what looks at the records of the sample, where there is one, without being a destination.
    pub fn add_sampled_observer(&mut self, sink: Box<dyn Sink<K>>) {
        self.add_observer(sink);
        if let Some(output) = self.all.last_mut() {
            output.is_sampled = true;
        }
    }

    fn push(&mut self, name: Option<String>, sink: Box<dyn Sink<K>>, open: Option<Open<K>>) {
        self.all.push(Output {
            name,
            sink,
            state: State::Open,
            open,
            lost_before: 0,
            after_last: 0,
            is_sampled: false,
        });
    }

    /// Gives all records of a batch to every output.
    ///
    /// # Errors
    /// Where no output is left.
    pub fn write(&mut self, batch: &K::Batch) -> Result<(), NoOutput> {
        if let Some(sample) = &mut self.sample {
            sample.take(batch);
        }
        for output in &mut self.all {
            let batch = match &self.sample {
                Some(sample) if output.is_sampled => &sample.batch,
                _ => batch,
            };
            match output.state {
                State::Failed(_) => output.sink.miss(batch),
                State::Complete => output.after_last += batch.len() as u64,
                _ => output.with(|sink| sink.write(batch)),
            }
        }
        self.check()
    }

    /// Lets be seen what is buffered.
    ///
    /// # Errors
    /// Where no output is left.
    pub fn flush(&mut self) -> Result<(), NoOutput> {
        self.each(|sink| sink.flush())
    }

    /// Starts new files; opens again what has failed.
    ///
    /// # Errors
    /// Where no output is left.
    pub fn rotate(&mut self) -> Result<(), NoOutput> {
        for output in &mut self.all {
            match output.state {
                State::Failed(_) => output.reopen(),
                _ => output.with(|sink| sink.rotate()),
            }
        }
        self.check()
    }

    /// What stands already where destinations are to be stays if a run ends without a packet because of its inputs:
    /// it is not replaced by nothing.
    pub const fn keep_unless_read(&mut self) {
        self.keeps_unless_read = true;
    }

    /// [`Outputs::finish`] of a run, which may have been left without a packet: see [`RunReport::is_unread`].
    ///
    /// [`RunReport::is_unread`]: crate::RunReport::is_unread
    ///
    /// # Errors
    /// Where no output is left, also where the last one failed at its end.
    pub fn finish_after(&mut self, is_unread: bool) -> Result<(), NoOutput> {
        if is_unread && self.keeps_unless_read {
            self.all.clear();
        }
        self.finish()
    }

    /// Completes all that have not failed. Each hears that nothing more comes before the first is waited for.
    ///
    /// # Errors
    /// Where no output is left, also where the last one failed at its end.
    pub fn finish(&mut self) -> Result<(), NoOutput> {
        for output in &mut self.all {
            output.with(|sink| {
                sink.close();
                Ok(())
            });
        }
        self.each(|sink| sink.finish())
    }

    /// What did not reach each destination of the user, in the order in which they were added.
    #[must_use]
    pub fn losses(&self) -> Vec<Loss> {
        let named = self.all.iter().filter_map(|output| {
            let destination = output.name.clone()?;
            let lost = output.sink.losses();
            let (cause, has_failed) = match &output.state {
                State::Failed(why) => (Some(why.clone()), true),
                _ => (lost.first, false),
            };
            Some(Loss {
                destination,
                count: output.lost_before + lost.count,
                cause,
                has_failed,
            })
        });
        named.collect()
    }

    fn each(
        &mut self,
        mut act: impl FnMut(&mut dyn Sink<K>) -> Result<(), SinkError>,
    ) -> Result<(), NoOutput> {
        for output in &mut self.all {
            output.with(&mut act);
        }
        self.check()
    }

    fn check(&self) -> Result<(), NoOutput> {
        let is_open = |output: &Output<K>| matches!(output.state, State::Open);
        let has_failed = |output: &Output<K>| matches!(output.state, State::Failed(_));
        let is_complete = |output: &Output<K>| matches!(output.state, State::Complete);
        if self.all.is_empty() || self.all.iter().any(is_open) {
            Ok(())
        } else if self.all.iter().any(is_complete) {
            Err(NoOutput::Complete)
        } else if self.all.iter().any(has_failed) {
            Err(NoOutput::Failed)
        } else {
            Err(NoOutput::ClosedPipe)
        }
    }
}

impl<K: RecordKind> Output<K> {
    /// Opens it again after a failure; where that fails too, it stays as it is.
    fn reopen(&mut self) {
        let Some(open) = &mut self.open else {
            return;
        };
        let missed = Missed(self.sink.losses().count);
        // The old one goes first: it may hold what the new one needs, such as the lock of its file.
        self.sink = Box::new(missed);
        match open() {
            Ok(sink) => {
                self.sink = sink;
                self.lost_before += missed.0;
                self.state = State::Open;
            }
            Err(error) => self.state = State::Failed(error.to_string()),
        }
    }

    /// Acts on an output that is open.
    fn with(&mut self, act: impl FnOnce(&mut dyn Sink<K>) -> Result<(), SinkError>) {
        if !matches!(self.state, State::Open) {
            return;
        }
        match act(self.sink.as_mut()) {
            Ok(()) => {}
            Err(SinkError::ClosedPipe) => self.state = State::ReaderGone,
            Err(SinkError::Complete) => self.state = State::Complete,
            Err(error) => self.state = State::Failed(error.to_string()),
        }
    }
}

/// Stands for an output that has failed and could not be opened again: the records that are lost so far.
#[derive(Debug, Clone, Copy)]
struct Missed(u64);

impl<K: RecordKind> Sink<K> for Missed {
    fn write(&mut self, batch: &K::Batch) -> Result<(), SinkError> {
        Sink::<K>::miss(self, batch);
        Ok(())
    }

    fn flush(&mut self) -> Result<(), SinkError> {
        Ok(())
    }

    fn finish(&mut self) -> Result<(), SinkError> {
        Ok(())
    }

    fn miss(&mut self, batch: &K::Batch) {
        self.0 += batch.len() as u64;
    }

    fn losses(&self) -> SinkLosses {
        SinkLosses {
            count: self.0,
            first: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::rc::Rc;

    use linkweir_record::{HttpBatch, HttpKind, HttpRow, Text};

    use super::*;

    /// What was done with an output, and what it answers.
    #[derive(Default)]
    struct Log {
        calls: Vec<&'static str>,
        missed: u64,
        refuses: Option<fn() -> SinkError>,
    }

    struct Logged(Rc<RefCell<Log>>);

    impl Logged {
        fn call(&self, name: &'static str) -> Result<(), SinkError> {
            let mut log = self.0.borrow_mut();
            log.calls.push(name);
            log.refuses.map_or(Ok(()), |error| Err(error()))
        }
    }

    impl Sink<HttpKind> for Logged {
        fn write(&mut self, _batch: &HttpBatch) -> Result<(), SinkError> {
            self.call("write")
        }
        fn flush(&mut self) -> Result<(), SinkError> {
            self.call("flush")
        }
        fn rotate(&mut self) -> Result<(), SinkError> {
            self.call("rotate")
        }
        fn close(&mut self) {
            self.0.borrow_mut().calls.push("close");
        }
        fn finish(&mut self) -> Result<(), SinkError> {
            self.call("finish")
        }
        fn miss(&mut self, batch: &HttpBatch) {
            self.0.borrow_mut().missed += 1 + batch.len() as u64;
        }
        fn losses(&self) -> SinkLosses {
            SinkLosses {
                count: self.0.borrow().missed,
                first: None,
            }
        }
    }

    fn full() -> SinkError {
        SinkError::Io {
            destination: "a".to_owned(),
            source: std::io::ErrorKind::StorageFull.into(),
        }
    }

    #[test]
    fn one_that_fails_is_left_alone_and_counts_what_it_misses() {
        let (a, b): (Rc<RefCell<Log>>, Rc<RefCell<Log>>) = Default::default();
        let mut outputs = Outputs::<HttpKind>::default();
        outputs.add("a", Box::new(Logged(Rc::clone(&a))));
        outputs.add("b", Box::new(Logged(Rc::clone(&b))));
        let batch = HttpBatch::default();
        outputs.write(&batch).unwrap();
        a.borrow_mut().refuses = Some(full);
        outputs.flush().unwrap();
        outputs.write(&batch).unwrap();
        outputs.rotate().unwrap();
        outputs.finish().unwrap();
        assert_eq!(a.borrow().calls, ["write", "flush"]);
        let all = ["write", "flush", "write", "rotate", "close", "finish"];
        assert_eq!(b.borrow().calls, all);
        let [first, second] = outputs.losses().try_into().unwrap();
        assert_eq!((first.destination.as_str(), first.count), ("a", 1));
        assert_eq!(first.cause, Some(full().to_string()));
        assert!(first.has_failed && !second.has_failed);
        assert_eq!((second.destination.as_str(), second.count), ("b", 0));
    }

    #[test]
    fn one_that_has_failed_is_opened_again_with_new_files() {
        let log: Rc<RefCell<Log>> = Rc::default();
        type Answer = Option<fn() -> SinkError>;
        let opened: Rc<RefCell<Vec<Answer>>> = Rc::default();
        let mut outputs = Outputs::<HttpKind>::default();
        let (sinks, answers) = (Rc::clone(&log), Rc::clone(&opened));
        let open = move || match answers.borrow_mut().pop().flatten() {
            Some(error) => Err(error()),
            None => Ok(Box::new(Logged(Rc::clone(&sinks))) as Box<dyn Sink<HttpKind>>),
        };
        outputs.open("a", open).unwrap();
        let batch = HttpBatch::default();
        log.borrow_mut().refuses = Some(full);
        assert_eq!(outputs.write(&batch), Err(NoOutput::Failed));
        assert_eq!(outputs.write(&batch), Err(NoOutput::Failed));
        log.borrow_mut().refuses = None;
        opened.borrow_mut().push(Some(full));
        assert_eq!(outputs.rotate(), Err(NoOutput::Failed), "still full");
        assert!(outputs.losses()[0].has_failed);
        log.borrow_mut().missed = 0;
        assert_eq!(outputs.rotate(), Ok(()));
        outputs.write(&batch).unwrap();
        let [loss] = outputs.losses().try_into().unwrap();
        assert_eq!((loss.count, loss.cause, loss.has_failed), (1, None, false));
    }

    #[test]
    fn a_sample_is_for_destinations_and_observers_get_all() {
        struct Times(Rc<RefCell<Vec<u64>>>);
        impl Sink<HttpKind> for Times {
            fn write(&mut self, batch: &HttpBatch) -> Result<(), SinkError> {
                let times = batch.views().map(|view| HttpKind::time_ns(&view));
                self.0.borrow_mut().extend(times);
                Ok(())
            }
            fn flush(&mut self) -> Result<(), SinkError> {
                Ok(())
            }
            fn finish(&mut self) -> Result<(), SinkError> {
                Ok(())
            }
        }
        let [written, observed, followed, store]: [Rc<RefCell<Vec<u64>>>; 4] = Default::default();
        let mut outputs = Outputs::<HttpKind>::default();
        outputs.add("-", Box::new(Times(Rc::clone(&written))));
        outputs.add_observer(Box::new(Times(Rc::clone(&observed))));
        outputs.add_sampled_observer(Box::new(Times(Rc::clone(&followed))));
        outputs.sample(NonZeroU32::new(8).unwrap());
        outputs.add("store", Box::new(Times(Rc::clone(&store))));
        for batch_of in [1..=3000, 3001..=8000] {
            let mut batch = HttpBatch::default();
            for time in batch_of {
                let row = HttpRow {
                    request_ts_ns: Some(time),
                    ..HttpRow::default()
                };
                batch.push(row, &Text::default());
            }
            outputs.write(&batch).unwrap();
        }
        let written = written.borrow();
        assert_eq!(*written, *followed.borrow());
        // 1,000 with a standard deviation of 30.
        assert!((880..=1120).contains(&written.len()), "{}", written.len());
        let counts = outputs.sampled().unwrap();
        assert_eq!((counts.of.get(), counts.taken), (8, written.len() as u64));
        assert!(written.is_sorted_by(|a, b| a < b), "none twice");
        let all: Vec<u64> = (1..=8000).collect();
        assert_eq!(*observed.borrow(), all);
        assert_eq!(*store.borrow(), all, "it was added later");
    }

    #[test]
    fn the_last_one_to_go_ends_it_and_a_reader_that_goes_is_no_failure() {
        let logs: [Rc<RefCell<Log>>; 2] = Default::default();
        let mut outputs = Outputs::<HttpKind>::default();
        assert_eq!(outputs.flush(), Ok(()), "a run may have none");
        outputs.add("-", Box::new(Logged(Rc::clone(&logs[0]))));
        logs[0].borrow_mut().refuses = Some(|| SinkError::ClosedPipe);
        assert_eq!(outputs.flush(), Err(NoOutput::ClosedPipe));
        assert!(!outputs.losses()[0].has_failed);
        outputs.add_observer(Box::new(Logged(Rc::clone(&logs[1]))));
        assert_eq!(outputs.flush(), Ok(()), "somebody looks at the records");
        logs[1].borrow_mut().refuses = Some(full);
        assert_eq!(outputs.flush(), Err(NoOutput::Failed));
        assert_eq!(outputs.losses().len(), 1, "an observer is no destination");
    }
}
