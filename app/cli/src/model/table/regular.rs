//! Counts with times as a series without gaps.

/// Counts of bins that follow one another.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::model) struct Regular {
    /// Length of the bins; nothing where there is only one.
    pub(in crate::model) step_ns: Option<u64>,
    pub(in crate::model) counts: Vec<u64>,
    /// Bins that were missing and are taken as empty.
    pub(in crate::model) missing: u64,
}

/// Times that are no series.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::model) enum Irregular {
    /// Not all distances are multiples of the shortest one (nanoseconds).
    Steps(u64),
    /// The times span too many bins.
    Long,
}

/// Bins that are held.
const MOST_BINS: u64 = 1 << 22;

impl Regular {
    /// The series of (time, count); lines with the same time are summed, whatever their order.
    pub(in crate::model) fn of(mut rows: Vec<(u64, u64)>) -> Result<Self, Irregular> {
        rows.sort_unstable_by_key(|row| row.0);
        let mut summed: Vec<(u64, u64)> = Vec::with_capacity(rows.len());
        for (time, count) in rows {
            match summed.last_mut() {
                Some((last, sum)) if *last == time => *sum = sum.saturating_add(count),
                _ => summed.push((time, count)),
            }
        }
        let distances = || {
            let later = summed.iter().skip(1);
            summed.iter().zip(later).map(|(a, b)| b.0 - a.0)
        };
        let Some(step) = distances().min() else {
            return Ok(Self {
                step_ns: None,
                counts: summed.into_iter().map(|(_, count)| count).collect(),
                missing: 0,
            });
        };
        let span = distances().fold(0, u64::saturating_add) / step;
        if span >= MOST_BINS {
            return Err(Irregular::Long);
        }
        if distances().any(|distance| !distance.is_multiple_of(step)) {
            return Err(Irregular::Steps(step));
        }
        let missing = (span + 1).saturating_sub(summed.len() as u64);
        let mut counts = Vec::new();
        let mut next = summed.first().map_or(0, |(time, _)| *time);
        for (time, count) in summed {
            while next < time {
                counts.push(0);
                next += step;
            }
            counts.push(count);
            next = next.saturating_add(step);
        }
        Ok(Self {
            step_ns: Some(step),
            counts,
            missing,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gaps_are_empty_and_doubles_are_summed() {
        let series = Regular::of(vec![(40, 4), (10, 1), (40, 1), (20, 2)]).unwrap();
        let expected = Regular {
            step_ns: Some(10),
            counts: vec![1, 2, 0, 5],
            missing: 1,
        };
        assert_eq!(series, expected);
        assert_eq!(Regular::of(vec![(7, 1)]).unwrap().step_ns, None);
        assert_eq!(Regular::of(vec![]).unwrap().counts, Vec::<u64>::new());
    }

    #[test]
    fn what_is_no_series_is_told() {
        let irregular = Regular::of(vec![(0, 1), (10, 1), (25, 1)]);
        assert_eq!(irregular, Err(Irregular::Steps(10)));
        let long = Regular::of(vec![(0, 1), (1, 1), (u64::MAX, 1)]);
        assert_eq!(long, Err(Irregular::Long));
        assert_eq!(
            Regular::of(vec![(u64::MAX - 1, 1), (u64::MAX, 2)])
                .unwrap()
                .counts,
            [1, 2]
        );
    }
}
