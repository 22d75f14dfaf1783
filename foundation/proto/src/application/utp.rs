//! uTP (BEP 29), the transport of BitTorrent over UDP.
//!
//! Its header has no mark. A connection shows by its opening (a SYN with sequence number 1, and an
//! answer with its identifier), or by packets whose identifiers and times agree.

use super::bytes::{be16, be32, byte};
use super::udp_memory::{Candidate, UdpMemory};
use super::{Application, Verdict};

const HEADER: usize = 20;
/// Packets that must agree where the opening was not seen.
const PACKETS: u8 = 4;
/// Most microseconds between two packets of one direction.
const PAUSE_US: u32 = 10_000_000;

#[derive(Clone, Copy, PartialEq, Eq)]
struct Packet {
    is_syn: bool,
    connection: u16,
    time_us: u32,
}

fn packet(datagram: &[u8]) -> Option<Packet> {
    let first = byte(datagram, 0)?;
    let extension = byte(datagram, 1)?;
    let (kind, version) = (first >> 4, first & 0xF);
    if datagram.len() < HEADER || version != 1 || kind > 4 || extension > 2 {
        return None;
    }
    // A chain of extensions: the next one, the length, the bytes.
    let mut next = extension;
    let mut at = HEADER;
    while next != 0 {
        next = byte(datagram, at)?;
        let length = byte(datagram, at + 1)?;
        if next > 3 || !matches!(length, 4 | 8 | 12 | 16 | 20 | 24 | 28 | 32) {
            return None;
        }
        at += 2 + usize::from(length);
    }
    let is_syn = kind == 4;
    let payload = datagram.len().checked_sub(at)?;
    let (difference, window) = (be32(datagram, 8)?, be32(datagram, 12)?);
    let (sequence, ack) = (be16(datagram, 16)?, be16(datagram, 18)?);
    let is_sane = match kind {
        // Data, and the end.
        0 => payload > 0,
        1 => true,
        2 => payload == 0,
        3 => true,
        _ => sequence == 1 && ack == 0 && difference == 0 && payload == 0,
    };
    let connection = be16(datagram, 2)?;
    let time_us = be32(datagram, 4)?;
    (is_sane && window <= 1 << 26 && time_us != 0).then_some(Packet {
        is_syn,
        connection,
        time_us,
    })
}

/// One more datagram of a flow that may be uTP.
pub(super) fn utp(datagram: &[u8], is_from_client: bool, memory: &mut UdpMemory) -> Verdict {
    let Some(packet) = packet(datagram) else {
        return Verdict::No;
    };
    if memory.candidate != Candidate::Utp {
        let kind = u8::from(packet.is_syn);
        memory.begin(
            Candidate::Utp,
            is_from_client,
            packet.time_us,
            packet.connection,
            kind,
        );
        return Verdict::More;
    }
    let is_same_side = memory.is_from_client == is_from_client;
    let distance = packet.connection.wrapping_sub(memory.sequence);
    if is_same_side {
        let is_later = packet.time_us.wrapping_sub(memory.number) <= PAUSE_US;
        if packet.is_syn && distance == 0 && memory.kind == 1 {
            // Once more.
            return Verdict::More;
        }
        if !is_later || distance > 1 {
            let kind = u8::from(packet.is_syn);
            memory.begin(
                Candidate::Utp,
                is_from_client,
                packet.time_us,
                packet.connection,
                kind,
            );
            return Verdict::More;
        }
        memory.number = packet.time_us;
    } else if memory.kind == 1 && distance == 0 && !packet.is_syn {
        // The answer to a SYN carries its identifier.
        return Verdict::Is(Application::Utp);
    } else if !(distance == 1 || distance == u16::MAX) {
        // One side's identifier is one more than the other's.
        return Verdict::No;
    } else {
        memory.votes += 1;
    }
    memory.votes += 1;
    if memory.votes >= PACKETS {
        Verdict::Is(Application::Utp)
    } else {
        Verdict::More
    }
}
