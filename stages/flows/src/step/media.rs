//! What streams of RTP and the reports of RTCP add to Tstat's histograms.
//!
//! As Tstat: some values count when they come, a stream as a whole when its flow ends. Shares of packets are in
//! thousandths, times in the unit that the name of the histogram's description gives.

use linkweir_record::flow::{MediaPart, ReportPart, StreamPart, StreamRow};
use linkweir_sketch::cells::Direction;
use linkweir_sketch::step::HistogramSet;
use linkweir_wire::Side;

use super::ids::{ByDirection, ids};

/// Packets below which a stream has no bit rate worth counting.
const BITRATE_PACKETS: u64 = 5;
/// Tstat's numbers of kinds of streams.
const RTP: u64 = 3;
/// See [`RTP`].
const RTCP: u64 = 4;

/// A value that counts when it comes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MediaSample {
    /// Who sent what it is of.
    pub side: Side,
    /// What it is.
    pub measure: MediaMeasure,
    /// How much.
    pub value: u64,
}

/// What is counted when it comes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MediaMeasure {
    /// Lost packets of a stream in a row.
    Burst,
    /// A packet of a stream whose number is not the next one.
    OutOfSequence,
    /// How much later than its successors a packet came, milliseconds.
    ReorderDelay,
    /// Jitter that a receiver reports, in units of the media's clock.
    ReportJitter,
    /// Share of packets that a receiver reports as lost, thousandths.
    ReportFraction,
    /// Packets lost since its report before.
    ReportLost,
    /// Packets that came twice since its report before.
    ReportDuplicates,
    /// Round-trip time between the capture point and a receiver, milliseconds.
    ReportRtt,
    /// What a sender sent since its report before, kbit/s.
    MediaRate,
}

/// Counts a value.
pub(super) fn add_sample(sample: MediaSample, direction: Direction, into: &mut HistogramSet) {
    let ids = ids();
    let mut add = |family: ByDirection, value| into.add(family.get(direction), value);
    match sample.measure {
        MediaMeasure::Burst => add(ids.mm_burst_loss, sample.value),
        MediaMeasure::OutOfSequence => add(ids.mm_oos_p, sample.value),
        MediaMeasure::ReorderDelay => {
            add(ids.mm_reord_p_n, 1);
            add(ids.mm_reord_delay, sample.value);
        }
        MediaMeasure::ReportJitter => add(ids.rtcp_jitter, sample.value),
        MediaMeasure::ReportFraction => add(ids.rtcp_f_lost, sample.value),
        MediaMeasure::ReportLost => add(ids.rtcp_lost, sample.value),
        MediaMeasure::ReportDuplicates => add(ids.rtcp_dup, sample.value),
        MediaMeasure::ReportRtt => add(ids.rtcp_rtt, sample.value),
        MediaMeasure::MediaRate => add(ids.rtcp_mm_bt, sample.value),
    }
}

/// Counts a stream whose flow has ended.
pub(super) fn add_stream(row: &StreamRow, into: &mut HistogramSet) {
    let (client, server) = (row.client.is_internal, row.server.is_internal);
    let (direction, to) = if row.is_from_client {
        (Direction::of(client, server), row.server.ip)
    } else {
        (Direction::of(server, client), row.client.ip)
    };
    let ids = ids();
    let kind = match &row.part {
        StreamPart::Media(part) => {
            add_media(row, part, direction, into);
            let is_multicast = u64::from(to.is_multicast());
            into.add(ids.mm_uni_multi.get(direction), is_multicast);
            RTP
        }
        StreamPart::Reports(part) => {
            add_reports(row, part, direction, into);
            RTCP
        }
    };
    into.add(ids.mm_type.get(direction), kind);
}

fn add_media(row: &StreamRow, part: &MediaPart, direction: Direction, into: &mut HistogramSet) {
    let ids = ids();
    let mut add = |family: ByDirection, value| into.add(family.get(direction), value);
    for family in [ids.mm_cl_b, ids.mm_cl_b_s] {
        add(family, row.bytes);
    }
    for family in [ids.mm_cl_p, ids.mm_cl_p_s] {
        add(family, row.packets);
    }
    let duration_ms = row.duration_ns() / 1_000_000;
    add(ids.mm_tot_time, duration_ms / 1_000);
    add(ids.mm_tot_time_s, duration_ms);
    let kilobits = row.bytes.saturating_mul(8).checked_div(duration_ms);
    if let Some(kilobits) = kilobits.filter(|_| row.packets >= BITRATE_PACKETS) {
        add(ids.mm_avg_bitrate, kilobits);
    }
    let last = row.kinds.iter().next_back();
    add(ids.mm_rtp_pt, last.map_or(0, |(kind, _)| u64::from(kind)));
    if let Some(gap_ns) = row.gap_sum_ns.checked_div(row.gaps) {
        add(ids.mm_avg_ipg, gap_ns / 100_000);
    }
    add(ids.mm_avg_jitter, whole(row.jitter.average * 10.0));
    add(ids.mm_n_oos, part.out_of_sequence);
    for (family, count) in [
        (ids.mm_p_oos, part.out_of_sequence),
        (ids.mm_p_dup, part.duplicates),
        (ids.mm_p_lost, part.lost),
        (ids.mm_p_late, part.late),
    ] {
        let share = count.saturating_mul(1_000).checked_div(row.packets);
        add(family, share.unwrap_or_default());
    }
    into.add_n(ids.mm_burst_loss.get(direction), 0, part.unbroken);
}

fn add_reports(row: &StreamRow, part: &ReportPart, direction: Direction, into: &mut HistogramSet) {
    let ids = ids();
    let mut add = |family: ByDirection, value| into.add(family.get(direction), value);
    add(ids.rtcp_t_lost, u64::try_from(part.lost).unwrap_or(0));
    let duration_us = row.duration_ns() / 1_000;
    let bits = row.bytes.saturating_mul(8_000_000).checked_div(duration_us);
    if let Some(bits) = bits {
        add(ids.rtcp_bt, bits);
    }
    add(ids.rtcp_mm_cl_p, u64::from(part.packets));
    add(ids.rtcp_mm_cl_b, u64::from(part.bytes));
    add(ids.rtcp_cl_p, row.packets);
    add(ids.rtcp_cl_b, row.bytes);
    if let Some(gap_ns) = row.gap_sum_ns.checked_div(row.gaps) {
        add(ids.rtcp_avg_inter, gap_ns / 1_000_000);
    }
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "negative ones become zero, large ones saturate"
)]
const fn whole(value: f64) -> u64 {
    value as u64
}
