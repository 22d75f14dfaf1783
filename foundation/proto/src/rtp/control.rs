//! Compound packets of RTCP: sender's and receiver's reports.

/// Bytes of the header of each packet.
const HEADER: usize = 4;
/// Bytes of a sender's part of its report.
const SENDER: usize = 20;
/// Bytes of a report on one source.
const BLOCK: usize = 24;

/// A compound packet: the payload of a datagram.
///
/// Source: RFC 3550 section 6.1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Compound<'a> {
    bytes: &'a [u8],
}

/// One packet of a compound.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Control<'a> {
    /// Packet type: 200 sender's report, 201 receiver's report, 202 source description, 203 goodbye.
    pub kind: u8,
    /// Who sent it: the first source named; zero where there is none.
    pub source: u32,
    /// What the sender says of its own media, in a sender's report.
    pub sender: Option<SenderInfo>,
    /// What it says of what it received.
    pub blocks: Blocks<'a>,
}

/// What a sender says of its media (RFC 3550 section 6.4.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SenderInfo {
    /// The middle 32 bits of its clock (NTP): what the receiver repeats as the last report.
    pub ntp_middle: u32,
    /// The time of the report in units of the media's clock.
    pub timestamp: u32,
    /// Packets sent since it began.
    pub packets: u32,
    /// Payload bytes sent since it began.
    pub bytes: u32,
}

/// What a receiver says of one source (RFC 3550 section 6.4.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Block {
    /// The source that it is on.
    pub source: u32,
    /// Share lost since the report before, in 1/256.
    pub fraction_lost: u8,
    /// Packets lost since it began; duplicates make it smaller, even negative.
    pub lost: i32,
    /// Interarrival jitter, in units of the media's clock.
    pub jitter: u32,
    /// The middle 32 bits of the clock of the last sender's report received; zero: none.
    pub last_report: u32,
    /// Time since then, in 1/65536 s.
    pub delay: u32,
}

impl<'a> Compound<'a> {
    /// The compound that the payload of a datagram is.
    ///
    /// `None` where its packets do not fill it exactly: then it was cut, or its reports are encrypted
    /// (RFC 3711 section 3.4), of which nothing can be read.
    #[must_use]
    pub fn parse(bytes: &'a [u8]) -> Option<Self> {
        let mut rest = bytes;
        loop {
            let (_, _, behind) = split(rest)?;
            if behind.is_empty() {
                return Some(Self { bytes });
            }
            rest = behind;
        }
    }

    /// Its packets, in order.
    pub fn packets(self) -> impl Iterator<Item = Control<'a>> {
        let mut rest = self.bytes;
        std::iter::from_fn(move || {
            let (header, body, behind) = split(rest)?;
            rest = behind;
            Some(Control::read(header, body))
        })
    }
}

/// First two bytes, the rest of the packet, and what follows it.
fn split(bytes: &[u8]) -> Option<([u8; 2], &[u8], &[u8])> {
    let &[first, kind, high, low] = bytes.first_chunk::<HEADER>()?;
    if first >> 6 != 2 || !(192..=223).contains(&kind) {
        return None;
    }
    let len = 4 * usize::from(u16::from_be_bytes([high, low]));
    let behind = bytes.get(HEADER..)?;
    let (body, behind) = behind.split_at_checked(len)?;
    Some(([first, kind], body, behind))
}

fn word(bytes: &[u8], at: usize) -> Option<u32> {
    let bytes = bytes.get(at..)?.first_chunk::<4>()?;
    Some(u32::from_be_bytes(*bytes))
}

impl<'a> Control<'a> {
    fn read([first, kind]: [u8; 2], body: &'a [u8]) -> Self {
        let reports = body.get(4..).unwrap_or_default();
        let sender = (kind == 200).then(|| SenderInfo::read(reports)).flatten();
        let blocks = match kind {
            200 => reports.get(SENDER..).unwrap_or_default(),
            201 => reports,
            _ => &[],
        };
        Self {
            kind,
            source: word(body, 0).unwrap_or_default(),
            sender,
            blocks: Blocks {
                rest: blocks,
                left: first & 0x1F,
            },
        }
    }
}

impl SenderInfo {
    fn read(bytes: &[u8]) -> Option<Self> {
        let (seconds, fraction) = (word(bytes, 0)?, word(bytes, 4)?);
        Some(Self {
            ntp_middle: seconds << 16 | fraction >> 16,
            timestamp: word(bytes, 8)?,
            packets: word(bytes, 12)?,
            bytes: word(bytes, 16)?,
        })
    }
}

/// The reports of a packet on sources, as many as it announces and holds: at most 31.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Blocks<'a> {
    rest: &'a [u8],
    left: u8,
}

impl Iterator for Blocks<'_> {
    type Item = Block;

    fn next(&mut self) -> Option<Block> {
        self.left = self.left.checked_sub(1)?;
        let (block, behind) = self.rest.split_at_checked(BLOCK)?;
        self.rest = behind;
        let losses = word(block, 4)?;
        let [fraction_lost, ..] = losses.to_be_bytes();
        Some(Block {
            source: word(block, 0)?,
            fraction_lost,
            // A signed number of 24 bits.
            lost: (losses << 8).cast_signed() >> 8,
            jitter: word(block, 12)?,
            last_report: word(block, 16)?,
            delay: word(block, 20)?,
        })
    }
}
