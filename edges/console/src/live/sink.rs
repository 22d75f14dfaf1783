//! Where the records of a run come in.

use linkweir_engine::{Sink, SinkError};

use super::{Kind, LiveOf, Publisher, lock};

/// Counts the records of a run.
#[derive(Debug)]
pub(super) struct LiveSink<K: Kind>(pub(super) LiveOf<K>);

impl<K: Kind> Sink<K> for LiveSink<K> {
    fn write(&mut self, batch: &K::Batch) -> Result<(), SinkError> {
        let shared = &self.0.0;
        lock(&shared.writer).records(batch, &mut Publisher(shared));
        Ok(())
    }

    fn flush(&mut self) -> Result<(), SinkError> {
        let shared = &self.0.0;
        lock(&shared.writer).flushed(&mut Publisher(shared));
        Ok(())
    }

    fn finish(&mut self) -> Result<(), SinkError> {
        Ok(())
    }
}
