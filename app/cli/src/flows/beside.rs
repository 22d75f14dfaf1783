//! Records of another kind that come with flows.

use linkweir_engine::{Sink, SinkError, SinkLosses};
use linkweir_record::{FlowBatch, FlowKind, RecordBatch as _, RecordKind};

/// Writes the records of one kind that a batch of flows has beside them.
pub(super) struct Beside<K: RecordKind> {
    sink: Box<dyn Sink<K>>,
    records: fn(&FlowBatch) -> &K::Batch,
}

impl<K: RecordKind> Beside<K> {
    /// As an output of flows.
    pub(super) fn boxed(
        sink: Box<dyn Sink<K>>,
        records: fn(&FlowBatch) -> &K::Batch,
    ) -> Box<dyn Sink<FlowKind>> {
        Box::new(Self { sink, records })
    }
}

impl<K: RecordKind> Sink<FlowKind> for Beside<K> {
    fn write(&mut self, batch: &FlowBatch) -> Result<(), SinkError> {
        let records = (self.records)(batch);
        if records.is_empty() {
            return Ok(());
        }
        self.sink.write(records)
    }

    fn flush(&mut self) -> Result<(), SinkError> {
        self.sink.flush()
    }

    fn rotate(&mut self) -> Result<(), SinkError> {
        self.sink.rotate()
    }

    fn left_out(&self) -> u64 {
        self.sink.left_out()
    }

    fn miss(&mut self, batch: &FlowBatch) {
        self.sink.miss((self.records)(batch));
    }

    fn losses(&self) -> SinkLosses {
        self.sink.losses()
    }

    fn close(&mut self) {
        self.sink.close();
    }

    fn finish(&mut self) -> Result<(), SinkError> {
        self.sink.finish()
    }
}
