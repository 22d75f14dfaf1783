//! Which records a destination gets: those that match a condition, the first of them.

use linkweir_engine::{Sink, SinkError, SinkLosses};
use linkweir_record::{Filter, RecordBatch as _, RecordKind};

use crate::options::OutputOptions;

/// A destination that gets some records.
struct Chosen<K: RecordKind> {
    sink: Box<dyn Sink<K>>,
    condition: Option<Filter<K>>,
    /// How many more it gets.
    left: u64,
    left_out: u64,
    /// Those of a batch.
    batch: K::Batch,
}

/// The destination as the options have it.
///
/// # Errors
/// [`SinkError::Refused`] where the condition is none of this kind of records.
pub(crate) fn chosen<K: RecordKind>(
    options: OutputOptions,
    open: impl FnOnce(OutputOptions) -> Result<Box<dyn Sink<K>>, SinkError>,
) -> Result<Box<dyn Sink<K>>, SinkError> {
    let condition = options.condition.as_deref().map(Filter::<K>::read);
    let condition = condition.transpose().map_err(|error| SinkError::Refused {
        destination: "--where".to_owned(),
        message: error.to_string(),
    })?;
    let head = options.head;
    let sink = open(options)?;
    if condition.is_none() && head.is_none() {
        return Ok(sink);
    }
    Ok(Box::new(Chosen {
        sink,
        condition,
        left: head.unwrap_or(u64::MAX),
        left_out: 0,
        batch: K::Batch::default(),
    }))
}

impl<K: RecordKind> Chosen<K> {
    /// Takes those of a batch that are meant.
    fn take(&mut self, batch: &K::Batch) {
        self.batch.clear();
        for view in batch.views() {
            let condition = self.condition.as_ref();
            if self.left > 0 && condition.is_none_or(|all| all.matches(&view)) {
                self.left -= 1;
                self.batch.push_view(&view);
            } else {
                self.left_out += 1;
            }
        }
    }
}

impl<K: RecordKind> Sink<K> for Chosen<K> {
    fn write(&mut self, batch: &K::Batch) -> Result<(), SinkError> {
        self.take(batch);
        if !self.batch.is_empty() {
            self.sink.write(&self.batch)?;
        }
        if self.left > 0 {
            return Ok(());
        }
        self.sink.finish()?;
        Err(SinkError::Complete)
    }

    fn flush(&mut self) -> Result<(), SinkError> {
        self.sink.flush()
    }

    fn rotate(&mut self) -> Result<(), SinkError> {
        self.sink.rotate()
    }

    fn miss(&mut self, batch: &K::Batch) {
        self.take(batch);
        self.sink.miss(&self.batch);
    }

    fn losses(&self) -> SinkLosses {
        self.sink.losses()
    }

    fn left_out(&self) -> u64 {
        self.left_out
    }

    fn close(&mut self) {
        self.sink.close();
    }

    fn finish(&mut self) -> Result<(), SinkError> {
        self.sink.finish()
    }
}
