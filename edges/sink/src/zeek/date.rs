//! Dates as headers of Zeek logs have them.

use linkweir_wire::civil::{date_of_days, time_of_day};

/// `2026-11-21-02-17-48`, UTC.
pub(super) fn zeek_date(nanos: u64) -> String {
    let seconds = nanos / 1_000_000_000;
    let (year, month, day) = date_of_days(seconds / 86_400);
    let (hour, minute, second) = time_of_day(seconds);
    format!("{year:04}-{month:02}-{day:02}-{hour:02}-{minute:02}-{second:02}")
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
