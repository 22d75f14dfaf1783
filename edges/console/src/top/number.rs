//! Numbers in the columns of the view: as short as they can be.

use linkweir_live::text::{figure, scaled, thousands, to_f64};

/// 12345 -> `12.3k`.
pub(super) fn si(value: f64) -> String {
    let (digits, prefix) = scaled(value);
    digits + prefix
}

/// Counts, exact below ten thousand.
pub(super) fn count(value: u64) -> String {
    if value < 10_000 {
        thousands(value)
    } else {
        si(to_f64(value))
    }
}

/// `1 packet`, `12.3k packets`: a noun that has its plural by an `s`.
pub(super) fn counted(value: u64, noun: &str) -> String {
    let ending = if value == 1 { "" } else { "s" };
    format!("{} {noun}{ending}", count(value))
}

/// Nanoseconds -> `12.3 ms`.
pub(super) fn time(nanos: u64) -> String {
    figure(to_f64(nanos), "ns")
}

/// A time that may be unknown.
pub(super) fn maybe_time(nanos: Option<u64>) -> String {
    nanos.map_or_else(|| "-".to_owned(), time)
}

/// `part` of `whole` -> `1.23 %`.
pub(super) fn percent(part: u64, whole: u64) -> String {
    figure(linkweir_live::text::percent(part, whole), "%")
}

/// Milliseconds -> `3d 04h`, `2h 05m`, `4m 09s`.
pub(super) fn duration(millis: u64) -> String {
    let seconds = millis / 1000;
    let (minutes, hours, days) = (seconds / 60, seconds / 3600, seconds / 86_400);
    if days > 0 {
        format!("{days}d {:02}h", hours % 24)
    } else if hours > 0 {
        format!("{hours}h {:02}m", minutes % 60)
    } else if minutes > 0 {
        format!("{minutes}m {:02}s", seconds % 60)
    } else {
        format!("{seconds}s")
    }
}

/// The time of day of milliseconds since the epoch, UTC: `13:04:59Z`.
pub(super) fn clock(millis: u64) -> String {
    let seconds = millis / 1000 % 86_400;
    format!(
        "{:02}:{:02}:{:02}Z",
        seconds / 3600,
        seconds / 60 % 60,
        seconds % 60
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_digits_and_a_prefix() {
        assert_eq!(si(0.0), "0");
        assert_eq!(si(7.0), "7");
        assert_eq!(si(7.126), "7.13");
        assert_eq!(si(99.96), "100");
        assert_eq!(si(999.6), "1.00k");
        assert_eq!(si(12_345.0), "12.3k");
        assert_eq!(si(1.5e22), "15000E");
        assert_eq!(count(9_999), "9,999");
        assert_eq!(count(u64::MAX), "18.4E");
        let of = |value| counted(value, "file");
        assert_eq!(
            [of(0), of(1), of(12_345)],
            ["0 files", "1 file", "12.3k files"]
        );
    }

    #[test]
    fn times_and_shares() {
        assert_eq!(time(0), "0 ns");
        assert_eq!(time(999), "999 ns");
        assert_eq!(time(999_900), "1.00 ms");
        assert_eq!(time(12_345_678), "12.3 ms");
        assert_eq!(time(61_000_000_000), "61 s");
        assert_eq!(time(12_345), "12.3 µs");
        assert_eq!(maybe_time(None), "-");
        assert_eq!(percent(1, 1_000_000), "< 0.01 %");
        assert_eq!(percent(1, 3), "33.3 %");
        assert_eq!(percent(0, 0), "0 %");
        assert_eq!(duration(249_000), "4m 09s");
        assert_eq!(duration(7_500_000), "2h 05m");
        assert_eq!(duration(273_600_000), "3d 04h");
        assert_eq!(clock(1_700_000_000_000), "22:13:20Z");
    }
}
