//! Frames of packets (RFC 9000 sec. 19, RFC 9221).

use crate::tls::reader::Reader;

/// Frames that are looked at in one packet: more are an attack.
const MAX_FRAMES: usize = 512;

/// What a frame says, as far as somebody needs it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Frame<'a> {
    /// Bytes of the handshake.
    Crypto {
        /// Where in its stream they stand.
        offset: u64,
        /// The bytes.
        bytes: &'a [u8],
    },
    /// Bytes of a stream.
    Stream {
        /// Its number.
        id: u64,
        /// Where in the stream they stand.
        offset: u64,
        /// The bytes.
        bytes: &'a [u8],
        /// Whether none follow.
        is_last: bool,
    },
    /// A side gives up what it sends on a stream.
    Reset {
        /// Its number.
        id: u64,
        /// Why: an error of the application.
        error: u64,
    },
    /// A new id by which a side is to be called.
    NewId(&'a [u8]),
    /// The connection is over.
    Close,
}

/// Frames of a packet, in their order; ends at the first that is not known.
#[derive(Debug, Clone)]
pub struct Frames<'a> {
    reader: Reader<'a>,
    left: usize,
}

impl<'a> Frames<'a> {
    /// Those in the content of a packet.
    #[must_use]
    pub const fn of(bytes: &'a [u8]) -> Self {
        Self {
            reader: Reader::new(bytes),
            left: MAX_FRAMES,
        }
    }

    /// The next that says something: `Some(None)` is one that does not.
    fn take(&mut self) -> Option<Option<Frame<'a>>> {
        let reader = &mut self.reader;
        // PADDING, a byte each.
        let padding = reader.rest().iter().take_while(|byte| **byte == 0).count();
        reader.take(padding)?;
        let kind = reader.varint()?;
        // How many numbers follow of a frame that nobody needs.
        let numbers = match kind {
            // PING, HANDSHAKE_DONE, IMMEDIATE_ACK (a draft, in use)
            0x01 | 0x1e | 0x1f => 0,
            0x02 | 0x03 => {
                super::stream::ack(reader, kind == 0x03)?;
                0
            }
            0x04 => {
                let (id, error) = (reader.varint()?, reader.varint()?);
                let _final_size = reader.varint()?;
                return Some(Some(Frame::Reset { id, error }));
            }
            // STOP_SENDING, MAX_STREAM_DATA, STREAM_DATA_BLOCKED
            0x05 | 0x11 | 0x15 => 2,
            0x06 => {
                let offset = reader.varint()?;
                let bytes = counted(reader)?;
                return Some(Some(Frame::Crypto { offset, bytes }));
            }
            // NEW_TOKEN
            0x07 => {
                counted(reader)?;
                0
            }
            0x08..=0x0f => {
                let id = reader.varint()?;
                let offset = if kind & 4 != 0 { reader.varint()? } else { 0 };
                let bytes = match kind & 2 {
                    0 => reader.take(reader.rest().len())?,
                    _ => counted(reader)?,
                };
                return Some(Some(Frame::Stream {
                    id,
                    offset,
                    bytes,
                    is_last: kind & 1 != 0,
                }));
            }
            // MAX_DATA, MAX_STREAMS, DATA_BLOCKED, STREAMS_BLOCKED, RETIRE_CONNECTION_ID
            0x10 | 0x12 | 0x13 | 0x14 | 0x16 | 0x17 | 0x19 => 1,
            0x18 => {
                let (_number, _retired) = (reader.varint()?, reader.varint()?);
                let id = reader.vector8()?;
                let _token = reader.take(16)?;
                return Some(Some(Frame::NewId(id)));
            }
            // PATH_CHALLENGE, PATH_RESPONSE
            0x1a | 0x1b => {
                reader.take(8)?;
                0
            }
            0x1c | 0x1d => return Some(Some(Frame::Close)),
            // DATAGRAM
            0x30 => {
                reader.take(reader.rest().len())?;
                0
            }
            0x31 => {
                counted(reader)?;
                0
            }
            // TIME_STAMP (draft-huitema-quic-ts, in use)
            0x2f5 => 1,
            // ACK_FREQUENCY (a draft, in use)
            0xaf => 4,
            _ => return None,
        };
        for _ in 0..numbers {
            reader.varint()?;
        }
        Some(None)
    }
}

/// Bytes whose number stands before them.
fn counted<'a>(reader: &mut Reader<'a>) -> Option<&'a [u8]> {
    let len = usize::try_from(reader.varint()?).ok()?;
    reader.take(len)
}

impl<'a> Iterator for Frames<'a> {
    type Item = Frame<'a>;

    fn next(&mut self) -> Option<Frame<'a>> {
        loop {
            self.left = self.left.checked_sub(1)?;
            match self.take() {
                None => {
                    self.left = 0;
                    return None;
                }
                Some(None) => {}
                Some(frame) => return frame,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_of_all_kinds() {
        let mut bytes = vec![0, 0, 0x01];
        bytes.extend([0x02, 5, 0, 1, 2, 0, 1]); // ACK with one further range
        bytes.extend([0x06, 0x40, 0x64, 2, 7, 8]); // CRYPTO at 100
        bytes.extend([0x10, 0x44, 0]); // MAX_DATA
        bytes.extend([0x18, 1, 0, 4, 1, 2, 3, 4]);
        bytes.extend([9; 16]);
        bytes.extend([0x0f, 4, 3, 1, 5]); // STREAM with offset, length, end
        bytes.extend([0x04, 8, 0x41, 0, 9]);
        bytes.extend([0x31, 2, 1, 1]);
        bytes.extend([0x08, 0, 6, 6, 6]); // STREAM to the end of the packet
        let frames: Vec<Frame<'_>> = Frames::of(&bytes).collect();
        let stream = |id, offset, bytes, is_last| Frame::Stream {
            id,
            offset,
            bytes,
            is_last,
        };
        let expected = [
            Frame::Crypto {
                offset: 100,
                bytes: &[7, 8],
            },
            Frame::NewId(&[1, 2, 3, 4]),
            stream(4, 3, &[5], true),
            Frame::Reset { id: 8, error: 256 },
            stream(0, 0, &[6, 6, 6], false),
        ];
        assert_eq!(frames, expected);
    }

    #[test]
    fn what_is_not_known_ends_them() {
        assert_eq!(Frames::of(&[0x01, 0x21, 0x06, 0, 1, 1]).count(), 0);
        assert_eq!(Frames::of(&[0x06, 0, 9, 1]).count(), 0, "cut");
        assert_eq!(Frames::of(&[0x01; 2000]).count(), 0);
    }

    proptest::proptest! {
        #[test]
        fn any_bytes_are_read_without_panic(bytes in proptest::collection::vec(proptest::num::u8::ANY, 0..200)) {
            proptest::prop_assert!(Frames::of(&bytes).count() <= MAX_FRAMES);
        }
    }
}
