//! Records as a stream of Arrow's IPC format.

use arrow_ipc::writer::StreamWriter;
use linkweir_record::RecordKind;

use crate::columns::Columns;
use crate::schema::ColumnarError;

/// Records of one message: large enough that its head costs nothing, small enough that two of them
/// stay in the second-level cache.
const BATCH_ROWS: usize = 4096;

/// Bytes of text of one message, for records with large texts.
const BATCH_BYTES: usize = 4 << 20;

/// Turns records into the messages of a stream: one with the schema, one for each batch, an end mark.
///
/// Bytes are made in memory: [`ArrowStream::take`] gives those of whole messages.
pub struct ArrowStream<K> {
    columns: Columns<K>,
    writer: StreamWriter<Vec<u8>>,
}

impl<K: RecordKind> std::fmt::Debug for ArrowStream<K> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ArrowStream")
            .field("rows", &self.columns.rows())
            .finish_non_exhaustive()
    }
}

impl<K: RecordKind> ArrowStream<K> {
    /// A stream whose first bytes are its schema.
    ///
    /// # Errors
    /// None that is known: a schema that Arrow refuses would be one.
    pub fn new() -> Result<Self, ColumnarError> {
        let columns = Columns::with_capacity(BATCH_ROWS);
        let writer = StreamWriter::try_new(Vec::new(), columns.schema())?;
        Ok(Self { columns, writer })
    }

    /// Appends records; full batches become messages.
    ///
    /// # Errors
    /// [`ColumnarError::Arrow`], for none of our own reasons.
    pub fn extend(&mut self, mut views: &[K::View<'_>]) -> Result<(), ColumnarError> {
        while !views.is_empty() {
            let room = BATCH_ROWS.saturating_sub(self.columns.rows());
            let (now, later) = views.split_at_checked(room).unwrap_or((views, &[]));
            self.columns.extend(now);
            views = later;
            if self.columns.rows() >= BATCH_ROWS || self.columns.text_bytes() >= BATCH_BYTES {
                self.send()?;
            }
        }
        Ok(())
    }

    /// Makes a message of what has been collected, if there is any.
    ///
    /// # Errors
    /// [`ColumnarError::Arrow`], for none of our own reasons.
    pub fn send(&mut self) -> Result<(), ColumnarError> {
        if self.columns.rows() > 0 {
            let batch = self.columns.finish()?;
            self.writer.write(&batch)?;
        }
        Ok(())
    }

    /// Makes a message of the rest and the end mark.
    ///
    /// # Errors
    /// [`ColumnarError::Arrow`] where the stream has ended before.
    pub fn end(&mut self) -> Result<(), ColumnarError> {
        self.send()?;
        Ok(self.writer.finish()?)
    }

    /// The bytes of the messages made since the last call.
    pub fn take(&mut self) -> Vec<u8> {
        std::mem::take(self.writer.get_mut())
    }

    /// Records that wait for the message they will be in.
    #[must_use]
    pub const fn waiting_rows(&self) -> usize {
        self.columns.rows()
    }

    /// Bytes that wait: those of messages, and the text of what is still collected.
    pub fn pending_bytes(&self) -> usize {
        self.writer.get_ref().len() + self.columns.text_bytes()
    }
}
