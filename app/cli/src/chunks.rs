//! A file whose pieces a thread of its own writes, so that who makes them need not wait for the disk.

use std::io::{self, Write as _};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::thread::JoinHandle;

use linkweir_sink::Document;

/// Bytes that are best handed over at a time.
pub(crate) const CHUNK_BYTES: usize = 256 << 10;
/// Chunks that wait for the disk at most: 64 MiB.
const WAITING: usize = 256;

/// A piece, and how many frames are in it.
type Chunk = (Vec<u8>, u64);

/// Writes pieces of a file. Where the disk does not keep up, pieces are left out and counted, or waited for.
#[derive(Debug)]
pub(crate) struct Chunks {
    sender: Option<SyncSender<Chunk>>,
    writer: Option<JoinHandle<(u64, io::Result<()>)>>,
    waits: bool,
    lost: u64,
    /// Whether the file is not wanted, whatever was written of it.
    is_abandoned: Arc<AtomicBool>,
}

impl Chunks {
    /// Begins to write `file`, which was opened to be written in pieces.
    pub(crate) fn begin(file: Document, waits: bool) -> io::Result<Self> {
        let (sender, chunks) = sync_channel(WAITING);
        let is_abandoned = Arc::new(AtomicBool::new(false));
        let abandoned = Arc::clone(&is_abandoned);
        let writer = std::thread::Builder::new()
            .name("pcap".to_owned())
            .spawn(move || write(&chunks, file, &abandoned))?;
        Ok(Self {
            sender: Some(sender),
            writer: Some(writer),
            waits,
            lost: 0,
            is_abandoned,
        })
    }

    /// Hands over a piece with so many frames.
    pub(crate) fn push(&mut self, chunk: Vec<u8>, frames: u64) {
        let Some(sender) = &self.sender else { return };
        let is_taken = if self.waits {
            sender.send((chunk, frames)).is_ok()
        } else {
            !matches!(
                sender.try_send((chunk, frames)),
                Err(TrySendError::Full(_) | TrySendError::Disconnected(_))
            )
        };
        if !is_taken {
            self.lost += frames;
        }
    }

    /// Leaves the file uncompleted: what stands at its destination stays.
    pub(crate) fn abandon(self) {
        self.is_abandoned.store(true, Ordering::Release);
    }

    /// Writes the last piece, which waits for its place; how many frames are missing, and how the writing
    /// went.
    pub(crate) fn finish(mut self, last: Vec<u8>, frames: u64) -> (u64, io::Result<()>) {
        self.waits = true;
        self.push(last, frames);
        self.sender = None;
        let (unwritten, written) = match self.writer.take().map(JoinHandle::join) {
            Some(Ok(ended)) => ended,
            Some(Err(_)) => (0, Err(io::Error::other("the writer has panicked"))),
            None => (0, Ok(())),
        };
        (self.lost + unwritten, written)
    }
}

/// Without a last piece: a file of which nothing was written is not completed.
impl Drop for Chunks {
    fn drop(&mut self) {
        self.sender = None;
        if let Some(writer) = self.writer.take() {
            // Who wants to know how the writing went calls `finish`.
            let _unasked = writer.join();
        }
    }
}

/// How many frames could not be written, and how the writing went.
fn write(
    chunks: &Receiver<Chunk>,
    mut file: Document,
    is_abandoned: &AtomicBool,
) -> (u64, io::Result<()>) {
    let (mut is_begun, mut lost, mut written) = (false, 0, Ok(()));
    for (chunk, frames) in chunks {
        is_begun = true;
        if written.is_ok() {
            // Whole frames, seen at once by who reads the partial file.
            written = file.write_all(&chunk).and_then(|()| file.flush());
        }
        if written.is_err() {
            lost += frames;
        }
    }
    if written.is_err() {
        return (lost, written);
    }
    if is_abandoned.load(Ordering::Acquire) {
        file.discard();
    } else if is_begun {
        written = file.finish().map_err(io::Error::other);
    }
    (lost, written)
}

#[cfg(test)]
mod tests {
    use super::*;
    use linkweir_sink::Existing;

    #[test]
    fn frames_that_the_disk_refuses_are_counted() {
        let file = Document::open_in_pieces("/dev/full", Existing::Keep, |_| {}).unwrap();
        let mut chunks = Chunks::begin(file, true).unwrap();
        chunks.push(vec![0; 100], 3);
        chunks.push(vec![0; 100], 4);
        let (lost, written) = chunks.finish(vec![0; 100], 5);
        assert_eq!(lost, 12);
        assert!(written.unwrap_err().to_string().contains("No space left"));
    }

    #[test]
    fn what_is_abandoned_replaces_nothing() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("packets.pcapng");
        let write = |text: &str| {
            let name = path.to_str().unwrap();
            let file = Document::open_in_pieces(name, Existing::Replace, |_| {}).unwrap();
            let mut chunks = Chunks::begin(file, true).unwrap();
            chunks.push(text.as_bytes().to_vec(), 0);
            chunks
        };
        std::fs::write(&path, "old").unwrap();
        write("new").abandon();
        assert_eq!(std::fs::read(&path).unwrap(), b"old");
        assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 1);
        write("new").finish(Vec::new(), 0).1.unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"new");
    }
}
