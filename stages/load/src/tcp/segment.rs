//! A segment that was heard, with its options read.

use linkweir_wire::tcp::SackBlocks;
use linkweir_wire::{SeqNumber, Tcp, TcpFlags, TcpOption};

/// The fields of a segment.
#[derive(Debug, Clone, Copy)]
pub(super) struct Segment<'a> {
    pub(super) seq: SeqNumber,
    pub(super) ack: SeqNumber,
    pub(super) flags: TcpFlags,
    /// As it stands, unscaled.
    pub(super) window: u16,
    /// What was captured of the payload.
    pub(super) payload: &'a [u8],
    /// Bytes of payload on the wire.
    pub(super) payload_len: u32,
    pub(super) mss: Option<u16>,
    pub(super) window_scale: Option<u8>,
    pub(super) sack_permitted: bool,
    /// Value and echo.
    pub(super) timestamps: Option<(u32, u32)>,
    pub(super) sack: Option<SackBlocks<'a>>,
}

impl<'a> Segment<'a> {
    pub(super) fn read(tcp: &Tcp<'a>) -> Self {
        let mut segment = Self {
            seq: tcp.seq(),
            ack: tcp.ack(),
            flags: tcp.flags(),
            window: tcp.window(),
            payload: tcp.payload,
            payload_len: tcp.payload_len,
            mss: None,
            window_scale: None,
            sack_permitted: false,
            timestamps: None,
            sack: None,
        };
        // The one option of nearly every segment, aligned as RFC 7323 appendix A lays it out.
        if let &[1, 1, 8, 10, a, b, c, d, e, f, g, h] = tcp.options {
            let value = u32::from_be_bytes([a, b, c, d]);
            segment.timestamps = Some((value, u32::from_be_bytes([e, f, g, h])));
            return segment;
        }
        for option in tcp.options() {
            match option {
                TcpOption::MaximumSegmentSize(mss) => segment.mss = Some(mss),
                TcpOption::WindowScale(scale) => segment.window_scale = Some(scale.min(14)),
                TcpOption::SackPermitted => segment.sack_permitted = true,
                TcpOption::Timestamps { value, echo } => segment.timestamps = Some((value, echo)),
                TcpOption::Sack(blocks) => segment.sack = Some(blocks),
                _ => {}
            }
        }
        segment
    }

    pub(super) const fn has(&self, flag: TcpFlags) -> bool {
        self.flags.contains(flag)
    }

    /// `SEG.LEN`.
    pub(super) fn len(&self) -> u32 {
        self.payload_len
            .saturating_add(u32::from(self.has(TcpFlags::SYN)))
            .saturating_add(u32::from(self.has(TcpFlags::FIN)))
    }
}
