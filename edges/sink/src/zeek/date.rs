//! Dates of the civil calendar from seconds, as headers and names of folders have them.

/// `2026-11-21-02-17-48`, UTC.
pub(super) fn zeek_date(nanos: u64) -> String {
    let seconds = nanos / 1_000_000_000;
    let (year, month, day) = civil_date(seconds / 86_400);
    let of_day = seconds % 86_400;
    format!(
        "{year:04}-{month:02}-{day:02}-{:02}-{:02}-{:02}",
        of_day / 3600,
        of_day / 60 % 60,
        of_day % 60
    )
}

/// Year, month and day of a day counted from 1970-01-01 (H. Hinnant, "chrono-compatible low-level
/// date algorithms", `civil_from_days`, for days after the epoch).
pub(crate) const fn civil_date(days: u64) -> (u64, u64, u64) {
    let z = days + 719_468;
    let era = z / 146_097;
    let of_era = z % 146_097;
    let year_of_era = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let day_of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted + 2) / 5 + 1;
    let month = if shifted < 10 {
        shifted + 3
    } else {
        shifted - 9
    };
    let year = year_of_era + era * 400 + if month <= 2 { 1 } else { 0 };
    (year, month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates() {
        assert_eq!(zeek_date(0), "1970-01-01-00-00-00");
        assert_eq!(zeek_date(951_782_400_000_000_000), "2000-02-29-00-00-00");
        assert_eq!(zeek_date(1_700_000_000_999_999_999), "2023-11-14-22-13-20");
        assert_eq!(zeek_date(u64::MAX), "2554-07-21-23-34-33");
    }
}
