//! Rows as packets again: what a measurement reads does not differ from a capture.

use std::net::IpAddr;

use linkweir_engine::{Batch, FrameRef};
use linkweir_record::HttpHalf;
use linkweir_wire::{LinkType, Timestamp};

/// Bytes of headers at most: Ethernet, a tag, IPv6, TCP.
const MAX_HEADERS: usize = 14 + 4 + 40 + 20;

const ETHERTYPE_IPV4: u16 = 0x0800;
const ETHERTYPE_IPV6: u16 = 0x86dd;
const ETHERTYPE_VLAN: u16 = 0x8100;
const PROTOCOL_TCP: u8 = 6;

/// A TCP header without options: 20 bytes.
const TCP_HEADER: u16 = 20;

/// Frames made of rows, over a buffer that is used again.
#[derive(Debug, Default)]
pub struct HalfFrames {
    buffer: Vec<u8>,
    index: Vec<FrameRef>,
}

impl HalfFrames {
    /// Forgets all frames, keeps the memory.
    pub fn clear(&mut self) {
        self.buffer.clear();
        self.index.clear();
    }

    /// Bytes of all frames.
    #[must_use]
    pub const fn bytes(&self) -> usize {
        self.buffer.len()
    }

    /// Number of frames.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.index.len()
    }

    /// Whether there is none.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.index.is_empty()
    }

    /// The frames in the order in which they were put in.
    #[must_use]
    pub fn batch(&self) -> Batch<'_> {
        Batch::new(&self.buffer, &self.index)
    }

    /// Appends the frame of a row: Ethernet, with the tag where there is one, IP and TCP without options,
    /// and the payload as far as it was captured, with zeros for what was left away.
    ///
    /// Frames beyond 4 GiB together are empty: a batch has fewer.
    pub fn push(&mut self, half: &HttpHalf<'_>) {
        let row = half.row;
        let start = self.buffer.len();
        self.buffer
            .reserve(MAX_HEADERS.saturating_add(half.payload.len()));
        self.ethernet(
            row.vlan,
            matches!((row.src_ip, row.dst_ip), (IpAddr::V4(_), IpAddr::V4(_))),
        );
        match (row.src_ip, row.dst_ip) {
            (IpAddr::V4(src), IpAddr::V4(dst)) => {
                // 0 where 16 bits do not hold it, as with segmentation offload: the frame tells it then.
                let [a, b] = length(row.payload_len, 20 + TCP_HEADER).to_be_bytes();
                self.put(&[0x45, 0, a, b, 0, 0, 0x40, 0, 64, PROTOCOL_TCP, 0, 0]);
                self.put(&src.octets());
                self.put(&dst.octets());
            }
            (src, dst) => {
                let [a, b] = length(row.payload_len, TCP_HEADER).to_be_bytes();
                self.put(&[0x60, 0, 0, 0, a, b, PROTOCOL_TCP, 64]);
                self.put(&six(src));
                self.put(&six(dst));
            }
        }
        self.put(&row.src_port.to_be_bytes());
        self.put(&row.dst_port.to_be_bytes());
        self.put(&row.seq.to_be_bytes());
        self.put(&row.ack.to_be_bytes());
        // The header's length in words; window, checksum and urgent pointer are not kept.
        self.put(&[5 << 4, row.flags, 0, 0, 0, 0, 0, 0]);
        let headers = self.buffer.len() - start;
        self.put(half.payload);
        let captured = half.payload.len().max(row.captured_len as usize);
        self.buffer.resize(start + headers + captured, 0);
        let wire_len = u32::try_from(headers)
            .unwrap_or(u32::MAX)
            .saturating_add(row.payload_len);
        let captured = self.buffer.len() - start;
        self.index.push(FrameRef {
            timestamp: Timestamp::from_nanos(row.ts_ns),
            offset: u32::try_from(start).unwrap_or(u32::MAX),
            captured_len: u32::try_from(captured).unwrap_or(0),
            wire_len,
            link: LinkType::ETHERNET,
            interface: 0,
        });
    }

    fn ethernet(&mut self, vlan: Option<u16>, is_v4: bool) {
        self.put(&[0; 12]);
        if let Some(vlan) = vlan {
            self.put(&ETHERTYPE_VLAN.to_be_bytes());
            self.put(&(vlan & 0x0fff).to_be_bytes());
        }
        let ethertype = if is_v4 {
            ETHERTYPE_IPV4
        } else {
            ETHERTYPE_IPV6
        };
        self.put(&ethertype.to_be_bytes());
    }

    fn put(&mut self, bytes: &[u8]) {
        self.buffer.extend_from_slice(bytes);
    }
}

/// A length field of a packet with `payload_len` bytes behind `headers`; 0 where it does not hold it.
fn length(payload_len: u32, headers: u16) -> u16 {
    let payload = u16::try_from(payload_len).ok();
    payload
        .and_then(|payload| payload.checked_add(headers))
        .unwrap_or(0)
}

fn six(address: IpAddr) -> [u8; 16] {
    match address {
        IpAddr::V4(v4) => v4.to_ipv6_mapped().octets(),
        IpAddr::V6(v6) => v6.octets(),
    }
}

#[cfg(test)]
mod tests {
    use linkweir_record::HalfRow;
    use linkweir_wire::{Transport, decode};

    use super::*;

    fn row(src: &str, dst: &str, payload_len: u32) -> HalfRow {
        HalfRow {
            ts_ns: 1_700_000_000_123_456_789,
            src_ip: src.parse().unwrap(),
            dst_ip: dst.parse().unwrap(),
            src_port: 40_000,
            dst_port: 80,
            seq: 0xffff_fff0,
            ack: 77,
            flags: 0x18,
            payload_len,
            captured_len: 5,
            ..HalfRow::default()
        }
    }

    #[test]
    fn a_frame_says_what_the_row_said() {
        for (src, dst) in [
            ("192.0.2.1", "198.51.100.2"),
            ("2001:db8::1", "2001:db8::2"),
        ] {
            for vlan in [None, Some(0), Some(100), Some(4095)] {
                for len in [5, 1460, 65_475, 65_495, 65_496, 65_535, 65_536, 262_144] {
                    let row = HalfRow {
                        vlan,
                        ..row(src, dst, len)
                    };
                    let mut frames = HalfFrames::default();
                    let half = HttpHalf {
                        row: &row,
                        payload: b"GET",
                    };
                    frames.push(&half);
                    frames.push(&half);
                    assert_eq!(frames.len(), 2);
                    for frame in frames.batch().frames() {
                        assert_eq!(frame.timestamp.as_nanos(), row.ts_ns);
                        let packet = decode(frame.link, frame.bytes, frame.wire_len).unwrap();
                        assert_eq!((packet.vlan, packet.fault), (vlan, None));
                        assert_eq!(packet.network.src(), row.src_ip);
                        assert_eq!(packet.network.dst(), row.dst_ip);
                        let Transport::Tcp(tcp) = packet.transport else {
                            panic!("{packet:?}");
                        };
                        assert_eq!((tcp.src_port(), tcp.dst_port()), (40_000, 80));
                        assert_eq!((tcp.seq().0, tcp.ack().0), (row.seq, row.ack));
                        assert_eq!((tcp.flags().0, tcp.payload), (row.flags, &b"GET\0\0"[..]));
                        assert_eq!(tcp.payload_len, len);
                    }
                }
            }
        }
    }
}
