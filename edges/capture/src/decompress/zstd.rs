//! zstd frames, one after another.
//!
//! Source: RFC 8878; frames are decoded by `ruzstd`, which leaves checksums and what stands between
//! frames to its caller.

use std::error::Error;
use std::io::{self, BufRead, Read};

use ruzstd::decoding::errors::{FrameDecoderError, ReadFrameHeaderError};
use ruzstd::decoding::{BlockDecodingStrategy, FrameDecoder};

/// Decodes all frames of an input.
pub(super) struct Frames<R> {
    input: R,
    decoder: FrameDecoder,
    in_frame: bool,
    /// What to say once everything decoded before it has been read.
    broken: Option<io::Error>,
}

impl<R: BufRead> Frames<R> {
    pub(super) fn new(input: R) -> Self {
        let mut decoder = FrameDecoder::new();
        decoder.set_max_window_size(u64::from(super::MAX_WINDOW_BYTES));
        Self {
            input,
            decoder,
            in_frame: false,
            broken: None,
        }
    }

    /// Ends a frame that cannot be decoded further, so that the window, which the decoder keeps
    /// back for references to it, can be read.
    fn give_up(&mut self, error: &FrameDecoderError) -> io::Result<()> {
        /// A last block without content (RFC 8878 sec. 3.1.1.2), and a checksum, should one follow.
        const LAST_BLOCK: [u8; 7] = [1, 0, 0, 0, 0, 0, 0];
        let one = BlockDecodingStrategy::UptoBlocks(1);
        match self.decoder.decode_blocks(LAST_BLOCK.as_slice(), one) {
            Ok(_) => {
                self.broken = Some(invalid(error));
                Ok(())
            }
            Err(_) => Err(invalid(error)),
        }
    }

    /// Starts the next frame; false at the end of the input.
    fn next_frame(&mut self) -> io::Result<bool> {
        loop {
            if self.input.fill_buf()?.is_empty() {
                return Ok(false);
            }
            match self.decoder.reset(&mut self.input) {
                Ok(()) => {
                    self.in_frame = true;
                    return Ok(true);
                }
                Err(FrameDecoderError::ReadFrameHeaderError(ReadFrameHeaderError::SkipFrame {
                    length,
                    ..
                })) => super::skip(&mut self.input, u64::from(length))?,
                Err(error) => return Err(invalid(&error)),
            }
        }
    }
}

impl<R: BufRead> Read for Frames<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if buffer.is_empty() {
            return Ok(0);
        }
        loop {
            if !self.in_frame && !self.next_frame()? {
                return Ok(0);
            }
            while self.decoder.can_collect() == 0 && !self.decoder.is_finished() {
                let one = BlockDecodingStrategy::UptoBlocks(1);
                if let Err(error) = self.decoder.decode_blocks(&mut self.input, one) {
                    self.give_up(&error)?;
                }
            }
            let got = self.decoder.read(buffer)?;
            if got > 0 {
                return Ok(got);
            }
            self.in_frame = false;
            if let Some(error) = self.broken.take() {
                return Err(error);
            }
            if let Some(expected) = self.decoder.get_checksum_from_data()
                && self.decoder.get_calculated_checksum() != Some(expected)
            {
                return Err(io::Error::new(
                    io::ErrorKind::InvalidData,
                    "checksum differs",
                ));
            }
        }
    }
}

/// Keeps the one distinction that matters to the user: an input that ends early.
fn invalid(error: &FrameDecoderError) -> io::Error {
    let mut cause: Option<&(dyn Error + 'static)> = Some(error);
    while let Some(link) = cause {
        if let Some(io) = link.downcast_ref::<io::Error>() {
            return io.kind().into();
        }
        cause = link.source();
    }
    io::Error::new(io::ErrorKind::InvalidData, error.to_string())
}
