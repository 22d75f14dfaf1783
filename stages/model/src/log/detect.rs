//! Which form a log has, by its beginning.

use super::transactions::{self, Columns};
use super::{Cause, LogFormat, common, worldcup};

/// How much of a log [`detect`] should see, where it is so long.
pub const DETECT_BYTES: usize = 64 << 10;

/// The form of a log that begins so; nothing where it is none.
///
/// A line in Common Log Format may stand anywhere in the beginning: logs that were cut start within
/// a line.
#[must_use]
pub fn detect(beginning: &[u8]) -> Option<LogFormat> {
    if worldcup::looks_like(beginning) {
        return Some(LogFormat::WorldCup);
    }
    let mut lines = beginning
        .split(|byte| *byte == b'\n')
        .map(|line| line.strip_suffix(b"\r").unwrap_or(line))
        .filter(|line| !line.is_empty());
    let first = lines.next()?;
    let is_read = |read: Result<_, Cause>| !read.is_err_and(Cause::is_damage);
    if first.starts_with(b"{") && is_read(transactions::json(first)) {
        return Some(LogFormat::HttpJson);
    }
    if Columns::of_heading(first).is_some() {
        return Some(LogFormat::HttpCsv);
    }
    if is_read(transactions::text(first)) {
        return Some(LogFormat::HttpText);
    }
    let mut lines = std::iter::once(first).chain(lines);
    lines
        .any(|line| is_read(common::parse(line)))
        .then_some(LogFormat::Common)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forms_are_told_by_content() {
        let clf = b"cut\" 200 5\na - - [01/Jul/1995:00:00:01 -0400] \"GET /\" 200 1\n";
        assert_eq!(detect(clf), Some(LogFormat::Common));
        let json = b"{\"client_ip\":\"::1\",\"request_ts_ns\":5}\n";
        assert_eq!(detect(json), Some(LogFormat::HttpJson));
        let csv = b"client_ip,request_ts_ns\n";
        assert_eq!(detect(csv), Some(LogFormat::HttpCsv));
        let text = b"::1|1|::2|80|5.0|5.0|||200||||\n";
        assert_eq!(detect(text), Some(LogFormat::HttpText));
        let mut record = 897_343_200_u32.to_be_bytes().to_vec();
        record.extend([0; 16]);
        assert_eq!(detect(&record), Some(LogFormat::WorldCup));
        record.extend([255; 20]);
        assert_eq!(detect(&record), None);
        for other in [
            &b""[..],
            b"bin_start,count\n",
            b"5\n6\n",
            b"\0\0\0\0",
            b"{}",
        ] {
            assert_eq!(detect(other), None);
        }
    }
}
