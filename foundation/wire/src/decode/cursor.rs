//! A view of the rest of a frame that knows what was captured and what was on the wire.

use crate::{DecodeError, DecodeErrorKind, Layer};

/// The bytes from some header on.
///
/// Invariant: `bytes.len() <= wire`; what the enclosing layer ended is in neither.
#[derive(Debug, Clone, Copy)]
pub(super) struct Cursor<'a> {
    /// What was captured.
    pub(super) bytes: &'a [u8],
    /// Bytes from here to the end of the enclosing layer, on the wire.
    pub(super) wire: u32,
    /// Whether no length field has ended it yet: only the record of the frame says how long it was.
    is_open: bool,
    /// Where this is in the frame.
    pub(super) offset: u32,
}

impl<'a> Cursor<'a> {
    pub(super) fn new(frame: &'a [u8], wire_len: u32) -> Self {
        // A frame of 4 GiB cannot come from any source; its tail would be left alone.
        let bytes = frame.get(..u32::MAX as usize).unwrap_or(frame);
        Self {
            bytes,
            wire: wire_len.max(len32(bytes.len())),
            is_open: true,
            offset: 0,
        }
    }

    /// The next `N` bytes as an array, and what follows them.
    #[inline]
    pub(super) fn take<const N: usize>(
        self,
        layer: Layer,
    ) -> Result<(&'a [u8; N], Self), DecodeError> {
        match self.bytes.split_first_chunk::<N>() {
            Some((head, _)) => Ok((head, self.skip(len32(N)))),
            None => Err(self.missing(layer, N)),
        }
    }

    /// The first `N` bytes without consuming them, where they were captured.
    #[inline]
    pub(super) fn peek<const N: usize>(self) -> Option<&'a [u8; N]> {
        self.bytes.first_chunk::<N>()
    }

    /// What follows the first `count` bytes; stops at the end.
    #[inline]
    pub(super) fn skip(self, count: u32) -> Self {
        Self {
            bytes: self.bytes.get(count as usize..).unwrap_or_default(),
            wire: self.wire.saturating_sub(count),
            offset: self.offset.saturating_add(count.min(self.wire)),
            ..self
        }
    }

    /// What follows a header of `count` bytes that need not be read, only be there.
    pub(super) fn skip_all(self, layer: Layer, count: usize) -> Result<Self, DecodeError> {
        if self.bytes.len() < count {
            return Err(self.missing(layer, count));
        }
        Ok(self.skip(len32(count)))
    }

    /// The same start, ending after `len` bytes, or with the enclosing layer where that is earlier. A
    /// frame does not end earlier: whoever cuts the frames of a capture may write the new length as the old.
    #[inline]
    pub(super) fn limit(self, len: u32) -> Self {
        Self {
            bytes: self.bytes.get(..len as usize).unwrap_or(self.bytes),
            wire: if self.is_open {
                len
            } else {
                self.wire.min(len)
            },
            is_open: false,
            offset: self.offset,
        }
    }

    /// The same bytes, ending where the enclosing layer does: its own length field says nothing.
    #[inline]
    pub(super) fn ended(self) -> Self {
        Self {
            is_open: false,
            ..self
        }
    }

    /// The error for a header of `need` bytes that does not fit: was it the capture or the packet?
    #[cold]
    pub(super) fn missing(self, layer: Layer, need: usize) -> DecodeError {
        let need16 = len16(need);
        self.error(
            layer,
            if (self.wire as usize) < need {
                DecodeErrorKind::TooShort {
                    need: need16,
                    have: len16(self.wire as usize),
                }
            } else {
                DecodeErrorKind::Cut {
                    need: need16,
                    have: len16(self.bytes.len()),
                }
            },
        )
    }

    #[cold]
    pub(super) const fn error(self, layer: Layer, kind: DecodeErrorKind) -> DecodeError {
        DecodeError {
            layer,
            offset: self.offset,
            kind,
        }
    }

    /// The error for a length field of `need` bytes, counted from here, where there are fewer.
    #[cold]
    pub(super) fn beyond_end(self, layer: Layer, need: u32) -> DecodeError {
        let need = len16(need as usize);
        let kind = if self.is_open {
            let have = len16(self.bytes.len());
            DecodeErrorKind::Cut { need, have }
        } else {
            let have = len16(self.wire as usize);
            DecodeErrorKind::BeyondEnd { need, have }
        };
        self.error(layer, kind)
    }
}

/// A length for a message: larger ones show as the largest.
fn len16(len: usize) -> u16 {
    u16::try_from(len).unwrap_or(u16::MAX)
}

/// A length within a frame; `Cursor::new` keeps frames below the limit.
#[inline]
pub(super) fn len32(len: usize) -> u32 {
    u32::try_from(len).unwrap_or(u32::MAX)
}
