//! Frames as a pcapng file, for other programs to open: timestamps in nanoseconds, an interface for each link
//! type of each interface of the input.
//!
//! Source: draft-ietf-opsawg-pcapng, section numbers below.

use std::collections::HashMap;

use linkweir_engine::Frame;
use linkweir_wire::LinkType;

const SECTION: u32 = 0x0a0d_0d0a;
const INTERFACE: u32 = 1;
const ENHANCED_PACKET: u32 = 6;
const DECRYPTION_SECRETS: u32 = 10;
/// The secrets are a key log of TLS.
const KEY_LOG: u32 = 0x544c_534b;
/// Interfaces of a section; with more a new section begins, so that the table of them stays small.
const MAX_INTERFACES: usize = 4096;

/// Writes one pcapng file.
#[derive(Debug, Default)]
pub struct Pcapng {
    interfaces: HashMap<(LinkType, u16), u32>,
}

impl Pcapng {
    /// A file that begins in `out`: with its section header it is one, also without frames.
    #[must_use]
    pub fn begin(out: &mut Vec<u8>) -> Self {
        section(out);
        Self::default()
    }

    /// Appends a frame, whole blocks.
    pub fn frame(&mut self, frame: &Frame<'_>, out: &mut Vec<u8>) {
        let key = (frame.link, frame.interface);
        let id = match self.interfaces.get(&key) {
            Some(id) => *id,
            None => self.interface(key, out),
        };
        let captured = u32::try_from(frame.bytes.len()).unwrap_or(u32::MAX);
        let time = frame.timestamp.as_nanos().to_be_bytes();
        let [a, b, c, d, e, f, g, h] = time;
        // Sec. 4.3: interface, time (upper half first), lengths, data.
        let words = [
            id,
            u32::from_be_bytes([a, b, c, d]),
            u32::from_be_bytes([e, f, g, h]),
            captured,
            frame.wire_len.max(captured),
        ];
        block(ENHANCED_PACKET, &words, frame.bytes, out);
    }

    /// Appends lines of a key log (sec. 4.7), for the frames behind them.
    pub fn secrets(lines: &str, out: &mut Vec<u8>) {
        let length = u32::try_from(lines.len()).unwrap_or(u32::MAX);
        block(
            DECRYPTION_SECRETS,
            &[KEY_LOG, length],
            lines.as_bytes(),
            out,
        );
    }

    /// Describes an interface; its number.
    fn interface(&mut self, key: (LinkType, u16), out: &mut Vec<u8>) -> u32 {
        if self.interfaces.len() >= MAX_INTERFACES {
            self.interfaces.clear();
            section(out);
        }
        let id = u32::try_from(self.interfaces.len()).unwrap_or(u32::MAX);
        self.interfaces.insert(key, id);
        // Sec. 4.2: link type, no limit of the snapshot length; option 9 is the unit of time: 10^-9 s.
        let options = [9, 0, 1, 0, 9, 0, 0, 0, 0, 0, 0, 0];
        block(INTERFACE, &[u32::from(key.0.0), 0], &options, out);
        id
    }
}

/// Sec. 4.1: byte-order magic, version 1.0, length of the section not given.
fn section(out: &mut Vec<u8>) {
    let words = [0x1a2b_3c4d, 1, u32::MAX, u32::MAX];
    block(SECTION, &words, &[], out);
}

/// Sec. 3.1: type, length, body (words, then bytes padded to 32 bits), length again.
fn block(kind: u32, words: &[u32], bytes: &[u8], out: &mut Vec<u8>) {
    let padding = bytes.len().next_multiple_of(4) - bytes.len();
    let length = 12 + 4 * words.len() + bytes.len() + padding;
    let length = u32::try_from(length).unwrap_or(u32::MAX).to_le_bytes();
    out.extend_from_slice(&kind.to_le_bytes());
    out.extend_from_slice(&length);
    words
        .iter()
        .for_each(|word| out.extend_from_slice(&word.to_le_bytes()));
    out.extend_from_slice(bytes);
    out.extend(std::iter::repeat_n(0, padding));
    out.extend_from_slice(&length);
}

#[cfg(test)]
#[allow(clippy::cast_possible_truncation, reason = "small numbers of a test")]
mod tests {
    use linkweir_engine::{Source as _, SourceEvent};
    use linkweir_wire::Timestamp;

    use super::*;
    use crate::{CaptureFiles, Input, ReadOptions};

    #[test]
    fn what_is_written_is_read_back() {
        let mut file = Vec::new();
        let mut pcapng = Pcapng::begin(&mut file);
        let bytes: Vec<u8> = (0..=255).collect();
        let frame = |at: u64| {
            let length = (at % 7) as usize + 20;
            Frame {
                timestamp: Timestamp::from_nanos(1_700_000_000_000_000_001 + at),
                bytes: &bytes[..length],
                wire_len: if at.is_multiple_of(3) {
                    1500
                } else {
                    length as u32
                },
                link: [LinkType::ETHERNET, LinkType::RAW][at as usize % 2],
                // More than a section has.
                interface: (at / 2) as u16,
            }
        };
        let all = 0..3 * MAX_INTERFACES as u64;
        all.clone()
            .for_each(|at| pcapng.frame(&frame(at), &mut file));
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("x.pcapng");
        std::fs::write(&path, &file).unwrap();
        let mut source = CaptureFiles::open(&[Input::Path(path)], ReadOptions::default()).unwrap();
        let mut at = 0;
        loop {
            match source.next_event().unwrap() {
                SourceEvent::Batch(batch) => {
                    for read in batch.frames() {
                        let wrote = frame(at);
                        assert_eq!((read.timestamp, read.link), (wrote.timestamp, wrote.link));
                        assert_eq!((read.bytes, read.wire_len), (wrote.bytes, wrote.wire_len));
                        at += 1;
                    }
                }
                SourceEvent::Fault(fault) => panic!("{fault:?}"),
                SourceEvent::Idle => {}
                SourceEvent::End => break,
            }
        }
        assert_eq!(at, all.end);
    }
}
