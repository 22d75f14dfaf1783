//! One log: a file that grows by whole lines.

use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, Write};
use std::path::PathBuf;

use linkweir_engine::SinkError;

use linkweir_sink::io_error;

/// Bytes collected before a write.
const WRITE_BYTES: usize = 64 << 10;

/// A log that is being written.
///
/// Invariant: whatever happens to the program, the file holds whole lines (a write that the system
/// refuses half-way is cut back).
#[derive(Debug)]
pub(crate) struct Log {
    file: File,
    path: PathBuf,
    /// Lines that are not written yet.
    buffer: Vec<u8>,
    /// Bytes of `buffer` that are the header.
    head: usize,
    written: u64,
    /// Lines in `buffer` and in the file, without the header.
    waiting: u64,
    lines: u64,
}

impl Log {
    /// Begins a log; one of an earlier run is replaced.
    pub(crate) fn create(path: PathBuf, header: fn(&mut Vec<u8>)) -> Result<Self, SinkError> {
        let file = OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(true)
            .open(&path)
            .map_err(|e| io_error(&path.display().to_string(), e))?;
        let mut buffer = Vec::with_capacity(4096);
        header(&mut buffer);
        Ok(Self {
            file,
            path,
            head: buffer.len(),
            buffer,
            written: 0,
            waiting: 0,
            lines: 0,
        })
    }

    /// Appends what `line` writes: one line.
    #[inline]
    pub(crate) fn append(&mut self, line: impl FnOnce(&mut Vec<u8>)) -> Result<(), SinkError> {
        line(&mut self.buffer);
        self.waiting += 1;
        if self.buffer.len() >= WRITE_BYTES {
            return self.flush();
        }
        Ok(())
    }

    /// Writes what is collected.
    pub(crate) fn flush(&mut self) -> Result<(), SinkError> {
        let mut rest = self.buffer.as_slice();
        while !rest.is_empty() {
            let error = match self.file.write(rest) {
                Ok(0) => ErrorKind::WriteZero.into(),
                Ok(count) => {
                    rest = rest.get(count..).unwrap_or_default();
                    continue;
                }
                Err(e) if e.kind() == ErrorKind::Interrupted => continue,
                Err(e) => e,
            };
            let done = self.buffer.len() - rest.len();
            let done = self.buffer.get(..done).unwrap_or_default();
            let whole = done
                .iter()
                .rposition(|b| *b == b'\n')
                .map_or(0, |at| at + 1);
            let kept = done.get(self.head..whole).unwrap_or_default().iter();
            self.lines += kept.filter(|byte| **byte == b'\n').count() as u64;
            self.waiting = 0;
            // The first error is the one to report.
            let _already_failed = self.file.set_len(self.written + whole as u64);
            self.buffer.clear();
            return Err(io_error(&self.path.display().to_string(), error));
        }
        self.written += self.buffer.len() as u64;
        self.lines += std::mem::take(&mut self.waiting);
        self.head = 0;
        self.buffer.clear();
        Ok(())
    }

    /// Writes everything and waits until it is on the disk.
    pub(crate) fn finish(&mut self) -> Result<(), SinkError> {
        self.flush()?;
        let synced = self.file.sync_all();
        synced.map_err(|e| io_error(&self.path.display().to_string(), e))
    }

    /// Lines that are in the file, without its header.
    pub(crate) const fn lines(&self) -> u64 {
        self.lines
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_disk_is_an_error_that_names_the_log() {
        let path = PathBuf::from("/dev/full");
        let mut log = Log::create(path, |out| out.extend_from_slice(b"#header\n")).unwrap();
        log.append(|out| out.extend_from_slice(b"line\n")).unwrap();
        let error = log.flush().unwrap_err();
        assert!(matches!(error, SinkError::Io { .. }));
        assert!(error.to_string().contains("/dev/full"), "{error}");
    }

    #[test]
    fn a_log_grows_by_whole_lines() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("log");
        let mut log = Log::create(path.clone(), |out| out.extend_from_slice(b"#header\n")).unwrap();
        for _ in 0..20_000 {
            log.append(|out| out.extend_from_slice(b"a line\n"))
                .unwrap();
        }
        let so_far = std::fs::read(&path).unwrap();
        assert!(so_far.len() > WRITE_BYTES && so_far.ends_with(b"line\n"));
        log.finish().unwrap();
        assert_eq!(std::fs::read(&path).unwrap().len(), 8 + 20_000 * 7);
    }
}
