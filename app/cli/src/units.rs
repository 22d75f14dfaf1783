//! Values with units on the command line.

use std::num::NonZeroU32;
use std::time::Duration;

use linkweir_http::PortSet;
use linkweir_record::parse_moment;

use crate::clock::wall_clock;

/// Threads that may share the work.
const MAX_WORKERS: usize = 256;

/// A size: `65536`, `256KiB`, `1MB`.
///
/// # Errors
/// It is not a valid size, or zero.
pub fn size(text: &str) -> Result<u64, String> {
    let at = text
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(text.len());
    let (digits, unit) = text.split_at_checked(at).ok_or("no size")?;
    let number: u64 = digits
        .parse()
        .map_err(|_| format!("`{text}` must begin with a whole number"))?;
    let scale = match unit.trim() {
        "" | "B" => 1,
        "k" | "kB" | "KB" => 1_000,
        "K" | "KiB" => 1 << 10,
        "M" | "MB" => 1_000_000,
        "MiB" => 1 << 20,
        "G" | "GB" => 1_000_000_000,
        "GiB" => 1 << 30,
        other => {
            return Err(format!(
                "unknown unit `{other}`: one of B, kB, KiB, MB, MiB, GB, GiB"
            ));
        }
    };
    number
        .checked_mul(scale)
        .filter(|n| *n > 0)
        .ok_or_else(|| format!("`{text}` is out of range"))
}

/// A span of time: `60s`, `500ms`, `1h30m`.
///
/// # Errors
/// It is not a valid span of time, or zero.
pub fn duration(text: &str) -> Result<Duration, String> {
    let span = humantime::parse_duration(text).map_err(|error| {
        format!("{error}; give a number with a unit, such as 60s, 500ms or 1h30m")
    })?;
    if span.is_zero() {
        Err("must be more than zero".to_owned())
    } else {
        Ok(span)
    }
}

/// A moment, nanoseconds since the epoch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Moment(pub u64);

/// A moment of the command line, as in a filter: `2026-11-14`, `2026-11-14 12:00`, `2026-11-14T12:00:00.5+02:00`, seconds since
/// 1970, or so long before now: `-1h`.
///
/// # Errors
/// It is not a valid time, or before 1970.
pub fn moment(text: &str) -> Result<Moment, String> {
    const FORM: &str =
        "give a time such as 2026-11-14, '2026-11-14 12:00' (UTC), 1794657600 or -1h (before now)";
    if let Some(span) = text.strip_prefix('-') {
        let before = duration(span).map_err(|_| FORM)?.as_nanos();
        let before = u64::try_from(before).map_err(|_| FORM)?;
        return wall_clock()
            .checked_sub(before)
            .map(Moment)
            .ok_or_else(|| "before 1970".to_owned());
    }
    parse_moment(text)
        .map(Moment)
        .map_err(|wrong| format!("{wrong}; {FORM}"))
}

/// A time between two moments, nanoseconds since the epoch; not empty.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Between(pub u64, pub u64);

/// Two moments of the command line: `2026-11-14..2026-11-15`.
///
/// # Errors
/// They are not valid times, or the second is not after the first.
pub fn between(text: &str) -> Result<Between, String> {
    let (from, to) = text
        .split_once("..")
        .ok_or("give two times such as 2026-11-14..2026-11-15")?;
    let (Moment(from), Moment(to)) = (moment(from.trim())?, moment(to.trim())?);
    if from < to {
        Ok(Between(from, to))
    } else {
        Err("the second time must be after the first".to_owned())
    }
}

/// A number above zero: `2.35`.
///
/// # Errors
/// It is not a number, or not above zero.
pub fn positive(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(number) if number.is_finite() && number > 0.0 => Ok(number),
        _ => Err("give a number above zero".to_owned()),
    }
}

/// A number of threads: `4`, or `auto` for one a core.
///
/// # Errors
/// It is neither `auto` nor a number from 1 to 256.
pub fn workers(text: &str) -> Result<usize, String> {
    if text == "auto" {
        return Ok(std::thread::available_parallelism().map_or(1, usize::from));
    }
    match text.parse() {
        Ok(workers @ 1..=MAX_WORKERS) => Ok(workers),
        _ => Err(format!("give a number from 1 to {MAX_WORKERS}, or auto")),
    }
}

/// A share of which one in N is taken: `1/100`.
///
/// # Errors
/// It is not `1/N` with N from 1 to 4,294,967,295.
pub fn one_of(text: &str) -> Result<NonZeroU32, String> {
    let of = text.strip_prefix("1/");
    let of = of.filter(|of| of.bytes().all(|byte| byte.is_ascii_digit()));
    let of = of.and_then(|of| of.parse().ok());
    of.ok_or_else(|| format!("write 1/N with N from 1 to {}, for example 1/100", u32::MAX))
}

/// A list of ports: `80,8080,8000-8100`.
///
/// # Errors
/// It is not a valid list of ports.
pub fn ports(text: &str) -> Result<PortSet, String> {
    let mut set = PortSet::new();
    for part in text.split(',').map(str::trim) {
        let (from, to) = part.split_once('-').unwrap_or((part, part));
        let port = |digits: &str| {
            digits.trim().parse::<u16>().map_err(|_| {
                format!("`{part}` is not a valid port or range of ports; write 80,8000-8100")
            })
        };
        let (from, to) = (port(from)?, port(to)?);
        if from > to {
            return Err(format!("`{part}` runs backwards"));
        }
        (from..=to).for_each(|port| set.insert(port));
    }
    Ok(set)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_and_spans() {
        assert_eq!(size("256KiB"), Ok(262_144));
        assert_eq!(size("7"), Ok(7));
        assert!(size("0").is_err() && size("x").is_err() && size("9X").is_err());
        assert_eq!(duration("1500ms"), Ok(Duration::from_millis(1500)));
        assert!(duration("60").is_err() && duration("0s").is_err());
    }

    #[test]
    fn shares() {
        assert_eq!(one_of("1/100"), Ok(NonZeroU32::new(100).unwrap()));
        for wrong in ["100", "1/0", "2/3", "1/", "0.1", "1/+4", "1/4294967296"] {
            assert!(one_of(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn port_lists() {
        let set = ports("80, 8000-8002").unwrap();
        assert!(set.contains(80) && set.contains(8001) && !set.contains(81));
        assert!(ports("80-70").is_err() && ports("http").is_err() && ports("70000").is_err());
    }

    #[test]
    fn times() {
        let day = Ok(Moment(1_794_614_400_000_000_000));
        for text in [
            "2026-11-14",
            "2026-11-14 00:00",
            "2026-11-14T00:00:00Z",
            "1794614400",
        ] {
            assert_eq!(moment(text), day, "{text}");
        }
        let late = Ok(Moment(1_794_614_400_500_000_000));
        for text in ["2026-11-14T02:00:00.5+02:00", "1794614400.5"] {
            assert_eq!(moment(text), late, "{text}");
        }
        let ago = moment("-1h").unwrap().0;
        let now = wall_clock();
        assert!((now - 3_700_000_000_000..=now - 3_600_000_000_000).contains(&ago));
        for text in ["", "yesterday", "2026-13-14", "99999999999999999", "-5"] {
            assert!(moment(text).is_err(), "{text}");
        }
    }
}
