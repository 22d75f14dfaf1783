//! Numbers, spans and moments for people: thousands separated, three or four significant digits.

use linkweir_wire::civil::date_time;

/// `1234567` as `1,234,567`.
#[must_use]
pub fn thousands(number: u64) -> String {
    let digits = number.to_string();
    let mut out = String::with_capacity(digits.len() + digits.len() / 3);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// `1 packet`, `2,000 packets`: a noun that has its plural by an `s`.
#[must_use]
pub fn counted(number: u64, noun: &str) -> String {
    let ending = if number == 1 { "" } else { "s" };
    format!("{} {noun}{ending}", thousands(number))
}

/// Three significant digits and no trailing zeros: `12.3`, `0.25`, `7`.
#[must_use]
pub fn short(number: f64) -> String {
    let size = number.abs();
    let text = match size {
        100.0.. => format!("{number:.0}"),
        10.0..100.0 => format!("{number:.1}"),
        1.0..10.0 => format!("{number:.2}"),
        0.1..1.0 => format!("{number:.3}"),
        0.0 => "0".to_owned(),
        0.001..0.1 => format!("{number:.4}"),
        _ => return format!("{number:.0e}"),
    };
    match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => text,
    }
}

/// With a decimal prefix from ten thousand on: `1.23 M`, and the unit after it.
#[must_use]
pub fn scaled(number: f64, unit: &str) -> String {
    let (divisor, prefix) = match number.abs() {
        1e12.. => (1e12, "T"),
        1e9..1e12 => (1e9, "G"),
        1e6..1e9 => (1e6, "M"),
        9_999.5..1e6 => (1e3, "k"),
        _ => (1.0, ""),
    };
    let mut text = short(number / divisor);
    // Up to 9,999 as it is.
    if prefix.is_empty() && number >= 999.5 {
        text.insert(1, ',');
    }
    format!("{text} {prefix}{unit}").trim_end().to_owned()
}

/// A span of nanoseconds: `850 ns`, `12.3 µs`, `104 ms`, `3.5 s`, `2 min 5 s`, `3 h 4 min`,
/// `1,648 d 17 h`.
#[must_use]
pub fn span(nanos: u64) -> String {
    let seconds = to_f64(nanos) / 1e9;
    match nanos {
        0..1_000 => format!("{nanos} ns"),
        1_000..1_000_000 => format!("{} µs", short(seconds * 1e6)),
        1_000_000..1_000_000_000 => format!("{} ms", short(seconds * 1e3)),
        1_000_000_000..120_000_000_000 => format!("{} s", short(seconds)),
        _ => {
            let seconds = nanos / 1_000_000_000;
            let (hours, minutes) = (seconds / 3600, seconds / 60 % 60);
            if hours >= 24 {
                format!("{} d {} h", thousands(hours / 24), hours % 24)
            } else if hours > 0 {
                format!("{hours} h {minutes} min")
            } else {
                format!("{minutes} min {} s", seconds % 60)
            }
        }
    }
}

/// Seconds with all nine digits of the nanoseconds.
#[must_use]
pub fn exact_seconds(nanos: u128) -> String {
    format!("{}.{:09}", nanos / 1_000_000_000, nanos % 1_000_000_000)
}

/// A moment: `2023-11-14 22:13:20 UTC`.
#[must_use]
pub fn moment(nanos: u64) -> String {
    let seconds = nanos / 1_000_000_000;
    let [year, month, day, h, m, s] = date_time(seconds.cast_signed());
    format!("{year:04}-{month:02}-{day:02} {h:02}:{m:02}:{s:02} UTC")
}

/// A share as per cent: `12.3 %`, `1.23 %`; below a hundredth of a per cent `< 0.01 %`.
#[must_use]
pub fn percent(part: u64, whole: u64) -> String {
    if whole == 0 {
        return "–".to_owned();
    }
    let share = to_f64(part) / to_f64(whole) * 100.0;
    if part > 0 && share < 0.01 {
        return "< 0.01 %".to_owned();
    }
    if share >= 10.0 {
        format!("{share:.1} %")
    } else {
        format!("{share:.2} %")
    }
}

/// A number for rates and shares, which need no more than 53 bits.
#[must_use]
#[expect(clippy::cast_precision_loss, reason = "shown with four digits")]
pub const fn to_f64(number: u64) -> f64 {
    number as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers() {
        assert_eq!(thousands(0), "0");
        assert_eq!(thousands(999), "999");
        assert_eq!(thousands(1_234_567), "1,234,567");
        let of = |number| counted(number, "packet");
        assert_eq!([of(0), of(1)], ["0 packets", "1 packet"]);
        assert_eq!(of(1000), "1,000 packets");
        assert_eq!(scaled(1_234_567.0, "pkt/s"), "1.23 Mpkt/s");
        assert_eq!(scaled(9_999.0, "pkt/s"), "9,999 pkt/s");
        assert_eq!(scaled(9_999.6, "pkt/s"), "10 kpkt/s");
        assert_eq!(scaled(999.6, "pkt/s"), "1,000 pkt/s");
        assert_eq!(scaled(999.4, ""), "999");
        assert_eq!(scaled(0.0, ""), "0");
        assert_eq!(short(100.0), "100");
        assert_eq!(short(0.25), "0.25");
        assert_eq!(short(0.05), "0.05");
        assert_eq!(short(0.000_1), "1e-4");
        assert_eq!(percent(1, 8), "12.5 %");
        assert_eq!(percent(1, 1_000_000), "< 0.01 %");
        assert_eq!(percent(0, 0), "–");
    }

    #[test]
    fn times() {
        assert_eq!(exact_seconds(1_000_000_001), "1.000000001");
        assert_eq!(span(850), "850 ns");
        assert_eq!(span(12_340), "12.3 µs");
        assert_eq!(span(104_130_000), "104 ms");
        assert_eq!(span(3_500_000_000), "3.5 s");
        assert_eq!(span(125_000_000_000), "2 min 5 s");
        assert_eq!(span(11_040_000_000_000), "3 h 4 min");
        assert_eq!(span(86_399_000_000_000), "23 h 59 min");
        assert_eq!(span(189_596 * 3_600_000_000_000), "7,899 d 20 h");
        assert_eq!(moment(1_700_000_000_250_000_000), "2023-11-14 22:13:20 UTC");
    }
}
