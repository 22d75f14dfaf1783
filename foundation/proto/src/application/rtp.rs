//! RTP and RTCP (RFC 3550).
//!
//! A report says what it is; a packet of media does not: 2 bits of version and a payload type in use
//! fit one datagram in ten. So it takes three of one direction with the same source (32 bits) and
//! payload type, and sequence numbers that go up.

use super::bytes::{be16, be32, byte};
use super::udp_memory::{Candidate, UdpMemory};
use super::{Application, Verdict, View};

/// Packets of one source that must agree.
const PACKETS: u8 = 3;
/// Sequence numbers that may be lost between two packets.
const GAP: u16 = 64;

/// Compound packets (RFC 3550 section 6.1): a sender's or receiver's report first, and lengths that
/// fill the datagram.
pub(super) fn rtcp(datagram: &[u8]) -> Verdict {
    let (Some(first), Some(kind), Some(words)) =
        (byte(datagram, 0), byte(datagram, 1), be16(datagram, 2))
    else {
        return Verdict::No;
    };
    let reports = u16::from(first & 0x1F);
    let is_report = match kind {
        200 => words >= 6 + 6 * reports,
        201 => words > 6 * reports,
        _ => false,
    };
    if first >> 6 != 2 || !is_report || words > 256 {
        return Verdict::No;
    }
    let mut rest = datagram;
    let mut packets = 0;
    while let (Some(first), Some(kind), Some(words)) = (byte(rest, 0), byte(rest, 1), be16(rest, 2))
    {
        if first >> 6 != 2 || !matches!(kind, 200..=207) {
            break;
        }
        packets += 1;
        match rest.get(4 + 4 * usize::from(words)..) {
            Some(next) => rest = next,
            None => return Verdict::No,
        }
    }
    // Behind reports that are encrypted stand an index and a tag (RFC 3711 section 3.4), 14 bytes.
    let is_filled = rest.is_empty() || packets > 0 && rest.len() <= 20 && rest.len() >= 8;
    // A report without source descriptions and without reports is 8 bytes: the source is not zero.
    Verdict::when(
        is_filled && be32(datagram, 4).is_some_and(|source| source != 0),
        Application::Rtcp,
    )
}

/// Whether the datagram has the shape of RTP: source, sequence number, payload type.
fn packet(datagram: &[u8]) -> Option<(u32, u16, u8)> {
    const HEADER: usize = 12;
    let first = byte(datagram, 0)?;
    let kind = byte(datagram, 1)? & 0x7F;
    let sources = usize::from(first & 0xF);
    // Static types of RFC 3551 section 6 that are assigned, dynamic ones, and comfort noise.
    let is_type = matches!(kind, 0 | 3..=18 | 25..=26 | 28 | 31..=34 | 96..=127);
    let source = be32(datagram, 8)?;
    let is_packet = first >> 6 == 2
        && is_type
        && source != 0
        && source != u32::MAX
        && datagram.len() > HEADER + 4 * sources;
    is_packet.then_some((source, be16(datagram, 2)?, kind))
}

/// One more datagram of a flow that may be RTP.
pub(super) fn rtp(datagram: &[u8], is_from_client: bool, memory: &mut UdpMemory) -> Verdict {
    let Some((source, sequence, kind)) = packet(datagram) else {
        return Verdict::No;
    };
    if memory.candidate != Candidate::Rtp {
        memory.begin(Candidate::Rtp, is_from_client, source, sequence, kind);
        return Verdict::More;
    }
    if memory.is_from_client != is_from_client {
        return Verdict::More;
    }
    let step = sequence.wrapping_sub(memory.sequence);
    if step == 0 && memory.number == source {
        // Captured twice, or sent twice.
        return Verdict::More;
    }
    let is_next = memory.number == source
        && (1..=GAP).contains(&step)
        // Comfort noise (13) and events of telephones come between.
        && (memory.kind == kind || kind == 13 || (96..=127).contains(&kind));
    if !is_next {
        memory.begin(Candidate::Rtp, is_from_client, source, sequence, kind);
        return Verdict::More;
    }
    memory.sequence = sequence;
    memory.votes += 1;
    if memory.votes >= PACKETS {
        Verdict::Is(Application::Rtp)
    } else {
        Verdict::More
    }
}

/// Packets over TCP, each with its length in front (RFC 4571 section 2): the order is kept, so two of
/// one source whose numbers follow each other are enough.
pub(super) fn tcp(view: &View<'_>) -> Verdict {
    let mut rest = view.own;
    let mut last: Option<(u32, u16)> = None;
    let mut frames = 0;
    while let Some(length) = be16(rest, 0).map(usize::from) {
        let behind = rest.get(2..).unwrap_or_default();
        let frame = behind.get(..length).unwrap_or(behind);
        if let Some((source, sequence, _)) = packet(frame) {
            if last == Some((source, sequence.wrapping_sub(1))) {
                return Verdict::Is(Application::Rtp);
            }
            last = Some((source, sequence));
        } else if frame.len() > 12 && rtcp(frame) != Verdict::Is(Application::Rtcp) {
            return Verdict::No;
        }
        frames += 1;
        // An empty frame keeps the connection.
        match behind.get(length..) {
            Some(next) if frames < 16 => rest = next,
            _ => break,
        }
    }
    if last.is_some() {
        Verdict::More
    } else {
        Verdict::No
    }
}
