//! Days of the Gregorian calendar (H. Hinnant, "chrono-compatible low-level date algorithms"). No time zones.
//!
//! Years begin in March there, so that the leap day is the last; 400 years, an era, are 146,097 days.

/// Days from 0000-03-01 to 1970-01-01.
const EPOCH: u64 = 719_468;
const ERA: u64 = 146_097;
const DAY_S: i64 = 86_400;

/// Year, month, day, hour, minute and second of a second counted from the beginning of 1970; those before the year 0 are in its
/// first days.
#[must_use]
pub const fn date_time(seconds: i64) -> [u64; 6] {
    let (year, month, day) = date_of_days(seconds.div_euclid(DAY_S));
    let second = seconds.rem_euclid(DAY_S).cast_unsigned();
    [
        year,
        month,
        day,
        second / 3600,
        second / 60 % 60,
        second % 60,
    ]
}

/// Year, month and day of a day counted from 1970-01-01 (`civil_from_days`).
const fn date_of_days(days: i64) -> (u64, u64, u64) {
    let shifted = EPOCH.saturating_add_signed(days);
    let (era, of_era) = (shifted / ERA, shifted % ERA);
    let year_of_era = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let from_march = (5 * of_year + 2) / 153;
    let day = of_year - (153 * from_march + 2) / 5 + 1;
    let month = if from_march < 10 {
        from_march + 3
    } else {
        from_march - 9
    };
    let year = year_of_era + era * 400 + if month <= 2 { 1 } else { 0 };
    (year, month, day)
}

/// Days from 1970-01-01 to a date of the years 1 to 9999 (`days_from_civil`); `None` where there is no such date.
#[must_use]
pub const fn days_of_date(year: u64, month: u64, day: u64) -> Option<i64> {
    let is_leap = year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
    let longest = match month {
        2 if is_leap => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        1 | 3 | 5 | 7 | 8 | 10 | 12 => 31,
        _ => return None,
    };
    if day < 1 || day > longest || year < 1 || year > 9999 {
        return None;
    }
    let year = year - if month <= 2 { 1 } else { 0 };
    let of_era = year % 400;
    let of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    let days = year / 400 * ERA + of_era * 365 + of_era / 4 - of_era / 100 + of_year;
    Some(days.cast_signed() - EPOCH.cast_signed())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn dates() {
        assert_eq!(date_of_days(0), (1970, 1, 1));
        assert_eq!(date_of_days(11_016), (2000, 2, 29));
        assert_eq!(date_of_days(19_675), (2023, 11, 14));
        assert_eq!(date_time(80_000 + 86_400), [1970, 1, 2, 22, 13, 20]);
        assert_eq!(date_time(-1), [1969, 12, 31, 23, 59, 59]);
        assert_eq!(date_time(-86_400), [1969, 12, 31, 0, 0, 0]);
        assert_eq!(date_time(i64::MIN)[..3], [0, 3, 1]);
        assert!(date_time(i64::MAX)[0] > 9999);
        assert_eq!(days_of_date(1969, 12, 31), Some(-1));
        for (year, month, day) in [
            (0, 12, 31),
            (1998, 2, 29),
            (1900, 2, 29),
            (2001, 13, 1),
            (2001, 0, 1),
            (2001, 4, 31),
            (2001, 4, 0),
            (10_000, 1, 1),
        ] {
            assert_eq!(days_of_date(year, month, day), None, "{year}-{month}-{day}");
        }
    }

    proptest! {
        #[test]
        fn dates_come_back(days in -719_162_i64..2_932_897) {
            let (year, month, day) = date_of_days(days);
            prop_assert_eq!(days_of_date(year, month, day), Some(days));
        }
    }
}
