//! ERF, the record format of Endace DAG cards. It has no file header and no magic number.
//!
//! Source: Endace, "ERF types reference guide" (EDM11-01).

use linkweir_engine::FrameRef;
use linkweir_wire::{LinkType, Timestamp};

use super::{Indexed, Need, Output, Unit};

const HEADER: usize = 16;
const HEADER_BYTES: u32 = 16;
const EXTENSION: usize = 8;
/// Records looked at before bytes without a magic number are taken for ERF.
const PLAUSIBLE_RECORDS: u32 = 3;
/// Sorted captures jump by days where a trace was idle, not by decades: what separates time stamps
/// from arbitrary bytes.
const PLAUSIBLE_JUMP_SECONDS: u64 = 30 * 86_400;

/// An ERF file being read. The state is nothing: each record stands for itself.
#[derive(Debug)]
pub(crate) struct Erf;

/// The fixed part of a record.
struct Record {
    /// Seconds and a binary fraction of 32 bits.
    stamp: u64,
    kind: u8,
    extended: bool,
    interface: u16,
    /// Whole record.
    record_len: u16,
    wire_len: u16,
}

impl Record {
    fn parse(header: &[u8; HEADER]) -> Self {
        let [
            t0,
            t1,
            t2,
            t3,
            t4,
            t5,
            t6,
            t7,
            kind,
            flags,
            r0,
            r1,
            _,
            _,
            w0,
            w1,
        ] = *header;
        Self {
            // The only little-endian field of the format.
            stamp: u64::from_le_bytes([t0, t1, t2, t3, t4, t5, t6, t7]),
            kind: kind & 0x7f,
            extended: kind & 0x80 != 0,
            interface: u16::from(flags & 0x03),
            record_len: u16::from_be_bytes([r0, r1]),
            wire_len: u16::from_be_bytes([w0, w1]),
        }
    }

    const fn is_plausible(&self) -> bool {
        matches!(self.kind, 1..=29 | 48)
            && self.record_len as usize >= HEADER
            && (self.stamp >> 32) != 0
    }

    /// Bytes between the headers and the frame, and what the frame is.
    fn payload(&self, first: Option<&u8>) -> Option<(usize, LinkType)> {
        /// Cisco HDLC.
        const C_HDLC: LinkType = LinkType(104);
        /// Frame relay.
        const FRAME_RELAY: LinkType = LinkType(107);
        let hdlc = |first: Option<&u8>| match first {
            // Address bytes: all stations of PPP (RFC 1662 sec. 3.1), unicast and multicast of Cisco.
            Some(0xff) => LinkType::PPP_HDLC,
            Some(0x0f | 0x8f) => C_HDLC,
            _ => FRAME_RELAY,
        };
        match self.kind {
            // Offset and padding, so that the IP header is aligned.
            2 | 11 | 16 | 20 => Some((2, LinkType::ETHERNET)),
            1 | 5 | 10 | 15 | 17 | 19 => Some((0, hdlc(first))),
            22 => Some((0, LinkType::IPV4)),
            23 => Some((0, LinkType::IPV6)),
            _ => None,
        }
    }

    /// Multi-channel HDLC carries a header of four bytes in front of the frame.
    const fn channel_header(&self) -> usize {
        if matches!(self.kind, 5 | 17) { 4 } else { 0 }
    }

    /// Records about the capture or for padding are no packets that could be missed.
    const fn is_packet(&self) -> bool {
        !matches!(self.kind, 13 | 14 | 27 | 48)
    }
}

impl Erf {
    pub(crate) const fn new() -> Self {
        Self
    }

    /// Whether these bytes are ERF; nothing where more are needed to tell.
    pub(crate) fn detect(data: &[u8], ended: bool, named: bool) -> Option<bool> {
        let wanted = if named { 1 } else { PLAUSIBLE_RECORDS };
        let mut rest = data;
        let mut last = None;
        for seen in 0..wanted {
            // One whole record, and the file is over: a short capture.
            if seen > 0 && ended && rest.is_empty() {
                return Some(true);
            }
            let Some((header, _)) = rest.split_first_chunk::<HEADER>() else {
                return ended.then_some(false);
            };
            let record = Record::parse(header);
            let seconds = record.stamp >> 32;
            let near =
                last.is_none_or(|last: u64| seconds.abs_diff(last) <= PLAUSIBLE_JUMP_SECONDS);
            if !record.is_plausible() || !near {
                return Some(false);
            }
            last = Some(seconds);
            match rest.split_at_checked(usize::from(record.record_len)) {
                Some((_, after)) => rest = after,
                None if named => return Some(true),
                None => return ended.then_some(false),
            }
        }
        Some(true)
    }

    pub(crate) fn index(&mut self, data: &[u8], out: &mut Output<'_>) -> Indexed {
        let mut rest = data;
        let mut at = out.origin;
        let (unit, need) = loop {
            let Some((header, _)) = rest.split_first_chunk::<HEADER>() else {
                break (Unit::whole("record header", HEADER as u64), Need::More);
            };
            let record = Record::parse(header);
            let unit = Unit::whole("record", u64::from(record.record_len));
            if usize::from(record.record_len) < HEADER {
                let message = format!(
                    "record announces {} bytes, less than its header",
                    record.record_len
                );
                break (unit, Need::Damaged(message));
            }
            if u32::from(record.record_len) > out.max_frame.saturating_add(HEADER_BYTES) {
                *out.unusable += 1;
                break (unit, Need::Skip(unit.total));
            }
            let Some((whole, after)) = rest.split_at_checked(usize::from(record.record_len)) else {
                break (unit, Need::More);
            };
            match frame(&record, whole) {
                Some((start, captured, link)) => out.frames.push(FrameRef {
                    timestamp: Timestamp::from_nanos(nanos(record.stamp)),
                    offset: at.wrapping_add(u32::from(start)),
                    captured_len: u32::from(captured),
                    wire_len: u32::from(record.wire_len.max(captured)),
                    link,
                    interface: record.interface,
                }),
                None => *out.unusable += u64::from(record.is_packet()),
            }
            at = at.wrapping_add(u32::from(record.record_len));
            rest = after;
        };
        Indexed {
            consumed: data.len() - rest.len(),
            unit,
            need,
        }
    }
}

/// Where the frame stands in its record, how long it is, and what it is.
fn frame(record: &Record, whole: &[u8]) -> Option<(u16, u16, LinkType)> {
    let mut start = HEADER;
    let mut more = record.extended;
    while more {
        more = whole.get(start)? & 0x80 != 0;
        start += EXTENSION;
    }
    start += record.channel_header();
    let (padding, link) = record.payload(whole.get(start))?;
    start += padding;
    let present = whole.len().checked_sub(start)?;
    // Records are padded to a multiple of eight; the wire length tells where the frame ends.
    let captured = present.min(usize::from(record.wire_len));
    Some((
        u16::try_from(start).ok()?,
        u16::try_from(captured).ok()?,
        link,
    ))
}

/// Fixed point to nanoseconds, rounded down.
const fn nanos(stamp: u64) -> u64 {
    let fraction = stamp & 0xffff_ffff;
    (stamp >> 32) * 1_000_000_000 + ((fraction * 1_000_000_000) >> 32)
}
