//! Marks of an axis of time: round times of UTC.

use linkweir_record::human::moment;

const SECOND: u64 = 1_000_000_000;
const DAY: u64 = 86_400 * SECOND;

/// A mark on the axis of time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct TimeTick {
    pub(super) at_ns: u64,
    pub(super) text: String,
}

/// Marks from `from_ns` to `to_ns`, at most about `most`: round times of UTC.
pub(super) fn times(from_ns: u64, to_ns: u64, most: u64) -> Vec<TimeTick> {
    const STEPS: [u64; 19] = [
        1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10_800, 21_600, 43_200,
        86_400, 172_800,
    ];
    let span = to_ns.saturating_sub(from_ns);
    let fits = |seconds: &&u64| span / (**seconds * SECOND) <= most;
    match STEPS.iter().find(fits) {
        Some(seconds) => {
            let step = seconds * SECOND;
            let first = from_ns.div_ceil(step);
            let all = (first..=to_ns / step).map(|number| number * step);
            all.map(|at_ns| TimeTick {
                at_ns,
                text: label(at_ns, step),
            })
            .collect()
        }
        None if span / (5 * DAY) <= most => days_of_months(from_ns, to_ns, &[1, 6, 11, 16, 21, 26]),
        None if span / (15 * DAY) <= most => days_of_months(from_ns, to_ns, &[1, 16]),
        None => months(from_ns, to_ns, most),
    }
}

/// Year, month and day of a time.
fn date(at_ns: u64) -> (u64, usize, u64) {
    let text = moment(at_ns);
    let mut parts = text.split(['-', ' ']);
    let mut next = || {
        parts
            .next()
            .and_then(|part| part.parse::<u64>().ok())
            .unwrap_or(0)
    };
    let (year, month, day) = (next(), next(), next());
    (year, usize::try_from(month).unwrap_or(1), day)
}

fn month_name(month: usize) -> &'static str {
    const NAMES: [&str; 12] = [
        "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
    ];
    NAMES.get(month.saturating_sub(1)).copied().unwrap_or("")
}

fn label(at_ns: u64, step: u64) -> String {
    let (_, month, day) = date(at_ns);
    if step >= DAY || at_ns.is_multiple_of(DAY) {
        return format!("{day} {}", month_name(month));
    }
    let (hour, minute) = (at_ns / (3600 * SECOND) % 24, at_ns / (60 * SECOND) % 60);
    if step < 60 * SECOND {
        format!("{hour:02}:{minute:02}:{:02}", at_ns / SECOND % 60)
    } else {
        format!("{hour:02}:{minute:02}")
    }
}

fn days(from_ns: u64, to_ns: u64) -> impl Iterator<Item = (u64, (u64, usize, u64))> {
    let all = (from_ns.div_ceil(DAY)..=to_ns / DAY).map(|day| day * DAY);
    all.map(|at_ns| (at_ns, date(at_ns)))
}

fn days_of_months(from_ns: u64, to_ns: u64, chosen: &[u64]) -> Vec<TimeTick> {
    days(from_ns, to_ns)
        .filter(|(_, (_, _, day))| chosen.contains(day))
        .map(|(at_ns, (_, month, day))| TimeTick {
            at_ns,
            text: format!("{day} {}", month_name(month)),
        })
        .collect()
}

fn months(from_ns: u64, to_ns: u64, most: u64) -> Vec<TimeTick> {
    // Of spans of centuries, which only a wrong clock makes, a part.
    const MOST_DAYS: usize = 200_000;
    let every = to_ns.saturating_sub(from_ns) / (30 * DAY) / most.max(1);
    let every = [1, 2, 3, 6, 12].into_iter().find(|months| *months > every);
    let every = every.unwrap_or(12);
    days(from_ns, to_ns)
        .take(MOST_DAYS)
        .filter(|(_, (_, month, day))| *day == 1 && (*month as u64 - 1).is_multiple_of(every))
        .map(|(at_ns, (year, month, _))| TimeTick {
            at_ns,
            text: format!("{} {year}", month_name(month)),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOON: u64 = 1_794_657_600 * SECOND;

    fn texts(span: u64) -> Vec<String> {
        let ticks = times(NOON - span, NOON, 8);
        ticks.into_iter().map(|tick| tick.text).collect()
    }

    #[test]
    fn times_are_round() {
        assert_eq!(texts(3600 * SECOND)[..2], ["11:00", "11:10"]);
        let day = texts(DAY);
        assert_eq!(
            day,
            [
                "12:00", "15:00", "18:00", "21:00", "14 Nov", "03:00", "06:00", "09:00", "12:00"
            ]
        );
        assert_eq!(texts(7 * DAY)[..2], ["8 Nov", "9 Nov"]);
        assert_eq!(
            texts(30 * DAY),
            ["16 Oct", "21 Oct", "26 Oct", "1 Nov", "6 Nov", "11 Nov"]
        );
        assert_eq!(
            texts(100 * DAY),
            ["16 Aug", "1 Sep", "16 Sep", "1 Oct", "16 Oct", "1 Nov"]
        );
        // Nine quarters are too many for eight ticks.
        assert_eq!(texts(797 * DAY)[..2], ["Jan 2025", "Jul 2025"]);
        assert_eq!(texts(20 * SECOND)[0], "11:59:40");
        assert!(times(0, u64::MAX, 8).len() < 2000);
        assert_eq!(times(5, 1, 8), []);
    }
}
