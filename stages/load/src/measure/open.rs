//! How many sessions are open at a time, and Little's law as a check of the books.

use linkweir_wire::Timestamp;
use serde::{Deserialize, Serialize};

use super::series::Series;
use super::times::wide;

/// Sessions between their first SYN and their end.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Parts", into = "Parts")]
pub struct OpenSessions {
    now: u64,
    peak: u64,
    /// The integral of the number of open sessions over time, nanoseconds.
    area: u128,
    /// The sum of how long each session that ended was open, nanoseconds.
    lives: u128,
    ended: u64,
    /// When the first one started, and up to when `area` is.
    window: Option<(u64, u64)>,
}

/// Little's law, N = X R (Little 1961): what the integral of open sessions over time says beside what
/// the records of the sessions say. They are counted apart, so that a session that is lost or counted
/// twice shows.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Little {
    /// N: open sessions on average.
    pub mean_open: f64,
    /// X: sessions that ended, per second.
    pub rate_per_s: f64,
    /// R: how long a session was open on average, seconds.
    pub mean_s: f64,
    /// |N - X R| / N, a share; 0 where both are 0.
    pub error: f64,
}

impl OpenSessions {
    /// Sessions that are open now.
    #[must_use]
    pub const fn now(&self) -> u64 {
        self.now
    }

    /// Most that were open at a time. Of several generators the sum of theirs: at least the truth.
    #[must_use]
    pub const fn peak(&self) -> u64 {
        self.peak
    }

    /// From the first start to the last event, seconds.
    #[must_use]
    pub fn seconds(&self) -> f64 {
        let nanos = self.window.map_or(0, |(from, to)| to.saturating_sub(from));
        wide(nanos.into()) / 1e9
    }

    /// A session started.
    pub(super) fn start(&mut self, at: Timestamp, series: &mut Series) {
        let last = self.advance(at, series);
        // Told late: it was open longer than the books know.
        series.add_open(at, last, 1);
        self.area = self.area.saturating_add(last.nanos_since(at).into());
        self.now = self.now.saturating_add(1);
        self.peak = self.peak.max(self.now);
    }

    /// A session that started at `started` ended.
    pub(super) fn end(&mut self, started: Timestamp, at: Timestamp, series: &mut Series) {
        let last = self.advance(at, series);
        series.take_open(at, last);
        self.area = self.area.saturating_sub(last.nanos_since(at).into());
        self.now = self.now.saturating_sub(1);
        self.ended = self.ended.saturating_add(1);
        let life = at.nanos_since(started);
        self.lives = self.lives.saturating_add(life.into());
    }

    /// Brings the integral up to `at`, and says up to when it is. Sends and arrivals are stamped by
    /// different hands, so that an event may be earlier than the last.
    fn advance(&mut self, at: Timestamp, series: &mut Series) -> Timestamp {
        let at_ns = at.as_nanos();
        let (first, last) = self.window.unwrap_or((at_ns, at_ns));
        self.window = Some((first.min(at_ns), last.max(at_ns)));
        let open = u128::from(self.now) * u128::from(at_ns.saturating_sub(last));
        self.area = self.area.saturating_add(open);
        let last = Timestamp::from_nanos(last);
        if self.now > 0 {
            series.add_open(last, at, self.now);
        }
        last.max(at)
    }

    /// Little's law over all sessions that ended; exact when none is open. `None` before a session ended
    /// and time passed.
    #[must_use]
    pub fn little(&self) -> Option<Little> {
        let seconds = self.seconds();
        if self.ended == 0 || seconds <= 0.0 {
            return None;
        }
        let mean_open = wide(self.area) / 1e9 / seconds;
        let rate_per_s = wide(self.ended.into()) / seconds;
        let mean_s = wide(self.lives) / 1e9 / wide(self.ended.into());
        let difference = (mean_open - rate_per_s * mean_s).abs();
        Some(Little {
            mean_open,
            rate_per_s,
            mean_s,
            error: if difference > 0.0 {
                difference / mean_open.max(f64::MIN_POSITIVE)
            } else {
                0.0
            },
        })
    }

    /// Adds those of another generator.
    pub fn merge(&mut self, other: &Self) {
        self.now = self.now.saturating_add(other.now);
        self.peak = self.peak.saturating_add(other.peak);
        self.area = self.area.saturating_add(other.area);
        self.lives = self.lives.saturating_add(other.lives);
        self.ended = self.ended.saturating_add(other.ended);
        self.window = match (self.window, other.window) {
            (Some((from, to)), Some((low, high))) => Some((from.min(low), to.max(high))),
            (mine, theirs) => mine.or(theirs),
        };
    }
}

/// What travels between generators; wide numbers as text.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Parts {
    now: u64,
    peak: u64,
    area: String,
    lives: String,
    ended: u64,
    window: Option<(u64, u64)>,
}

impl From<OpenSessions> for Parts {
    fn from(open: OpenSessions) -> Self {
        Self {
            now: open.now,
            peak: open.peak,
            area: open.area.to_string(),
            lives: open.lives.to_string(),
            ended: open.ended,
            window: open.window,
        }
    }
}

impl TryFrom<Parts> for OpenSessions {
    type Error = std::num::ParseIntError;

    fn try_from(parts: Parts) -> Result<Self, Self::Error> {
        Ok(Self {
            now: parts.now,
            peak: parts.peak,
            area: parts.area.parse()?,
            lives: parts.lives.parse()?,
            ended: parts.ended,
            window: parts.window,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn ms(millis: u64) -> Timestamp {
        Timestamp::from_nanos(millis * 1_000_000)
    }

    #[test]
    fn little_holds_and_a_lost_session_shows() {
        let mut open = OpenSessions::default();
        let mut series = Series::default();
        assert_eq!(open.little(), None);
        open.start(ms(0), &mut series);
        open.start(ms(1000), &mut series);
        open.end(ms(0), ms(2000), &mut series);
        open.end(ms(1000), ms(4000), &mut series);
        let little = open.little().unwrap();
        assert_eq!(
            (
                little.mean_open,
                little.rate_per_s,
                little.mean_s,
                little.error
            ),
            (1.25, 0.5, 2.5, 0.0)
        );
        assert_eq!((open.now(), open.peak()), (0, 2));
        // A third one that nobody hears of again.
        open.start(ms(4000), &mut series);
        open.start(ms(4000), &mut series);
        open.end(ms(4000), ms(6000), &mut series);
        assert!(open.little().unwrap().error > 0.2);
    }

    proptest! {
        /// Whatever the order in which starts and ends are reported.
        #[test]
        fn little_is_exact_in_any_order(lives in prop::collection::vec((0_u64..5000, 0_u64..5000), 1..30), seed: u64) {
            let mut events: Vec<(u64, usize, bool)> = Vec::new();
            for (at, (start, life)) in lives.iter().enumerate() {
                // Told up to 7 ms late.
                let late = (seed >> (at % 60)) % 8;
                events.push((start + late, at, true));
                events.push((start + life + 8, at, false));
            }
            events.sort_unstable();
            let mut open = OpenSessions::default();
            let mut series = Series::default();
            for (_, at, is_start) in events {
                let (start, life) = lives[at];
                if is_start {
                    open.start(ms(start), &mut series);
                } else {
                    open.end(ms(start), ms(start + life), &mut series);
                }
            }
            prop_assert_eq!(open.area, open.lives);
            let text = serde_json::to_string(&open).unwrap();
            prop_assert_eq!(serde_json::from_str::<OpenSessions>(&text).unwrap(), open);
        }
    }
}
