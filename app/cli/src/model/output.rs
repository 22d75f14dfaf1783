//! What is written: a file that appears when it is complete, or standard output.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use anyhow::Context;

/// An output to be written piece by piece.
pub(super) struct Output {
    out: BufWriter<Box<dyn Write>>,
    /// Where it is until it is complete, and its name.
    place: Option<(PathBuf, PathBuf)>,
    name: String,
    /// Whether a pipe has been closed by its reader, who has enough.
    is_closed: bool,
}

impl Output {
    /// Opens a path; `-` is standard output. A file is `.NAME.partial` until it is complete.
    pub(super) fn open(path: &Path) -> anyhow::Result<Self> {
        let name = path.display().to_string();
        if path == Path::new("-") {
            return Ok(Self::over(
                Box::new(io::stdout()),
                None,
                "standard output".to_owned(),
            ));
        }
        // Devices and pipes are written to as they are.
        let is_special = std::fs::metadata(path).is_ok_and(|meta| !meta.is_file());
        if is_special {
            let file = File::options()
                .write(true)
                .open(path)
                .context(name.clone())?;
            return Ok(Self::over(Box::new(file), None, name));
        }
        let partial = crate::archive::partial_name(path);
        let file = File::create(&partial).context(name.clone())?;
        Ok(Self::over(
            Box::new(file),
            Some((partial, path.to_owned())),
            name,
        ))
    }

    fn over(out: Box<dyn Write>, place: Option<(PathBuf, PathBuf)>, name: String) -> Self {
        Self {
            out: BufWriter::with_capacity(64 << 10, out),
            place,
            name,
            is_closed: false,
        }
    }

    /// Writes a piece; what a closed pipe would get is dropped.
    pub(super) fn write(&mut self, text: std::fmt::Arguments<'_>) -> anyhow::Result<()> {
        if self.is_closed {
            return Ok(());
        }
        let written = self.out.write_fmt(text);
        self.check(written)
    }

    /// The output is complete.
    pub(super) fn finish(mut self) -> anyhow::Result<()> {
        if !self.is_closed {
            let flushed = self.out.flush();
            self.check(flushed)?;
        }
        match self.place.take() {
            Some((partial, path)) => std::fs::rename(partial, path).context(self.name.clone()),
            None => Ok(()),
        }
    }

    fn check(&mut self, written: io::Result<()>) -> anyhow::Result<()> {
        match written {
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => {
                self.is_closed = true;
                Ok(())
            }
            written => written.context(self.name.clone()),
        }
    }
}

impl Drop for Output {
    fn drop(&mut self) {
        // Half a table is of no use to anybody.
        if let Some((partial, _)) = self.place.take() {
            let _gone_already = std::fs::remove_file(partial);
        }
    }
}

/// Writes a whole text.
pub(super) fn write(path: &Path, text: &str) -> anyhow::Result<()> {
    write_bytes(path, text.as_bytes())
}

/// Writes a whole document.
pub(super) fn write_bytes(path: &Path, document: &[u8]) -> anyhow::Result<()> {
    let mut output = Output::open(path)?;
    let written = output.out.write_all(document);
    output.check(written)?;
    output.finish()
}
