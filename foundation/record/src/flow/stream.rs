//! A stream of RTP, or what one sender of RTCP reported: what Tstat's `log_mm_complete` has lines of.

use std::net::{IpAddr, Ipv6Addr};

/// Payload types that are told apart in a stream.
const KINDS: usize = 8;

/// The payload types of a stream, or the packet types of reports, with the packets of each, in the order in
/// which they came; of more than eight the first eight.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct StreamKinds {
    all: [(u8, u32); KINDS],
    count: u8,
}

impl StreamKinds {
    /// Counts a packet.
    pub fn add(&mut self, kind: u8) {
        let mut known = self.all.iter_mut().take(usize::from(self.count));
        if let Some((_, packets)) = known.find(|(one, _)| *one == kind) {
            *packets = packets.saturating_add(1);
        } else if let Some(place) = self.all.get_mut(usize::from(self.count)) {
            *place = (kind, 1);
            self.count += 1;
        }
    }

    /// Types and packets.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = (u8, u32)> {
        self.all.iter().take(usize::from(self.count)).copied()
    }
}

/// One end of the flow that carried a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StreamEnd {
    /// Its address.
    pub ip: IpAddr,
    /// Its port.
    pub port: u16,
    /// Whether the address is of an internal network.
    pub is_internal: bool,
    /// Whether the address was replaced (Crypto-PAn).
    pub is_encrypted: bool,
    /// What it sent in this flow, by first bytes (RFC 7983): 1 STUN, 2 ZRTP, 4 DTLS, 8 channels of TURN,
    /// 16 RTP, 32 RTCP; a set of bits.
    pub shares: u8,
}

impl Default for StreamEnd {
    fn default() -> Self {
        Self {
            ip: IpAddr::V6(Ipv6Addr::UNSPECIFIED),
            port: 0,
            is_internal: false,
            is_encrypted: false,
            shares: 0,
        }
    }
}

/// Jitter: an average that follows the last value by a sixteenth (RFC 3550 section 6.4.1), or of reports
/// their mean.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Jitter {
    /// The last one; of reports the mean.
    pub average: f64,
    /// The largest.
    pub max: f64,
    /// The smallest.
    pub min: f64,
}

/// What only media have.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct MediaPart {
    /// Packets that were sent and never came: those expected by the sequence numbers less those that
    /// came, each counted once (RFC 3550 A.3).
    pub lost: u64,
    /// Packets whose number is not the one after the highest before.
    pub out_of_sequence: u64,
    /// Packets that came after later ones.
    pub reordered: u64,
    /// Packets that had come before.
    pub duplicates: u64,
    /// Packets so late that they had been given up.
    pub late: u64,
    /// Whether the sequence numbers began anew.
    pub has_restarted: bool,
    /// Packets right behind one that came: runs of no lost packet.
    pub unbroken: u64,
    /// Longest payload, bytes.
    pub payload_max: u32,
    /// Shortest payload, bytes.
    pub payload_min: u32,
    /// Sum of the squares of the lengths of payloads, bytes.
    pub payload_squares: u64,
    /// Jitter by a clock of 8 kHz and by one of 90 kHz, milliseconds: the clock of dynamic payload types
    /// is not known.
    pub jitter_by_clock: [Jitter; 2],
}

/// What only reports have.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct ReportPart {
    /// Reports on a source.
    pub blocks: u64,
    /// The last cumulative number of lost packets.
    pub lost: i32,
    /// Sum of the shares lost, each in 1/256.
    pub fraction_sum: u64,
    /// Packets of its own media, as its last sender's report says.
    pub packets: u32,
    /// Their payload, bytes.
    pub bytes: u32,
    /// Round-trip times between the capture point and the reporter: samples.
    pub rtt_count: u64,
    /// Their sum, nanoseconds.
    pub rtt_sum_ns: u64,
    /// The smallest, nanoseconds.
    pub rtt_min_ns: u64,
    /// The largest, nanoseconds.
    pub rtt_max_ns: u64,
    /// Packets that could not be read: cut, or encrypted.
    pub unread: u64,
}

/// Media or reports.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum StreamPart {
    /// RTP.
    Media(MediaPart),
    /// RTCP.
    Reports(ReportPart),
}

/// One stream: packets of one source in one direction of a flow.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct StreamRow {
    /// The flow.
    pub flow_id: u64,
    /// Tstat's number of the application protocol of the flow.
    pub flow_kind: u32,
    /// Last packet of the flow, nanoseconds since the epoch.
    pub end_ns: u64,
    /// Whether the flow was still open when the input ended.
    pub is_open: bool,
    /// Client of the flow.
    pub client: StreamEnd,
    /// Server of the flow.
    pub server: StreamEnd,
    /// Whether the client sends it.
    pub is_from_client: bool,
    /// Synchronisation source.
    pub source: u32,
    /// Packets.
    pub packets: u64,
    /// Their types.
    pub kinds: StreamKinds,
    /// Payload bytes: of media behind the header of RTP, of reports the datagrams.
    pub bytes: u64,
    /// First packet, nanoseconds since the epoch.
    pub first_ns: u64,
    /// Last packet, nanoseconds since the epoch.
    pub last_ns: u64,
    /// Sum of the gaps between packets that follow each other, nanoseconds.
    pub gap_sum_ns: u64,
    /// Such gaps.
    pub gaps: u64,
    /// Sum of the times to live or hop limits.
    pub ttl_sum: u64,
    /// The largest of them.
    pub ttl_max: u8,
    /// The smallest of them.
    pub ttl_min: u8,
    /// Of media in milliseconds (zero where the clock is not known), of reports in the units of their
    /// media's clock.
    pub jitter: Jitter,
    /// What only media or only reports have.
    pub part: StreamPart,
}

impl StreamRow {
    /// Nanoseconds from first to last packet.
    #[must_use]
    pub const fn duration_ns(&self) -> u64 {
        self.last_ns.saturating_sub(self.first_ns)
    }
}
