//! Points in time and time spans as people write them: one meaning for filters and for the command line.

use linkweir_wire::calendar::parse_date;

use super::value::split;

/// Nanoseconds of a second.
const SECOND_NS: u64 = 1_000_000_000;

/// A point in time in nanoseconds since 1970: a date and time (RFC 3339, UTC where it names no offset), a number of seconds since
/// 1970, or a number with a unit.
///
/// # Errors
/// It is none of these, or later than the year 2554.
pub fn parse_moment(text: &str) -> Result<u64, String> {
    let text = text.trim();
    if let Some(nanos) = parse_date(text.as_bytes()) {
        return Ok(nanos);
    }
    let (number, of) = split(text);
    let factor = if of.is_empty() {
        Some(SECOND_NS)
    } else {
        unit_ns(of)
    };
    if let Some(nanos) = factor.and_then(|factor| decimal(number, factor)) {
        return Ok(nanos);
    }
    let is_number = number.starts_with(|first: char| first.is_ascii_digit());
    let whole = decimal(number, 1).filter(|_| of.is_empty() && is_number);
    if let Some(whole) = whole {
        // As many digits as a time of these years has in that unit.
        let unit = match whole {
            0..=99_999_999_999_999 => "ms",
            100_000_000_000_000..=99_999_999_999_999_999 => "us",
            _ => "ns",
        };
        return Err(format!(
            "`{text}` counts seconds since 1970, and is too large for that: write {text}{unit}"
        ));
    }
    Err(format!(
        "`{text}` is not a valid time: write 2026-11-01T00:00:00Z (RFC 3339) or seconds since 1970"
    ))
}

/// A time span in nanoseconds, a number with a unit; zero needs none.
pub(super) fn span(text: &str) -> Result<u64, String> {
    let (number, unit) = split(text);
    let wrong = || format!("`{text}` is not a valid time span: write 500ms or 1.5s");
    if unit.is_empty() {
        return match decimal(number, 1) {
            Some(0) if number.bytes().all(|byte| matches!(byte, b'0' | b'.')) => Ok(0),
            Some(_) => Err(format!(
                "`{text}` is a time span without a unit: write {text}ms, {text}s or {text}ns"
            )),
            None => Err(wrong()),
        };
    }
    unit_ns(unit)
        .and_then(|factor| decimal(number, factor))
        .ok_or_else(wrong)
}

/// Nanoseconds of a unit.
fn unit_ns(unit: &str) -> Option<u64> {
    Some(match unit {
        "ns" => 1,
        "us" | "\u{b5}s" | "\u{3bc}s" => 1_000,
        "ms" => 1_000_000,
        "s" => SECOND_NS,
        "m" | "min" => 60 * SECOND_NS,
        "h" => 3600 * SECOND_NS,
        _ => return None,
    })
}

/// A decimal number times a factor; what is below one is dropped. Exact: a point in time has more digits than a floating-point
/// number.
fn decimal(number: &str, factor: u64) -> Option<u64> {
    let (whole, part) = number.split_once('.').unwrap_or((number, ""));
    if whole.is_empty() && part.is_empty() {
        return None;
    }
    let whole: u64 = match whole {
        "" => 0,
        whole => whole.parse().ok()?,
    };
    let (mut below, mut unit) = (0_u64, factor);
    for digit in part.chars() {
        unit /= 10;
        below += u64::from(digit.to_digit(10)?) * unit;
    }
    whole.checked_mul(factor)?.checked_add(below)
}
