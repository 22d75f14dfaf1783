//! What a queue says: one server, first come first served, every answer takes the same time.

/// Mean time from arrival to answer at these sorted arrivals, seconds: Lindley's recursion (1952),
/// `wait' = max(0, wait + service - gap)`.
pub(super) fn mean_response(arrivals: &[f64], service_s: f64) -> Option<f64> {
    let first = arrivals.first()?;
    let (mut wait, mut before, mut sum) = (0.0_f64, *first, 0.0);
    for (index, at) in arrivals.iter().enumerate() {
        if index > 0 {
            wait = (wait + service_s - (at - before)).max(0.0);
        }
        before = *at;
        sum += wait + service_s;
    }
    Some(sum / arrivals.len() as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_waits_where_gaps_are_long_enough() {
        let even: Vec<f64> = (0..100).map(f64::from).collect();
        assert!((mean_response(&even, 0.9).unwrap() - 0.9).abs() < 1e-12);
        assert_eq!(mean_response(&[], 0.9), None);
    }

    #[test]
    fn those_who_come_together_wait_for_each_other() {
        // 1, 2 and 3 services; then the server is idle again.
        let mean = mean_response(&[0.0, 0.0, 0.0, 10.0], 1.0).unwrap();
        assert!((mean - 7.0 / 4.0).abs() < 1e-12);
        // Half a service too many with each: the wait grows without end.
        let many: Vec<f64> = (0..100).map(|index| 0.5 * f64::from(index)).collect();
        assert!(mean_response(&many, 1.0).unwrap() > 25.0);
    }
}
