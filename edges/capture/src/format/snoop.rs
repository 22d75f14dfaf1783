//! Snoop, the capture format of Solaris.
//!
//! Source: RFC 1761.

use linkweir_engine::FrameRef;
use linkweir_wire::{LinkType, Timestamp};

use super::{Indexed, Need, Output, Unit, words};

const RECORD_HEADER: u32 = 24;

/// A snoop file being read.
#[derive(Debug)]
pub(crate) struct Snoop {
    link: LinkType,
}

impl Snoop {
    /// The first half of the identification pattern.
    pub(crate) const MAGIC: [u8; 4] = *b"snoo";
    pub(crate) const HEADER_BYTES: usize = 16;

    /// Reads the file header; fails where the pattern or the version differs.
    pub(crate) fn new(header: &[u8; Self::HEADER_BYTES]) -> Result<Self, String> {
        let [magic, more_magic, version, datalink] = words(header);
        if magic != Self::MAGIC || more_magic != *b"p\0\0\0" {
            return Err("not a capture: it begins like snoop, but not quite".to_owned());
        }
        let version = u32::from_be_bytes(version);
        if version != 2 {
            return Err(format!("snoop version {version}, of which only 2 is known"));
        }
        Ok(Self {
            // RFC 1761, datalink types.
            link: match u32::from_be_bytes(datalink) {
                0 | 4 => LinkType::ETHERNET,
                2 => LinkType(6),
                5 => LinkType(104),
                8 => LinkType(10),
                _ => LinkType(u16::MAX),
            },
        })
    }

    pub(crate) fn index(&mut self, data: &[u8], out: &mut Output<'_>) -> Indexed {
        let mut rest = data;
        let mut at = out.origin;
        let (unit, need) = loop {
            let Some((header, _)) = rest.split_first_chunk::<{ RECORD_HEADER as usize }>() else {
                let unit = Unit::whole("record header", u64::from(RECORD_HEADER));
                break (unit, Need::More);
            };
            let [wire, captured, record, _drops, seconds, micros] =
                words(header).map(u32::from_be_bytes);
            let unit = Unit::whole("record", u64::from(record));
            if captured > record.saturating_sub(RECORD_HEADER) || record < RECORD_HEADER {
                let message =
                    format!("record of {record} bytes announces {captured} captured bytes");
                break (unit, Need::Damaged(message));
            }
            // Padding is at most a few bytes; what is longer than a frame is no record.
            if record > out.max_frame.saturating_add(RECORD_HEADER + 16) {
                let message = format!(
                    "record announces {record} bytes where at most {} are possible",
                    out.max_frame
                );
                break (unit, Need::Damaged(message));
            }
            let Some((_, after)) = rest.split_at_checked(record as usize) else {
                break (unit, Need::More);
            };
            out.frames.push(FrameRef {
                timestamp: Timestamp::from_nanos(
                    u64::from(seconds) * 1_000_000_000 + u64::from(micros) * 1000,
                ),
                offset: at.wrapping_add(RECORD_HEADER),
                captured_len: captured,
                wire_len: wire.max(captured),
                link: self.link,
                interface: 0,
            });
            at = at.wrapping_add(record);
            rest = after;
        };
        Indexed {
            consumed: data.len() - rest.len(),
            unit,
            need,
        }
    }
}
