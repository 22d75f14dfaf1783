//! A file that ends with a footer and can be read at any moment.
//!
//! Blocks are put in front of the footer, which grows with each of them. To write the block over the
//! footer would leave a file that nobody can read if the program were killed then; to leave old
//! footers where they are would make the file grow with the square of their number. So the old footer
//! is copied behind the place where block and new footer will end, both are written in front of it,
//! and the copy is cut off:
//!
//! ```text
//! blocks | footer
//! blocks | footer | (hole)           | copy of the footer     the copy is read
//! blocks | block  | new footer       | copy of the footer     the copy is read
//! blocks | block  | new footer                                the new footer is read
//! ```

use linkweir_engine::SinkError;

use crate::output::Output;

/// What stands where in the file.
#[derive(Debug, Default)]
pub(crate) struct Footed {
    /// Bytes of blocks, which is where the footer begins.
    blocks: u64,
    footer: Vec<u8>,
}

impl Footed {
    /// Appends a block with the footer that belongs behind it. What is no file gets the block only,
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

    /// Nothing follows: the footer of what is no file.
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
