//! The directories of a partitioned output, named as Hive names them: `date=2026-11-22/hour=07`, UTC.

use std::ffi::OsStr;
use std::path::PathBuf;

use linkweir_wire::civil::date_of_days;

use crate::options::Partition;

const SECOND_NS: u64 = 1_000_000_000;

/// What the files in the directories are called before they are numbered.
pub(crate) const PART: &str = "part.parquet";

/// Length of the time that a directory is for, nanoseconds.
pub(crate) const fn span_ns(partition: Partition) -> u64 {
    match partition {
        Partition::Hour => 3_600 * SECOND_NS,
        Partition::Day => 86_400 * SECOND_NS,
    }
}

/// The directory of the records of a moment, below that of the output.
pub(crate) fn directory(partition: Partition, time_ns: u64) -> PathBuf {
    let seconds = time_ns / SECOND_NS;
    let (year, month, day) = date_of_days(seconds / 86_400);
    let mut directory = PathBuf::from(format!("date={year:04}-{month:02}-{day:02}"));
    if partition == Partition::Hour {
        directory.push(format!("hour={:02}", seconds / 3_600 % 24));
    }
    directory
}

/// Whether a directory has the name of one for a day.
pub(crate) fn is_date(name: &OsStr) -> bool {
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    let Some(date) = name.to_str().and_then(|name| name.strip_prefix("date=")) else {
        return false;
    };
    let parts: Vec<&str> = date.split('-').collect();
    matches!(parts[..], [year, month, day]
        if year.len() >= 4 && month.len() == 2 && day.len() == 2
            && parts.iter().all(|part| digits(part)))
}

/// Whether a directory has the name of one for an hour.
pub(crate) fn is_hour(name: &OsStr) -> bool {
    let hour = name.to_str().and_then(|name| name.strip_prefix("hour="));
    hour.is_some_and(|hour| hour.len() == 2 && hour.bytes().all(|b| b.is_ascii_digit()))
}

/// The number of a complete file of ours, from its name.
pub(crate) fn part_number(name: &OsStr) -> Option<u64> {
    let number = name
        .to_str()?
        .strip_prefix("part-")?
        .strip_suffix(".parquet")?;
    if number.len() < 6 || !number.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    number.parse().ok()
}

/// Whether a file is one of ours that is not complete.
pub(crate) fn is_partial(name: &OsStr) -> bool {
    let complete = name
        .to_str()
        .and_then(|name| name.strip_prefix('.')?.strip_suffix(".partial"));
    complete.is_some_and(|name| part_number(OsStr::new(name)).is_some())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn directories_are_those_of_the_moment_in_utc() {
        // 2026-11-22 07:59:59.999999999 UTC.
        let time = 1_795_334_399_999_999_999;
        let of = |partition, time| directory(partition, time).to_str().unwrap().to_owned();
        assert_eq!(of(Partition::Hour, time), "date=2026-11-22/hour=07");
        assert_eq!(of(Partition::Hour, time + 1), "date=2026-11-22/hour=08");
        assert_eq!(of(Partition::Day, time), "date=2026-11-22");
        assert_eq!(of(Partition::Day, 0), "date=1970-01-01");
    }

    #[test]
    fn names_of_others_are_not_ours() {
        let os = OsStr::new;
        assert!(is_date(os("date=2026-11-22")) && is_hour(os("hour=07")));
        for name in [
            "date=2026-11",
            "date=x-11-22",
            "2026-11-22",
            "date=",
            "date=--",
        ] {
            assert!(!is_date(os(name)), "{name}");
        }
        for name in ["hour=7", "hour=ab", "hour=007", "07"] {
            assert!(!is_hour(os(name)), "{name}");
        }
        assert_eq!(part_number(os("part-000012.parquet")), Some(12));
        for name in [
            "part-12.parquet",
            "part-+00012.parquet",
            "part-000001.csv",
            "my.parquet",
        ] {
            assert_eq!(part_number(os(name)), None, "{name}");
        }
        assert!(is_partial(os(".part-000012.parquet.partial")));
        assert!(!is_partial(os("part-000012.parquet")) && !is_partial(os(".x.partial")));
    }
}
