//! Numbers for people: three significant digits and an SI prefix, as on the web page.

use crate::text::to_f64;

const PREFIXES: [&str; 7] = ["", "k", "M", "G", "T", "P", "E"];

/// Three significant digits of a value below a thousand.
fn digits(value: f64) -> String {
    let size = value.abs();
    if size >= 99.95 || value.fract() == 0.0 {
        format!("{value:.0}")
    } else if size >= 9.995 {
        format!("{value:.1}")
    } else {
        format!("{value:.2}")
    }
}

/// 12345 -> `12.3k`.
pub(super) fn si(value: f64) -> String {
    let mut scaled = value;
    let mut prefixes = PREFIXES.iter();
    let mut prefix = prefixes.next().copied().unwrap_or("");
    // 999.5 would round to 1000.
    while scaled.abs() >= 999.5 {
        let Some(next) = prefixes.next() else { break };
        scaled /= 1000.0;
        prefix = next;
    }
    format!("{}{prefix}", digits(scaled))
}

/// Counts, exact below ten thousand.
pub(super) fn count(value: u64) -> String {
    if value < 1000 {
        value.to_string()
    } else if value < 10_000 {
        format!("{},{:03}", value / 1000, value % 1000)
    } else {
        si(to_f64(value))
    }
}

/// Nanoseconds -> `12.3 ms`.
pub(super) fn time(nanos: u64) -> String {
    let value = to_f64(nanos);
    let (scaled, unit) = if value >= 0.9995e9 {
        (value / 1e9, "s")
    } else if value >= 0.9995e6 {
        (value / 1e6, "ms")
    } else if value >= 0.9995e3 {
        (value / 1e3, "µs")
    } else {
        (value, "ns")
    };
    format!("{} {unit}", digits(scaled))
}

/// A time that may be unknown.
pub(super) fn maybe_time(nanos: Option<u64>) -> String {
    nanos.map_or_else(|| "-".to_owned(), time)
}

/// `part` of `whole` -> `1.23 %`.
pub(super) fn percent(part: u64, whole: u64) -> String {
    let value = crate::text::percent(part, whole);
    if value > 0.0 && value < 0.01 {
        "<0.01 %".to_owned()
    } else {
        format!("{} %", digits(value))
    }
}

/// Milliseconds -> `3d 04h`, `2h 05m`, `4m 09s`.
pub(super) fn span(millis: u64) -> String {
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
        assert_eq!(percent(1, 1_000_000), "<0.01 %");
        assert_eq!(percent(1, 3), "33.3 %");
        assert_eq!(percent(0, 0), "0 %");
        assert_eq!(span(249_000), "4m 09s");
        assert_eq!(span(7_500_000), "2h 05m");
        assert_eq!(span(273_600_000), "3d 04h");
        assert_eq!(clock(1_700_000_000_000), "22:13:20Z");
    }
}
