//! Messages of Arrow's IPC stream, checked before the library reads them; its panics become errors.
//!
//! The library believes the places and lengths that a message tells: one that lies outside of the
//! message's body ends the program, and a body is allocated before it has come. Streams come from
//! other programs, so each message is read whole here, as far as there are bytes for it, and its
//! places are compared with its body.
//!
//! Source: Arrow columnar format, "Encapsulated message format".

use std::any::Any;
use std::cell::Cell;
use std::io::{self, ErrorKind, Read};
use std::panic::{AssertUnwindSafe, catch_unwind};

use arrow_ipc::{Message, MessageHeader, RecordBatch, root_as_message};
use parquet::file::metadata::ParquetMetaData;

use crate::schema::ColumnarError;

/// What stands before the length of a message since version 0.15 of the format.
const CONTINUATION: [u8; 4] = [0xff; 4];

/// Bytes of the longest description of a message: a schema with tens of thousands of columns.
const MAX_METADATA: usize = 16 << 20;

/// Bytes of the longest body.
const MAX_BODY: u64 = 2 << 30;

/// Rows of a batch for which there need not be a bit.
const MAX_BARE_ROWS: u64 = 1 << 20;

/// Gives the bytes of a stream on, message by message.
#[derive(Debug)]
pub(crate) struct Vetted<R> {
    inner: R,
    /// The message at hand, framing included.
    message: Vec<u8>,
    given: usize,
    has_ended: bool,
}

impl<R: Read> Vetted<R> {
    pub(crate) const fn new(inner: R) -> Self {
        Self {
            inner,
            message: Vec::new(),
            given: 0,
            has_ended: false,
        }
    }

    /// Reads the next message; none follows the last.
    fn read_message(&mut self) -> io::Result<()> {
        self.message.clear();
        self.given = 0;
        // The format allows a writer to close the stream without the mark of its end, but then a writer
        // that was killed between two messages could not be told from one that had no more rows.
        let first = self.word("before the mark of its end")?;
        let length = if first == CONTINUATION {
            self.word("behind the mark of a message")?
        } else {
            first
        };
        let length = usize::try_from(i32::from_le_bytes(length))
            .ok()
            .filter(|length| *length <= MAX_METADATA)
            .ok_or_else(|| wrong("a message has a description of an impossible length"))?;
        if length == 0 {
            self.has_ended = true;
            return match self.inner.by_ref().take(1).read_to_end(&mut Vec::new())? {
                0 => Ok(()),
                _ => Err(wrong("something follows the end of the stream")),
            };
        }
        let begin = self.message.len();
        if self.more(length as u64)? < length as u64 {
            return Err(cut("in the description of a message"));
        }
        let described = self.message.get(begin..).unwrap_or_default();
        let body = {
            let message = root_as_message(described)
                .map_err(|error| wrong(&format!("a message is not described: {error}")))?;
            check(&message)?
        };
        if self.more(body)? < body {
            return Err(cut("in the body of a message"));
        }
        Ok(())
    }

    /// Four bytes, which belong to the message at hand; `place` is where the stream ends if there are none.
    fn word(&mut self, place: &str) -> io::Result<[u8; 4]> {
        let begin = self.message.len();
        let read = self.more(4)?;
        let bytes = self.message.get(begin..).unwrap_or_default();
        let word = bytes.first_chunk().copied();
        word.ok_or_else(|| {
            cut(match read {
                0 => place,
                _ => "in the length of a message",
            })
        })
    }

    /// Appends so many bytes to the message at hand, or those that there are. Memory grows with the
    /// bytes that come, not with those that are promised.
    fn more(&mut self, bytes: u64) -> io::Result<u64> {
        let read = self
            .inner
            .by_ref()
            .take(bytes)
            .read_to_end(&mut self.message)?;
        Ok(read as u64)
    }
}

impl<R: Read> Read for Vetted<R> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        if self.given == self.message.len() && !self.has_ended {
            self.read_message()?;
        }
        let mut rest = self.message.get(self.given..).unwrap_or_default();
        let count = rest.read(out)?;
        self.given += count;
        Ok(count)
    }
}

/// Compares what a message tells of its body with the body's length, which it gives.
fn check(message: &Message<'_>) -> io::Result<u64> {
    let body = u64::try_from(message.bodyLength())
        .ok()
        .filter(|length| *length <= MAX_BODY)
        .ok_or_else(|| wrong("a message has a body of an impossible length"))?;
    match message.header_type() {
        MessageHeader::RecordBatch => {
            let batch = message
                .header_as_record_batch()
                .ok_or_else(|| wrong("a batch is not described"))?;
            check_batch(&batch, body)?;
        }
        MessageHeader::DictionaryBatch => {
            let batch = message
                .header_as_dictionary_batch()
                .and_then(|dictionary| dictionary.data())
                .ok_or_else(|| wrong("a dictionary is not described"))?;
            check_batch(&batch, body)?;
        }
        _ => {}
    }
    Ok(body)
}

fn check_batch(batch: &RecordBatch<'_>, body: u64) -> io::Result<()> {
    // A row takes a bit at least, but for columns of which every value is null; compressed ones take less.
    let most = match batch.compression() {
        None => MAX_BARE_ROWS.saturating_add(body.saturating_mul(8)),
        Some(_) => MAX_BODY,
    };
    let rows = u64::try_from(batch.length())
        .ok()
        .filter(|rows| *rows <= most.min(MAX_BODY))
        .ok_or_else(|| wrong("a batch has an impossible number of rows"))?;
    for buffer in batch.buffers().into_iter().flatten() {
        let end = u64::try_from(buffer.offset())
            .ok()
            .zip(u64::try_from(buffer.length()).ok())
            .and_then(|(offset, length)| offset.checked_add(length));
        if end.is_none_or(|end| end > body) {
            return Err(wrong("a column lies outside of its message"));
        }
    }
    for node in batch.nodes().into_iter().flatten() {
        let length = u64::try_from(node.length()).ok();
        let nulls = u64::try_from(node.null_count()).ok();
        let is_possible = length
            .zip(nulls)
            .is_some_and(|(length, nulls)| length <= MAX_BODY.max(rows) && nulls <= length);
        if !is_possible {
            return Err(wrong("a column has an impossible number of values"));
        }
    }
    Ok(())
}

/// Bytes of the columns of a row group.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct GroupSize {
    /// Once decompressed.
    pub(crate) bytes: u64,
    /// As they are in the file.
    pub(crate) compressed: u64,
}

/// The largest row group of a Parquet file of `length` bytes whose columns lie within it.
///
/// The library takes the places for granted here too.
pub(crate) fn largest_group(metadata: &ParquetMetaData, length: u64) -> io::Result<GroupSize> {
    let mut largest = GroupSize::default();
    for group in metadata.row_groups() {
        let mut size = GroupSize::default();
        for column in group.columns() {
            let data = column.data_page_offset();
            let begin = column
                .dictionary_page_offset()
                .map_or(data, |dictionary| dictionary.min(data));
            let compressed = u64::try_from(column.compressed_size()).ok();
            let end = u64::try_from(begin)
                .ok()
                .zip(compressed)
                .and_then(|(begin, length)| begin.checked_add(length));
            let bytes = u64::try_from(column.uncompressed_size())
                .ok()
                .filter(|bytes| *bytes <= MAX_BODY);
            match (end, bytes) {
                (Some(end), Some(bytes)) if end <= length => {
                    size.bytes = size.bytes.saturating_add(bytes);
                    let compressed = compressed.unwrap_or(0);
                    size.compressed = size.compressed.saturating_add(compressed);
                }
                _ => {
                    return Err(wrong(
                        "a column lies outside of the file, or is impossibly large",
                    ));
                }
            }
        }
        if size.bytes > largest.bytes {
            largest = size;
        }
    }
    Ok(largest)
}

fn wrong(what: &str) -> io::Error {
    io::Error::new(ErrorKind::InvalidData, what.to_owned())
}

/// Not `UnexpectedEof`, which the library takes for a stream that has ended.
fn cut(place: &str) -> io::Error {
    io::Error::new(ErrorKind::InvalidData, format!("the stream ends {place}"))
}

thread_local! {
    static IS_GUARDED: Cell<bool> = const { Cell::new(false) };
}

/// Whether a panic of this thread becomes an error, for the program's panic hook: it has nothing to say
/// then and must not end the program.
///
/// Decoders of Parquet check what they are told while they go, and not all of it: some damaged pages end
/// in a panic (an index behind the end, a dictionary that never came). Which those are changes with the
/// version, so none is looked for: a panic of the library is an error like another.
#[must_use]
pub fn is_guarded() -> bool {
    IS_GUARDED.get()
}

/// What `work` gives. What it works with must not be used again after an error.
pub(crate) fn guarded<T>(work: impl FnOnce() -> T) -> Result<T, ColumnarError> {
    let before = IS_GUARDED.replace(true);
    let result = catch_unwind(AssertUnwindSafe(work));
    IS_GUARDED.set(before);
    result.map_err(|payload| ColumnarError::Damaged(said(payload.as_ref())))
}

/// The message of a panic.
fn said(payload: &(dyn Any + Send)) -> String {
    let literal = payload.downcast_ref::<&str>().copied();
    literal
        .or_else(|| payload.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("no more is known")
        .to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_is_an_error_and_the_guard_ends_with_it() {
        let nothing: Vec<u8> = Vec::new();
        let error = guarded(|| {
            assert!(is_guarded());
            nothing[3]
        });
        let error = error.unwrap_err().to_string();
        assert!(
            error.contains("damaged") && error.contains("index is 3"),
            "{error}"
        );
        assert!(!is_guarded());
        assert_eq!(guarded(|| 7).unwrap(), 7);
    }
}
