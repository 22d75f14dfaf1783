//! One file or stream of columns: what a format does with records, now and then, and at the end.

use std::io;

use linkweir_columnar::{ArrowStream, ColumnarError, ParquetFile};
use linkweir_engine::SinkError;
use linkweir_record::RecordKind;

use crate::output::Output;

/// How old the first record of a row group may become on a run that goes on: what a killed run loses.
const GROUP_AGE_NS: u64 = 60_000_000_000;

/// A file or stream that is being written.
pub(crate) trait Part<K: RecordKind>: Sized + 'static {
    /// Begins it: what stands before all records.
    fn begin(output: &mut Output) -> Result<Self, SinkError>;

    /// Appends records; what is complete by them is written.
    fn extend(
        &mut self,
        output: &mut Output,
        views: &[K::View<'_>],
        now_ns: u64,
    ) -> Result<(), SinkError>;

    /// Called about ten times a second: lets be seen what should be.
    fn flush(&mut self, output: &mut Output, now_ns: u64) -> Result<(), SinkError>;

    /// Writes what is left and what stands after all records.
    fn end(&mut self, output: &mut Output) -> Result<(), SinkError>;

    /// About how many bytes will be written for the records that wait.
    fn pending_bytes(&self) -> u64;

    /// Records that are in the output.
    fn saved(&self) -> u64;
}

/// Names the destination in an error of the encoding.
fn encoded<T>(output: &Output, result: Result<T, ColumnarError>) -> Result<T, SinkError> {
    result.map_err(|error| SinkError::Io {
        destination: output.destination().to_owned(),
        source: io::Error::other(error),
    })
}

/// A stream: each flush sends a message with what is there.
#[derive(Debug)]
pub(crate) struct ArrowPart<K: RecordKind> {
    stream: ArrowStream<K>,
    given: u64,
    saved: u64,
}

impl<K: RecordKind> ArrowPart<K> {
    /// Writes all messages that are complete.
    fn save(&mut self, output: &mut Output) -> Result<(), SinkError> {
        let bytes = self.stream.take();
        if bytes.is_empty() {
            return Ok(());
        }
        // A message that was written half is of no use: the file is cut back before it.
        output.write(&bytes, |_| 0)?;
        self.saved = self.given - self.stream.waiting_rows() as u64;
        Ok(())
    }
}

impl<K: RecordKind> Part<K> for ArrowPart<K> {
    fn begin(output: &mut Output) -> Result<Self, SinkError> {
        let mut part = Self {
            stream: encoded(output, ArrowStream::new())?,
            given: 0,
            saved: 0,
        };
        part.save(output)?;
        Ok(part)
    }

    fn extend(
        &mut self,
        output: &mut Output,
        views: &[K::View<'_>],
        _now_ns: u64,
    ) -> Result<(), SinkError> {
        self.given += views.len() as u64;
        encoded(output, self.stream.extend(views))?;
        self.save(output)
    }

    fn flush(&mut self, output: &mut Output, _now_ns: u64) -> Result<(), SinkError> {
        encoded(output, self.stream.send())?;
        self.save(output)
    }

    fn end(&mut self, output: &mut Output) -> Result<(), SinkError> {
        encoded(output, self.stream.end())?;
        self.save(output)
    }

    fn pending_bytes(&self) -> u64 {
        self.stream.pending_bytes() as u64
    }

    fn saved(&self) -> u64 {
        self.saved
    }
}

/// A file: row groups are written when they are full, or 60 s old.
#[derive(Debug)]
pub(crate) struct ParquetPart<K> {
    file: ParquetFile<K>,
    footed: Footed,
    /// When the first record of the open row group came.
    group_ns: Option<u64>,
    given: u64,
    saved: u64,
}

impl<K: RecordKind> ParquetPart<K> {
    /// Writes all row groups that are complete, with a footer that makes a whole file of them.
    fn save(&mut self, output: &mut Output) -> Result<(), SinkError> {
        let groups = encoded(output, self.file.take_groups())?;
        let footer = encoded(output, self.file.footer())?;
        self.footed.append(output, groups, footer)?;
        self.saved = self.given - self.file.waiting_rows() as u64;
        self.group_ns = None;
        Ok(())
    }

    fn close_group(&mut self, output: &mut Output) -> Result<(), SinkError> {
        if self.file.waiting_rows() > 0 {
            encoded(output, self.file.close_group())?;
            self.save(output)?;
        }
        Ok(())
    }
}

impl<K: RecordKind> Part<K> for ParquetPart<K> {
    fn begin(output: &mut Output) -> Result<Self, SinkError> {
        let mut part = Self {
            file: encoded(output, ParquetFile::new())?,
            footed: Footed::default(),
            group_ns: None,
            given: 0,
            saved: 0,
        };
        // An empty file, but a file: what a killed run leaves can be read from the beginning.
        part.save(output)?;
        Ok(part)
    }

    fn extend(
        &mut self,
        output: &mut Output,
        views: &[K::View<'_>],
        now_ns: u64,
    ) -> Result<(), SinkError> {
        self.given += views.len() as u64;
        encoded(output, self.file.extend(views))?;
        if self.file.has_groups() {
            self.save(output)?;
        }
        if self.group_ns.is_none() && self.file.waiting_rows() > 0 {
            self.group_ns = Some(now_ns);
        }
        Ok(())
    }

    fn flush(&mut self, output: &mut Output, now_ns: u64) -> Result<(), SinkError> {
        match self.group_ns {
            Some(since) if now_ns.saturating_sub(since) >= GROUP_AGE_NS => self.close_group(output),
            _ => Ok(()),
        }
    }

    fn end(&mut self, output: &mut Output) -> Result<(), SinkError> {
        self.close_group(output)?;
        self.footed.end(output)
    }

    fn pending_bytes(&self) -> u64 {
        self.file.pending_bytes() as u64
    }

    fn saved(&self) -> u64 {
        self.saved
    }
}

/// What stands where in the file.
///
/// Blocks are put in front of the footer, which grows with each of them. To write the block over the
/// footer would leave a file that nobody can read if the program were killed then; to leave old
/// footers where they are would make the file grow with the square of their number. So the old footer
/// is copied behind the place where block and new footer will end, both are written in front of it,
/// and the copy is cut off:
///
/// ```text
/// blocks | footer
/// blocks | footer | (hole)           | copy of the footer     the copy is read
/// blocks | block  | new footer       | copy of the footer     the copy is read
/// blocks | block  | new footer                                the new footer is read
/// ```
#[derive(Debug, Default)]
pub(crate) struct Footed {
    /// Bytes of blocks, which is where the footer begins.
    blocks: u64,
    footer: Vec<u8>,
}

impl Footed {
    /// Appends a block with the footer that belongs behind it. What is not a file gets the block only,
    /// and the footer by [`Footed::end`].
    ///
    /// # Errors
    /// Where the system refuses to write; a file is then as it was before.
    pub(crate) fn append(
        &mut self,
        output: &mut Output,
        mut block: Vec<u8>,
        footer: Vec<u8>,
    ) -> Result<(), SinkError> {
        let len = block.len() as u64;
        if output.is_file() {
            block.extend_from_slice(&footer);
            let written = self.replace(output, &block);
            if let Err(error) = written {
                // The error to report is the first.
                let _best_effort = self.restore(output);
                return Err(error);
            }
        } else {
            output.write(&block, |_| 0)?;
        }
        self.blocks += len;
        self.footer = footer;
        Ok(())
    }

    /// Writes `tail` over the footer.
    fn replace(&self, output: &mut Output, tail: &[u8]) -> Result<(), SinkError> {
        let end = self.blocks + tail.len() as u64;
        let old_end = self.blocks + self.footer.len() as u64;
        output.write_at(&self.footer, end.max(old_end))?;
        output.write_at(tail, self.blocks)?;
        output.set_len(end)
    }

    /// The file as it was: the place of its footer is there already, whatever the disk lacks.
    fn restore(&self, output: &mut Output) -> Result<(), SinkError> {
        output.write_at(&self.footer, self.blocks)?;
        output.set_len(self.blocks + self.footer.len() as u64)
    }

    /// Nothing follows: the footer of what is not a file.
    ///
    /// # Errors
    /// Where the system refuses to write.
    pub(crate) fn end(&mut self, output: &mut Output) -> Result<(), SinkError> {
        if output.is_file() {
            return Ok(());
        }
        output.write(&std::mem::take(&mut self.footer), |_| 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_ends_with_the_last_footer_and_nothing_is_left_of_others() {
        let directory = tempfile::tempdir().unwrap();
        let target = directory.path().join("a");
        let mut output = Output::partial("a", &target).unwrap();
        let partial = output.partial_path().unwrap().to_owned();
        let mut footed = Footed::default();
        let mut expected = String::new();
        for n in 0..20_usize {
            // Blocks shorter and longer than footers.
            let block = "b".repeat(1 + n * 7 % 30);
            let footer = format!("[{}]", "f".repeat(n));
            expected.push_str(&block);
            footed
                .append(&mut output, block.into_bytes(), footer.clone().into_bytes())
                .unwrap();
            let text = std::fs::read_to_string(&partial).unwrap();
            assert_eq!(text, format!("{expected}{footer}"));
            assert_eq!(output.written(), text.len() as u64);
        }
        footed.end(&mut output).unwrap();
        output.complete(&target, true).unwrap();
        let text = std::fs::read_to_string(&target).unwrap();
        assert!(text.ends_with("fff]"), "{text}");
    }
}
