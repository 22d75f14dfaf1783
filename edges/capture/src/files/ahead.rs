//! Regular files, of which others read what comes next.

use std::fs::File;
use std::io::{self, Read};
use std::ops::Range;
use std::os::unix::fs::FileExt as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use linkweir_engine::ReadAhead;

use super::CaptureFiles;

/// A chunk of a regular file, to be read by whoever has claimed it.
#[derive(Debug, Default)]
pub struct FilePiece {
    file: Option<Arc<File>>,
    offset: u64,
    generation: u64,
    buffer: Vec<u8>,
    /// Where in the buffer the chunk is to be.
    place: Range<usize>,
    read: Option<io::Result<usize>>,
}

/// Reads until `chunk` is full or the file has no more.
fn read_at(file: &File, chunk: &mut [u8], offset: u64) -> io::Result<usize> {
    let mut got = 0;
    while let Some(rest) = chunk.get_mut(got..)
        && !rest.is_empty()
    {
        match file.read_at(rest, offset + got as u64) {
            Ok(0) => break,
            Ok(more) => got += more,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            // What came before it is taken first; then the source meets the error itself.
            Err(_) if got > 0 => break,
            Err(error) => return Err(error),
        }
    }
    Ok(got)
}

impl ReadAhead for CaptureFiles {
    type Piece = FilePiece;

    fn claim(&mut self, piece: &mut FilePiece) -> bool {
        if std::mem::take(&mut self.is_lent) {
            // Its lines are in the cache of the core that reads into it again.
            self.window.swap(&mut piece.buffer, 0);
        }
        let Some(open) = &mut self.current else {
            return false;
        };
        let Some(file) = open.file.as_ref().filter(|_| open.format.is_some()) else {
            return false;
        };
        let (claimed, waiting) = &mut open.claimed;
        if *waiting == 0 {
            *claimed = open.raw_bytes.load(Ordering::Relaxed);
        }
        // What comes behind the size that it had is read as it comes.
        if *claimed >= open.item.size.unwrap_or(0) {
            return false;
        }
        piece.file = Some(Arc::clone(file));
        piece.offset = *claimed;
        piece.generation = self.generation;
        piece.place = self.window.fit(&mut piece.buffer);
        *claimed += piece.place.len() as u64;
        *waiting += 1;
        true
    }

    fn read(piece: &mut FilePiece) {
        let Some(file) = &piece.file else { return };
        let chunk = piece.buffer.get_mut(piece.place.clone());
        piece.read = Some(read_at(file, chunk.unwrap_or_default(), piece.offset));
    }

    fn supply(&mut self, piece: &mut FilePiece) -> bool {
        let read = piece.read.take();
        let Some(open) = self
            .current
            .as_mut()
            .filter(|_| piece.generation == self.generation)
        else {
            return false;
        };
        open.claimed.1 = open.claimed.1.saturating_sub(1);
        let read = read.unwrap_or(Ok(0));
        let got = read.as_ref().map_or(0, |got| *got);
        open.raw_bytes.fetch_add(got as u64, Ordering::Relaxed);
        if got < piece.place.len() {
            // Those who have claimed what follows have read at the wrong place.
            self.generation += 1;
            open.claimed.1 = 0;
        }
        self.window.swap(&mut piece.buffer, got);
        self.is_lent = true;
        self.supplied = Some(read);
        true
    }

    fn is_supplied(&self) -> bool {
        self.supplied.is_some()
    }

    fn is_ahead(&self) -> bool {
        self.current.as_ref().is_some_and(|open| open.claimed.1 > 0)
    }
}

/// A regular file, read at the position up to which it was read.
pub(super) struct Positioned {
    pub(super) file: Arc<File>,
    pub(super) position: Arc<AtomicU64>,
}

impl Read for Positioned {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let position = self.position.load(Ordering::Relaxed);
        self.file.read_at(buffer, position)
    }
}
