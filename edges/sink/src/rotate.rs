//! When an output file is complete and the next begins.

use std::time::Duration;

/// The limit of `--rotate`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rotation {
    /// A file is at most so many bytes (a longer single record excepted; the closing lines of a format
    /// are not counted). Files of columns are looked at every 1,024 records, by about what they would
    /// have if they ended there.
    Size(u64),
    /// A file covers so much capture time, from one multiple of it (UTC) to the next. A late record of
    /// an earlier span goes into the file that is open. On an interface a file is complete when its span
    /// is over by the clock, also where nothing comes.
    Every(Duration),
}

/// The span of time that a file covers, counted in rotation spans since the epoch.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Period {
    /// That of the latest record.
    current: Option<u64>,
    /// That of the clock when it was last asked. Records may be of another time: a feeder plays files too.
    clock: Option<u64>,
}

fn count(time_ns: u64, span: Duration) -> u64 {
    time_ns / linkweir_wire::nanos(span).max(1)
}

impl Period {
    /// Whether a record of moment `time_ns` begins a later span than all records before it.
    pub(crate) fn begins(&mut self, time_ns: u64, span: Duration) -> bool {
        let period = count(time_ns, span);
        let is_new = self.current.is_some_and(|current| period > current);
        self.current = self.current.max(Some(period));
        // For this span the clock has begun a file already.
        is_new && self.clock != Some(period)
    }

    /// Whether the clock, at `now_ns`, has come to a later span than before, of which there is no record.
    pub(crate) fn passes(&mut self, now_ns: u64, span: Duration) -> bool {
        let now = count(now_ns, span);
        let is_new = self.clock.is_some_and(|before| now > before);
        self.clock = self.clock.max(Some(now));
        is_new && self.current.is_some_and(|current| current < now)
    }
}

impl std::str::FromStr for Rotation {
    type Err = String;

    /// A size (`100MB`, `64MiB`, `1GB`, `500000B`) or a time (`300s`, `5m`, `1h`, `1d`).
    fn from_str(text: &str) -> Result<Self, String> {
        let refused = |why: &str| {
            Err(format!(
                "`{text}` {why}; give a size such as 100MB or 64MiB, or a time such as 300s, 15m or 1h"
            ))
        };
        let unit_at = text
            .find(|c: char| !c.is_ascii_digit())
            .unwrap_or(text.len());
        let Some((digits, unit)) = text.split_at_checked(unit_at) else {
            return refused("is not a size or a time");
        };
        let Ok(number) = digits.parse::<u64>() else {
            return refused("does not start with a whole number");
        };
        if number == 0 {
            return refused("would never be reached");
        }
        let (scale, is_time) = match unit.trim_start() {
            "s" => (1, true),
            "m" | "min" => (60, true),
            "h" => (3600, true),
            "d" => (86_400, true),
            "B" => (1, false),
            "k" | "kB" | "KB" => (1_000, false),
            "M" | "MB" => (1_000_000, false),
            "G" | "GB" => (1_000_000_000, false),
            "T" | "TB" => (1_000_000_000_000, false),
            "K" | "KiB" => (1 << 10, false),
            "MiB" => (1 << 20, false),
            "GiB" => (1 << 30, false),
            "TiB" => (1 << 40, false),
            "" => return refused("has no unit"),
            _ => return refused("has an unknown unit"),
        };
        match number.checked_mul(scale) {
            Some(seconds) if is_time && seconds <= u64::MAX / 1_000_000_000 => {
                Ok(Self::Every(Duration::from_secs(seconds)))
            }
            Some(bytes) if !is_time => Ok(Self::Size(bytes)),
            _ => refused("is too large"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_span_ends_once_by_records_or_by_the_clock() {
        let span = Duration::from_nanos(10);
        let mut period = Period::default();
        assert!(!period.begins(5, span) && !period.passes(6, span));
        assert!(!period.begins(9, span) && !period.passes(9, span));
        assert!(period.passes(10, span), "without a record of its own");
        assert!(!period.begins(8, span), "a late one");
        assert!(!period.begins(12, span), "has a file already");
        assert!(period.begins(21, span), "the record came first");
        assert!(!period.passes(22, span));
        assert!(period.passes(30, span) && !period.passes(31, span));
        // Records of long ago have spans of their own beside those of the clock.
        let mut old = Period::default();
        assert!(!old.begins(1, span) && !old.passes(500, span));
        assert!(old.begins(11, span) && old.begins(25, span));
        assert!(old.passes(510, span) && old.begins(31, span));
    }

    #[test]
    fn limits() {
        let of = |text: &str| text.parse::<Rotation>();
        assert_eq!(of("100MB"), Ok(Rotation::Size(100_000_000)));
        assert_eq!(of("64MiB"), Ok(Rotation::Size(64 << 20)));
        assert_eq!(of("1 GB"), Ok(Rotation::Size(1_000_000_000)));
        assert_eq!(of("1h"), Ok(Rotation::Every(Duration::from_secs(3600))));
        assert_eq!(of("300s"), Ok(Rotation::Every(Duration::from_secs(300))));
        for bad in [
            "",
            "12",
            "0s",
            "-1h",
            "1.5h",
            "9999999999999999999TB",
            "99999999999d",
            "1x",
            "é",
        ] {
            assert!(of(bad).unwrap_err().contains("such as 100MB"), "{bad}");
        }
    }
}
