//! Rates of what somebody counted.

/// The part of all bytes that is left out at the beginning and at the end: there the transfer starts,
/// and the queue of the shaper fills and empties.
const EDGE: f64 = 0.15;

/// How many bytes there were at a time, seconds: rising.
pub(super) type Count = (f64, f64);

/// The rate in the middle of a transfer, bit/s; `None` of too few counts.
///
/// It is the slope of all of them and not of two: who counts may be late (a program that is not given a
/// core), and then the one count is wrong in time. So it is the times that are fitted.
pub(super) fn steady(counts: &[Count]) -> Option<f64> {
    let (_, begin) = counts.first()?;
    let (_, end) = counts.last()?;
    let part = |part: f64| begin + part * (end - begin);
    let middle = part(EDGE)..=part(1.0 - EDGE);
    let middle: Vec<&Count> = counts.iter().filter(|(_, n)| middle.contains(n)).collect();
    let number = middle.len() as f64;
    let mean = |sum: f64| sum / number;
    let time = mean(middle.iter().map(|(at, _)| at).sum());
    let bytes = mean(middle.iter().map(|(_, n)| n).sum());
    let (mut both, mut own) = (0.0, 0.0);
    for (at, n) in middle {
        both += (at - time) * (n - bytes);
        own += (n - bytes) * (n - bytes);
    }
    (both > 0.0).then(|| 8.0 * own / both)
}

/// Bytes in periods, each with the second in which it began, as counts of all until then.
pub(super) fn summed(mut periods: Vec<(f64, f64)>) -> Vec<Count> {
    periods.sort_by(|a, b| a.0.total_cmp(&b.0));
    let mut all = 0.0;
    for (_, bytes) in &mut periods {
        let before = all;
        all += *bytes;
        *bytes = before;
    }
    periods
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A byte a second, then a hundred, then one.
    fn counts() -> Vec<Count> {
        let slow = (0..10).map(|at| (f64::from(at), f64::from(at)));
        let fast = (0..=20).map(|at| (10.0 + f64::from(at), 10.0 + 100.0 * f64::from(at)));
        let end = (0..10).map(|at| (31.0 + f64::from(at), 2011.0 + f64::from(at)));
        slow.chain(fast).chain(end).collect()
    }

    #[test]
    fn the_edges_do_not_count() {
        let rate = steady(&counts()).unwrap();
        assert!((rate - 800.0).abs() < 1e-6, "{rate}");
        assert_eq!(steady(&counts()[..1]), None);
        assert_eq!(steady(&[]), None);
    }

    #[test]
    fn a_count_that_comes_late_changes_little() {
        let mut late = counts();
        // Where the middle begins, it counts most.
        let first = late.iter_mut().find(|(_, n)| *n >= 0.15 * 2020.0);
        first.unwrap().0 += 1.0;
        let rate = steady(&late).unwrap();
        assert!((rate / 800.0 - 1.0).abs() < 0.05, "{rate}");
    }

    #[test]
    fn a_period_counts_when_it_is_over() {
        let counts = summed(vec![(2.0, 5.0), (1.0, 7.0), (3.0, 1.0)]);
        assert_eq!(counts, [(1.0, 0.0), (2.0, 7.0), (3.0, 12.0)]);
    }
}
