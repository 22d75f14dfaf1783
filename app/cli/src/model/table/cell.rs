//! One cell of a table: a count or a time.

use linkweir_model::log::calendar::{SECOND_NS, parse_date};

/// What a number that is a time counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Unit {
    Seconds,
    Millis,
    Micros,
    Nanos,
    /// Told by the size of the number: seconds below 1e11 (the year 5138), then a thousand of each.
    BySize,
}

impl Unit {
    /// Of a column, by the end of its name.
    pub(super) fn of_heading(name: &str) -> Self {
        let ends = [
            ("_ns", Self::Nanos),
            ("_us", Self::Micros),
            ("_ms", Self::Millis),
            ("_s", Self::Seconds),
        ];
        let found = ends.into_iter().find(|(end, _)| name.ends_with(end));
        found.map_or(Self::BySize, |(_, unit)| unit)
    }

    /// Nanoseconds of one.
    const fn nanos(self, number: u64) -> u64 {
        match self {
            Self::Seconds => SECOND_NS,
            Self::Millis => 1_000_000,
            Self::Micros => 1_000,
            Self::Nanos => 1,
            Self::BySize => match number {
                0..100_000_000_000 => SECOND_NS,
                100_000_000_000..100_000_000_000_000 => 1_000_000,
                100_000_000_000_000..100_000_000_000_000_000 => 1_000,
                _ => 1,
            },
        }
    }
}

/// The cells of a row, without the quotes and spaces around them.
pub(super) fn cells(row: &[u8], separator: u8) -> impl Iterator<Item = &[u8]> {
    let mut is_quoted = false;
    row.split(move |byte| {
        is_quoted ^= *byte == b'"';
        *byte == separator && !is_quoted
    })
    .map(|cell| {
        let cell = cell.trim_ascii();
        let inner = cell
            .strip_prefix(b"\"")
            .and_then(|cell| cell.strip_suffix(b"\""));
        inner.unwrap_or(cell).trim_ascii()
    })
}

/// A whole number; `5.0` is 5.
pub(super) fn count(cell: &[u8]) -> Option<u64> {
    let text = std::str::from_utf8(cell).ok()?;
    let whole = match text.split_once('.') {
        Some((whole, zeros)) if zeros.bytes().all(|digit| digit == b'0') => whole,
        Some(_) => return None,
        None => text,
    };
    // A sign is no digit: -0 and +5 are no counts.
    let is_digits = whole.bytes().all(|digit| digit.is_ascii_digit());
    is_digits.then(|| whole.parse().ok())?
}

/// Nanoseconds since 1970 of a date, or of a number since 1970.
pub(super) fn time(cell: &[u8], unit: Unit) -> Option<u64> {
    parse_date(cell).or_else(|| number(cell, unit))
}

fn number(cell: &[u8], unit: Unit) -> Option<u64> {
    let text = std::str::from_utf8(cell).ok()?;
    let (whole, part) = text.split_once('.').unwrap_or((text, ""));
    let is_digits = |text: &str| text.bytes().all(|digit| digit.is_ascii_digit());
    if whole.is_empty() || !is_digits(whole) || !is_digits(part) {
        return None;
    }
    let whole: u64 = whole.parse().ok()?;
    let nanos = unit.nanos(whole);
    // Nine digits are enough for any unit.
    let part = part.get(..9).unwrap_or(part);
    let mut below = nanos;
    let mut of_part = 0;
    for digit in part.bytes() {
        below /= 10;
        of_part += u64::from(digit - b'0') * below;
    }
    whole.checked_mul(nanos)?.checked_add(of_part)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_and_times() {
        assert_eq!(count(b"12"), Some(12));
        assert_eq!(count(b"12.00"), Some(12));
        for wrong in ["-3", "+3", "1.5", "", "1e3", "99999999999999999999", " 1"] {
            assert_eq!(count(wrong.as_bytes()), None, "{wrong}");
        }
        let start = Some(897_343_200_500_000_000);
        for text in [
            "897343200.5",
            "897343200500",
            "897343200500000",
            "897343200500000000",
        ] {
            assert_eq!(time(text.as_bytes(), Unit::BySize), start, "{text}");
        }
        assert_eq!(time(b"1.25", Unit::Millis), Some(1_250_000));
        assert_eq!(time(b"1998-06-08 22:00:00.5", Unit::Nanos), start);
        for wrong in ["-1", "1e9", "", ".", "1.x", "99999999999999999999"] {
            assert_eq!(time(wrong.as_bytes(), Unit::BySize), None, "{wrong}");
        }
        let row: Vec<&[u8]> = cells(b"\"a, b\" ; 2;\"3\"", b';').collect();
        assert_eq!(row, [&b"a, b"[..], b"2", b"3"]);
    }
}
