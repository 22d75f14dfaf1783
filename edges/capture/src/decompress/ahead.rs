//! Decoding on a thread of its own, so that it takes another core than what reads the packets.

use std::io::{self, Read};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::thread;

/// Bytes of one piece. To wake the reader costs as much as to decode some 10 KiB, so pieces are not small.
const PIECE_BYTES: usize = 512 << 10;
/// Of the first piece; then twice as much each time, so that the first records need not wait for a whole one.
const FIRST_BYTES: usize = 64 << 10;
/// Pieces that may wait for the reader: decoding goes on while a batch is processed.
const PIECES: usize = 2;

/// What a thread of its own reads ahead of its user.
///
/// Memory: [`PIECES`] and two pieces more, one that is filled and one that is read. The thread ends with
/// the stream, or where nobody reads on.
pub(super) struct Ahead {
    pieces: Receiver<io::Result<Piece>>,
    /// Buffers that were read, to be filled again.
    spare: SyncSender<Vec<u8>>,
    piece: Piece,
    start: usize,
}

/// A buffer, and how much of it is filled. It keeps its length: to clear the rest again and again would take longer than to decode
/// small pieces.
type Piece = (Vec<u8>, usize);

impl Ahead {
    /// Starts to read `stream`. From one that may stop for a while, what has come is handed over at once.
    ///
    /// # Errors
    /// Where the system has no thread to give.
    pub(super) fn start(stream: super::Bytes, may_wait: bool) -> io::Result<Self> {
        let (full, pieces) = sync_channel(PIECES);
        let (spare, empty) = sync_channel(PIECES + 2);
        thread::Builder::new()
            .name("decompress".to_owned())
            .spawn(move || read_all(stream, may_wait, &full, &empty))?;
        Ok(Self {
            pieces,
            spare,
            piece: (Vec::new(), 0),
            start: 0,
        })
    }
}

impl Read for Ahead {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.start == self.piece.1 {
            // Who has nothing more to say has ended.
            let Ok(piece) = self.pieces.recv() else {
                return Ok(0);
            };
            let (read, _) = std::mem::replace(&mut self.piece, piece?);
            self.start = 0;
            // A thread that has ended takes none.
            drop(self.spare.try_send(read));
        }
        let (piece, filled) = &self.piece;
        let mut ready = piece.get(self.start..*filled).unwrap_or_default();
        let got = ready.read(buffer)?;
        self.start += got;
        Ok(got)
    }
}

/// Hands over whole pieces; of a stream that may wait, what has come as soon as there is room for it.
fn read_all(
    mut stream: super::Bytes,
    may_wait: bool,
    full: &SyncSender<io::Result<Piece>>,
    empty: &Receiver<Vec<u8>>,
) {
    let new = || (vec![0; PIECE_BYTES], 0);
    let (mut piece, mut filled) = new();
    let mut enough = FIRST_BYTES;
    let damage = loop {
        match stream.read(piece.get_mut(filled..).unwrap_or_default()) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Ok(0) => break None,
            Err(error) => break Some(error),
            Ok(got) => filled += got,
        }
        let unsent = if filled >= enough {
            enough = PIECE_BYTES.min(2 * enough);
            full.send(Ok((piece, filled))).map_err(|_| None)
        } else if !may_wait {
            continue;
        } else {
            full.try_send(Ok((piece, filled)))
                .map_err(|error| match error {
                    TrySendError::Full(Ok(piece)) => Some(piece),
                    _ => None,
                })
        };
        (piece, filled) = match unsent {
            // The reader gives its first buffer back too, which is empty.
            Ok(()) => match empty.try_recv() {
                Ok(read) if !read.is_empty() => (read, 0),
                _ => new(),
            },
            Err(Some(unsent)) => unsent,
            // Nobody reads on.
            Err(None) => return,
        };
    };
    if filled > 0 {
        drop(full.send(Ok((piece, filled))));
    }
    if let Some(error) = damage {
        drop(full.send(Err(error)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Gives one byte a call, then fails.
    struct Slow(u8);

    impl Read for Slow {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            let Some(first) = buffer.first_mut().filter(|_| self.0 < 200) else {
                return Err(io::Error::other("enough"));
            };
            *first = self.0;
            self.0 += 1;
            Ok(1)
        }
    }

    #[test]
    fn what_came_before_an_error_is_read_first() {
        let mut ahead = Ahead::start(Box::new(Slow(0)), true).unwrap();
        let mut read = Vec::new();
        let error = ahead.read_to_end(&mut read).unwrap_err();
        assert_eq!(read, (0..200).collect::<Vec<u8>>());
        assert_eq!(error.to_string(), "enough");
        assert_eq!(ahead.read(&mut [0; 1]).unwrap(), 0, "it has ended");
    }

    #[test]
    fn a_thread_ends_where_nobody_reads() {
        let (alive, ended) = sync_channel::<()>(0);
        /// Endless, and tells when it is dropped.
        struct Endless {
            _alive: SyncSender<()>,
        }
        impl Read for Endless {
            fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
                Ok(buffer.len())
            }
        }
        let mut ahead = Ahead::start(Box::new(Endless { _alive: alive }), false).unwrap();
        let mut some = vec![0; 3 * PIECE_BYTES];
        ahead.read_exact(&mut some).unwrap();
        drop(ahead);
        assert!(ended.recv().is_err(), "its stream is dropped");
    }
}
