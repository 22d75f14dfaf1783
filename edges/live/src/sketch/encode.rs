//! From what closed to messages that are not too large.

use std::sync::Arc;

use serde::Serialize;

use super::series::Mergeable;
use super::wire::{Distribution, Interval, Key, Message, Table};
use super::{MAX_BYTES, VERSION};
use crate::api::Word as _;
use crate::figures::{Counts as _, Keyed};
use crate::interval::Open;
use crate::kind::Kind;
use crate::part::Part;
use crate::writer::Seen;
use linkweir_record::escape::hex_digits;
use linkweir_sketch::TopK;

/// Buckets of histograms in a message: at most 16 bytes of steps and 20 of counts each, 120 KiB.
const MAX_BUCKETS: usize = 3072;
/// Series in a message: at most 600 bytes each where every bucket has grown, 90 KiB.
const MAX_SERIES: usize = 150;

/// The messages of `K` as they are written; the counts are those of the interval itself.
type Sent<'a, K> = Message<&'a <K as Kind>::Counts, WireKeyed<K>, <K as Mergeable>::WireSeries>;
/// What is kept with a key of `K`, in a message.
pub(super) type WireKeyed<K> = <<K as Kind>::Keyed as Keyed>::Wire;

/// An interval, and where the run stood when it closed.
#[derive(Debug)]
pub(super) struct ClosedInterval<K: Mergeable> {
    /// Its number in the run, from 1.
    pub(super) number: u64,
    pub(super) open: Open<K>,
    pub(super) seen: Seen,
    /// Records that came too late for their interval.
    pub(super) late: u64,
    pub(super) series: K::Series,
}

/// What closed, with all that its messages say.
#[derive(Debug)]
pub(super) enum Closed<K: Mergeable> {
    /// An interval.
    Interval(Box<ClosedInterval<K>>),
    /// A part.
    Part(Arc<Part<K>>),
}

/// Makes the messages of one run.
#[derive(Debug)]
pub(super) struct Encoder<K: Mergeable> {
    probe: String,
    run: u64,
    seq: u64,
    /// What the run had come to at the last interval.
    faults: u64,
    late: u64,
    series: K::Series,
    /// End of the last interval.
    end: u64,
}

impl<K: Mergeable> Encoder<K> {
    pub(super) fn new(probe: &str, run: u64) -> Self {
        Self {
            probe: probe.to_owned(),
            run,
            seq: 0,
            faults: 0,
            late: 0,
            series: K::Series::default(),
            end: 0,
        }
    }

    pub(super) fn probe(&self) -> &str {
        &self.probe
    }

    /// The messages of what closed.
    pub(super) fn messages(&mut self, closed: Closed<K>) -> Vec<Vec<u8>> {
        match closed {
            Closed::Interval(closed) => self.interval(*closed),
            Closed::Part(part) => self.part(&part),
        }
    }

    /// The last message of the run.
    pub(super) fn end(&mut self) -> Vec<u8> {
        let mut message = self.message(self.end, self.end);
        message.has_ended = true;
        json(&message)
    }

    /// An empty message, which takes the next number.
    fn message<'a>(&mut self, start_ns: u64, end_ns: u64) -> Sent<'a, K> {
        let seq = self.seq;
        self.seq += 1;
        Message {
            linkweir_sketch: VERSION,
            subject: K::SUBJECT.to_owned(),
            probe: self.probe.clone(),
            run: self.run,
            seq,
            start_ns,
            end_ns,
            interval: None,
            distributions: Vec::new(),
            series: Vec::new(),
            tables: Vec::new(),
            has_ended: false,
        }
    }

    fn interval(&mut self, closed: ClosedInterval<K>) -> Vec<Vec<u8>> {
        let ClosedInterval {
            number,
            open,
            seen,
            late,
            series: now,
        } = closed;
        let sums = &open.sums;
        self.end = open.end;
        let mut interval = Some(Interval {
            number,
            packets: sums.packets,
            bytes: sums.bytes,
            dropped: sums.dropped,
            table: sums.table,
            first_ns: seen.first.map(linkweir_wire::Timestamp::as_nanos),
            last_ns: seen.last.map(linkweir_wire::Timestamp::as_nanos),
            faults: seen.faults.saturating_sub(self.faults),
            late_records: late.saturating_sub(self.late),
            counts: &sums.counts,
        });
        let mut series = K::send_series(&now, &self.series).into_iter().peekable();
        (self.faults, self.late, self.series) = (seen.faults, late, now);
        let distributions = sums.counts.distributions();
        let mut pieces = K::Of::ALL
            .iter()
            .zip(distributions)
            .flat_map(|(of, values)| {
                let values = values.pieces(MAX_BUCKETS);
                let sent = values
                    .iter()
                    .map(|values| Distribution::of(of.as_str(), values));
                sent.collect::<Vec<_>>()
            })
            .flatten()
            .peekable();
        let mut messages = Vec::new();
        while interval.is_some() || series.peek().is_some() || pieces.peek().is_some() {
            let mut message = self.message(open.start, open.end);
            message.interval = interval.take();
            message.series = series.by_ref().take(MAX_SERIES).collect();
            let mut room = MAX_BUCKETS;
            while let Some(piece) = pieces.next_if(|piece| piece.buckets.len() <= room) {
                room -= piece.buckets.len();
                message.distributions.push(piece);
            }
            messages.push(json(&message));
        }
        messages
    }

    /// A message for each table with something in it.
    fn part(&mut self, part: &Part<K>) -> Vec<Vec<u8>> {
        let tables = K::By::ALL.iter().zip(&part.tables);
        tables
            .filter(|(_, table)| !table.is_empty())
            .map(|(by, table)| self.table(*by, table, part))
            .collect()
    }

    /// As many of the largest keys as fit; what is left out is below the floor.
    fn table(&mut self, by: K::By, table: &TopK<K::Keyed>, part: &Part<K>) -> Vec<u8> {
        let mut message = self.message(part.start, part.end);
        let mut most = table.len();
        loop {
            message.tables = vec![sent::<K>(by, table, most)];
            let bytes = json(&message);
            if bytes.len() <= MAX_BYTES || most == 0 {
                return bytes;
            }
            most /= 2;
        }
    }
}

/// The `most` largest keys of a table.
fn sent<K: Mergeable>(by: K::By, table: &TopK<K::Keyed>, most: usize) -> Table<WireKeyed<K>> {
    let all = table.top(usize::MAX);
    let left_out = all.get(most).map_or(0, |entry| entry.count);
    let keys = all.iter().take(most).map(|entry| Key {
        key: hex_digits(entry.key),
        is_truncated: entry.is_truncated,
        count: entry.count,
        error: entry.error,
        with: entry.payload.send(),
    });
    Table {
        by: by.as_str().to_owned(),
        total: table.total(),
        floor: table.floor().max(left_out),
        keys: keys.collect(),
    }
}

fn json(message: &impl Serialize) -> Vec<u8> {
    // A value of ours has no key that JSON could not have.
    serde_json::to_vec(message).unwrap_or_default()
}
