//! What a run counted of streams: the `http.streams` key of the summary.

use linkweir_record::Events;
use linkweir_sketch::{BoundedCounts, LogLinear};

use super::Times;

/// Hosts that are counted by name; further ones are counted together.
const MAX_HOSTS: usize = 64;
/// Counters that stand for themselves.
const COUNTERS: usize = 8;

/// Counters of streams. Everything merges by addition.
#[derive(Debug, Clone, PartialEq)]
pub struct StreamStats {
    /// Streams.
    pub streams: u64,
    /// Of these, what was taken for streams by the lengths and times of TLS records.
    pub estimated: u64,
    /// Events of all streams.
    pub events: u64,
    /// Of these, events that came with the packet that completed the one before.
    pub coalesced: u64,
    /// Gaps over 500 ms and over ten times the median of their stream.
    pub stalls: u64,
    /// Streams whose events have waited for one another.
    pub buffered: u64,
    /// Streams of which bytes are missing: they have no gap there.
    pub with_gaps: u64,
    /// Responses that are streams whose events were not looked for: too many went on at once, or the head came before
    /// its request.
    pub unmeasured: u64,
    /// Times to the first event, estimated ones not included, nanoseconds.
    pub first_event: LogLinear,
    /// Times between events, estimated ones not included, nanoseconds.
    pub event_gap: LogLinear,
    /// Streams by host, and those of them that were buffered.
    hosts: BoundedCounts,
    buffered_hosts: BoundedCounts,
}

impl Default for StreamStats {
    fn default() -> Self {
        Self {
            streams: 0,
            estimated: 0,
            events: 0,
            coalesced: 0,
            stalls: 0,
            buffered: 0,
            with_gaps: 0,
            unmeasured: 0,
            first_event: LogLinear::default(),
            event_gap: LogLinear::default(),
            hosts: BoundedCounts::new(MAX_HOSTS),
            buffered_hosts: BoundedCounts::new(MAX_HOSTS),
        }
    }
}

impl StreamStats {
    /// Counts a stream of `host`.
    pub(crate) fn count(&mut self, columns: &Events, times: &Times, host: &[u8]) {
        self.streams += 1;
        self.events += u64::from(columns.count);
        self.coalesced += u64::from(columns.coalesced);
        self.stalls += u64::from(columns.stalls);
        self.with_gaps += u64::from(times.has_hole());
        let is_buffered = columns.is_buffered == Some(true);
        self.buffered += u64::from(is_buffered);
        self.count_host(host, 1, u64::from(is_buffered));
        if let Some(first_ns) = columns.first_ns {
            self.first_event.record(first_ns);
        }
        times.each_gap(|gap_ns, gaps| {
            if gaps > 0 {
                self.event_gap.record_n(gap_ns, gaps);
            }
        });
    }

    /// Counts what is taken for a stream.
    pub(crate) fn count_estimated(&mut self, columns: &Events) {
        self.streams += 1;
        self.estimated += 1;
        self.events += u64::from(columns.count);
        self.coalesced += u64::from(columns.coalesced);
        self.stalls += u64::from(columns.stalls);
    }

    /// Counts `streams` of a host, of which so many were buffered.
    pub fn count_host(&mut self, host: &[u8], streams: u64, buffered: u64) {
        self.hosts.record_n(host, streams);
        if buffered > 0 {
            self.buffered_hosts.record_n(host, buffered);
        }
    }

    /// Counts streams, and those of them that were buffered, of hosts that are not distinguished.
    pub const fn count_other_hosts(&mut self, streams: u64, buffered: u64) {
        self.hosts.record_other(streams);
        self.buffered_hosts.record_other(buffered);
    }

    /// Hosts with their streams and those of them that were buffered, the most buffered first.
    #[must_use]
    pub fn hosts(&self) -> Vec<(&[u8], u64, u64)> {
        let buffered_of = |host: &[u8]| {
            let mut all = self.buffered_hosts.iter();
            all.find(|(name, _)| *name == host)
                .map_or(0, |(_, count)| count)
        };
        let mut hosts: Vec<_> = self
            .hosts
            .iter()
            .map(|(host, streams)| (host, streams, buffered_of(host)))
            .collect();
        hosts.sort_by_key(|(_, streams, buffered)| std::cmp::Reverse((*buffered, *streams)));
        hosts
    }

    /// Streams, and those of them that were buffered, of hosts that were not counted by name.
    #[must_use]
    pub const fn other_hosts(&self) -> (u64, u64) {
        (self.hosts.other(), self.buffered_hosts.other())
    }

    /// Adds what another shard counted.
    pub fn merge(&mut self, other: &Self) {
        for ((_, mine), (_, theirs)) in self.counters_mut().into_iter().zip(other.counters()) {
            *mine = mine.saturating_add(theirs);
        }
        self.first_event.merge(&other.first_event);
        self.event_gap.merge(&other.event_gap);
        self.hosts.merge(&other.hosts);
        self.buffered_hosts.merge(&other.buffered_hosts);
    }

    /// The plain counters by the names of their fields.
    #[must_use]
    pub const fn counters(&self) -> [(&'static str, u64); COUNTERS] {
        [
            ("streams", self.streams),
            ("estimated", self.estimated),
            ("events", self.events),
            ("coalesced", self.coalesced),
            ("stalls", self.stalls),
            ("buffered", self.buffered),
            ("with_gaps", self.with_gaps),
            ("unmeasured", self.unmeasured),
        ]
    }

    /// The same, to be changed.
    pub const fn counters_mut(&mut self) -> [(&'static str, &mut u64); COUNTERS] {
        [
            ("streams", &mut self.streams),
            ("estimated", &mut self.estimated),
            ("events", &mut self.events),
            ("coalesced", &mut self.coalesced),
            ("stalls", &mut self.stalls),
            ("buffered", &mut self.buffered),
            ("with_gaps", &mut self.with_gaps),
            ("unmeasured", &mut self.unmeasured),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_is_merged_by_its_name() {
        let mut stats = StreamStats::default();
        for ((_, counter), value) in stats.counters_mut().into_iter().zip(1..) {
            *counter = value;
        }
        stats.count_host(b"a.test", 3, 0);
        stats.count_host(b"b.test", 2, 1);
        stats.count_other_hosts(5, 4);
        stats.event_gap.record(7);
        let shown = format!("{stats:?}");
        for (name, value) in stats.counters() {
            assert!(shown.contains(&format!("{name}: {value},")), "{name}");
        }
        let mut twice = stats.clone();
        twice.merge(&stats);
        for ((_, sum), (name, value)) in twice.counters().into_iter().zip(stats.counters()) {
            assert_eq!(sum, 2 * value, "{name}");
        }
        let hosts: Vec<(&[u8], u64, u64)> = vec![(b"b.test", 4, 2), (b"a.test", 6, 0)];
        assert_eq!(twice.hosts(), hosts);
        assert_eq!(twice.other_hosts(), (10, 8));
        assert_eq!((twice.event_gap.count(), twice.first_event.count()), (2, 0));
    }
}
