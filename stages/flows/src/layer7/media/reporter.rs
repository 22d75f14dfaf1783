//! What one sender of RTCP reports: of its own media, and of those that it receives.
//!
//! Source: RFC 3550 section 6.4; the columns are Tstat's.

use linkweir_proto::rtp::{Block, Compound, SenderInfo};
use linkweir_record::flow::{FlowRow, Jitter, ReportPart, StreamEnd, StreamPart, StreamRow};
use linkweir_wire::Side;

use super::sender::Sender;
use super::{Datagram, Samples, float};
use crate::step::MediaMeasure;

/// Sender's reports that a receiver may still name as the last one it got.
const REPORTS: usize = 4;
/// Reports on sources of one datagram that are read.
const MAX_BLOCKS: usize = 62;

/// A sender of RTCP.
#[derive(Debug)]
pub(super) struct Reporter {
    sender: Sender,
    jitter_sum: u64,
    jitter_max: u32,
    jitter_min: u32,
    part: ReportPart,
    /// The source of its first report and what it last said was lost of it.
    on: Option<(u32, i32)>,
    /// Clocks of its last sender's reports, and when they passed; zero: none.
    reports: [(u32, u64); REPORTS],
    report_at: u8,
    /// When its last sender's report passed, and the bytes it named.
    sent: Option<(u64, u32)>,
    /// Datagrams that were not read.
    pub(super) unread: u64,
}

/// Who sent a compound packet: the first source named. `None`: too short to name one.
pub(super) fn source_of(datagram: &[u8]) -> Option<u32> {
    let bytes = datagram.get(4..)?.first_chunk::<4>()?;
    Some(u32::from_be_bytes(*bytes))
}

impl Reporter {
    pub(super) fn new(side: Side, source: u32, datagram: &Datagram<'_>) -> Self {
        Self {
            sender: Sender::new(side, source, datagram.ts_ns),
            jitter_sum: 0,
            jitter_max: 0,
            jitter_min: u32::MAX,
            part: ReportPart::default(),
            on: None,
            reports: [(0, 0); REPORTS],
            report_at: 0,
            sent: None,
            unread: 0,
        }
    }

    pub(super) fn is(&self, side: Side, source: u32) -> bool {
        self.sender.is(side, source)
    }

    /// When the sender's report with this clock passed, if it was one for `side`.
    pub(super) fn sent_to(&self, side: Side, ntp: u32) -> Option<u64> {
        if self.sender.side == side {
            return None;
        }
        let mut reports = self.reports.iter();
        let found = reports.find(|(clock, at)| *clock == ntp && *at > 0);
        found.map(|(_, at)| *at)
    }

    /// Counts a datagram.
    pub(super) fn on_datagram(&mut self, datagram: &Datagram<'_>) {
        let is_first = self.sender.packets == 0;
        // It has a source, and so the type before that.
        let kind = datagram.payload.get(1).copied().unwrap_or_default();
        self.sender.count(kind, datagram.len, datagram.ttl);
        if !is_first {
            self.sender.gap(datagram.ts_ns);
        }
        self.sender.seen_at(datagram.ts_ns);
    }

    /// Reads the reports of a datagram. `sent_at`: when a sender's report of the other side passed, by its
    /// clock.
    pub(super) fn on_compound(
        &mut self,
        compound: Compound<'_>,
        now: u64,
        sent_at: impl Fn(u32) -> Option<u64>,
        samples: &mut Samples,
    ) {
        let mut left = MAX_BLOCKS;
        for packet in compound.packets() {
            if let Some(info) = &packet.sender {
                self.on_sender(info, now, samples);
            }
            for block in packet.blocks.take(left) {
                left -= 1;
                self.on_block(&block, now, &sent_at, samples);
            }
        }
    }

    fn on_sender(&mut self, info: &SenderInfo, now: u64, samples: &mut Samples) {
        let at = usize::from(self.report_at) % REPORTS;
        if let Some(place) = self.reports.get_mut(at) {
            *place = (info.ntp_middle, now);
        }
        self.report_at = self.report_at.wrapping_add(1);
        (self.part.packets, self.part.bytes) = (info.packets, info.bytes);
        if let Some((before, bytes)) = self.sent.replace((now, info.bytes)) {
            let span_us = now.saturating_sub(before) / 1_000;
            let bits = u64::from(info.bytes.wrapping_sub(bytes)) * 8;
            if let Some(kilobits) = (bits * 1_000).checked_div(span_us) {
                self.sender
                    .sample(samples, MediaMeasure::MediaRate, kilobits);
            }
        }
    }

    fn on_block(
        &mut self,
        block: &Block,
        now: u64,
        sent_at: &impl Fn(u32) -> Option<u64>,
        samples: &mut Samples,
    ) {
        self.part.blocks += 1;
        self.part.fraction_sum += u64::from(block.fraction_lost);
        self.jitter_sum += u64::from(block.jitter);
        self.jitter_max = self.jitter_max.max(block.jitter);
        self.jitter_min = self.jitter_min.min(block.jitter);
        self.sender
            .sample(samples, MediaMeasure::ReportJitter, u64::from(block.jitter));
        let thousandths = u64::from(block.fraction_lost) * 1_000 / 256;
        self.sender
            .sample(samples, MediaMeasure::ReportFraction, thousandths);
        match self.on {
            Some((source, before)) if source == block.source => {
                let more = i64::from(block.lost) - i64::from(before);
                let lost = u64::try_from(more).unwrap_or(0);
                let duplicates = u64::try_from(-more).unwrap_or(0);
                self.sender.sample(samples, MediaMeasure::ReportLost, lost);
                self.sender
                    .sample(samples, MediaMeasure::ReportDuplicates, duplicates);
                self.on = Some((source, block.lost));
                self.part.lost = block.lost;
            }
            Some(_) => {}
            None => {
                self.on = Some((block.source, block.lost));
                self.part.lost = block.lost;
            }
        }
        if block.last_report == 0 {
            return;
        }
        // Section 6.4.1: now less the time of the report less the delay at the receiver.
        let delay_ns = u64::from(block.delay) * 1_000_000_000 / 65_536;
        let rtt = sent_at(block.last_report)
            .and_then(|at| now.checked_sub(at))
            .and_then(|since| since.checked_sub(delay_ns));
        if let Some(rtt) = rtt {
            let part = &mut self.part;
            part.rtt_min_ns = match part.rtt_count {
                0 => rtt,
                _ => part.rtt_min_ns.min(rtt),
            };
            part.rtt_max_ns = part.rtt_max_ns.max(rtt);
            part.rtt_sum_ns = part.rtt_sum_ns.saturating_add(rtt);
            part.rtt_count += 1;
            self.sender
                .sample(samples, MediaMeasure::ReportRtt, rtt / 1_000_000);
        }
    }

    /// Its row.
    pub(super) fn row(&self, flow: &FlowRow, ends: (StreamEnd, StreamEnd)) -> StreamRow {
        let has_blocks = self.part.blocks > 0;
        let jitter = Jitter {
            average: float(self.jitter_sum) / float(self.part.blocks.max(1)),
            max: f64::from(self.jitter_max),
            min: if has_blocks {
                f64::from(self.jitter_min)
            } else {
                0.0
            },
        };
        let part = StreamPart::Reports(ReportPart {
            unread: self.unread,
            ..self.part
        });
        self.sender.row(flow, ends, jitter, part)
    }
}
