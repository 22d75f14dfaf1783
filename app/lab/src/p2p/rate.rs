//! Rates of what somebody counted.

/// The part of all bytes that is left out at the beginning and at the end: there the transfer starts,
/// and the queue of the shaper fills and empties.
const EDGE: f64 = 0.15;

/// How many bytes there were at a time, seconds: rising.
pub(super) type Count = (f64, f64);

/// The rate in the middle of a transfer, bit/s; `None` of too few counts.
pub(super) fn steady(counts: &[Count]) -> Option<f64> {
    let (_, begin) = counts.first()?;
    let (_, end) = counts.last()?;
    let part = |part: f64| begin + part * (end - begin);
    let from = counts.iter().find(|(_, bytes)| *bytes >= part(EDGE))?;
    let to = counts
        .iter()
        .rfind(|(_, bytes)| *bytes <= part(1.0 - EDGE))?;
    let took = to.0 - from.0;
    (took > 0.0).then(|| 8.0 * (to.1 - from.1) / took)
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

    #[test]
    fn the_edges_do_not_count() {
        let slow = (0..10).map(|at| (f64::from(at), f64::from(at)));
        let steady_part = (0..=20).map(|at| (10.0 + f64::from(at), 10.0 + 100.0 * f64::from(at)));
        let counts: Vec<Count> = slow.chain(steady_part).collect();
        assert_eq!(steady(&counts), Some(800.0));
        assert_eq!(steady(&counts[..1]), None);
        assert_eq!(steady(&[]), None);
    }

    #[test]
    fn a_period_counts_when_it_is_over() {
        let counts = summed(vec![(2.0, 5.0), (1.0, 7.0), (3.0, 1.0)]);
        assert_eq!(counts, [(1.0, 0.0), (2.0, 7.0), (3.0, 12.0)]);
    }
}
