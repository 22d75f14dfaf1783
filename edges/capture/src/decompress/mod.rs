//! Compression by content: gzip, zstd, xz and lz4, each with several members in one file.
//!
//! gzip, xz and lz4 are decoded in safe Rust or close to it, zstd by the library of C. What they may allocate
//! is bounded by [`MAX_WINDOW_BYTES`], whatever the stream asks for.

mod ahead;
mod codecs;
mod lz4;

use std::io::{self, BufReader, Chain, Cursor, Read};

/// The most a stream may ask for as its window: what `zstd` and `xz -9` write needs less.
const MAX_WINDOW_BYTES: u32 = 128 << 20;

/// Bytes read from the compressed input at once.
const INPUT_CHUNK: usize = 64 << 10;

/// A stream of bytes that may cross threads.
pub(crate) type Bytes = Box<dyn Read + Send>;

/// A compressed input: what has been looked at, then the rest.
type Input = BufReader<Chain<Cursor<Vec<u8>>, Bytes>>;

/// A compression, known by the first bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Compression {
    /// RFC 1952.
    Gzip,
    /// RFC 8878.
    Zstd,
    /// The .xz format, version 1.2.
    Xz,
    /// LZ4 frames.
    Lz4,
    /// Frames to be skipped, which zstd and lz4 share; what follows tells.
    Skippable,
}

impl Compression {
    /// Bytes needed by [`Compression::detect`].
    pub(crate) const MAGIC_BYTES: usize = 6;

    /// The compression of a stream that begins like this, if any.
    pub(crate) fn detect(data: &[u8]) -> Option<Self> {
        match data {
            [0x1f, 0x8b, ..] => Some(Self::Gzip),
            [0x28, 0xb5, 0x2f, 0xfd, ..] => Some(Self::Zstd),
            [0xfd, b'7', b'z', b'X', b'Z', 0, ..] => Some(Self::Xz),
            [0x04, 0x22, 0x4d, 0x18, ..] => Some(Self::Lz4),
            [0x50..=0x5f, 0x2a, 0x4d, 0x18, ..] => Some(Self::Skippable),
            _ => None,
        }
    }

    const fn name(self) -> &'static str {
        match self {
            Self::Gzip => "gzip",
            Self::Zstd | Self::Skippable => "zstd",
            Self::Xz => "xz",
            Self::Lz4 => "lz4",
        }
    }

    /// A reader of the decompressed bytes, which a thread of its own decodes ahead; `seen` was read from
    /// `rest` already, which may have nothing for a while.
    ///
    /// # Errors
    /// Where the system has no thread or memory to give.
    pub(crate) fn reader_ahead(
        self,
        seen: Vec<u8>,
        rest: Bytes,
        may_wait: bool,
    ) -> io::Result<Bytes> {
        let stream = self.reader(seen, rest)?;
        Ok(Box::new(ahead::Ahead::start(stream, may_wait)?))
    }

    /// A reader of the decompressed bytes; `seen` was read from `rest` already.
    ///
    /// # Errors
    /// Where the system has no memory to give.
    pub(crate) fn reader(self, seen: Vec<u8>, rest: Bytes) -> io::Result<Bytes> {
        let input = BufReader::with_capacity(INPUT_CHUNK, Cursor::new(seen).chain(rest));
        let inner: Bytes = match self {
            Self::Gzip => Box::new(codecs::Members::new(input)),
            Self::Zstd => Box::new(codecs::Frames::new(input)?),
            Self::Xz => Box::new(codecs::Streams::new(input)),
            Self::Lz4 => Box::new(lz4::Frames::new(input)),
            Self::Skippable => Box::new(AfterSkippable {
                input: Some(input),
                found: None,
            }),
        };
        Ok(Box::new(Named {
            name: self.name(),
            inner,
        }))
    }
}

/// Says in every error which compression it comes from.
struct Named {
    name: &'static str,
    inner: Bytes,
}

impl Read for Named {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.inner.read(buffer).map_err(|error| {
            if error.kind() == io::ErrorKind::Interrupted {
                return error;
            }
            let message = if error.kind() == io::ErrorKind::UnexpectedEof {
                format!("{} stream ends early", self.name)
            } else {
                format!("{} stream is damaged: {error}", self.name)
            };
            io::Error::new(io::ErrorKind::InvalidData, message)
        })
    }
}

/// Drops skippable frames until one of zstd or lz4 comes.
struct AfterSkippable {
    input: Option<Input>,
    found: Option<Bytes>,
}

impl Read for AfterSkippable {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if let Some(mut input) = self.input.take() {
            let mut magic = [0; 4];
            let found = loop {
                input.read_exact(&mut magic)?;
                match Compression::detect(&magic) {
                    Some(Compression::Skippable) => skip_frame(&mut input)?,
                    found => break found,
                }
            };
            let Some(found) = found else {
                return Err(io::Error::new(
                    io::ErrorKind::InvalidData,
                    "nothing known follows its skippable frames",
                ));
            };
            self.found = Some(found.reader(magic.to_vec(), Box::new(input))?);
        }
        match &mut self.found {
            Some(found) => found.read(buffer),
            None => Ok(0),
        }
    }
}

/// Skips the length and the content of a skippable frame whose magic number has been read.
fn skip_frame(input: &mut impl Read) -> io::Result<()> {
    let mut length = [0; 4];
    input.read_exact(&mut length)?;
    skip(input, u64::from(u32::from_le_bytes(length)))
}

fn skip(input: &mut impl Read, count: u64) -> io::Result<()> {
    let skipped = io::copy(&mut input.take(count), &mut io::sink())?;
    if skipped < count {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    Ok(())
}

/// Reads the four bytes that begin a frame; false at the end of the input.
fn read_magic(input: &mut impl Read, magic: &mut [u8; 4]) -> io::Result<bool> {
    let mut have = 0;
    while let Some(rest) = magic.get_mut(have..)
        && !rest.is_empty()
    {
        match input.read(rest) {
            Ok(0) if have == 0 => return Ok(false),
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(got) => have += got,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(true)
}
