//! From a message, which anybody may have written, to what can be added.

use linkweir_sketch::{LogLinear, TopK, TopPart};
use linkweir_wire::Timestamp;

use super::encode::MessageOf;
use super::mergeable::Mergeable;
use super::wire::{Head, Table, are_bounded, from_hex};
use super::{Cause, MAX_BYTES, MAX_NAME, VERSION};
use crate::interval::Sums;
use crate::writer::Seen;

/// Longest interval and part, nanoseconds: an hour.
const MAX_LENGTH: u64 = 3_600_000_000_000;

/// A table, and what its keys are.
pub(super) type TableOf<K> = (
    <K as crate::kind::Kind>::By,
    TopK<<K as crate::kind::Kind>::Keyed>,
);

/// A message that can be added.
#[derive(Debug)]
pub(super) struct Taken<K: Mergeable> {
    pub(super) probe: String,
    pub(super) run: u64,
    pub(super) seq: u64,
    pub(super) start: u64,
    pub(super) end: u64,
    /// The number of its interval, where it has the sums of one.
    pub(super) number: Option<u64>,
    /// What to add to the interval.
    pub(super) sums: Sums<K>,
    /// Where the run stands; faults are those of the interval.
    pub(super) seen: Seen,
    pub(super) late_records: u64,
    pub(super) series: Vec<K::WireSeries>,
    pub(super) tables: Vec<TableOf<K>>,
    pub(super) has_ended: bool,
}

impl<K: Mergeable> Taken<K> {
    /// Reads a message.
    ///
    /// Memory: a few times [`MAX_BYTES`], and the histograms, 440 KiB each at most.
    pub(super) fn read(bytes: &[u8]) -> Result<Self, Cause> {
        if bytes.len() > MAX_BYTES {
            return Err(Cause::TooLarge);
        }
        let head: Head = serde_json::from_slice(bytes).map_err(|_| Cause::Malformed)?;
        if head.linkweir_sketch != VERSION {
            return Err(Cause::Version);
        }
        if head.subject != K::SUBJECT {
            return Err(Cause::Subject);
        }
        let message: MessageOf<K> = serde_json::from_slice(bytes).map_err(|_| Cause::Malformed)?;
        taken(message).ok_or(Cause::Contradictory)
    }
}

/// `None` where numbers contradict one another.
fn taken<K: Mergeable>(message: MessageOf<K>) -> Option<Taken<K>> {
    let length = message.end_ns.checked_sub(message.start_ns)?;
    let is_named = !message.probe.is_empty() && message.probe.len() <= MAX_NAME;
    if !is_named || length > MAX_LENGTH {
        return None;
    }
    let mut sums = Sums::<K>::default();
    let mut seen = Seen::default();
    let (mut number, mut late_records) = (None, 0);
    if let Some(interval) = &message.interval {
        let dropped = interval.dropped.by_cause().map(|(_, count)| count);
        let counts = [
            interval.packets,
            interval.bytes,
            interval.table.entries,
            interval.table.capacity,
            interval.faults,
            interval.late_records,
        ];
        if !are_bounded(&dropped) || !are_bounded(&counts) || length == 0 || interval.number == 0 {
            return None;
        }
        number = Some(interval.number);
        late_records = interval.late_records;
        sums.packets = interval.packets;
        sums.bytes = interval.bytes;
        sums.dropped = interval.dropped;
        sums.table = interval.table;
        sums.counts = K::take_counts(&interval.counts).ok()?;
        seen.faults = interval.faults;
        seen.first = interval.first_ns.map(Timestamp::from_nanos);
        seen.last = interval.last_ns.map(Timestamp::from_nanos);
    }
    for distribution in &message.distributions {
        let of: K::Of = distribution.of.parse().ok()?;
        let values: LogLinear = distribution.values()?;
        K::distribution_mut(&mut sums.counts, of).merge(&values);
    }
    // Added to nothing first: a message counts as a whole or not at all.
    let mut nothing = K::Series::default();
    for grown in &message.series {
        K::take_series(&mut nothing, grown).ok()?;
    }
    let tables = message.tables.iter().map(table::<K>);
    Some(Taken {
        tables: tables.collect::<Option<_>>()?,
        probe: crate::text::clean(message.probe.as_bytes()),
        run: message.run,
        seq: message.seq,
        start: message.start_ns,
        end: message.end_ns,
        number,
        sums,
        seen,
        late_records,
        series: message.series,
        has_ended: message.has_ended,
    })
}

fn table<K: Mergeable>(sent: &Table<K::WireKeyed>) -> Option<TableOf<K>> {
    let by: K::By = sent.by.parse().ok()?;
    let mut parts = Vec::with_capacity(sent.keys.len());
    for key in &sent.keys {
        parts.push(TopPart {
            key: from_hex(&key.key)?,
            is_truncated: key.is_truncated,
            count: key.count,
            error: key.error,
            payload: K::take_keyed(&key.with).ok()?,
        });
    }
    // With room for one more its floor is the one it came with.
    let capacity = parts.len() + 1;
    let sums = (sent.total, sent.floor);
    let table = TopK::from_parts(capacity, K::key_bytes(by), sums, parts)?;
    are_bounded(&[sent.total, sent.floor]).then_some((by, table))
}
