//! From a message, which anybody may have written, to what can be added.

use linkweir_sketch::{LogLinear, TopK, TopPart};
use linkweir_wire::Timestamp;

use super::encode::WireKeyed;
use super::series::Mergeable;
use super::wire::{Cause, Head, Message, Table, are_bounded, from_hex};
use super::{MAX_BYTES, MAX_NAME, VERSION};
use crate::api::Word as _;
use crate::figure::Entries;
use crate::figures::{Counts as _, Keyed as _};
use crate::interval::Sums;
use crate::writer::Seen;

/// Longest interval and part, nanoseconds: an hour.
const MAX_LENGTH: u64 = 3_600_000_000_000;

/// A message of `K` as it is read; the counts of its interval are looked at one by one.
type MessageOf<K> = Message<Entries, WireKeyed<K>, <K as Mergeable>::WireSeries>;

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
        taken(message)
    }
}

fn taken<K: Mergeable>(message: MessageOf<K>) -> Result<Taken<K>, Cause> {
    const WRONG: Cause = Cause::Contradictory;
    let length = message.end_ns.checked_sub(message.start_ns).ok_or(WRONG)?;
    let is_named = !message.probe.is_empty() && message.probe.len() <= MAX_NAME;
    if !is_named || length > MAX_LENGTH {
        return Err(WRONG);
    }
    let mut sums = Sums::<K>::default();
    let mut seen = Seen::default();
    let (mut number, mut late_records) = (None, 0);
    if let Some(interval) = message.interval {
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
            return Err(WRONG);
        }
        number = Some(interval.number);
        late_records = interval.late_records;
        sums.packets = interval.packets;
        sums.bytes = interval.bytes;
        sums.dropped = interval.dropped;
        sums.table = interval.table;
        sums.counts = K::Counts::take(interval.counts)?;
        seen.faults = interval.faults;
        seen.first = interval.first_ns.map(Timestamp::from_nanos);
        seen.last = interval.last_ns.map(Timestamp::from_nanos);
    }
    for distribution in &message.distributions {
        let of: K::Of = distribution.of.parse().map_err(|_| WRONG)?;
        let values: LogLinear = distribution.values().ok_or(WRONG)?;
        if let Some(sum) = sums.counts.distributions_mut().get_mut(of.position()) {
            sum.merge(&values);
        }
    }
    // Added to nothing first: a message counts as a whole or not at all.
    let mut nothing = K::Series::default();
    for grown in &message.series {
        K::take_series(&mut nothing, grown)?;
    }
    let tables = message.tables.iter().map(table::<K>);
    Ok(Taken {
        tables: tables.collect::<Option<_>>().ok_or(WRONG)?,
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

fn table<K: Mergeable>(sent: &Table<WireKeyed<K>>) -> Option<TableOf<K>> {
    let by: K::By = sent.by.parse().ok()?;
    let mut parts = Vec::with_capacity(sent.keys.len());
    for key in &sent.keys {
        parts.push(TopPart {
            key: from_hex(&key.key)?,
            is_truncated: key.is_truncated,
            count: key.count,
            error: key.error,
            payload: K::Keyed::take(&key.with).ok()?,
        });
    }
    // With room for one more its floor is the one it came with.
    let capacity = parts.len() + 1;
    let sums = (sent.total, sent.floor);
    let table = TopK::from_parts(
        capacity,
        crate::part::table::<K>(by)?.key_bytes,
        sums,
        parts,
    )?;
    are_bounded(&[sent.total, sent.floor]).then_some((by, table))
}
