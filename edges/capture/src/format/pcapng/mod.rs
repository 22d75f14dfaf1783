//! pcapng: sections in either byte order, interfaces with their own link type and clock.
//!
//! Blocks without packets are stepped over unseen, whatever their length; only packet blocks are
//! held, and of those only headers and frame where the options behind them are long.
//! Source: draft-ietf-opsawg-pcapng, section numbers below.

mod interface;

use linkweir_engine::FrameRef;
use linkweir_wire::LinkType;

use super::{Indexed, Need, Output, Unit, number, words};
use interface::Interface;

/// Type and length in front of a block's body.
const BLOCK_HEADER: usize = 8;
/// The length again, behind it.
const TRAILER: u32 = 4;
const SHORTEST_BLOCK: u32 = 12;
/// No block that anyone writes is longer; a longer one is a corrupt length.
const LONGEST_BLOCK: u32 = 256 << 20;
/// Frames name their interface in 16 bits; descriptions beyond are not kept.
const MAX_INTERFACES: usize = 1 << 16;

const SECTION_HEADER: u32 = 0x0a0d_0d0a;
const INTERFACE_DESCRIPTION: u32 = 1;
const OBSOLETE_PACKET: u32 = 2;
const SIMPLE_PACKET: u32 = 3;
const ENHANCED_PACKET: u32 = 6;
const DECRYPTION_SECRETS: u32 = 10;
/// Secrets of this type are a TLS key log.
const TLS_KEY_LOG: u32 = 0x544c_534b;

/// A pcapng file being read.
#[derive(Debug)]
pub(crate) struct Pcapng {
    big_endian: bool,
    /// Interfaces of the current section.
    interfaces: Vec<Interface>,
    state: State,
}

/// Where in a block the next byte stands.
#[derive(Debug, Clone, Copy)]
enum State {
    /// At its first byte.
    Start,
    /// In the options of an interface description, with so many bytes left.
    Options { left: u32, total: u32 },
    /// In secrets, of which so many bytes are left, and so many of the block behind them.
    Secrets { left: u32, behind: u32, total: u32 },
    /// At the length behind it.
    Trailer { total: u32 },
}

/// What a block asks for after its header has been read.
enum Verdict {
    /// Go on: this many bytes are done with.
    Taken(usize),
    /// Stop here.
    Wait(Unit, Need),
}

impl Pcapng {
    pub(crate) const MAGIC: [u8; 4] = SECTION_HEADER.to_be_bytes();
    /// What [`Pcapng::detect`] looks at.
    pub(crate) const HEADER_BYTES: usize = 12;

    /// Whether these bytes begin a section; nothing where there are too few.
    pub(crate) fn detect(data: &[u8]) -> Option<bool> {
        let header: &[u8; Self::HEADER_BYTES] = data.first_chunk()?;
        let [kind, _, magic] = words(header);
        Some(kind == Self::MAGIC && is_big_endian(magic).is_some())
    }

    pub(crate) const fn new() -> Self {
        Self {
            big_endian: false,
            interfaces: Vec::new(),
            state: State::Start,
        }
    }

    pub(crate) fn index(&mut self, data: &[u8], out: &mut Output<'_>) -> Indexed {
        let origin = out.origin;
        let mut consumed = 0;
        loop {
            let rest = data.get(consumed..).unwrap_or_default();
            out.origin = origin.wrapping_add(u32::try_from(consumed).unwrap_or(u32::MAX));
            let verdict = match self.state {
                State::Start if self.big_endian => self.block::<true>(rest, out),
                State::Start => self.block::<false>(rest, out),
                State::Options { left, total } => self.option(rest, left, total),
                State::Secrets {
                    left,
                    behind,
                    total,
                } => self.secrets(rest, [left, behind], total, out),
                State::Trailer { total } => self.trailer(rest, total),
            };
            match verdict {
                Verdict::Taken(count) => consumed += count,
                Verdict::Wait(unit, need) => {
                    return Indexed {
                        consumed,
                        unit,
                        need,
                    };
                }
            }
        }
    }

    /// Takes one block from its beginning (sec. 3.1).
    fn block<const BIG: bool>(&mut self, rest: &[u8], out: &mut Output<'_>) -> Verdict {
        let Some((header, body)) = rest.split_first_chunk::<BLOCK_HEADER>() else {
            return Verdict::Wait(Unit::whole("block header", BLOCK_HEADER as u64), Need::More);
        };
        let [kind, length] = words(header);
        let (kind, total) = (number::<BIG>(kind), number::<BIG>(length));
        if kind == SECTION_HEADER {
            // Its length is in the byte order that only its magic tells.
            return self.section(length, body);
        }
        if let Some(fault) = check_length(kind, total) {
            return fault;
        }
        match kind {
            ENHANCED_PACKET => self.enhanced::<BIG>(rest, total, out),
            OBSOLETE_PACKET => self.obsolete::<BIG>(rest, total, out),
            SIMPLE_PACKET => self.simple::<BIG>(rest, total, out),
            INTERFACE_DESCRIPTION => self.interface::<BIG>(body, total),
            DECRYPTION_SECRETS => self.begin_secrets::<BIG>(body, total),
            _ => self.step_over(total, 0, "block"),
        }
    }

    /// Decryption secrets block (sec. 4.7): of a TLS key log its bytes follow piece by piece.
    fn begin_secrets<const BIG: bool>(&mut self, body: &[u8], total: u32) -> Verdict {
        const FIXED: u32 = 8;
        if total < SHORTEST_BLOCK + FIXED {
            return too_short("decryption secrets", total);
        }
        let Some(fields) = body.first_chunk::<{ FIXED as usize }>() else {
            let unit = Unit::whole("decryption secrets", u64::from(total));
            return Verdict::Wait(unit, Need::More);
        };
        let [kind, length] = words(fields).map(number::<BIG>);
        let room = total - SHORTEST_BLOCK - FIXED;
        if length > room {
            let message = format!("secrets of {length} bytes in a block with {room}");
            let unit = Unit::whole("decryption secrets", u64::from(total));
            return Verdict::Wait(unit, Need::Damaged(message));
        }
        if kind != TLS_KEY_LOG {
            return self.step_over(total, 0, "decryption secrets");
        }
        self.state = State::Secrets {
            left: length,
            behind: room - length,
            total,
        };
        Verdict::Taken(BLOCK_HEADER + FIXED as usize)
    }

    /// The next bytes of a key log; behind the last stand padding and options.
    fn secrets(
        &mut self,
        rest: &[u8],
        [left, behind]: [u32; 2],
        total: u32,
        out: &Output<'_>,
    ) -> Verdict {
        let unit = Unit {
            what: "decryption secrets",
            total: u64::from(total),
            back: u64::from(total - TRAILER - behind - left),
        };
        if left == 0 {
            out.secrets.take(&[]);
            self.state = State::Trailer { total };
            if rest.len() >= behind as usize {
                return Verdict::Taken(behind as usize);
            }
            return Verdict::Wait(unit, Need::Skip(u64::from(behind)));
        }
        if rest.is_empty() {
            return Verdict::Wait(unit, Need::More);
        }
        let taken = rest.get(..left as usize).unwrap_or(rest);
        out.secrets.take(taken);
        let len = u32::try_from(taken.len()).unwrap_or(left);
        self.state = State::Secrets {
            left: left - len,
            behind,
            total,
        };
        Verdict::Taken(taken.len())
    }

    /// Section header block (sec. 4.1): byte order, and the interfaces begin anew.
    fn section(&mut self, length: [u8; 4], body: &[u8]) -> Verdict {
        const FIXED: u32 = 28;
        let Some(fields) = body.first_chunk::<8>() else {
            return Verdict::Wait(Unit::whole("section header", u64::from(FIXED)), Need::More);
        };
        let [magic, version] = words(fields);
        let whole = Unit::whole("section header", u64::from(FIXED));
        let Some(big_endian) = is_big_endian(magic) else {
            let message = "section header without a byte-order magic".to_owned();
            return Verdict::Wait(whole, Need::Damaged(message));
        };
        let [v0, v1, _, _] = version;
        let (total, major) = if big_endian {
            (u32::from_be_bytes(length), u16::from_be_bytes([v0, v1]))
        } else {
            (u32::from_le_bytes(length), u16::from_le_bytes([v0, v1]))
        };
        if let Some(fault) = check_length(SECTION_HEADER, total) {
            return fault;
        }
        if total < FIXED {
            return too_short("section header", total);
        }
        if major != 1 {
            let message = format!("section of version {major}, of which only 1 is known");
            return Verdict::Wait(whole, Need::Damaged(message));
        }
        self.big_endian = big_endian;
        self.interfaces.clear();
        self.step_over(total, 0, "section header")
    }

    /// Interface description block (sec. 4.2); its options follow one by one.
    fn interface<const BIG: bool>(&mut self, body: &[u8], total: u32) -> Verdict {
        const FIXED: u32 = 8;
        if total < SHORTEST_BLOCK + FIXED {
            return too_short("interface description", total);
        }
        let Some(fields) = body.first_chunk::<{ FIXED as usize }>() else {
            let unit = Unit::whole("interface description", u64::from(total));
            return Verdict::Wait(unit, Need::More);
        };
        let [link, snaplen] = words(fields);
        let [l0, l1, _, _] = link;
        let link = if BIG {
            u16::from_be_bytes([l0, l1])
        } else {
            u16::from_le_bytes([l0, l1])
        };
        if self.interfaces.len() < MAX_INTERFACES {
            self.interfaces
                .push(Interface::new(LinkType(link), number::<BIG>(snaplen)));
        }
        self.state = State::Options {
            left: total - SHORTEST_BLOCK - FIXED,
            total,
        };
        Verdict::Taken(BLOCK_HEADER + FIXED as usize)
    }

    /// One option of an interface description (sec. 3.5).
    fn option(&mut self, rest: &[u8], left: u32, total: u32) -> Verdict {
        const OPTION_HEADER: u32 = 4;
        let back = u64::from(total - TRAILER - left);
        let unit = Unit {
            what: "interface description",
            total: u64::from(total),
            back,
        };
        if left < OPTION_HEADER {
            self.state = State::Trailer { total };
            return Verdict::Taken(0);
        }
        let Some((header, value)) = rest.split_first_chunk::<{ OPTION_HEADER as usize }>() else {
            return Verdict::Wait(unit, Need::More);
        };
        let [c0, c1, l0, l1] = *header;
        let (code, length) = if self.big_endian {
            (u16::from_be_bytes([c0, c1]), u16::from_be_bytes([l0, l1]))
        } else {
            (u16::from_le_bytes([c0, c1]), u16::from_le_bytes([l0, l1]))
        };
        let padded = u32::from(length).next_multiple_of(4);
        let Some(after) = left.checked_sub(OPTION_HEADER + padded) else {
            let message = format!("option of {length} bytes in a block with {left} left");
            return Verdict::Wait(unit, Need::Damaged(message));
        };
        let done = (OPTION_HEADER + padded) as usize;
        // Nothing is kept of a description beyond the 65,536th.
        if Interface::knows(code, length) && self.interfaces.len() < MAX_INTERFACES {
            let Some(value) = value.get(..padded as usize) else {
                return Verdict::Wait(unit, Need::More);
            };
            if let Some(interface) = self.interfaces.last_mut() {
                interface.set(code, value, self.big_endian);
            }
        }
        self.state = State::Options { left: after, total };
        if rest.len() >= done {
            return Verdict::Taken(done);
        }
        Verdict::Wait(unit, Need::Skip(done as u64))
    }

    /// Enhanced packet block (sec. 4.3).
    fn enhanced<const BIG: bool>(
        &mut self,
        rest: &[u8],
        total: u32,
        out: &mut Output<'_>,
    ) -> Verdict {
        const FIXED: usize = 28;
        let Some(header) = rest.first_chunk::<FIXED>() else {
            return self.wait_for_packet(total, FIXED);
        };
        let fields: [[u8; 4]; 7] = words(header);
        let [_, _, id, high, low, captured, wire] = fields.map(number::<BIG>);
        let packet = Packet {
            fixed: FIXED,
            id,
            stamp: u64::from(high) << 32 | u64::from(low),
            captured,
            wire,
        };
        self.packet::<BIG>(rest, total, &packet, out)
    }

    /// Packet block, obsolete (appendix A): the interface has 16 bits, drops stand beside it.
    fn obsolete<const BIG: bool>(
        &mut self,
        rest: &[u8],
        total: u32,
        out: &mut Output<'_>,
    ) -> Verdict {
        const FIXED: usize = 28;
        let Some(header) = rest.first_chunk::<FIXED>() else {
            return self.wait_for_packet(total, FIXED);
        };
        let [_, _, [i0, i1, _, _], high, low, captured, wire] = words(header);
        let id = if BIG {
            u16::from_be_bytes([i0, i1])
        } else {
            u16::from_le_bytes([i0, i1])
        };
        let packet = Packet {
            fixed: FIXED,
            id: u32::from(id),
            stamp: u64::from(number::<BIG>(high)) << 32 | u64::from(number::<BIG>(low)),
            captured: number::<BIG>(captured),
            wire: number::<BIG>(wire),
        };
        self.packet::<BIG>(rest, total, &packet, out)
    }

    /// Simple packet block (sec. 4.4): interface 0, no time, length from the snapshot length.
    fn simple<const BIG: bool>(
        &mut self,
        rest: &[u8],
        total: u32,
        out: &mut Output<'_>,
    ) -> Verdict {
        const FIXED: usize = 12;
        let Some(header) = rest.first_chunk::<FIXED>() else {
            return self.wait_for_packet(total, FIXED);
        };
        let [_, _, wire] = words(header);
        let wire = number::<BIG>(wire);
        let snaplen = self.interfaces.first().map_or(0, |first| first.snaplen);
        let captured = if snaplen == 0 {
            wire
        } else {
            wire.min(snaplen)
        };
        let packet = Packet {
            fixed: FIXED,
            id: 0,
            stamp: 0,
            // Writers that cut without saying so leave less than announced.
            captured: captured.min(total.saturating_sub(SHORTEST_BLOCK + TRAILER)),
            wire,
        };
        self.packet::<BIG>(rest, total, &packet, out)
    }

    /// A packet block whose fixed part has not arrived, or never will.
    fn wait_for_packet(&self, total: u32, fixed: usize) -> Verdict {
        if (total as usize) < fixed + TRAILER as usize {
            return too_short("packet block", total);
        }
        Verdict::Wait(Unit::whole("packet block", u64::from(total)), Need::More)
    }

    /// The common end of packet blocks: the frame, and the length behind it.
    fn packet<const BIG: bool>(
        &mut self,
        rest: &[u8],
        total: u32,
        packet: &Packet,
        out: &mut Output<'_>,
    ) -> Verdict {
        let unit = Unit::whole("packet block", u64::from(total));
        let Some(room) = (total as usize).checked_sub(packet.fixed + TRAILER as usize) else {
            return too_short("packet block", total);
        };
        if packet.captured as usize > room {
            let message = format!(
                "packet block of {total} bytes announces {} captured bytes",
                packet.captured
            );
            return Verdict::Wait(unit, Need::Damaged(message));
        }
        let interface = u16::try_from(packet.id)
            .ok()
            .and_then(|id| Some((id, self.interfaces.get(usize::from(id))?)));
        let Some((id, interface)) = interface.filter(|_| packet.captured <= out.max_frame) else {
            *out.unusable += 1;
            return self.step_over(total, 0, "packet block");
        };
        let frame = FrameRef {
            timestamp: interface.timestamp(packet.stamp),
            offset: out
                .origin
                .wrapping_add(u32::try_from(packet.fixed).unwrap_or(0)),
            captured_len: packet.captured,
            wire_len: packet.wire.max(packet.captured),
            link: interface.link,
            interface: id,
        };
        // Options may be longer than what is held; a block that fits is checked before its frame
        // counts, one that does not gives the frame as soon as that is complete.
        if u64::from(total) > u64::from(out.max_frame) + SMALL_OPTIONS {
            let held = packet.fixed + packet.captured as usize;
            if rest.len() < held {
                return Verdict::Wait(unit, Need::More);
            }
            out.frames.push(frame);
            self.state = State::Trailer { total };
            return self.advance(rest, held, total, "packet block");
        }
        let Some((block, _)) = rest.split_at_checked(total as usize) else {
            return Verdict::Wait(unit, Need::More);
        };
        if let Some(trailer) = block.last_chunk()
            && number::<BIG>(*trailer) == total
        {
            out.frames.push(frame);
            return Verdict::Taken(total as usize);
        }
        lengths_differ(
            unit,
            total,
            block.last_chunk().map_or(0, |t| number::<BIG>(*t)),
        )
    }

    /// Goes to the length behind a block of which `done` bytes are dealt with.
    fn step_over(&mut self, total: u32, done: usize, what: &'static str) -> Verdict {
        self.state = State::Trailer { total };
        self.advance(&[], done, total, what)
    }

    fn advance(&self, rest: &[u8], done: usize, total: u32, what: &'static str) -> Verdict {
        let body = u64::from(total - TRAILER);
        if rest.len() as u64 >= body {
            return Verdict::Taken(usize::try_from(body).unwrap_or(done));
        }
        Verdict::Wait(Unit::whole(what, u64::from(total)), Need::Skip(body))
    }

    /// Checks the length behind a block that was stepped over.
    fn trailer(&mut self, rest: &[u8], total: u32) -> Verdict {
        let unit = Unit {
            what: "block",
            total: u64::from(total),
            back: u64::from(total - TRAILER),
        };
        let Some(trailer) = rest.first_chunk() else {
            return Verdict::Wait(unit, Need::More);
        };
        let found = if self.big_endian {
            number::<true>(*trailer)
        } else {
            number::<false>(*trailer)
        };
        if found != total {
            return lengths_differ(unit, total, found);
        }
        self.state = State::Start;
        Verdict::Taken(TRAILER as usize)
    }
}

/// Options that a held packet block may carry besides its frame and headers.
const SMALL_OPTIONS: u64 = 200;

/// What packet blocks have in common.
struct Packet {
    /// Bytes in front of the frame.
    fixed: usize,
    id: u32,
    stamp: u64,
    captured: u32,
    wire: u32,
}

/// The byte order a section header's magic tells (sec. 4.1).
const fn is_big_endian(magic: [u8; 4]) -> Option<bool> {
    match magic {
        [0x1a, 0x2b, 0x3c, 0x4d] => Some(true),
        [0x4d, 0x3c, 0x2b, 0x1a] => Some(false),
        _ => None,
    }
}

fn check_length(kind: u32, total: u32) -> Option<Verdict> {
    let message = if total < SHORTEST_BLOCK {
        format!(
            "block of type {kind:#x} announces {total} bytes where {SHORTEST_BLOCK} is the least"
        )
    } else if !total.is_multiple_of(4) {
        format!("block of type {kind:#x} announces {total} bytes, which is not a multiple of 4")
    } else if total > LONGEST_BLOCK {
        format!("block of type {kind:#x} announces {total} bytes where {LONGEST_BLOCK} is the most")
    } else {
        return None;
    };
    Some(Verdict::Wait(
        Unit::whole("block", u64::from(total)),
        Need::Damaged(message),
    ))
}

fn too_short(what: &'static str, total: u32) -> Verdict {
    let message = format!("{what} of {total} bytes is too short for its fields");
    Verdict::Wait(Unit::whole(what, u64::from(total)), Need::Damaged(message))
}

fn lengths_differ(unit: Unit, total: u32, found: u32) -> Verdict {
    let message = format!("block length is {total} in front and {found} behind");
    Verdict::Wait(unit, Need::Damaged(message))
}
