//! Dates of the Gregorian calendar as nanoseconds since 1970, and back. No time zones but offsets.

use std::fmt::Write;

use crate::civil::{date_time, days_of_date};

/// Nanoseconds of a second.
pub const SECOND_NS: u64 = 1_000_000_000;
const DAY_S: i64 = 86_400;

/// A date and time of day with its distance from UTC, as read from a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Civil {
    /// The year.
    pub year: i64,
    /// 1 to 12.
    pub month: i64,
    /// 1 to 31.
    pub day: i64,
    /// 0 to 23.
    pub hour: i64,
    /// 0 to 59.
    pub minute: i64,
    /// 60 is a leap second.
    pub second: i64,
    /// Below a second.
    pub nanos: u32,
    /// Seconds east of UTC.
    pub offset_s: i64,
}

impl Civil {
    /// Nanoseconds since 1970; nothing where there is no such moment, or it is before 1970.
    #[must_use]
    pub fn nanos_since_1970(self) -> Option<u64> {
        let is_time = (0..24).contains(&self.hour)
            && (0..60).contains(&self.minute)
            && (0..=60).contains(&self.second)
            && self.offset_s.abs() < DAY_S;
        if !is_time {
            return None;
        }
        let part = |part: i64| u64::try_from(part).ok();
        let days = days_of_date(part(self.year)?, part(self.month)?, part(self.day)?)?;
        let seconds = days * DAY_S + self.hour * 3600 + self.minute * 60 + self.second;
        u64::try_from(seconds - self.offset_s)
            .ok()?
            .checked_mul(SECOND_NS)?
            .checked_add(u64::from(self.nanos))
    }
}

/// Reads digits from the front of a text.
#[derive(Debug, Clone, Copy)]
pub struct Digits<'a>(pub &'a [u8]);

impl<'a> Digits<'a> {
    /// A number of exactly `width` digits.
    pub fn number(&mut self, width: usize) -> Option<i64> {
        let (digits, rest) = self.0.split_at_checked(width)?;
        let mut number = 0_i64;
        for digit in digits {
            if !digit.is_ascii_digit() {
                return None;
            }
            number = number
                .checked_mul(10)?
                .checked_add(i64::from(digit - b'0'))?;
        }
        self.0 = rest;
        Some(number)
    }

    /// One of these bytes.
    pub fn one_of(&mut self, bytes: &[u8]) -> Option<u8> {
        let (first, rest) = self.0.split_first()?;
        if !bytes.contains(first) {
            return None;
        }
        self.0 = rest;
        Some(*first)
    }

    /// `.123456789` or `,123` as nanoseconds, 0 where there is none; digits after the ninth are dropped.
    pub fn fraction(&mut self) -> Option<u32> {
        if self.one_of(b".,").is_none() {
            return Some(0);
        }
        let (mut nanos, mut unit, mut count) = (0_u32, 100_000_000_u32, 0);
        while let Some((digit, rest)) = self.0.split_first()
            && digit.is_ascii_digit()
        {
            nanos += u32::from(digit - b'0') * unit;
            unit /= 10;
            count += 1;
            self.0 = rest;
        }
        (count > 0).then_some(nanos)
    }

    /// `Z`, `+0200` or `+02:00` as seconds east.
    pub fn offset(&mut self) -> Option<i64> {
        let sign = match self.one_of(b"Zz+-")? {
            b'+' => 1,
            b'-' => -1,
            _ => return Some(0),
        };
        let hours = self.number(2)?;
        let _colon = self.one_of(b":");
        let minutes = self.number(2)?;
        (hours < 24 && minutes < 60).then_some(sign * (hours * 3600 + minutes * 60))
    }

    /// The text that is left.
    #[must_use]
    pub const fn rest(self) -> &'a [u8] {
        self.0
    }
}

/// Nanoseconds since 1970 of a date: `2023-11-16`, `2023-11-16 18:17`, `2023-11-16T18:17:03.97Z`,
/// `2023-11-16 18:17:03+01:00`. Without a zone it is UTC.
#[must_use]
pub fn parse_date(text: &[u8]) -> Option<u64> {
    let mut at = Digits(text.trim_ascii());
    let mut civil = Civil {
        year: at.number(4)?,
        ..Civil::default()
    };
    let parting = at.one_of(b"-/")?;
    civil.month = at.number(2)?;
    at.one_of(&[parting])?;
    civil.day = at.number(2)?;
    if at.rest().is_empty() {
        return civil.nanos_since_1970();
    }
    at.one_of(b" Tt")?;
    civil.hour = at.number(2)?;
    at.one_of(b":")?;
    civil.minute = at.number(2)?;
    if at.one_of(b":").is_some() {
        civil.second = at.number(2)?;
        civil.nanos = at.fraction()?;
    }
    if let [b' ', rest @ ..] = at.rest() {
        at = Digits(rest);
    }
    match at.rest() {
        [] | b"UTC" | b"GMT" => {}
        _ => {
            civil.offset_s = at.offset()?;
            if !at.rest().is_empty() {
                return None;
            }
        }
    }
    civil.nanos_since_1970()
}

/// `2023-11-16T18:17:03Z`, with as many digits of the second as the time has.
#[must_use]
pub fn format_date(time_ns: u64) -> String {
    let seconds = time_ns / SECOND_NS;
    let nanos = time_ns % SECOND_NS;
    let [year, month, day, hour, minute, second] = date_time(seconds.cast_signed());
    let mut text = format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}");
    if nanos > 0 {
        let digits = format!("{nanos:09}");
        // Writing to a string cannot fail.
        let _unfailing = write!(text, ".{}", digits.trim_end_matches('0'));
    }
    text.push('Z');
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn dates_in_many_forms() {
        let start = 897_343_200 * SECOND_NS;
        for text in [
            "1998-06-08 22:00",
            "1998-06-08T22:00:00Z",
            "1998/06/08 22:00:00.000",
            "1998-06-09 00:00:00+02:00",
            "1998-06-08T17:00:00 -0500",
            " 1998-06-08 22:00:00 UTC\r",
        ] {
            assert_eq!(parse_date(text.as_bytes()), Some(start), "{text}");
        }
        assert_eq!(parse_date(b"1970-01-01"), Some(0));
        assert_eq!(
            parse_date(b"2023-11-16 18:17:03.9799600"),
            Some(1_700_158_623_979_960_000)
        );
        for text in [
            "1998-02-29",
            "1998-13-01",
            "1969-12-31",
            "1998-06-08 24:00",
            "1998-06-08 22",
            "1998-06-08 22:00:00.",
            "1998-06-08 22:00 CEST",
            "19980608",
            "9",
            "",
        ] {
            assert_eq!(parse_date(text.as_bytes()), None, "{text}");
        }
        assert_eq!(format_date(start), "1998-06-08T22:00:00Z");
        assert_eq!(format_date(start + 200_000_000), "1998-06-08T22:00:00.2Z");
    }

    proptest! {
        #[test]
        fn dates_come_back(time_ns in any::<u64>()) {
            prop_assert_eq!(parse_date(format_date(time_ns).as_bytes()), Some(time_ns));
        }

        #[test]
        fn no_text_is_too_strange(text in prop::collection::vec(any::<u8>(), 0..40)) {
            let _any = parse_date(&text);
        }
    }
}
