//! Classic pcap: both byte orders, both resolutions, and the modified format of A. Kuznetzov.
//!
//! Source: draft-ietf-opsawg-pcap; libpcap `savefile.c` for what old writers left behind.

use linkweir_engine::FrameRef;
use linkweir_wire::{LinkType, Timestamp};

use super::{Indexed, Need, Output, Unit, number, words};

/// A snapshot length beyond this is a lie; no link has such frames.
const SNAPLEN_BELIEVED: u32 = 128 << 20;

/// What the magic number says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Variant {
    big_endian: bool,
    /// Record headers of 24 bytes instead of 16.
    modified: bool,
    nanos_per_tick: u64,
}

/// A classic capture being read.
#[derive(Debug)]
pub(crate) struct Pcap {
    variant: Variant,
    link: LinkType,
    snaplen: u32,
    /// Writers before version 2.4 disagreed about which length comes first.
    old_lengths: bool,
}

impl Pcap {
    pub(crate) const HEADER_BYTES: usize = 24;

    /// Reads the magic number.
    pub(crate) const fn variant(magic: [u8; 4]) -> Option<Variant> {
        let big_endian = matches!(magic, [0xa1, ..]);
        let (modified, nanos_per_tick) = match if big_endian {
            u32::from_be_bytes(magic)
        } else {
            u32::from_le_bytes(magic)
        } {
            0xa1b2_c3d4 => (false, 1000),
            0xa1b2_3c4d => (false, 1),
            0xa1b2_cd34 => (true, 1000),
            _ => return None,
        };
        Some(Variant {
            big_endian,
            modified,
            nanos_per_tick,
        })
    }

    /// Reads the rest of the file header.
    pub(crate) fn new(variant: Variant, header: &[u8; Self::HEADER_BYTES]) -> Self {
        let [_, version, _, _, snaplen, network] = words(header);
        let order = if variant.big_endian {
            number::<true>
        } else {
            number::<false>
        };
        let [v0, v1, v2, v3] = version;
        let (major, minor) = if variant.big_endian {
            (u16::from_be_bytes([v0, v1]), u16::from_be_bytes([v2, v3]))
        } else {
            (u16::from_le_bytes([v0, v1]), u16::from_le_bytes([v2, v3]))
        };
        Self {
            variant,
            link: link_type(order(network)),
            snaplen: order(snaplen),
            old_lengths: major < 2 || (major == 2 && minor < 4),
        }
    }

    pub(crate) fn index(&mut self, data: &[u8], out: &mut Output<'_>) -> Indexed {
        match (self.variant.big_endian, self.variant.modified) {
            (false, false) => self.records::<false, 16, 4>(data, out),
            (true, false) => self.records::<true, 16, 4>(data, out),
            (false, true) => self.records::<false, 24, 6>(data, out),
            (true, true) => self.records::<true, 24, 6>(data, out),
        }
    }

    /// The loop over records; one copy per byte order and header length, so that it stays tight.
    fn records<const BIG: bool, const HEADER: usize, const WORDS: usize>(
        &self,
        data: &[u8],
        out: &mut Output<'_>,
    ) -> Indexed {
        let header_len = const { if HEADER == 16 { 16_u32 } else { 24 } };
        let mut rest = data;
        let mut at = out.origin;
        let (unit, need) = loop {
            let Some((header, body)) = rest.split_first_chunk::<HEADER>() else {
                break (Unit::whole("record header", HEADER as u64), Need::More);
            };
            let fields: [[u8; 4]; WORDS] = words(header);
            let Some(&[seconds, ticks, captured, wire]) = fields.first_chunk() else {
                // Never: a header has four words at least.
                break (Unit::whole("record header", HEADER as u64), Need::More);
            };
            let (mut captured, mut wire) = (number::<BIG>(captured), number::<BIG>(wire));
            if self.old_lengths && captured > wire {
                std::mem::swap(&mut captured, &mut wire);
            }
            if captured > out.max_frame {
                break self.overlong(captured, header_len, out);
            }
            let Some((_, after)) = body.split_at_checked(captured as usize) else {
                break (record(header_len, captured), Need::More);
            };
            out.frames.push(FrameRef {
                timestamp: Timestamp::from_nanos(
                    u64::from(number::<BIG>(seconds)) * 1_000_000_000
                        + u64::from(number::<BIG>(ticks)) * self.variant.nanos_per_tick,
                ),
                offset: at.wrapping_add(header_len),
                captured_len: captured,
                wire_len: wire.max(captured),
                link: self.link,
                interface: 0,
            });
            at = at.wrapping_add(header_len).wrapping_add(captured);
            rest = after;
        };
        Indexed {
            consumed: data.len() - rest.len(),
            unit,
            need,
        }
    }

    /// A record longer than we hold: believed where the file header announced such frames.
    #[cold]
    fn overlong(&self, captured: u32, header_len: u32, out: &mut Output<'_>) -> (Unit, Need) {
        let unit = record(header_len, captured);
        if captured <= self.snaplen.min(SNAPLEN_BELIEVED) {
            *out.unusable += 1;
            return (unit, Need::Skip(unit.total));
        }
        let message = format!(
            "record announces {captured} captured bytes where at most {} are possible",
            out.max_frame
        );
        (unit, Need::Damaged(message))
    }
}

const fn record(header_len: u32, captured: u32) -> Unit {
    Unit::whole("record", header_len as u64 + captured as u64)
}

/// The link type in the low bits; above them stand the length of the frame check sequence and its
/// flag, and a class that only NetBSD used.
fn link_type(network: u32) -> LinkType {
    LinkType(u16::try_from(network & 0x03ff_ffff).unwrap_or(u16::MAX))
}
