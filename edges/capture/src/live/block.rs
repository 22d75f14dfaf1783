//! The frames of a ring block: where they are, and what the kernel took out put back.
//!
//! Layouts: `struct tpacket_block_desc`, `struct tpacket3_hdr` and `struct sockaddr_ll` of
//! `linux/if_packet.h`, in the byte order of the machine.

use linkweir_engine::FrameRef;
use linkweir_wire::{LinkType, Timestamp};

/// What frames of a socket begin with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Layout {
    /// The link header of the interface.
    Plain(LinkType),
    /// The network header; a cooked header (`LINUX_SLL2`) is put before it.
    Cooked,
}

/// Bytes the ring keeps free before a frame, for a VLAN tag.
pub(super) const RESERVE: u32 = 4;

/// `struct tpacket3_hdr`, aligned, and `struct sockaddr_ll` behind it.
const ADDRESS_OFFSET: usize = 48;
const HEADER_BYTES: usize = 68;

const COOKED_BYTES: usize = 20;
const TAG_BYTES: usize = 4;
/// Both addresses of an Ethernet header, which stand before the tag.
const MACS_BYTES: usize = 12;

const STATUS_VLAN_VALID: u32 = 1 << 4;
const STATUS_VLAN_TPID_VALID: u32 = 1 << 6;
const STATUS_TS_RAW_HARDWARE: u32 = 1 << 31;

const ARPHRD_LOOPBACK: u16 = 772;
const PACKET_OUTGOING: u8 = 4;
const ETH_P_8021Q: u16 = 0x8100;

/// What a block said besides its frames.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct BlockReport {
    /// Frames whose description was not what the kernel writes.
    pub(super) unusable: u64,
    /// Frames with a stamp of the network card.
    pub(super) hardware_stamps: u64,
    /// Time of the last frame in the block.
    pub(super) last_ns: u64,
}

/// Appends the frames of a block. Offsets count from its first byte.
pub(super) fn index_block(
    block: &mut [u8],
    layout: Layout,
    frames: &mut Vec<FrameRef>,
) -> BlockReport {
    let mut report = BlockReport::default();
    let Some((count, first)) = block.first_chunk::<48>().map(|descriptor| {
        let (count, first) = (u32_at(descriptor, 12), u32_at(descriptor, 16));
        report.last_ns = nanos(u32_at(descriptor, 40), u32_at(descriptor, 44));
        (count, first)
    }) else {
        return report;
    };
    let mut at = first as usize;
    for _ in 0..count {
        let Some(header) = block
            .get(at..)
            .and_then(|rest| rest.first_chunk::<HEADER_BYTES>())
        else {
            report.unusable += 1;
            break;
        };
        let packet = Described::read(header);
        if !packet.is_loopback_copy() {
            match packet.place(block, at, layout) {
                Some(frame) => {
                    report.hardware_stamps +=
                        u64::from(packet.status & STATUS_TS_RAW_HARDWARE != 0);
                    frames.push(frame);
                }
                None => report.unusable += 1,
            }
        }
        if packet.next == 0 {
            break;
        }
        at = at.saturating_add(packet.next as usize);
    }
    report
}

/// What the kernel says of a frame.
#[derive(Debug, Clone, Copy)]
struct Described {
    next: u32,
    timestamp: u64,
    captured_len: u32,
    wire_len: u32,
    status: u32,
    /// Offset of the first byte from this description.
    start: u16,
    tci: u16,
    tpid: u16,
    /// Ethernet type, interface, `ARPHRD_*`, direction, address.
    protocol: u16,
    interface: u32,
    hardware: u16,
    direction: u8,
    address_len: u8,
    address: [u8; 8],
}

impl Described {
    #[inline]
    fn read(header: &[u8; HEADER_BYTES]) -> Self {
        let [.., a, b, c, d, e, f, g, h] = *header;
        Self {
            next: u32_at(header, 0),
            timestamp: nanos(u32_at(header, 4), u32_at(header, 8)),
            captured_len: u32_at(header, 12),
            wire_len: u32_at(header, 16),
            status: u32_at(header, 20),
            start: u16_at(header, 24),
            tci: u16_at(header, 32),
            tpid: u16_at(header, 36),
            protocol: u16::from_be(u16_at(header, ADDRESS_OFFSET + 2)),
            interface: u32_at(header, ADDRESS_OFFSET + 4),
            hardware: u16_at(header, ADDRESS_OFFSET + 8),
            direction: header.get(ADDRESS_OFFSET + 10).copied().unwrap_or(0),
            address_len: header.get(ADDRESS_OFFSET + 11).copied().unwrap_or(0),
            address: [a, b, c, d, e, f, g, h],
        }
    }

    /// Whether it leaves through the loopback interface, where it will arrive in a moment.
    #[inline]
    const fn is_loopback_copy(&self) -> bool {
        self.direction == PACKET_OUTGOING && self.hardware == ARPHRD_LOOPBACK
    }

    /// The VLAN tag that the network card or the kernel took out of the frame.
    #[inline]
    const fn tag(&self) -> Option<[u8; TAG_BYTES]> {
        if self.status & STATUS_VLAN_VALID == 0 {
            return None;
        }
        let tpid = if self.status & STATUS_VLAN_TPID_VALID == 0 {
            ETH_P_8021Q
        } else {
            self.tpid
        };
        let ([a, b], [c, d]) = (tpid.to_be_bytes(), self.tci.to_be_bytes());
        Some([a, b, c, d])
    }

    /// Completes the frame in the block and says where it is. Nothing where the description does
    /// not fit the block.
    #[inline]
    fn place(&self, block: &mut [u8], at: usize, layout: Layout) -> Option<FrameRef> {
        let mut start = at.checked_add(usize::from(self.start))?;
        let mut added = 0;
        let (link, interface) = match layout {
            Layout::Plain(link) => {
                if let Some(tag) = self.tag()
                    && self.captured_len as usize >= MACS_BYTES
                {
                    let from = start;
                    start = start.checked_sub(TAG_BYTES)?;
                    let macs = block.get(from..from.checked_add(MACS_BYTES)?)?;
                    let macs = *macs.first_chunk::<MACS_BYTES>()?;
                    let room = block.get_mut(start..)?.first_chunk_mut::<16>()?;
                    let (front, back) = room.split_at_mut_checked(MACS_BYTES)?;
                    front.copy_from_slice(&macs);
                    back.copy_from_slice(&tag);
                    added = TAG_BYTES;
                }
                (link, 0)
            }
            Layout::Cooked => {
                let mut protocol = self.protocol;
                if let Some([a, b, c, d]) = self.tag() {
                    if hides_inner_tag(protocol, block.get(start..)?) {
                        protocol = ETH_P_8021Q;
                    }
                    start = start.checked_sub(TAG_BYTES)?;
                    let [e, f] = protocol.to_be_bytes();
                    *block.get_mut(start..)?.first_chunk_mut::<4>()? = [c, d, e, f];
                    protocol = u16::from_be_bytes([a, b]);
                    added = TAG_BYTES;
                }
                start = start.checked_sub(COOKED_BYTES)?;
                // The description up to the address has been read; the header may not reach into it.
                if start < at.checked_add(ADDRESS_OFFSET)? {
                    return None;
                }
                let header = block.get_mut(start..)?.first_chunk_mut::<COOKED_BYTES>()?;
                *header = self.cooked_header(protocol);
                added += COOKED_BYTES;
                let interface = u16::try_from(self.interface).unwrap_or(u16::MAX);
                (LinkType::LINUX_SLL2, interface)
            }
        };
        let added = u32::try_from(added).ok()?;
        let captured_len = self.captured_len.checked_add(added)?;
        if start.checked_add(captured_len as usize)? > block.len() {
            return None;
        }
        Some(FrameRef {
            timestamp: Timestamp::from_nanos(self.timestamp),
            offset: u32::try_from(start).ok()?,
            captured_len,
            wire_len: self.wire_len.saturating_add(added).max(captured_len),
            link,
            interface,
        })
    }

    /// Source: `LINKTYPE_LINUX_SLL2` of the tcpdump group.
    const fn cooked_header(&self, protocol: u16) -> [u8; COOKED_BYTES] {
        let [p0, p1] = protocol.to_be_bytes();
        let [i0, i1, i2, i3] = self.interface.to_be_bytes();
        let [h0, h1] = self.hardware.to_be_bytes();
        let [a, b, c, d, e, f, g, h] = self.address;
        [
            p0,
            p1,
            0,
            0,
            i0,
            i1,
            i2,
            i3,
            h0,
            h1,
            self.direction,
            self.address_len,
            a,
            b,
            c,
            d,
            e,
            f,
            g,
            h,
        ]
    }
}

/// Whether a frame whose outer tag was taken out begins with the rest of an inner one. Kernels since
/// 6.11 look through it for the protocol, but leave it where it is.
fn hides_inner_tag(protocol: u16, bytes: &[u8]) -> bool {
    let Some(&[first, _, high, low]) = bytes.first_chunk::<4>() else {
        return false;
    };
    let version = match protocol {
        0x0800 => 4,
        0x86dd => 6,
        _ => return false,
    };
    first >> 4 != version && u16::from_be_bytes([high, low]) == protocol
}

#[inline]
const fn nanos(seconds: u32, nanos: u32) -> u64 {
    seconds as u64 * 1_000_000_000 + nanos as u64
}

#[inline]
fn u32_at<const N: usize>(bytes: &[u8; N], at: usize) -> u32 {
    bytes
        .get(at..)
        .and_then(|rest| rest.first_chunk())
        .map_or(0, |chunk| u32::from_ne_bytes(*chunk))
}

#[inline]
fn u16_at<const N: usize>(bytes: &[u8; N], at: usize) -> u16 {
    bytes
        .get(at..)
        .and_then(|rest| rest.first_chunk())
        .map_or(0, |chunk| u16::from_ne_bytes(*chunk))
}
