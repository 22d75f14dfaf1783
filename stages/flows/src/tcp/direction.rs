//! What is remembered of one direction of a TCP flow.

use linkweir_record::flow::{FlowSide, RttRow};
use linkweir_table::NONE;

use super::extras::Segment;

/// What one side sent, and how it was acknowledged.
///
/// Shape: 208 bytes, so that a flow has 512. What most flows never need (losses, resets, selective
/// acknowledgments, more than one segment in flight) is in pools and only named here. Fields that a packet
/// needs together stand together, in four groups: what every packet of this side counts, the sequence
/// numbers, which those of the other side need too, what acknowledgments tell, and what payload counts.
#[derive(Debug, Clone)]
#[repr(C)]
pub(crate) struct Direction {
    pub(crate) pkts_all: u64,
    pub(crate) ip_bytes: u64,
    pub(crate) pure_acks: u64,
    /// The last window it announced, scaled.
    pub(crate) window: u32,
    pub(crate) win_max: u32,
    pub(crate) win_min: u32,
    pub(crate) cwin_max: u32,
    pub(crate) cwin_min: u32,
    pub(crate) mss: u16,
    pub(crate) ttl_min: u8,
    pub(crate) ttl_max: u8,

    /// First ACK, nanoseconds since the epoch; 0: none.
    pub(crate) first_ack: u64,
    pub(crate) cwin_ini: u32,
    /// Initial sequence number (RFC 9293 `ISS`).
    pub(crate) isn: u32,
    seg_time: u64,
    seg_start: u32,
    seg_tsval: u32,
    /// `SND.NXT`: one past the highest sequence number sent.
    pub(crate) next: u32,
    /// `SND.UNA`: the highest acknowledgment that came back.
    pub(crate) una: u32,
    /// The latest `TSval` it sent.
    pub(crate) tsval: u32,
    /// Entry of the pool of lists: segments in flight, where there is more than one.
    pub(crate) list: u32,
    /// Entry of the pool of extras.
    pub(crate) extras: u32,
    seg_len: u16,
    seg_ip_id: u16,
    pub(crate) acked_ip_id: u16,
    /// Class plus one of the newest acknowledged segment; 0: in sequence.
    pub(crate) acked_class: u8,
    /// Duplicate acknowledgments of `una`.
    pub(crate) dup_acks: u8,
    seg_flags: u8,
    pub(crate) window_scale: u8,
    pub(crate) options: u8,
    pub(crate) flags: u8,

    pub(crate) rtt_sum: u64,
    pub(crate) rtt_squares: f64,
    pub(crate) rtt_min: u64,
    pub(crate) rtt_max: u64,
    /// When the newest of the acknowledged segments was sent.
    pub(crate) acked_time: u64,
    pub(crate) rtt_count: u32,
    pub(crate) without_ack: u32,

    /// First and last payload, nanoseconds since the epoch; 0: none.
    pub(crate) first_data: u64,
    pub(crate) last_data: u64,
    pub(crate) pkts_data: u64,
    pub(crate) bytes_all: u64,
    pub(crate) pkts_push: u64,
    pub(crate) mss_max: u16,
    pub(crate) mss_min: u16,
    pub(crate) syn: u16,
    pub(crate) fin: u16,
}

impl Default for Direction {
    fn default() -> Self {
        Self {
            pkts_all: 0,
            ip_bytes: 0,
            pure_acks: 0,
            window: 0,
            win_max: 0,
            win_min: 0,
            cwin_max: 0,
            cwin_min: 0,
            mss: 0,
            ttl_min: 0,
            ttl_max: 0,
            first_ack: 0,
            cwin_ini: 0,
            isn: 0,
            seg_time: 0,
            seg_start: 0,
            seg_tsval: 0,
            next: 0,
            una: 0,
            tsval: 0,
            list: NONE,
            extras: NONE,
            seg_len: 0,
            seg_ip_id: 0,
            acked_ip_id: 0,
            acked_class: 0,
            dup_acks: 0,
            seg_flags: 0,
            window_scale: 0,
            options: 0,
            flags: 0,
            rtt_sum: 0,
            rtt_squares: 0.0,
            rtt_min: 0,
            rtt_max: 0,
            acked_time: 0,
            rtt_count: 0,
            without_ack: 0,
            first_data: 0,
            last_data: 0,
            pkts_data: 0,
            bytes_all: 0,
            pkts_push: 0,
            mss_max: 0,
            mss_min: 0,
            syn: 0,
            fin: 0,
        }
    }
}

/// Bits of [`Direction::flags`].
pub(crate) mod flag {
    /// `next` is known: a segment with sequence space was seen.
    pub(crate) const STARTED: u8 = 1;
    /// `una` is an acknowledgment that was seen.
    pub(crate) const ACKED: u8 = 2;
    /// Data was acknowledged: the initial window is over.
    pub(crate) const DATA_ACKED: u8 = 4;
    /// A FIN was seen: `next` is behind it.
    pub(crate) const FIN: u8 = 8;
    /// The FIN was acknowledged.
    pub(crate) const CLOSED: u8 = 16;
    /// One segment is in flight, and it is remembered here.
    pub(crate) const ONE_SEGMENT: u8 = 32;
    /// Layer 7 wants no more payload of this direction.
    pub(crate) const L7_DONE: u8 = 64;
    /// A SYN was seen.
    pub(crate) const SYN: u8 = 128;
}

/// Bits of [`Direction::options`].
pub(crate) mod option {
    /// Window scaling was offered.
    pub(crate) const WINDOW_SCALE: u8 = 1;
    /// Timestamps were sent.
    pub(crate) const TIMESTAMPS: u8 = 2;
    /// Selective acknowledgments were offered.
    pub(crate) const SACK: u8 = 4;
    /// Something was sent since the bytes in flight were last counted.
    pub(crate) const SENT: u8 = 8;
    /// The first RST came before any FIN, or with it.
    pub(crate) const RST_FIRST: u8 = 16;
    /// It answered a SYN with more than one number, and it is unknown which one counts.
    pub(crate) const DISPUTED: u8 = 32;
    /// Multipath TCP was offered.
    pub(crate) const MULTIPATH: u8 = 64;
}

impl Direction {
    /// Reads a word of each of the lines that a packet of this side needs.
    #[inline]
    pub(crate) const fn touch_sent(&self, has_payload: bool) -> u64 {
        let sum = self.pkts_all ^ self.next as u64;
        if has_payload {
            sum ^ self.last_data ^ self.bytes_all
        } else {
            sum
        }
    }

    /// Reads a word of each of the lines that a packet of the other side needs.
    #[inline]
    pub(crate) const fn touch_acked(&self) -> u64 {
        self.next as u64 ^ self.rtt_sum ^ self.rtt_max
    }

    #[inline]
    pub(crate) const fn has(&self, flag: u8) -> bool {
        self.flags & flag != 0
    }

    /// The segment in flight, where there is exactly one and no list.
    #[inline]
    pub(crate) fn one_segment(&self) -> Option<Segment> {
        self.has(flag::ONE_SEGMENT).then(|| Segment {
            time: self.seg_time,
            start: self.seg_start,
            end: self.seg_start.wrapping_add(u32::from(self.seg_len)),
            tsval: self.seg_tsval,
            ip_id: self.seg_ip_id,
            class: self.seg_flags & 0x0f,
            was_sent_again: self.seg_flags & 0x80 != 0,
        })
    }

    /// Remembers the only segment in flight. False where it is too long to stand here.
    #[inline]
    pub(crate) fn set_one_segment(&mut self, segment: &Segment) -> bool {
        let Ok(len) = u16::try_from(segment.end.wrapping_sub(segment.start)) else {
            return false;
        };
        self.seg_time = segment.time;
        self.seg_start = segment.start;
        self.seg_len = len;
        self.seg_tsval = segment.tsval;
        self.seg_ip_id = segment.ip_id;
        self.seg_flags = segment.class | (u8::from(segment.was_sent_again) << 7);
        self.flags |= flag::ONE_SEGMENT;
        true
    }

    #[inline]
    pub(crate) const fn clear_one_segment(&mut self) {
        self.flags &= !flag::ONE_SEGMENT;
    }

    /// Whether bytes are in flight.
    #[inline]
    pub(crate) const fn has_outstanding(&self) -> bool {
        self.has(flag::ONE_SEGMENT) || self.list != NONE
    }

    /// A sample of the time from the capture point to the receiver and back.
    #[inline]
    #[expect(
        clippy::cast_precision_loss,
        reason = "squares of nanoseconds need no more than 53 bits"
    )]
    pub(crate) fn sample(&mut self, rtt_ns: u64) {
        self.rtt_min = if self.rtt_count == 0 {
            rtt_ns
        } else {
            self.rtt_min.min(rtt_ns)
        };
        self.rtt_max = self.rtt_max.max(rtt_ns);
        self.rtt_count = self.rtt_count.saturating_add(1);
        self.rtt_sum = self.rtt_sum.saturating_add(rtt_ns);
        let rtt = rtt_ns as f64;
        self.rtt_squares = rtt.mul_add(rtt, self.rtt_squares);
    }

    /// The numbers of a record, as far as they stand here.
    pub(crate) fn fill(&self, start_ns: u64, side: &mut FlowSide) {
        let since = |at: u64| (at != 0).then(|| at.saturating_sub(start_ns));
        side.pkts_all = self.pkts_all;
        side.ack_cnt = self.pkts_all.saturating_sub(u64::from(self.without_ack));
        side.ack_cnt_p = self.pure_acks;
        side.bytes_uniq = self.bytes_all;
        side.pkts_data = self.pkts_data;
        side.bytes_all = self.bytes_all;
        side.syn_cnt = u64::from(self.syn);
        side.fin_cnt = u64::from(self.fin);
        side.is_rst_first = self.options & option::RST_FIRST != 0;
        side.ip_bytes = self.ip_bytes;
        side.first_ns = since(self.first_data);
        side.last_ns = since(self.last_data);
        side.first_ack_ns = since(self.first_ack);
        side.rtt = self.rtt();
        side.ttl_min = self.ttl_min;
        side.ttl_max = self.ttl_max;
        side.has_window_scale = self.options & option::WINDOW_SCALE != 0;
        side.has_timestamps = self.options & option::TIMESTAMPS != 0;
        side.has_sack = self.options & option::SACK != 0;
        side.has_multipath = self.options & option::MULTIPATH != 0;
        side.window_scale = self.window_scale;
        side.mss = self.mss;
        side.mss_max = u32::from(self.mss_max);
        side.mss_min = u32::from(self.mss_min);
        side.win_max = self.win_max;
        side.win_min = self.win_min;
        side.cwin_max = self.cwin_max;
        side.cwin_min = self.cwin_min;
        side.cwin_ini = self.cwin_ini;
        side.pkts_push = self.pkts_push;
    }

    #[expect(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a mean of nanoseconds fits, and a deviation is not negative"
    )]
    fn rtt(&self) -> RttRow {
        let Some(avg_ns) = self.rtt_sum.checked_div(u64::from(self.rtt_count)) else {
            return RttRow::default();
        };
        let count = f64::from(self.rtt_count);
        let mean = self.rtt_sum as f64 / count;
        // The unbiased estimate, as tcptrace and Tstat print it.
        let variance = if self.rtt_count > 1 {
            (self.rtt_squares - mean * mean * count).max(0.0) / (count - 1.0)
        } else {
            0.0
        };
        RttRow {
            count: self.rtt_count,
            avg_ns,
            min_ns: self.rtt_min,
            max_ns: self.rtt_max,
            std_ns: variance.sqrt() as u64,
        }
    }
}
