//! Lines of `log_mm_complete`: streams of RTP and reports of RTCP.

use std::io::Write as _;

use linkweir_record::flow::{Jitter, MediaPart, ReportPart, StreamEnd, StreamPart, StreamRow};
use linkweir_sink::number::{push_ip, push_seconds6, push_u64};

use crate::lines::{push_all, push_header};

const COLUMNS: [&str; 53] = [
    "a_proto",
    "direction",
    "c_proto",
    "c_ip",
    "c_port",
    "c_internal",
    "c_iscrypto",
    "c_mux_prot",
    "s_proto",
    "s_ip",
    "s_port",
    "s_internal",
    "s_iscrypto",
    "s_mux_prot",
    "packets",
    "ipg",
    "jitter_avg",
    "jitter_max",
    "jitter_min",
    "ttl_avg",
    "ttl_max",
    "ttl_min",
    "starttime",
    "duration",
    "databytes",
    "speed",
    "SSRC",
    "losses",
    "oos",
    "dup",
    "late",
    "pt_id",
    "pt_counters",
    "bogus",
    "rtcp_losses",
    "rtcp_fraclost",
    "rtcp_lenpack",
    "rtcp_lenbytes",
    "rtt_avg",
    "rtt_max",
    "rtt_min",
    "rtt_samples",
    "rtcp_trunc",
    "rtp_max_payload",
    "rtp_min_payload",
    "rtp_avg_payload",
    "rtp_stdev_payload",
    "jitter8k_avg",
    "jitter8k_max",
    "jitter8k_min",
    "jitter90k_avg",
    "jitter90k_max",
    "jitter90k_min",
];

pub(crate) fn header(out: &mut Vec<u8>) {
    push_header(out, "#", b' ', COLUMNS.into_iter());
}

#[expect(
    clippy::cast_precision_loss,
    reason = "six decimals are printed of what counters and times give"
)]
const fn float(value: u64) -> f64 {
    value as f64
}

/// `above` by `below`; zero where there is nothing to divide by.
fn ratio(above: u64, below: u64) -> f64 {
    if below == 0 {
        return 0.0;
    }
    float(above) / float(below)
}

/// Numbers with six decimals, each after a space.
fn push_floats<const N: usize>(out: &mut Vec<u8>, values: [f64; N]) {
    for value in values {
        // A vector takes everything.
        let _never_fails = write!(out, " {value:.6}");
    }
}

fn push_jitter(out: &mut Vec<u8>, jitter: &Jitter) {
    push_floats(out, [jitter.average, jitter.max, jitter.min]);
}

fn push_end(out: &mut Vec<u8>, end: &StreamEnd, kind: u32) {
    out.push(b' ');
    push_u64(out, u64::from(kind));
    out.push(b' ');
    push_ip(out, end.ip);
    push_all(
        out,
        [
            u64::from(end.port),
            u64::from(end.is_internal),
            u64::from(end.is_encrypted),
            u64::from(end.shares),
        ],
    );
}

/// Types, and the packets of each, joined by commas.
fn push_kinds(out: &mut Vec<u8>, row: &StreamRow) {
    let mut push = |values: &mut dyn Iterator<Item = u64>| {
        let mut separator = b' ';
        for value in values {
            out.push(separator);
            push_u64(out, value);
            separator = b',';
        }
    };
    push(&mut row.kinds.iter().map(|(kind, _)| u64::from(kind)));
    push(&mut row.kinds.iter().map(|(_, count)| u64::from(count)));
}

fn push_media(out: &mut Vec<u8>, row: &StreamRow, part: &MediaPart) {
    push_all(
        out,
        [part.lost, part.out_of_sequence, part.duplicates, part.late],
    );
    push_kinds(out, row);
    push_all(out, [u64::from(part.has_restarted)]);
    out.extend_from_slice(b" 0 0 0 0 0 0 0 0 0");
    push_all(
        out,
        [u64::from(part.payload_max), u64::from(part.payload_min)],
    );
    let (count, sum) = (float(row.packets), float(row.bytes));
    let variance = if row.packets > 1 {
        (float(part.payload_squares) - sum * sum / count).max(0.0) / (count - 1.0)
    } else {
        0.0
    };
    push_floats(out, [ratio(row.bytes, row.packets), variance.sqrt()]);
    for jitter in &part.jitter_by_clock {
        push_jitter(out, jitter);
    }
}

fn push_reports(out: &mut Vec<u8>, row: &StreamRow, part: &ReportPart) {
    out.extend_from_slice(b" 0 0 0 0");
    push_kinds(out, row);
    out.extend_from_slice(b" 0 ");
    let _never_fails = write!(out, "{}", part.lost);
    let lost_percent = ratio(part.fraction_sum, part.blocks) * 100.0 / 256.0;
    push_floats(out, [lost_percent]);
    push_all(out, [u64::from(part.packets), u64::from(part.bytes)]);
    let milliseconds = |ns: u64| float(ns) / 1_000_000.0;
    push_floats(
        out,
        [
            ratio(part.rtt_sum_ns, part.rtt_count) / 1_000_000.0,
            milliseconds(part.rtt_max_ns),
            milliseconds(part.rtt_min_ns),
        ],
    );
    push_all(out, [part.rtt_count, u64::from(part.unread > 0)]);
    out.extend_from_slice(b" 0 0 0.0 0.0 0.0 0.0 0.0 0.0 0.0 0.0");
}

/// The line of a stream.
pub(crate) fn stream(out: &mut Vec<u8>, row: &StreamRow) {
    out.push(match row.part {
        StreamPart::Media(_) => b'R',
        StreamPart::Reports(_) => b'T',
    });
    out.extend_from_slice(if row.is_from_client { b" C" } else { b" S" });
    push_end(out, &row.client, row.flow_kind);
    push_end(out, &row.server, row.flow_kind);
    push_all(out, [row.packets]);
    push_floats(out, [ratio(row.gap_sum_ns, row.gaps) / 1_000_000.0]);
    push_jitter(out, &row.jitter);
    push_floats(out, [ratio(row.ttl_sum, row.packets)]);
    push_all(out, [u64::from(row.ttl_max), u64::from(row.ttl_min)]);
    for time_ns in [row.first_ns, row.duration_ns()] {
        out.push(b' ');
        push_seconds6(out, time_ns);
    }
    push_all(out, [row.bytes]);
    let bits = ratio(row.bytes, row.duration_ns()) * 8e9;
    push_floats(out, [bits]);
    let _never_fails = write!(out, " 0x{:x}", row.source);
    match &row.part {
        StreamPart::Media(part) => push_media(out, row, part),
        StreamPart::Reports(part) => push_reports(out, row, part),
    }
    out.push(b'\n');
}
