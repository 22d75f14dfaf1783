//! What happened in each second, in a bounded number of bins.

use linkweir_sketch::{Coarse, Payload as _};
use linkweir_wire::Timestamp;
use serde::{Deserialize, Serialize};

/// Width of a bin at first, nanoseconds.
const SECOND: u64 = 1_000_000_000;
/// Most bins; a longer run gets bins of 2, 4, 8... seconds.
pub const MAX_BINS: usize = 4096;

/// What happened in one bin.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Bin {
    /// Sessions that the schedule wanted then.
    pub planned: u64,
    /// Sessions that started then.
    pub started: u64,
    /// Sessions that came to their end then.
    pub completed: u64,
    /// Sessions that failed then.
    pub failed: u64,
    /// Requests that were sent then.
    pub requests: u64,
    /// Responses whose last byte came then.
    pub responses: u64,
    /// Bytes of responses whose last byte came then.
    pub response_bytes: u64,
    /// Sum of the time that each session was open in this bin, nanoseconds.
    pub open_ns: u64,
    /// Sum of the response times of requests that were wanted then, nanoseconds.
    pub response_sum_ns: u64,
    /// Response times of requests that were wanted then, nanoseconds: how the server did at that
    /// time, however long it took to answer.
    #[serde(with = "coarse")]
    pub response: Coarse,
}

impl Bin {
    fn add(&mut self, other: &Self) {
        let pairs = [
            (&mut self.planned, other.planned),
            (&mut self.started, other.started),
            (&mut self.completed, other.completed),
            (&mut self.failed, other.failed),
            (&mut self.requests, other.requests),
            (&mut self.responses, other.responses),
            (&mut self.response_bytes, other.response_bytes),
            (&mut self.open_ns, other.open_ns),
            (&mut self.response_sum_ns, other.response_sum_ns),
        ];
        for (mine, theirs) in pairs {
            *mine = mine.saturating_add(theirs);
        }
        self.response.merge(&other.response);
    }

    /// Mean response time of requests that were wanted then, nanoseconds.
    #[must_use]
    pub fn response_mean_ns(&self) -> Option<u64> {
        self.response_sum_ns.checked_div(self.response.count())
    }
}

/// Bins of equal width, at multiples of it since the epoch.
///
/// The width depends only on the first and the last timestamp, so that the series of several generators
/// merge to that of the whole run, exactly. Memory: about 1.1 KiB a bin, at most [`MAX_BINS`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Parts", into = "Parts")]
pub struct Series {
    width: u64,
    /// Number of the first bin, counted from the epoch.
    first: u64,
    bins: Vec<Bin>,
}

impl Default for Series {
    fn default() -> Self {
        Self {
            width: SECOND,
            first: 0,
            bins: Vec::new(),
        }
    }
}

impl Series {
    /// The bin of a timestamp, made where it is missing.
    #[inline]
    pub fn at(&mut self, timestamp: Timestamp) -> Option<&mut Bin> {
        let nanos = timestamp.as_nanos();
        if self.place(nanos).is_none() {
            self.extend_to(nanos, nanos);
        }
        let place = self.place(nanos)?;
        self.bins.get_mut(place)
    }

    fn place(&self, nanos: u64) -> Option<usize> {
        let place = usize::try_from((nanos / self.width).checked_sub(self.first)?).ok()?;
        (place < self.bins.len()).then_some(place)
    }

    /// `sessions` were open from `from` to `to`.
    pub(super) fn add_open(&mut self, from: Timestamp, to: Timestamp, sessions: u64) {
        self.over(from, to, |open, nanos| {
            open.saturating_add(nanos.saturating_mul(sessions))
        });
    }

    /// One session was not open from `from` to `to`, as was said before.
    pub(super) fn take_open(&mut self, from: Timestamp, to: Timestamp) {
        self.over(from, to, u64::saturating_sub);
    }

    /// Changes the open time of each bin from `from` to `to` by the time that lies in it.
    fn over(&mut self, from: Timestamp, to: Timestamp, change: impl Fn(u64, u64) -> u64) {
        if from >= to || self.at(to).is_none() || self.at(from).is_none() {
            return;
        }
        let (mut from, to) = (from.as_nanos(), to.as_nanos());
        while from < to {
            let end = (from / self.width + 1).saturating_mul(self.width).min(to);
            if let Some(bin) = self.place(from).and_then(|at| self.bins.get_mut(at)) {
                bin.open_ns = change(bin.open_ns, end - from);
            }
            from = end;
        }
    }

    /// Makes bins from `low` to `high`, doubling the width as often as that needs.
    fn extend_to(&mut self, low: u64, high: u64) {
        loop {
            let (mut from, mut to) = (low / self.width, high / self.width);
            if !self.bins.is_empty() {
                from = from.min(self.first);
                to = to.max(self.first + (self.bins.len() as u64 - 1));
            }
            match usize::try_from(to - from) {
                Ok(span) if span < MAX_BINS => {
                    let missing = usize::try_from(self.first.saturating_sub(from)).unwrap_or(0);
                    if !self.bins.is_empty() && missing > 0 {
                        let empty = std::iter::repeat_with(Bin::default).take(missing);
                        self.bins.splice(0..0, empty);
                    }
                    self.first = from;
                    self.bins.resize_with(span + 1, Bin::default);
                    return;
                }
                _ => self.double(),
            }
        }
    }

    /// Doubles the width of the bins.
    fn double(&mut self) {
        let mut bins: Vec<Bin> = Vec::with_capacity(self.bins.len() / 2 + 1);
        for (number, bin) in (self.first..).zip(self.bins.drain(..)) {
            match bins.last_mut() {
                Some(last) if number % 2 == 1 => last.add(&bin),
                _ => bins.push(bin),
            }
        }
        self.bins = bins;
        self.first /= 2;
        self.width = self.width.saturating_mul(2);
    }

    /// Adds what happened elsewhere.
    pub fn merge(&mut self, other: &Self) {
        let Some(last) = (other.bins.len() as u64).checked_sub(1) else {
            return;
        };
        while self.width < other.width {
            self.double();
        }
        let start = |number: u64| number.saturating_mul(other.width);
        self.extend_to(start(other.first), start(other.first + last));
        for (number, bin) in (other.first..).zip(&other.bins) {
            if let Some(mine) = self.at(Timestamp::from_nanos(start(number))) {
                mine.add(bin);
            }
        }
    }

    /// Width of a bin, nanoseconds: a second, or a power of two of them.
    #[must_use]
    pub const fn width_ns(&self) -> u64 {
        self.width
    }

    /// The bins in order, empty ones included, each with its start.
    pub fn bins(&self) -> impl ExactSizeIterator<Item = (Timestamp, &Bin)> {
        let start = |at: usize| (self.first + at as u64).saturating_mul(self.width);
        self.bins
            .iter()
            .enumerate()
            .map(move |(at, bin)| (Timestamp::from_nanos(start(at)), bin))
    }

    /// How many sessions were open on average in a bin.
    #[must_use]
    pub fn open(&self, bin: &Bin) -> f64 {
        super::times::wide(bin.open_ns.into()) / super::times::wide(self.width.into())
    }
}

/// What travels between generators.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Parts {
    width_ns: u64,
    first: u64,
    bins: Vec<Bin>,
}

impl From<Series> for Parts {
    fn from(series: Series) -> Self {
        Self {
            width_ns: series.width,
            first: series.first,
            bins: series.bins,
        }
    }
}

impl TryFrom<Parts> for Series {
    type Error = &'static str;

    fn try_from(parts: Parts) -> Result<Self, Self::Error> {
        let is_width =
            parts.width_ns.is_multiple_of(SECOND) && (parts.width_ns / SECOND).is_power_of_two();
        let end = parts.first.checked_add(parts.bins.len() as u64);
        let is_in_time = end.is_some_and(|end| end.checked_mul(parts.width_ns).is_some());
        if !is_width || !is_in_time || parts.bins.len() > MAX_BINS {
            return Err("no series of bins of whole seconds");
        }
        Ok(Self {
            width: parts.width_ns,
            first: parts.first,
            bins: parts.bins,
        })
    }
}

/// A small histogram as JSON.
mod coarse {
    use linkweir_sketch::Coarse;
    use serde::de::Error as _;
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    type Parts = (Vec<(u8, u32)>, Option<(u64, u64)>);

    pub(super) fn serialize<S: Serializer>(sketch: &Coarse, to: S) -> Result<S::Ok, S::Error> {
        let parts: Parts = (sketch.buckets().collect(), sketch.min().zip(sketch.max()));
        parts.serialize(to)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Coarse, D::Error> {
        let (buckets, extremes) = Parts::deserialize(from)?;
        Coarse::from_parts(buckets, extremes)
            .ok_or_else(|| D::Error::custom("buckets and extremes do not belong together"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn second(number: u64) -> Timestamp {
        Timestamp::from_nanos(number * SECOND)
    }

    fn responses(series: &Series) -> Vec<(u64, u64)> {
        series
            .bins()
            .map(|(start, bin)| (start.as_nanos() / SECOND, bin.responses))
            .collect()
    }

    #[test]
    fn a_long_run_has_wider_bins() {
        let mut series = Series::default();
        series.at(second(101)).unwrap().responses += 1;
        series.at(second(103)).unwrap().responses += 2;
        assert_eq!(responses(&series), [(101, 1), (102, 0), (103, 2)]);
        series.at(second(100)).unwrap().responses += 4;
        assert_eq!(responses(&series).first(), Some(&(100, 4)));
        series.at(second(100 + MAX_BINS as u64)).unwrap().responses += 8;
        assert_eq!(series.width_ns(), 2 * SECOND);
        let wide = responses(&series);
        assert_eq!(wide.len(), MAX_BINS / 2 + 1);
        assert_eq!(wide.get(..2), Some(&[(100, 5), (102, 2)][..]));
    }

    #[test]
    fn open_time_is_spread_over_the_bins() {
        let mut series = Series::default();
        let at = |millis: u64| Timestamp::from_nanos(millis * 1_000_000);
        series.add_open(at(500), at(2250), 4);
        let open: Vec<f64> = series.bins().map(|(_, bin)| series.open(bin)).collect();
        assert_eq!(open, [2.0, 4.0, 1.0]);
    }

    #[test]
    fn series_that_are_none_are_refused() {
        let read = |text: &str| serde_json::from_str::<Series>(text);
        assert!(read(r#"{"width_ns":2000000000,"first":7,"bins":[]}"#).is_ok());
        for text in [
            r#"{"width_ns":0,"first":7,"bins":[]}"#,
            r#"{"width_ns":3000000000,"first":7,"bins":[]}"#,
            r#"{"width_ns":1000000000,"first":18446744073709551615,"bins":[]}"#,
        ] {
            assert!(read(text).is_err(), "{text}");
        }
    }

    proptest! {
        #[test]
        fn merging_and_travelling_change_nothing(a in prop::collection::vec((0_u64..9000, 0_u64..1 << 34), 0..40),
                                                 b in prop::collection::vec((3000_u64..20_000, any::<u64>()), 0..40)) {
            let fill = |series: &mut Series, events: &[(u64, u64)]| for (time, value) in events {
                let bin = series.at(second(*time)).unwrap();
                bin.responses += 1;
                bin.response_sum_ns = bin.response_sum_ns.saturating_add(*value);
                bin.response.record(*value);
            };
            let (mut one, mut two, mut all) = (Series::default(), Series::default(), Series::default());
            fill(&mut one, &a);
            fill(&mut two, &b);
            fill(&mut all, &a);
            fill(&mut all, &b);
            one.merge(&two);
            prop_assert_eq!(&one, &all);
            prop_assert!(one.bins().len() <= MAX_BINS);
            let text = serde_json::to_string(&one).unwrap();
            prop_assert_eq!(serde_json::from_str::<Series>(&text).unwrap(), one);
        }
    }
}
