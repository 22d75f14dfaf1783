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

impl Layout {
    /// The link type of the frames that are given out.
    pub(super) const fn link_type(self) -> LinkType {
        match self {
            Self::Plain(link) => link,
            Self::Cooked => LinkType::LINUX_SLL2,
        }
    }
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

#[cfg(test)]
mod tests {
    use linkweir_engine::Batch;
    use proptest::prelude::*;

    use super::*;

    const LAYOUTS: [Layout; 2] = [Layout::Plain(LinkType::ETHERNET), Layout::Cooked];

    /// A block as the kernel writes it, with one frame after another.
    fn block(frames: &[(&[u8], u32, u16)]) -> Vec<u8> {
        let mut bytes = vec![0; 48];
        let count = u32::try_from(frames.len()).unwrap();
        bytes[12..16].copy_from_slice(&count.to_ne_bytes());
        bytes[16..20].copy_from_slice(&48_u32.to_ne_bytes());
        bytes[40..44].copy_from_slice(&7_u32.to_ne_bytes());
        bytes[44..48].copy_from_slice(&9_u32.to_ne_bytes());
        for (number, (frame, status, tpid)) in frames.iter().enumerate() {
            let start = 100_u16;
            let len = u32::try_from(frame.len()).unwrap();
            let total = (usize::from(start) + frame.len()).next_multiple_of(8);
            let is_last = number + 1 == frames.len();
            let next = if is_last {
                0
            } else {
                u32::try_from(total).unwrap()
            };
            let mut header = Vec::new();
            for word in [next, 5, 6, len, len + 10, *status] {
                header.extend(word.to_ne_bytes());
            }
            header.extend(start.to_ne_bytes());
            header.extend([0; 6]);
            header.extend(0x2005_u32.to_ne_bytes());
            header.extend(tpid.to_ne_bytes());
            header.resize(48, 0);
            header.extend([17, 0, 8, 0]);
            header.extend(3_u32.to_ne_bytes());
            header.extend(1_u16.to_ne_bytes());
            header.extend([0, 6, 2, 0, 0, 0, 0, 1, 0, 0]);
            header.resize(usize::from(start), 0xee);
            header.extend(*frame);
            header.resize(total, 0);
            bytes.extend(header);
        }
        bytes
    }

    fn indexed(mut bytes: Vec<u8>, layout: Layout) -> (Vec<Vec<u8>>, Vec<FrameRef>, BlockReport) {
        let mut frames = Vec::new();
        let report = index_block(&mut bytes, layout, &mut frames);
        let batch = Batch::new(&bytes, &frames);
        let found = batch.frames().map(|frame| frame.bytes.to_vec()).collect();
        (found, frames, report)
    }

    #[test]
    fn tags_are_put_back() {
        let frame: Vec<u8> = (0..60).collect();
        let both = STATUS_VLAN_VALID | STATUS_VLAN_TPID_VALID;
        let bytes = block(&[
            (&frame, 1, 0),
            (&frame, 1 | both, 0x88a8),
            (&frame, 1 | STATUS_VLAN_VALID, 0x88a8),
            (&frame[..5], 1 | both, 0x8100),
        ]);
        let (found, index, report) = indexed(bytes, LAYOUTS[0]);
        let tagged = |tpid: [u8; 2]| [&frame[..12], &tpid, &[0x20, 5], &frame[12..]].concat();
        assert_eq!(found[0], frame);
        assert_eq!(found[1], tagged([0x88, 0xa8]));
        assert_eq!(
            found[2],
            tagged([0x81, 0]),
            "an old kernel does not say which"
        );
        assert_eq!(found[3], &frame[..5], "no room for a tag");
        assert_eq!(index[1].wire_len, 74);
        assert_eq!(index[0].timestamp.as_nanos(), 5_000_000_006);
        assert_eq!((report.last_ns, report.unusable), (7_000_000_009, 0));
    }

    #[test]
    fn cooked_headers_say_what_the_kernel_said() {
        let both = STATUS_VLAN_VALID | STATUS_VLAN_TPID_VALID;
        let packet = [0x45, 0, 0, 20];
        let inner = [0x20, 9, 8, 0, 0x45, 0];
        let bytes = block(&[
            (&packet, 1, 0),
            (&packet, 1 | both, 0x8100),
            (&inner, 1 | both, 0x88a8),
        ]);
        let (found, index, _) = indexed(bytes, LAYOUTS[1]);
        let header = |protocol: [u8; 2]| {
            let rest = [0, 0, 0, 0, 0, 3, 0, 1, 0, 6, 2, 0, 0, 0, 0, 1, 0, 0];
            [&protocol[..], &rest].concat()
        };
        assert_eq!(found[0], [header([8, 0]), packet.to_vec()].concat());
        let tagged = [header([0x81, 0]), vec![0x20, 5, 8, 0], packet.to_vec()].concat();
        assert_eq!(found[1], tagged);
        let twice = [header([0x88, 0xa8]), vec![0x20, 5, 0x81, 0], inner.to_vec()].concat();
        assert_eq!(found[2], twice);
        assert_eq!(
            (index[0].interface, index[0].link),
            (3, LinkType::LINUX_SLL2)
        );
    }

    proptest! {
        #[test]
        fn whatever_stands_in_a_block_frames_lie_inside(
            noise in prop::collection::vec(any::<u8>(), 0..600),
            places in prop::collection::vec((0_usize..600, any::<u8>()), 0..20),
        ) {
            let mut near = block(&[(&[1; 40], 0x51, 0x8100), (&[2; 50], 1, 0)]);
            for (at, value) in places {
                if let Some(byte) = near.get_mut(at) {
                    *byte = value;
                }
            }
            for bytes in [noise, near] {
                for layout in LAYOUTS {
                    let len = bytes.len();
                    let (found, index, _) = indexed(bytes.clone(), layout);
                    for (frame, reference) in found.iter().zip(&index) {
                        prop_assert_eq!(frame.len(), reference.captured_len as usize);
                        prop_assert!(reference.wire_len >= reference.captured_len);
                        prop_assert!(reference.offset as usize + frame.len() <= len);
                    }
                }
            }
        }
    }
}
