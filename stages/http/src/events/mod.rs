//! Streams: the events of a response that comes over time, and the times between them.
//!
//! Only transactions whose response head says that events follow have an [`Events`]; `body` follows those of HTTP/1.x,
//! `web` those of HTTP/2 and HTTP/3, `estimate` guesses at those of TLS. An event counts with the packet that completes
//! it, once the bytes before it are there too.

mod scan;
mod segments;
mod stats;

use linkweir_record::Events as EventColumns;
use linkweir_sketch::Coarse;

pub(crate) use scan::Format;
use scan::Scan;
pub(crate) use segments::Content;
pub use stats::StreamStats;

/// Streams whose events are found at once; of more only the transactions are seen.
pub(crate) const MAX_STREAMS: usize = 16_384;
/// Longer gaps may be stalls, nanoseconds,
const STALL_NS: u64 = 500_000_000;
/// if they are so many times as long as the median.
const STALL_TIMES: u64 = 10;
/// Of fewer events nobody can say that they have waited for one another.
const MIN_BUFFERED: u32 = 5;
/// Nor of those that nobody has waited for, nanoseconds.
const MIN_WAIT_NS: u64 = 100_000_000;
/// Events that have waited together follow one another within this time, nanoseconds: 2^20, where a bucket ends.
const TOGETHER_NS: u64 = (1 << 20) - 1;

/// The times of events.
#[derive(Debug, Default)]
pub(crate) struct Times {
    count: u32,
    coalesced: u32,
    first_ns: Option<u64>,
    last_ns: u64,
    /// Gaps of events in packets of their own.
    gaps: Coarse,
    /// Whether anything is missing, of the stream, and since the last event.
    has_hole: bool,
    is_behind_hole: bool,
}

impl Times {
    /// An event is complete at this time, never before that of the one before.
    pub(crate) fn event(&mut self, now_ns: u64) {
        self.count = self.count.saturating_add(1);
        let is_first = self.first_ns.is_none();
        if is_first && !self.has_hole {
            self.first_ns = Some(now_ns);
        }
        let has_one_before = self.count > 1 && !self.is_behind_hole;
        self.is_behind_hole = false;
        if has_one_before {
            match now_ns.saturating_sub(self.last_ns) {
                0 => self.coalesced = self.coalesced.saturating_add(1),
                gap_ns => self.gaps.record(gap_ns),
            }
        }
        self.last_ns = now_ns;
    }

    /// Something is missing: how many events is not known.
    pub(crate) const fn miss(&mut self) {
        (self.has_hole, self.is_behind_hole) = (true, true);
    }

    /// Events so far.
    pub(crate) const fn count(&self) -> u32 {
        self.count
    }

    /// From the first event to the last, nanoseconds.
    pub(crate) const fn took_ns(&self) -> u64 {
        match self.first_ns {
            Some(first_ns) => self.last_ns.saturating_sub(first_ns),
            None => 0,
        }
    }

    /// Whether anything is missing.
    pub(crate) const fn has_hole(&self) -> bool {
        self.has_hole
    }

    /// Gaps, those of events that came together included.
    fn gap_count(&self) -> u64 {
        self.gaps.count() + u64::from(self.coalesced)
    }

    /// The gap that so many of a thousand do not exceed.
    pub(crate) fn gap(&self, per_mille: u16) -> Option<u64> {
        let rank = u128::from(self.gap_count()) * u128::from(per_mille);
        let among_none = u128::from(self.coalesced) * 1000;
        match self.gap_count() {
            0 => None,
            _ if among_none >= rank => Some(0),
            count => {
                // Of those behind the ones that are 0.
                let rank = (u128::from(count) * u128::from(per_mille)).div_ceil(1000)
                    - u128::from(self.coalesced);
                let mut seen = 0;
                let mut values = self.gaps.values();
                let found = values.find(|(_, times)| {
                    seen += u128::from(*times);
                    seen >= rank
                });
                found.map(|(value, _)| value).or_else(|| self.gaps.max())
            }
        }
    }

    /// Calls `each` with every gap and how often it occurred, as far as the sketch distinguishes them.
    pub(crate) fn each_gap(&self, mut each: impl FnMut(u64, u64)) {
        each(0, u64::from(self.coalesced));
        for (gap_ns, times) in self.gaps.values() {
            each(gap_ns, u64::from(times));
        }
    }

    /// Gaps so long that something must have stopped the server.
    fn stalls(&self) -> u32 {
        let median = self.gap(500).unwrap_or_default();
        let least = median.saturating_mul(STALL_TIMES).max(STALL_NS);
        u32::try_from(self.gaps.count_above(least)).unwrap_or(u32::MAX)
    }

    /// Whether events have waited for one another, of a request at `from_ns`; nothing where that cannot be said.
    ///
    /// Either all came within a tenth of the time that the first one took (at least 100 ms), or at least four of five
    /// came within 1 ms of the one before, and half of the others 100 ms or more behind it.
    fn is_buffered(&self, from_ns: Option<u64>) -> Option<bool> {
        if self.has_hole || self.count < MIN_BUFFERED {
            return None;
        }
        let waited_ns = self.first_ns?.saturating_sub(from_ns?);
        let is_at_end = waited_ns >= MIN_WAIT_NS && self.took_ns().saturating_mul(10) <= waited_ns;
        let apart = self.gaps.count_above(TOGETHER_NS);
        let long = self.gaps.count_above(MIN_WAIT_NS);
        let is_in_blocks = apart > 0 && apart * 5 <= self.gap_count() && long * 2 >= apart;
        Some(is_at_end || is_in_blocks)
    }

    /// What a record has of it; the request began at `from_ns`.
    pub(crate) fn columns(&self, from_ns: Option<u64>, may_be_buffered: bool) -> EventColumns {
        let gaps_ns = self.gap(500).zip(self.gap(990));
        let first_ns = self.first_ns.zip(from_ns);
        EventColumns {
            first_ns: first_ns.map(|(first, from)| first.saturating_sub(from)),
            gaps_ns: gaps_ns.map(|(p50, p99)| [p50, p99, self.gaps.max().unwrap_or(0)]),
            count: self.count,
            coalesced: self.coalesced,
            stalls: self.stalls(),
            is_buffered: self.is_buffered(from_ns).filter(|_| may_be_buffered),
        }
    }
}

/// The events in the content of one response.
#[derive(Debug)]
pub(crate) struct Events {
    scan: Scan,
    format: Format,
    /// The latest time of any byte so far.
    now_ns: u64,
    pub(crate) times: Times,
}

impl Events {
    /// Of content that begins here.
    pub(crate) fn new(format: Format) -> Self {
        Self {
            scan: Scan::new(format),
            format,
            now_ns: 0,
            times: Times::default(),
        }
    }

    /// The next bytes of the content, in a packet of this time.
    pub(crate) fn content(&mut self, bytes: &[u8], ts_ns: u64) {
        self.now_ns = self.now_ns.max(ts_ns);
        for _ in 0..self.scan.push(bytes) {
            self.times.event(self.now_ns);
        }
        if self.scan.is_lost() {
            self.times.miss();
        }
    }

    /// So many bytes of the content are missing, or an unknown number.
    pub(crate) fn miss(&mut self, len: Option<u32>) {
        self.scan.miss(len);
        self.times.miss();
    }

    /// The content has ended.
    pub(crate) fn end(&mut self) {
        if self.scan.has_rest() {
            self.times.event(self.now_ns);
        }
    }

    /// What a record has of it; the request began at `from_ns`. Nobody waits for what a server says in WebSocket.
    pub(crate) fn columns(&self, from_ns: Option<u64>) -> EventColumns {
        self.times
            .columns(from_ns, self.format != Format::WebSocket)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    fn times(at_ms: &[u64]) -> Times {
        let mut times = Times::default();
        for at in at_ms {
            times.event(at * MS);
        }
        times
    }

    fn near(value: u64, expected: u64) -> bool {
        value >= expected && value <= expected + expected / 8
    }

    #[test]
    fn gaps_and_stalls() {
        let columns = times(&[50, 70, 90, 90, 110, 2110, 2130]).columns(Some(10 * MS), true);
        assert_eq!(columns.first_ns, Some(40 * MS));
        assert_eq!(
            (columns.count, columns.coalesced, columns.stalls),
            (7, 1, 1)
        );
        let [p50, p99, max] = columns.gaps_ns.unwrap();
        assert!(near(p50, 20 * MS), "{p50}");
        assert_eq!((p99, max), (2000 * MS, 2000 * MS));
        assert_eq!(columns.is_buffered, Some(false));
        // A slow stream does not stall, and a pause of a fast one must be long.
        assert_eq!(times(&[0, 900, 1800, 2700, 3600]).stalls(), 0);
        assert_eq!(times(&[0, 1, 2, 3, 403, 404]).stalls(), 0);
    }

    #[test]
    fn what_is_missing_makes_no_gap() {
        let mut times = times(&[0, 10]);
        times.miss();
        times.event(900 * MS);
        times.event(910 * MS);
        let columns = times.columns(Some(0), true);
        assert_eq!(columns.count, 4);
        assert_eq!(columns.gaps_ns.unwrap()[2], 10 * MS);
        assert_eq!(columns.is_buffered, None);
        let mut late = Times::default();
        late.miss();
        late.event(MS);
        assert_eq!(
            late.columns(Some(0), true).first_ns,
            None,
            "it may not be the first"
        );
    }

    #[test]
    fn who_waits_for_whom() {
        let is_buffered = |at_ms: &[u64]| times(at_ms).is_buffered(Some(0));
        assert_eq!(is_buffered(&[300, 300, 300, 300, 301]), Some(true));
        assert_eq!(is_buffered(&[30, 60, 90, 120, 150]), Some(false));
        // A short answer at once, and one of few events.
        assert_eq!(is_buffered(&[5, 5, 5, 5, 5]), Some(false));
        assert_eq!(is_buffered(&[300, 300, 300, 300]), None);
        // Blocks.
        let blocks: Vec<u64> = (1..=5).flat_map(|block| [block * 500; 8]).collect();
        assert_eq!(is_buffered(&blocks), Some(true));
        let pairs: Vec<u64> = (1..=10).flat_map(|block| [block * 500; 2]).collect();
        assert_eq!(is_buffered(&pairs), Some(false));
        // At once, as fast as the path takes it.
        let bulk: Vec<u64> = (1..=40).flat_map(|block| [block * 20; 8]).collect();
        assert_eq!(is_buffered(&bulk), Some(false));
    }

    #[test]
    fn quantiles_of_none_and_one() {
        assert_eq!(times(&[7]).columns(Some(0), true).gaps_ns, None);
        let together = times(&[7, 7]).columns(Some(0), true);
        assert_eq!((together.gaps_ns, together.coalesced), (Some([0; 3]), 1));
    }

    #[test]
    fn a_stream_takes_little() {
        // And 1 KiB for its gaps.
        assert!(size_of::<Events>() <= 144, "{}", size_of::<Events>());
    }
}
