//! Capture files of every format, written into memory: the counterpart of the readers, for tests.
//!
//! Pure functions from a list of frames to the bytes of a file. They write what the formats allow,
//! not what one tool happens to write: every byte order, resolution and packet block.

use linkweir_wire::LinkType;

/// One frame to be written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CapturedFrame {
    /// Nanoseconds since the epoch; rounded down to the resolution of the format.
    pub timestamp_ns: u64,
    /// Interface of the capture, where the format has several.
    pub interface: u16,
    /// The captured bytes.
    pub bytes: Vec<u8>,
    /// Bytes the frame had on the wire.
    pub wire_len: u32,
}

/// Byte order of a file or section.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ByteOrder {
    /// Least significant byte first.
    Little,
    /// Most significant byte first.
    Big,
}

impl ByteOrder {
    const fn bytes16(self, value: u16) -> [u8; 2] {
        match self {
            Self::Little => value.to_le_bytes(),
            Self::Big => value.to_be_bytes(),
        }
    }

    const fn bytes32(self, value: u32) -> [u8; 4] {
        match self {
            Self::Little => value.to_le_bytes(),
            Self::Big => value.to_be_bytes(),
        }
    }
}

/// Variant of classic pcap.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PcapVariant {
    /// Byte order of all headers.
    pub order: ByteOrder,
    /// Nanoseconds instead of microseconds (not with `modified`).
    pub has_nanos: bool,
    /// Record headers of 24 bytes (A. Kuznetzov's patch).
    pub modified: bool,
    /// The link type field, with whatever its upper bits hold.
    pub network: u32,
    /// The snapshot length field.
    pub snaplen: u32,
}

impl PcapVariant {
    /// What tcpdump writes: little-endian, microseconds.
    #[must_use]
    pub const fn usual(link: LinkType) -> Self {
        Self {
            order: ByteOrder::Little,
            has_nanos: false,
            modified: false,
            network: link.0 as u32,
            snaplen: 262_144,
        }
    }
}

/// Writes classic pcap.
#[must_use]
pub fn pcap(frames: &[CapturedFrame], variant: PcapVariant) -> Vec<u8> {
    let order = variant.order;
    let (magic, tick_ns) = match (variant.modified, variant.has_nanos) {
        (true, _) => (0xa1b2_cd34, 1000),
        (false, true) => (0xa1b2_3c4d, 1),
        (false, false) => (0xa1b2_c3d4, 1000),
    };
    let mut file = Vec::new();
    file.extend(order.bytes32(magic));
    file.extend(order.bytes16(2));
    file.extend(order.bytes16(4));
    file.extend([0; 8]);
    file.extend(order.bytes32(variant.snaplen));
    file.extend(order.bytes32(variant.network));
    for frame in frames {
        let ticks = frame.timestamp_ns % 1_000_000_000 / tick_ns;
        file.extend(order.bytes32(low32(frame.timestamp_ns / 1_000_000_000)));
        file.extend(order.bytes32(low32(ticks)));
        file.extend(order.bytes32(length(&frame.bytes)));
        file.extend(order.bytes32(frame.wire_len));
        if variant.modified {
            file.extend(order.bytes32(u32::from(frame.interface) + 1));
            file.extend([0; 4]);
        }
        file.extend(&frame.bytes);
    }
    file
}

/// How pcapng packs a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PacketBlock {
    /// Enhanced packet block; a comment stands behind the frame.
    Enhanced,
    /// Simple packet block: no time, interface 0.
    Simple,
    /// The obsolete packet block.
    Obsolete,
}

/// An interface of a pcapng section.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PcapngInterface {
    /// Its link type.
    pub link: LinkType,
    /// Its snapshot length; 0 is none.
    pub snaplen: u32,
    /// `if_tsresol` where it is written: negative power of ten, or of two with the high bit.
    pub resolution: Option<u8>,
    /// `if_tsoffset` in seconds where it is written.
    pub offset_seconds: Option<i64>,
}

impl PcapngInterface {
    /// Microseconds, no offset, no options.
    #[must_use]
    pub const fn usual(link: LinkType) -> Self {
        Self {
            link,
            snaplen: 262_144,
            resolution: None,
            offset_seconds: None,
        }
    }

    /// Ticks of this interface at a time, rounded up, so that reading rounds back down to it where
    /// the resolution is fine enough.
    fn ticks(&self, timestamp_ns: u64) -> u64 {
        let offset = i128::from(self.offset_seconds.unwrap_or(0)) * 1_000_000_000;
        let nanos = u128::try_from(i128::from(timestamp_ns) - offset).unwrap_or(0);
        let resolution = self.resolution.unwrap_or(6);
        let exponent = u32::from(resolution & 0x7f);
        let per_second = if resolution & 0x80 == 0 {
            10_u128.pow(exponent.min(19))
        } else {
            1 << exponent.min(63)
        };
        let scaled = nanos * per_second;
        let ticks = if per_second > 1_000_000_000 {
            scaled.div_ceil(1_000_000_000)
        } else {
            scaled / 1_000_000_000
        };
        u64::try_from(ticks).unwrap_or(u64::MAX)
    }
}

/// One pcapng block: type, body, both lengths. The body is padded to 32 bits.
#[must_use]
pub fn pcapng_block(order: ByteOrder, kind: u32, body: &[u8]) -> Vec<u8> {
    let padded = body.len().next_multiple_of(4);
    let total = order.bytes32(u32::try_from(padded + 12).unwrap_or(u32::MAX));
    let mut block = Vec::with_capacity(padded + 12);
    block.extend(order.bytes32(kind));
    block.extend(total);
    block.extend(body);
    block.resize(8 + padded, 0);
    block.extend(total);
    block
}

fn option(order: ByteOrder, code: u16, value: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    bytes.extend(order.bytes16(code));
    bytes.extend(order.bytes16(u16::try_from(value.len()).unwrap_or(u16::MAX)));
    bytes.extend(value);
    bytes.resize(bytes.len().next_multiple_of(4), 0);
    bytes
}

/// Writes one pcapng section; sections may follow each other in a file.
#[must_use]
pub fn pcapng(
    frames: &[CapturedFrame],
    order: ByteOrder,
    interfaces: &[PcapngInterface],
    packing: PacketBlock,
) -> Vec<u8> {
    let mut body = Vec::new();
    body.extend(order.bytes32(0x1a2b_3c4d));
    body.extend(order.bytes16(1));
    body.extend(order.bytes16(0));
    body.extend([0xff; 8]);
    body.extend(option(order, 4, b"linkweir testkit"));
    body.extend(option(order, 0, b""));
    let mut file = pcapng_block(order, 0x0a0d_0d0a, &body);
    for interface in interfaces {
        let mut body = Vec::new();
        body.extend(order.bytes16(interface.link.0));
        body.extend([0; 2]);
        body.extend(order.bytes32(interface.snaplen));
        body.extend(option(order, 2, b"test0"));
        if let Some(resolution) = interface.resolution {
            body.extend(option(order, 9, &[resolution]));
        }
        if let Some(seconds) = interface.offset_seconds {
            let value = match order {
                ByteOrder::Little => seconds.to_le_bytes(),
                ByteOrder::Big => seconds.to_be_bytes(),
            };
            body.extend(option(order, 14, &value));
        }
        body.extend(option(order, 0, b""));
        file.extend(pcapng_block(order, 1, &body));
    }
    for frame in frames {
        file.extend(pcapng_packet(frame, order, interfaces, packing));
    }
    // Statistics, as dumpcap writes them at the end: a block without packets.
    file.extend(pcapng_block(order, 5, &[0; 12]));
    file
}

fn pcapng_packet(
    frame: &CapturedFrame,
    order: ByteOrder,
    interfaces: &[PcapngInterface],
    packing: PacketBlock,
) -> Vec<u8> {
    let ticks = interfaces
        .get(usize::from(frame.interface))
        .map_or(0, |interface| interface.ticks(frame.timestamp_ns));
    let mut body = Vec::new();
    let kind = match packing {
        PacketBlock::Enhanced => {
            body.extend(order.bytes32(u32::from(frame.interface)));
            6
        }
        PacketBlock::Obsolete => {
            body.extend(order.bytes16(frame.interface));
            body.extend(order.bytes16(0));
            2
        }
        PacketBlock::Simple => 3,
    };
    if packing != PacketBlock::Simple {
        body.extend(order.bytes32(low32(ticks >> 32)));
        body.extend(order.bytes32(low32(ticks)));
        body.extend(order.bytes32(length(&frame.bytes)));
    }
    body.extend(order.bytes32(frame.wire_len));
    body.extend(&frame.bytes);
    if packing == PacketBlock::Enhanced {
        body.resize(body.len().next_multiple_of(4), 0);
        body.extend(option(order, 1, b"a comment"));
        body.extend(option(order, 0, b""));
    }
    pcapng_block(order, kind, &body)
}

/// Writes ERF: Ethernet, PPP or raw IP by `link`. Time is a binary fraction of 32 bits.
///
/// Records are padded to 8 bytes, and only `wire_len` tells where a frame ends: one that was cut
/// reads back with its padding.
#[must_use]
pub fn erf(frames: &[CapturedFrame], link: LinkType) -> Vec<u8> {
    let mut file = Vec::new();
    for frame in frames {
        let (kind, padding): (u8, usize) = match link {
            LinkType::IPV4 => (22, 0),
            LinkType::IPV6 => (23, 0),
            LinkType::PPP_HDLC => (1, 0),
            _ => (2, 2),
        };
        let payload = padding + frame.bytes.len();
        let record_len = (16 + payload).next_multiple_of(8);
        let seconds = frame.timestamp_ns / 1_000_000_000;
        let fraction = ((frame.timestamp_ns % 1_000_000_000) << 32).div_ceil(1_000_000_000);
        let begin = file.len();
        file.extend((seconds << 32 | fraction).to_le_bytes());
        file.push(kind);
        // Variable record length, interface.
        file.push(0x04 | u8::try_from(frame.interface & 3).unwrap_or(0));
        file.extend(u16::try_from(record_len).unwrap_or(u16::MAX).to_be_bytes());
        file.extend([0; 2]);
        file.extend(
            u16::try_from(frame.wire_len)
                .unwrap_or(u16::MAX)
                .to_be_bytes(),
        );
        file.extend(std::iter::repeat_n(0, padding));
        file.extend(&frame.bytes);
        file.resize(begin + record_len, 0);
    }
    file
}

/// Writes snoop (RFC 1761) of Ethernet. Time is in microseconds.
#[must_use]
pub fn snoop(frames: &[CapturedFrame]) -> Vec<u8> {
    let mut file = b"snoop\0\0\0".to_vec();
    file.extend(2_u32.to_be_bytes());
    file.extend(4_u32.to_be_bytes());
    for frame in frames {
        let padded = frame.bytes.len().next_multiple_of(4);
        let begin = file.len();
        file.extend(frame.wire_len.to_be_bytes());
        file.extend(length(&frame.bytes).to_be_bytes());
        file.extend(u32::try_from(24 + padded).unwrap_or(u32::MAX).to_be_bytes());
        file.extend([0; 4]);
        file.extend(low32(frame.timestamp_ns / 1_000_000_000).to_be_bytes());
        file.extend(low32(frame.timestamp_ns % 1_000_000_000 / 1000).to_be_bytes());
        file.extend(&frame.bytes);
        file.resize(begin + 24 + padded, 0);
    }
    file
}

fn length(bytes: &[u8]) -> u32 {
    u32::try_from(bytes.len()).unwrap_or(u32::MAX)
}

/// The low half, which is all that the formats have room for.
fn low32(value: u64) -> u32 {
    u32::try_from(value & 0xffff_ffff).unwrap_or(u32::MAX)
}
