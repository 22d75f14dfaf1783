//! What is read: a file or standard input, plain or compressed, with its beginning in view.

use std::fs::File;
use std::io::{self, Cursor, Read};
use std::path::{Path, PathBuf};

use anyhow::Context;
use linkweir_model::log::DETECT_BYTES;

/// An open input.
pub(crate) struct Opened {
    /// The name for messages.
    pub(crate) name: String,
    /// Its first bytes, for those who tell forms by content; [`Read`] gives them again.
    pub(crate) beginning: Vec<u8>,
    seen: usize,
    rest: Box<dyn Read + Send>,
    /// What happened while the beginning was read: told when its turn comes.
    error: Option<io::Error>,
    /// The file it is, where it is one: for forms that are not read from front to back.
    #[cfg_attr(
        not(feature = "parquet"),
        expect(dead_code, reason = "Parquet is such a form")
    )]
    pub(crate) path: Option<PathBuf>,
}

impl Opened {
    /// Opens a path; `-` is standard input.
    pub(crate) fn open(path: &Path) -> anyhow::Result<Self> {
        let is_stdin = path == Path::new("-");
        let name = if is_stdin {
            "standard input".to_owned()
        } else {
            path.display().to_string()
        };
        let mut path = (!is_stdin).then(|| path.to_owned());
        let stream: Box<dyn Read + Send> = if let Some(file) = &path {
            let file = File::open(file).with_context(|| name.clone())?;
            // What was read of a pipe is gone, whatever its name is (`/dev/stdin`, `<(command)`).
            if !file.metadata().is_ok_and(|meta| meta.is_file()) {
                path = None;
            }
            Box::new(file)
        } else {
            Box::new(io::stdin())
        };
        let rest = linkweir_capture::plain(stream).with_context(|| name.clone())?;
        Ok(Self {
            path,
            ..Self::begin(name, rest)?
        })
    }

    /// Whether reading failed so early that its beginning is not whole, and why.
    pub(crate) const fn fault(&self) -> Option<&io::Error> {
        self.error.as_ref()
    }

    pub(crate) fn begin(name: String, mut rest: Box<dyn Read + Send>) -> anyhow::Result<Self> {
        let mut beginning = Vec::new();
        let read = rest
            .by_ref()
            .take(DETECT_BYTES as u64)
            .read_to_end(&mut beginning);
        let error = match read {
            Err(error) if beginning.is_empty() => return Err(error).context(name),
            read => read.err(),
        };
        Ok(Self {
            name,
            beginning,
            seen: 0,
            rest,
            error,
            path: None,
        })
    }
}

impl Read for Opened {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let mut unread = Cursor::new(self.beginning.get(self.seen..).unwrap_or_default());
        let got = unread.read(buffer)?;
        if got > 0 || buffer.is_empty() {
            self.seen += got;
            return Ok(got);
        }
        match self.error.take() {
            Some(error) => Err(error),
            None => self.rest.read(buffer),
        }
    }
}
